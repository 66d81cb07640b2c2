"""Base models: one stochastic configuration network by SC-III, and one RVFL network (Section 2.1)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

#: A pool of candidate nodes: input weights (T_max, d) and biases (T_max,).
Pool = tuple[np.ndarray, np.ndarray]
#: Draws the pool of one scope for the loop that starts with so many nodes: `pools(nodes_so_far, scope)`.
Pools = Callable[[int, float], Pool]


def sigmoid(z):
    """1 / (1 + exp(-z)), accurate in both tails: it is never formed as one minus something.

    >>> bool(sigmoid(-100.0) == np.exp(-100.0))
    True
    """
    tail = np.exp(-np.abs(z))
    return np.where(z < 0, tail, 1.0) / (1.0 + tail)


def hidden_layer(X, weights, biases):
    """H_L, (N, L): column l is h_l, the outputs of node l for all rows of X (Eq. 6; Eq. 21 for a member).

    `X` (N, d), `weights` (L, d), `biases` (L,).
    """
    return sigmoid(X @ weights.T + biases)


def _svd(A):
    """U, s and V' of A without the singular values that count as zero.

    Open in the paper: which ones do. Here those below max(shape) eps times the largest, as in Golub and Van Loan.
    """
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    counted = s > max(A.shape) * np.finfo(A.dtype).eps * s.max(initial=0.0)
    return U[:, counted], s[counted], Vt[counted]


def pseudo_inverse(A):
    """The Moore-Penrose inverse of A by its SVD."""
    U, s, Vt = _svd(A)
    return (Vt.T / s) @ U.T


def unit_columns(H):
    """H with columns of length one, and their lengths; a column of zeros stays, with length 1.

    Neither the fit nor xi depends on the columns' lengths, but arithmetic does: a saturated node may be 1e-18 long,
    which a pseudo-inverse takes for dependent, or 1e-200, whose square is zero.
    """
    largest = np.abs(H).max(axis=0)
    largest[largest == 0] = 1.0
    units = H / largest
    lengths = np.linalg.norm(units, axis=0)
    lengths[lengths == 0] = 1.0
    return units / lengths, largest * lengths


def output_weights(H, Y):
    """The beta that minimises ||H beta - Y||_F (Eqs. 5 and 8): the pseudo-inverse of H times Y, (L, m)."""
    units, lengths = unit_columns(H)
    return pseudo_inverse(units) @ Y / lengths[:, None]


def fit_residuals(H, Y):
    """e_L = Y - H beta for these beta, (N, m).

    H times its pseudo-inverse is the projection U U' on the columns of H. Subtracting it twice keeps the digits that
    large output weights of opposite signs would lose: without it the residuals of a well fitted output are wrong in
    their third digit, and so is the choice of nodes (checked with 60 digits).
    """
    U, _, _ = _svd(unit_columns(H)[0])
    residuals = Y - U @ (U.T @ Y)
    return residuals - U @ (U.T @ residuals)


def root_mean_square(residuals):
    """The RMSE of Section 4, over all rows and outputs."""
    return float(np.sqrt(np.mean(residuals**2)))


def supervision(residuals, H_pool, r, mu):
    """xi_{L,q} of each candidate and output, (T, m): one is admitted where all of its xi are positive (Eqs. 3, 4, 7).

    `residuals` (N, m) holds e_{L-1}, `H_pool` (N, T) the candidates' outputs, `r` the contraction and `mu` is mu_L.

    A node that points along the residuals explains all of them, ||e||^2 = 5; one across them nothing:

    >>> supervision(np.array([[1.0], [2.0]]), np.array([[0.5, 2.0], [1.0, -1.0]]), r=0.9, mu=0.05).round(6)
    array([[ 4.75],
           [-0.25]])
    """
    # (e'h)^2 / h'h is the square of e'h for h of length one.
    explained = (unit_columns(H_pool)[0].T @ residuals) ** 2
    return explained - (1.0 - r - mu) * np.sum(residuals**2, axis=0)


def mu(r, nodes):
    """mu_L of Theorem 1, at most 1 - r and going to 0, for the L-th node.

    Open in the paper: the sequence. Here (1 - r) / (L + 1), that of Wang and Li (arXiv:1702.03180).
    """
    return (1.0 - r) / (nodes + 1)


def admitted_nodes(residuals, H_pool, r, nodes):
    """The candidates of one pool that may become node number `nodes`, best first: their numbers and their xi_L.

    xi_L = sum over q of xi_{L,q}; admitted where the smallest xi_{L,q} is positive (text after Eq. 7).
    """
    xi = supervision(residuals, H_pool, r, mu(r, nodes))
    admitted = np.flatnonzero(xi.min(axis=1) > 0)
    ranking = admitted[np.argsort(-xi[admitted].sum(axis=1), kind="stable")]
    return ranking, xi[ranking].sum(axis=1)


@dataclass
class Loop:
    """One loop of SC-III: where its nodes came from."""

    scope: float
    r: float
    candidates: list[int]
    xi: list[float]


@dataclass
class Network:
    """f_L = sum of beta_l phi_l(w_l x + b_l): `weights` (L, d), `biases` (L,), `beta` (L, m)."""

    weights: np.ndarray
    biases: np.ndarray
    beta: np.ndarray
    loops: list[Loop]
    #: RMSE before the first loop and after each one.
    errors: list[float]
    #: "tolerance", "nodes" or "no candidate".
    stopped: str

    def predict(self, X):
        return hidden_layer(X, self.weights, self.biases) @ self.beta


def drawn_pools(rng, features, T_max):
    """Pools of T_max candidates, weights and biases uniform in [-scope, scope] (SC-III, "in varying intervals")."""

    def draw(nodes_so_far, scope):
        return rng.uniform(-scope, scope, (T_max, features)), rng.uniform(-scope, scope, T_max)

    return draw


def search(residuals, X, nodes, scopes, contractions, pools):
    """The pool, contraction and ranking of the next loop, or None where no candidate is admitted anywhere.

    Open in the paper: whether r is relaxed before or after the scope is changed ("increase the value of r to relax
    the constraints and further adjust the scoping interval"). Read in that order: all r on one pool, then the next
    scope with a new pool; each node starts from the first scope and the first r.
    """
    for scope in scopes:
        weights, biases = pools(nodes - 1, scope)
        H_pool = hidden_layer(X, weights, biases)
        for r in contractions:
            ranking, xi = admitted_nodes(residuals, H_pool, r, nodes)
            if len(ranking):
                return scope, r, weights, biases, ranking, xi
    return None


def sc3(
    X,
    Y,
    *,
    pools: Pools,
    scopes: Sequence[float],
    contractions: Sequence[float],
    L_max: int,
    n_B: int = 1,
    tau: float = 0.0,
) -> Network:
    """An SCN by SC-III: nodes in loops of n_B until the error is at most tau or L_max nodes are there.

    `X` (N, d), `Y` (N, m). After each loop the residuals are those of a new fit of all output weights (Eq. 8).

    Open in the paper: the measure of the residual error; here the RMSE of its tables.
    """
    weights, biases = np.empty((0, X.shape[1])), np.empty(0)
    residuals = Y
    loops, errors = [], [root_mean_square(Y)]
    stopped = "nodes"
    while len(biases) < L_max:
        if errors[-1] <= tau:
            stopped = "tolerance"
            break
        found = search(residuals, X, len(biases) + 1, scopes, contractions, pools)
        if found is None:
            stopped = "no candidate"
            break
        scope, r, pool_weights, pool_biases, ranking, xi = found
        batch = ranking[: min(n_B, L_max - len(biases))]
        weights = np.vstack([weights, pool_weights[batch]])
        biases = np.append(biases, pool_biases[batch])
        H = hidden_layer(X, weights, biases)
        residuals = fit_residuals(H, Y)
        loops.append(Loop(scope, r, batch.tolist(), xi[: len(batch)].tolist()))
        errors.append(root_mean_square(residuals))
    beta = output_weights(hidden_layer(X, weights, biases), Y)
    return Network(weights, biases, beta, loops, errors, stopped)


def rvfl(X, Y, weights, biases) -> Network:
    """An RVFL network: hidden nodes drawn in [-alpha, alpha] and never chosen, output weights as in Eq. 8."""
    H = hidden_layer(X, weights, biases)
    return Network(weights, biases, output_weights(H, Y), [], [root_mean_square(fit_residuals(H, Y))], "nodes")
