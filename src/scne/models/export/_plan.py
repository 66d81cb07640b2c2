"""What a model computes, as a few plain arrays: the one description that ONNX, C and Python source are written from.

A prediction is constants plus the outputs of a few branches. A branch takes columns, reads dates in them, scales and
limits them, adds ramps, runs layers of nodes on these features and links the columns directly. The scale of the target,
the mean over the networks and the gains of the activations are in the weights already, so a node is tanh(w'x + b) or
1 / (1 + exp(w'x + b)), and networks that see the same features are one layer. A classifier has a map from these outputs
to probabilities besides (see `ClassMap`).
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, fields
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from scne.fitting import ErrorScale, FittedNetworks, half_widths, split_weights
from scne.models._errors import ExportError
from scne.models.export._classes import ClassMap
from scne.networks import ACTIVATIONS, HiddenLayer
from scne.rows import FULL_DEVIATIONS, ColumnScaling, DateColumns, DatedScaling, InputScaling, RampScaling

if TYPE_CHECKING:
    from scne.rows import Encoder

DTYPES = ("float64", "float32")
# What a node's sum goes through, for each activation that can be exported.
_CORES = {"sigmoid": "logistic", "tanh": "tanh"}


@dataclass(frozen=True)
class Features:
    """How a branch reads its `columns` (d_m,): dates first, then the scaling, then k ramps behind them.

    A scaled column counts in full up to the `limit`, and beyond by its logarithm. A ramp is (x - start) / half - 1
    within [-1, 1], for the column x, at place `sources` (k,) among the branch's, before it is scaled.
    """

    columns: NDArray[np.intp]
    dates: tuple[DateColumns, ...]
    scaling: ColumnScaling
    limit: float | None
    sources: NDArray[np.intp]
    starts: NDArray[np.float64]
    halves: NDArray[np.float64]

    @property
    def n_columns(self) -> int:
        """Columns, d_m."""
        return len(self.columns)

    @property
    def n_features(self) -> int:
        """Columns and ramps, d_m + k."""
        return len(self.columns) + len(self.sources)


@dataclass(frozen=True)
class Nodes:
    """Nodes core(w'x + b) on the features x of a branch: w (d_m + k, L), b (L,).

    The core is "tanh", or "logistic" for 1 / (1 + exp(z)), which is precise in its lower tail as no form with tanh is:
    nodes there may have huge `outputs`. Each node adds its `outputs` (L, q), in units of y.
    """

    weights: NDArray[np.float64]
    biases: NDArray[np.float64]
    core: str
    outputs: NDArray[np.float64]


@dataclass(frozen=True)
class Branch:
    """Features, the nodes on them, and the weights (d_m, q) of scaled columns that are linked directly, if any."""

    features: Features
    layers: tuple[Nodes, ...]
    links: NDArray[np.float64] | None


@dataclass(frozen=True)
class TableColumn:
    """One column of a table, by the form of its encoding, and the `names` of those that it becomes.

    A "number" or "flag" has a `fill` for missing values, a "date" one for each of its calendar parts, and an
    `indicator` says whether a last column marks them. A "category" has levels, and perhaps a column for missing and for
    other texts. "level means" are q `means` for each level, level by level, the q of `gap` for a missing text and those
    of `default` for any other; "named numbers" are a number and such means, the default where it is missing.
    """

    kind: str
    column: str
    names: tuple[str, ...]
    fill: float = 0.0
    indicator: bool = False
    levels: tuple[Any, ...] = ()
    missing: bool = False
    other: bool = False
    parts: tuple[str, ...] = ()
    fills: tuple[float, ...] = ()
    means: tuple[float, ...] = ()
    gap: tuple[float, ...] = ()
    default: tuple[float, ...] = ()


@dataclass(frozen=True)
class ExportPlan:
    """A fitted model as something to compute: q constants, and branches on n columns.

    A model of files reads a `table`, of which the columns are made, and may refuse missing values in it. Predictions
    that are `flat` have no axis for their one output; intervals reach `half_widths` (q,) to each side, times a `scale`
    where there is one: constants and branches then have q further outputs, what nodes and a constant add to its
    logarithm. `facts` are lines for people; a classifier has `classes`.
    """

    branches: tuple[Branch, ...]
    constants: NDArray[np.float64]
    n_columns: int
    column_names: tuple[str, ...] | None
    target_names: tuple[str, ...] | None
    flat: bool
    table: tuple[TableColumn, ...] | None
    refuses_missing: bool
    half_widths: NDArray[np.float64] | None
    facts: tuple[str, ...]
    classes: ClassMap | None = None
    scale: ErrorScale | None = None

    @property
    def n_outputs(self) -> int:
        """Outputs q of the networks."""
        return len(self.constants) // (1 if self.scale is None else 2)


def export_plan(
    model: FittedNetworks, name: str, interval: float | None = None, classes: ClassMap | None = None
) -> ExportPlan:
    """What a fitted model computes; `name` is that of its estimator, `interval` the share of new rows to hold.

    Examples
    --------
    >>> from scne import SCNERegressor, RVFLRegressor
    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> model = SCNERegressor(RVFLRegressor(20), n_estimators=3, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> plan = export_plan(model.fitted_, "SCNERegressor")
    >>> [branch.layers[0].weights.shape for branch in plan.branches]  # three networks on the same column
    [(1, 60)]
    """
    if model.loss.link != "identity":
        raise ValueError(
            f"This model was fitted with loss={model.loss.name!r}, which no export knows; save it, or fit it by "
            "loss='squared', 'huber', 'robust' or a single quantile."
        )
    layers, weights = model.terms()
    gain = model.target_scaling.scale / len(layers)
    weights = [beta * gain for beta in weights]
    constants = np.array(model.target_scaling.shift, dtype=np.float64)
    scale = None if interval is None or model.calibration is None else model.calibration.scale
    if scale is not None:
        weights = [np.hstack([beta, more]) for beta, more in zip(weights, _scale_weights(model, scale), strict=True)]
        constants = np.concatenate([constants, scale.constant])
    branches = _branches(zip(layers, weights, strict=True))
    _refuse_unfit(branches, constants)
    columns = model.columns
    targets = (columns.data or {}).get("target_names")
    errors = None if model.calibration is None else model.calibration.errors
    return ExportPlan(
        branches,
        constants,
        columns.n_columns,
        None if columns.names is None else tuple(str(name) for name in columns.names),
        None if targets is None else tuple(str(name) for name in targets),
        columns.flat_target,
        None if columns.encoder is None else _table(columns.encoder),
        columns.encoder is not None and columns.encoder.missing == "refuse",
        None if interval is None else half_widths(errors, interval),
        _facts(model, layers, name),
        classes,
        scale,
    )


def _scale_weights(model: FittedNetworks, scale: ErrorScale) -> list[NDArray[np.float64]]:
    """What each node, and each column of the trend, adds to the logarithm of the scale."""
    layers, q = model.terms()[0], model.n_outputs
    joint = scale.node_weights
    if joint is None:
        return [np.zeros((layer.n_outputs, q)) for layer in layers]
    own = [weights / len(model.members) for weights in split_weights(joint, model.layers)]
    return [*own, *(np.zeros((layer.n_outputs, q)) for layer in layers[len(own) :])]


def check_dtype(dtype: object) -> str:
    """Refuse what is not a precision that can be written."""
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ValueError(f"dtype is {dtype!r}, but it must be one of {', '.join(map(repr, DTYPES))}.")
    return dtype


def refuse_rounded_names(column: TableColumn, dtype: np.dtype) -> None:
    """Raise when numbers that name things would be taken for each other once they are rounded to a type."""
    levels = np.array(column.levels, dtype=np.float64)
    with np.errstate(over="ignore"):
        lost = levels.astype(dtype) != levels
    if lost.any():
        raise ExportError(
            f"Column {column.column[:40]!r} holds numbers that name things, such as {levels[lost][0]:.17g}, which a "
            "float cannot tell from its neighbours; use dtype='float64'."
        )


def _table(encoder: "Encoder") -> tuple[TableColumn, ...]:
    columns = []
    for encoding in encoder.encodings:
        entries = {entry.name: getattr(encoding, entry.name) for entry in fields(encoding) if entry.name != "crossed"}
        if encoding.form == "level means":
            entries["gap"] = entries.pop("missing")
        columns.append(TableColumn(encoding.form, names=encoding.names, **entries))
    return tuple(columns)


def _branches(terms: Iterable[tuple[HiddenLayer, NDArray[np.float64]]]) -> tuple[Branch, ...]:
    """One branch for each way in which columns are read; weights (L + links, q) are in units of y."""
    features: dict[Hashable, Features] = {}
    nodes: dict[Hashable, dict[str, list[Nodes]]] = {}
    links: dict[Hashable, NDArray[np.float64]] = {}
    for layer, beta in terms:
        read = _features(layer.columns, layer.scaling)
        key = _content(read)
        features.setdefault(key, read)
        layer_nodes = _nodes(layer, beta[: layer.n_nodes])
        # A trend has no nodes, and networks that were judged worthless have nothing but zeros to add.
        if layer_nodes.outputs.any():
            nodes.setdefault(key, {}).setdefault(layer_nodes.core, []).append(layer_nodes)
        if layer.direct_link and beta[layer.n_nodes :].any():
            links[key] = links.get(key, 0.0) + beta[layer.n_nodes :]
    return tuple(
        Branch(read, tuple(_side_by_side(part) for part in nodes.get(key, {}).values()), links.get(key))
        for key, read in features.items()
        if key in nodes or key in links
    )


def _features(columns: NDArray[np.intp], scaling: InputScaling) -> Features:
    dates: tuple[DateColumns, ...] = ()
    if isinstance(scaling, DatedScaling):
        dates, scaling = scaling.dates, scaling.inner
    if isinstance(scaling, RampScaling):
        return Features(
            columns, dates, scaling.columns, FULL_DEVIATIONS, scaling.sources, scaling.starts, 0.5 * scaling.widths
        )
    return Features(columns, dates, scaling, None, np.empty(0, dtype=np.intp), np.empty(0), np.empty(0))


def _content(features: Features) -> Hashable:
    """Equal for features that are equal in every number."""
    scaling = features.scaling
    arrays = (features.columns, scaling.shift, scaling.scale, scaling.lower, scaling.upper)
    ramps = (features.sources, features.starts, features.halves)
    contents = [None if array is None else np.asarray(array).tobytes() for array in (*arrays, *ramps)]
    return (*contents, features.dates, features.limit)


def _nodes(layer: HiddenLayer, outputs: NDArray[np.float64]) -> Nodes:
    if layer.activation not in _CORES:
        raise ExportError(
            f"The model has nodes with the activation {layer.activation!r}, but only {' and '.join(_CORES)} can be "
            "exported."
        )
    gains = ACTIVATIONS[layer.activation]
    return Nodes(
        layer.weights * gains.input_gain,
        layer.biases * gains.input_gain,
        _CORES[layer.activation],
        outputs * gains.output_gain,
    )


def _side_by_side(parts: list[Nodes]) -> Nodes:
    return Nodes(
        np.hstack([part.weights for part in parts]),
        np.concatenate([part.biases for part in parts]),
        parts[0].core,
        np.vstack([part.outputs for part in parts]),
    )


def _refuse_unfit(branches: Iterable[Branch], constants: NDArray[np.float64]) -> None:
    numbers = [constants]
    for branch in branches:
        numbers += [array for nodes in branch.layers for array in (nodes.weights, nodes.biases, nodes.outputs)]
        numbers += [] if branch.links is None else [branch.links]
    if not all(np.isfinite(array).all() for array in numbers):
        raise ExportError(
            "The model holds weights that are not finite, as after an iteration that diverged, so its predictions are "
            "meaningless; fit it again, or use reweighted with another solver."
        )


def _facts(model: FittedNetworks, layers: list[HiddenLayer], name: str) -> tuple[str, ...]:
    nodes = sum(layer.n_nodes for layer in layers)
    networks = len(model.members)
    rows = "" if model.n_rows is None else f", fitted on {model.n_rows:,} rows"
    return (
        f"{name} of scne {version('scne')}{rows}",
        f"{networks} network{'s' * (networks != 1)} with {nodes:,} hidden nodes in all"
        + (" and a linear trend" if networks < len(layers) else ""),
    )


def shown_columns(plan: ExportPlan) -> list[str]:
    """The input columns in their order, a line each, in characters that no comment or terminal reads as anything else.

    Examples
    --------
    >>> from scne import RVFLRegressor
    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> shown_columns(export_plan(RVFLRegressor(20, random_state=0).fit(X, X[:, 0]).fitted_, "RVFLRegressor"))
    ['0: column 0']
    """
    names = plan.column_names
    return [f"{place}: {f'column {place}' if names is None else repr(names[place])}" for place in range(plan.n_columns)]


def shown_outputs(plan: ExportPlan) -> str:
    """The outputs in a few words."""
    if plan.target_names is not None:
        names = ", ".join(map(repr, plan.target_names))
        return f"{names}, in {'its' if plan.n_outputs == 1 else 'their'} own units"
    return "the target in its own units" if plan.n_outputs == 1 else f"{plan.n_outputs} targets in their own units"
