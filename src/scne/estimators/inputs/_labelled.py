"""The door of a classifier: labels become indicators of classes, so that a regressor can be fitted to them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from scne.estimators.inputs._complete_files import complete_files
from scne.estimators.inputs._data import GivenRows, is_dask_collection, is_file_rows
from scne.estimators.inputs._files import check_files_alone
from scne.estimators.inputs._labels import ClassWeighting, coded_labels, codes_of, few_classes, row_weights
from scne.estimators.inputs._refusals import refuse_path
from scne.estimators.inputs._weight_scale import column_results, scaled_files
from scne.fitting import refuse_unfit_arrays
from scne.passes import Cluster, cluster_of
from scne.rows import Array, DataError, WeightScale, is_foreign, one_hot, to_numpy

if TYPE_CHECKING:
    from scne.rows import FileRows, Label

# A fit to K classes has K outputs: sums and rows of the search grow with it, and more are mostly a mistake.
MOST_CLASSES = 1_000


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows with indicators of their classes, as a regressor takes them.

    Attributes
    ----------
    given : GivenRows
        The targets are indicators, and the weights, numbers of rows, count the classes.
    classes : ndarray of shape (K,)
    by_class : ndarray of shape (K,) or None
        What a row of each class counts beside its own weight; None is 1.
    totals : ndarray of shape (K,) or None
        What the rows of each class count together; None where nothing had to be counted.
    """

    given: GivenRows
    classes: np.ndarray
    by_class: NDArray[np.float64] | None
    totals: NDArray[np.float64] | None


@dataclass(frozen=True, eq=False)
class KnownClasses:
    """What a fitted classifier knows of later rows.

    Attributes
    ----------
    classes : ndarray of shape (K,)
    by_class : ndarray of shape (K,) or None
    weight_scale : WeightScale or None
        By which weights become numbers of rows; None is by their own ratios.
    column : str or None
        The column of labels, of a fit on files.
    """

    classes: np.ndarray
    by_class: NDArray[np.float64] | None = None
    weight_scale: WeightScale | None = None
    column: str | None = None


def labelled_rows(
    estimator: BaseEstimator,
    given: GivenRows,
    weighting: Callable[[np.ndarray], ClassWeighting],
    stated: Array | None = None,
) -> LabelledRows:
    """Rows of a first fit, whose classes are those that were `stated`, or those that the rows have.

    Parameters
    ----------
    estimator : estimator
        Its name is told in errors.
    weighting : callable
        Says, of classes, how they are weighted.
    stated : array-like or None
    """
    refuse_path(given.X)
    if is_file_rows(given.X):
        return _labelled_files(given, weighting, stated)
    _refuse_mixtures(given)
    if is_dask_collection(given.y):
        from scne.estimators.inputs._label_collections import labelled_collections

        return labelled_collections(given, weighting, stated)
    given = _in_numpy(given)
    classes, codes = coded_labels(estimator, given.y, stated)
    weights = row_weights(weighting(classes), len(classes), codes, given.sample_weight)
    validation = None if given.y_val is None else one_hot(codes_of(classes, given.y_val, "y_val"), len(classes))
    targets = one_hot(codes, len(classes))
    made = replace(given, y=targets, sample_weight=weights.settled, y_val=validation)
    return LabelledRows(made, classes, weights.by_class, weights.totals)


def later_labelled_rows(given: GivenRows, known: KnownClasses) -> GivenRows:
    """Rows that come to a fitted classifier, whose classes may not be others."""
    if is_file_rows(given.X):
        check_files_alone(given)
        check_label_column(given.X, known.column)
        files = scaled_files(complete_files(given.X), known=known.weight_scale)
        return replace(given, X=files.with_labels(known.classes.tolist(), known.by_class))
    _refuse_mixtures(given)
    if is_dask_collection(given.y):
        from scne.estimators.inputs._label_collections import later_collections

        return later_collections(given, known)
    given = _in_numpy(given)
    if given.y is None:
        raise ValueError("y is None, but later rows need their labels.")
    codes = codes_of(known.classes, given.y, "y", "the fit")
    weights = row_weights(lambda _: known.by_class, len(known.classes), codes, given.sample_weight, known.weight_scale)
    return replace(given, y=one_hot(codes, len(known.classes)), sample_weight=weights.settled)


def _refuse_mixtures(given: GivenRows) -> None:
    """Dask collections go together; labels and weights in memory may stand beside a collection."""
    for name in ("y", "sample_weight"):
        if is_dask_collection(getattr(given, name)) and not is_dask_collection(given.X):
            raise TypeError(
                f"{name} is a Dask collection, but X is a {type(given.X).__name__} in the memory of this process; pass "
                "both as one or the other."
            )
    if is_dask_collection(given.y_val):
        raise TypeError("y_val is a Dask collection, but validation rows are read here; pass y_val.compute().")


def _in_numpy(given: GivenRows) -> GivenRows:
    """Labels and weights in this process, checked for what NumPy would silently convert."""
    for name in ("y", "sample_weight", "y_val"):
        # Dates may be labels.
        values = getattr(given, name)
        if name == "sample_weight" or isinstance(values, np.ma.MaskedArray):
            refuse_unfit_arrays(name, values)
    y, sample_weight, y_val = (
        to_numpy(values) if is_foreign(values) else np.asarray(values) if is_dask_collection(values) else values
        for values in (given.y, given.sample_weight, given.y_val)
    )
    return replace(given, y=y, sample_weight=sample_weight, y_val=y_val)


def _labelled_files(
    given: GivenRows, weighting: Callable[[np.ndarray], ClassWeighting], stated: Array | None
) -> LabelledRows:
    from scne.rows import class_array

    check_files_alone(given)
    cluster = cluster_of(given.client)
    name = check_label_column(given.X)
    files: FileRows = scaled_files(complete_files(given.X, given.client), cluster)
    weight_of = _label_totals(files, name, cluster)
    classes = class_array(list(weight_of), files.label_type(), name, files.path)
    if stated is not None:
        from scne.estimators.inputs._labels import stated_classes

        stated_labels = stated_classes(stated)
        codes_of(stated_labels, classes, f"The target column {name!r} of {files.path}", "classes")
        classes = stated_labels
    if len(classes) < 2:
        raise DataError(
            f"The target column {name!r} of {files.path} {few_classes(classes)}; a classifier needs rows of at least "
            "two classes."
        )
    totals = np.array([weight_of.get(label, 0.0) for label in classes.tolist()])
    by_class = weighting(classes)(totals)
    labelled = files.with_labels(classes.tolist(), by_class)
    return LabelledRows(
        replace(given, X=labelled), classes, by_class, totals if by_class is None else totals * by_class
    )


def check_label_column(files: "FileRows", known: str | None = None) -> str:
    """The name of the one column of labels, which is to be that of the fit where it is `known`."""
    from scne.rows import check_label_type

    if not files.target_names:
        raise ValueError(f"The rows of {files.path} were opened without a target; pass open_rows(..., target=COLUMN).")
    if len(files.target_names) != 1:
        raise ValueError(
            f"The rows of {files.path} were opened with the targets {list(files.target_names)}, but a classifier "
            "predicts one column of labels; pass open_rows(..., target=COLUMN)."
        )
    (name,) = files.target_names
    if known is not None and name != known:
        raise ValueError(
            f"The rows of {files.path} were opened with target {name!r}, but this model was fitted to {known!r}."
        )
    check_label_type(files.schema.field(name).type, name, files.path)
    return name


def _label_totals(files: "FileRows", name: str, cluster: Cluster | None) -> dict["Label", float]:
    """What the rows of each label count together, by a pass over that column and the weights."""
    from scne.rows import class_array, totals_by_label

    columns = [name] if files.weight_name is None else [name, files.weight_name]
    totals: dict[Label, float] = {}
    for part in column_results(files, columns, totals_by_label, "reading labels", cluster):
        for label, total in part.items():
            totals[label] = totals.get(label, 0.0) + total
        if len(totals) > MOST_CLASSES:
            # Fractions are no labels, however many there are.
            class_array(list(totals), files.label_type(), name, files.path)
            raise DataError(
                f"The target column {name!r} of {files.path} holds more than {MOST_CLASSES:,} different labels, and a "
                "classifier takes so many classes at most; join rare ones, or fit numbers by SCNERegressor."
            )
    return totals


class LabelCodes(NamedTuple):
    """Places (n,) of labels among classes, -1 where a label is none of them, and the weights (n,) of their rows."""

    codes: NDArray[np.intp]
    weights: NDArray[np.float64]


def label_codes(files: "FileRows", batch: Array, classes: np.ndarray) -> LabelCodes:
    """The true classes of a batch of files whose column of labels was checked."""
    from scne.rows import class_codes, numbers

    (name,) = files.target_names
    codes = class_codes(batch.column(name), classes.tolist(), name, files.path)
    weights = np.ones(len(codes)) if files.weight_name is None else numbers(batch.column(files.weight_name))
    return LabelCodes(codes, weights)
