"""Models as one Python file that needs nothing but the standard library."""

import inspect
import os
from collections.abc import Iterable
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from scne.models._errors import write_atomically
from scne.models.export import _python_classes, _python_columns, _python_runtime
from scne.models.export._classes import ClassMap, shown_classes
from scne.models.export._plan import Branch, ExportPlan, Nodes, TableColumn, shown_columns, shown_outputs

_USE = '''
def predict(row: Any) -> {kind}:
    """{returns}

    row: {row}
    """
    values = _in_order(row, COLUMNS)
{numbers}
    outputs = _outputs(numbers, BRANCHES, CONSTANTS)
    return {result}


def predict_rows(rows: Any) -> list[{kind}]:
    """Predictions for many rows, as a list."""
    return [predict(row) for row in rows]


if __name__ == "__main__":
    _run(predict, COLUMNS, GAPS, needs_names={needs_names})
'''
_USE_CLASSES = '''
def predict_proba(row: Any) -> list[float]:
    """The probabilities of the classes for one row, in the order of CLASSES.

    row: {row}
    """
    return _answer(row)[1:]


def predict(row: Any) -> {kind}:
    """The most probable class of one row; `row` as for predict_proba."""
    return _answer(row)[0]


def predict_proba_rows(rows: Any) -> list[list[float]]:
    """Probabilities for many rows, as a list of lists."""
    return [predict_proba(row) for row in rows]


def predict_rows(rows: Any) -> list[{kind}]:
    """Classes of many rows, as a list."""
    return [predict(row) for row in rows]


def _answer(row: Any) -> list[Any]:
    """The class and the probabilities."""
    values = _in_order(row, COLUMNS)
{numbers}
    scores = _scores(_outputs(numbers, BRANCHES, CONSTANTS), MAP)
    return [CLASSES[scores.index(max(scores))], *_probabilities(scores, MAP["floor"])]


if __name__ == "__main__":
    _run(_answer, COLUMNS, GAPS, needs_names={needs_names})
'''


def to_python(plan: ExportPlan, path: str | os.PathLike[str] | None = None) -> str:
    """A fitted model as the text of a Python file; see `SCNERegressor.export`."""
    parts = [
        *(f"# {line}" for line in _heading(plan)),
        "# Needs Python 3.10 or later and nothing else.",
        *(["import datetime"] if plan.table is not None else []),
        "import math",
        "from collections.abc import Mapping, Sequence",
        "from typing import Any",
        "",
        *_data(plan),
        "",
        *_functions(_python_runtime),
        *(_functions(_python_columns) if plan.table is not None else []),
        *(_functions(_python_classes) if plan.classes is not None else []),
        _use(plan) if plan.classes is None else _use_classes(plan, plan.classes),
    ]
    source = "\n".join(parts)
    if path is not None:
        write_atomically(path, source.encode("utf-8"))
    return source


def _heading(plan: ExportPlan) -> Iterable[str]:
    yield from plan.facts
    if plan.classes is None:
        yield f"predict(row) gives {shown_outputs(plan)}."
    else:
        yield "predict(row) gives the class, predict_proba(row) the probabilities of the classes"
        yield from (f"  {line}" for line in shown_classes(plan.classes))
        yield "in this order."
    if plan.table is None:
        yield "A row has the columns"
        yield from (f"  {line}" for line in shown_columns(plan))
        yield "in this order" + (", or is a mapping from their names to numbers." if plan.column_names else ".")
    else:
        yield "A row is a mapping from column names to values as they are in the table (None where one is missing):"
        yield from (f"  {column.column!r}: {_KINDS[column.kind]}" for column in plan.table)
    written = "a prediction" if plan.classes is None else "the class and the probabilities"
    yield f"As a program this file reads CSV rows from standard input and writes {written} for each."


_KINDS = {
    "number": "a number",
    "flag": "true or false",
    "named numbers": "a number",
    "category": "a text",
    "level means": "a text",
    "date": "a date, time or timestamp, by the clock of its column; texts in ISO format",
}


def _data(plan: ExportPlan) -> Iterable[str]:
    """The model's numbers as assignments; repr gives the shortest text that reads back as the same number."""
    if plan.table is None:
        names = plan.column_names or tuple(f"column {place}" for place in range(plan.n_columns))
        yield f"COLUMNS = {list(names)!r}"
        yield "GAPS = []"
    else:
        import pyarrow.csv

        yield f"COLUMNS = {[column.column for column in plan.table]!r}"
        yield "# What stands for a missing value in CSV files."
        yield f"GAPS = {sorted(pyarrow.csv.ConvertOptions().null_values)!r}"
        yield "ENCODINGS = ["
        yield from (f"    {_encoding(column)!r}," for column in plan.table)
        yield "]"
        yield f"REFUSE_MISSING = {plan.refuses_missing}"
    if plan.classes is not None:
        yield from _class_data(plan.classes)
    yield f"CONSTANTS = {plan.constants.tolist()!r}"
    yield "BRANCHES = ["
    for branch in plan.branches:
        yield from _branch(branch)
    yield "]"


def _class_data(classes: ClassMap) -> Iterable[str]:
    fields = {
        "slopes": classes.slopes.tolist(),
        "biases": classes.biases.tolist(),
        "least": classes.least,
        "most": classes.most,
        "softness": classes.softness,
        "floor": classes.floor,
    }
    yield f"CLASSES = {list(classes.labels)!r}"
    yield f"MAP = {fields!r}"


def _branch(branch: Branch) -> Iterable[str]:
    features, scaling = branch.features, branch.features.scaling
    ramps = zip(features.sources.tolist(), features.starts.tolist(), features.halves.tolist(), strict=True)
    fields = {
        "columns": features.columns.tolist(),
        "dates": [list(date) for date in features.dates],
        "shift": scaling.shift.tolist(),
        "scale": scaling.scale.tolist(),
        "lower": None if scaling.lower is None else scaling.lower.tolist(),
        "upper": None if scaling.upper is None else scaling.upper.tolist(),
        "limit": features.limit,
        "ramps": [list(ramp) for ramp in ramps],
        "links": None if branch.links is None else branch.links.tolist(),
    }
    yield "    {"
    yield from (f"        {name!r}: {value!r}," for name, value in fields.items())
    yield "        'layers': ["
    for nodes in branch.layers:
        yield f"            [{nodes.core!r}, ["
        yield from (f"                {_node(nodes, place)}," for place in range(len(nodes.biases)))
        yield "            ]],"
    yield "        ],"
    yield "    },"


def _node(nodes: Nodes, place: int) -> str:
    bias, adds = float(nodes.biases[place]), nodes.outputs[place].tolist()
    return f"[{bias!r}, {_weights(nodes.weights[:, place])}, {adds!r}]"


def _weights(weights: NDArray[np.float64]) -> str:
    """Places and values, or None and all values, whichever is shorter: tuned nodes look at few columns.

    Examples
    --------
    >>> _weights(np.array([0.0, 0.0, 0.25])), _weights(np.array([1.0, 2.0]))
    ('[2], [0.25]', 'None, [1.0, 2.0]')
    """
    places = np.flatnonzero(weights)
    sparse, dense = f"{places.tolist()!r}, {weights[places].tolist()!r}", f"None, {weights.tolist()!r}"
    return min(sparse, dense, key=len)


def _encoding(encoding: TableColumn) -> list[object]:
    head: list[object] = [encoding.kind, encoding.column]
    if encoding.kind == "category":
        return [*head, list(encoding.levels), bool(encoding.missing), bool(encoding.other)]
    if encoding.kind == "level means":
        return [*head, _means_by_level(encoding), list(encoding.gap), list(encoding.default)]
    if encoding.kind == "date":
        fills = [float(fill) for fill in encoding.fills]
        return [*head, list(encoding.parts), fills, bool(encoding.indicator)]
    number = [*head, float(encoding.fill), bool(encoding.indicator)]
    return number if encoding.kind != "named numbers" else [*number, _means_by_level(encoding), list(encoding.default)]


def _means_by_level(encoding: TableColumn) -> dict[object, list[float]]:
    q = len(encoding.default)
    return {level: list(encoding.means[place * q : (place + 1) * q]) for place, level in enumerate(encoding.levels)}


def _functions(module: ModuleType) -> list[str]:
    """The source of a module's own functions, as it stands there: linted, typed and tested like the rest."""
    own = [
        value for value in vars(module).values() if inspect.isfunction(value) and value.__module__ == module.__name__
    ]
    return [f"\n{inspect.getsource(function)}" for function in own]


def _use_classes(plan: ExportPlan, classes: ClassMap) -> str:
    row, numbers = _row_and_numbers(plan)
    kind = type(classes.labels[0]).__name__
    return _USE_CLASSES.format(kind=kind, row=row, numbers=numbers, needs_names=plan.table is not None)


def _row_and_numbers(plan: ExportPlan) -> tuple[str, str]:
    """What a row is, in words, and the line that makes numbers of its values."""
    if plan.table is None:
        return (
            "numbers in the order of COLUMNS, or a mapping from their names to numbers",
            "    numbers = [_finite(value, name) for value, name in zip(values, COLUMNS, strict=True)]",
        )
    return (
        "values in the order of COLUMNS, or a mapping from their names to values",
        "    numbers = _encoded(values, ENCODINGS, REFUSE_MISSING)",
    )


def _use(plan: ExportPlan) -> str:
    row, numbers = _row_and_numbers(plan)
    returns = (
        "The prediction for one row." if plan.flat else "The predictions for one row, a list with one for each output."
    )
    result = "outputs[0]" if plan.flat else "outputs"
    kind = "float" if plan.flat else "list[float]"
    return _USE.format(
        kind=kind, row=row, numbers=numbers, returns=returns, result=result, needs_names=plan.table is not None
    )
