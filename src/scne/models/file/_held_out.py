"""Errors on the rows that a fit held out, as content of a file and back."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from scne.fitting import HeldOutErrors, RunningErrors
from scne.models._errors import damaged
from scne.models.file._shelf import Shelf, count, count_if_there, field


def read_calibration(document: Mapping[str, object], shelf: Shelf, n_outputs: int) -> RunningErrors | None:
    """The errors that intervals rest on, which must be in order."""
    n_errors = count_if_there(document, "n_calibration")
    if n_errors is None:
        return None
    errors = shelf.take("calibration", n_errors, n_outputs)
    if not ((errors[0] >= 0).all() and (errors[1:] >= errors[:-1]).all()):
        raise damaged("tensor 'calibration' does not hold errors in ascending order")
    return RunningErrors(errors, n_errors)


def store_held_out_errors(errors: HeldOutErrors) -> tuple[dict[str, object], NDArray[np.float64]]:
    """A record, and the errors of the model, the mean and, where there is one, the line below each other."""
    rows = [errors.model, errors.mean] if errors.linear is None else [errors.model, errors.mean, errors.linear]
    return {"n_rows": int(errors.n_rows), "has_line": errors.linear is not None}, np.stack(rows)


def read_held_out_errors(document: Mapping[str, object], shelf: Shelf, n_outputs: int) -> HeldOutErrors | None:
    """What `store_held_out_errors` made; None in older files."""
    if document.get("held_out_errors") is None:
        return None
    record = field(document, "held_out_errors", dict)
    n_rows, has_line = count(record, "n_rows"), field(record, "has_line", bool)
    errors = shelf.take("held_out_errors", 3 if has_line else 2, n_outputs)
    if (errors < 0).any():
        raise damaged("tensor 'held_out_errors' holds negative numbers")
    return HeldOutErrors(n_rows, errors[0], errors[1], errors[2] if has_line else None)
