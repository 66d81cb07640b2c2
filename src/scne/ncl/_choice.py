"""The choice of lambda and the ridge.

They are chosen from sums over rows alone: no fit is repeated and no row is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from scne.ncl._coefficients import Array
from scne.ncl._path import default_path, lambda_path, mean_squares
from scne.ncl._solvers import Cholesky, Naive
from scne.ncl._system import EnsembleSystem, LinearSystem, require_gram


@dataclass(frozen=True, eq=False)
class Choice:
    """The chosen decorrelation and ridge, and the table they were chosen from.

    Attributes
    ----------
    decorrelation : float
        The chosen lambda.
    ridge : (M,) array
        The chosen ridge of each member.
    ridges, decorrelations : (n, M) and (k,) arrays
        The candidates.
    scores, errors : (n, k) arrays
        Mean squared error that each pair is expected to have on new rows (infinite where the pair is not allowed or was
        not tried, or a fit has as many degrees of freedom as rows), and its training error (infinite where not tried).
    criterion : str
        Where the scores come from: "generalised cross-validation" or "held-out rows".
    """

    decorrelation: float
    ridge: Array
    ridges: Array
    decorrelations: Array
    scores: Array
    errors: Array
    criterion: str


Run = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
# Nodes up to which the whole path of a ridge is computed. Its decomposition waits for memory and is one thread's work:
# at 4,800 nodes it takes as long as 40 solutions, which can be shared out.
MOST_FOR_PATH = 2_000


class Scored(NamedTuple):
    """The path of one ridge, shapes (k,)."""

    decorrelations: Array
    scores: Array
    errors: Array


def choose(
    system: LinearSystem,
    ridges: Sequence[ArrayLike],
    decorrelations: ArrayLike | None = None,
    *,
    limit: float | Callable[[Array], float] | None = None,
    slack: float = 0.0,
    held_out: EnsembleSystem | None = None,
    ends_first: bool = False,
    run: Run = map,
) -> Choice:
    """Choose lambda and the ridge; each of `ridges` is a number or an (M,) array.

    The score is generalised cross-validation on `system`, or the error of the fit to `system` on the rows of another
    system, `held_out`. GCV does not see that the nodes themselves were chosen on the same rows, so rows held out of
    that are the better judge. Either way it costs one path per ridge and no pass over the rows.

    `limit` is a bound that lambda must stay below, or a function from the ridge, (M,), to one (so that block Jacobi
    converges: ``lambda r: 0.99 * decorrelation_bounds(system, r).jacobi_exact``). lambda = 0 is always allowed.

    Among pairs whose scores are within the share `slack` of the least, the one nearest to a plain average is taken:
    the smallest lambda, and for it the largest ridge. On many rows the score is flat over much of the path and over
    decades of small ridges, but the weights, and with them predictions for rows unlike those of the training, are not.

    With `ends_first` both ends of the path are scored for every ridge, and the whole path for the best of them alone.
    On 14 tables its least score was within 1.5 % of that of an end, for a ridge that was best at an end as well; and
    the path of 1,200 nodes takes as long as ten solutions. Of more than 2,000 nodes the path itself is tried at some
    ten places, nearer and nearer around the best.

    Where weights have signs to keep, held-out rows score solutions that keep them, at both ends and around the best.
    Without held-out rows the scores are those of solutions without signs.

    `run` maps a function over the ridges, as `map` does; the paths of different ridges know nothing of each other.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> members = [rng.standard_normal((50, 3)) for _ in range(2)]
    >>> target = sum(members).sum(axis=1) + rng.standard_normal(50)
    >>> choice = choose(EnsembleSystem.from_outputs(members, target), [0.01, 1.0], limit=1.5)
    >>> choice.scores.shape, 1.4 < choice.decorrelation < 1.5
    ((2, 100), True)
    """
    system = require_gram(system, "the choice of lambda and the ridge")
    candidates = np.empty((len(ridges), system.n_members))
    for row, ridge in enumerate(ridges):
        candidates[row] = ridge

    signed = system.signs is not None and held_out is not None

    def scored(ridge: Array) -> Scored:
        if system.signs is not None and held_out is not None and decorrelations is not None:
            lambdas = np.atleast_1d(np.asarray(decorrelations, dtype=np.float64))
            pairs = [_solved(system, held_out, float(one), ridge) for one in lambdas]
            return Scored(lambdas, *np.transpose(pairs))
        path = lambda_path(system, ridge, decorrelations)
        bound = limit(path.ridge) if callable(limit) else limit
        lambdas = path.decorrelations
        allowed = (lambdas == 0) | (lambdas < (np.inf if bound is None else bound))
        if held_out is None:
            return Scored(lambdas, np.where(allowed, path.gcv, np.inf), path.errors)
        squares = path.squares(held_out)
        assert squares.held_out is not None
        return Scored(lambdas, np.where(allowed, squares.held_out, np.inf), np.sqrt(squares.training))

    whole_path = decorrelations is None and limit is None
    if held_out is not None and whole_path and (signed or (ends_first and len(candidates) > 1)):
        paths = _best_path(system, held_out, candidates, scored, run)
    else:
        paths = list(run(scored, list(candidates)))
    (lambdas, *_), scores, errors = zip(*paths, strict=True)
    table = np.stack(scores)
    if not np.isfinite(table).any():
        raise ValueError(
            f"no pair of the {len(candidates)} ridges and {len(lambdas)} decorrelations has a finite score: "
            "give larger ridges, more rows than degrees of freedom, or decorrelations below the limit"
        )
    good = table <= (1.0 + slack) * table.min()
    column = int(np.argmax(good.any(axis=0)))
    row = int(np.argmax(np.where(good[:, column], candidates.sum(axis=1), -np.inf)))
    return Choice(
        decorrelation=float(lambdas[column]),
        ridge=candidates[row].copy(),
        ridges=candidates,
        decorrelations=lambdas,
        scores=table,
        errors=np.stack(errors),
        criterion="generalised cross-validation" if held_out is None else "held-out rows",
    )


def _solved(
    system: EnsembleSystem, held_out: EnsembleSystem, decorrelation: float, ridge: Array
) -> tuple[float, float]:
    """Mean squared error on held-out rows of one solution, and its training error."""
    solver = Naive() if decorrelation == 0.0 and system.signs is None else Cholesky()
    solution = solver.solve(system, decorrelation, ridge)
    error = mean_squares(held_out, held_out.moments, solution.weights[:, :, None])[0]
    return float(error), float(solution.error_history[-1])


def _best_path(
    system: EnsembleSystem,
    held_out: EnsembleSystem,
    candidates: Array,
    scored: Callable[[Array], Scored],
    run: Run,
) -> list[Scored]:
    """The path of the ridge that is best at one of its ends, and of the other ridges both ends."""
    grid = default_path(system)
    last = len(grid) - 1

    def solved(place: int, ridge: Array) -> tuple[float, float]:
        return _solved(system, held_out, float(grid[place]), ridge)

    def both_ends(ridge: Array) -> Scored:
        scored = Scored(grid, np.full(len(grid), np.inf), np.full(len(grid), np.inf))
        for place in (0, last):
            scored.scores[place], scored.errors[place] = solved(place, ridge)
        return scored

    ends = list(run(both_ends, list(candidates)))
    best = int(np.argmin([end.scores.min() for end in ends]))
    if system.n_nodes <= MOST_FOR_PATH and system.signs is None:
        ends[best] = scored(candidates[best])
        return ends
    if last == 0:
        return ends
    # Every so many places, and then those around the best so far, nearer and nearer.
    path, tried = ends[best], {0, last}
    for step in (last // 4, last // 8, last // 16, last // 33):
        centre = int(np.argmin(path.scores))
        wanted = range(step, last, step) if len(tried) == 2 else (centre - step, centre + step)
        places = [place for place in wanted if 0 < place < last and place not in tried]
        for place, (score, error) in zip(places, run(partial(solved, ridge=candidates[best]), places), strict=True):
            path.scores[place], path.errors[place] = score, error
        tried.update(places)
    return ends
