"""Dask arrays and data frames at the door: how they become rows on a cluster, and lazy predictions."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from scne.estimators.inputs._data import GivenRows, check_target, is_dask_collection, validation_rows
from scne.estimators.inputs._refusals import gap_sentence
from scne.estimators.inputs._types import FitColumns
from scne.estimators.inputs._weight_scale import SettledWeights, scaled_collection
from scne.fitting import BlockStatistics, TrainingData, block_statistics, combined_statistics, refuse_unfit_arrays
from scne.passes import (
    ClusterRows,
    DaskCluster,
    Partition,
    aligned_ends,
    array_stripes,
    check_client,
)
from scne.rows import MOST, Array, ArrayRows, RowBlock, WeightScale, stacked

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True)
class LookedThrough:
    """What the first pass over Dask collections finds.

    Attributes
    ----------
    rows : ClusterRows
    sample : ArrayRows
        The rows of the search, brought to this process.
    statistics : BlockStatistics
    column_names : list of str or None
    flat_target : bool
    weight_scale : WeightScale or None
        How weights became numbers of rows; None without weights.
    """

    rows: ClusterRows
    sample: ArrayRows
    statistics: BlockStatistics
    column_names: list[str] | None
    flat_target: bool
    weight_scale: WeightScale | None


def look_through(
    X: Array,
    y: Array | None,
    sample_weight: Array | None,
    client: "Client | None",
    search_rows: int | None,
    seed: int,
    known_scale: WeightScale | None = None,
) -> LookedThrough:
    """Check all values, learn the columns' statistics and draw the sample, in one pass where the rows lie.

    Weights, which take a pass of their own before it, become numbers of rows by `known_scale` or by their own scale.
    """
    from scne.rows import sample_positions

    cluster = check_client(client)
    names = _frame_columns(X)
    inputs = _as_array("X", X, cluster)
    if inputs.ndim != 2:
        raise ValueError(f"X has {inputs.ndim} dimension(s), but it must have two: rows and columns.")
    if inputs.numblocks[1] > 1:
        raise ValueError(
            f"X is cut into {inputs.numblocks[1]} chunks of columns, but a chunk must hold whole rows; "
            "pass X.rechunk({1: -1})."
        )
    if y is None:
        raise ValueError("y is None, but a fit requires y to be passed: the target of each row.")
    n_rows, n_columns = inputs.shape
    if n_rows < 2:
        raise ValueError(f"X has {n_rows} row(s), but a fit needs at least 2 rows to learn from.")
    ends = aligned_ends(inputs.chunks[0])
    targets = aligned("y", y, n_rows, ends, cluster)
    flat = targets.ndim == 1
    settled = sample_weight if isinstance(sample_weight, SettledWeights) else None
    row_weights = sample_weight if settled is None else settled.values
    weights = None if row_weights is None else aligned("sample_weight", row_weights, n_rows, ends, cluster)
    if targets.ndim > 2:
        raise ValueError(f"y has {targets.ndim} dimensions, but it must have one or two.")
    if weights is not None and weights.ndim != 1:
        raise ValueError(f"sample_weight has {weights.ndim} dimensions, but it must have one.")
    weight_scale = None if settled is None else settled.scale
    if weights is not None and settled is None:
        weights, weight_scale = scaled_collection(weights, weight_type(sample_weight), cluster, known_scale)
    parts = [blocks(_recut(inputs, ends)), blocks(targets[:, None] if flat else targets)]
    parts.append([None] * len(ends) if weights is None else blocks(weights))
    partitions = tuple(
        Partition(start, stop, columns)
        for (start, stop), columns in zip(pairwise([0, *ends]), zip(*parts, strict=True), strict=True)
    )
    rows = ClusterRows(n_rows, n_columns, partitions, array_stripes, cluster)
    positions = sample_positions(n_rows, n_rows if search_rows is None else search_rows, seed)

    def look(stripes: Iterator[RowBlock]) -> tuple[list[_Look], ArrayRows]:
        looks, drawn = [], []
        for block in stripes:
            gaps = _gaps(block)
            # One per stripe: combined by the client in their order they give the bits of a pass in one process.
            looks.append(_Look(gaps, None if gaps else block_statistics(block)[0]))
            first, last = np.searchsorted(positions, [block.start, block.stop])
            here = ArrayRows(block.inputs, block.targets, block.weights)
            drawn.append(here.take(positions[first:last] - block.start))
        return looks, stacked(drawn)

    looks: list[_Look] = []
    drawn: list[ArrayRows] = []
    for _, (seen, taken) in rows.run(look, partitions, "reading columns"):
        looks += seen
        drawn.append(taken)
    _refuse_gaps(looks, n_rows, names)
    statistics = reduce(combined_statistics, (seen.statistics for seen in looks if seen.statistics is not None))
    if statistics[0].weight == 0:
        raise ValueError("sample_weight is zero for every row; at least one row must count (non-zero weight).")
    return LookedThrough(rows, stacked(drawn), statistics, names, flat, weight_scale)


def training_collections(
    estimator: BaseEstimator, given: GivenRows, search_rows: int | None, seed: int
) -> TrainingData:
    """Rows of Dask collections, looked through where they lie, for a fit."""
    for name in ("X_val", "y_val"):
        if is_dask_collection(getattr(given, name)):
            raise TypeError(
                f"{name} is a Dask collection, but validation rows are read in this process; pass {name}.compute()."
            )
    seen = look_through(given.X, given.y, given.sample_weight, given.client, search_rows, seed)
    estimator.n_features_in_ = seen.rows.n_columns
    if seen.column_names is not None:
        estimator.feature_names_in_ = np.array(seen.column_names, dtype=object)
    validation = validation_rows(estimator, given.X_val, given.y_val, seen.sample, FitColumns(None))
    return TrainingData(
        seen.rows,
        seen.sample,
        validation,
        seen.column_names,
        seen.flat_target,
        statistics=seen.statistics,
        weight_scale=seen.weight_scale,
    )


class _Gap(NamedTuple):
    """Values of one argument in one stripe that cannot be used: how many per column, and the first of them."""

    counts: NDArray[np.int64]
    row: int
    column: int
    what: str


class _Look(NamedTuple):
    gaps: dict[str, _Gap]
    statistics: BlockStatistics | None


def _gaps(block: RowBlock) -> dict[str, _Gap]:
    gaps = {}
    weights = None if block.weights is None else block.weights[:, None]
    for name, values in (("X", block.inputs), ("y", block.targets), ("sample_weight", weights)):
        if values is None:
            continue
        unfit = ~np.isfinite(values)
        if name == "y":
            unfit |= np.abs(values) > MOST
        if name == "sample_weight":
            unfit |= values < 0
        if unfit.any():
            row, column = np.argwhere(unfit)[0]
            value = values[row, column]
            what = "NaN" if np.isnan(value) else "infinity (inf)" if np.isinf(value) else "negative values"
            if name == "y" and np.isfinite(value):
                what = f"numbers beyond {MOST:g}, whose squares overflow (rescale y),"
            gaps[name] = _Gap(unfit.sum(axis=0), block.start + int(row), int(column), what)
    return gaps


def _refuse_gaps(looks: list[_Look], n_rows: int, names: list[str] | None) -> None:
    for argument in ("X", "y", "sample_weight"):
        gaps = [look.gaps[argument] for look in looks if argument in look.gaps]
        if gaps:
            first = gaps[0]
            count = int(sum(gap.counts[first.column] for gap in gaps))
            column_names = names if argument == "X" else None
            words = gap_sentence(argument, first.what, first.column, column_names, count, n_rows, first.row)
            if argument == "X" and first.what == "NaN":
                words = (
                    f"{words[:-1]}, or write the rows to Parquet and open that with scne.open_rows, which takes gaps."
                )
            raise ValueError(words)


def is_dask_frame(X: Array) -> bool:
    """Whether a Dask collection is a data frame or a series."""
    return hasattr(X, "map_partitions") and hasattr(X, "to_delayed") and hasattr(X, "dtypes")


def _frame_columns(X: Array) -> list[str] | None:
    """Names of a frame's columns, when all of them are text as scikit-learn wants them; its columns must be numbers."""
    if not is_dask_frame(X) or X.ndim != 2:
        return None
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    for name, kind in X.dtypes.items():
        if not (is_numeric_dtype(kind) or is_bool_dtype(kind)):
            raise ValueError(
                f"Column {str(name)!r} of X holds text, dates or objects, and a Dask frame must hold numbers; write it "
                "to Parquet and open that with scne.open_rows, which reads such columns, or leave the column out."
            )
    names = list(X.columns)
    return names if all(isinstance(name, str) for name in names) else None


def _as_array(name: str, values: Array, cluster: DaskCluster) -> Any:
    """A Dask array of floats, with chunks of known length, of a Dask array, frame or series."""
    import dask.array as da

    if isinstance(values, da.Array):
        if isinstance(values._meta, np.ma.MaskedArray):
            raise ValueError(
                f"{name} is a Dask array of masked arrays, and what lies under a mask is no value; drop these rows, or "
                f"fill the gaps first (dask.array.ma.filled({name}, ...))."
            )
        if values.dtype.kind not in "biuf":
            raise ValueError(f"{name} holds values of type {values.dtype}, but it must hold numbers.")
        if not np.isnan(values.shape[0]):
            return values.astype(_float_type([values.dtype]), copy=False)
        pieces, dtype, widths = values.to_delayed(), _float_type([values.dtype]), values.shape[1:]
        if pieces.size != len(pieces):
            raise ValueError(f"{name} has chunks of unknown length and of some columns; call {name}.rechunk first.")
        pieces = list(pieces.ravel())
    elif is_dask_frame(values):
        kinds = list(values.dtypes) if values.ndim == 2 else [values.dtype]
        if any(getattr(kind, "kind", "O") not in "biuf" for kind in kinds):
            raise ValueError(f"{name} holds values that are no numbers: its types are {[str(k) for k in kinds]}.")
        pieces, dtype = values.to_delayed(), _float_type(kinds)
        widths = (len(kinds),) if values.ndim == 2 else ()
    else:
        raise TypeError(f"{name} is a {type(values).__name__}, but it must be a Dask array or data frame.")
    return _of_known_length(pieces, dtype, widths, cluster)


def _of_known_length(pieces: list[Any], dtype: Any, widths: tuple[int, ...], cluster: DaskCluster) -> Any:
    import dask
    import dask.array as da

    arrays = [dask.delayed(np.asarray)(piece, dtype=dtype) for piece in pieces]
    counts = [dask.delayed(len)(piece) for piece in pieces]
    lengths = list(cluster.computed(counts))
    filled = [
        da.from_delayed(array, (length, *widths), dtype=dtype)
        for array, length in zip(arrays, lengths, strict=True)
        if length
    ]
    return da.concatenate(filled) if filled else da.zeros((0, *widths), dtype=dtype)


def _float_type(kinds: list[Any]) -> Any:
    # As scikit-learn does for rows in memory: single precision stays, everything else becomes double.
    return np.dtype(np.float32) if all(str(kind).lower() == "float32" for kind in kinds) else np.dtype(np.float64)


def weight_type(sample_weight: Array | None) -> Any:
    """The precision of weights as they were given."""
    return _float_type([getattr(sample_weight, "dtype", np.float64)])


def aligned(name: str, values: Array, n_rows: int, ends: list[int], cluster: DaskCluster) -> Any:
    """Targets or weights in float64, cut like the inputs; small enough to be passed from memory, too."""
    import dask.array as da

    if is_dask_collection(values):
        array = _as_array(name, values, cluster)
    else:
        refuse_unfit_arrays(name, values)
        check_target(name, values)
        held = np.asarray(values, dtype=np.float64)
        array = (
            da.from_array(held, chunks=(tuple(np.diff([0, *ends])), *held.shape[1:])) if _fits(held, n_rows) else held
        )
    if array.ndim == 0 or array.shape[0] != n_rows:
        length = array.shape[0] if array.ndim else 1
        raise ValueError(f"{name} has {length} rows, but X has {n_rows}; they must be equal.")
    return _recut(array.astype(np.float64, copy=False), ends)


def _fits(held: np.ndarray, n_rows: int) -> bool:
    return held.ndim > 0 and len(held) == n_rows


def _recut(array: Array, ends: list[int]) -> Any:
    """Chunks of rows that end where they should.

    By tasks and never by a shuffle: its pieces are not computed again when a worker is lost.
    """
    chunks = (tuple(int(length) for length in np.diff([0, *ends])), *((width,) for width in array.shape[1:]))
    return array if array.chunks == chunks else array.rechunk(chunks, method="tasks")


def blocks(array: Array) -> list[Any]:
    """The chunks of a Dask array, delayed."""
    return list(array.to_delayed().ravel())
