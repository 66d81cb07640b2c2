"""What a fit chose and why, in one paragraph of plain English."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scne.explain._group_importances import group_importances
from scne.fitting import SCORE_SLACK, FittedNetworks, half_widths
from scne.ncl import Choice, Status, decorrelation_limit
from scne.rows import counted, listed

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


@dataclass(frozen=True)
class Described:
    """What is said of a fitted model beyond what it holds: the `kind` is its class, an `ensemble` may have one network.

    `search_rows` are those that were asked for, None for all; nodes may have been tuned after the search; `importances`
    measures the share of each column when it is called.
    """

    kind: str
    ensemble: bool
    search_rows: int | None
    tuned: bool
    importances: Callable[[], NDArray[np.float64]]


def paragraph(model: FittedNetworks, about: Described) -> str:
    """The sentences that apply to a fitted network or ensemble."""
    parts = (_rows, _networks, _stops, _lambda, _choice, _trend, _errors, _intervals, _members, _columns, _solver)
    return " ".join(sentence for part in parts if (sentence := part(model, about)))


def _rows(model: FittedNetworks, about: Described) -> str:
    kind, columns = about.kind, counted(model.columns.n_columns, "column")
    # A memory budget may have left fewer than were asked for.
    n_rows, searched = model.n_rows, (model.columns.data or {}).get("search_rows") or about.search_rows
    if n_rows is None:
        return f"This {kind} takes {columns}."
    sample = ""
    if _searches(model) and searched is not None and searched < n_rows:
        sample = f", with nodes searched on a sample of {searched:,} rows"
    return f"This {kind} was fitted on {n_rows:,} rows of {columns}{sample}."


def _networks(model: FittedNetworks, about: Described) -> str:
    how = "" if _searches(model) else ", drawn at random"
    sizes = [member.layer.n_nodes for member in model.members]
    if not about.ensemble:
        return f"It is one network of {counted(sizes[0], 'hidden node')}{how}."
    if min(sizes) == max(sizes):
        each = f"{sizes[0]} each"
    elif len(sizes) <= _NAMED:
        each = ", ".join(f"{member.name}: {member.layer.n_nodes}" for member in model.members)
    else:
        each = f"{min(sizes)} to {max(sizes)} each"
    return f"It holds {counted(len(sizes), 'network')} with {sum(sizes):,} hidden nodes in all ({each}){how}."


def _stops(model: FittedNetworks, about: Described) -> str:
    """Why building ended, the networks taken together, and what was cut off again."""
    if not _searches(model):
        return ""
    searches = [member.search for member in model.members if member.search is not None]
    reasons = Counter(search.stop_reason.value for search in searches)
    built = sum(len(search.training_curve) for search in searches)
    n_nodes = sum(member.layer.n_nodes for member in model.members)
    if len(reasons) == 1:
        words = f"Building stopped because {next(iter(reasons))}"
    else:
        stopped = [f"{counted(count, 'network')} stopped because {reason}" for reason, count in reasons.most_common()]
        words = listed(stopped)
    if built > n_nodes:
        words += f"; {n_nodes:,} of {built:,} nodes were kept, up to the lowest error on held-out rows"
    tuned = " All nodes of a network were then tuned together." if about.tuned else ""
    return f"{words}.{tuned}"


def _lambda(model: FittedNetworks, about: Described) -> str:
    if not about.ensemble:
        return ""
    ridges = sorted({float(ridge) for ridge in model.solved.ridge})
    ridge = _number(ridges[0]) if len(ridges) == 1 else f"between {_number(ridges[0])} and {_number(ridges[-1])}"
    n_members, decorrelation = len(model.members), model.solved.decorrelation
    if n_members == 1:
        return f"The ridge is {ridge}."
    weights = model.solved.member_weights
    limit = decorrelation_limit(n_members, weights)
    share = 100 * decorrelation / limit
    # 99.99 % of the way is not the whole way.
    percent = f"{share:.4g}" if share > 99 else f"{share:.0f}"
    if weights is not None:
        return (
            f"The networks have weights between {weights.min():.3g} and {weights.max():.3g} in the output. Lambda is "
            f"{decorrelation:.5g}, {percent} % of the way from their weighted average (0) to the end of its range "
            f"({limit:.5g}), and the ridge is {ridge}."
        )
    return (
        f"Lambda is {decorrelation:.5g}, {percent} % of the way from a plain average of the networks (0) to one "
        f"joint fit of all their nodes ({limit:.5g}), and the ridge is {ridge}."
    )


def _choice(model: FittedNetworks, about: Described) -> str:
    if not about.ensemble:
        return ""
    choice = model.solved.choice
    if choice is None:
        return "Both were given, not chosen." if len(model.members) > 1 else "It was given, not chosen."
    n_lambdas, n_ridges = len(choice.decorrelations), len(choice.ridges)
    if n_lambdas > 1 and n_ridges > 1:
        which = f"Among {n_lambdas} lambdas and {n_ridges} ridges, this pair"
    else:
        which = f"Among {n_lambdas} lambdas, this one" if n_lambdas > 1 else f"Among {n_ridges} ridges, this one"
    error = "squared error" if model.loss.is_squared else "weighted squared error"
    judge = f"{error} on held-out rows" if choice.criterion == "held-out rows" else f"score of {choice.criterion}"
    return (
        f"{which} has the lowest {judge}, or is closer to a plain average and within {100 * SCORE_SLACK:.1g} % of it."
    )


def _trend(model: FittedNetworks, about: Described) -> str:
    """What part of the output is a straight line."""
    if model.trend.mode == "none":
        return ""
    shares = 100 * (1.0 - model.trend.share)
    if model.trend.mode == "taken off":
        return "A linear trend was taken off the target before the networks were built, and is added to their output."
    parts = listed([f"{share:.2g} %" if share < 10 else f"{share:.0f} %" for share in shares[:_NAMED]])
    of = "of the output" if len(shares) == 1 else "of the outputs"
    return f"A linear trend contributes {parts} {of}, a share chosen on held-out rows."


def _errors(model: FittedNetworks, about: Described) -> str:
    """The error to expect on new rows, and that on the rows of the fit."""
    if model.loss.link == "sorted":
        # Levels of a quantile are not meant to be close to the targets.
        return ""
    choice, training, errors = model.solved.choice, _training_error(model, about), model.calibration
    if model.trend.mode == "blended":
        # Both are those of the networks alone.
        choice = training = None
    if not model.loss.is_squared:
        # Their scores are losses, weighted row by row, and their history has the mean loss of each round.
        choice = training = errors = None
    unit = "" if model.n_outputs > 1 else " in units of y"
    fitted = "" if training is None else f"; on the training rows it is {_in_units(model, training)}"
    others = _baselines(model)
    if choice is not None:
        error = _in_units(model, np.sqrt(_chosen_score(choice)))
        blind = _searches(model) and choice.criterion != "held-out rows"
        doubt = ", or larger, because the nodes were chosen on the same rows" if blind else ""
        return f"The root mean squared error to expect on new rows is about {error}{unit}{doubt}{fitted}.{others}"
    known = None if errors is None or errors.scale is not None else errors.errors
    if known is None and model.held_out_errors is not None:
        known = model.held_out_errors.model
    if known is not None:
        scaled = np.sqrt(np.square(known / model.target_scaling.scale).mean())
        return f"The root mean squared error on held-out rows is {_in_units(model, scaled)}{unit}{fitted}.{others}"
    if training is None:
        return ""
    return f"The root mean squared error on the training rows is {_in_units(model, training)}{unit}."


def _baselines(model: FittedNetworks) -> str:
    """What simpler models would do."""
    errors = model.held_out_errors
    if errors is None:
        return ""

    def together(each: NDArray[np.float64]) -> str:
        return _in_units(model, float(np.sqrt(np.square(each / model.target_scaling.scale).mean())))

    line = "" if errors.linear is None else f"{together(errors.linear)} for a linear model and "
    return f" On held-out rows it would be {line}{together(errors.mean)} for the mean alone."


def _training_error(model: FittedNetworks, about: Described) -> float | None:
    if about.ensemble:
        curve = model.solved.solution.error_history
        return float(curve[-1]) if len(curve) else None
    member = model.members[0]
    if member.search is None or about.tuned:
        return None
    # The curve goes on past the nodes that were kept, and it knows nothing of a later tuning.
    curve = member.search.training_curve
    return float(curve[min(member.layer.n_nodes, len(curve)) - 1])


def _intervals(model: FittedNetworks, about: Described) -> str:
    errors = None if model.calibration is None else model.calibration.errors
    if errors is None or len(errors) < _LEAST_ERRORS or errors.shape[1] > _NAMED:
        return ""
    widths = half_widths(errors, _LEVEL)
    each = " (one number for each output)" if len(widths) > 1 else ""
    reach = listed([_number(float(width)) for width in widths])
    if model.calibration is not None and model.calibration.scale is not None:
        return (
            f"About {100 * _LEVEL:.0f} % of new rows should lie within {reach}{each} of their prediction on average, "
            "in intervals that are wider where errors are larger."
        )
    return f"About {100 * _LEVEL:.0f} % of new rows should lie within {reach}{each} of their prediction."


def _members(model: FittedNetworks, about: Described) -> str:
    """The networks whose loss would cost most."""
    n_networks = len(model.members)
    if n_networks < 2 or model.sums is None:
        return ""
    if n_networks > _LEAVE_OUT_NETWORKS or n_networks * float(model.sums.n_nodes) ** 3 > _LEAVE_OUT_WORK:
        return "See group_importances_ for the networks that matter most."
    importances = group_importances(model)
    scale = model.target_scaling.scale
    errors = np.sqrt(np.square(np.reshape(importances.errors_without, (-1, len(scale))) / scale).mean(axis=1))
    whole = float(np.sqrt(np.square(np.reshape(importances.error, -1) / scale).mean()))
    rises = errors - whole
    worth = [m for m in np.argsort(-rises, kind="stable")[:_MOST_IMPORTANT] if rises[m] > _WORTH_NAMING * whole]
    if not worth:
        return f"No single network matters much: leaving one out raises the error on {importances.rows} by 1 % at most."
    named = [f"{importances.names[m]} (by {_in_units(model, rises[m])})" for m in worth]
    return f"Leaving out a network raises the error on {importances.rows} the most for {listed(named)}."


def _columns(model: FittedNetworks, about: Described) -> str:
    leading = leading_columns(model, about)
    if leading is None:
        return "See feature_importances_ for the columns that matter most."
    if not leading:
        return "Its output is the same for every row."
    named = [f"{name} ({100 * share:.0f} %)" for name, share in leading[:_MOST_IMPORTANT] if share >= _WORTH_NAMING]
    return f"Most influential: {listed(named)}." if named else ""


def leading_columns(model: FittedNetworks, about: Described) -> list[tuple[str, float]] | None:
    """Names of the columns and their shares of the variance of the output, the largest first.

    None where they take too long to measure, and empty where the output is the same for every row.
    """
    layers, _ = model.terms()
    n_weights = sum(int(np.count_nonzero(layer.weights)) for layer in layers)
    if sum(len(layer.columns) for layer in layers) > _COLUMNS_TO_MEASURE or n_weights > _WEIGHTS_TO_MEASURE:
        return None
    shares = about.importances()
    if not shares.any():
        return []
    encoder = model.columns.encoder
    names: Sequence[str] = model.columns.names or []
    if encoder is not None:
        names = [] if encoder.by_position else encoder.inputs
    names = names or [f"column {place}" for place in range(len(shares))]
    return [(names[place], float(shares[place])) for place in np.argsort(-shares, kind="stable")]


def _solver(model: FittedNetworks, about: Described) -> str:
    if not about.ensemble:
        return ""
    solution = model.solved.solution
    if solution.status is Status.SOLVED:
        return ""
    message = solution.message.rstrip(".")
    return f"The output weights come from solver {solution.solver!r}: {message[0].lower()}{message[1:]}."


def _chosen_score(choice: Choice) -> float:
    ridge = int(np.argmin(np.abs(choice.ridges - choice.ridge).sum(axis=1)))
    return float(choice.scores[ridge, int(np.argmin(np.abs(choice.decorrelations - choice.decorrelation)))])


def _searches(model: FittedNetworks) -> bool:
    return all(member.search is not None for member in model.members)


def _in_units(model: FittedNetworks, scaled: float) -> str:
    """An error in units of y; of several outputs, whose units may differ, in those of the scaled targets."""
    if model.n_outputs > 1:
        return f"{_number(scaled)} of the targets' scale"
    return _number(scaled * float(model.target_scaling.scale[0]))


def _number(value: float) -> str:
    """Three digits, or all before the point.

    Examples
    --------
    >>> [_number(value) for value in (0.0, 0.012345, 3.0, 54321.6)]
    ['0', '0.0123', '3', '54,322']
    """
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"
