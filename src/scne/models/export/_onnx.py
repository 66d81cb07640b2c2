"""Models as ONNX graphs, which any runtime runs without Python.

All of it is computed in double, so that a runtime agrees with `predict` up to rounding.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from scne.fitting import ErrorScale
from scne.models._errors import write_atomically
from scne.models.export._classes import text_labels
from scne.models.export._onnx_classes import LABEL, PROBABILITIES, class_outputs, class_property
from scne.models.export._onnx_columns import column_inputs, encoded_columns
from scne.models.export._onnx_graph import IR_VERSION, ML_OPSET, OPSET, GraphBuilder, import_onnx
from scne.models.export._plan import Branch, ExportPlan, Features, Nodes, TableColumn, check_dtype, shown_outputs

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto


def to_onnx(plan: ExportPlan, path: str | os.PathLike[str] | None = None, *, dtype: str = "float64") -> "ModelProto":
    """A fitted model as an ONNX ModelProto; see `SCNERegressor.export`."""
    kind = np.dtype(check_dtype(dtype))
    helper = import_onnx().helper
    outputs = _output_names(plan)
    made = _of_numbers(plan, kind, outputs) if plan.table is None else _of_columns(plan, plan.table, kind, outputs)
    totals = _totals(made.graph, plan, made.X)
    if plan.classes is None:
        _predictions(made.graph, plan, totals, kind)
    else:
        class_outputs(made.graph, plan.classes, totals, kind)
    results = [_declared(made.graph, name, plan, kind) for name in outputs]
    proto: ModelProto = helper.make_model(
        helper.make_graph(made.graph.nodes, "scne", made.inputs, results, made.graph.constants),
        producer_name="scne",
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)],
        doc_string="\n".join([*plan.facts, f"Output: {_shown_outputs(plan)}"]),
    )
    properties: dict[str, object] = {"columns": made.columns, "targets": plan.target_names}
    if plan.classes is not None:
        properties["classes"] = class_property(plan.classes)
    helper.set_model_props(proto, {name: json.dumps(value) for name, value in properties.items()})
    if path is not None:
        write_atomically(path, proto.SerializeToString(deterministic=True))
    return proto


def _output_names(plan: ExportPlan) -> list[str]:
    if plan.classes is not None:
        return [LABEL, PROBABILITIES]
    return ["y", "lower", "upper"] if plan.half_widths is not None else ["y"]


def _declared(graph: GraphBuilder, name: str, plan: ExportPlan, kind: np.dtype) -> "ValueInfoProto":
    """An output of the graph, with its type and shape."""
    if plan.classes is None:
        return graph.declared(name, kind, *([] if plan.flat else [plan.n_outputs]))
    if name == LABEL:
        return graph.declared(name, None if text_labels(plan.classes) is not None else np.dtype(np.int64))
    return graph.declared(name, kind, plan.classes.n_classes)


def _shown_outputs(plan: ExportPlan) -> str:
    if plan.classes is None:
        return shown_outputs(plan)
    return f"{LABEL}, the class, and {PROBABILITIES}, those of {plan.classes.n_classes} classes"


class _Begun(NamedTuple):
    """A graph up to the columns X (N, d) in double, its inputs, and what is to be known of them."""

    graph: GraphBuilder
    X: str
    inputs: "list[ValueInfoProto]"
    columns: Sequence[object]


def _of_numbers(plan: ExportPlan, kind: np.dtype, outputs: list[str]) -> _Begun:
    graph = GraphBuilder(["X", *outputs])
    X = "X" if kind == np.float64 else graph.cast("X", np.float64)
    return _Begun(graph, X, [graph.declared("X", kind, plan.n_columns)], plan.column_names or ())


def _of_columns(plan: ExportPlan, table: Sequence[TableColumn], kind: np.dtype, outputs: list[str]) -> _Begun:
    inputs = column_inputs(table, kind.name, outputs)
    graph = GraphBuilder([*(column.name for column in inputs), *outputs])
    declared, columns = [], []
    for column, name, dtype, gap in inputs:
        declared.append(graph.declared(name, dtype, 1))
        missing = "NaN" if isinstance(gap, float) else gap
        type_name = "string" if dtype is None else dtype.name
        columns.append({"column": column, "input": name, "type": type_name, "missing": missing})
    return _Begun(graph, encoded_columns(graph, table, inputs, plan.refuses_missing), declared, columns)


def _totals(graph: GraphBuilder, plan: ExportPlan, X: str) -> str:
    """The nodes from columns X (N, d) in double to the outputs of the networks (N, q)."""
    # Zero for a row of numbers, NaN where one is infinite or missing: no limit may turn those into a prediction.
    total = graph("ReduceSum", graph("Mul", X, 0.0), np.array([1]), keepdims=1)
    for branch in plan.branches:
        for term in _terms(graph, branch, X):
            total = graph("Add", total, term)
    return graph("Add", total, plan.constants)


def _predictions(graph: GraphBuilder, plan: ExportPlan, total: str, kind: np.dtype) -> None:
    """What a regressor gives of its outputs (N, q), or (N, 2 q) where errors have a scale."""
    widths: str | np.ndarray | None = None
    if plan.half_widths is not None:
        reach = plan.half_widths[0] if plan.flat else plan.half_widths
        if plan.scale is None:
            widths = reach
        else:
            outputs, logs = (
                graph("Gather", total, np.arange(plan.n_outputs) + first, axis=1) for first in (0, plan.n_outputs)
            )
            scale = _sizes(graph, plan.scale, outputs, logs)
            total = outputs
            widths = graph("Mul", graph("Squeeze", scale, np.array([1])) if plan.flat else scale, reach)
    if plan.flat:
        total = graph("Squeeze", total, np.array([1]))
    graph("Cast", total, output="y", to=graph.type_of(kind))
    if widths is not None:
        graph("Cast", graph("Sub", total, widths), output="lower", to=graph.type_of(kind))
        graph("Cast", graph("Add", total, widths), output="upper", to=graph.type_of(kind))


def _sizes(graph: GraphBuilder, scale: ErrorScale, outputs: str, logs: str) -> str:
    """The scale of errors (see `ErrorScale.sizes`) for outputs (N, q) and what nodes say of its logarithm."""
    for start, width, rise in zip(scale.starts, scale.widths, scale.rises, strict=True):
        share = graph("Clip", graph("Div", graph("Sub", outputs, start), width), 0.0, 1.0)
        logs = graph("Add", logs, graph("Mul", share, rise))
    return graph("Exp", graph("Min", graph("Max", logs, scale.limits[0]), scale.limits[1]))


def _terms(graph: GraphBuilder, branch: Branch, X: str) -> list[str]:
    """What a branch adds to the outputs, each (N, q)."""
    branch = _without_scalar_division(branch)
    raw = _dated(graph, branch.features, graph("Gather", X, branch.features.columns.astype(np.int64), axis=1))
    scaled = _scaled(graph, branch.features, raw)
    terms = [] if branch.links is None else [graph("MatMul", scaled, branch.links)]
    features = scaled
    if len(branch.features.sources) and branch.layers:
        features = graph("Concat", scaled, _ramps(graph, branch.features, raw), axis=1)
    return [*terms, *(_node_term(graph, nodes, features) for nodes in branch.layers)]


def _without_scalar_division(branch: Branch) -> Branch:
    """The same branch, its one column's scale in the weights where it would stand right before a product.

    onnxruntime merges a product with a single number next to it, and keeps that number in single precision: seven
    digits of the prediction would be left.
    """
    features = branch.features
    if features.n_columns > 1 or features.limit is not None:
        return branch
    scale = features.scaling.scale[0]
    return Branch(
        replace(features, scaling=replace(features.scaling, scale=np.ones(1))),
        tuple(replace(nodes, weights=nodes.weights / scale) for nodes in branch.layers),
        None if branch.links is None else branch.links / scale,
    )


def _node_term(graph: GraphBuilder, nodes: Nodes, features: str) -> str:
    hidden = graph("Add", graph("MatMul", features, nodes.weights), nodes.biases)
    if nodes.core == "tanh":
        hidden = graph("Tanh", hidden)
    else:
        # The operator Sigmoid may compute 1 - 1 / (1 + exp(z)), which loses the lower tail.
        hidden = graph("Reciprocal", graph("Add", graph("Exp", hidden), 1.0))
    return graph("MatMul", hidden, nodes.outputs)


def _scaled(graph: GraphBuilder, features: Features, raw: str) -> str:
    scaling, value = features.scaling, raw
    if scaling.lower is not None and scaling.upper is not None:
        value = graph("Min", graph("Max", value, scaling.lower), scaling.upper)
    value = graph("Sub", value, scaling.shift)
    if (scaling.scale != 1.0).any():
        value = graph("Div", value, scaling.scale)
    if features.limit is None:
        return value
    size = graph("Abs", value)
    beyond = graph("Max", graph("Sub", size, features.limit), 0.0)
    limited = graph("Add", graph("Min", size, features.limit), graph("Log", graph("Add", beyond, 1.0)))
    return graph("Mul", limited, graph("Sign", value))


def _ramps(graph: GraphBuilder, features: Features, raw: str) -> str:
    rises = graph("Sub", graph("Gather", raw, features.sources.astype(np.int64), axis=1), features.starts)
    return graph("Clip", graph("Sub", graph("Div", rises, features.halves), 1.0), -1.0, 1.0)


def _dated(graph: GraphBuilder, features: Features, raw: str) -> str:
    """Columns with the season and the day of the week in place of dates (see `with_dates` in rows)."""
    if not features.dates:
        return raw
    places = np.array(features.dates, dtype=np.int64)
    year, month, day = (graph("Gather", raw, places[:, part], axis=1) for part in range(3))
    months = graph("Add", graph("Sub", month, 1.0), graph("Div", graph("Sub", day, 1.0), 31.0))
    angle = graph("Div", graph("Mul", months, 2.0 * np.pi), 12.0)
    # The cosine, as a sine: onnxruntime up to 1.28 has no cosine of doubles.
    cosine = graph("Sin", graph("Add", angle, np.pi / 2))
    read = [cosine, graph("Sin", angle), _weekday(graph, year, month, day)]
    # The columns as they were, then those that take the place of years, months and days.
    order = np.arange(features.n_columns)
    order[places.T.ravel()] = features.n_columns + np.arange(places.size)
    return graph("Gather", graph("Concat", raw, *read, axis=1), order, axis=1)


def _weekday(graph: GraphBuilder, year: str, month: str, day: str) -> str:
    """0 for a Monday, by Zeller's congruence, in which a year begins in March."""
    before_march = graph.cast(graph("Less", month, 3.0), np.float64)
    year = graph("Floor", graph("Sub", year, before_march))
    month = graph("Add", graph("Floor", month), graph("Mul", before_march, 12.0))
    days = graph("Add", graph("Floor", day), graph("Floor", graph("Mul", graph("Add", month, 1.0), 2.6)))
    days = graph("Add", days, year)
    for sign, years in (("Add", 4.0), ("Sub", 100.0), ("Add", 400.0)):
        days = graph(sign, days, graph("Floor", graph("Div", year, years)))
    left = graph("Mod", graph("Add", days, 5.0), 7.0, fmod=1)
    return graph("Where", graph("Less", left, 0.0), graph("Add", left, 7.0), left)
