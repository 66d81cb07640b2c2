"""Models as one C99 header: constant arrays and a function of one row, for the smallest devices."""

import os
import re
from collections.abc import Iterator

import numpy as np

from scne.models._errors import write_atomically
from scne.models.export._c_classes import class_functions, class_heading, class_tables
from scne.models.export._c_levels import level_call, level_functions
from scne.models.export._c_text import CWriter, function, in_comment, indented, loop, place_type
from scne.models.export._plan import Branch, ExportPlan, Nodes, TableColumn, check_dtype, shown_columns, shown_outputs

_LONGEST_NAME = 40


def to_c(
    plan: ExportPlan, path: str | os.PathLike[str] | None = None, name: str = "scne_model", *, dtype: str = "float64"
) -> str:
    """A fitted model as the text of a C99 header; see `SCNERegressor.export`."""
    source = _header(CWriter(check_name(name), check_dtype(dtype)), plan)
    if path is not None:
        write_atomically(path, source.encode("utf-8"))
    return source


def check_name(name: object) -> str:
    """Refuse what no C identifier can begin with.

    Examples
    --------
    >>> check_name("air_2024")
    'air_2024'
    """
    if isinstance(name, str) and re.fullmatch(rf"[A-Za-z][A-Za-z0-9_]{{,{_LONGEST_NAME - 1}}}", name, re.ASCII):
        return name
    raise ValueError(
        f"name is {name!r}, but it must be a letter, followed by letters, digits and _, and at most "
        f"{_LONGEST_NAME} characters in all (without accents)."
    )


def _header(c: CWriter, plan: ExportPlan) -> str:
    branches = [line for place, branch in enumerate(plan.branches) for line in _branch(c, f"b{place}", branch)]
    constants = c.numbers("constants", plan.constants)
    if plan.classes is None:
        length, functions = f"{c.name.upper()}_OUTPUTS {plan.n_outputs}", _outputs(c, plan, "predict")
    else:
        length = f"{c.name.upper()}_CLASSES {plan.classes.n_classes}"
        constants += class_tables(c, plan.classes)
        functions = [*_outputs(c, plan, "outputs"), "", *class_functions(c, plan.classes)]
    levels = [] if plan.table is None else level_functions(c, plan.table)
    texts = plan.table is not None and any(column.kind == "level means" for column in plan.table)
    helpers = [
        *([_DATE] if any(branch.features.dates for branch in plan.branches) else []),
        *([_LIMITED] if any(branch.features.limit is not None for branch in plan.branches) else []),
    ]
    guard = f"{c.name.upper()}_H"
    lines = [
        "/*",
        *(f" * {in_comment(line)}".rstrip() for line in _heading(c, plan)),
        " */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        "#include <math.h>",
        *(["#include <string.h>"] if texts else []),
        "",
        f"#define {c.name.upper()}_INPUTS {plan.n_columns}",
        f"#define {length}",
        "",
        *constants,
        "",
        *map(c.template, helpers),
        *levels,
        *branches,
        *functions,
        "",
        f"#endif /* {guard} */",
        "",
    ]
    return "\n".join(lines)


def _heading(c: CWriter, plan: ExportPlan) -> Iterator[str]:
    widest = max((branch.features.n_columns + branch.features.n_features for branch in plan.branches), default=0)
    widest += 0 if plan.classes is None else plan.classes.n_classes + 1
    yield from plan.facts
    yield f"Constants of {c.n_bytes:,} bytes; at most {widest * c.dtype.itemsize:,} bytes of stack for numbers."
    yield ""
    if plan.classes is None:
        yield f"void {c.name}_predict(const {c.real} *row, {c.real} *out)"
        yield f"  out: {shown_outputs(plan)}; NaN when a number in the row is not finite. It must not overlap row."
    else:
        yield from class_heading(c, plan.classes)
    yield "  row:" if plan.classes is None else "row:"
    yield from (f"    {line}" for line in shown_columns(plan))
    if plan.table is not None:
        yield "  These columns are made from those of a table so:"
        row_place = 0
        for place, column in enumerate(plan.table):
            call = level_call(c.name, place, column, row_place)
            yield from (f"    {line}" for line in _encoding_words(column, call))
            row_place += len(column.names)


def _outputs(c: CWriter, plan: ExportPlan, name: str) -> list[str]:
    """The function of all outputs of the networks, under a name of its own."""
    d, q = plan.n_columns, plan.n_outputs
    refusal = [*loop("i", q, [f"out[i] = ({c.real})NAN;"]), "return;"]
    body = [
        *loop("n", d, ["if (!isfinite(row[n])) {", *indented(refusal), "}"]),
        *loop("i", q, [f"out[i] = {c.literal(0.0)};"]),
        *(f"{c.name}_b{place}(row, out);" for place in range(len(plan.branches))),
        *loop("i", q, [f"out[i] += {c.name}_constants[i];"]),
    ]
    return function(c, name, body)


def _branch(c: CWriter, own: str, branch: Branch) -> list[str]:
    """The arrays of a branch and the function that adds its outputs to out."""
    features, prefix = branch.features, f"{c.name}_{own}"
    d, k = features.n_columns, len(features.sources) if branch.layers else 0
    arrays = c.places(f"{own}_columns", features.columns)
    body = [f"{c.real} raw[{d}];", f"{c.real} x[{d + k}];", ""]
    body += loop("i", d, [f"raw[i] = row[{prefix}_columns[i]];"])
    body += [f"{c.name}_date(&raw[{year}], &raw[{month}], &raw[{day}]);" for year, month, day in features.dates]
    parts = [_scaled(c, own, branch), *([_ramps(c, own, branch)] if k else [])]
    parts += [_layer(c, f"{own}_l{number}", nodes) for number, nodes in enumerate(branch.layers)]
    if branch.links is not None:
        adds = _adds("x[i]", f"{prefix}_links", branch.links.shape[1])
        parts.append((c.numbers(f"{own}_links", branch.links), loop("i", d, adds)))
    for more, lines in parts:
        arrays += more
        body += lines
    return [*arrays, "", *function(c, own, body), ""]


def _scaled(c: CWriter, own: str, branch: Branch) -> tuple[list[str], list[str]]:
    """Arrays and loop that turn raw into the scaled columns at the beginning of x."""
    features, scaling, prefix = branch.features, branch.features.scaling, f"{c.name}_{own}"
    arrays = [*c.numbers(f"{own}_shift", scaling.shift), *c.numbers(f"{own}_scale", scaling.scale, divides=True)]
    steps = [f"{c.real} value = raw[i];"]
    if scaling.lower is not None and scaling.upper is not None:
        arrays += [*c.numbers(f"{own}_lower", scaling.lower), *c.numbers(f"{own}_upper", scaling.upper)]
        lower, upper = f"{prefix}_lower[i]", f"{prefix}_upper[i]"
        steps.append(f"value = value < {lower} ? {lower} : value > {upper} ? {upper} : value;")
    scaled = f"(value - {prefix}_shift[i]) / {prefix}_scale[i]"
    if features.limit is not None:
        scaled = f"{c.name}_limited({scaled}, {c.literal(features.limit)})"
    return arrays, loop("i", features.n_columns, [*steps, f"x[i] = {scaled};"])


def _ramps(c: CWriter, own: str, branch: Branch) -> tuple[list[str], list[str]]:
    """Arrays and loop that put the ramps behind the columns in x."""
    features, prefix, one = branch.features, f"{c.name}_{own}", c.literal(1.0)
    arrays = [
        *c.places(f"{own}_sources", features.sources),
        *c.numbers(f"{own}_starts", features.starts),
        *c.numbers(f"{own}_halves", features.halves, divides=True),
    ]
    rise = f"(raw[{prefix}_sources[i]] - {prefix}_starts[i]) / {prefix}_halves[i]"
    steps = [
        f"const {c.real} ramp = {rise} - {one};",
        f"x[{features.n_columns} + i] = ramp < -{one} ? -{one} : ramp > {one} ? {one} : ramp;",
    ]
    return arrays, loop("i", len(features.sources), steps)


def _layer(c: CWriter, own: str, nodes: Nodes) -> tuple[list[str], list[str]]:
    """Arrays of a layer's nodes and the loop over them; weights by place where that takes fewer bytes."""
    prefix, by_node = f"{c.name}_{own}", np.ascontiguousarray(nodes.weights.T)
    n_nodes, n_features = by_node.shape
    arrays = [*c.numbers(f"{own}_biases", nodes.biases), *c.numbers(f"{own}_outputs", nodes.outputs)]
    filled = by_node != 0
    ends = np.concatenate([[0], np.cumsum(filled.sum(axis=1))])
    sparse_bytes = ends[-1] * (c.dtype.itemsize + place_type(n_features)[1]) + len(ends) * place_type(ends[-1])[1]
    if ends[-1] > 0 and sparse_bytes < by_node.size * c.dtype.itemsize:
        arrays += c.numbers(f"{own}_weights", by_node[filled])
        arrays += c.places(f"{own}_places", np.nonzero(filled)[1])
        arrays += c.places(f"{own}_ends", ends)
        inner = [
            f"for (unsigned long j = {prefix}_ends[i]; j < {prefix}_ends[i + 1]; j++) {{",
            f"    z += {prefix}_weights[j] * x[{prefix}_places[j]];",
            "}",
        ]
    else:
        arrays += c.numbers(f"{own}_weights", by_node)
        inner = loop("j", n_features, [f"z += {prefix}_weights[i * {n_features} + j] * x[j];"])
    one, total = c.literal(1.0), f"z + {prefix}_biases[i]"
    # Where exp overflows to infinity the quotient is zero, as it should be.
    logistic = f"{one} / ({one} + exp{c.suffix}({total}))"
    node = f"tanh{c.suffix}({total})" if nodes.core == "tanh" else logistic
    steps = [f"{c.real} z = {c.literal(0.0)};", *inner, f"z = {node};"]
    return arrays, loop("i", n_nodes, [*steps, *_adds("z", f"{prefix}_outputs", nodes.outputs.shape[1])])


def _adds(value: str, array: str, q: int) -> list[str]:
    """Lines that add a value to each of q outputs, by the i-th weights of an array."""
    return (
        loop("q", q, [f"out[q] += {value} * {array}[i * {q} + q];"]) if q > 1 else [f"out[0] += {value} * {array}[i];"]
    )


def _encoding_words(encoding: TableColumn, call: str) -> Iterator[str]:
    """How the encoded columns of one column are made, for those who make them; `call` is that of its function."""
    column = repr(encoding.column)
    if encoding.kind == "level means":
        yield f"{column}: {call} writes the mean target of its level"
        return
    if encoding.kind == "category":
        gap = " or missing" * encoding.missing
        yield f"{column}: 1 in the column of its level{gap}, 0 in the others; " + (
            "any other text is 1 in the last" if encoding.other else "0 in all for any other text"
        )
        return
    mark = "; 'missing' is then 1, else 0" if encoding.indicator else ""
    if encoding.kind == "date":
        yield f"{column}: parts by the column's own clock, weekdays from 0 for Monday, hours with minutes as fractions"
        fills = ", ".join(f"{part} {float(fill)!r}" for part, fill in zip(encoding.parts, encoding.fills, strict=True))
        yield f"  where it is missing: {fills}{mark}"
        return
    values = "1 for true and 0 for false" if encoding.kind == "flag" else "the number"
    yield f"{column}: {values}, {float(encoding.fill)!r} where it is missing{mark}"
    if encoding.kind == "named numbers":
        yield f"  {call} writes the mean target of what it names"


_LIMITED = """\
/* Far values count by their logarithm. */
static inline REAL NAME_limited(REAL value, REAL limit)
{
    const REAL size = fabs(value);
    return size > limit ? copysign(limit + log1p(size - limit), value) : value;
}
"""

_DATE = """\
/* The season in place of year and month, and the day of the week (0 is a Monday) in place of the day. */
static inline void NAME_date(REAL *year, REAL *month, REAL *day)
{
    const REAL early = *month < 3.0 ? 1.0 : 0.0;
    const REAL y = floor(*year - early);
    const REAL m = floor(*month) + 12.0 * early;
    const REAL leap_days = floor(y / 4.0) - floor(y / 100.0) + floor(y / 400.0);
    const REAL weekday = fmod(floor(*day) + floor(13.0 * (m + 1.0) / 5.0) + y + leap_days + 5.0, 7.0);
    const REAL angle = 2.0 * 3.141592653589793 * (*month - 1.0 + (*day - 1.0) / 31.0) / 12.0;
    *year = cos(angle);
    *month = sin(angle);
    *day = weekday < 0.0 ? weekday + 7.0 : weekday;
}
"""
