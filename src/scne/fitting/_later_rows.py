"""Rows that come to a model after its fit."""

from collections.abc import Callable
from typing import NamedTuple

from scne.fitting._engines import StreamedRows
from scne.fitting._trend import Trend
from scne.passes import ClusterRows, DeviceEngine, Engine
from scne.rows import ArrayRows, ChangedRows, RowSource, WeightScale


class LaterRows(NamedTuple):
    """Rows that a fitted model can learn from.

    Attributes
    ----------
    rows : RowSource or ClusterRows
    sample : callable
        Gives some of them in memory, as many as were asked for. Those of files are collected while they are read;
        asking for them before that costs a pass.
    weight_scale : WeightScale or None
        How their weights became numbers of rows; None without weights.
    """

    rows: RowSource | ClusterRows
    sample: Callable[[], ArrayRows]
    weight_scale: WeightScale | None


def rows_to_sum(rows: RowSource | ClusterRows, engine: Engine, trend: Trend | None) -> RowSource | ClusterRows:
    """The rows where an engine runs, with what a trend leaves of their targets.

    Parameters
    ----------
    rows : RowSource or ClusterRows
    engine : Engine
    trend : Trend or None
        Taken off the targets.
    """
    if isinstance(rows, ClusterRows):
        if engine.on_device:
            raise ValueError("device is set, but the rows are on a Dask cluster, which works on processors.")
        return rows if trend is None else rows.changed(trend.taken_off)
    placed: RowSource = rows
    if isinstance(engine, DeviceEngine):
        placed = (engine.placed(rows) if isinstance(rows, ArrayRows) else None) or StreamedRows(rows, engine)
    return placed if trend is None else ChangedRows(placed, trend.taken_off)
