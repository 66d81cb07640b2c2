"""Errors on the rows that a fit held out, and their scale, as content of a file and back."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from scne.fitting import MOST_LOG_SCALE, ErrorScale, HeldOutErrors, RunningErrors
from scne.models._errors import damaged
from scne.models.file._shelf import Shelf, count, count_if_there, field

# What the tensors of a scale are called.
SCALE = "error_scale"


def store_calibration(calibration: RunningErrors) -> dict[str, NDArray[np.float64]]:
    """Tensors of the errors that intervals rest on and, where it is not 1 everywhere, of their scale."""
    tensors = {"calibration": calibration.errors}
    if calibration.scale is not None:
        parts = vars(calibration.scale).items()
        tensors |= {f"{SCALE}.{name}": part for name, part in parts if part is not None}
    return tensors


def read_calibration(
    document: Mapping[str, object], shelf: Shelf, n_outputs: int, n_nodes: int
) -> RunningErrors | None:
    """The errors that intervals rest on, which must be in order, and their scale, which older files lack."""
    n_errors = count_if_there(document, "n_calibration")
    if n_errors is None:
        return None
    errors = shelf.take("calibration", n_errors, n_outputs)
    if not ((errors[0] >= 0).all() and (errors[1:] >= errors[:-1]).all()):
        raise damaged("tensor 'calibration' does not hold errors in ascending order")
    return RunningErrors(errors, n_errors, _read_scale(shelf, n_outputs, n_nodes))


def is_of_scale(name: str) -> bool:
    """Whether a tensor of that name belongs to the scale of errors, also that of a classifier's regressor."""
    return f"{SCALE}." in name


def _read_scale(shelf: Shelf, n_outputs: int, n_nodes: int) -> ErrorScale | None:
    """The scale of errors, whose logarithm has limits; `n_nodes` are those of all networks."""
    limits = shelf.take_if_there(f"{SCALE}.limits", 2, n_outputs)
    if limits is None:
        return None
    if (limits[0] > limits[1]).any() or (np.abs(limits) > MOST_LOG_SCALE).any():
        raise damaged(f"tensor '{SCALE}.limits' holds numbers that are no limits of a scale")
    starts = shelf.take(f"{SCALE}.starts", None, n_outputs)
    widths = shelf.take(f"{SCALE}.widths", len(starts), n_outputs)
    if not (widths > 0).all():
        raise damaged(f"tensor '{SCALE}.widths' holds numbers that are not positive")
    return ErrorScale(
        shelf.take(f"{SCALE}.constant", n_outputs),
        starts,
        widths,
        shelf.take(f"{SCALE}.rises", len(starts), n_outputs),
        limits,
        shelf.take_if_there(f"{SCALE}.node_weights", n_nodes, n_outputs),
    )


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
