"""Choosing lambda and the ridge from sums over rows alone: no fit is repeated and no row is read again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from scne.ncl._path import lambda_path
from scne.ncl._system import Array, EnsembleSystem, LinearSystem, require_gram


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
        Mean squared error that each pair is expected to have on new rows (infinite where the pair is not allowed, or
        a fit has as many degrees of freedom as rows), and its training error.
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


class _Scored(NamedTuple):
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
    run: Callable[[Callable[[Array], _Scored], Sequence[Array]], Iterable[_Scored]] = map,
) -> Choice:
    """Choose lambda and the ridge; each of `ridges` is a number or an (M,) array.

    The score is generalised cross-validation on `system`, or the error of the fit to `system` on the rows of another
    system, `held_out`. GCV does not see that the nodes themselves were chosen on the same rows, so rows held out of
    that are the better judge. Either way it costs one path per ridge and no pass over the rows.

    `limit` is a bound that lambda must stay below, or a function from the ridge, (M,), to one (so that block Jacobi
    converges: ``lambda r: 0.99 * decorrelation_bounds(system, r).jacobi_exact``). lambda = 0 is always allowed.

    Among pairs whose scores are within the share `slack` of the least, the one nearest to a plain average is taken:
    the smallest lambda, and for it the largest ridge. On many rows the score is flat over much of the road and over
    decades of small ridges, but the weights, and with them predictions for rows unlike those of the training, are not.

    `run` maps a function over the ridges, as `map` does; the paths of different ridges know nothing of each other.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> H = rng.standard_normal((50, 6))
    >>> system = EnsembleSystem.from_outputs([H[:, :3], H[:, 3:]], H.sum(axis=1) + rng.standard_normal(50))
    >>> choice = choose(system, [0.01, 1.0], limit=1.5)
    >>> choice.scores.shape, 1.4 < choice.decorrelation < 1.5
    ((2, 100), True)
    """
    system = require_gram(system, "the choice of lambda and the ridge")
    candidates = [np.broadcast_to(np.asarray(r, dtype=np.float64), (system.n_members,)).copy() for r in ridges]

    def scored(ridge: Array) -> _Scored:
        path = lambda_path(system, ridge, decorrelations)
        bound = limit(path.ridge) if callable(limit) else limit
        lambdas = path.decorrelations
        allowed = (lambdas == 0) | (lambdas < (np.inf if bound is None else bound))
        if held_out is None:
            return _Scored(lambdas, np.where(allowed, path.gcv, np.inf), path.errors)
        squares = path.squares(held_out)
        assert squares.held_out is not None
        return _Scored(lambdas, np.where(allowed, squares.held_out, np.inf), np.sqrt(squares.training))

    found = list(run(scored, candidates))
    lambdas = found[0].decorrelations
    table = np.stack([one.scores for one in found])
    if not np.isfinite(table).any():
        raise ValueError(
            f"no pair of the {len(found)} ridges and {len(lambdas)} decorrelations has a finite score: "
            "give larger ridges, more rows than degrees of freedom, or decorrelations below the limit"
        )
    good = table <= (1.0 + slack) * table.min()
    column = int(np.argmax(good.any(axis=0)))
    row = int(np.argmax(np.where(good[:, column], [ridge.sum() for ridge in candidates], -np.inf)))
    return Choice(
        decorrelation=float(lambdas[column]),
        ridge=candidates[row],
        ridges=np.stack(candidates),
        decorrelations=lambdas,
        scores=table,
        errors=np.stack([one.errors for one in found]),
        criterion="generalised cross-validation" if held_out is None else "held-out rows",
    )
