"""Parameters that model files of older versions hold, under the names and meanings of this one.

A parameter decides nothing about predictions: what has none of its own any more is left out.
"""

from collections.abc import Mapping
from numbers import Real
from typing import Any

from scne.estimators._network import SHARED
from scne.estimators._rvfl import RVFLRegressor
from scne.estimators._scn import SCNRegressor
from scne.fitting import MATRIX_FREE

# One network for classes, which is an ensemble of one now.
SINGLE_CLASSIFIER = "SCNClassifier"
_GONE_OF_NETWORKS = (
    "clip_inputs",
    "dates",
    "memory_budget",
    "n_iter_no_change",
    "n_ramps",
    "pool_rows",
    "search_dtype",
)
_GONE_OF_ENSEMBLES = ("step_tol", "scaling", "target_scaling", "matrix_free", "precision")


def present_network(name: str, stored: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a network.

    Examples
    --------
    >>> present_network("RVFLRegressor", {"n_hidden": 9, "scaling": "0-1", "clip_inputs": False})
    {'n_hidden': 9, 'scaling': 'min-max'}
    """
    gone = (*_GONE_OF_NETWORKS, "direct_link") if name == "SCNRegressor" else _GONE_OF_NETWORKS
    parameters = {key: value for key, value in stored.items() if key not in gone}
    scaling = stored.get("scaling", "0-1")
    if stored.get("clip_inputs") is False and _is_called(scaling, "0-1"):
        parameters["scaling"] = "min-max"
    if name == "RVFLRegressor" and _is_called(scaling, "ramps"):
        # Which they have no more: the columns beside the ramps are what is left.
        parameters["scaling"] = "standard"
    return parameters


def present_ensemble(name: str, base: Any, stored: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The base model of an ensemble and its parameters: what was "auto" depended on whether a base model was given.

    Examples
    --------
    >>> present_ensemble("SCNERegressor", None, {"networks": "auto", "step_tol": 1e-8})
    (None, {'networks': 'across', 'trend': 'judged'})
    >>> present_ensemble("DNNERegressor", None, {"solver": "jacobi", "matrix_free": True})[1]["solver"]
    'matrix-free jacobi'
    """
    parameters = {key: value for key, value in stored.items() if key not in _GONE_OF_ENSEMBLES}
    solver, matrix_free = parameters.get("solver", "auto"), stored.get("matrix_free")
    if isinstance(solver, str) and isinstance(matrix_free, Real | str) and matrix_free:
        name_now = "matrix-free " + ("cg" if solver == "auto" else solver)
        parameters["solver"] = name_now if name_now in MATRIX_FREE else solver
    plain = base is not None or name == "DNNERegressor"
    if parameters.get("networks", "auto") == "auto":
        parameters["networks"] = "per group" if plain else "across"
    if parameters.get("trend", "auto") == "auto":
        parameters["trend"] = "none" if plain else "judged"
    if base is None and not _is_called(stored.get("precision", "auto"), "auto"):
        # Which the default base model now has in the place of the ensemble.
        base = RVFLRegressor(direct_link=False) if name == "DNNERegressor" else SCNRegressor.tuned()
    bases = list(base.values()) if isinstance(base, Mapping) else [] if base is None else [base]
    for key in SHARED:
        holders = [one for one in bases if hasattr(one, key)]
        if not holders:
            continue
        # Of several base models the first decided for all of them, unless the ensemble did.
        first = getattr(holders[0], key)
        value = first if stored.get(key) is None else stored[key]
        if key == "scaling" and _is_called(value, "ramps") and any(isinstance(one, RVFLRegressor) for one in bases):
            value = "standard"
        elif key == "scaling" and _is_called(value, "0-1") and _is_called(first, "min-max"):
            value = "min-max"
        for one in holders:
            setattr(one, key, value)
    return base, parameters


def _is_called(value: Any, name: str) -> bool:
    # A file may hold anything for a parameter, arrays too.
    return isinstance(value, str) and value == name
