"""The package beside a second implementation, written from the paper's text alone (`tests/reference/`).

Same pools, same rows, same hidden layers: nodes are compared one by one, iterates one by one, decisions as they are.
"""

import re
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference import convergence, ensemble, scn, tables, theorem2

from scne import DNNERegressor, RVFLRegressor, SCNERegressor, SCNRegressor, error_decomposition
from scne.estimators._regressor import draw_seed
from scne.ncl import (
    BlockGaussSeidel,
    BlockJacobi,
    Cholesky,
    EnsembleSystem,
    MatrixFreeSystem,
    Naive,
    PseudoInverse,
    Status,
    coefficients,
    decompose,
    decorrelation_bounds,
    spectral_radius_gauss_seidel,
    spectral_radius_jacobi,
    system_matrix,
    theta_zero,
)
from scne.networks import draw_nodes, pool_generator, uniform_pool
from scne.paper import published

SCOPES = (0.5, 1.0, 3.0, 5.0, 7.0, 9.0, 15.0, 25.0, 50.0, 100.0, 150.0, 200.0)
CONTRACTIONS = (0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999)
AS_PRINTED = {"criterion": "paper", "scope_search": "first", "ridge": 0.0, "precision": "float64"}
UNSCALED = {"scaling": "none", "target_scaling": "none"}


# --- SC-III, node by node


def peaks(x):
    """The function of one variable on which stochastic configuration networks were first shown."""
    return (
        0.2 * np.exp(-((10 * x - 4) ** 2)) + 0.5 * np.exp(-((80 * x - 40) ** 2)) + 0.3 * np.exp(-((80 * x - 20) ** 2))
    )


def one_column(n_outputs, seed, n_rows):
    x = np.random.default_rng(seed).uniform(size=n_rows)
    return x[:, None], np.column_stack([peaks(x), np.sin(9 * x)])[:, :n_outputs]


def two_columns(n_outputs, seed, n_rows):
    X = np.random.default_rng(seed).uniform(size=(n_rows, 2))
    first = np.cos(2 * np.sin(10 * X[:, 0] - 5)) * np.exp(-2 * X[:, 0]) + X[:, 1] * np.sin(20 * X[:, 1])
    return X, np.column_stack([first, np.sin(9 * X[:, 0] * X[:, 1])])[:, :n_outputs]


def package_pools(seed, n_columns, n_candidates, scopes, member=0):
    """The package's candidates, handed to the reference."""

    def draw(nodes_so_far, scope):
        name = (member, nodes_so_far + 1, scopes.index(scope))
        pool = uniform_pool(pool_generator(draw_seed(seed), *name), n_columns, n_candidates, [scope])
        return pool[:-1].T, pool[-1]

    return draw


def both(X, Y, seed, *, L_max=50, T_max=40, scopes=SCOPES, contractions=CONTRACTIONS, n_B=1, tau=0.0):
    """The same network twice: as the package finds it, and as the reference does."""
    model = SCNRegressor(
        L_max,
        tol=tau,
        n_candidates=T_max,
        batch_size=n_B,
        scopes=scopes,
        contraction=contractions,
        n_jobs=1,
        random_state=seed,
        **AS_PRINTED,
        **UNSCALED,
    ).fit(X, Y)
    pools = package_pools(seed, X.shape[1], T_max, scopes)
    settings = {"scopes": scopes, "contractions": contractions, "L_max": L_max, "n_B": n_B, "tau": tau}
    return model, scn.sc3(X, Y, pools=pools, **settings)


def assert_same_network(model, network):
    """The same nodes in the same order, admitted with the same scope and contraction, and the same end."""
    assert_array_equal(model.input_weights_.T, network.weights)
    assert_array_equal(model.biases_, network.biases)
    search = model.fitted_.members[0].search
    loops = [loop for loop in network.loops for _ in loop.candidates]
    assert search.scopes.tolist() == [loop.scope for loop in loops]
    assert search.contractions.tolist() == [loop.r for loop in loops]
    ends = np.cumsum([len(loop.candidates) for loop in network.loops])
    assert_allclose(search.training_curve[ends - 1], network.errors[1:], rtol=1e-6)
    expected = {"nodes": "MAX_HIDDEN", "tolerance": "TOLERANCE", "no candidate": "NO_CANDIDATE"}
    assert search.stop_reason.name == expected[network.stopped]


# The others run once, with the slow tests.
SEEDS = [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3, 4))]


@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_nodes_are_those_of_the_reference_one_by_one(seed, n_outputs):
    """Up to 50 nodes, scopes from 0.5 to 200: from all but straight lines to nodes that are 1e-18 on every row."""
    assert_same_network(*both(*one_column(n_outputs, seed, 200), seed))


@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_nodes_of_wide_scopes_are_those_of_the_reference(seed, n_outputs):
    """Scopes of 25 and more alone, where most candidates are saturated."""
    assert_same_network(*both(*two_columns(n_outputs, seed, 250), seed, scopes=SCOPES[7:]))


@pytest.mark.slow
@pytest.mark.parametrize("scopes", [SCOPES, SCOPES[7:]])
@pytest.mark.parametrize("rows", [one_column, two_columns])
@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("seed", range(5))
def test_larger_pools_and_more_rows_give_the_nodes_of_the_reference(seed, n_outputs, rows, scopes):
    assert_same_network(*both(*rows(n_outputs, seed, 500), seed, T_max=100, scopes=scopes))


@pytest.mark.parametrize("n_B", [2, 5])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_batches_are_the_best_of_one_pool(n_B, n_outputs):
    assert_same_network(*both(*two_columns(n_outputs, 3, 250), 3, L_max=24, n_B=n_B, scopes=SCOPES[6:]))


def test_a_batch_leaves_out_what_lies_in_the_span_of_its_better_nodes():
    """The paper would take all of them (docs/line_by_line.md)."""
    X, Y = one_column(1, 0, 200)
    model, network = both(X, Y, 0, n_B=12, L_max=12, scopes=(2.0,))
    H = scn.hidden_layer(X, network.weights, network.biases)
    taken = []
    for node in range(12):
        span = np.linalg.qr(H[:, taken])[0]
        off = H[:, node] - span @ (span.T @ H[:, node])
        off -= span @ (span.T @ off)
        if np.linalg.norm(off) > 1.35e-6 * np.linalg.norm(H[:, node]):
            taken.append(node)
    assert 1 < len(taken) < 12
    assert_array_equal(model.input_weights_.T[: len(taken)], network.weights[taken])
    # What follows is of another pool, drawn for the number of nodes that are there.
    assert not np.isin(model.biases_[len(taken) :], network.biases).any()


def test_the_search_ends_where_the_reference_ends():
    X, Y = two_columns(1, 0, 250)
    reached, network = both(X, Y, 0, tau=0.2, scopes=SCOPES[6:])
    assert network.stopped == "tolerance"
    assert_same_network(reached, network)
    # Each node has to take about a thirtieth of what is left.
    stuck, network = both(X, Y, 0, contractions=(0.5, 0.97))
    assert network.stopped == "no candidate"
    assert len(network.biases) > 2
    assert_same_network(stuck, network)


def test_output_weights_are_those_of_the_pseudo_inverse():
    """Eq. 8 on nodes that are far from dependent."""
    X, Y = two_columns(2, 1, 250)
    model, network = both(X, Y, 1, L_max=20, scopes=SCOPES[7:])
    assert_allclose(model.output_weights_, network.beta, rtol=1e-7)
    assert_allclose(model.predict(X), network.predict(X), atol=1e-9)


def test_rvfl_networks_are_those_of_the_reference():
    X, Y = two_columns(2, 2, 250)
    settings = {"n_jobs": 1, "random_state": 5, "direct_link": False, "ridge": 0.0}
    model = RVFLRegressor(12, scope=8.0, **settings, **UNSCALED).fit(X, Y)
    weights, biases = draw_nodes(draw_seed(5), 0, 2, 12, 8.0)
    network = scn.rvfl(X, Y, weights.T, biases)
    assert max(np.abs(weights).max(), np.abs(biases).max()) <= 8.0
    assert_array_equal(model.input_weights_.T, network.weights)
    assert_allclose(model.output_weights_, network.beta, rtol=1e-6)
    assert_allclose(model.predict(X), network.predict(X), atol=1e-8)


# --- the reference by itself: its own forms of one thing agree


def test_the_reference_takes_nothing_from_the_package():
    for path in Path(scn.__file__).parent.glob("*.py"):
        assert not re.search(r"^\s*(import|from) scne", path.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture(scope="module")
def layers():
    """Five members of different sizes that share part of what they see, and two outputs."""
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((120, 4))
    H = [
        scn.sigmoid(shared @ rng.standard_normal((4, L)) + 0.7 * rng.standard_normal((120, L))) for L in (4, 7, 3, 6, 5)
    ]
    return H, np.column_stack([np.sin(shared[:, 0]), shared[:, 1] * shared[:, 2]])


def test_three_forms_of_a_members_error_agree(layers):
    """Eqs. 15 and 16, 18, and 20."""
    H, Y = layers
    betas = [np.random.default_rng(m).standard_normal((H_m.shape[1], 2)) for m, H_m in enumerate(H)]
    outputs = ensemble.member_outputs(H, betas)
    for lam in (0.0, 0.1, 0.9):
        expected = ensemble.member_errors(outputs, Y, lam)
        assert_allclose(ensemble.member_errors_simplified(outputs, Y, lam), expected, rtol=1e-12)
        assert_allclose(ensemble.member_errors_matrix(H, betas, Y, lam), expected, rtol=1e-12)
    # Eq. 17 needs a_m = 1/M.
    assert_allclose(ensemble.penalties(outputs), -((outputs - outputs.mean(axis=0)) ** 2), rtol=1e-9, atol=1e-12)
    a = [0.4, 0.3, 0.1, 0.1, 0.1]
    off = ensemble.member_errors(outputs, Y, 0.5, a) - ensemble.member_errors_simplified(outputs, Y, 0.5, a)
    assert np.abs(off).min() > 1.0


def test_equation_22_is_the_derivative_of_equation_20(layers):
    H, Y = layers
    rng = np.random.default_rng(1)
    betas = [rng.standard_normal((H_m.shape[1], 2)) for H_m in H]
    for m, slope in enumerate(ensemble.gradient(H, betas, Y, 0.7)):
        direction, step = rng.standard_normal(betas[m].shape), 1e-4
        sides = [[b + s * step * direction if q == m else b for q, b in enumerate(betas)] for s in (1, -1)]
        errors = [ensemble.member_errors_matrix(H, side, Y, 0.7)[m] for side in sides]
        assert_allclose((errors[0] - errors[1]) / (2 * step), np.sum(slope * direction), rtol=1e-7)
    equal = ensemble.weighted_gradient(H, betas, Y, 0.7, np.full(5, 0.2))
    for slope, same in zip(ensemble.gradient(H, betas, Y, 0.7), equal, strict=True):
        assert_allclose(slope, same, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("r", [0.0, 0.1])
def test_matrix_forms_of_the_iterations_are_the_algorithms(layers, r):
    """Eqs. 32 to 35 against Eqs. 28 to 31 (44 and 45)."""
    H, Y = layers
    forms = [
        (ensemble.algorithm_2, convergence.jacobi_splitting),
        (ensemble.algorithm_3, convergence.gauss_seidel_splitting),
    ]
    for algorithm, splitting in forms:
        solved_for, rest = splitting(H, 0.5, r)
        assert_allclose(solved_for + rest, ensemble.system_matrix(H, 0.5, r))
        B = np.vstack(ensemble.naive(H, Y, r))
        for betas in algorithm(H, Y, 0.5, 0.0, 4, r).history[1:]:
            B = np.linalg.solve(solved_for, np.hstack(H).T @ Y - rest @ B)
            assert_allclose(np.vstack(betas), B, rtol=1e-8, atol=1e-10)


# --- the ensemble's system and Algorithms 1 to 3


def systems(H, Y):
    """The package's system, with the Gram matrix and without it."""
    whole, stacked = EnsembleSystem.from_outputs(H, Y), np.hstack(H)
    matrix_free = MatrixFreeSystem(
        diagonal_blocks=[H_m.T @ H_m for H_m in H],
        moments=whole.moments,
        target_square=whole.target_square,
        n_rows=whole.n_rows,
        sizes=whole.sizes,
        product_fn=lambda B: stacked.T @ (stacked @ B),
        product_rows_fn=lambda m, B: H[m].T @ (stacked @ B),
    )
    return whole, matrix_free


@pytest.mark.parametrize("r", [0.0, 0.1])
@pytest.mark.parametrize("lam", [0.0, 0.1, 0.9])
def test_the_system_and_its_solution_are_those_of_algorithm_1(layers, lam, r):
    H, Y = layers
    system, _ = systems(H, Y)
    c = coefficients(lam, len(H))
    assert_allclose((c.c1, c.c2), ensemble.coefficients(lam, len(H)), rtol=1e-15)
    assert_allclose(system_matrix(system, lam, r), ensemble.system_matrix(H, lam, r), rtol=1e-13)
    B = np.vstack(ensemble.algorithm_1(H, Y, lam, r))
    for solver in (PseudoInverse(), Cholesky()):
        solution = solver.solve(system, lam, r)
        assert_allclose(solution.weights, B, rtol=1e-9, atol=1e-9)
        assert solution.status is Status.SOLVED
        error = ensemble.ensemble_error(H, ensemble.split(B, H), Y)
        assert_allclose(solution.error_history, [error], rtol=1e-9)


def test_no_member_can_lower_its_own_error(layers):
    """Eq. 19 at the package's solution: Eq. 22 is zero, and a step of one member's weights raises its e_m."""
    H, Y = layers
    system, _ = systems(H, Y)
    betas = ensemble.split(PseudoInverse().solve(system, 0.5, 0.0).weights, H)
    for slope in ensemble.gradient(H, betas, Y, 0.5):
        assert_allclose(slope, 0.0, atol=1e-9)
    least = ensemble.member_errors_matrix(H, betas, Y, 0.5)
    rng = np.random.default_rng(2)
    for m in range(len(H)):
        moved = [b + 0.1 * rng.standard_normal(b.shape) if q == m else b for q, b in enumerate(betas)]
        assert ensemble.member_errors_matrix(H, moved, Y, 0.5)[m] > least[m]


def test_dependent_nodes_get_the_weights_of_least_length(layers):
    """Eq. 26 where a node occurs twice in a member and once more in another."""
    H, Y = layers
    H = [np.hstack([H[0], H[0][:, :1]]), H[1], np.hstack([H[2], H[0][:, :1]])]
    solution = PseudoInverse().solve(systems(H, Y)[0], 0.3, 0.0)
    assert_allclose(solution.weights, np.vstack(ensemble.algorithm_1(H, Y, 0.3)), rtol=1e-8, atol=1e-9)
    assert solution.status is Status.RANK_DEFICIENT


ALGORITHMS = [(BlockJacobi, ensemble.algorithm_2), (BlockGaussSeidel, ensemble.algorithm_3)]
algorithms = pytest.mark.parametrize(("solver", "algorithm"), ALGORITHMS, ids=["jacobi", "gauss-seidel"])


@algorithms
@pytest.mark.parametrize("r", [0.0, 0.1])
@pytest.mark.parametrize("lam", [0.1, 0.6])
@pytest.mark.parametrize("matrix_free", [False, True])
def test_every_iterate_is_that_of_the_reference(layers, solver, algorithm, lam, r, matrix_free):
    H, Y = layers
    expected = algorithm(H, Y, lam, tau=0.0, k_max=5, r=r)
    solution = solver(max_iter=5, tol=0.0, step_tol=0.0).solve(systems(H, Y)[matrix_free], lam, r)
    assert (solution.n_iter, solution.status) == (5, Status.MAX_ITER)
    for weights, betas in zip(solution.weights_history, expected.history, strict=True):
        assert_allclose(weights, np.vstack(betas), rtol=1e-9, atol=1e-9)
    assert_allclose(solution.error_history, expected.errors, rtol=1e-10)
    assert_array_equal(solution.weights, solution.weights_history[-1])
    naive = Naive().solve(systems(H, Y)[0], lam, r)
    assert_allclose(naive.weights, np.vstack(expected.history[0]), rtol=1e-9, atol=1e-9)


@algorithms
def test_iterates_with_dependent_nodes_are_those_of_the_reference(layers, solver, algorithm):
    H, Y = layers
    H = [np.hstack([H_m, H_m[:, :1]]) for H_m in H]
    expected = algorithm(H, Y, 0.1, tau=0.0, k_max=5)
    solution = solver(max_iter=5, step_tol=0.0).solve(systems(H, Y)[0], 0.1, 0.0)
    for weights, betas in zip(solution.weights_history, expected.history, strict=True):
        assert_allclose(weights, np.vstack(betas), rtol=1e-8, atol=1e-8)


@algorithms
@pytest.mark.parametrize("r", [0.0, 0.1])
def test_iterations_end_where_the_reference_ends(layers, solver, algorithm, r):
    """E_ens < tau, for a tau between any two errors, or k_max; the start itself is never looked at."""
    H, Y = layers
    # Below the bounds of both. Jacobi's errors swing around the solution's, those of Gauss-Seidel fall to it.
    lam, sweeps = (0.75, {1, 6}) if solver is BlockJacobi else (1.2, {1, 2, 3, 4, 5, 6})
    ladder = np.sort(algorithm(H, Y, lam, tau=0.0, k_max=6, r=r).errors)
    ends = set()
    for tau in [0.0, *((ladder[1:] + ladder[:-1]) / 2), 2 * ladder[-1]]:
        expected = algorithm(H, Y, lam, tau=tau, k_max=6, r=r)
        solution = solver(max_iter=6, tol=tau, step_tol=0.0).solve(systems(H, Y)[0], lam, r)
        status = Status.REACHED_TOLERANCE if expected.reached else Status.MAX_ITER
        assert (solution.n_iter, solution.status) == (expected.sweeps, status)
        ends.add(expected.sweeps)
    assert ends == sweeps


def test_a_diverging_iteration_has_the_iterates_of_the_reference_as_long_as_it_lasts(layers):
    """Members that are all but the same, far above the bound of Eq. 41."""
    H, Y = layers
    rng = np.random.default_rng(4)
    H = [H[1] + 0.01 * rng.standard_normal(H[1].shape) for _ in range(4)]
    lam = 0.5 * (convergence.largest_lambda(H) + 4 / 3)
    assert convergence.spectral_radius(convergence.jacobi_splitting(H, lam)) > 1.1
    expected = ensemble.algorithm_2(H, Y, lam, tau=0.0, k_max=30)
    solution = BlockJacobi(max_iter=30, step_tol=0.0).solve(systems(H, Y)[0], lam, 0.0)
    assert 1 <= solution.n_iter <= 30
    for weights, betas in zip(solution.weights_history, expected.history, strict=False):
        B = np.vstack(betas)
        assert_allclose(weights, B, atol=1e-7 * np.abs(B).max())


# --- ensembles from the first node to the last weight

GROUPS = {"a": [0, 1], "b": [2], "c": [1, 3]}


@pytest.fixture(scope="module")
def rows():
    X = np.random.default_rng(0).uniform(size=(200, 4))
    return X, 0.5 + 0.4 * np.sin(5 * X[:, 0]) * X[:, 2] + 0.1 * X[:, 3]


@pytest.mark.parametrize("r", [0.0, 0.1])
@pytest.mark.parametrize(
    ("solver", "algorithm"), [("jacobi", ensemble.algorithm_2), ("gauss-seidel", ensemble.algorithm_3)]
)
def test_an_ensemble_is_that_of_the_reference(rows, solver, algorithm, r):
    """SC-III on each group, then Algorithm 2 or 3."""
    X, y = rows
    scopes, sizes = SCOPES[5:], (8, 4, 6)
    nodes = {"criterion": "paper", "scope_search": "first", "ridge": 0.0, **UNSCALED}
    models = {
        name: SCNRegressor(L, n_candidates=40, scopes=scopes, **nodes) for name, L in zip(GROUPS, sizes, strict=True)
    }
    settings = {"ridge": r, "solver": solver, "decorrelation": 0.1, "random_state": 3, "n_jobs": 1}
    model = SCNERegressor.paper(GROUPS, estimator=models, **settings).fit(X, y)
    H = []
    for m, (columns, L) in enumerate(zip(GROUPS.values(), sizes, strict=True)):
        pools = package_pools(3, len(columns), 40, scopes, member=m)
        stops = {"L_max": L, "tau": 1e-4}
        network = scn.sc3(X[:, columns], y[:, None], pools=pools, scopes=scopes, contractions=CONTRACTIONS, **stops)
        assert_array_equal(model.input_weights_[m].T, network.weights)
        assert_array_equal(model.biases_[m], network.biases)
        H.append(scn.hidden_layer(X[:, columns], network.weights, network.biases))
    expected = algorithm(H, y[:, None], 0.1, tau=1e-6, k_max=10, r=r)
    assert_allclose(model.loss_curve_, expected.errors[: len(model.loss_curve_)], rtol=1e-7)
    for weights, betas in zip(model.solution_.weights_history, expected.history, strict=False):
        assert_allclose(weights, np.vstack(betas), rtol=1e-6, atol=1e-7)
    output = ensemble.ensemble_output(ensemble.member_outputs(H, expected.betas))[:, 0]
    assert_allclose(model.predict(X), output, atol=1e-7)


def test_the_naive_ensemble_of_rvfl_networks_is_that_of_the_reference(rows):
    X, y = rows
    groups = {"a": [0, 1], "b": [1, 2], "c": [2, 3]}
    base = RVFLRegressor(8, scope=5.0, direct_link=False, **UNSCALED)
    settings = {"solver": "naive", "ridge": 0.0, "decorrelation": 0.0, "random_state": 1, "n_jobs": 1}
    model = DNNERegressor.paper(groups, estimator=base, **settings).fit(X, y)
    outputs = []
    for m, columns in enumerate(groups.values()):
        weights, biases = draw_nodes(draw_seed(1), m, 2, 8, 5.0)
        outputs.append(scn.rvfl(X[:, columns], y[:, None], weights.T, biases).predict(X[:, columns]))
    assert_allclose(model.predict(X), ensemble.ensemble_output(np.stack(outputs))[:, 0], atol=1e-6)


# --- how far lambda may go


@pytest.mark.parametrize("r", [0.0, 0.1])
def test_radii_and_the_bound_of_lambda_are_those_of_the_reference(layers, r):
    """Eqs. 38 to 41."""
    H, Y = layers
    system, _ = systems(H, Y)
    theta = convergence.theta_0(H, r)
    assert_allclose(theta_zero(system, r), theta, rtol=1e-9)
    bounds = decorrelation_bounds(system, r)
    assert_allclose((bounds.theta_zero, bounds.paper), (theta, convergence.largest_lambda(H, r)), rtol=1e-9)
    for lam in (0.1, 0.6, bounds.paper, 1.1):
        jacobi = convergence.spectral_radius(convergence.jacobi_splitting(H, lam, r))
        gauss_seidel = convergence.spectral_radius(convergence.gauss_seidel_splitting(H, lam, r))
        assert_allclose(spectral_radius_jacobi(system, lam, r), jacobi, rtol=1e-8)
        assert_allclose(spectral_radius_gauss_seidel(system, lam, r), gauss_seidel, rtol=1e-7)
        c_1, c_2 = ensemble.coefficients(lam, len(H))
        assert jacobi <= c_2 / c_1 * theta * (1 + 1e-12)
    radius = convergence.spectral_radius(convergence.jacobi_splitting(H, bounds.jacobi_exact, r))
    assert_allclose(radius, 1.0, rtol=1e-8)
    assert bounds.paper <= bounds.jacobi_exact


# --- Theorem 2


def trained_outputs(seed, n_sets=7, n_members=4, n_points=9):
    """Outputs of members after some trainings, and each member's own target g_m."""
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((n_sets, 1, n_points))
    outputs = common + 0.5 * rng.standard_normal((n_sets, n_members, n_points)) + rng.standard_normal((n_members, 1))
    return outputs, rng.standard_normal((n_members, n_points))


@pytest.mark.parametrize("seed", range(3))
def test_theorem_2_holds_and_the_package_has_its_parts(seed):
    outputs, g = trained_outputs(seed)
    parts = theorem2.decomposition(outputs, g)
    assert_allclose(parts.generalization_error, theorem2.generalization_error(outputs, g), rtol=1e-12)
    computed = decompose(outputs, g.mean(axis=0))
    assert_allclose(computed.variance, parts.var.mean(), rtol=1e-12)
    assert_allclose(computed.covariance, parts.cov.mean(), rtol=1e-12)
    assert_allclose(computed.bias_squared, np.mean(parts.bias**2), rtol=1e-12)
    assert_allclose(computed.total, parts.generalization_error, rtol=1e-12)


class Replayed(DNNERegressor):
    """An ensemble whose members predict what was written down for each training in turn."""

    written_down = iter(())

    def predict_members(self, X):
        return next(Replayed.written_down)


def test_error_decomposition_is_theorem_2():
    """With the noise known, G_E of Eq. 11 is bias, variance and covariance, and sigma^2 on top."""
    outputs, g = trained_outputs(5, n_points=2000)
    sigma = 0.5
    y_test = g.mean(axis=0) + sigma * np.random.default_rng(1).standard_normal(2000)
    Replayed.written_down = iter(outputs)
    x = np.linspace(0, 1, 40)
    model = Replayed(RVFLRegressor(2), n_estimators=4)
    settings = {"n_repeats": len(outputs), "noise": sigma**2, "random_state": 0}
    computed = error_decomposition(model, x[:, None], x**2, np.zeros((2000, 1)), y_test, **settings)
    parts = theorem2.decomposition(outputs, g)
    terms = computed.terms()
    assert_allclose(terms["variance"], parts.var.mean() / 4, rtol=1e-12)
    assert_allclose(terms["covariance"], 0.75 * parts.cov.mean(), rtol=1e-12)
    # On 2,000 noisy targets the bias and the total are estimates.
    assert_allclose(terms["bias_squared"], np.mean(parts.bias**2), rtol=0.05)
    assert_allclose(computed.total, parts.generalization_error + sigma**2, rtol=0.05)


# --- the printed tables


PRINTED = {
    "twitter": (0, tables.TABLE_2, tables.TABLE_4, tables.TABLE_6, tables.TABLE_8, 1e-3),
    "year": (1, tables.TABLE_3, tables.TABLE_5, tables.TABLE_7, tables.TABLE_9, 1e-1),
}


@pytest.mark.parametrize("dataset", PRINTED)
def test_stored_numbers_are_the_printed_ones(dataset):
    place, groups, nodes, scopes, results, unit = PRINTED[dataset]
    paper = published(dataset)

    _, samples, features, _, split = tables.cells(tables.TABLE_1)[place]
    counts = [int(text.replace(",", "")) for text in (samples, features, *split.split("/"))]
    assert [paper.samples, paper.features, paper.train, paper.test] == counts

    names, columns = tables.cells(groups)
    # Two misprints: "TCd" among TC-a to TC-f, and column 56 in two groups.
    assert list(paper.groups) == ["TC-d" if name == "TCd" else name for name in names[1:]]
    printed = [[57, 63] if pair == [56, 63] else pair for pair in tables.intervals(columns)]
    assert [[first + 1, last + 1] for first, *_, last in paper.groups.values()] == printed

    *runs, chosen = tables.cells(nodes)
    assert [list(run) for run in paper.hidden_runs] == [tables.numbers(run) for run in runs]
    assert list(paper.hidden_nodes) == tables.numbers(chosen)

    *errors, best = tables.cells(scopes)
    assert list(paper.alphas) == [float(row[0]) for row in errors]
    assert [list(row) for row in paper.alpha_errors] == [tables.numbers(row) for row in errors]
    assert list(paper.best_alphas) == tables.numbers(best)

    assert paper.unit == unit
    assert (paper.decorrelation, paper.max_iter, paper.repeats) == (0.1, 10, 10)
    for ensemble_name, algorithm, train, test in tables.cells(results):
        # "Block Jacobi" in the table is "block Jacobi" here; names keep their capitals.
        row = paper.error(ensemble_name, algorithm[0].lower() + algorithm[1:])
        assert [row.train, row.train_sd] == tables.mean_and_spread(train)
        assert [row.test, row.test_sd] == tables.mean_and_spread(test)
    assert len(paper.errors) == len(tables.cells(results))
