"""What a classifier computes beyond the outputs of its networks: from outputs to probabilities and a class."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scne.fitting import LEAST_OUTPUT, MOST_OUTPUT, OUTPUT_SOFTNESS, PROBABILITY_FLOOR, ProbabilityMap
from scne.models._errors import ExportError

Label = str | bool | int | float
_LEAST_INTEGER, _MOST_INTEGER = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class ClassMap:
    """p = (1 - K floor) softmax(z) + floor with z_k = a f_k + c log s(f_k) + b_k, s(f) = w log(1 + exp(f / w)).

    f is limited to [least, most]. Two classes have one output t, and f = ((1 - t) / 2, (1 + t) / 2).

    Attributes
    ----------
    labels : tuple of str, bool, int or float
        The K classes in order, of one kind.
    slopes : ndarray of shape (2,)
        a and c.
    biases : ndarray of shape (K,)
    least, most : float
    softness : float
        w.
    floor : float
    """

    labels: tuple[Label, ...]
    slopes: NDArray[np.float64]
    biases: NDArray[np.float64]
    least: float = LEAST_OUTPUT
    most: float = MOST_OUTPUT
    softness: float = OUTPUT_SOFTNESS
    floor: float = PROBABILITY_FLOOR

    @property
    def n_classes(self) -> int:
        """Classes, K."""
        return len(self.labels)


def class_map(classes: NDArray, found: ProbabilityMap) -> ClassMap:
    """The map of a fitted classifier.

    Examples
    --------
    >>> found = class_map(np.array(["cold", "warm"]), ProbabilityMap(np.array([5.0, 0.0]), np.zeros(2), None))
    >>> found.labels, found.biases.shape
    (('cold', 'warm'), (2,))
    """
    labels = classes.tolist()
    strange = next((label for label in labels if not isinstance(label, Label)), None)
    if strange is not None:
        raise ExportError(
            f"The model has a class {strange!r}, a {type(strange).__name__}, but only classes of text and numbers can "
            "be exported."
        )
    if not (np.isfinite(found.slopes).all() and np.isfinite(found.biases).all()):
        raise ExportError("The model's map to probabilities holds numbers that are not finite; fit it again.")
    # Texts of NumPy's own kind would show it where they are written.
    return ClassMap(
        tuple(str(label) if isinstance(label, str) else label for label in labels), found.slopes, found.biases
    )


def text_labels(classes: ClassMap) -> list[str] | None:
    """The classes where they are text, None where they are numbers.

    Examples
    --------
    >>> text_labels(ClassMap(("no", "yes"), np.zeros(2), np.zeros(2)))
    ['no', 'yes']
    """
    texts = [label for label in classes.labels if isinstance(label, str)]
    for text in texts:
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise ExportError(
                f"The model has a class {text!r}, which is no valid Unicode; rename it, or export to 'python'."
            ) from None
    return texts or None


def integer_labels(classes: ClassMap) -> list[int]:
    """The classes as numbers of 64 bits; false and true are 0 and 1.

    Examples
    --------
    >>> integer_labels(ClassMap((1.0, 3.0), np.zeros(2), np.zeros(2)))
    [1, 3]
    """
    for label in classes.labels:
        assert not isinstance(label, str)
        if label != int(label) or not _LEAST_INTEGER <= label <= _MOST_INTEGER:
            raise ExportError(
                f"The model has a class {label!r}, but numbers that are classes must be whole and fit 64 bits here; "
                "use the form 'python'."
            )
    return [int(label) for label in classes.labels]


def shown_classes(classes: ClassMap) -> list[str]:
    """The classes in their order, a line each, as `shown_columns` shows columns.

    Examples
    --------
    >>> shown_classes(ClassMap(("no", "yes"), np.zeros(2), np.zeros(2)))
    ["0: 'no'", "1: 'yes'"]
    """
    return [f"{place}: {label!r}" for place, label in enumerate(classes.labels)]
