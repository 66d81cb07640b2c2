"""What each network of a fitted ensemble is worth, from the sums that the fit left behind."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scne.fitting import FittedNetworks
from scne.ncl import leave_one_out


@dataclass(frozen=True, eq=False)
class GroupImportances:
    """Increase of an ensemble's root mean squared error, in units of y, when one of its networks is left out.

    Attributes
    ----------
    names : tuple of str
        Of the networks.
    error : float, or ndarray of shape (n_outputs,) as y was
        Of the whole ensemble.
    errors_without : ndarray of shape (M,) or (M, n_outputs)
        Without each network, the weights of the others solved again.
    rows : {"held-out rows", "training rows"}
        Where the errors were measured.
    """

    names: tuple[str, ...]
    error: float | NDArray[np.float64]
    errors_without: NDArray[np.float64]
    rows: str

    @property
    def rises(self) -> dict[str, float | NDArray[np.float64]]:
        """Name to rise of the error, in the order of the networks; below zero where the ensemble is better off."""
        rises = self.errors_without - self.error
        return {name: float(rise) if rise.ndim == 0 else rise for name, rise in zip(self.names, rises, strict=True)}


def group_importances(model: FittedNetworks) -> GroupImportances:
    """Leave each of several networks out; `SCNERegressor.group_importances` says what that means."""
    names = tuple(member.name for member in model.members)
    if len(names) < 2:
        raise ValueError(
            "This ensemble has one network, so there is nothing to leave out; permutation_importances shows which "
            "columns matter."
        )
    system, held_out, scale = model.system, model.held_out, model.target_scaling.scale
    assert system is not None
    fitted, judged = (system, system) if held_out is None else (held_out.left_of(system), held_out.system)
    errors = leave_one_out(fitted, judged, model.solved.decorrelation, model.solved.ridge)
    whole, without, flat = errors.whole * scale, errors.without * scale, model.columns.flat_target
    return GroupImportances(
        names,
        float(whole[0]) if flat else whole,
        without[:, 0] if flat else without,
        "training rows" if held_out is None else "held-out rows",
    )
