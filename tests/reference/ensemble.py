"""The ensemble: its errors, its linear system and Algorithms 1 to 3 (Sections 2.3 and 3.2).

`H` is a list of the members' hidden layers H_m, (N, L_m); `betas` a list of their output weights, (L_m, m); `Y` the
target, (N, m). The paper writes one output; more of them are so many right sides of the same system.
"""

from dataclasses import dataclass

import numpy as np

from reference.scn import pseudo_inverse, root_mean_square


def ensemble_output(outputs, a=None):
    """f_bar = sum of a_m f_m (Eq. 10), for `outputs` (M, N, m); a_m = 1/M, the naive method, where none are given."""
    M = len(outputs)
    a = np.full(M, 1.0 / M) if a is None else np.asarray(a)
    return np.tensordot(a, outputs, axes=1)


def member_outputs(H, betas):
    """f_m for all members and rows, (M, N, m)."""
    return np.stack([H_m @ beta for H_m, beta in zip(H, betas, strict=True)])


def penalties(outputs, a=None):
    """p_m(x_n) as Eq. 16 writes it, (M, N, m): a member's deviation times the sum of all others' deviations.

    For a_m = 1/M it is minus the squared deviation (Eq. 17); for other weights of Eq. 10 it is not.
    """
    deviations = outputs - ensemble_output(outputs, a)
    M = len(outputs)
    return np.stack([deviations[m] * sum(deviations[q] for q in range(M) if q != m) for m in range(M)])


def member_errors(outputs, Y, lam, a=None):
    """e_m for all members, (M,) (Eq. 15 with the penalty of Eq. 16; summed over outputs)."""
    return 0.5 * np.sum((outputs - Y) ** 2 + lam * penalties(outputs, a), axis=(1, 2))


def member_errors_simplified(outputs, Y, lam, a=None):
    """e_m by Eq. 18, where Eq. 17 has turned the penalty into minus the squared deviation."""
    return 0.5 * np.sum((outputs - Y) ** 2 - lam * (outputs - ensemble_output(outputs, a)) ** 2, axis=(1, 2))


def member_errors_matrix(H, betas, Y, lam):
    """e_m by Eq. 20, from hidden layers and output weights."""
    HB = np.hstack(H) @ np.vstack(betas)
    M = len(H)
    return np.array(
        [
            0.5 * (np.sum((H_m @ beta - Y) ** 2) - lam * np.sum((H_m @ beta - HB / M) ** 2))
            for H_m, beta in zip(H, betas, strict=True)
        ]
    )


def coefficients(lam, M):
    """c_1 and c_2 (Eq. 23).

    >>> coefficients(0.0, 5)
    (1.0, 0.0)
    """
    return 1.0 - lam * (M - 1) ** 2 / M**2, lam * (M - 1) / M**2


def gradient(H, betas, Y, lam):
    """The derivative of e_m by beta_m, one (L_m, m) for each member (Eq. 22); zero at the ensemble's solution."""
    c_1, c_2 = coefficients(lam, len(H))
    outputs = member_outputs(H, betas)
    return [
        c_1 * H_m.T @ outputs[m] + c_2 * H_m.T @ (outputs.sum(axis=0) - outputs[m]) - H_m.T @ Y
        for m, H_m in enumerate(H)
    ]


def weighted_gradient(H, betas, Y, lam, a):
    """The derivative of Eq. 18 by beta_m where the ensemble has weights a_m of Eq. 10; Eq. 22 for a_m = 1/M.

    Open in the paper, which derives its system for a_m = 1/M alone: f_bar moves by a_m with f_m.
    """
    outputs = member_outputs(H, betas)
    f_bar = ensemble_output(outputs, a)
    return [H_m.T @ (f - Y - lam * (1.0 - a_m) * (f - f_bar)) for H_m, f, a_m in zip(H, outputs, a, strict=True)]


def system_matrix(H, lam, r=0.0):
    """The matrix of Eq. 25, (L, L): c_1 on diagonal blocks, c_2 beside them; with c_1 r I added it is Eq. 42."""
    c_1, c_2 = coefficients(lam, len(H))
    blocks = [
        [c_1 * (H_m.T @ H_m + r * np.eye(H_m.shape[1])) if m == q else c_2 * H_m.T @ H_q for q, H_q in enumerate(H)]
        for m, H_m in enumerate(H)
    ]
    return np.block(blocks)


def split(B, H):
    """B (Eq. 21) as a list of the members' beta_m."""
    return np.split(B, np.cumsum([H_m.shape[1] for H_m in H])[:-1])


def member_inverse(H_m, r=0.0):
    """H_m^+, or (H_m' H_m + r I)^-1 H_m' in the regularised form (Remark 2)."""
    if r == 0.0:
        return pseudo_inverse(H_m)
    return np.linalg.solve(H_m.T @ H_m + r * np.eye(H_m.shape[1]), H_m.T)


def naive(H, Y, r=0.0):
    """B^(0): each member fitted alone (before Eq. 28; Eq. 43 with r > 0)."""
    return [member_inverse(H_m, r) @ Y for H_m in H]


@dataclass
class Solution:
    """`history[k]` is B^(k), a list of beta_m, from k = 0; `errors[k]` is its E_ens; `reached`: E_ens < tau."""

    history: list[list[np.ndarray]]
    errors: list[float]
    reached: bool

    @property
    def betas(self):
        return self.history[-1]

    @property
    def B(self):
        return np.vstack(self.betas)

    @property
    def sweeps(self):
        return len(self.history) - 1


def ensemble_error(H, betas, Y):
    """E_ens of Algorithms 2 and 3. Open in the paper: the measure; here the RMSE of its tables."""
    return root_mean_square(ensemble_output(member_outputs(H, betas)) - Y)


def algorithm_1(H, Y, lam, r=0.0):
    """The pseudo-inverse method: B by Eq. 26, or by the regularised matrix of Eq. 42 where r > 0."""
    A, right_side = system_matrix(H, lam, r), np.hstack(H).T @ Y
    B = pseudo_inverse(A) @ right_side if r == 0.0 else np.linalg.solve(A, right_side)
    return split(B, H)


def _iterate(H, Y, lam, tau, k_max, r, sweep):
    """The frame of Algorithms 2 and 3: B^(0), then sweeps until E_ens < tau or k_max of them are done."""
    inverses = [member_inverse(H_m, r) for H_m in H]
    c_1, c_2 = coefficients(lam, len(H))
    history = [[inverse @ Y for inverse in inverses]]
    errors = [ensemble_error(H, history[0], Y)]
    reached = False
    for _ in range(k_max):
        history.append(sweep(history[-1], inverses, c_1, c_2))
        errors.append(ensemble_error(H, history[-1], Y))
        if errors[-1] < tau:
            reached = True
            break
    return Solution(history, errors, reached)


def algorithm_2(H, Y, lam, tau, k_max, r=0.0):
    """Block Jacobi (Eqs. 28 and 29; Eq. 44 with r > 0): all members from the weights of the sweep before."""

    def sweep(previous, inverses, c_1, c_2):
        betas = []
        for m in range(len(H)):
            others = sum(H[q] @ previous[q] for q in range(len(H)) if q != m)
            betas.append(inverses[m] @ (Y - c_2 * others) / c_1)
        return betas

    return _iterate(H, Y, lam, tau, k_max, r, sweep)


def algorithm_3(H, Y, lam, tau, k_max, r=0.0):
    """Block Gauss-Seidel (Eqs. 30 and 31; Eq. 45 with r > 0): each member from the newest weights of the others."""

    def sweep(previous, inverses, c_1, c_2):
        betas = list(previous)
        for m in range(len(H)):
            others = sum(H[q] @ betas[q] for q in range(len(H)) if q != m)
            betas[m] = inverses[m] @ (Y - c_2 * others) / c_1
        return betas

    return _iterate(H, Y, lam, tau, k_max, r, sweep)
