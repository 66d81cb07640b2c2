"""Rows where an engine runs: on a device whole, or stripe by stripe."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from scne.fitting._training import TrainingData
from scne.passes import ClusterRows, DeviceEngine, Engine, is_out_of_memory, uploaded
from scne.rows import ArrayRows, RowBlock, RowsOf, RowSource


def placed(data: TrainingData, engine: Engine) -> TrainingData:
    """Training rows where the engine runs: resident where they fit, else brought there stripe by stripe."""
    if not isinstance(engine, DeviceEngine):
        return data
    if isinstance(data.rows, ClusterRows):
        raise ValueError("device is set, but the rows are on a cluster, which works on processors; leave it out.")
    rows: RowSource = StreamedRows(data.rows, engine)
    if isinstance(data.rows, ArrayRows):
        rows = engine.placed(data.rows) or rows
    search: ArrayRows | None = rows if data.search is data.rows and isinstance(rows, ArrayRows) else None
    search = search or engine.placed(data.search)
    if search is None:
        raise ValueError(_too_large(data.search, engine.free_bytes()))
    validation = None if data.validation is None else engine.placed(data.validation)
    if validation is None and data.validation is not None:
        raise ValueError(
            f"The {data.validation.n_rows:,} rows of X_val do not fit the memory of the device; about "
            f"{_fitting(data.validation, engine.free_bytes()):,} would: pass fewer, or use device='cpu'."
        )
    return replace(data, rows=rows, search=search, validation=validation)


def too_large_after_all(data: TrainingData, engine: Engine, error: BaseException) -> BaseException:
    """The error of rows that do not fit, for a device that ran out of memory in a search on rows that did."""
    if not (isinstance(engine, DeviceEngine) and is_out_of_memory(error)):
        return error
    # What the rows take themselves is free for fewer of them; half of it, as they are scaled beside themselves.
    resident = 8 * data.search.n_rows * (data.search.n_columns + 2)
    return ValueError(_too_large(data.search, (engine.free_bytes() + resident) // 2))


def _too_large(rows: ArrayRows, free: int) -> str:
    fitting = _fitting(rows, free)
    return (
        f"The {rows.n_rows:,} rows of the search do not fit the memory of the device; about {fitting:,} would: set "
        f"search_rows={fitting} in the SCNRegressor, or use device='cpu'."
    )


def _fitting(rows: ArrayRows, free: int) -> int:
    return free // (16 * (rows.n_columns + 2))


@dataclass(frozen=True)
class StreamedRows(RowsOf):
    """Rows that are brought to a device stripe by stripe, the next one while the present one is worked on."""

    engine: DeviceEngine

    def stripes(self, rows: int) -> Iterator[RowBlock]:
        """Blocks of arrays on the device."""
        return uploaded(iter(self.source.stripes(rows)), self.engine)
