"""Fitted networks, one or an ensemble, as content of a file and back."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from scne.fitting import (
    Columns,
    FittedNetworks,
    FittedTrend,
    HeldOutSums,
    Member,
    SolvedWeights,
    Trend,
    split_weights,
)
from scne.models._errors import damaged
from scne.models.file._container import is_column_major
from scne.models.file._held_out import (
    read_calibration,
    read_held_out_errors,
    store_calibration,
    store_held_out_errors,
)
from scne.models.file._parts import (
    StoredMember,
    Tensors,
    are_positions,
    prefixed,
    read_member,
    read_scaling,
    rebuilt_search,
    scaling_tensors,
    search_curves,
)
from scne.models.file._shelf import Shelf, choice, count, count_if_there, field, number
from scne.models.file._system import read_system, read_weight_scale, store_system, store_weight_scale
from scne.ncl import SOLVERS, Choice, EnsembleSystem, Solution, Status, decorrelation_limit
from scne.networks import LOSSES, SQUARED, Loss

# Columns of the input, encoded ones included: a model of few numbers could otherwise claim any number of them.
MOST_COLUMNS = 250_000
_CHOICE_TABLES = ("ridge", "ridges", "decorrelations", "scores", "errors")


def store_networks(model: FittedNetworks, is_ensemble: bool, with_system: bool) -> tuple[dict[str, object], Tensors]:
    """All of a fitted model but its encoder; of a single network there is no lambda, choice or trend."""
    members = _stored_members(model, is_ensemble)
    tensors: Tensors = {}
    for m, member in enumerate(members):
        tensors |= member.to_tensors(f"members.{m}")
    document: dict[str, object] = {
        "n_features_in": int(model.columns.n_columns),
        "feature_names": None if model.columns.names is None else [str(name) for name in model.columns.names],
        "n_outputs": int(model.n_outputs),
        "flat_target": bool(model.columns.flat_target),
        "n_rows": model.n_rows,
        "n_calibration": None if model.calibration is None else len(model.calibration.errors),
        "members": [member.to_record() for member in members],
    }
    if is_ensemble:
        record, more = _store_ensemble(model)
        document |= record
        tensors |= more
    if model.columns.means is not None:
        tensors["column_means"], document["column_means"] = model.columns.means, True
    document |= store_weight_scale(model.weight_scale)
    if not model.loss.is_squared:
        document["loss"] = {"name": model.loss.name, "levels": list(model.loss.levels)}
    if with_system:
        document["system"], sums = store_system("system", model.sums)
        tensors |= sums
        if model.trend.target_shift is not None:
            tensors["system.target_shift"] = model.trend.target_shift
        if model.held_out is not None and is_ensemble:
            record, sums = store_system("held_out", model.held_out.system)
            document["held_out"] = {**record, "fitted_too": model.held_out.fitted_too}
            tensors |= sums
    tensors |= {} if model.calibration is None else store_calibration(model.calibration)
    if model.held_out_errors is not None:
        document["held_out_errors"], tensors["held_out_errors"] = store_held_out_errors(model.held_out_errors)
    return document, tensors | scaling_tensors("target_scaling", model.target_scaling)


def _store_ensemble(model: FittedNetworks) -> tuple[dict[str, object], Tensors]:
    solved, trend = model.solved, model.trend
    tensors: Tensors = {"ridge": solved.ridge, "solution.error_history": solved.solution.error_history}
    document: dict[str, object] = {
        "decorrelation": float(solved.decorrelation),
        "solution": _solution_record(solved.solution),
        "choice": None,
        "system": None,
        "column_groups": list(model.columns.groups),
    }
    if solved.member_weights is not None:
        tensors["member_weights"] = solved.member_weights
    if (trend.share != 1).any():
        tensors["network_share"] = trend.share
    if trend.trend is not None:
        tensors |= {"trend.weights": trend.trend.weights, **scaling_tensors("trend", trend.trend.scaling)}
    for g, columns in enumerate(model.columns.groups.values()):
        tensors[f"column_groups.{g}"] = np.asarray(columns, dtype=np.int64)
    if solved.choice is not None:
        document["choice"] = {
            "decorrelation": float(solved.choice.decorrelation),
            "criterion": solved.choice.criterion,
        }
        tensors |= prefixed("choice", {name: getattr(solved.choice, name) for name in _CHOICE_TABLES})
    return document, tensors


def read_networks(
    document: Mapping[str, object],
    shelf: Shelf,
    *,
    is_ensemble: bool,
    is_searched: bool,
    has_groups: bool,
    ridge: float,
) -> FittedNetworks:
    """The fitted model that a file holds.

    What the estimator is made of is known from the class that the file names, the ridge of a single network from its
    parameters. In files of the first format every network of an estimator that `has_groups` had a group of its own.
    """
    n_columns, n_outputs = count(document, "n_features_in", MOST_COLUMNS), count(document, "n_outputs")
    names = field(document, "feature_names", list, type(None))
    if names is not None and (len(names) != n_columns or not all(isinstance(name, str) for name in names)):
        raise damaged(f"its feature names are not {n_columns} names")
    flat_target = field(document, "flat_target", bool)
    if flat_target and n_outputs > 1:
        raise damaged(f"its target is flat, but it has {n_outputs} outputs")
    target_scaling = read_scaling("target_scaling", shelf, n_outputs)
    stored = [
        read_member(record, f"members.{m}", shelf, n_columns, n_outputs)
        for m, record in enumerate(field(document, "members", list))
    ]
    if not stored:
        raise damaged("it holds no network")
    calibration = read_calibration(document, shelf, n_outputs, sum(member.layer.n_outputs for member in stored))
    if is_ensemble:
        solved = _read_solved(document, shelf, stored)
        trend = _read_trend(shelf, n_columns, n_outputs)
    else:
        solved, trend = _single_weights(stored, is_searched, ridge), FittedTrend.none(n_outputs)
    sums = held_out = None
    # Files of single networks without a system, and all of the first two formats, have no such record.
    if document.get("system") is not None:
        sums, held_out = _read_sums(document, shelf, stored)
        trend = replace(trend, target_shift=shelf.take_if_there("system.target_shift", n_outputs))
    elif is_ensemble:
        field(document, "system", dict, type(None))
    members = tuple(Member(member.name, member.layer, rebuilt_search(member)) for member in stored)
    own_groups = {member.name: member.layer.columns for member in members} if has_groups else {}
    groups = _read_column_groups(document, shelf, n_columns, own_groups) if is_ensemble else {}
    return FittedNetworks(
        Columns(
            n_columns,
            None if names is None else tuple(names),
            groups,
            flat_target,
            # Younger than the format.
            means=shelf.take("column_means", n_columns) if document.get("column_means") is True else None,
        ),
        members,
        solved,
        target_scaling,
        trend,
        sums,
        held_out,
        calibration,
        count_if_there(document, "n_rows"),
        read_weight_scale(document),
        held_out_errors=read_held_out_errors(document, shelf, n_outputs),
        loss=_read_loss(document, n_outputs),
    )


def _read_loss(document: Mapping[str, object], n_outputs: int) -> Loss:
    """What a fit made small; older files, and those of squared errors, do not say."""
    if document.get("loss") is None:
        return SQUARED
    record = field(document, "loss", dict)
    name, levels = choice(record, "name", LOSSES), field(record, "levels", list)
    if not all(isinstance(level, float) and 0 < level < 1 for level in levels):
        raise damaged("the levels of its loss are no numbers between 0 and 1")
    fitting = len(levels) in (1, n_outputs) if name == "quantile" else not levels
    if not fitting or sorted(set(levels)) != levels:
        raise damaged(f"its loss {name!r} has {len(levels)} levels for {n_outputs} outputs, or not in their order")
    return Loss(name, tuple(levels))


def _single_weights(members: list[StoredMember], is_searched: bool, ridge: float) -> SolvedWeights:
    """The weights of one network, which has no lambda and no choice."""
    if len(members) != 1:
        raise damaged(f"it is one network, but it holds {len(members)}")
    if is_searched and (members[0].stop_reason is None or "training_curve" not in members[0].curves):
        raise damaged("the training curve of its search, or the reason for its end, is missing")
    solution = Solution(_joint_weights(members), Status.SOLVED, 0, np.empty(0), solver="naive")
    return SolvedWeights(solution, 0.0, np.array([ridge]), None)


def _read_sums(
    document: Mapping[str, object], shelf: Shelf, members: list[StoredMember]
) -> tuple[EnsembleSystem, HeldOutSums | None]:
    """The Gram system of all rows, and that of the held-out ones, which older files lack."""
    sums = read_system("system", field(document, "system", dict), shelf, members)
    record = document.get("held_out")
    if record is None:
        return sums, None
    fitted_too = field(record, "fitted_too", bool)
    held_out = HeldOutSums(read_system("held_out", record, shelf, members), fitted_too)
    if fitted_too and held_out.system.n_rows >= sums.n_rows:
        raise damaged("more rows were held out than there are")
    return sums, held_out


def _read_solved(document: Mapping[str, object], shelf: Shelf, members: list[StoredMember]) -> SolvedWeights:
    if len({member.name for member in members}) != len(members):
        raise damaged("two of its networks have the same name")
    solution = _read_solution(field(document, "solution", dict), shelf, members)
    decorrelation = number(document, "decorrelation")
    member_weights = _read_member_weights(shelf, len(members))
    if decorrelation >= decorrelation_limit(len(members), member_weights):
        raise damaged(f"its decorrelation is {decorrelation}, which is too much for {len(members)} networks")
    return SolvedWeights(
        solution,
        decorrelation,
        _read_ridge("ridge", shelf, len(members)),
        _read_choice(field(document, "choice", dict, type(None)), shelf, len(members)),
        member_weights,
    )


def _read_member_weights(shelf: Shelf, n_members: int) -> NDArray[np.float64] | None:
    weights = shelf.take_if_there("member_weights", n_members)
    if weights is not None and not ((weights > 0).all() and (weights < 1).all() and abs(weights.sum() - 1) < 1e-6):
        raise damaged("tensor 'member_weights' holds numbers that are no weights of networks")
    return weights


def _read_ridge(name: str, shelf: Shelf, *shape: int | None) -> NDArray[np.float64]:
    ridge = shelf.take(name, *shape)
    if not (ridge >= 0).all():
        raise damaged(f"tensor {name!r} holds negative numbers")
    return ridge


def _read_trend(shelf: Shelf, n_columns: int, n_outputs: int) -> FittedTrend:
    share = shelf.take_if_there("network_share", n_outputs)
    if share is not None and not ((share >= 0) & (share <= 1)).all():
        raise damaged("tensor 'network_share' holds numbers that are no shares")
    share = np.ones(n_outputs) if share is None else share
    weights = shelf.take_if_there("trend.weights", n_columns, n_outputs)
    trend = None if weights is None else Trend(read_scaling("trend", shelf, n_columns), weights)
    if (share != 1).any():
        return FittedTrend("blended", trend, share)
    return FittedTrend("none" if trend is None else "taken off", trend, share)


def _read_column_groups(
    document: Mapping[str, object], shelf: Shelf, n_columns: int, first_format: dict[str, NDArray[np.intp]]
) -> dict[str, NDArray[np.intp]]:
    if "column_groups" not in document:
        return first_format
    groups: dict[str, NDArray[np.intp]] = {}
    for g, name in enumerate(field(document, "column_groups", list)):
        columns = shelf.take_integers(f"column_groups.{g}", None)
        if not isinstance(name, str) or name in groups or not are_positions(columns, n_columns):
            raise damaged(
                f"tensor 'column_groups.{g}' names columns that the input does not have, or one twice, or its group "
                "has no name of its own"
            )
        groups[name] = columns
    return groups


def _stored_members(model: FittedNetworks, is_ensemble: bool) -> list[StoredMember]:
    members = []
    for member, beta in zip(model.members, split_weights(model.solved.solution.weights, model.layers), strict=True):
        search, layer = member.search, member.layer
        curves = search_curves(search)
        if not is_ensemble:
            curves = {name: curve for name, curve in curves.items() if name in ("training_curve", "validation_curve")}
        direct = beta[layer.n_nodes :] if layer.direct_link else None
        reason = None if search is None else search.stop_reason
        members.append(StoredMember(member.name, layer, beta[: layer.n_nodes], direct, curves, reason))
    return members


def _solution_record(solution: Solution) -> dict[str, object]:
    """How the weights were found; every iterate of them would be as large as the model many times over."""
    return {
        "status": solution.status.name,
        "n_iter": int(solution.n_iter),
        "spectral_radius": _number(solution.spectral_radius),
        "solver": solution.solver,
        "decorrelation_bound": _number(solution.decorrelation_bound),
        "detail": solution.detail,
    }


def _joint_weights(members: list[StoredMember]) -> np.ndarray:
    joint = np.concatenate([member.joint_weights for member in members])
    # The weights are slices of one array, and have its order in memory.
    in_columns = any(is_column_major(member.output_weights) for member in members)
    return np.asfortranarray(joint) if in_columns else np.ascontiguousarray(joint)


def _read_solution(record: Mapping[str, object], shelf: Shelf, members: list[StoredMember]) -> Solution:
    history = shelf.take("solution.error_history", None)
    if not len(history):
        raise damaged("tensor 'solution.error_history' is empty")
    n_iter = field(record, "n_iter", int)
    if not 0 <= n_iter < 2**62:
        raise damaged(f"'n_iter' in its metadata is {n_iter}, which is not a number of iterations")
    return Solution(
        weights=_joint_weights(members),
        status=Status[choice(record, "status", Status.__members__)],
        n_iter=n_iter,
        error_history=history,
        radius=field(record, "spectral_radius", float, type(None)),
        solver=choice(record, "solver", SOLVERS),
        decorrelation_bound=field(record, "decorrelation_bound", float, type(None)),
        detail=field(record, "detail", str),
    )


def _read_choice(record: Mapping[str, object] | None, shelf: Shelf, n_members: int) -> Choice | None:
    if record is None:
        return None
    ridges = _read_ridge("choice.ridges", shelf, None, n_members)
    decorrelations = shelf.take("choice.decorrelations", None)
    table = (len(ridges), len(decorrelations))
    if 0 in table:
        raise damaged("the table from which its lambda and ridge were chosen is empty")
    return Choice(
        decorrelation=number(record, "decorrelation"),
        ridge=_read_ridge("choice.ridge", shelf, n_members),
        ridges=ridges,
        decorrelations=decorrelations,
        scores=shelf.take("choice.scores", *table),
        errors=shelf.take("choice.errors", *table),
        criterion=field(record, "criterion", str),
    )


def _number(value: float | None) -> float | None:
    return None if value is None else float(value)
