"""A fitted model as one value: what predicting, explaining, updating, saving and exporting are functions of."""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scne.fitting._columns import Columns
from scne.fitting._members import Member, member_outputs, summed_output, with_signs
from scne.fitting._trend import FittedTrend
from scne.fitting._weights import SolvedWeights
from scne.ncl import EnsembleSystem, mean_factors
from scne.networks import MOST_LOG_MEAN, SQUARED, CompiledTerms, HiddenLayer, Loss
from scne.passes import Engine
from scne.rows import Array, ColumnScaling, WeightScale, is_foreign, like, namespace_of, same_map

# Rows that one thread predicts before a second one has begun.
FEW_ROWS = 128
# Beyond, a row would be exp(20) times as uncertain as the mean.
MOST_LOG_SCALE = 20.0


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


@dataclass(frozen=True, eq=False)
class ErrorScale:
    """sigma(x): how large errors are in a row, beside their mean over the rows that were held out.

    log sigma_j = constant_j + (1/M) (H W)_j + sum_k rises_kj min(max((f_j - starts_kj) / widths_kj, 0), 1) for the
    prediction f_j of output j, within limits.

    Attributes
    ----------
    constant : ndarray of shape (q,)
    starts, widths, rises : ndarrays of shape (K, q)
        Of ramps of the prediction.
    limits : ndarray of shape (2, q)
        The least and the largest log sigma of the rows from which it was learned.
    node_weights : ndarray of shape (L, q) or None
        W, a second output layer; None where sigma follows the prediction alone.
    """

    constant: NDArray[np.float64]
    starts: NDArray[np.float64]
    widths: NDArray[np.float64]
    rises: NDArray[np.float64]
    limits: NDArray[np.float64]
    node_weights: NDArray[np.float64] | None

    def sizes(self, prediction: Array, nodes: Array | float) -> Array:
        """sigma (n, q) for predictions (n, q) and what the second output layer says, (1/M) H W (n, q)."""
        xp = namespace_of(prediction)
        logs = like(self.constant, prediction) + nodes
        for start, width, rise in zip(self.starts, self.widths, self.rises, strict=True):
            share = xp.clip((prediction - like(start, prediction)) / like(width, prediction), 0.0, 1.0)
            logs = logs + like(rise, prediction) * share
        least, most = like(self.limits[0], prediction), like(self.limits[1], prediction)
        return xp.exp(xp.minimum(xp.maximum(logs, least), most))


class RunningErrors(NamedTuple):
    """Absolute errors of many rows, of which some are kept.

    Attributes
    ----------
    errors : ndarray of shape (m, q)
        Ascending, each divided by its sigma(x); the j-th is the least that a share of j / (m + 1) of the rows does not
        exceed.
    n_rows : float
        Rows that they stand for, older ones counted by what is left of their weight.
    scale : ErrorScale or None
        sigma; None where it is 1 everywhere.
    """

    errors: NDArray[np.float64]
    n_rows: float
    scale: ErrorScale | None = None


@dataclass(frozen=True, eq=False)
class HeldOutErrors:
    """Root mean squared errors on rows that a fit held out, in units of y.

    Attributes
    ----------
    n_rows : int
        The held-out rows.
    model : ndarray of shape (q,)
        Of the fit, by weights that have not seen these rows.
    mean : ndarray of shape (q,)
        Of the mean target of the other rows.
    linear : ndarray of shape (q,) or None
        Of a ridge regression on the other rows; None unless the fit judged one (trend="judged").
    """

    n_rows: int
    model: NDArray[np.float64]
    mean: NDArray[np.float64]
    linear: NDArray[np.float64] | None


class NotHeldError(ValueError, AttributeError):
    """A fitted model does not hold what an attribute or a method needs; `hasattr` then says no."""


class JoinedTerms(NamedTuple):
    """Layers whose outputs are sum_m H_m B_m.

    Attributes
    ----------
    layers : list of HiddenLayer
    weights : list of ndarrays of shape (L_m, q)
    scale_weights : list of ndarrays of shape (L_m, q) or None
        Such that sum_m H_m W_m is what the nodes say of log sigma; None where they say nothing.
    compiled : CompiledTerms or None
        Layers and weights as compiled kernels read them; None where nothing was compiled.
    """

    layers: list[HiddenLayer]
    weights: list[NDArray[np.float64]]
    scale_weights: list[NDArray[np.float64]] | None
    compiled: CompiledTerms | None = None


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
    loss : Loss
        What was made small, and with it how outputs become predictions.
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
    loss: Loss = SQUARED

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
        if not self.loss.is_squared:
            raise NotHeldError(
                f"This model was fitted with loss={self.loss.name!r}, whose row weights depend on the output, so it "
                'keeps no sums that later rows could be added to; fit it again, or use loss="squared".'
            )
        if self.sums is None:
            raise NotHeldError(
                "This model holds no Gram matrix: it was fitted by a matrix-free solver, or loaded from a file that "
                "was saved without it (save with with_system=True, or keep it with pickle or joblib)."
            )
        return self

    def check_adds_nodes(self) -> None:
        """Refuse models whose output weights are not those of least squares, as those of new nodes would be."""
        if not self.loss.is_squared:
            raise NotHeldError(
                f"This model was fitted with loss={self.loss.name!r}, but nodes are added by least squares; fit it "
                'again with more nodes (max_hidden of the base model, or effort), or use loss="squared".'
            )

    def with_directions(self, directions: NDArray[np.float64] | None) -> "FittedNetworks":
        """This model, from a file, with the signs in its sums that weights which are solved again must have."""
        if self.sums is None:
            return self
        return replace(self, sums=with_signs(self.sums, self.layers, directions))

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
                "Part of this ensemble's output is a linear trend, and its system does not hold the "
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
    def joined_terms(self) -> "JoinedTerms":
        """The terms in fewer layers: columns are scaled, and ramps made, once for all layers on the same features."""
        layers, weights = self.terms()
        scale = None if self.calibration is None else self.calibration.scale
        second: list[NDArray[np.float64]] | None = None
        if scale is not None and scale.node_weights is not None:
            second = split_weights(scale.node_weights / len(self.layers), self.layers)
            second += [np.zeros_like(beta) for beta in weights[len(second) :]]
        alike: list[list[int]] = []
        for m, layer in enumerate(layers):
            for parts in alike:
                first = layers[parts[0]]
                linked = first.direct_link or layer.direct_link
                same = first.activation == layer.activation and np.array_equal(first.columns, layer.columns)
                if same and not linked and same_map(first.scaling, layer.scaling):
                    parts.append(m)
                    break
            else:
                alike.append([m])
        terms = JoinedTerms([], [], None if second is None else [])
        for parts in alike:
            nodes, biases = np.hstack([layers[m].weights for m in parts]), [layers[m].biases for m in parts]
            first = layers[parts[0]]
            joined = replace(first, weights=nodes, biases=np.concatenate(biases)) if len(parts) > 1 else first
            terms.layers.append(joined)
            terms.weights.append(np.concatenate([weights[m] for m in parts]) / len(layers))
            if terms.scale_weights is not None and second is not None:
                terms.scale_weights.append(np.concatenate([second[m] for m in parts]))
        if first.compiled is None:
            return terms
        return terms._replace(compiled=CompiledTerms(list(map(attrgetter("compiled"), terms.layers)), terms.weights))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "joined_terms"}

    def outputs(self, inputs: Array, engine: Engine) -> Array:
        """Outputs (n, q) for encoded inputs (n, d), in the units of y."""
        terms = self.joined_terms
        if terms.compiled is None or engine.on_device or is_foreign(inputs):
            return self.in_units(summed_output(inputs, terms.layers, terms.weights, engine))
        return self.in_units(terms.compiled.outputs_by(engine, inputs))

    def in_units(self, outputs: Array) -> Array:
        """Scaled outputs (n, q) in the units of y."""
        return predicted_by(self.loss.link, self.target_scaling, outputs)

    def predicted(self, inputs: Array, engine: Engine) -> Array:
        """`outputs` by an engine that is opened here, unless rows are so few that kernels are done before it is."""
        few = not (engine.on_device or is_foreign(inputs)) and len(inputs) <= FEW_ROWS
        with nullcontext() if few and self.joined_terms.compiled is not None else engine:
            return self.outputs(inputs, engine)

    def scales(self, inputs: Array, outputs: Array, engine: Engine) -> Array:
        """sigma (n, q) of the errors of these outputs, which follow from these inputs; 1 where none was learned."""
        scale, terms = None if self.calibration is None else self.calibration.scale, self.joined_terms
        if scale is None:
            return namespace_of(outputs).ones_like(outputs)
        if terms.scale_weights is None:
            return scale.sizes(outputs, 0.0)
        return scale.sizes(outputs, summed_output(inputs, terms.layers, terms.scale_weights, engine))

    def member_outputs(self, inputs: Array, engine: Engine) -> Array:
        """What each network says, shape (M, n, q), in the units of y; sum_m a_m of it is the output."""
        if self.loss.is_log:
            raise ValueError(
                f"This model was fitted with loss={self.loss.name!r}: its networks add up to the logarithm of a "
                "mean, so single networks predict nothing by themselves; predict_members needs another loss."
            )
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


def predicted_by(link: str, scaling: ColumnScaling, outputs: Array) -> Array:
    """What scaled outputs (n, q) say of targets, in the units of y.

    Examples
    --------
    >>> scaling = ColumnScaling(np.array([0.0, 1.5]), np.array([2.0, 2.0]))
    >>> predicted_by("log", scaling, np.zeros((1, 2))), predicted_by("sorted", scaling, np.array([[1.0, 0.0]]))
    (array([[0. , 1.5]]), array([[1.5, 2. ]]))
    """
    xp = namespace_of(outputs)
    if link == "log":
        outputs = xp.expm1(xp.clip(outputs, -MOST_LOG_MEAN, MOST_LOG_MEAN))
    values = scaling.undo(outputs)
    # Each level has a shift of its own, so that they are in order here and not before.
    return xp.sort(values, axis=1) if link == "sorted" else values


def split_weights(joint: NDArray[np.float64], layers: list[HiddenLayer]) -> list[NDArray[np.float64]]:
    """B (L, q) cut into the weights of each layer."""
    ends = np.cumsum(list(map(attrgetter("n_outputs"), layers)))[:-1]
    # Row-major, as files and pickle restore it: another order would change the last bits of a product.
    return np.split(np.ascontiguousarray(joint), ends)
