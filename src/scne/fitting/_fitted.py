"""A fitted model as one value: what predicting, explaining, updating, saving and exporting are functions of."""

from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from scne.fitting._members import Member, member_outputs, summed_output
from scne.fitting._scale import HeldOutErrors, RunningErrors
from scne.fitting._trend import Trend
from scne.fitting._weights import SolvedWeights
from scne.ncl import EnsembleSystem, mean_factors
from scne.networks import HiddenLayer
from scne.passes import Engine
from scne.rows import Array, ColumnScaling, ColumnStatistics, WeightScale, same_map

if TYPE_CHECKING:
    from scne.rows import Encoder


@dataclass(frozen=True, eq=False)
class Columns:
    """What goes in and comes out.

    Attributes
    ----------
    n_columns : int
    names : tuple of str or None
    groups : dict of str to ndarray of int
        Positions of the columns of each group that was given.
    flat_target : bool
        Whether y had one dimension, so that predictions have one too.
    encoder : Encoder or None
        How columns that are not plain numbers became such.
    data : dict or None
        Of a fit on files: the names of the targets, and the rows of the search where memory was short.
    means : ndarray of shape (n_columns,) or None
        Of the columns, without an encoder: they stand for numbers that are missing in later rows. None in older files.
    statistics : ColumnStatistics or None
        Of the encoded columns over all rows of a fit on files; model files do not keep them.
    """

    n_columns: int
    names: tuple[str, ...] | None
    groups: dict[str, NDArray[np.intp]]
    flat_target: bool
    encoder: "Encoder | None" = None
    data: dict[str, Any] | None = None
    means: NDArray[np.float64] | None = None
    statistics: ColumnStatistics | None = None


@dataclass(frozen=True, eq=False)
class FittedTrend:
    """The linear part of the output.

    Attributes
    ----------
    mode : {"none", "taken off", "blended"}
        "taken off": it was taken off the targets before networks were built, and is added to their mean. "blended":
        the output is `share` of the networks' and the rest of the trend's, as the held-out rows judged.
    trend : Trend or None
        Its weights are times 1 - share.
    share : ndarray of shape (q,)
        The networks' share of each output; 1 but where blended.
    target_shift : ndarray of shape (q,) or None
        Where blended: what was taken off the networks' own targets before they were scaled. None in older files.
    """

    mode: Literal["none", "taken off", "blended"]
    trend: Trend | None
    share: NDArray[np.float64]
    target_shift: NDArray[np.float64] | None = None

    @classmethod
    def none(cls, n_outputs: int) -> "FittedTrend":
        """No trend."""
        return cls("none", None, np.ones(n_outputs))

    @property
    def taken_off(self) -> Trend | None:
        """The trend that is off the targets of the networks, if any."""
        return self.trend if self.mode == "taken off" else None


@dataclass(frozen=True, eq=False)
class HeldOutSums:
    """Sums over the rows that a fit held out to choose on.

    Attributes
    ----------
    system : EnsembleSystem
    fitted_too : bool
        Whether the rows are also among those of the fit's own system, as a share of the training rows is and rows that
        the user gave are not.
    """

    system: EnsembleSystem
    fitted_too: bool

    def left_of(self, everything: EnsembleSystem) -> EnsembleSystem:
        """The system of the rows that were not held out."""
        return everything.without(self.system) if self.fitted_too else everything


class NotHeldError(ValueError, AttributeError):
    """A fitted model does not hold what an attribute or a method needs; `hasattr` then says no."""


@dataclass(frozen=True, eq=False)
class FittedNetworks:
    """Networks with their output weights, and all that later steps need of their fit.

    The output is the mean (1/M) H B of M networks, of which a single network is the case M = 1, in the scale of the
    target, with a linear trend where there is one. Where networks have weights a_m, B_m = M a_m b_m.

    Attributes
    ----------
    columns : Columns
    members : tuple of Member
        Name, hidden layer and search of each network.
    solved : SolvedWeights
        The output weights B (L, q), lambda, the ridges and how they were chosen.
    target_scaling : ColumnScaling
        Of the output.
    trend : FittedTrend
    sums : EnsembleSystem or None
        G, H'y, y'y, to which later rows are added.
    held_out : HeldOutSums or None
    calibration : RunningErrors or None
        Errors on rows that the weights had not seen, and their scale, for prediction intervals.
    n_rows : int or None
        Rows so far; None in older files.
    weight_scale : WeightScale or None
        How weights became numbers of rows; None without weights.
    memory_note : str or None
        A sentence on a search that had to be shortened.
    held_out_errors : HeldOutErrors or None
        Of the fit, a mean and a linear model on the rows that the fit held out; None once the weights are others.
    """

    columns: Columns
    members: tuple[Member, ...]
    solved: SolvedWeights
    target_scaling: ColumnScaling
    trend: FittedTrend
    sums: EnsembleSystem | None
    held_out: HeldOutSums | None
    calibration: RunningErrors | None
    n_rows: int | None
    weight_scale: WeightScale | None = None
    memory_note: str | None = None
    held_out_errors: HeldOutErrors | None = None

    @property
    def n_outputs(self) -> int:
        """q."""
        return int(self.solved.solution.weights.shape[1])

    @property
    def layers(self) -> list[HiddenLayer]:
        """The networks' hidden layers."""
        return list(map(attrgetter("layer"), self.members))

    @property
    def weights(self) -> list[NDArray[np.float64]]:
        """Weights B_m (L_m, q) of each network in the mean (1/M) H B, those of direct links below those of nodes."""
        return split_weights(self.solved.solution.weights, self.layers)

    @property
    def own_weights(self) -> list[NDArray[np.float64]]:
        """Output weights b_m (L_m, q) of each network in sum_m a_m H_m b_m, Eq. (10): B_m where all a_m are 1/M."""
        return self._own(self.solved.solution.weights)

    def with_sums(self) -> "FittedNetworks":
        """This model, which must hold the sums over its rows."""
        if self.sums is None:
            raise NotHeldError(
                "This model holds no Gram matrix: it was fitted by a matrix-free solver, or loaded from a file that "
                "was saved without it (save with with_system=True, or keep it with pickle or joblib)."
            )
        return self

    @property
    def system(self) -> EnsembleSystem | None:
        """`sums` with the weights a_m of the networks, as they are solved."""
        if self.sums is None or self.solved.member_weights is None:
            return self.sums
        return replace(self.sums, member_weights=self.solved.member_weights)

    @property
    def system_scaling(self) -> ColumnScaling:
        """The scaling of the targets in `sums`."""
        if self.trend.mode != "blended":
            return self.target_scaling
        if self.trend.target_shift is None:
            raise ValueError(
                "This ensemble leaves a part of its output to a linear trend, and its system does not hold the "
                "constant of the networks' own targets; fit it again."
            )
        return ColumnScaling(self.trend.target_shift, self.target_scaling.scale)

    def terms(self) -> tuple[list[HiddenLayer], list[NDArray[np.float64]]]:
        """Layers and weights whose mean is the output in the target's scale: the networks, and after them the trend."""
        layers, trend, joint = self.layers, self.trend.trend, self.solved.solution.weights
        # A product with one changes no bit, but would cost a copy.
        if not (self.trend.share == 1).all():
            joint = joint * self.trend.share
        if trend is None:
            return layers, split_weights(joint, layers)
        # A mean of M + 1 terms that comes to the mean of the first M plus the last.
        more = len(layers) + 1
        weights = split_weights(joint * (more / (more - 1)), layers)
        return [*layers, trend.layer], [*weights, trend.weights * (more / self.target_scaling.scale)]

    @cached_property
    def joined_terms(self) -> tuple[list[HiddenLayer], list[NDArray[np.float64]]]:
        """The terms in fewer layers, with weights such that the output is the sum of H_m B_m.

        Layers on the same features are one: columns are scaled, and ramps made, once for all of them.
        """
        layers, weights = self.terms()
        alike: list[tuple[list[HiddenLayer], list[NDArray[np.float64]]]] = []
        for layer, beta in zip(layers, weights, strict=True):
            for parts, betas in alike:
                first = parts[0]
                linked = first.direct_link or layer.direct_link
                same = first.activation == layer.activation and np.array_equal(first.columns, layer.columns)
                if same and not linked and same_map(first.scaling, layer.scaling):
                    parts.append(layer)
                    betas.append(beta)
                    break
            else:
                alike.append(([layer], [beta]))
        joined, joint = [], []
        for parts, betas in alike:
            nodes = np.hstack(list(map(attrgetter("weights"), parts)))
            biases = np.concatenate(list(map(attrgetter("biases"), parts)))
            joined.append(parts[0] if len(parts) == 1 else replace(parts[0], weights=nodes, biases=biases))
            joint.append(np.concatenate(betas) / len(layers))
        return joined, joint

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "joined_terms"}

    def outputs(self, inputs: Array, engine: Engine) -> Array:
        """Outputs (n, q) for encoded inputs (n, d), in the units of y."""
        return self.target_scaling.undo(summed_output(inputs, *self.joined_terms, engine))

    def member_outputs(self, inputs: Array, engine: Engine) -> Array:
        """What each network says, shape (M, n, q), in the units of y; sum_m a_m of it is the output."""
        weights = self._own(self.solved.solution.weights * self.trend.share)
        outputs = self.target_scaling.undo(member_outputs(inputs, self.layers, weights, engine))
        if self.trend.trend is not None:
            outputs += self.trend.trend.apply(inputs)
        return outputs

    def _own(self, joint: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        weights = split_weights(joint, self.layers)
        if self.solved.member_weights is None:
            return weights
        factors = mean_factors(self.solved.member_weights, len(weights))
        return [beta / factor for beta, factor in zip(weights, factors.tolist(), strict=True)]


def split_weights(joint: NDArray[np.float64], layers: list[HiddenLayer]) -> list[NDArray[np.float64]]:
    """B (L, q) cut into the weights of each layer."""
    ends = np.cumsum(list(map(attrgetter("n_outputs"), layers)))[:-1]
    # Row-major, as files and pickle restore it: another order would change the last bits of a product.
    return np.split(np.ascontiguousarray(joint), ends)
