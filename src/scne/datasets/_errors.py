"""What goes wrong with a data set, as sentences."""


class DatasetError(OSError):
    """A data set cannot be fetched or a file of it cannot be used; the message says which, and why.

    It is an `OSError`, as what scikit-learn's ``fetch_*`` functions raise.

    Examples
    --------
    >>> from scne.datasets import fetch_year_prediction
    >>> fetch_year_prediction(data_home="nowhere", download_if_missing=False)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    scne.datasets._errors.DatasetError: Data not found: ...
    """
