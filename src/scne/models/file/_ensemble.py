"""An ensemble, `SCNERegressor` or `DNNERegressor`, as content of a file and back."""

from typing import Any

import numpy as np

from scne.estimators import BlendedSystem, SCNERegressor
from scne.fitting import HeldOutSums, Member, SolvedWeights, Trend
from scne.models._errors import damaged
from scne.models.file._parts import (
    StoredMember,
    Tensors,
    are_positions,
    prefixed,
    read_scaling,
    rebuilt_search,
    scaling_tensors,
    search_curves,
)
from scne.models.file._shelf import Shelf, choice, field, number
from scne.models.file._system import read_system, read_weight_scale, store_system, store_weight_scale
from scne.ncl import SOLVERS, Choice, EnsembleSystem, Solution, Status, decorrelation_limit


def store_ensemble(model: SCNERegressor, with_system: bool) -> tuple[dict[str, Any], Tensors]:
    """The fitted parts of an ensemble."""
    members = _stored_members(model)
    tensors: Tensors = {"ridge": model.ridge_, "solution.error_history": model.solution_.error_history}
    for m, member in enumerate(members):
        tensors |= member.to_tensors(f"members.{m}")
    document: dict[str, Any] = {
        "members": [member.to_record() for member in members],
        "decorrelation": float(model.decorrelation_),
        "solution": _solution_record(model.solution_),
        "choice": None,
        "system": None,
        "column_groups": list(model.column_groups_),
        **store_weight_scale(model),
    }
    if (model.network_share_ != 1).any():
        tensors["network_share"] = model.network_share_
    if model.trend_ is not None:
        tensors |= {"trend.weights": model.trend_.weights, **scaling_tensors("trend", model.trend_.scaling)}
    for g, columns in enumerate(model.column_groups_.values()):
        tensors[f"column_groups.{g}"] = np.asarray(columns, dtype=np.int64)
    if model.choice_ is not None:
        document["choice"] = {
            "decorrelation": float(model.choice_.decorrelation),
            "criterion": model.choice_.criterion,
        }
        tensors |= prefixed("choice", {name: getattr(model.choice_, name) for name in _CHOICE_TABLES})
    if with_system:
        document["system"], sums = store_system("system", getattr(model, "system_", None))
        tensors |= sums
        system = model.system_
        if isinstance(system, BlendedSystem):
            tensors["system.target_shift"] = system.target_shift
        held_out = model.held_out_
        if held_out is not None:
            record, sums = store_system("held_out", held_out.system)
            document["held_out"] = {**record, "fitted_too": held_out.fitted_too}
            tensors |= sums
    return document, tensors


def fill_ensemble(model: SCNERegressor, members: list[StoredMember], document: dict[str, Any], shelf: Shelf) -> None:
    """Give an unfitted ensemble the fitted parts of a file."""
    layers = [member.layer for member in members]
    if len({member.name for member in members}) != len(members):
        raise damaged("two of its networks have the same name")
    # Searched or drawn: the networks of an ensemble are copies of one base model.
    if len({member.stop_reason is None for member in members}) != 1:
        raise damaged("some of its networks were searched and some were not")
    model.members_ = tuple(Member(member.name, member.layer, rebuilt_search(member)) for member in members)
    model.groups_ = {member.name: member.layer.columns for member in members}
    model.trend_ = _read_trend(shelf, model)
    share = shelf.take_if_there("network_share", model.n_outputs_)
    if share is not None and not ((share >= 0) & (share <= 1)).all():
        raise damaged("tensor 'network_share' holds numbers that are no shares")
    model.network_share_ = np.ones(model.n_outputs_) if share is None else share
    model.weight_scale_ = read_weight_scale(document)
    model.column_groups_ = _read_column_groups(document, shelf, model)
    model.n_hidden_ = [layer.n_nodes for layer in layers]
    model.input_weights_ = [layer.weights for layer in layers]
    model.biases_ = [layer.biases for layer in layers]
    if field(document, "system", dict, type(None)) is not None:
        model.system_ = read_system("system", document["system"], shelf, members)
        shift = shelf.take_if_there("system.target_shift", model.n_outputs_)
        if shift is not None:
            model.system_ = BlendedSystem.of(model.system_, shift)
        model.held_out_ = _read_held_out(document.get("held_out"), shelf, members)
        if model.held_out_ is not None:
            _check_held_out(model.held_out_, model.system_)
    model._store(
        SolvedWeights(
            _read_solution(field(document, "solution", dict), shelf, members),
            _read_decorrelation(document, len(members)),
            _read_ridge("ridge", shelf, len(members)),
            _read_choice(field(document, "choice", dict, type(None)), shelf, len(members)),
        )
    )


def _read_decorrelation(record: Any, n_members: int) -> float:
    value = number(record, "decorrelation")
    if value >= decorrelation_limit(n_members):
        raise damaged(f"its decorrelation is {value}, which is too much for {n_members} networks")
    return value


def _read_ridge(name: str, shelf: Shelf, *shape: int | None) -> Any:
    ridge = shelf.take(name, *shape)
    if not (ridge >= 0).all():
        raise damaged(f"tensor {name!r} holds negative numbers")
    return ridge


def _read_trend(shelf: Shelf, model: SCNERegressor) -> Trend | None:
    d = model.n_features_in_
    weights = shelf.take_if_there("trend.weights", d, model.n_outputs_)
    if weights is None:
        return None
    return Trend(read_scaling("trend", shelf, d), weights)


def _read_column_groups(document: dict[str, Any], shelf: Shelf, model: SCNERegressor) -> dict[str, Any]:
    # In files of the first format every network had a group of its own.
    if "column_groups" not in document:
        return dict(model.groups_) if model.groups is not None or hasattr(model, "encoder_") else {}
    found = {}
    for g, name in enumerate(field(document, "column_groups", list)):
        columns = shelf.take_integers(f"column_groups.{g}", None)
        if not isinstance(name, str) or name in found or not are_positions(columns, model.n_features_in_):
            raise damaged(
                f"tensor 'column_groups.{g}' names columns that the input does not have, or one twice, or its group "
                "has no name of its own"
            )
        found[name] = columns
    return found


_CHOICE_TABLES = ("ridge", "ridges", "decorrelations", "scores", "errors")


def _stored_members(model: SCNERegressor) -> list[StoredMember]:
    direct = model.direct_weights_
    return [
        StoredMember(
            member.name,
            member.layer,
            output_weights,
            direct[m] if direct is not None and member.layer.direct_link else None,
            search_curves(member.search),
            None if member.search is None else member.search.stop_reason,
        )
        for m, (member, output_weights) in enumerate(zip(model.members_, model.output_weights_, strict=True))
    ]


def _solution_record(solution: Solution) -> dict[str, Any]:
    """How the weights were found; every iterate of them would be as large as the model many times over."""
    return {
        "status": solution.status.name,
        "n_iter": int(solution.n_iter),
        "spectral_radius": _number(solution.spectral_radius),
        "solver": solution.solver,
        "decorrelation_bound": _number(solution.decorrelation_bound),
        "detail": solution.detail,
    }


def _read_solution(record: dict[str, Any], shelf: Shelf, members: list[StoredMember]) -> Solution:
    joint = np.concatenate([member.joint_weights for member in members])
    # The ensemble's weights are slices of one array, and have its order in memory.
    in_columns = any(_is_column_major(member.output_weights) for member in members)
    history = shelf.take("solution.error_history", None)
    if not len(history):
        raise damaged("tensor 'solution.error_history' is empty")
    n_iter = field(record, "n_iter", int)
    if not 0 <= n_iter < 2**62:
        raise damaged(f"'n_iter' in its metadata is {n_iter}, which is no number of iterations")
    return Solution(
        weights=np.asfortranarray(joint) if in_columns else np.ascontiguousarray(joint),
        status=Status[choice(record, "status", Status.__members__)],
        n_iter=n_iter,
        error_history=history,
        spectral_radius=field(record, "spectral_radius", float, type(None)),
        solver=choice(record, "solver", SOLVERS),
        decorrelation_bound=field(record, "decorrelation_bound", float, type(None)),
        detail=field(record, "detail", str),
    )


def _read_choice(record: dict[str, Any] | None, shelf: Shelf, n_members: int) -> Choice | None:
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


def _read_held_out(record: Any, shelf: Shelf, members: list[StoredMember]) -> HeldOutSums | None:
    # Older files have none.
    if record is None:
        return None
    fitted_too = field(record, "fitted_too", bool)
    return HeldOutSums(read_system("held_out", record, shelf, members), fitted_too)


def _check_held_out(held_out: HeldOutSums, system: EnsembleSystem) -> None:
    if held_out.fitted_too and held_out.system.n_rows >= system.n_rows:
        raise damaged("more rows were held out than there are")


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _is_column_major(weights: np.ndarray) -> bool:
    return weights.flags.f_contiguous and not weights.flags.c_contiguous
