"""When Algorithms 2 and 3 converge, and up to which lambda (Remark 1, Eqs. 32 to 41)."""

import numpy as np

from reference.ensemble import system_matrix


def _blocks(H):
    """For each of the L columns of the system, the number of its member."""
    return np.repeat(np.arange(len(H)), [H_m.shape[1] for H_m in H])


def jacobi_splitting(H, lam, r=0.0):
    """D and R of Eq. 33: the diagonal blocks of the system, and the rest."""
    A, member = system_matrix(H, lam, r), _blocks(H)
    diagonal = member[:, None] == member
    return np.where(diagonal, A, 0.0), np.where(diagonal, 0.0, A)


def gauss_seidel_splitting(H, lam, r=0.0):
    """L and U of Eq. 35: the lower block triangle with the diagonal, and the strictly upper one."""
    A, member = system_matrix(H, lam, r), _blocks(H)
    lower = member[:, None] >= member
    return np.where(lower, A, 0.0), np.where(lower, 0.0, A)


def spectral_radius(splitting):
    """rho(D^-1 R) or rho(L^-1 U), below 1 where the iteration converges (Eq. 38)."""
    solved_for, rest = splitting
    return float(np.abs(np.linalg.eigvals(np.linalg.solve(solved_for, rest))).max())


def block_row_sums(H, r=0.0):
    """sum over q != m of ||(H_m' H_m)^-1 H_m' H_q|| for each m, (M,) (Eq. 39 without c_2 / c_1).

    Open in the paper: the norm; here the spectral one. With r > 0 the inverse is that of H_m' H_m + r I.
    """
    sums = []
    for m, H_m in enumerate(H):
        G_m = H_m.T @ H_m + r * np.eye(H_m.shape[1])
        sums.append(sum(np.linalg.norm(np.linalg.solve(G_m, H_m.T @ H_q), 2) for q, H_q in enumerate(H) if q != m))
    return np.array(sums)


def theta_0(H, r=0.0):
    """theta_0 (Eq. 40): the largest of the block row sums."""
    return float(block_row_sums(H, r).max())


def largest_lambda(H, r=0.0):
    """The bound of Eq. 41: every lambda in (0, bound) has a convergent block Jacobi iteration."""
    M = len(H)
    return M**2 / ((M - 1) * (M + theta_0(H, r) - 1))
