"""Ray datasets, cut by row number: the tables of a range are objects in Ray's store, which its nodes share."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from scne.passes._cluster_files import HeldFrame
from scne.passes._engine import range_rows
from scne.passes._ray import RayCluster
from scne.rows import DataError

if TYPE_CHECKING:
    import pyarrow as pa
    from ray.data import Dataset


def held_ray_dataset(dataset: "Dataset", targets: Sequence[str]) -> HeldFrame:
    """Have Ray compute a dataset once, in order, and cut it into ranges of the rows that have their targets.

    Blocks are objects of the store: one that was lost with its node is computed again, by Ray.
    """
    import ray

    names = list(targets)
    options = dataset.context.execution_options
    before, options.preserve_order = options.preserve_order, True
    try:
        blocks = dataset.materialize().to_arrow_refs()
    finally:
        options.preserve_order = before
    facts_of = ray.remote(_facts)
    facts = ray.get([facts_of.remote(block, names) for block in blocks])
    n_rows = sum(n for _, n, _ in facts)
    if not n_rows:
        raise DataError("The Ray dataset holds no row with a target; there is none to use.")
    length = range_rows(n_rows)
    ranges: list[list[Any]] = [[] for _ in range(0, n_rows, length)]
    slice_of = ray.remote(_slice)
    ends = [0, *accumulate(n for _, n, _ in facts)]
    for block, (first, last) in zip(blocks, pairwise(ends), strict=True):
        for number in range(first // length, -(-last // length) if last > first else 0):
            start, stop = max(first, number * length), min(last, (number + 1) * length)
            # Copies: a task gets no more than its range, wherever the block lies.
            ranges[number].append(slice_of.remote(block, names, start - first, stop - start))
    (schema, *_) = (schema for _, n, schema in facts if n)
    return HeldFrame(RayCluster(tuple(map(tuple, ranges))), schema, n_rows, sum(n for n, _, _ in facts) - n_rows)


def _facts(block: "pa.Table", targets: list[str]) -> tuple[int, int, "pa.Schema"]:
    """Rows, those with their targets, and the columns."""
    return block.num_rows, _complete(block, targets).num_rows, block.schema.remove_metadata()


def _slice(block: "pa.Table", targets: list[str], start: int, n_rows: int) -> "pa.Table":
    import pyarrow as pa

    rows = _complete(block, targets).slice(start, n_rows)
    return pa.table([pa.concat_arrays(column.chunks) for column in rows.columns], names=rows.column_names)


def _complete(block: "pa.Table", targets: list[str]) -> "pa.Table":
    import numpy as np
    import pyarrow as pa

    from scne.rows import has_targets

    if not block.num_rows:
        return block
    there = np.concatenate([has_targets(batch, targets) for batch in block.select(targets).to_batches()])
    return block if there.all() else block.filter(pa.array(there))
