"""What a fit chose and why, in one paragraph of plain English."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from scne.fitting import SCORE_SLACK, half_widths
from scne.ncl import Choice, decorrelation_limit

# Networks, and outputs, up to which each is named.
_NAMED = 6
_MOST_IMPORTANT = 3
# A network that raises the error by less than this share is not worth a name.
_WORTH_NAMING = 0.01
# Networks, and networks times the third power of nodes, up to which each network is left out in turn: about a second
# of work, such as that of six networks of 280 nodes each.
_LEAVE_OUT_NETWORKS, _LEAVE_OUT_WORK = 100, 3e10
# Columns, counted for each network that sees them, and weights of nodes up to which the importance of columns is
# measured: about two seconds for so many.
_COLUMNS_TO_MEASURE, _WEIGHTS_TO_MEASURE = 30_000, 1_000_000
# The interval that is told, and the held-out rows from which it is one.
_LEVEL, _LEAST_ERRORS = 0.9, 20


def paragraph(model: Any) -> str:
    """The sentences that apply to a fitted network or ensemble."""
    parts = (_rows, _networks, _stops, _road, _choice, _trend, _errors, _intervals, _members, _columns, _solver)
    return " ".join(sentence for part in parts if (sentence := part(model)))


def _rows(model: Any) -> str:
    kind, columns = type(model).__name__, _count(model.n_features_in_, "column")
    # A memory budget may have left fewer than were asked for.
    n_rows, searched = model.n_rows_, getattr(model, "data_", {}).get("search_rows") or _base(model)._search_rows()
    if n_rows is None:
        return f"This {kind} takes {columns}."
    sample = ""
    if _searches(model) and searched is not None and searched < n_rows:
        sample = f", its nodes searched on a sample of {searched:,} of them"
    return f"This {kind} was fitted on {n_rows:,} rows of {columns}{sample}."


def _networks(model: Any) -> str:
    how = "" if _searches(model) else ", drawn at random"
    if not _is_ensemble(model):
        return f"It is one network of {_count(model.n_hidden_, 'hidden node')}{how}."
    sizes = model.n_hidden_
    if len(sizes) <= _NAMED:
        each = ", ".join(f"{name}: {size}" for name, size in zip(model.groups_, sizes, strict=True))
    else:
        each = f"{min(sizes)} to {max(sizes)} each" if min(sizes) < max(sizes) else f"{sizes[0]} each"
    return f"It holds {_count(len(sizes), 'network')} with {sum(sizes):,} hidden nodes in all ({each}){how}."


def _stops(model: Any) -> str:
    """Why building ended, the networks taken together, and what was cut off again."""
    if not _searches(model):
        return ""
    if _is_ensemble(model):
        searches = [member.search for member in model.members_]
        reasons = Counter(search.stop_reason.value for search in searches)
        built, kept = sum(len(search.training_curve) for search in searches), sum(model.n_hidden_)
    else:
        reasons, built, kept = Counter([model.stop_reason_]), len(model.loss_curve_), model.n_hidden_
    if len(reasons) == 1:
        words = f"Building stopped because {next(iter(reasons))}"
    else:
        stopped = [f"of {count} because {reason}" for reason, count in reasons.most_common()]
        words = f"Building stopped {_listed(stopped)}"
    if built > kept:
        words += f"; of {built:,} nodes {kept:,} were kept, up to the least error on held-out rows"
    tuned = " All nodes of a network were then tuned together." if getattr(_base(model), "tuning_epochs", 0) else ""
    return f"{words}.{tuned}"


def _road(model: Any) -> str:
    if not _is_ensemble(model):
        return ""
    ridges = sorted({float(ridge) for ridge in model.ridge_})
    ridge = _number(ridges[0]) if len(ridges) == 1 else f"between {_number(ridges[0])} and {_number(ridges[-1])}"
    n_members = len(model.groups_)
    if n_members == 1:
        return f"The ridge is {ridge}."
    limit = decorrelation_limit(n_members)
    share = 100 * model.decorrelation_ / limit
    # 99.99 % of the way is not the whole way.
    percent = f"{share:.4g}" if share > 99 else f"{share:.0f}"
    return (
        f"Lambda is {model.decorrelation_:.5g}, {percent} % of the way from a plain average of the networks (0) to one "
        f"joint fit of all their nodes ({limit:.5g}), and the ridge is {ridge}."
    )


def _choice(model: Any) -> str:
    if not _is_ensemble(model):
        return ""
    choice = model.choice_
    if choice is None:
        return "Neither was chosen: they were given." if len(model.groups_) > 1 else "It was given."
    n_lambdas, n_ridges = len(choice.decorrelations), len(choice.ridges)
    if n_lambdas > 1 and n_ridges > 1:
        which = f"Of {n_lambdas} lambdas and {n_ridges} ridges this pair"
    else:
        which = f"Of {n_lambdas} lambdas this one" if n_lambdas > 1 else f"Of {n_ridges} ridges this one"
    judge = "squared error on held-out rows" if choice.criterion == "held-out rows" else f"score of {choice.criterion}"
    return f"{which} has the least {judge}, or is nearer to a plain average and within {100 * SCORE_SLACK:.1g} % of it."


def _trend(model: Any) -> str:
    """What part of the output is a straight line."""
    if getattr(model, "trend_", None) is None:
        return ""
    shares = 100 * (1.0 - model.network_share_)
    if not shares.any():
        return "A linear trend was taken off the target before the networks were built, and is added to their output."
    parts = _listed([f"{share:.2g} %" if share < 10 else f"{share:.0f} %" for share in shares[:_NAMED]])
    of = "of the output" if len(shares) == 1 else "of the outputs"
    return f"The held-out rows left {parts} {of} to a linear trend."


def _errors(model: Any) -> str:
    """The error to expect on new rows, and that on the rows of the fit."""
    choice = getattr(model, "choice_", None)
    training = _training_error(model)
    if _is_ensemble(model) and (model.network_share_ != 1).any():
        # Both are those of the networks alone.
        choice = training = None
    unit = "" if model.n_outputs_ > 1 else " in units of y"
    fitted = "" if training is None else f"; on the rows of the fit it is {_in_units(model, training)}"
    if choice is not None:
        error = _in_units(model, np.sqrt(_chosen_score(choice)))
        blind = _searches(model) and choice.criterion != "held-out rows"
        doubt = ", or larger, because the nodes were chosen on the same rows" if blind else ""
        return f"The root mean squared error to expect on new rows is about {error}{unit}{doubt}{fitted}."
    if model.calibration_ is not None:
        scaled = np.sqrt(np.square(model.calibration_ / model.target_scaling_.scale).mean())
        return f"The root mean squared error on held-out rows is {_in_units(model, scaled)}{unit}{fitted}."
    if training is None:
        return ""
    return f"The root mean squared error on its own rows is {_in_units(model, training)}{unit}."


def _training_error(model: Any) -> float | None:
    curve = getattr(model, "loss_curve_", None)
    if curve is None or not len(curve):
        return None
    if _is_ensemble(model):
        return float(curve[-1])
    # Of a single network the curve goes on past the nodes that were kept, and it knows nothing of a later tuning.
    return None if getattr(model, "tuning_epochs", 0) else float(curve[min(model.n_hidden_, len(curve)) - 1])


def _intervals(model: Any) -> str:
    errors = model.calibration_
    if errors is None or len(errors) < _LEAST_ERRORS or errors.shape[1] > _NAMED:
        return ""
    widths = half_widths(model, _LEVEL)
    each = " (one number for each output)" if len(widths) > 1 else ""
    reach = _listed([_number(float(width)) for width in widths])
    return f"About {100 * _LEVEL:.0f} % of new rows should lie within {reach}{each} of their prediction."


def _members(model: Any) -> str:
    """The networks whose loss would cost most."""
    if not _is_ensemble(model) or len(model.groups_) < 2 or not hasattr(model, "system_"):
        return ""
    n_networks = len(model.groups_)
    if n_networks > _LEAVE_OUT_NETWORKS or n_networks * float(model.system_.n_nodes) ** 3 > _LEAVE_OUT_WORK:
        return "Which networks matter most is what group_importances() says."
    found = model.group_importances()
    scale = model.target_scaling_.scale
    errors = np.sqrt(np.square(np.reshape(found.errors_without, (-1, len(scale))) / scale).mean(axis=1))
    whole = float(np.sqrt(np.square(np.reshape(found.error, -1) / scale).mean()))
    rises = errors - whole
    worth = [m for m in np.argsort(-rises, kind="stable")[:_MOST_IMPORTANT] if rises[m] > _WORTH_NAMING * whole]
    if not worth:
        return f"No network matters by itself: leaving one out raises the error on {found.rows} by 1 % at most."
    named = [f"{found.names[m]} (by {_in_units(model, rises[m])})" for m in worth]
    return f"Leaving a network out raises the error on {found.rows} most for {_listed(named)}."


def _columns(model: Any) -> str:
    layers = model._layers()
    n_weights = sum(int(np.count_nonzero(layer.weights)) for layer in layers)
    if sum(len(layer.columns) for layer in layers) > _COLUMNS_TO_MEASURE or n_weights > _WEIGHTS_TO_MEASURE:
        return "Which columns matter most is what feature_importances_ says."
    shares = model.feature_importances_
    if not shares.any():
        return "Its output is the same for every row."
    names = getattr(model, "feature_names_in_", None)
    names = [f"column {place}" for place in range(len(shares))] if names is None else names
    order = [place for place in np.argsort(-shares, kind="stable")[:_MOST_IMPORTANT] if shares[place] >= _WORTH_NAMING]
    named = [f"{names[place]} ({100 * shares[place]:.0f} %)" for place in order]
    return f"What moves its output most is {_listed(named)}." if named else ""


def _solver(model: Any) -> str:
    if not _is_ensemble(model):
        return ""
    message = model.solution_.message.rstrip(".")
    return f"The output weights come from solver {model.solution_.solver!r}: {message[0].lower()}{message[1:]}."


def _chosen_score(choice: Choice) -> float:
    ridge = int(np.argmin(np.abs(choice.ridges - choice.ridge).sum(axis=1)))
    return float(choice.scores[ridge, int(np.argmin(np.abs(choice.decorrelations - choice.decorrelation)))])


def _base(model: Any) -> Any:
    """The network, or the one of which an ensemble has copies."""
    return model._template() if _is_ensemble(model) else model


def _is_ensemble(model: Any) -> bool:
    return hasattr(model, "members_")


def _searches(model: Any) -> bool:
    if _is_ensemble(model):
        return all(member.search is not None for member in model.members_)
    return hasattr(model, "stop_reason_")


def _in_units(model: Any, scaled: float) -> str:
    """An error in units of y; of several outputs, whose units may differ, in those of the scaled targets."""
    if model.n_outputs_ > 1:
        return f"{_number(scaled)} of the targets' scale"
    return _number(scaled * float(model.target_scaling_.scale[0]))


def _number(value: float) -> str:
    """Three digits, or all before the point.

    Examples
    --------
    >>> [_number(value) for value in (0.0, 0.012345, 3.0, 54321.6)]
    ['0', '0.0123', '3', '54,322']
    """
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _listed(parts: Iterable[str]) -> str:
    """Words with commas, and "and" before the last.

    Examples
    --------
    >>> _listed(["a"]), _listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    words: Sequence[str] = list(parts)
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)
