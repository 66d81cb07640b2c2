"""A small card on a fitted model for notebooks, as HTML."""

from collections.abc import Sequence
from html import escape

import numpy as np

from scne.explain._paragraph import Described, leading_columns
from scne.fitting import FittedNetworks, half_widths
from scne.rows import counted

# Columns with a bar, outputs with numbers of their own, names of sources that are listed, letters of a name.
_BARS, _OUTPUTS, _SOURCES, _LETTERS = 5, 3, 6, 40
_LEVEL, _LEAST_ERRORS = 0.9, 20
# Grey that is seen on white and on black, and the text in the colour of the page: the card fits light and dark ones.
_STYLE = """
.scne-card { display: inline-block; margin: 0.5em 0; padding: 0.6em 0.9em; max-width: 44em; font-family: sans-serif;
  font-size: 0.9em; line-height: 1.45; border: 1px solid rgba(128, 128, 128, 0.5); border-radius: 0.4em;
  overflow-x: auto; }
.scne-card .facts { display: grid; grid-template-columns: max-content auto; gap: 0.1em 1.2em; }
.scne-card .label { opacity: 0.75; }
.scne-card .value { overflow-wrap: anywhere; }
.scne-card .bar { display: inline-block; height: 0.65em; background: #3b82c4; border-radius: 0.15em;
  margin-right: 0.5em; }
"""

Fact = tuple[str, str]  # a label and its text


def model_card(model: FittedNetworks, about: Described, scores: Sequence[Fact] = ()) -> str:
    """The card of a fitted model: rows, columns, networks, errors on held-out rows and the columns that matter most.

    Names of columns and sources come from the user's table and are escaped. `scores` take the place of the errors.
    """
    facts = [*_size(model), *(scores or _errors(model))]
    lines = [_line(escape(label), escape(text)) for label, text in facts]
    lines += _bars(leading_columns(model, about) or [])
    return f'<style>{_STYLE}</style><div class="scne-card"><div class="facts">{"".join(lines)}</div></div>'


def _line(label: str, value: str) -> str:
    """One line of the card, without tables and lists: notebooks give those a style of their own."""
    return f'<span class="label">{label}</span><span class="value">{value}</span>'


def _size(model: FittedNetworks) -> list[Fact]:
    rows = [] if model.n_rows is None else [("rows", f"{model.n_rows:,}")]
    encoder = model.columns.encoder
    columns = f"{model.columns.n_columns if encoder is None else len(encoder.inputs):,}"
    if model.columns.groups:
        shown = [_short(name) for name in list(model.columns.groups)[:_SOURCES]]
        more = ", ..." if len(model.columns.groups) > _SOURCES else ""
        columns += f" ({counted(len(model.columns.groups), 'source')}: {', '.join(shown)}{more})"
    nodes = sum(member.layer.n_nodes for member in model.members)
    networks = f"{len(model.members):,} with {counted(nodes, 'hidden node')}"
    return [*rows, ("columns", columns), ("networks", networks)]


def _errors(model: FittedNetworks) -> list[Fact]:
    """Root mean squared errors and the interval, in units of y; of many outputs none."""
    facts = []
    errors = model.held_out_errors
    if errors is not None and len(errors.model) <= _OUTPUTS:
        beside = [] if errors.linear is None else [f"linear model {_numbers(errors.linear)}"]
        beside.append(f"mean {_numbers(errors.mean)}")
        facts.append(("RMSE on held-out rows", f"{_numbers(errors.model)} ({', '.join(beside)})"))
    known = None if model.calibration is None else model.calibration.errors
    if known is not None and len(known) >= _LEAST_ERRORS and known.shape[1] <= _OUTPUTS:
        facts.append((f"{100 * _LEVEL:.0f} % interval, mean", f"± {_numbers(half_widths(known, _LEVEL))}"))
    return facts


def _bars(columns: list[tuple[str, float]]) -> list[str]:
    """The columns of the largest shares, a bar for each."""
    lines = []
    for name, share in columns[:_BARS]:
        bar = f'<span class="bar" style="width: {8 * share:.2f}em"></span>'
        lines.append(_line(escape(_short(name)), f"{bar}{100 * share:.0f} %"))
    return lines


def _numbers(values: Sequence[float] | np.ndarray) -> str:
    return ", ".join(f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}" for value in np.ravel(values))


def _short(name: str) -> str:
    """A name that does not fill the card.

    >>> _short("x" * 100)[-5:], _short("TEMP")
    ('xx...', 'TEMP')
    """
    name = str(name)
    return name if len(name) <= _LETTERS else f"{name[: _LETTERS - 3]}..."
