"""The parts that fitted models share, as tensors and back: scalings, hidden layers, searches, weights."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scne.models._errors import damaged, shown
from scne.models.file._shelf import Shelf, choice, field
from scne.networks import ACTIVATIONS, BuiltNetwork, HiddenLayer, StopReason
from scne.rows import ColumnScaling, DateColumns, DatedScaling, InputScaling, RampScaling

Tensors = dict[str, np.ndarray]


@dataclass(frozen=True)
class StoredMember:
    """One network with its output weights (L, q) and those of its direct links (d, q), as it stands in a file.

    `curves` are those of `CURVES` that are known of its search; nodes that were drawn have no reason to stop.
    """

    name: str
    layer: HiddenLayer
    output_weights: NDArray[np.float64]
    direct_weights: NDArray[np.float64] | None
    curves: dict[str, NDArray[np.float64]]
    stop_reason: StopReason | None

    @property
    def joint_weights(self) -> NDArray[np.float64]:
        """Weights of the nodes, and below them those of the direct links."""
        if self.direct_weights is None:
            return self.output_weights
        return np.vstack([self.output_weights, self.direct_weights])

    def to_record(self) -> dict[str, object]:
        """What of it is not a tensor. The reason has its name there: its sentence may be worded better one day."""
        return {
            "name": self.name,
            "activation": self.layer.activation,
            "direct_link": bool(self.layer.direct_link),
            "ramps": isinstance(_read_by(self.layer.scaling), RampScaling),
            "dates": [list(date) for date in _dates_of(self.layer.scaling)],
            "stop_reason": None if self.stop_reason is None else self.stop_reason.name,
            "curves": list(self.curves),
        }

    def to_tensors(self, prefix: str) -> Tensors:
        """Its arrays under names that begin with `prefix`."""
        layer = self.layer
        parts: Tensors = {
            "columns": np.asarray(layer.columns, dtype=np.int64),
            "input_weights": layer.weights,
            "biases": layer.biases,
            "output_weights": self.output_weights,
            **self.curves,
        }
        if self.direct_weights is not None:
            parts["direct_weights"] = self.direct_weights
        return prefixed(prefix, parts) | scaling_tensors(f"{prefix}.scaling", layer.scaling)


CURVES = ("training_curve", "validation_curve", "scopes", "contractions")
_OF_NODES = ("scopes", "contractions")


def read_member(
    record: Mapping[str, object], prefix: str, shelf: Shelf, n_columns: int, n_outputs: int
) -> StoredMember:
    """A network from the tensors that begin with `prefix`, for inputs of `n_columns` columns."""
    columns = shelf.take_integers(f"{prefix}.columns", None)
    if not are_positions(columns, n_columns):
        raise damaged(f"tensor '{prefix}.columns' names columns that the input of {n_columns} columns does not have")
    biases = shelf.take(f"{prefix}.biases", None)
    linked = field(record, "direct_link", bool)
    reason = field(record, "stop_reason", str, type(None))
    # Files of the first format know no ramps.
    ramps = "ramps" in record and field(record, "ramps", bool)
    # Those of the first two formats know no dates.
    dates = _read_dates(record, len(columns)) if "dates" in record else ()
    undated = (_read_ramps if ramps else read_scaling)(f"{prefix}.scaling", shelf, len(columns))
    scaling = DatedScaling(dates, undated) if dates else undated
    layer = HiddenLayer(
        columns,
        scaling,
        shelf.take(f"{prefix}.input_weights", len(scaling.feature_columns), len(biases)),
        biases,
        choice(record, "activation", ACTIVATIONS),
        linked,
    )
    return StoredMember(
        field(record, "name", str),
        layer,
        shelf.take(f"{prefix}.output_weights", len(biases), n_outputs),
        shelf.take(f"{prefix}.direct_weights", len(columns), n_outputs) if linked else None,
        _read_curves(record, prefix, shelf, layer.n_nodes),
        None if reason is None else StopReason[choice(record, "stop_reason", StopReason.__members__)],
    )


def _read_curves(
    record: Mapping[str, object], prefix: str, shelf: Shelf, n_nodes: int
) -> dict[str, NDArray[np.float64]]:
    names = field(record, "curves", list)
    if not all(isinstance(name, str) and name in CURVES for name in names) or len(set(names)) != len(names):
        raise damaged(f"it lists curves {shown(names)} of a search, of which this scne knows {', '.join(CURVES)}")
    curves = {name: shelf.take(f"{prefix}.{name}", None) for name in names}
    lengths = {len(curve) for curve in curves.values()}
    # The search may have gone on past the nodes that were kept.
    if len(lengths) > 1 or (lengths and min(lengths) < max(1, n_nodes)):
        raise damaged(f"the curves of '{prefix}' do not fit its {n_nodes} nodes")
    return curves


def search_curves(search: BuiltNetwork | None) -> dict[str, NDArray[np.float64]]:
    """The curves of a finished search, by name."""
    if search is None:
        return {}
    curves = {name: curve for name in CURVES if (curve := getattr(search, name)) is not None}
    # Of single networks that were loaded, scopes and contractions are not known.
    return {name: curve for name, curve in curves.items() if name not in _OF_NODES or not np.isnan(curve).all()}


def rebuilt_search(member: StoredMember) -> BuiltNetwork | None:
    """The finished search from which a stored network came; a single one is stored without scopes and contractions."""
    if member.stop_reason is None:
        return None
    curves = member.curves
    if "training_curve" in curves and not any(name in curves for name in _OF_NODES):
        unknown = np.full(len(curves["training_curve"]), np.nan)
        curves = {"scopes": unknown, "contractions": unknown, **curves}
    missing = [name for name in CURVES if name not in curves and name != "validation_curve"]
    if missing:
        raise damaged(f"the {missing[0]} of network {member.name!r} is missing")
    return BuiltNetwork(
        member.layer.weights,
        member.layer.biases,
        curves["training_curve"],
        curves.get("validation_curve"),
        curves["scopes"],
        curves["contractions"],
        member.stop_reason,
    )


def _read_by(scaling: InputScaling) -> ColumnScaling | RampScaling:
    """The scaling of the columns once dates are read."""
    return scaling.inner if isinstance(scaling, DatedScaling) else scaling


def _dates_of(scaling: InputScaling) -> tuple[DateColumns, ...]:
    return scaling.dates if isinstance(scaling, DatedScaling) else ()


def _read_dates(record: Mapping[str, object], n_columns: int) -> tuple[DateColumns, ...]:
    """The dates among `n_columns` columns, as lists of three positions."""
    dates = field(record, "dates", list)
    places = [place for date in dates if isinstance(date, list) and len(date) == 3 for place in date]
    inside = all(type(place) is int and 0 <= place < n_columns for place in places)
    if len(places) != 3 * len(dates) or not inside or len(set(places)) != len(places):
        raise damaged(
            f"its dates {shown(dates)} are not three different columns each, of the {n_columns} that there are"
        )
    return tuple((date[0], date[1], date[2]) for date in dates)


def scaling_tensors(prefix: str, scaling: InputScaling) -> Tensors:
    """Shift and scale, the limits when there are some, and the ramps when there are some."""
    scaling = _read_by(scaling)
    columns = scaling.columns if isinstance(scaling, RampScaling) else scaling
    parts: Tensors = {"shift": columns.shift, "scale": columns.scale}
    if columns.lower is not None and columns.upper is not None:
        parts |= {"lower": columns.lower, "upper": columns.upper}
    if isinstance(scaling, RampScaling):
        parts["ramp_sources"] = np.asarray(scaling.sources, dtype=np.int64)
        parts |= {"ramp_starts": scaling.starts, "ramp_widths": scaling.widths}
    return prefixed(prefix, parts)


def read_scaling(prefix: str, shelf: Shelf, size: int) -> ColumnScaling:
    """The scaling of `size` columns, without ramps."""
    lower, upper = (shelf.take_if_there(f"{prefix}.{name}", size) for name in ("lower", "upper"))
    if (lower is None) != (upper is None):
        raise damaged(f"one of the limits '{prefix}.lower' and '{prefix}.upper' is missing")
    if lower is not None and upper is not None and not (lower <= upper).all():
        raise damaged(f"a limit of '{prefix}.lower' is above that of '{prefix}.upper'")
    scale = shelf.take(f"{prefix}.scale", size)
    if not (scale > 0).all():
        raise damaged(f"tensor '{prefix}.scale' holds numbers that are not positive")
    return ColumnScaling(shelf.take(f"{prefix}.shift", size), scale, lower, upper)


def _read_ramps(prefix: str, shelf: Shelf, size: int) -> RampScaling:
    columns = read_scaling(prefix, shelf, size)
    sources = shelf.take_integers(f"{prefix}.ramp_sources", None)
    if len(sources) and (sources.min() < 0 or sources.max() >= size):
        raise damaged(f"tensor '{prefix}.ramp_sources' names columns that its network of {size} columns does not have")
    widths = shelf.take(f"{prefix}.ramp_widths", len(sources))
    if not (widths > 0).all():
        raise damaged(f"tensor '{prefix}.ramp_widths' holds widths that are not positive")
    return RampScaling(columns, sources, shelf.take(f"{prefix}.ramp_starts", len(sources)), widths)


def are_positions(columns: NDArray[np.intp], n_columns: int) -> bool:
    """Whether whole numbers are positions of different columns, one or more of them.

    Examples
    --------
    >>> are_positions(np.array([2, 0]), 3), are_positions(np.array([1, 1]), 3), are_positions(np.array([3]), 3)
    (True, False, False)
    """
    inside = len(columns) > 0 and columns.min() >= 0 and columns.max() < n_columns
    return bool(inside) and len(np.unique(columns)) == len(columns)


def prefixed(prefix: str, parts: Tensors) -> Tensors:
    """The same tensors under longer names."""
    return {f"{prefix}.{name}": tensor for name, tensor in parts.items()}
