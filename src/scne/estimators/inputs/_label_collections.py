"""Labels in Dask collections: counted where they lie, and made indicators of classes there."""

from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from scne.estimators.inputs._dask import aligned, blocks, is_dask_frame, weight_type
from scne.estimators.inputs._data import GivenRows
from scne.estimators.inputs._labelled import KnownClasses, LabelledRows
from scne.estimators.inputs._labels import (
    ClassWeighting,
    codes_of,
    few_classes,
    missing_labels,
    missing_sentence,
    stated_classes,
)
from scne.estimators.inputs._weight_scale import SettledWeights, scaled_collection
from scne.passes import DaskCluster, check_client
from scne.rows import Array, WeightScale, one_hot


def labelled_collections(
    given: GivenRows, weighting: Callable[[np.ndarray], ClassWeighting], stated: Array | None
) -> LabelledRows:
    """Rows of a first fit; see `labelled_rows`."""
    cluster = check_client(given.client)
    labels = _looked_through(given.y, cluster)
    classes = labels.different if stated is None else stated_classes(stated)
    if stated is not None:
        codes_of(classes, labels.different, "y", "classes")
    if len(classes) < 2:
        raise ValueError(f"y {few_classes(classes)}; a classifier needs rows of at least two classes.")
    made = _made(labels, given.sample_weight, classes, weighting(classes), None, cluster)
    validation = None if given.y_val is None else one_hot(codes_of(classes, given.y_val, "y_val"), len(classes))
    rows = replace(given, y=made.targets, sample_weight=made.weights, y_val=validation)
    return LabelledRows(rows, classes, made.by_class, made.totals)


def later_collections(given: GivenRows, known: KnownClasses) -> GivenRows:
    """Rows that come to a fitted classifier; see `later_labelled_rows`."""
    cluster = check_client(given.client)
    labels = _looked_through(given.y, cluster)
    codes_of(known.classes, labels.different, "y", "the fit")
    made = _made(labels, given.sample_weight, known.classes, lambda _: known.by_class, known.weight_scale, cluster)
    return replace(given, y=made.targets, sample_weight=made.weights)


class _Labels(NamedTuple):
    """Labels of a collection: its pieces that are not empty, their lengths, and the different labels."""

    pieces: list[Any]
    lengths: list[int]
    different: np.ndarray


class _Look(NamedTuple):
    """What one piece holds."""

    n_rows: int
    different: np.ndarray
    n_missing: int
    first_missing: int


def _looked_through(y: Array, cluster: DaskCluster) -> _Labels:
    import dask

    pieces = list(y.to_delayed()) if is_dask_frame(y) else blocks(y)
    looks: list[_Look] = list(cluster.computed([dask.delayed(_look)(piece) for piece in pieces]))
    n_rows, n_missing = sum(look.n_rows for look in looks), sum(look.n_missing for look in looks)
    if n_missing:
        starts = accumulate((look.n_rows for look in looks), initial=0)
        row = next(start + look.first_missing for start, look in zip(starts, looks, strict=False) if look.n_missing)
        raise ValueError(missing_sentence("y", n_missing, n_rows, row))
    there = [(piece, look) for piece, look in zip(pieces, looks, strict=True) if look.n_rows]
    if not there:
        raise ValueError("y holds no label; a classifier needs rows of at least two classes.")
    try:
        different = np.unique(np.concatenate([look.different for _, look in there]))
    except TypeError as error:
        raise ValueError(
            "y mixes labels that cannot be put in order, such as text and numbers; use one kind."
        ) from error
    check_classification_targets(different)
    return _Labels([piece for piece, _ in there], [look.n_rows for _, look in there], different)


def _look(piece: Array) -> _Look:
    labels = column_or_1d(np.asarray(piece))
    missing = missing_labels(labels)
    if missing.any():
        return _Look(len(labels), labels[:0], int(missing.sum()), int(missing.argmax()))
    return _Look(len(labels), np.unique(labels), 0, 0)


class _Made(NamedTuple):
    targets: Any
    weights: SettledWeights | None
    by_class: NDArray[np.float64] | None
    totals: NDArray[np.float64]


def _made(
    labels: _Labels,
    sample_weight: Array | None,
    classes: np.ndarray,
    weighting: ClassWeighting,
    known: WeightScale | None,
    cluster: DaskCluster,
) -> _Made:
    """Indicators and weights as Dask arrays, cut like the labels."""
    import dask
    import dask.array as da

    K = len(classes)
    codes = da.concatenate(
        [
            da.from_delayed(dask.delayed(_codes)(piece, classes), (length,), dtype=np.intp)
            for piece, length in zip(labels.pieces, labels.lengths, strict=True)
        ]
    )
    targets = (
        codes.map_blocks(one_hot, n_classes=K, dtype=np.float64)
        if K == 2
        else codes.map_blocks(one_hot, n_classes=K, dtype=np.float64, chunks=(*codes.chunks, (K,)), new_axis=1)
    )
    weights, scale = None, None
    if sample_weight is not None:
        ends = list(accumulate(labels.lengths))
        weights = aligned("sample_weight", sample_weight, ends[-1], ends, cluster)
        weights, scale = scaled_collection(weights, weight_type(sample_weight), cluster, known)
    parts = zip(blocks(codes), [None] * len(labels.pieces) if weights is None else blocks(weights), strict=True)
    counts = cluster.computed([dask.delayed(np.bincount)(places, counted, K) for places, counted in parts])
    totals: NDArray[np.float64] = np.array(list(counts), dtype=np.float64).sum(axis=0)
    by_class = weighting(totals)
    if by_class is not None:
        weights = da.map_blocks(_weighted, codes, *([] if weights is None else [weights]), each=by_class, dtype=float)
        totals = totals * by_class
    return _Made(targets, None if weights is None else SettledWeights(weights, scale), by_class, totals)


def _codes(piece: Array, classes: np.ndarray) -> NDArray[np.intp]:
    return codes_of(classes, column_or_1d(np.asarray(piece)), "y")


def _weighted(
    codes: NDArray[np.intp], weights: NDArray[np.float64] | None = None, *, each: NDArray[np.float64]
) -> NDArray[np.float64]:
    return each[codes] if weights is None else weights * each[codes]
