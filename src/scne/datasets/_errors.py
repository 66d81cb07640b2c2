"""What goes wrong with a data set, as sentences."""


class DatasetError(OSError):
    """A data set cannot be fetched or a file of it cannot be used; the message names it and the reason.

    It is an `OSError`, as what scikit-learn's ``fetch_*`` functions raise.

    Examples
    --------
    >>> from scne.datasets import DatasetError, fetch_year_prediction
    >>> try:
    ...     fetch_year_prediction(data_home="nowhere", download_if_missing=False)
    ... except DatasetError as error:
    ...     print(str(error)[:15])
    Data not found:
    """
