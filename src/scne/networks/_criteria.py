"""Which candidates may become nodes, and in which order: the supervisory mechanism of SC-III."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scne.passes import PoolSums

CRITERIA = ("orthogonal", "paper")
NOTHING_LEFT = 1e-28


@dataclass(frozen=True)
class Selection:
    """Candidates of one pool that satisfy the inequality, best first.

    Attributes
    ----------
    candidates : list of int
        Positions in the pool; none occurs twice.
    contraction : float
        The r for which the first of them was admissible.
    """

    candidates: list[int]
    contraction: float


def required_share(contraction: float, node: int) -> float:
    """1 - r - mu_L with mu_L = (1 - r) / (L + 1): the share of each output's squared error that a node must remove.

    Examples
    --------
    >>> required_share(0.5, 1), required_share(0.5, 3)
    (0.25, 0.375)
    """
    return (1.0 - contraction) * node / (node + 1)


def select_candidates(
    sums: PoolSums,
    residual_squares: NDArray[np.float64],
    node: int,
    contractions: Sequence[float],
    batch_size: int,
    criterion: str,
    dependence: float,
    ties: float,
) -> Selection | None:
    """Pick the next nodes from a pool, relaxing r until at least one candidate is admissible.

    A candidate h is admissible when xi_q = gain_q - (1 - r - mu_L) e_q'e_q is positive for every output q, and the best
    has the largest sum of xi_q (Eq. (7)). ``criterion="paper"`` takes gain_q = (e_q'h)^2 / h'h. ``"orthogonal"``
    takes the squared error that h removes when all output weights are solved again, (e_q'h)^2 / |h - P h|^2, of which
    the paper's gain is a lower bound; inside a batch it projects each pick out of the rest of the pool before the next.

    Parameters
    ----------
    sums : PoolSums
    residual_squares : ndarray of shape (q,)
        e_q'e_q.
    node : int
        L, the number that the next node will have, from 1.
    contractions : sequence of float
        Increasing values of r.
    batch_size : int
        n_B of the paper: how many nodes one pool may give.
    criterion : {"orthogonal", "paper"}
    dependence : float
        A candidate with at most this share of its squared norm outside the span of the existing nodes adds nothing that
        the arithmetic can resolve, and is skipped.
    ties : float
        Candidates whose gains differ by less than this share are equally good, and the first of the pool is taken.
        Otherwise the last bit of a sum would decide, for example when a single direction is left to fit.

    Returns
    -------
    Selection, or None when no candidate is admissible for any r.
    """
    if criterion == "paper":
        return _rank_once(sums, residual_squares, node, contractions, batch_size, ties)
    return _rank_with_deflation(sums, residual_squares, node, contractions, batch_size, dependence, ties)


def _rank_once(
    sums: PoolSums,
    residual_squares: NDArray[np.float64],
    node: int,
    contractions: Sequence[float],
    batch_size: int,
    ties: float,
) -> Selection | None:
    gains = _gains(sums.moments, sums.squares, sums.squares > 0)
    for contraction in _worth_trying(contractions, gains, residual_squares, node):
        excess = _excess(gains, residual_squares, required_share(contraction, node))
        picked: list[int] = []
        while len(picked) < batch_size and np.isfinite(excess).any():
            picked.append(_first_best(excess, gains, ties))
            excess[picked[-1]] = -np.inf
        if picked:
            return Selection(picked, contraction)
    return None


def _rank_with_deflation(
    sums: PoolSums,
    residual_squares: NDArray[np.float64],
    node: int,
    contractions: Sequence[float],
    batch_size: int,
    dependence: float,
    ties: float,
) -> Selection | None:
    moments = sums.moments.copy()
    left_over = sums.squares - np.square(sums.projections).sum(axis=0)
    resolvable = left_over > dependence * sums.squares
    error = residual_squares.copy()
    gram = sums.gram - sums.projections.T @ sums.projections if batch_size > 1 else None
    picked: list[int] = []
    used = 0.0
    for offset in range(batch_size):
        gains = _gains(moments, left_over, resolvable)
        best = None
        for contraction in _worth_trying(contractions, gains, error, node + offset):
            excess = _excess(gains, error, required_share(contraction, node + offset))
            if np.isfinite(excess).any():
                best = _first_best(excess, gains, ties)
                break
        if best is None:
            break
        used = used if picked else contraction
        picked.append(best)
        if gram is None:
            break
        # One step of a pivoted Cholesky factorisation of the pool's residual Gram matrix.
        direction = gram[best] / np.sqrt(left_over[best])
        removed = moments[:, best] / np.sqrt(left_over[best])
        moments -= removed[:, None] * direction
        error = np.maximum(error - removed**2, 0.0)
        gram = gram - np.outer(direction, direction)
        left_over = left_over - direction**2
        resolvable &= left_over > dependence * sums.squares
        resolvable[best] = False
    return Selection(picked, used) if picked else None


def _first_best(excess: NDArray[np.float64], gains: NDArray[np.float64], ties: float) -> int:
    best = int(np.argmax(excess))
    return int(np.argmax(excess >= excess[best] - ties * gains[:, best].sum()))


def _worth_trying(
    contractions: Sequence[float], gains: NDArray[np.float64], residual_squares: NDArray[np.float64], node: int
) -> Sequence[float]:
    """The contractions from the first on for which some candidate may remove the share that is asked of it.

    One look at the best share spares the inequality for every stricter r; rounding is left to the inequality itself.
    """
    left = np.maximum(residual_squares, NOTHING_LEFT)
    best = float((gains / left[:, None])[residual_squares > NOTHING_LEFT].min(axis=0, initial=np.inf).max())
    for place, contraction in enumerate(contractions):
        if required_share(contraction, node) <= best * (1.0 + 1e-9):
            return contractions[place:]
    return ()


def _gains(
    moments: NDArray[np.float64], squares: NDArray[np.float64], usable: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """moments^2 / squares, shape (q, T); -inf where the candidate cannot be used."""
    gains = np.full(moments.shape, -np.inf)
    np.divide(np.square(moments), squares, out=gains, where=usable)
    return gains


def _excess(gains: NDArray[np.float64], residual_squares: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """sum_q xi_q, shape (T,); -inf where some xi_q is not positive."""
    # An output that is fitted already (a constant one, from the start) leaves nothing to remove and must not veto.
    open_outputs = residual_squares > NOTHING_LEFT
    if not open_outputs.any():
        return np.full(gains.shape[1], -np.inf)
    xi = (gains - share * residual_squares[:, None])[open_outputs]
    return np.where(xi.min(axis=0) > 0, xi.sum(axis=0), -np.inf)
