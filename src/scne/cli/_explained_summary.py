"""What a page of contributions needs to know of rows that stream by: means, stretches, the first rows, a sample."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from scne.explain import Contributions
from scne.rows import SampleDrawer

FIRST_ROWS = 48
MOST_STRETCHES = 120
SAMPLE_ROWS = 1_000


@dataclass(frozen=True, eq=False)
class ExtremeRow:
    """A row with the highest or the lowest prediction of the first output.

    Attributes
    ----------
    number : int
        From 0.
    place : str
        The number as people count, and the row's keys.
    values : ndarray of shape (k,)
    prediction : float
    """

    number: int
    place: str
    values: NDArray[np.float64]
    prediction: float


class ExplainedSummary:
    """Takes in batches of rows with their contributions, in memory that does not grow with the rows.

    Parameters
    ----------
    n_rows : int
        Of all batches together.
    keys : sequence of str
        Columns that name a row.
    time : str or None
        A column with the time of each row.
    seed : int
        Draws the sample.
    """

    def __init__(self, n_rows: int, keys: tuple[str, ...], time: str | None, seed: int) -> None:
        self._total, self._keys, self._time = n_rows, keys, time
        self._n_stretches = min(n_rows, MOST_STRETCHES)
        self._drawer = SampleDrawer(SAMPLE_ROWS, seed)
        self._first: list[NDArray[np.float64]] = []
        self._first_times: list[Any] = []
        self._stretch_times: list[Any] = []
        self._last_stretch = -1
        self.n_rows = 0
        self.names: tuple[str | int, ...] = ()
        self.members: tuple[tuple[str | int, ...], ...] = ()
        self.base_values: NDArray[np.float64] = np.zeros(0)
        self.n_background = 0
        self.data_names: list[str] = []
        self.highest: ExtremeRow | None = None
        self.lowest: ExtremeRow | None = None

    def add(self, batch: pa.RecordBatch, found: Contributions) -> None:
        """Take in the next rows."""
        values = found.values if found.values.ndim == 3 else found.values[:, :, None]
        n, k, q = values.shape
        if not self.n_rows:
            self.names, self.members, self.n_background = found.names, found.members, found.n_background
            self.base_values = np.atleast_1d(found.base_value)
            self._sizes = np.zeros((k, q))
            self._stretches, self._counts = np.zeros((self._n_stretches, k)), np.zeros(self._n_stretches)
            single = all(len(held) == 1 for held in found.members)
            self.data_names = [str(name) for name in found.names if single and str(name) in batch.schema.names]
        self._sizes += np.abs(values).sum(axis=0)
        numbers = self.n_rows + np.arange(n)
        stretches = numbers * self._n_stretches // self._total
        np.add.at(self._stretches, stretches, values[:, :, 0])
        self._counts += np.bincount(stretches, minlength=self._n_stretches)
        missing = FIRST_ROWS - self.n_rows
        if missing > 0:
            self._first.append(values[:missing, :, 0])
        if self._time is not None:
            times = batch.column(self._time)
            self._first_times += times.slice(0, max(missing, 0)).to_pylist()
            begins = np.flatnonzero(np.diff(stretches, prepend=self._last_stretch))
            self._stretch_times += times.take(pa.array(begins)).to_pylist()
        self._last_stretch = int(stretches[-1]) if n else self._last_stretch
        self._extremes(batch, values[:, :, 0])
        columns = {f"value {place}": pa.array(part) for place, part in enumerate(values[:, :, 0].T)}
        columns |= {f"data {name}": batch.column(name) for name in self.data_names}
        self._drawer.update(pa.RecordBatch.from_pydict(columns), self.n_rows)
        self.n_rows += n

    @property
    def mean_sizes(self) -> NDArray[np.float64]:
        """The mean size of each term in each output, shape (k, q)."""
        sizes: NDArray[np.float64] = self._sizes / self.n_rows
        return sizes

    def first(self) -> tuple[NDArray[np.float64], NDArray[Any] | None]:
        """Terms of the first rows, and their times if these increase."""
        return np.concatenate(self._first), _increasing(self._first_times)

    def stretches(self) -> tuple[NDArray[np.float64], NDArray[Any] | None]:
        """Mean terms of stretches of all rows, and the times at which they begin if these increase."""
        return self._stretches / self._counts[:, None], _increasing(self._stretch_times)

    def sample(self) -> tuple[NDArray[np.float64], dict[str, NDArray[Any]]]:
        """Terms of a sample of the rows, and the values of their columns."""
        table = self._drawer.finish().table
        values = np.column_stack([table.column(f"value {place}").to_numpy() for place in range(len(self.names))])
        return values, {name: _as_array(table.column(f"data {name}")) for name in self.data_names}

    def _extremes(self, batch: pa.RecordBatch, values: NDArray[np.float64]) -> None:
        if not len(values):
            return
        predictions = float(self.base_values[0]) + values.sum(axis=1)
        high, low = int(predictions.argmax()), int(predictions.argmin())
        if self.highest is None or predictions[high] > self.highest.prediction:
            self.highest = self._row(batch, values, predictions, high)
        if self.lowest is None or predictions[low] < self.lowest.prediction:
            self.lowest = self._row(batch, values, predictions, low)

    def _row(
        self, batch: pa.RecordBatch, values: NDArray[np.float64], predictions: NDArray[np.float64], row: int
    ) -> ExtremeRow:
        number = self.n_rows + row
        named = [name for name in (*self._keys, self._time) if name is not None]
        keys = ", ".join(f"{name} {batch.column(name)[row].as_py()}" for name in dict.fromkeys(named))
        place = f"row {number + 1:,}" + (f" ({keys})" if keys else "")
        return ExtremeRow(number, place, values[row].copy(), float(predictions[row]))


def _increasing(times: list[Any]) -> NDArray[Any] | None:
    """Times as an array if each is later than the one before."""
    if not times or any(time is None for time in times):
        return None
    plain = np.asarray(times)
    try:
        increases = all(after > before for before, after in pairwise(times))
    except TypeError:
        return None
    return plain if increases and plain.dtype.kind in "iufO" else None


def _as_array(column: pa.ChunkedArray) -> NDArray[Any]:
    kind = column.type
    if pa.types.is_boolean(kind):
        return np.asarray(column.cast(pa.string()).to_pylist(), dtype=object)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return np.asarray(column.cast(pa.float64(), safe=False))
    return np.asarray(column.to_pylist(), dtype=object)
