"""How many threads a unit of work may use, and what it keeps to itself."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from sklearn.exceptions import ConvergenceWarning

from scne.passes import available_threads, listening

_threads: list[int] = []


def unit_threads() -> int:
    """Threads of each fit in this process: all cores, or a worker's share of them."""
    return _threads[-1] if _threads else available_threads()


def limit_threads(n_threads: int) -> None:
    """Give this process a share of the cores."""
    _threads[:] = [n_threads]


@contextmanager
def quietly() -> Iterator[None]:
    """Leave out the steps of single fits, and the warning that k_max was reached: the paper means to reach it."""
    with warnings.catch_warnings(), listening(lambda step: None):
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield
