"""What an exported Python file runs. `_python_source` copies these functions as they stand, so they use `math` alone.

A branch is a dictionary: "columns", "dates", "shift", "scale", "lower", "upper", "limit" and "ramps" (source, start and
half of each) are the fields of `Features`; "layers" is a list of a core ("tanh" or "logistic") and nodes, each with its
bias, the places of its weights (None for all), its weights and what it adds to each output; "links" is a list of
weights for each column, or None.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any


def _outputs(values: Sequence[float], branches: Sequence[Mapping[str, Any]], constants: Sequence[float]) -> list[float]:
    """All outputs for one row of numbers."""
    totals = [0.0] * len(constants)
    for branch in branches:
        raw = _dated([values[column] for column in branch["columns"]], branch["dates"])
        scaled = _scaled(raw, branch)
        features = scaled + [_ramp(raw[source], start, half) for source, start, half in branch["ramps"]]
        for core, nodes in branch["layers"]:
            activate = math.tanh if core == "tanh" else _logistic
            for bias, places, weights, adds in nodes:
                chosen = features if places is None else [features[place] for place in places]
                node = activate(sum(map(float.__mul__, chosen, weights)) + bias)
                for output, add in enumerate(adds):
                    totals[output] += node * add
        if branch["links"] is not None:
            for value, adds in zip(scaled, branch["links"], strict=True):
                for output, add in enumerate(adds):
                    totals[output] += value * add
    return [total + constant for total, constant in zip(totals, constants, strict=True)]


def _logistic(z: float) -> float:
    """1 / (1 + exp(z)), by a power that cannot overflow."""
    power = math.exp(-abs(z))
    return (power if z > 0.0 else 1.0) / (1.0 + power)


def _scaled(raw: Sequence[float], branch: Mapping[str, Any]) -> list[float]:
    """Columns within the range seen in training, shifted and scaled; far values by their logarithm where limited."""
    if branch["lower"] is not None:
        raw = [min(max(x, low), high) for x, low, high in zip(raw, branch["lower"], branch["upper"], strict=True)]
    scaled = [(x - shift) / scale for x, shift, scale in zip(raw, branch["shift"], branch["scale"], strict=True)]
    limit = branch["limit"]
    if limit is None:
        return scaled
    return [
        math.copysign(min(abs(x), limit) + math.log1p(max(abs(x) - limit, 0.0)), x) if abs(x) > limit else x
        for x in scaled
    ]


def _ramp(x: float, start: float, half: float) -> float:
    """A piece of a column, from -1 to 1."""
    return min(max((x - start) / half - 1.0, -1.0), 1.0)


def _dated(raw: list[float], dates: Sequence[Sequence[int]]) -> list[float]:
    """The season in place of year and month, and the day of the week in place of the day, of each date."""
    read = list(raw)
    for at_year, at_month, at_day in dates:
        month, day = raw[at_month], raw[at_day]
        angle = 2.0 * math.pi * (month - 1.0 + (day - 1.0) / 31.0) / 12.0
        read[at_year], read[at_month] = math.cos(angle), math.sin(angle)
        read[at_day] = _weekday(raw[at_year], month, day)
    return read


def _weekday(year: float, month: float, day: float) -> float:
    """0 for a Monday, by Zeller's congruence, in which a year begins in March."""
    early = 1.0 if month < 3.0 else 0.0
    year, month = float(math.floor(year - early)), float(math.floor(month)) + 12.0 * early
    days = float(math.floor(day)) + float(math.floor(2.6 * (month + 1.0))) + year
    days = days + float(math.floor(year / 4.0)) - float(math.floor(year / 100.0)) + float(math.floor(year / 400.0))
    return (days + 5.0) % 7.0


def _in_order(row: Any, names: Sequence[str]) -> list[Any]:
    """The values of a row: of a mapping by the columns' names, else as they come."""
    if hasattr(row, "keys"):
        absent = [name for name in names if name not in row]
        if absent:
            raise ValueError(f"The row has no value for column {absent[0]!r}.")
        return [row[name] for name in names]
    values = list(row)
    if len(values) != len(names):
        raise ValueError(f"The row has {len(values)} values, but there must be {len(names)}.")
    return values


def _finite(value: Any, name: str) -> float:
    """A value as a number that is neither missing nor infinite."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"Column {name!r} is {value!r}, but it must be a number.") from None
    if not math.isfinite(number):
        raise ValueError(f"Column {name!r} is {value!r}, but it must be a finite number.")
    return number


def _run(predict: Any, names: Sequence[str], gaps: Sequence[str], needs_names: bool) -> None:
    """Read CSV rows from standard input and write one prediction a line."""
    import csv
    import sys

    writer = csv.writer(sys.stdout, lineterminator="\n")
    header: list[str] | None = None
    may_be_names = True
    for number, cells in enumerate(csv.reader(sys.stdin), start=1):
        if not cells:
            continue
        is_header, may_be_names = may_be_names and (needs_names or not _all_numbers(cells)), False
        if is_header:
            header = cells
            absent = [name for name in names if name not in header]
            if absent and (needs_names or len(header) != len(names)):
                sys.exit(f"Error: the first line has no column {absent[0]!r}.")
            # A first line of other names for as many columns is a line of names all the same.
            header = list(names) if absent else header
            continue
        values = [None if cell in gaps else cell for cell in cells]
        try:
            if header is not None and len(values) != len(header):
                raise ValueError(f"There are {len(values)} fields, but {len(header)} names in the first line.")
            result = predict(values if header is None else dict(zip(header, values, strict=True)))
        except ValueError as error:
            sys.exit(f"Error in line {number}: {error}")
        # Numbers are written as repr gives them, to the last digit.
        writer.writerow(result if isinstance(result, list) else [result])


def _all_numbers(cells: Sequence[str]) -> bool:
    try:
        for cell in cells:
            float(cell)
    except ValueError:
        return False
    return True
