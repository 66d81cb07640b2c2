"""Where data sets are kept between runs."""

import os
from pathlib import Path

HOME_VARIABLE = "SCNE_DATA"


def get_data_home(data_home: str | os.PathLike[str] | None = None) -> Path:
    """The folder in which fetched data sets are kept.

    It is `data_home` if given, else the environment variable ``SCNE_DATA``, else ``scne_data`` in the
    user's home folder. The folder is not created here, but by the first fetch.

    Parameters
    ----------
    data_home : path or None

    Returns
    -------
    Path

    Examples
    --------
    >>> from scne.datasets import get_data_home
    >>> get_data_home("rows").name
    'rows'
    """
    chosen = data_home if data_home is not None else os.environ.get(HOME_VARIABLE) or Path("~") / "scne_data"
    return Path(chosen).expanduser().absolute()
