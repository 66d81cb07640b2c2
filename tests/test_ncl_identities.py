"""The identities of the ensemble's algebra on random systems, each against a plain dense computation."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scne.ncl import (
    BlockGaussSeidel,
    BlockJacobi,
    Cholesky,
    EnsembleSystem,
    MatrixFreeSystem,
    Naive,
    choose,
    coefficients,
    decorrelation_bounds,
    decorrelation_limit,
    default_decorrelations,
    lambda_path,
    node_ridge,
    spectral_radius_gauss_seidel,
    spectral_radius_jacobi,
    system_matrix,
    theta_zero,
)


@dataclass
class Problem:
    """Hidden outputs, targets, ridges and the system made of them."""

    H: np.ndarray
    y: np.ndarray
    row_weights: np.ndarray
    ridge: np.ndarray
    system: EnsembleSystem

    @property
    def block_diagonal(self) -> np.ndarray:
        D = np.zeros_like(self.system.gram)
        for nodes in self.system.slices:
            D[nodes, nodes] = self.system.gram[nodes, nodes]
        return D

    @property
    def ridge_matrix(self) -> np.ndarray:
        return np.diag(np.repeat(self.ridge, self.system.sizes))

    def matrix(self, decorrelation: float) -> np.ndarray:
        """A(lambda) by the paper's own blocks, Eqs. (25) and (42)."""
        M, gram = self.system.n_members, self.system.gram
        c1 = 1 - decorrelation * (M - 1) ** 2 / M**2
        c2 = decorrelation * (M - 1) / M**2
        D = self.block_diagonal
        return c1 * D + c2 * (gram - D) + c1 * self.ridge_matrix


@st.composite
def problems(draw, min_members=2):
    sizes = draw(st.lists(st.integers(1, 5), min_size=min_members, max_size=5))
    seed = draw(st.integers(0, 2**32 - 1))
    overlap = draw(st.floats(0.0, 1.0))
    n_outputs = draw(st.integers(1, 3))
    rng = np.random.default_rng(seed)
    n_rows = sum(sizes) + draw(st.integers(3, 20))
    common = rng.standard_normal((n_rows, 1))
    H = [(1 - overlap) * rng.standard_normal((n_rows, size)) + overlap * common for size in sizes]
    y = rng.standard_normal((n_rows, n_outputs)) + common
    weights = rng.uniform(0.5, 2.0, n_rows)
    ridge = 10.0 ** rng.uniform(-2, 1, len(sizes))
    return Problem(np.hstack(H), y, weights, ridge, EnsembleSystem.from_outputs(H, y, weights))


fractions = st.floats(0.0, 0.999)
quick = settings(max_examples=40, deadline=None)


@quick
@given(problems(), fractions)
def test_matrix_is_a_mixture_of_naive_and_joint(problem, fraction):
    M = problem.system.n_members
    decorrelation = fraction * decorrelation_limit(M)
    c = coefficients(decorrelation, M)
    A = system_matrix(problem.system, decorrelation, problem.ridge)
    naive = problem.block_diagonal + problem.ridge_matrix
    joint = problem.system.gram + problem.ridge_matrix
    np.testing.assert_allclose(A, problem.matrix(decorrelation), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(A, (c.c1 - c.c2) * naive + c.c2 * joint, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(c.c1 - c.c2, 1 - decorrelation * (M - 1) / M, atol=1e-14)
    assert np.linalg.eigvalsh(A)[0] > 0


@quick
@given(problems())
def test_zero_is_naive_and_the_limit_is_the_joint_ridge_regression(problem):
    system, M = problem.system, problem.system.n_members
    naive = Naive().solve(system, 0.3, problem.ridge).weights
    start = Cholesky().solve(system, 0.0, problem.ridge).weights
    np.testing.assert_allclose(start, naive, rtol=1e-8, atol=1e-10)
    H, W = problem.H, problem.row_weights
    for m, nodes in enumerate(system.slices):
        Hm = H[:, nodes]
        alone = np.linalg.solve(Hm.T * W @ Hm + problem.ridge[m] * np.eye(Hm.shape[1]), Hm.T * W @ problem.y)
        np.testing.assert_allclose(naive[nodes], alone, rtol=1e-7, atol=1e-9)
    # At the limit the ensemble (1/M) H B is the ridge regression of y on all nodes.
    end = Cholesky().solve(system, decorrelation_limit(M), problem.ridge).weights / M
    joint = np.linalg.solve(H.T * W @ H + problem.ridge_matrix, H.T * W @ problem.y)
    np.testing.assert_allclose(end, joint, rtol=1e-6, atol=1e-8)


@quick
@given(problems(), fractions)
def test_jacobi_radius_is_that_of_its_iteration_matrix(problem, fraction):
    decorrelation = fraction * decorrelation_limit(problem.system.n_members)
    A = problem.matrix(decorrelation)
    D = np.zeros_like(A)
    for nodes in problem.system.slices:
        D[nodes, nodes] = A[nodes, nodes]
    expected = np.abs(np.linalg.eigvals(np.linalg.solve(D, A - D))).max()
    found = spectral_radius_jacobi(problem.system, decorrelation, problem.ridge)
    assert found == pytest.approx(expected, rel=1e-7, abs=1e-9)


@quick
@given(problems(), fractions)
def test_gauss_seidel_radius_is_that_of_its_iteration_matrix_and_below_one(problem, fraction):
    decorrelation = fraction * decorrelation_limit(problem.system.n_members)
    A = problem.matrix(decorrelation)
    lower = np.tril(A)
    for nodes in problem.system.slices:
        lower[nodes, nodes] = A[nodes, nodes]
    expected = np.abs(np.linalg.eigvals(np.linalg.solve(lower, A - lower))).max()
    found = spectral_radius_gauss_seidel(problem.system, decorrelation, problem.ridge)
    # Eigenvalues of a nonsymmetric matrix near a defective one move with the root of the rounding.
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-4)
    assert found < 1


@quick
@given(problems())
def test_bounds(problem):
    system, M = problem.system, problem.system.n_members
    Dr = problem.block_diagonal + problem.ridge_matrix
    root = np.linalg.inv(np.linalg.cholesky(Dr))
    mu = np.linalg.eigvalsh(root @ (system.gram + problem.ridge_matrix) @ root.T)
    assert mu[0] > 0
    assert mu[-1] <= M * (1 + 1e-12)
    bounds = decorrelation_bounds(system, problem.ridge)
    assert bounds.positive_definite == pytest.approx(M / (M - 1))
    assert bounds.jacobi_any_data == pytest.approx(M**2 / (2 * (M - 1) ** 2))
    assert bounds.jacobi_exact >= bounds.jacobi_any_data * (1 - 1e-12)
    assert spectral_radius_jacobi(system, bounds.jacobi_exact, problem.ridge) == pytest.approx(1.0)
    sums = [
        sum(np.linalg.norm(np.linalg.solve(Dr[m, m], system.gram[m, q]), 2) for q in system.slices if q != m)
        for m in system.slices
    ]
    assert bounds.theta_zero == pytest.approx(max(sums), rel=1e-8)
    assert bounds.theta_zero == theta_zero(system, problem.ridge)
    assert bounds.paper == pytest.approx(M**2 / ((M - 1) * (M + max(sums) - 1)), rel=1e-8)
    # Gershgorin's estimate is never more generous than the exact radius.
    assert bounds.paper <= bounds.jacobi_exact * (1 + 1e-9)


@quick
@given(problems(), st.floats(0.0, 0.98))
def test_jacobi_converges_below_the_bound_for_any_data(problem, fraction):
    decorrelation = fraction * decorrelation_bounds(problem.system, problem.ridge).jacobi_any_data
    expected = Cholesky().solve(problem.system, decorrelation, problem.ridge).weights
    solution = BlockJacobi(max_iter=3000).solve(problem.system, decorrelation, problem.ridge)
    np.testing.assert_allclose(solution.weights, expected, rtol=1e-5, atol=1e-6)


@quick
@given(problems(), st.floats(0.0, 0.95))
def test_gauss_seidel_converges_below_the_limit(problem, fraction):
    decorrelation = fraction * decorrelation_limit(problem.system.n_members)
    expected = Cholesky().solve(problem.system, decorrelation, problem.ridge).weights
    solver = BlockGaussSeidel(max_iter=3000, keep_weights_history=False)
    solution = solver.solve(problem.system, decorrelation, problem.ridge)
    np.testing.assert_allclose(solution.weights, expected, rtol=1e-5, atol=1e-6)


@quick
@given(problems(min_members=1), st.lists(fractions, min_size=1, max_size=4))
def test_path_equals_the_explicit_fit(problem, parts):
    system, M, q = problem.system, problem.system.n_members, problem.y.shape[1]
    lambdas = np.array(parts) * (decorrelation_limit(M) if M > 1 else 1.0)
    path = lambda_path(system, problem.ridge, lambdas)
    together = path.weights_at(lambdas)
    W, n_rows = problem.row_weights, problem.row_weights.sum()
    for i, decorrelation in enumerate(lambdas):
        inverse = np.linalg.inv(problem.matrix(decorrelation))
        B = inverse @ system.moments
        np.testing.assert_allclose(path.weights_at(decorrelation), B, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(together[i], B, rtol=1e-6, atol=1e-8)
        squares = W @ (problem.y - problem.H @ B / M) ** 2
        np.testing.assert_allclose(system.residual_squares(B), squares, rtol=1e-7)
        assert path.errors[i] == pytest.approx(np.sqrt(squares.sum() / (n_rows * q)), rel=1e-7)
        assert path.errors[i] == pytest.approx(system.ensemble_error(B), rel=1e-7)
        smoother = problem.H @ inverse @ problem.H.T * W / M
        df = np.trace(smoother)
        assert path.degrees_of_freedom[i] == pytest.approx(df, rel=1e-7)
        score = squares.sum() / (n_rows * q) / (1 - df / n_rows) ** 2 if df < n_rows else np.inf
        assert path.gcv[i] == pytest.approx(score, rel=1e-5)
    assert path.best == np.argmin(path.gcv)
    assert path.best_decorrelation == lambdas[path.best]


@quick
@given(problems())
def test_matrix_free_products_are_those_of_the_gram_matrix(problem):
    system, free = problem.system, matrix_free(problem)
    B = np.linspace(-1, 1, system.moments.size).reshape(system.moments.shape)
    np.testing.assert_allclose(free.product(B), system.product(B), rtol=1e-9, atol=1e-9)
    for m, nodes in enumerate(system.slices):
        np.testing.assert_allclose(system.product_rows(m, B), system.product(B)[nodes], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(free.product_rows(m, B), system.product_rows(m, B), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(free.diagonal_product(B), problem.block_diagonal @ B, rtol=1e-9, atol=1e-9)
    assert free.ensemble_error(B) == pytest.approx(system.ensemble_error(B), rel=1e-9)


def matrix_free(problem):
    """The same system from its rows, with no off-diagonal block ever formed."""
    system, H, W = problem.system, problem.H, problem.row_weights
    members = [H[:, nodes] for nodes in system.slices]
    return MatrixFreeSystem(
        diagonal_blocks=[Hm.T * W @ Hm for Hm in members],
        moments=system.moments,
        target_square=system.target_square,
        n_rows=system.n_rows,
        sizes=system.sizes,
        product_fn=lambda B: H.T * W @ (H @ B),
        product_rows_fn=lambda m, B: members[m].T * W @ (H @ B),
    )


def random_system(sizes, n_rows=200, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    H = [rng.standard_normal((n_rows, size)) for size in sizes]
    y = np.hstack(H).sum(axis=1) + noise * rng.standard_normal(n_rows)
    return EnsembleSystem.from_outputs(H, y)


def test_lanczos_radius_equals_the_dense_one(monkeypatch):
    system = random_system((40, 50, 60), n_rows=180)
    dense = spectral_radius_jacobi(system, 0.8, 0.1)
    monkeypatch.setattr("scne.ncl._bounds.DENSE_NODES", 100)
    assert spectral_radius_jacobi(system, 0.8, 0.1) == pytest.approx(dense, rel=1e-8)
    assert spectral_radius_jacobi(system, 0.8, 0.1) == spectral_radius_jacobi(system, 0.8, 0.1)


def test_radius_counts_members_that_oppose_each_other():
    # Three nodes at 120 degrees sum to zero: mu = (0, 3/2, 3/2), so that 1 - mu_min decides.
    angles = 2 * np.pi * np.arange(3) / 3
    nodes = [np.array([[np.cos(angle)], [np.sin(angle)]]) for angle in angles]
    system = EnsembleSystem.from_outputs(nodes, np.ones(2))
    c = coefficients(1.0, 3)
    assert spectral_radius_jacobi(system, 1.0, 0.0) == pytest.approx(c.c2 / c.c1)
    assert decorrelation_bounds(system, 0.0).jacobi_exact == pytest.approx(9 / (2 * 3))


def test_path_reaches_the_joint_fit_of_nodes_shared_between_members():
    H = np.random.default_rng(0).standard_normal((30, 4))
    system = EnsembleSystem.from_outputs([H[:, :3], H[:, 1:]], H.sum(axis=1) ** 2)
    limit = decorrelation_limit(2)
    path = lambda_path(system, 0.0, [0.5, limit])
    A = system_matrix(system, limit, 0.0)
    np.testing.assert_allclose(A @ path.weights_at(limit), system.moments, atol=1e-8)
    assert np.abs(path.weights_at(limit)).max() < 100
    assert path.degrees_of_freedom[1] == pytest.approx(4)


def test_gcv_does_not_reward_rounding():
    system = random_system((8,), n_rows=9, noise=0.0)  # y lies in the span of the nodes: the residual is rounding
    path = lambda_path(system, 0.0, [0.0])
    left = 1 - path.degrees_of_freedom / 9
    assert path.gcv[0] * left[0] ** 2 >= 1e-14 * system.target_square[0] / 9


def test_what_counts_as_rounding_does_not_depend_on_the_number_of_outputs():
    H = np.random.default_rng(0).standard_normal((9, 8))
    once, twice = (EnsembleSystem.from_outputs([H], np.repeat(H @ np.ones((8, 1)), q, axis=1)) for q in (1, 2))
    scores = [lambda_path(system, 0.0, [0.0]).gcv for system in (once, twice)]
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-9)


def test_bounds_and_path_without_ridge_move_in_the_range_of_each_member():
    rng = np.random.default_rng(0)
    H = rng.standard_normal((30, 6))
    doubled = [H[:, [0, 1, 1]], H[:, [2, 2, 2]], np.zeros((30, 2)), H[:, 3:]]
    plain = [H[:, :2], H[:, 2:3], H[:, 3:], np.zeros((30, 0))]
    y = rng.standard_normal(30)
    full, thin = (EnsembleSystem.from_outputs(members, y) for members in (doubled, plain))
    assert decorrelation_bounds(full, 0.0).jacobi_exact == pytest.approx(decorrelation_bounds(thin, 0.0).jacobi_exact)
    lambdas = [0.0, 0.5, 1.2]
    left, right = lambda_path(full, 0.0, lambdas), lambda_path(thin, 0.0, lambdas)
    np.testing.assert_allclose(left.errors, right.errors)
    np.testing.assert_allclose(left.degrees_of_freedom, right.degrees_of_freedom)
    expected = Cholesky().solve(full, 1.2, 0.0)
    np.testing.assert_allclose(left.weights_at(1.2), expected.weights, atol=1e-10)


def test_one_member_knows_no_bound():
    system = random_system((4,))
    bounds = decorrelation_bounds(system, 0.1)
    assert bounds.paper == bounds.jacobi_any_data == bounds.jacobi_exact == bounds.positive_definite == np.inf
    assert spectral_radius_jacobi(system, 5.0, 0.1) == 0
    assert spectral_radius_gauss_seidel(system, 5.0, 0.1) == 0
    assert coefficients(5.0, 1).c1 == 1
    assert coefficients(5.0, 1).c2 == 0


@pytest.mark.parametrize("n_members", [2, 3, 8, 50])
def test_default_decorrelations(n_members):
    lambdas = default_decorrelations(n_members)
    s = 1 - lambdas * (n_members - 1) / n_members
    assert lambdas.shape == (100,)
    assert lambdas[0] == 0
    assert (np.diff(lambdas) > 0).all()
    assert s[-1] == pytest.approx(1e-4)
    assert (s < 0.01).sum() > 20
    assert default_decorrelations(1).tolist() == [0.0]


def test_gcv_is_infinite_where_nothing_is_left_of_the_rows():
    system = random_system((4, 4), n_rows=8)
    # Joint fit of 8 nodes without ridge on 8 rows: df = N.
    path = lambda_path(system, 0.0, [0.0, decorrelation_limit(2)])
    assert path.degrees_of_freedom[1] == pytest.approx(8)
    assert path.gcv[1] == np.inf
    assert np.isfinite(path.gcv[0])
    wide = random_system((20,), n_rows=10)
    assert lambda_path(wide, 1e-6, [0.0]).degrees_of_freedom[0] == pytest.approx(10)


def test_choose_takes_the_least_score_below_the_limit():
    system = random_system((5, 5, 5), n_rows=60, noise=0.1)
    ridges = [1e-3, 1.0, 100.0]
    choice = choose(system, ridges)
    tables = [lambda_path(system, r).gcv for r in ridges]
    np.testing.assert_array_equal(choice.scores, tables)
    assert np.min(tables) == choice.scores[ridges.index(choice.ridge[0])].min()
    assert choice.ridge.shape == (3,)
    for bound in (choice.decorrelation, choice.decorrelation * 0.8):
        assert choose(system, ridges, limit=bound).decorrelation < bound
    jacobi = choose(system, ridges, limit=lambda r: 0.99 * decorrelation_bounds(system, r).jacobi_any_data)
    assert 0.9 < jacobi.decorrelation < 0.99 * 9 / 8
    assert spectral_radius_jacobi(system, jacobi.decorrelation, jacobi.ridge) < 1
    assert choose(system, ridges, limit=0.0).decorrelation == 0
    with pytest.raises(ValueError, match="larger ridges"):
        choose(random_system((20,), n_rows=10), [0.0], [0.0])


def test_path_in_chunks_equals_whole(monkeypatch):
    system = random_system((3, 4))
    whole = lambda_path(system, 0.1).errors
    monkeypatch.setattr("scne.ncl._path.CHUNK_NUMBERS", 7 * 9)
    np.testing.assert_allclose(lambda_path(system, 0.1).errors, whole, rtol=1e-13)


def test_node_ridge_takes_one_or_one_per_member():
    assert node_ridge(2.0, (1, 2)).tolist() == [2.0, 2.0, 2.0]
    assert node_ridge([1.0, 3.0], (1, 2)).tolist() == [1.0, 3.0, 3.0]
