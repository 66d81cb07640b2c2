"""Every solver on problems with known solutions, and what each says about how it went."""

import copy
import pickle
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scne.ncl import (
    SOLVERS,
    BlockGaussSeidel,
    BlockJacobi,
    Cholesky,
    ConjugateGradient,
    EnsembleSystem,
    MatrixFreeSystem,
    Naive,
    PseudoInverse,
    Solution,
    Status,
    choose_solver,
    decorrelation_bounds,
    decorrelation_limit,
    factor_block,
    lambda_path,
    spectral_radius_gauss_seidel,
    spectral_radius_jacobi,
    system_matrix,
)
from scne.ncl._bounds import JacobiConvergence
from scne.ncl._factors import factor_blocks

quick = settings(max_examples=60, deadline=None)
COUPLED = {
    "pinv": PseudoInverse(),
    "cholesky": Cholesky(),
    "jacobi": BlockJacobi(max_iter=5000, step_tol=1e-13),
    "gauss-seidel": BlockGaussSeidel(max_iter=5000, step_tol=1e-13),
    "cg": ConjugateGradient(step_tol=1e-14),
}
ITERATIVE = {name: COUPLED[name] for name in ("jacobi", "gauss-seidel", "cg")}
coupled = pytest.mark.parametrize("solver", COUPLED.values(), ids=COUPLED.keys())
iterative = pytest.mark.parametrize("solver", ITERATIVE.values(), ids=ITERATIVE.keys())

CASES = {
    "three members": ((4, 3, 5), 1, [0.1, 0.1, 0.1]),
    "several outputs": ((4, 3), 3, [0.1, 0.1]),
    "a ridge per member": ((4, 3, 2), 2, [0.01, 1.0, 100.0]),
    "a member of one node": ((1, 5), 1, [0.5, 0.5]),
    "members of one node": ((1, 1, 1, 1), 2, [0.5, 0.5, 0.5, 0.5]),
    "no ridge, full rank": ((3, 3), 1, [0.0, 0.0]),
    "one member": ((4,), 2, [0.3]),
}


def hidden_outputs(sizes, n_rows=60, seed=0):
    rng = np.random.default_rng(seed)
    shift = rng.standard_normal((n_rows, 1))
    return [rng.standard_normal((n_rows, size)) + 0.5 * shift for size in sizes]


def make_system(members, n_outputs=1, seed=1):
    y = np.random.default_rng(seed).standard_normal((len(members[0]), n_outputs))
    return EnsembleSystem.from_outputs(members, y + members[0].sum(axis=1, keepdims=True))


def with_solution(system, decorrelation, ridge, weights):
    """The same members with moments such that `weights` solve the system exactly."""
    return replace(system, moments=system_matrix(system, decorrelation, ridge) @ weights)


def matrix_free(system, product_calls=None):
    calls = [] if product_calls is None else product_calls

    def product(B):
        calls.append(B.shape)
        return system.gram @ B

    return MatrixFreeSystem(
        diagonal_blocks=[system.diagonal_block(m).copy() for m in range(system.n_members)],
        moments=system.moments,
        target_square=system.target_square,
        n_rows=system.n_rows,
        sizes=system.sizes,
        product_fn=product,
        product_rows_fn=lambda m, B: system.gram[system.slices[m]] @ B,
    )


@coupled
@pytest.mark.parametrize(("sizes", "n_outputs", "ridge"), CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("decorrelation", [0.0, 0.4, 0.8])
def test_solver_finds_the_constructed_solution(solver, sizes, n_outputs, ridge, decorrelation):
    system = make_system(hidden_outputs(sizes), n_outputs)
    exact = np.random.default_rng(2).standard_normal((sum(sizes), n_outputs))
    system = with_solution(system, decorrelation, ridge, exact)
    solution = solver.solve(system, decorrelation, np.array(ridge))
    np.testing.assert_allclose(solution.weights, exact, rtol=1e-8, atol=1e-9)
    assert solution.status in (Status.SOLVED, Status.CONVERGED)
    assert solution.error_history[-1] == pytest.approx(system.ensemble_error(solution.weights), rel=1e-6)


@coupled
def test_duplicated_and_zero_nodes_without_ridge(solver):
    members = hidden_outputs((4, 3, 2))
    members[0][:, 1] = members[0][:, 0]  # twins within a member
    members[1][:, 0] = members[2][:, 0]  # twins between members
    members[2][:, 1] = 0.0  # a dead node
    system = make_system(members, n_outputs=2)
    decorrelation = 0.7
    A = system_matrix(system, decorrelation, 0.0)
    solution = solver.solve(system, decorrelation, np.zeros(3))
    np.testing.assert_allclose(A @ solution.weights, system.moments, atol=1e-7)
    # Every solver starts in, and stays in, the range of the members: all give the solution of least norm.
    np.testing.assert_allclose(solution.weights, np.linalg.pinv(A) @ system.moments, atol=1e-7)
    np.testing.assert_allclose(solution.weights[0], solution.weights[1], atol=1e-8)
    assert solution.weights[-1] == pytest.approx(0.0)


@pytest.mark.parametrize("name", ["pinv", "cholesky"])
def test_direct_solvers_say_that_they_used_a_pseudo_inverse(name):
    members = hidden_outputs((3, 3))
    members[0][:, 1] = members[0][:, 0]
    solution = COUPLED[name].solve(make_system(members), 0.5, np.zeros(2))
    assert solution.status is Status.RANK_DEFICIENT
    assert solution.solver == name
    assert "rank 5 of 6" in solution.message
    assert "ridge" in solution.message


def test_naive_names_the_dependent_member():
    members = hidden_outputs((3, 3))
    members[1][:, 1] = members[1][:, 0]
    solution = Naive().solve(make_system(members), 0.5, np.zeros(2))
    assert solution.status is Status.RANK_DEFICIENT
    assert "1 of 3 directions of member 1 cannot be distinguished from rounding in H'H" in solution.message
    for m, nodes in enumerate((slice(0, 3), slice(3, 6))):
        system = make_system(members)
        expected = np.linalg.pinv(system.diagonal_block(m)) @ system.moments[nodes]
        np.testing.assert_allclose(solution.weights[nodes], expected, atol=1e-10)


def test_pinv_cut_off_is_the_users():
    system = EnsembleSystem(np.diag([1.0, 1e-4]), np.ones((2, 1)), np.ones(1), 1.0, (2,))
    assert PseudoInverse().solve(system, 0.0, 0.0).weights.ravel() == pytest.approx([1.0, 1e4])
    assert PseudoInverse(rcond=1e-3).solve(system, 0.0, 0.0).weights.ravel() == pytest.approx([1.0, 0.0])


def test_pinv_takes_eigenvalues_not_above_the_cut_off_for_zero():
    def weights(values, rcond):
        system = EnsembleSystem(np.diag(values), np.ones((len(values), 1)), np.ones(1), 1.0, (len(values),))
        return PseudoInverse(rcond).solve(system, 0.0, 0.0).weights.ravel().tolist()

    assert weights([1.0, 0.5], 0.5) == [1.0, 0.0]
    assert weights([1.0, 0.5], 0.499) == [1.0, 2.0]
    assert weights([4.0, 1.0], 0.3) == [0.25, 0.0]
    # By default eps times the number of nodes: four here.
    eps = np.finfo(float).eps
    assert weights([1.0, 1.0, 1.0, 3 * eps], None) == [1.0, 1.0, 1.0, 0.0]
    assert weights([1.0, 1.0, 1.0, 5 * eps], None) == [1.0, 1.0, 1.0, 1 / (5 * eps)]


def test_pinv_solves_beyond_the_limit_where_the_matrix_is_indefinite():
    system = make_system(hidden_outputs((3, 4)))
    A = system_matrix(system, 3.5, 0.1)
    assert np.linalg.eigvalsh(A)[0] < 0
    solution = PseudoInverse().solve(system, 3.5, 0.1)
    np.testing.assert_allclose(A @ solution.weights, system.moments, atol=1e-9)
    assert solution.status is Status.SOLVED
    assert solution.n_iter == 0
    assert solution.detail == ""
    assert solution.error_history.tolist() == [system.ensemble_error(solution.weights)]


@iterative
def test_histories_begin_with_the_naive_ensemble_and_end_with_the_answer(solver):
    system = make_system(hidden_outputs((3, 4)), n_outputs=2)
    ridge = np.array([0.1, 0.2])
    solution = solver.solve(system, 0.9, ridge)
    k = solution.n_iter
    assert k > 1
    assert solution.weights_history.shape == (k + 1, 7, 2)
    assert solution.error_history.shape == (k + 1,)
    np.testing.assert_allclose(solution.weights_history[0], Naive().solve(system, 0.9, ridge).weights)
    np.testing.assert_array_equal(solution.weights_history[-1], solution.weights)
    errors = [system.ensemble_error(B) for B in solution.weights_history]
    np.testing.assert_allclose(solution.error_history, errors, rtol=1e-9)
    light = replace(solver, keep_weights_history=False).solve(system, 0.9, ridge)
    assert light.weights_history is None
    np.testing.assert_array_equal(light.weights, solution.weights)


@pytest.mark.parametrize("name", ["jacobi", "gauss-seidel"])
def test_iterates_are_those_of_the_paper(name):
    """Two iterations written out as in Algorithms 2 and 3, on the rows themselves."""
    members, M = hidden_outputs((3, 4, 2)), 3
    y = np.random.default_rng(5).standard_normal(60)
    system = EnsembleSystem.from_outputs(members, y)
    decorrelation, r = 0.6, 0.3
    c1, c2 = 1 - decorrelation * 4 / 9, decorrelation * 2 / 9
    fit = [np.linalg.solve(H.T @ H + r * np.eye(H.shape[1]), H.T) for H in members]
    beta = [fit[m] @ y for m in range(M)]
    for _ in range(2):
        old = list(beta)
        source = old if name == "jacobi" else beta
        for m in range(M):
            beta[m] = fit[m] @ (y - c2 * sum(members[q] @ source[q] for q in range(M) if q != m)) / c1
    solution = SOLVERS[name](max_iter=2).solve(system, decorrelation, np.full(3, r))
    np.testing.assert_allclose(solution.weights[:, 0], np.concatenate(beta), rtol=1e-9, atol=1e-12)
    assert solution.status is Status.MAX_ITER
    assert "raise max_iter" in solution.message


@iterative
def test_stops_at_the_papers_tolerance(solver):
    system = make_system(hidden_outputs((3, 4)))
    full = solver.solve(system, 1.5, np.full(2, 0.1))
    tol = 0.5 * (full.error_history[0] + full.error_history[-1])
    solution = replace(solver, tol=tol).solve(system, 1.5, np.full(2, 0.1))
    assert solution.status is Status.REACHED_TOLERANCE
    assert solution.error_history[-1] < tol <= solution.error_history[-2]
    assert solution.n_iter < full.n_iter
    assert "lower tol" in solution.message


@iterative
def test_stops_at_max_iter(solver):
    system = make_system(hidden_outputs((3, 4, 5)))
    solution = replace(solver, max_iter=1).solve(system, 0.9, np.full(3, 0.1))
    assert solution.status is Status.MAX_ITER
    assert solution.n_iter == 1


@pytest.mark.parametrize(("name", "most"), [("jacobi", 100), ("gauss-seidel", 100), ("cg", 1000)])
def test_how_many_iterations_a_solver_takes_unless_it_is_told(name, most):
    """More than an ordinary ensemble needs."""
    solver = SOLVERS[name]()
    solution = solver.solve(make_system(hidden_outputs((3, 4, 5))), 0.5, np.full(3, 0.1))
    assert solution.status is Status.CONVERGED
    assert solution.n_iter < solver.max_iter == most


@pytest.mark.parametrize(("gap", "status"), [(1e-6, Status.CONVERGED), (1e-10, Status.DIVERGED)])
def test_conjugate_gradients_that_leave_the_targets_far_behind_have_diverged(gap, status):
    """Beyond the limit of lambda a matrix may still be positive definite, but not by much, and its solution is wild."""
    gram = np.array([[1.0, 1 / 3 - gap], [1 / 3 - gap, 1.0]])
    system = EnsembleSystem(gram, np.array([[1.0], [-1.0]]), np.full(1, 2.0), 2.0, (1, 1))
    solution = ConjugateGradient().solve(system, 3.0, 0.0)
    assert solution.status is status
    assert solution.error_history[1] > 0.1 / gap


def test_jacobi_diverges_above_its_exact_bound_only_and_says_so():
    members = hidden_outputs((3, 3, 3, 3))
    members = [0.2 * H + members[0] for H in members]  # members that nearly agree
    system, ridge = make_system(members), np.full(4, 0.01)
    exact = decorrelation_bounds(system, ridge).jacobi_exact
    assert exact < decorrelation_limit(4)
    solver = BlockJacobi(max_iter=20_000, keep_weights_history=False)
    below = solver.solve(system, 0.98 * exact, ridge)
    above = solver.solve(system, 1.02 * exact, ridge)
    assert below.status is Status.CONVERGED
    assert below.spectral_radius < 1 < above.spectral_radius
    assert above.status is Status.DIVERGED
    assert above.decorrelation_bound == pytest.approx(exact)
    assert np.isfinite(above.weights).all()
    assert f"{exact:.4g}" in above.message
    assert "gauss-seidel" in above.message
    free = solver.solve(matrix_free(system), 1.02 * exact, ridge)
    assert free.status is Status.DIVERGED
    assert free.decorrelation_bound == pytest.approx(16 / 18)
    for name in ("gauss-seidel", "cg", "cholesky"):
        assert COUPLED[name].solve(system, 1.02 * exact, ridge).status is not Status.DIVERGED


def with_jacobi_radius(radius):
    """Nearly equal members, and the lambda at which block Jacobi's iteration matrix has this spectral radius."""
    members = hidden_outputs((3, 3, 3, 3))
    system, ridge = make_system([0.2 * H + members[0] for H in members]), np.full(4, 0.01)
    strength = spectral_radius_jacobi(system, 1.0, ridge) * (1 - 9 / 16) / (3 / 16)
    # (c2 / c1) strength = radius, with c1 = 1 - lambda 9/16 and c2 = lambda 3/16.
    decorrelation = radius / (3 / 16 * strength + radius * 9 / 16)
    assert spectral_radius_jacobi(system, decorrelation, ridge) == pytest.approx(radius, rel=1e-12)
    return system, decorrelation, ridge


@pytest.mark.parametrize("max_iter", [1, 2, 5, 60])
@pytest.mark.parametrize(
    ("radius", "status"),
    [
        (0.9, Status.MAX_ITER),
        (0.99, Status.MAX_ITER),
        (1 - 1e-9, Status.MAX_ITER),
        (1 + 1e-9, Status.DIVERGED),
        (1.01, Status.DIVERGED),
        (1.37, Status.DIVERGED),
    ],
)
def test_an_iteration_that_max_iter_ends_diverged_if_its_radius_is_one_or_more(radius, status, max_iter):
    system, decorrelation, ridge = with_jacobi_radius(radius)
    solution = BlockJacobi(max_iter=max_iter, step_tol=0.0).solve(system, decorrelation, ridge)
    assert (solution.status, solution.n_iter) == (status, max_iter)
    assert solution.spectral_radius == pytest.approx(radius, rel=1e-12)
    advice = "raise max_iter" if status is Status.MAX_ITER else "use a decorrelation below"
    assert advice in solution.message
    assert ("moving away from the solution" in solution.message) == (status is Status.DIVERGED)
    if status is Status.DIVERGED:
        assert f"{decorrelation_bounds(system, ridge).jacobi_exact:.4g}" in solution.message


@pytest.mark.parametrize(
    ("radius", "status"), [(0.9, Status.MAX_ITER), (0.999, Status.MAX_ITER), (1.01, Status.DIVERGED)]
)
def test_without_the_gram_matrix_growing_steps_tell_a_divergence(radius, status):
    system, decorrelation, ridge = with_jacobi_radius(radius)
    solution = BlockJacobi(max_iter=60, step_tol=0.0).solve(matrix_free(system), decorrelation, ridge)
    assert solution.status is status
    if status is Status.DIVERGED:
        assert solution.decorrelation_bound == pytest.approx(16 / 18)


@quick
@given(st.integers(0, 10_000), st.floats(0.05, 0.999), st.floats(0.0, 10.0), st.integers(2, 8))
def test_growing_steps_never_tell_a_divergence_that_is_none(seed, share, ridge, max_iter):
    members = hidden_outputs((2, 3, 2), n_rows=20, seed=seed)
    system = make_system([0.3 * H + members[0][:, :1] for H in members])
    decorrelation = share * decorrelation_bounds(system, ridge).jacobi_exact
    for solver in (BlockJacobi(max_iter=max_iter, step_tol=0.0), BlockGaussSeidel(max_iter=max_iter, step_tol=0.0)):
        if solver.name == "gauss-seidel":
            decorrelation = min(decorrelation, 0.999 * decorrelation_limit(3))
        assert solver.solve(matrix_free(system), decorrelation, ridge).status is not Status.DIVERGED


def test_gauss_seidel_below_the_limit_is_slow_at_worst():
    system, _, ridge = with_jacobi_radius(1.37)
    slow = BlockGaussSeidel(max_iter=5, step_tol=0.0).solve(system, 0.999 * decorrelation_limit(4), ridge)
    assert slow.status is Status.MAX_ITER
    assert "raise max_iter" in slow.message


@pytest.mark.parametrize("name", ["gauss-seidel", "cg"])
def test_beyond_the_limit_the_others_diverge_too(name):
    members = hidden_outputs((3, 3))
    system = make_system([members[0], members[0] + 1e-3 * members[1]])
    solver = replace(COUPLED[name], max_iter=20_000, keep_weights_history=False)
    solution = solver.solve(system, 2.3, np.full(2, 1e-3))
    assert solution.status is Status.DIVERGED
    assert np.isfinite(solution.weights).all()
    assert solution.decorrelation_bound == 2.0


def test_a_jump_out_of_the_numbers_returns_the_last_finite_iterate():
    system = make_system(hidden_outputs((2, 2)))
    calls = []

    def product(B):
        calls.append(1)
        return system.gram @ B if len(calls) < 3 else np.full_like(B, np.inf)

    broken = replace(matrix_free(system), product_fn=product)
    solution = BlockJacobi().solve(broken, 0.5, np.full(2, 0.1))
    assert solution.status is Status.DIVERGED
    assert solution.n_iter == 1
    np.testing.assert_array_equal(solution.weights, solution.weights_history[-1])


@pytest.mark.parametrize("name", ["naive", "jacobi", "gauss-seidel", "cg"])
def test_matrix_free_equals_dense(name):
    system, ridge = make_system(hidden_outputs((3, 4, 1)), n_outputs=2), np.array([0.1, 0.2, 0.3])
    calls = []
    dense = SOLVERS[name]().solve(system, 0.8, ridge)
    free = SOLVERS[name]().solve(matrix_free(system, calls), 0.8, ridge)
    np.testing.assert_allclose(free.weights, dense.weights, rtol=1e-10)
    np.testing.assert_allclose(free.error_history, dense.error_history, rtol=1e-10)
    assert free.status is dense.status
    # One product with G per iteration, and one for the start.
    assert len(calls) == free.n_iter + 1


@pytest.mark.parametrize(
    "ask",
    [
        lambda s: PseudoInverse().solve(s, 0.5, 0.1),
        lambda s: Cholesky().solve(s, 0.5, 0.1),
        lambda s: lambda_path(s, 0.1),
        lambda s: decorrelation_bounds(s, 0.1),
    ],
    ids=["pinv", "cholesky", "path", "bounds"],
)
def test_matrix_free_is_refused_where_the_gram_matrix_is_needed(ask):
    with pytest.raises(TypeError, match="needs the whole Gram matrix, which a MatrixFreeSystem does not hold"):
        ask(matrix_free(make_system(hidden_outputs((3, 4)))))


def test_cg_leaves_an_output_that_has_arrived():
    system = make_system(hidden_outputs((3, 4)), n_outputs=2)
    moments = system.moments.copy()
    moments[:, 0] = 0.0
    solution = COUPLED["cg"].solve(replace(system, moments=moments), 0.9, np.full(2, 0.1))
    assert solution.status is Status.CONVERGED
    assert (solution.weights[:, 0] == 0).all()
    expected = Cholesky().solve(system, 0.9, np.full(2, 0.1)).weights[:, 1]
    np.testing.assert_allclose(solution.weights[:, 1], expected, rtol=1e-9)


def test_cg_and_gauss_seidel_need_fewer_iterations_than_jacobi():
    system, ridge = make_system(hidden_outputs((8, 8, 8))), np.full(3, 0.1)
    counts = {name: solver.solve(system, 1.0, ridge).n_iter for name, solver in ITERATIVE.items()}
    assert counts["cg"] < counts["jacobi"]
    assert counts["gauss-seidel"] < counts["jacobi"]


def test_cg_ends_after_as_many_steps_as_there_are_eigenvalues():
    # One node against nine: in whitened coordinates the coupling has the eigenvalues 0 and +-sigma only.
    system = make_system(hidden_outputs((1, 9)))
    solution = ConjugateGradient().solve(system, 1.99, np.full(2, 0.1))
    assert solution.status is Status.CONVERGED
    assert solution.n_iter <= 3


def test_one_member_iterates_once():
    system = make_system(hidden_outputs((4,)))
    assert BlockJacobi().solve(system, 0.9, 0.1).n_iter == 1
    assert ConjugateGradient().solve(system, 0.9, 0.1).n_iter <= 1


def test_auto_choice():
    system = make_system(hidden_outputs((3, 4)))
    assert choose_solver(system, np.array([0.1, 0.1])) == "cholesky"
    assert choose_solver(system, np.zeros(2)) == "pinv"
    assert choose_solver(matrix_free(system), np.array([0.1, 0.1])) == "cg"
    assert list(SOLVERS) == ["naive", "pinv", "jacobi", "gauss-seidel", "cholesky", "cg"]


@pytest.mark.parametrize("status", list(Status))
def test_every_status_has_a_sentence(status):
    solution = Solution(np.zeros((1, 1)), status, 3, np.zeros(4), detail="of a test")
    assert solution.message.endswith(".")
    assert "{" not in solution.message


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_block_factor_whitens_and_does_not_depend_on_units(scale):
    rng = np.random.default_rng(0)
    H = rng.standard_normal((20, 4))
    full, deficient = H.T @ H * scale, H[:, [0, 1, 1, 2]].T @ H[:, [0, 1, 1, 2]] * scale
    for block, rank in ((full, 4), (deficient, 3)):
        factor = factor_block(block, 0.0)
        assert factor.matrix.shape == (4, rank)
        assert factor.is_full_rank == (rank == 4)
        W, turned = np.empty((4, rank), order="F"), np.empty((rank, 4), order="F")
        factor.unwhiten_into(np.eye(rank), W)
        factor.whiten_into(np.eye(4), turned)
        np.testing.assert_allclose(W.T @ block @ W, np.eye(rank), atol=1e-10)
        np.testing.assert_allclose(turned, W.T, atol=1e-12 * np.abs(W).max())
        np.testing.assert_allclose(factor.solve(block), np.linalg.pinv(block, rcond=1e-12) @ block, atol=1e-9)


def test_solving_leaves_the_system_as_it_was():
    system = make_system(hidden_outputs((3, 4)))
    gram, moments = system.gram.copy(), system.moments.copy()
    for solver in SOLVERS.values():
        solver().solve(system, 0.5, np.full(2, 0.1))
    _ = lambda_path(system, 0.1).gcv
    decorrelation_bounds(system, 0.1)
    np.testing.assert_array_equal(system.gram, gram)
    np.testing.assert_array_equal(system.moments, moments)


RADII = {"jacobi": spectral_radius_jacobi, "gauss-seidel": spectral_radius_gauss_seidel}


@pytest.mark.parametrize("name", RADII)
@pytest.mark.parametrize(
    "passed_on",
    [
        lambda solution: solution,
        lambda solution: pickle.loads(pickle.dumps(solution)),
        copy.copy,
        copy.deepcopy,
        replace,
        lambda solution: solution.within(nullcontext),
    ],
    ids=["itself", "pickle", "copy", "deepcopy", "replace", "within"],
)
def test_spectral_radius_is_computed_when_first_read_and_survives_copies(name, passed_on):
    system, ridge = make_system(hidden_outputs((3, 4, 2)), n_outputs=2), np.array([0.1, 0.2, 0.3])
    solution = SOLVERS[name]().solve(system, 0.8, ridge)
    assert callable(solution.radius)
    other = passed_on(solution)
    expected = RADII[name](system, 0.8, ridge)
    assert other.spectral_radius == solution.spectral_radius == expected
    assert type(other.spectral_radius) is float
    assert (other.status, other.n_iter, other.solver) == (solution.status, solution.n_iter, name)
    np.testing.assert_array_equal(other.weights, solution.weights)


def test_spectral_radius_is_computed_within_a_context():
    system = make_system(hidden_outputs((3, 4)))
    entered = []

    @contextmanager
    def noted():
        entered.append("in")
        yield
        entered.append("out")

    solution = BlockGaussSeidel().solve(system, 0.8, 0.1).within(noted)
    assert entered == []
    assert solution.spectral_radius == spectral_radius_gauss_seidel(system, 0.8, 0.1)
    assert solution.spectral_radius is not None
    assert entered == ["in", "out"]
    direct = Cholesky().solve(system, 0.8, 0.1)
    assert direct.within(noted).spectral_radius is None


@pytest.mark.parametrize("name", RADII)
def test_matrix_free_solves_know_no_spectral_radius(name):
    assert SOLVERS[name]().solve(matrix_free(make_system(hidden_outputs((3, 4)))), 0.8, 0.1).spectral_radius is None


@pytest.mark.parametrize("max_iter", [0, 1, 5])
def test_conjugate_gradients_have_arrived_where_there_is_nothing_to_fit(max_iter):
    hidden = hidden_outputs((3, 4))
    system = EnsembleSystem.from_outputs(hidden, np.zeros(len(hidden[0])))
    solution = ConjugateGradient(max_iter=max_iter).solve(system, 0.8, 0.1)
    assert (solution.status, solution.n_iter) == (Status.CONVERGED, 0)
    assert not solution.weights.any()


@pytest.mark.parametrize("n_members", [1, 2, 5])
def test_members_without_outputs_do_not_couple(n_members):
    """H = 0: every iterate is the start, whatever lambda is, and c1 = 0 is the only limit."""
    n = 2 * n_members
    system = EnsembleSystem(np.zeros((n, n)), np.zeros((n, 1)), np.ones(1), 4.0, (2,) * n_members)
    convergence = JacobiConvergence(system, factor_blocks(system, 0.0))
    assert (convergence.strength, convergence.radius(0.8)) == (0.0, 0.0)
    limit = np.inf if n_members == 1 else (n_members / (n_members - 1)) ** 2
    assert decorrelation_bounds(system, 0.0).jacobi_exact == pytest.approx(limit, rel=1e-15)


def test_a_solution_is_shown_without_its_iterates():
    solution = BlockJacobi().solve(make_system(hidden_outputs((3, 4))), 0.5, 0.1)
    assert solution.weights_history is not None
    assert "weights_history" not in repr(solution)
    assert "error_history" in repr(solution)


def test_gauss_seidel_tells_its_radius_up_to_three_hundred_nodes():
    """It is computed when somebody reads it, and nobody does here."""
    systems = [EnsembleSystem(np.eye(n), np.ones((n, 1)), np.array([n]), 2.0 * n, (1,) * n) for n in (300, 301)]
    reported, left_out = (BlockGaussSeidel(max_iter=0).solve(system, 0.8, 0.1) for system in systems)
    assert callable(reported.radius)
    assert left_out.spectral_radius is None


@pytest.mark.parametrize("name", ["jacobi", "gauss-seidel"])
def test_without_settings_an_iteration_ends_after_a_hundred_steps_or_at_eight_digits(name):
    members = hidden_outputs((3, 3, 3, 3))
    system, ridge = make_system(members), np.full(4, 0.1)
    easy = SOLVERS[name]().solve(system, 0.2, ridge)
    assert easy.status is Status.CONVERGED
    exact = Cholesky().solve(system, 0.2, ridge).weights
    assert np.abs(easy.weights - exact).max() < 1e-6 * np.abs(exact).max()
    alike = make_system([0.01 * H + members[0] for H in members])
    edge = decorrelation_bounds(alike, ridge).jacobi_exact if name == "jacobi" else decorrelation_limit(4)
    hard = SOLVERS[name]().solve(alike, 0.999 * edge, ridge)
    assert (hard.status, hard.n_iter, len(hard.weights_history)) == (Status.MAX_ITER, 100, 101)


def test_without_settings_conjugate_gradients_go_on_to_twelve_digits():
    system, ridge = make_system(hidden_outputs((6, 6, 6))), np.full(3, 0.1)
    solution = ConjugateGradient().solve(system, 1.4, ridge)
    assert solution.status is Status.CONVERGED
    assert len(solution.weights_history) == solution.n_iter + 1
    exact = Cholesky().solve(system, 1.4, ridge).weights
    np.testing.assert_allclose(solution.weights, exact, rtol=1e-9, atol=1e-10)


def test_conjugate_gradients_stop_where_they_say():
    system, ridge = make_system(hidden_outputs((6, 6, 6)), n_outputs=2), np.full(3, 0.1)
    A = system_matrix(system, 1.4, ridge)
    whole = COUPLED["cg"].solve(system, 1.4, ridge)

    def residual_norm(weights):
        """In the norm of the preconditioner, relative to the moments; the worse of the outputs."""

        def squares(values):
            return np.sum(values * Naive().solve(replace(system, moments=values), 0.0, ridge).weights, axis=0)

        return np.sqrt(squares(system.moments - A @ weights) / squares(system.moments)).max()

    norms = [residual_norm(weights) for weights in whole.weights_history]
    for step_tol in (1e-1, 1e-3, 1e-5):
        stopped = ConjugateGradient(step_tol=step_tol).solve(system, 1.4, ridge)
        assert stopped.status is Status.CONVERGED
        assert stopped.n_iter == next(k for k, norm in enumerate(norms) if norm <= step_tol)
    # The last step that is allowed may be the one that arrives.
    last = stopped.n_iter
    assert ConjugateGradient(max_iter=last, step_tol=1e-5).solve(system, 1.4, ridge).status is Status.CONVERGED
    assert ConjugateGradient(max_iter=last - 1, step_tol=1e-5).solve(system, 1.4, ridge).status is Status.MAX_ITER


@pytest.mark.parametrize(("gap", "rank"), [(2, 1), (16, 2)])
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_nodes_that_differ_by_rounding_alone_are_dependent(gap, rank, scale):
    """[[1, 1 - d], [1 - d, 1]] has the reciprocal condition d / 2; below eps times the number of nodes it is none."""
    twin = 1.0 - gap * np.finfo(float).eps
    assert factor_block(scale * np.array([[1.0, twin], [twin, 1.0]]), 0.0).matrix.shape[1] == rank
