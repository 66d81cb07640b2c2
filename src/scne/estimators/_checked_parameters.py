"""Parameters of an estimator that came from a file: what `fit` would refuse is refused here.

A parameter decides nothing about predictions, but `summary`, `clone`, `partial_fit` and a later `fit` use it, and a
file may hold any value for it.
"""

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from scne.estimators._scne import SCNERegressor
from scne.estimators.inputs._types import Ridge
from scne.fitting import (
    SOLVER_NAMES,
    check_choice,
    check_integer,
    check_real,
    check_threads,
    checked_member_weights,
)
from scne.models import damaged, shortened

# More threads than any machine has cores.
_MOST_THREADS = 65_536


def check_parameters(model: Any) -> None:
    """Refuse a network or an ensemble, not yet fitted, whose parameters its `fit` would refuse."""
    try:
        _check_common(model)
        if isinstance(model, SCNERegressor):
            _check_ensemble(model)
        else:
            model._check_parameters()
    except (TypeError, ValueError, OverflowError) as error:
        raise damaged(f"its parameters cannot be ({shortened(str(error))})") from error


def check_class_weight(value: object) -> None:
    """Refuse what no classifier takes."""
    if value is None or value == "balanced":
        return
    weights: list[Any] = list(value.values()) if isinstance(value, Mapping) else [None]
    if not all(_is_number(weight) and weight >= 0 for weight in weights):
        raise damaged("its class_weight is neither 'balanced' nor a weight for each label")


def _check_common(model: Any) -> None:
    parameters = model.get_params(deep=False)
    # What Python takes for true or false, whatever a user wrote.
    if isinstance(parameters.get("direct_link"), list | tuple | dict | set | np.ndarray):
        raise ValueError("direct_link is not true or false")
    if parameters["device"] is not None and not isinstance(parameters["device"], str):
        raise ValueError("device is not a text")
    if check_threads(parameters["n_jobs"]) > _MOST_THREADS:
        raise ValueError("n_jobs is too large")
    seed = parameters["random_state"]
    if seed is not None and (type(seed) is not int or not 0 <= seed < 2**32):
        raise ValueError("random_state is not a seed")


def _check_ensemble(model: SCNERegressor) -> None:
    for base in model._bases().values():
        _check_common(base)
    # With the parameters of the base model.
    model._template()
    check_choice("solver", model.solver, SOLVER_NAMES)
    check_integer("max_iter", model.max_iter, 1)
    check_real("tol", model.tol)
    if not isinstance(model.decorrelation, str):
        check_real("decorrelation", model.decorrelation)
    else:
        check_choice("decorrelation", model.decorrelation, ("auto",))
    _check_ridges(model.ridge)
    if model.member_weights is not None:
        each = model.member_weights
        names = list(map(str, each if isinstance(each, Mapping) else range(np.size(np.array(each, dtype=object)))))
        checked_member_weights(each, names)
    if model.groups is not None and not isinstance(model.groups, Mapping | list | tuple):
        raise ValueError("groups does not map names to columns and is no list of columns")


def _check_ridges(ridge: Ridge) -> None:
    if isinstance(ridge, str):
        check_choice("ridge", ridge, ("auto",))
        return
    # One for all networks, or one for each of them, by its name or its place.
    each = list(ridge.values()) if isinstance(ridge, Mapping) else np.array(ridge, dtype=object).reshape(-1).tolist()
    for value in each:
        check_real("ridge", value)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and bool(np.isfinite(float(value)))
