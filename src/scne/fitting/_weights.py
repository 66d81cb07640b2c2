"""Choosing lambda and r, and solving for the ensemble's output weights."""

import logging
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from scne.fitting._checks import LARGEST_RIDGE, check_choice, check_integer, check_real
from scne.ncl import (
    SOLVERS,
    Choice,
    EnsembleSystem,
    MatrixFreeSystem,
    OutputRows,
    Solution,
    Status,
    choose,
    choose_solver,
    decorrelation_bounds,
    decorrelation_limit,
    make_solver,
    solve_outputs,
)
from scne.passes import ScneConvergenceWarning, ThreadEngine, available_threads, single_threaded_blas
from scne.rows import users_stacklevel

_log = logging.getLogger("scne")

# Ridges that "auto" tries, relative to the mean diagonal of H'H. Below the first, rounding in float64 sums of rows
# would show in the predictions; above the last, every network is flattened.
RELATIVE_RIDGES = np.array([1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 100.0])
# Mean squared errors that differ by less are taken as equal, and the more cautious choice wins.
SCORE_SLACK = 0.005
# Up to this many nodes one thread solves nearly as fast as several, which wait for each other on a busy machine, and
# the bits do not depend on how many threads BLAS has.
SERIAL_NODES = 5_000
# Iterations stop when what the weights produce moves by less than this, relatively.
STEP_TOL = 1e-8
# Weights of networks may miss a sum of 1 by this much, and are equal when they differ by no more than rounding.
WEIGHTS_SLACK = 1e-6
EQUAL_WEIGHTS = 1e-12
# Solvers that can do without the blocks of G off the diagonal (docs/mathematics.md, Proposition 9), by their names when
# they do.
MATRIX_FREE = {f"matrix-free {name}": name for name in ("naive", "jacobi", "gauss-seidel", "cg")}
SOLVER_NAMES = ("auto", *SOLVERS, *MATRIX_FREE)
# "auto" keeps block Jacobi this far inside its exact bound, so that it converges at a fair speed.
JACOBI_MARGIN = 0.9


@dataclass(frozen=True)
class WeightSettings:
    """How the output weights are chosen; the names and meanings are those of `SCNERegressor`.

    `least_ridge` is the least that "auto" may choose, relative to the mean diagonal of H'H; `member_weights`, (M,), are
    a_m of Eq. (10), None where all are 1/M. With `matrix_free` the blocks of G off the diagonal are never formed, and
    `solver` is the name without that word. `directions`, (d,), say along which columns the output must rise and fall.
    """

    solver: str
    decorrelation: float | str
    ridge: NDArray[np.float64] | str
    max_iter: int
    tol: float
    least_ridge: float = 0.0
    member_weights: NDArray[np.float64] | None = None
    matrix_free: bool = False
    directions: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class SolvedWeights:
    """Output weights with the settings that gave them.

    Attributes
    ----------
    solution : Solution
    decorrelation : float
    ridge : ndarray of shape (M,)
    choice : Choice or None
        The cross-validation table when anything was chosen.
    member_weights : ndarray of shape (M,) or None
        a_m of Eq. (10); None where all are 1/M. The solution's weights are B_m = M a_m b_m, so that the output is
        (1/M) H B either way.
    """

    solution: Solution
    decorrelation: float
    ridge: NDArray[np.float64]
    choice: Choice | None
    member_weights: NDArray[np.float64] | None = None


def check_weight_settings(
    solver: object,
    decorrelation: object,
    ridge: object,
    max_iter: object,
    tol: object,
    member_weights: object,
    names: Sequence[str],
) -> WeightSettings:
    """Refuse settings that cannot be, for members of the given names."""
    solver = check_choice("solver", solver, SOLVER_NAMES)
    weights = checked_member_weights(member_weights, names)
    settings = WeightSettings(
        MATRIX_FREE.get(solver, solver),
        _checked_decorrelation(decorrelation, len(names), weights),
        _checked_ridge(ridge, names),
        check_integer("max_iter", max_iter, 1),
        check_real("tol", tol),
        member_weights=weights,
        matrix_free=solver in MATRIX_FREE,
    )
    if settings.matrix_free and (isinstance(settings.decorrelation, str) or isinstance(settings.ridge, str)):
        raise ValueError(
            f"solver is {solver!r}, but decorrelation='auto' and ridge='auto' are chosen with the whole Gram matrix; "
            "give both as numbers."
        )
    return settings


@dataclass(frozen=True)
class SplitSystems:
    """Two systems to choose on: one to fit, and one of held-out rows, which neither search nor fit has seen."""

    fitted: EnsembleSystem
    held_out: EnsembleSystem


def solve_weights(
    system: EnsembleSystem | MatrixFreeSystem,
    settings: WeightSettings,
    split: SplitSystems | None = None,
    rows: OutputRows | None = None,
    near: Choice | None = None,
) -> SolvedWeights:
    """Choose what is "auto" on held-out rows, or without any by generalised cross-validation, then run the solver.

    Near a choice that was made for much the same networks, its ridge and the next ones are tried alone.

    Lambda and the ridges are chosen from Gram systems alone (docs/mathematics.md, Propositions 6 and 7), so that costs
    no pass over the rows.  The weights are solved from them too, but for networks without a ridge, from `rows` where
    these are at hand.
    """
    if settings.member_weights is not None:
        system = replace(system, member_weights=settings.member_weights)
        if split is not None:
            split = replace(split, fitted=replace(split.fitted, member_weights=settings.member_weights))
    with single_threaded_blas() if system.n_nodes <= SERIAL_NODES else nullcontext():
        choice = None
        decorrelation, ridge = settings.decorrelation, settings.ridge
        if isinstance(decorrelation, str) or isinstance(ridge, str):
            assert isinstance(system, EnsembleSystem)
            choice = chosen(system, settings, split, near)
            decorrelation = choice.decorrelation
            ridge = choice.ridge if isinstance(ridge, str) else ridge
        name = choose_solver(system, ridge) if settings.solver == "auto" else settings.solver
        if name == "naive":
            decorrelation = 0.0
        ridges = ", ".join(map("{:.4g}".format, ridge))
        _log.debug("solver %s, decorrelation (lambda) %.6g, ridge %s", name, decorrelation, ridges)
        solver = make_solver(name, max_iter=settings.max_iter, tol=settings.tol, step_tol=STEP_TOL)
        if rows is None:
            solution = solver.solve(system, decorrelation, ridge)
        else:
            solution = solve_outputs(solver, rows, decorrelation, ridge, settings.member_weights)
    if system.n_nodes <= SERIAL_NODES and callable(solution.radius):
        # What is computed later, when somebody asks, has the same bits as if it were computed here.
        solution = solution.within(single_threaded_blas)
    if solution.status in (Status.MAX_ITER, Status.DIVERGED):
        warnings.warn(solution.message, ScneConvergenceWarning, stacklevel=users_stacklevel())
    return SolvedWeights(solution, decorrelation, ridge, choice, settings.member_weights)


def solve_again(system: EnsembleSystem, settings: WeightSettings, solved: SolvedWeights) -> NDArray[np.float64]:
    """Weights (L, q) on other rows, with the lambda, the ridges and the solver that gave `solved`."""
    solver = make_solver(solved.solution.solver, max_iter=settings.max_iter, tol=settings.tol, step_tol=STEP_TOL)
    system = replace(system, member_weights=solved.member_weights)
    with single_threaded_blas() if system.n_nodes <= SERIAL_NODES else nullcontext():
        return solver.solve(system, solved.decorrelation, solved.ridge).weights


def chosen(
    system: EnsembleSystem, settings: WeightSettings, split: SplitSystems | None, near: Choice | None = None
) -> Choice:
    """lambda and the ridges where they are "auto"; on a split, if there is one, else by cross-validation."""
    solver, decorrelation, ridge = settings.solver, settings.decorrelation, settings.ridge
    scale = float(np.trace(system.gram)) / system.n_nodes
    shares = RELATIVE_RIDGES[settings.least_ridge <= RELATIVE_RIDGES]
    if near is not None and len(near.ridges) == len(shares):
        row = int(np.argmin(np.abs(near.ridges[:, 0] - near.ridge[0])))
        shares = shares[max(0, row - 1) : row + 2]
    ridges = list(scale * shares) if isinstance(ridge, str) else [ridge]
    lambdas = None if isinstance(decorrelation, str) else [decorrelation]
    if solver == "naive":
        lambdas = [0.0]
    limit = None
    if solver == "jacobi" and isinstance(decorrelation, str):

        def limit(candidate: NDArray[np.float64]) -> float:
            return JACOBI_MARGIN * decorrelation_bounds(system, candidate).jacobi_exact

    fitted, held_out = (system, None) if split is None else (split.fitted, split.held_out)
    search = partial(choose, fitted, ridges, lambdas, limit=limit, slack=SCORE_SLACK, held_out=held_out)
    if system.n_nodes > SERIAL_NODES:
        return search(ends_first=True)
    with ThreadEngine(available_threads()) as engine:
        return search(ends_first=True, run=engine.map)


def checked_member_weights(member_weights: object, names: Sequence[str]) -> NDArray[np.float64] | None:
    """a_m of Eq. (10) for networks of the given names, shape (M,), of sum 1; None where all of them are 1/M.

    Examples
    --------
    >>> checked_member_weights({"b": 0.75, "a": 0.25}, ["a", "b"])
    array([0.25, 0.75])
    >>> checked_member_weights([0.5, 0.5], ["a", "b"]) is None
    True
    """
    if member_weights is None:
        return None
    if isinstance(member_weights, Mapping):
        by_name = {str(name): value for name, value in member_weights.items()}
        if set(by_name) != set(names):
            raise ValueError(
                f"member_weights names {sorted(by_name)}, but it must name each of the networks {list(names)} once."
            )
        member_weights = [by_name[name] for name in names]
    if not isinstance(member_weights, Sequence | np.ndarray) or isinstance(member_weights, str):
        raise ValueError(
            f"member_weights is {member_weights!r}, but it must be None (1/M each) or one number for each network, "
            "which sum to 1."
        )
    if len(member_weights) != len(names):
        raise ValueError(
            f"member_weights has {len(member_weights)} values, but there are {len(names)} networks; give one for each."
        )
    weights = np.array([check_real("member_weights", value) for value in member_weights])
    total = float(weights.sum())
    if abs(total - 1.0) > WEIGHTS_SLACK:
        raise ValueError(
            f"member_weights sum to {total:.6g}, but they must sum to 1 (Eq. (10)); divide them by their sum."
        )
    if len(names) > 1 and not (weights > 0).all():
        silent = [name for name, weight in zip(names, weights, strict=True) if not weight > 0]
        raise ValueError(
            f"member_weights is 0 for {silent}, but every network needs a weight above 0 and below 1 (Eq. (10)): a "
            "network of weight 0 adds nothing to the output, so leave its group out."
        )
    # Equal weights are the plain mean, to the last bit.
    return None if np.ptp(weights) <= EQUAL_WEIGHTS else weights / total


def _checked_decorrelation(
    decorrelation: object, n_members: int, member_weights: NDArray[np.float64] | None
) -> float | str:
    if isinstance(decorrelation, str) and decorrelation == "auto":
        return "auto"
    limit = decorrelation_limit(n_members, member_weights)
    try:
        return check_real("decorrelation", decorrelation, below=limit)
    except ValueError:
        end = "M/(M-1)" if member_weights is None else "1/(1 - least of member_weights)"
        upper = "" if limit == float("inf") else f" and below {end} = {limit:.6g} for {n_members} networks"
        raise ValueError(
            f"decorrelation is {decorrelation!r}, but it must be 'auto' or a number of at least 0{upper}."
        ) from None


def _checked_ridge(ridge: object, names: Sequence[str]) -> NDArray[np.float64] | str:
    if isinstance(ridge, str) and ridge == "auto":
        return "auto"
    if isinstance(ridge, Mapping):
        by_name = {str(name): value for name, value in ridge.items()}
        if set(by_name) != set(names):
            raise ValueError(f"ridge names {sorted(by_name)}, but it must name each of the groups {list(names)} once.")
        ridge = [by_name[name] for name in names]
    if isinstance(ridge, Sequence | np.ndarray) and not isinstance(ridge, str):
        if len(ridge) != len(names):
            raise ValueError(f"ridge has {len(ridge)} values, but there are {len(names)} networks; give one for each.")
        return np.array([check_real("ridge", value, below=LARGEST_RIDGE) for value in ridge])
    try:
        return np.full(len(names), check_real("ridge", ridge, below=LARGEST_RIDGE))
    except ValueError:
        raise ValueError(
            f"ridge is {ridge!r}, but it must be 'auto', a number of at least 0 and below {LARGEST_RIDGE:g}, "
            "or one such number for each group."
        ) from None
