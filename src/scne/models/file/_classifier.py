"""What a classifier has beyond its regressor, its classes and its probabilities, as content of a file and back."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scne.fitting import ClassScores, ProbabilityMap
from scne.models._errors import Unstorable, damaged
from scne.models.file._parts import Tensors
from scne.models.file._shelf import Shelf, choice, count_if_there, field
from scne.models.file._values import MOST_TEXT_BYTES, text_array_bytes

# Kinds of labels that a file can name, by NumPy's letter. Text of any length comes back as such.
_KINDS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")
_TEXT, _OBJECTS = "text", "objects"


class StoredClassifier(NamedTuple):
    """Classes (K,), the map to their probabilities, what a row of each counts, and the scores on held-out rows.

    Older files do not hold the last two.
    """

    classes: np.ndarray
    mapping: ProbabilityMap
    class_weights: NDArray[np.float64] | None
    scores: ClassScores | None


def store_classifier(classifier: StoredClassifier) -> tuple[dict[str, object], Tensors]:
    """What a file holds of it."""
    classes, mapping, weights, scores = classifier
    record = {"kind": _kind(classes), "classes": classes.tolist(), "n_held_out": mapping.n_rows}
    tensors = {"classifier.slopes": mapping.slopes, "classifier.biases": mapping.biases}
    if weights is not None:
        tensors["classifier.weights"] = weights
    if scores is not None:
        values = (scores.accuracy, scores.log_loss, scores.most_frequent, scores.share_loss)
        tensors["classifier.scores"] = np.array(values)
    return {"classifier": record}, tensors


def read_classifier(document: Mapping[str, object], shelf: Shelf, n_outputs: int) -> StoredClassifier:
    """The same from a file, of networks with so many outputs."""
    record = field(document, "classifier", dict)
    classes = _read_classes(record)
    n_classes = len(classes)
    if n_outputs != (1 if n_classes == 2 else n_classes):
        raise damaged(f"its {n_outputs} outputs do not fit its {n_classes} classes")
    slopes = shelf.take("classifier.slopes", 2)
    if not (slopes >= 0).all():
        raise damaged("tensor 'classifier.slopes' holds negative numbers")
    biases = shelf.take("classifier.biases", n_classes)
    weights = shelf.take_if_there("classifier.weights", n_classes)
    if weights is not None and not ((weights >= 0).all() and weights.any()):
        raise damaged("tensor 'classifier.weights' holds negative numbers, or only zeros")
    n_rows = count_if_there(record, "n_held_out")
    return StoredClassifier(classes, ProbabilityMap(slopes, biases, n_rows), weights, _read_scores(shelf, n_rows))


def _read_scores(shelf: Shelf, n_rows: int | None) -> ClassScores | None:
    values = shelf.take_if_there("classifier.scores", 4)
    if values is None:
        return None
    accuracy, loss, most_frequent, share_loss = values.tolist()
    if n_rows is None or min(values) < 0 or max(accuracy, most_frequent) > 1:
        raise damaged("tensor 'classifier.scores' does not hold accuracies and losses on held-out rows")
    return ClassScores(n_rows, accuracy, loss, most_frequent, share_loss)


def _kind(classes: np.ndarray) -> str:
    if classes.dtype.kind == "U":
        return _TEXT
    if classes.dtype.kind == "O":
        strange = next((label for label in classes if not isinstance(label, str | bool | int | float)), None)
        if strange is None:
            return _OBJECTS
        raise Unstorable(
            f"a class is {strange!r}, a {type(strange).__name__}, and a model file holds labels of text and numbers"
        )
    if classes.dtype.name in _KINDS:
        return classes.dtype.name
    raise Unstorable(f"its classes are of the kind {classes.dtype}, and a model file holds labels of text and numbers")


def _read_classes(record: Mapping[str, object]) -> np.ndarray:
    kind, labels = choice(record, "kind", (*_KINDS, _TEXT, _OBJECTS)), field(record, "classes", list)
    try:
        if kind == _TEXT and not all(isinstance(label, str) for label in labels):
            raise TypeError
        if kind == _TEXT and text_array_bytes(labels) > MOST_TEXT_BYTES:
            raise ValueError
        if kind != _TEXT and not all(isinstance(label, str | bool | int | float) for label in labels):
            raise TypeError
        classes = np.array(labels, dtype={_TEXT: str, _OBJECTS: object}.get(kind, kind))
        in_order = len(classes) > 1 and classes.ndim == 1 and bool((classes[1:] > classes[:-1]).all())
    except (TypeError, ValueError, OverflowError) as error:
        raise damaged(f"its classes are not labels of the kind {kind!r}") from error
    if not in_order:
        raise damaged("its classes are not two or more different labels in order")
    return classes
