"""Labels of classes and the weights of their rows, checked."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, column_or_1d

from scne.estimators.inputs._types import ClassWeight
from scne.estimators.inputs._weight_scale import scaled_weights
from scne.fitting import HeldOutOutputs
from scne.rows import Array, like, namespace_of, to_numpy


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


def coded_labels(estimator: BaseEstimator, y: Array | None) -> tuple[np.ndarray, NDArray[np.intp]]:
    """The classes in order, and for each row the place of its class among them."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")
    labels = column_or_1d(y, warn=True)
    refuse_missing("y", labels)
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise ValueError(
            "y mixes labels that cannot be put in order, such as text and numbers; use one kind."
        ) from error
    check_classification_targets(labels)
    if len(classes) < 2:
        found = f"holds one class only, {classes.tolist()[0]!r}" if len(classes) else "holds no label"
        raise ValueError(f"y {found}; a classifier needs rows of at least two classes.")
    return classes, codes


def codes_of(classes: np.ndarray, y_val: Array | None) -> NDArray[np.intp]:
    labels = column_or_1d(y_val, warn=True)
    refuse_missing("y_val", labels)
    unknown = np.setdiff1d(labels, classes)
    if len(unknown):
        raise ValueError(f"y_val holds the label {unknown.tolist()[0]!r}, which y does not.")
    return np.asarray(np.searchsorted(classes, labels))


def refuse_missing(name: str, labels: np.ndarray) -> None:
    if labels.dtype.kind in "biuSU":
        # These have no way to say that one is missing.
        return
    if labels.dtype.kind == "f":
        missing = ~np.isfinite(labels)
    else:
        # NaN is not equal to itself.
        missing = np.array([label is None or label != label for label in labels.tolist()], dtype=bool)
    if missing.any():
        raise ValueError(
            f"Input {name} contains NaN, infinity or None in {int(missing.sum())} of its {len(labels)} rows, first at "
            f"row {int(missing.argmax())}; every row needs a label: leave the others out with "
            f"mask = pandas.notna({name}), and pass the rows of that mask."
        )


def row_weights(
    class_weight: ClassWeight, classes: np.ndarray, codes: NDArray[np.intp], sample_weight: Array | None
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """The weight of each class, shape (K,), and of each row; None when every row counts as one.

    "balanced" counts rows by their weights, so that here too a row of weight 2 is two rows. Weights of classes keep the
    sum of all weights: they say what classes are worth beside each other, not how many rows there are, by which
    ridges and the prior of the probabilities are measured.
    """
    given = sample_weight
    if given is not None:
        # Before weights of classes: products of both would look like other ratios.
        held = np.asarray(given)
        given = _check_sample_weight(given, codes, dtype=np.float64, ensure_non_negative=True)
        given = scaled_weights(given.astype(held.dtype) if held.dtype.kind == "f" else given).values
    if class_weight is None:
        return np.ones(len(classes)), given
    counted = np.ones(len(codes)) if given is None else given
    totals = np.bincount(codes, counted, len(classes))
    if isinstance(class_weight, str) and class_weight == "balanced":
        each = 1.0 / np.where(totals > 0, totals, np.inf)
    elif isinstance(class_weight, dict):
        each = weights_by_label(class_weight, classes)
    else:
        raise ValueError(
            f"class_weight is {class_weight!r}, but it must be None, 'balanced' or a dict of labels and weights."
        )
    if totals @ each > 0:
        each = each * (totals.sum() / (totals @ each))
    return each, counted * each[codes]


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


def held_out_codes(judged: HeldOutOutputs) -> NDArray[np.intp]:
    assert judged.rows.targets is not None
    targets = to_numpy(judged.rows.targets)
    # A trend that was taken off and added again leaves targets with rounding errors.
    return (targets[:, 0] > 0).astype(np.intp) if targets.shape[1] == 1 else targets.argmax(axis=1)


def in_proportion(
    held_codes: NDArray[np.intp], held_weights: np.ndarray | None, codes: NDArray[np.intp], weights: np.ndarray | None
) -> NDArray[np.float64]:
    """Weights of held-out rows with which every class has the share that it has among all rows; their sum stays.

    How often a class comes is known from all rows far better than from the few that were held out, and their luck
    would go into the biases.

    Examples
    --------
    >>> in_proportion(np.array([0, 0, 0, 1]), None, np.array([0, 1, 0, 1]), None).round(2).tolist()
    [0.67, 0.67, 0.67, 2.0]
    """
    counted = np.ones(len(held_codes)) if held_weights is None else held_weights
    among_all = np.bincount(codes, weights)
    among_held = np.bincount(held_codes, counted, len(among_all))
    raised = counted * (among_all / np.where(among_held > 0, among_held, 1.0))[held_codes]
    return raised * (counted.sum() / raised.sum()) if raised.any() else counted
