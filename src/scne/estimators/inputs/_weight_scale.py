"""Row weights at the door: every kind of rows gets weights that say how many rows each row counts as."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from scne.passes import Cluster, DaskCluster, announce, column_rows, stripe_rows
from scne.rows import UNIT_SCALE, Array, WeightFacts, WeightScale, check_weight_size, learn_weight_scale, weight_facts

if TYPE_CHECKING:
    from scne.rows import FileRows

_STAGE = "reading weights"
Result = TypeVar("Result")


@dataclass(frozen=True)
class SettledWeights:
    """Weights that are numbers of rows already, and are taken as they are.

    `values` (n,) are NumPy's or a Dask array; `scale` says how a user's weights became them, if there were any.
    """

    values: Any
    scale: WeightScale | None = None


@dataclass(frozen=True)
class ScaledWeights:
    """Weights of rows in memory as numbers of rows, and the scale that made them so.

    `values` is None when every row counts as one, so that equal weights take the way of no weights, to the last bit.
    """

    values: NDArray[np.float64] | None
    scale: WeightScale


def scaled_weights(weights: np.ndarray, known: WeightScale | None = None) -> ScaledWeights:
    """Weights that were checked as numbers of rows, by a scale that is known or by their own.

    Examples
    --------
    >>> scaled_weights(np.array([0.25, 0.5])).values
    array([1., 2.])
    >>> scaled_weights(np.array([0.25, 0.5]), UNIT_SCALE).values
    array([0.25, 0.5 ])
    """
    facts = weight_facts(weights)
    check_weight_size(facts, "sample_weight")
    scale = learn_weight_scale(facts) if known is None else known
    return ScaledWeights(None if _all_ones(facts, scale, len(weights)) else scale.apply(weights), scale)


def _all_ones(facts: WeightFacts, scale: WeightScale, n_rows: int) -> bool:
    ends = scale.apply(np.array([facts.smallest, facts.largest]))
    return facts.n_rows == n_rows and bool((ends == 1.0).all())


def scaled_collection(
    weights: Array, dtype: Any, cluster: DaskCluster, known: WeightScale | None
) -> tuple[Any | None, WeightScale]:
    """A Dask array of weights in chunks as numbers of rows, or None where all are 1, and their scale.

    It takes one pass over the weights. Values that are no weights stay what they are, for the pass that names their
    place.
    """
    import dask

    facts = [dask.delayed(_facts_of_usable)(block, dtype) for block in weights.to_delayed().ravel()]
    parts = cluster.computed(facts)
    together = reduce(WeightFacts.combined, parts)
    if not together.n_rows:
        return weights, known or UNIT_SCALE
    check_weight_size(together, "sample_weight")
    scale = known or learn_weight_scale(together)
    if _all_ones(together, scale, weights.shape[0]):
        return None, scale
    return weights.map_blocks(scale.apply, dtype=np.float64), scale


def _facts_of_usable(weights: np.ndarray, dtype: Any) -> WeightFacts:
    return weight_facts(weights[np.isfinite(weights)].astype(dtype))


def scaled_files(files: "FileRows", cluster: Cluster | None = None, known: WeightScale | None = None) -> "FileRows":
    """Files whose weights are read as numbers of rows, after a pass over that column alone; others as they are."""
    if files.weight_name is None or files.labels is not None:
        # Weights beside labels have been scaled, and count their classes.
        return files
    if known is not None:
        return files.with_weights(known)
    facts = reduce(WeightFacts.combined, _facts_of_files(files, cluster))
    check_weight_size(facts, f"The weight column {files.weight_name!r} of {files.path}")
    scale = learn_weight_scale(facts)
    return files.with_weights(scale, all_ones=_all_ones(facts, scale, files.count_rows()))


def _facts_of_files(files: "FileRows", cluster: Cluster | None) -> Iterator[WeightFacts]:
    assert files.weight_name is not None
    yield from column_results(files, [files.weight_name], _facts_of_batch, _STAGE, cluster)


def column_results(
    files: "FileRows", columns: list[str], work: Callable[[Any], Result], stage: str, cluster: Cluster | None
) -> Iterator[Result]:
    """What `work` makes of some columns of each stripe, in order, in a pass by this process or by workers."""
    if cluster is None:
        n_rows = files.count_rows()
        step = stripe_rows(n_rows)
        for done, batch in enumerate(files.batches(columns, rows=step), start=1):
            announce(stage, done, -(-n_rows // step), n_rows)
            yield work(batch)
        return
    rows = column_rows(files, columns, cluster)
    for _, results in rows.run(lambda batches: [work(batch) for batch in batches], rows.partitions, stage):
        yield from results


def _facts_of_batch(batch: Array) -> WeightFacts:
    weights = batch.column(0).to_numpy(zero_copy_only=False)
    return weight_facts(weights if weights.dtype.kind == "f" else weights.astype(np.float64))
