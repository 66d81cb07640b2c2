"""Labels of classes and the weights of their rows, checked."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, column_or_1d

from scne.estimators.inputs._types import ClassWeight
from scne.estimators.inputs._weight_scale import SettledWeights, scaled_weights
from scne.passes import stripe_rows
from scne.rows import Array, WeightScale, is_foreign, like, namespace_of, to_numpy


def labels_like(classes: np.ndarray, places: Array) -> Array:
    """The classes at the places of a tensor: a tensor beside it where one can hold them, else NumPy's array.

    Examples
    --------
    >>> from array_api_strict import asarray
    >>> labels_like(np.array([5, 7]), asarray([1, 0, 1]))
    Array([7, 5, 7], dtype=array_api_strict.int64)
    >>> labels_like(np.array(["a", "b"]), asarray([1, 0, 1]))
    array(['b', 'a', 'b'], dtype='<U1')
    """
    xp = namespace_of(places)
    if classes.dtype == np.bool_:
        held = xp.bool
    elif classes.dtype.kind in "iu" and np.can_cast(classes.dtype, np.int64):
        held = xp.int64
    elif classes.dtype.kind == "f":
        held = xp.float64
    else:
        return classes[to_numpy(places)]
    return xp.take(like(classes, places, held), places, axis=0)


def coded_labels(
    estimator: BaseEstimator, y: Array | None, stated: Array | None = None
) -> tuple[np.ndarray, NDArray[np.intp]]:
    """The classes in order, those that were `stated` or those of y, and for each row the place of its class."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")
    labels = column_or_1d(_whole(y), warn=True)
    refuse_missing("y", labels)
    if stated is not None:
        classes = stated_classes(stated)
        return classes, codes_of(classes, labels, "y", "classes")
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise ValueError(
            "y mixes labels that cannot be put in order, such as text and numbers; use one kind."
        ) from error
    check_classification_targets(labels)
    if len(classes) < 2:
        raise ValueError(f"y {few_classes(classes)}; a classifier needs rows of at least two classes.")
    return classes, codes


def _whole(y: Array) -> Any:
    """Labels as they are; whole numbers of pandas' types with gaps, of which none is there, are not made floats."""
    plain = getattr(getattr(y, "dtype", None), "numpy_dtype", None)
    if plain is None or plain.kind not in "biu" or y.isna().any():
        return y
    return y.to_numpy(dtype=plain)


def few_classes(classes: np.ndarray) -> str:
    """Words on too few classes."""
    return f"holds one class only, {classes.tolist()[0]!r}" if len(classes) else "holds no label"


def stated_classes(classes: Array) -> np.ndarray:
    """Classes that a user states, in order."""
    labels = column_or_1d(to_numpy(classes) if is_foreign(classes) else classes, warn=True)
    refuse_missing("classes", labels)
    try:
        ordered = np.unique(labels)
    except TypeError as error:
        raise ValueError("classes mixes labels that cannot be put in order; use one kind.") from error
    if len(ordered) < 2:
        raise ValueError(f"classes {few_classes(ordered)}; a classifier needs at least two.")
    return ordered


def codes_of(classes: np.ndarray, y: Array | None, name: str, known: str = "y") -> NDArray[np.intp]:
    """The place of each label among classes that are known."""
    labels = column_or_1d(_whole(y), warn=True)
    refuse_missing(name, labels)
    try:
        unknown = np.setdiff1d(labels, classes)
        places = np.asarray(np.searchsorted(classes, labels))
    except TypeError as error:
        raise ValueError(f"{name} holds labels of another kind than the classes {classes.tolist()[:20]}.") from error
    if len(unknown):
        raise ValueError(f"{name} holds the label {unknown.tolist()[0]!r}, which {known} does not.")
    return places


def refuse_missing(name: str, labels: np.ndarray) -> None:
    """Raise where a label is missing."""
    missing = missing_labels(labels)
    if missing.any():
        raise ValueError(missing_sentence(name, int(missing.sum()), len(labels), int(missing.argmax())))


def missing_labels(labels: np.ndarray) -> NDArray[np.bool_]:
    """Where labels are missing, shape (n,)."""
    if labels.dtype.kind in "biuSU":
        # These have no way to say that one is missing.
        return np.zeros(len(labels), dtype=bool)
    if labels.dtype.kind == "f":
        return np.asarray(~np.isfinite(labels))
    return np.array([_is_missing(label) for label in labels.tolist()], dtype=bool)


def _is_missing(label: object) -> bool:
    # NaN is not equal to itself, and what pandas has for it cannot be compared.
    return label is None or type(label).__name__ == "NAType" or bool(label != label)


def missing_sentence(name: str, n_missing: int, n_rows: int, row: int) -> str:
    """What is wrong with labels of which some are missing."""
    return (
        f"Input {name} contains NaN, infinity or None in {n_missing} of its {n_rows} rows, first at row {row}; every "
        f"row needs a label: leave the others out with mask = pandas.notna({name}), and pass the rows of that mask."
    )


class RowWeights(NamedTuple):
    """What rows count, and what those of each class count together.

    Attributes
    ----------
    values : ndarray of shape (n,) or None
        None when every row counts as one.
    by_class : ndarray of shape (K,) or None
        What a row of each class counts beside its own weight; None is 1.
    totals : ndarray of shape (K,)
    scale : WeightScale or None
        How the rows' own weights became numbers of rows; None without any.
    """

    values: NDArray[np.float64] | None
    by_class: NDArray[np.float64] | None
    totals: NDArray[np.float64]
    scale: WeightScale | None

    @property
    def settled(self) -> SettledWeights | None:
        """As the regressor's door takes them."""
        return None if self.values is None else SettledWeights(self.values, self.scale)


# Weights of classes from the totals (K,) of the rows' own weights; None is 1 for each.
ClassWeighting = Callable[[NDArray[np.float64]], NDArray[np.float64] | None]


def row_weights(
    weighting: ClassWeighting,
    n_classes: int,
    codes: NDArray[np.intp],
    sample_weight: Array | None,
    known: WeightScale | None = None,
) -> RowWeights:
    """The weights of rows in memory, by a scale that is known or by their own."""
    given, scale = None, None
    if sample_weight is not None:
        # Before weights of classes: products of both would look like other ratios.
        held = np.asarray(sample_weight)
        weights = _check_sample_weight(sample_weight, codes, dtype=np.float64, ensure_non_negative=True)
        scaled = scaled_weights(weights.astype(held.dtype) if held.dtype.kind == "f" else weights, known)
        given, scale = scaled.values, scaled.scale
    totals = class_totals(codes, given, n_classes)
    by_class = weighting(totals)
    if by_class is None:
        return RowWeights(given, None, totals, scale)
    values = by_class[codes] if given is None else given * by_class[codes]
    return RowWeights(values, by_class, totals * by_class, scale)


def class_totals(codes: NDArray[np.intp], weights: NDArray[np.float64] | None, n_classes: int) -> NDArray[np.float64]:
    """What the rows of each class count together, shape (K,): added by the stripes that files are read in.

    Examples
    --------
    >>> class_totals(np.array([0, 1, 1]), None, 3)
    array([1., 2., 0.])
    """
    step, totals = stripe_rows(len(codes)), np.zeros(n_classes)
    for start in range(0, len(codes), step):
        rows = slice(start, start + step)
        totals += np.bincount(codes[rows], None if weights is None else weights[rows], n_classes)
    return totals


def class_weighting(class_weight: ClassWeight, classes: np.ndarray) -> ClassWeighting:
    """How `class_weight` makes weights of classes.

    "balanced" counts rows by their weights, so that here too a row of weight 2 is two rows. Weights of classes keep the
    sum of all weights: they say what classes are worth beside each other, not how many rows there are, by which
    ridges and the prior of the probabilities are measured.

    Examples
    --------
    >>> class_weighting("balanced", np.array([0, 1]))(np.array([1.0, 3.0]))
    array([2.        , 0.66666667])
    """
    balanced = isinstance(class_weight, str) and class_weight == "balanced"
    if not (class_weight is None or balanced or isinstance(class_weight, dict)):
        raise ValueError(
            f"class_weight is {class_weight!r}, but it must be None, 'balanced' or a dict of labels and weights."
        )

    def weights(totals: NDArray[np.float64]) -> NDArray[np.float64] | None:
        if class_weight is None:
            return None
        if isinstance(class_weight, dict):
            each = weights_by_label(class_weight, classes)
        else:
            each = 1.0 / np.where(totals > 0, totals, np.inf)
        return each * (totals.sum() / (totals @ each)) if totals @ each > 0 else each

    return weights


def weights_by_label(class_weight: dict[Any, Any], classes: np.ndarray) -> NDArray[np.float64]:
    labels = classes.tolist()
    unknown = [label for label in class_weight if label not in labels]
    # In a fold that lacks a class, a weight for it does no harm; beside a class without weight it is a slip.
    if unknown and any(label not in class_weight for label in labels):
        raise ValueError(f"class_weight has a weight for {unknown[0]!r}, which is not a class of y: {labels[:20]}.")
    each = np.array([float(class_weight.get(label, 1.0)) for label in labels])
    if not (np.isfinite(each) & (each >= 0)).all() or not each.any():
        raise ValueError(f"class_weight is {class_weight!r}, but weights must be finite, none negative, not all zero.")
    return each


def in_proportion(
    held_codes: NDArray[np.intp], held_weights: np.ndarray | None, totals: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Weights of held-out rows with which every class has the share that it has among all rows; their sum stays.

    How often a class comes is known from all rows, by their `totals` (K,), far better than from the few that were held
    out, and their luck would go into the biases.

    Examples
    --------
    >>> in_proportion(np.array([0, 0, 0, 1]), None, np.array([2.0, 2.0])).round(2).tolist()
    [0.67, 0.67, 0.67, 2.0]
    """
    counted = np.ones(len(held_codes)) if held_weights is None else held_weights
    among_held = np.bincount(held_codes, counted, len(totals))
    raised = counted * (totals / np.where(among_held > 0, among_held, 1.0))[held_codes]
    return raised * (counted.sum() / raised.sum()) if raised.any() else counted
