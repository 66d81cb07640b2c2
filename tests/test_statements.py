"""Statements of docs/mathematics.md that hold under a condition: where it is met, and where it is not."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from scne.ncl import (
    BlockGaussSeidel,
    BlockJacobi,
    Cholesky,
    EnsembleSystem,
    decorrelation_bounds,
    spectral_radius_jacobi,
    system_matrix,
)

seeds = st.integers(0, 2**32 - 1)


def random_members(seed, n_members=None, overlap=0.3):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, n_members or rng.integers(2, 6))
    common = rng.standard_normal((sizes.sum() + 10, 1))
    H = [(1 - overlap) * rng.standard_normal((len(common), size)) + overlap * common for size in sizes]
    return H, rng.standard_normal(len(common)) + common[:, 0]


def iteration_radius(system, decorrelation, ridge):
    """Of D^-1 R of Eq. (38), from the blocks of A themselves."""
    A = system_matrix(system, decorrelation, ridge)
    D = np.zeros_like(A)
    for nodes in system.slices:
        D[nodes, nodes] = A[nodes, nodes]
    return np.abs(np.linalg.eigvals(np.linalg.solve(D, A - D))).max()


@given(seeds, st.floats(0.0, 1.0), st.floats(0.01, 1.9))
def test_jacobi_converges_if_and_only_if_lambda_is_below_the_bound_while_c1_is_positive(seed, overlap, share):
    system = EnsembleSystem.from_outputs(*random_members(seed, overlap=overlap))
    M, bound = system.n_members, decorrelation_bounds(system, 0.1).jacobi_exact
    assert bound < M**2 / (M - 1) ** 2
    decorrelation = share * bound
    assume(decorrelation < M**2 / (M - 1) ** 2 and abs(share - 1) > 1e-3)
    assert (iteration_radius(system, decorrelation, 0.1) < 1) == (decorrelation < bound)


@given(seeds)
def test_where_c1_is_negative_the_radius_falls_again(seed):
    system = EnsembleSystem.from_outputs(*random_members(seed, overlap=0.1))
    M = system.n_members
    t = iteration_radius(system, 0.1, 0.1) * (1 - 0.1 * (M - 1) ** 2 / M**2) / (0.1 * (M - 1) / M**2)
    assume(t < 0.9 * (M - 1))
    far = 1e6
    assert far > decorrelation_bounds(system, 0.1).jacobi_exact
    assert iteration_radius(system, far, 0.1) == pytest.approx(t / (M - 1), rel=1e-3)
    assert spectral_radius_jacobi(system, far, 0.1) == pytest.approx(iteration_radius(system, far, 0.1), rel=1e-6)
    # It converges to a solution of the equations, but their matrix is not positive definite.
    solution = BlockJacobi(max_iter=3000).solve(system, far, 0.1)
    A = system_matrix(system, far, 0.1)
    np.testing.assert_allclose(A @ solution.weights, system.moments, atol=1e-3 * np.abs(system.moments).max())
    assert np.linalg.eigvalsh(A)[0] < 0


def gains(H, y, h, ridge):
    """The paper's gain of Eq. (7) and the orthogonal one of Proposition 8, both over e'e."""
    G, C = H.T @ H + ridge * np.eye(H.shape[1]), H.T @ h
    e = y - H @ np.linalg.solve(G, H.T @ y)
    overlap = C @ np.linalg.solve(G, C)
    denominator = h @ h + ridge - overlap
    return (e @ h) ** 2 / (h @ h) / (e @ e), (e @ h) ** 2 / denominator / (e @ e), overlap


@given(seeds)
def test_what_the_paper_admits_the_orthogonal_criterion_admits_without_a_ridge(seed):
    (H, *_), y = random_members(seed)
    h = np.random.default_rng(seed + 1).standard_normal(len(y))
    paper, orthogonal, _ = gains(H, y, h, 0.0)
    assert orthogonal >= paper * (1 - 1e-9)


@given(seeds, st.floats(-3, 1), st.floats(-3, 1))
def test_with_a_ridge_it_does_so_for_candidates_that_overlap_enough(seed, size, ridge):
    (H, *_), y = random_members(seed)
    h = 10.0**size * np.random.default_rng(seed + 1).standard_normal(len(y))
    paper, orthogonal, overlap = gains(H, y, h, 10.0**ridge)
    assume(abs(overlap - 10.0**ridge) > 1e-6 * (overlap + 10.0**ridge) and paper > 1e-12)
    assert (orthogonal >= paper) == (overlap >= 10.0**ridge)


def test_a_small_candidate_can_satisfy_the_papers_inequality_alone():
    H, y = np.eye(3)[:, :1], np.array([0.0, 1.0, 0.0])
    paper, orthogonal, _ = gains(H, y, 1e-3 * y, 1e-6)
    assert paper == pytest.approx(1.0)
    assert orthogonal == pytest.approx(0.5)


@given(seeds, st.floats(0.01, 0.99))
def test_the_papers_matrices_are_those_that_the_page_says(seed, share):
    """Eqs. (32) to (37) with the paper's D, R, L and U, against iterates of the solvers."""
    H, y = random_members(seed)
    system = EnsembleSystem.from_outputs(H, y)
    M = system.n_members
    decorrelation = share * M / (M - 1)
    c1, c2 = 1 - decorrelation * (M - 1) ** 2 / M**2, decorrelation * (M - 1) / M**2
    D, R = np.zeros_like(system.gram), c2 * system.gram
    for nodes in system.slices:
        D[nodes, nodes] = c1 * (system.gram[nodes, nodes] + 0.1 * np.eye(nodes.stop - nodes.start))
        R[nodes, nodes] = 0.0
    lower = np.zeros_like(D)
    for m, nodes in enumerate(system.slices):
        for before in system.slices[:m]:
            lower[nodes, before] = R[nodes, before]
    L, U = D + lower, R - lower
    np.testing.assert_allclose(D + R, system_matrix(system, decorrelation, 0.1), atol=1e-10)
    np.testing.assert_allclose(L + U, D + R, atol=1e-12)
    for solver, inverted, rest in ((BlockJacobi, D, R), (BlockGaussSeidel, L, U)):
        history = solver(max_iter=3, step_tol=0.0).solve(system, decorrelation, 0.1).weights_history
        for before, after in itertools.pairwise(history):
            expected = np.linalg.solve(inverted, system.moments - rest @ before)
            np.testing.assert_allclose(after, expected, rtol=1e-6, atol=1e-7)


@given(seeds, st.floats(0.0, 0.9))
def test_gauss_seidel_converges_in_the_range_of_dependent_nodes_too(seed, share):
    (first, *others), y = random_members(seed)
    system = EnsembleSystem.from_outputs([np.hstack([first, first]), *others], y)
    decorrelation = share * system.decorrelation_limit
    solution = BlockGaussSeidel(max_iter=3000).solve(system, decorrelation, 0.0)
    expected = Cholesky().solve(system, decorrelation, 0.0)
    assert solution.error_history[-1] == pytest.approx(expected.error_history[-1], rel=1e-5, abs=1e-7)
