"""Weights a_m of Eq. (10) where networks have no ridge, keep a running total, or diverge."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scne import SCNERegressor, SCNRegressor
from scne.fitting._matrix_free import matrix_free_system
from scne.fitting._members import ensemble_system
from scne.ncl import (
    SOLVERS,
    BlockGaussSeidel,
    BlockJacobi,
    EnsembleSystem,
    MatrixFreeSystem,
    OutputRows,
    Status,
    decorrelation_bounds,
    member_costs,
    solve_outputs,
    spectral_radius_gauss_seidel,
    spectral_radius_jacobi,
)
from scne.networks import HiddenLayer
from scne.passes import ThreadEngine
from scne.rows import ArrayRows, ColumnScaling

SIZES, WEIGHTS, LAMBDA = (4, 3, 5), np.array([0.5, 0.3, 0.2]), 0.7
LIMIT = 1 / (1 - 0.2)
everyone = pytest.mark.parametrize("name", SOLVERS)


def hidden_outputs(sizes=SIZES, n_rows=60, seed=0):
    rng = np.random.default_rng(seed)
    shift = rng.standard_normal((n_rows, 1))
    return [rng.standard_normal((n_rows, size)) + 0.5 * shift for size in sizes]


def targets(n_rows=60, n_outputs=2, seed=1):
    return np.random.default_rng(seed).standard_normal((n_rows, n_outputs))


def nearly_dependent(hidden, gap):
    """The same columns, each but the first at a distance of `gap` from the one before it."""
    return [H[:, :1] + gap * np.cumsum(H - H[:, :1], axis=1) for H in hidden]


def settled(name):
    settings = {"jacobi": {"max_iter": 5000, "step_tol": 1e-14}, "gauss-seidel": {"max_iter": 5000, "step_tol": 1e-14}}
    return SOLVERS[name](**settings.get(name, {}))


def own_weights(B, hidden, a):
    """b_m from B_m = M a_m b_m, one above the other."""
    parts = np.split(B, np.cumsum([H.shape[1] for H in hidden])[:-1])
    return np.concatenate([part / (len(a) * weight) for part, weight in zip(parts, a, strict=True)])


def by_least_squares(hidden, y, a, lam):
    """The b_m that minimise sum_m a_m (1/(1-a_m) - lambda) |y - H_m b_m|^2 + lambda |y - sum_m a_m H_m b_m|^2."""
    n_nodes, column = sum(H.shape[1] for H in hidden), 0
    parts, wanted = [], []
    for H, weight in zip(hidden, a, strict=True):
        strength = np.sqrt(weight * (1 / (1 - weight) - lam))
        rows = np.zeros((len(H), n_nodes))
        rows[:, column : column + H.shape[1]] = H
        parts.append(strength * rows)
        wanted.append(strength * y)
        column += H.shape[1]
    parts.append(np.sqrt(lam) * np.hstack([weight * H for H, weight in zip(hidden, a, strict=True)]))
    wanted.append(np.sqrt(lam) * y)
    return np.linalg.lstsq(np.vstack(parts), np.vstack(wanted), rcond=1e-15)[0]


def equations(hidden, a, lam, ridge, row_weights):
    """The matrix of the equations in the members' own weights, block by block as docs/mathematics.md writes them."""
    rows = []
    for m, H in enumerate(hidden):
        mine = H.T * row_weights
        row = [lam * (1 - a[m]) * weight * mine @ other for weight, other in zip(a, hidden, strict=True)]
        row[m] = (1 - lam * (1 - a[m]) ** 2) * (mine @ H + ridge[m] * np.eye(H.shape[1]))
        rows.append(np.hstack(row))
    return np.vstack(rows)


# --- from the rows, without a ridge


@everyone
@pytest.mark.parametrize("gap", [1.0, 1e-6], ids=["apart", "nearly dependent"])
def test_every_solver_finds_what_least_squares_on_the_rows_find(name, gap):
    hidden, y = nearly_dependent(hidden_outputs(), gap), targets()
    solution = solve_outputs(settled(name), OutputRows.of(hidden, y), LAMBDA, 0.0, WEIGHTS)
    expected = by_least_squares(hidden, y, WEIGHTS, LAMBDA)
    if name == "naive":
        expected = np.concatenate([np.linalg.pinv(H) @ y for H in hidden])
    found = own_weights(solution.weights, hidden, WEIGHTS)
    np.testing.assert_allclose(found, expected, atol=1e-7 * np.abs(expected).max())
    joint = np.hstack([weight * H for weight, H in zip(WEIGHTS, hidden, strict=True)])
    wanted = joint @ expected
    np.testing.assert_allclose(joint @ found, wanted, atol=1e-7 * np.abs(wanted).max())
    assert solution.error_history[-1] == pytest.approx(np.sqrt(np.mean((y - wanted) ** 2)), rel=1e-8)
    assert solution.status in (Status.SOLVED, Status.CONVERGED)


@given(st.integers(0, 10_000), st.floats(0.0, 0.98), st.sampled_from(list(SOLVERS)))
def test_small_systems_are_those_of_a_dense_solve(seed, share, name):
    """Any weights, ridges on some of the networks and weights of rows, beside the equations in the rows' own sums."""
    rng = np.random.default_rng(seed)
    sizes = tuple(rng.integers(1, 5, rng.integers(2, 5)))
    hidden, y, M = hidden_outputs(sizes, 40, seed), targets(40, 2, seed), len(sizes)
    a = rng.uniform(0.1, 1.0, M)
    a /= a.sum()
    ridge, row_weights = rng.choice([0.0, 0.5], M), rng.uniform(0.1, 2.0, 40)
    lam = 0.0 if name == "naive" else share / (1 - a.min())
    if name == "jacobi":
        system = replace(EnsembleSystem.from_outputs(hidden, y, row_weights), member_weights=a)
        lam = min(lam, 0.9 * decorrelation_bounds(system, ridge).jacobi_exact)
    solution = solve_outputs(settled(name), OutputRows.of(hidden, y, row_weights), lam, ridge, a)
    right = np.concatenate([(H.T * row_weights) @ y for H in hidden])
    expected = np.linalg.solve(equations(hidden, a, lam, ridge, row_weights), right)
    np.testing.assert_allclose(own_weights(solution.weights, hidden, a), expected, rtol=1e-6, atol=1e-7)


@everyone
def test_dependent_nodes_get_the_weights_of_least_norm(name):
    hidden, y = hidden_outputs((4, 3, 2)), targets()
    hidden[0][:, 1] = 3 * hidden[0][:, 0]  # twins within a network, of different size
    hidden[1][:, 0] = hidden[2][:, 0]  # twins between networks
    hidden[2][:, 1] = 0.0  # a dead node
    solution = solve_outputs(settled(name), OutputRows.of(hidden, y), LAMBDA, 0.0, WEIGHTS)
    matrix = equations(hidden, WEIGHTS, LAMBDA, np.zeros(3), np.ones(60))
    expected = np.linalg.pinv(matrix, rcond=1e-12) @ (np.hstack(hidden).T @ y)
    if name == "naive":
        expected = np.concatenate([np.linalg.pinv(H) @ y for H in hidden])
    np.testing.assert_allclose(own_weights(solution.weights, hidden, WEIGHTS), expected, atol=1e-8)
    assert (
        "1 of 4 directions of member 0 and 1 of 2 of member 2 cannot be distinguished from rounding in H"
        in solution.message
    )
    assert solution.status is (Status.CONVERGED if solution.n_iter else Status.RANK_DEFICIENT)


@pytest.mark.parametrize("name", ["jacobi", "gauss-seidel"])
def test_iterates_are_those_of_pseudo_inverses_of_each_network(name):
    hidden, y, a = nearly_dependent(hidden_outputs(), 1e-6), targets(), WEIGHTS
    pinvs = [np.linalg.pinv(H) for H in hidden]
    beta = [pinv @ y for pinv in pinvs]
    solution = solve_outputs(SOLVERS[name](max_iter=3), OutputRows.of(hidden, y), LAMBDA, 0.0, a)
    for iterate in solution.weights_history:
        expected = np.concatenate(beta)
        found = own_weights(iterate, hidden, a)
        np.testing.assert_allclose(found, expected, atol=1e-7 * np.abs(expected).max())
        old = list(beta)
        for m in range(3):
            source = old if name == "jacobi" else beta
            others = sum(a[q] * hidden[q] @ source[q] for q in range(3) if q != m)
            beta[m] = pinvs[m] @ (y - LAMBDA * (1 - a[m]) * others) / (1 - LAMBDA * (1 - a[m]) ** 2)


def test_iterations_keep_their_radius():
    system = replace(EnsembleSystem.from_outputs(hidden_outputs(), targets()), member_weights=WEIGHTS)
    rows = OutputRows.of(hidden_outputs(), targets())
    for name, radius in (("jacobi", spectral_radius_jacobi), ("gauss-seidel", spectral_radius_gauss_seidel)):
        solution = solve_outputs(SOLVERS[name](), rows, LAMBDA, 0.0, WEIGHTS)
        assert solution.spectral_radius == pytest.approx(radius(system, LAMBDA, 0.0), rel=1e-6)


def fitted_ensemble(X, y, **settings):
    groups = {"a": [0], "b": [1, 2], "c": [0, 2]}
    model = SCNERegressor(
        SCNRegressor(25),
        groups=groups,
        networks="per group",
        trend="none",
        ridge=0.0,
        decorrelation=0.5,
        member_weights=WEIGHTS,
        random_state=0,
        **settings,
    )
    return model.fit(X, y)


@pytest.mark.parametrize("solver", ["auto", "gauss-seidel", "cholesky"])
def test_a_fit_without_a_ridge_solves_its_own_equations(solver):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (300, 3))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
    model = fitted_ensemble(X, y, solver=solver, max_iter=2000)
    hidden = [member.layer.outputs(X) for member in model.members_]
    assert max(np.linalg.cond(H) for H in hidden) > 1e5  # of which H'H sees half of the digits
    target = model.target_scaling_.apply(y[:, None])
    expected = by_least_squares(hidden, target, WEIGHTS, 0.5)
    output = np.hstack([weight * H for weight, H in zip(WEIGHTS, hidden, strict=True)]) @ expected
    np.testing.assert_allclose(model.target_scaling_.apply(model.predict(X)[:, None]), output, atol=1e-6)
    assert model.solution_.error_history[-1] == pytest.approx(np.sqrt(np.mean((target - output) ** 2)), rel=1e-5)


@pytest.mark.parametrize("a", [None, WEIGHTS], ids=["equal", "weighted"])
@pytest.mark.parametrize(("gap", "told"), [(1.0, True), (1e-3, True), (1e-9, False)])
def test_costs_of_weights_too_large_for_sums_are_refused(a, gap, told):
    """Weights from the rows themselves are right where the Gram matrix has no digit left of what they give."""
    hidden, y = nearly_dependent(hidden_outputs(), gap), targets()
    solution = solve_outputs(settled("pinv"), OutputRows.of(hidden, y), LAMBDA, 0.0, a)
    system = replace(EnsembleSystem.from_outputs(hidden, y), member_weights=a)
    if told:
        own = own_weights(solution.weights, hidden, np.full(3, 1 / 3) if a is None else a)
        said = [H @ b for H, b in zip(hidden, np.split(own, np.cumsum(SIZES)[:-1]), strict=True)]
        expected = [np.sum((y - output) ** 2, axis=0) for output in said]
        np.testing.assert_allclose(member_costs(system, solution.weights, LAMBDA).squared_error, expected, rtol=1e-4)
    else:
        with pytest.raises(ValueError, match=r"errors of member\(s\) 0, 1, 2 cannot be computed from sums over rows"):
            member_costs(system, solution.weights, LAMBDA)


# --- the running total


def test_gauss_seidel_with_a_running_total_takes_the_steps_that_it_takes_with_a_matrix():
    rng = np.random.default_rng(0)
    rows = ArrayRows(rng.standard_normal((2001, 4)), rng.standard_normal((2001, 2)), rng.uniform(0, 2, 2001))
    inputs = ColumnScaling(np.zeros(4), np.ones(4))
    layers = [
        HiddenLayer(
            np.array(columns),
            inputs.select(np.array(columns)),
            rng.uniform(-2, 2, (len(columns), 5)),
            rng.uniform(-2, 2, 5),
            "sigmoid",
        )
        for columns in ([0, 1], [1, 2, 3], [0, 3])
    ]
    scaling, ridge = ColumnScaling(np.full(2, 0.1), np.full(2, 3.0)), np.array([0.1, 0.3, 0.2])
    solver = BlockGaussSeidel(max_iter=6, step_tol=0.0)
    with ThreadEngine(2) as engine:
        whole = replace(ensemble_system(rows, layers, scaling, engine), member_weights=WEIGHTS)
        dense = solver.solve(whole, 0.9, ridge)
        for total_bytes in (1e9, 16 * 2001 * 2, 0):
            system = matrix_free_system(rows, layers, scaling, engine, total_bytes)
            free = solver.solve(replace(system, member_weights=WEIGHTS), 0.9, ridge)
            np.testing.assert_allclose(free.weights_history, dense.weights_history, rtol=1e-7, atol=1e-9)
            np.testing.assert_allclose(free.error_history, dense.error_history, rtol=1e-9)
            assert (free.status, free.n_iter) == (dense.status, dense.n_iter)


# --- divergence


def matrix_free(system):
    return MatrixFreeSystem(
        diagonal_blocks=[system.diagonal_block(m) for m in range(system.n_members)],
        moments=system.moments,
        target_square=system.target_square,
        n_rows=system.n_rows,
        sizes=system.sizes,
        product_fn=system.product,
        product_rows_fn=system.product_rows,
        member_weights=system.member_weights,
    )


def alike(seed=0, apart=0.2, sizes=(3, 3, 3), weights=WEIGHTS):
    """Members that nearly agree."""
    members = hidden_outputs(sizes, seed=seed)
    hidden = [apart * H + members[0][:, :1] for H in members]
    return replace(EnsembleSystem.from_outputs(hidden, targets()), member_weights=weights)


@pytest.mark.parametrize(
    ("share", "status"),
    [(0.98, Status.MAX_ITER), (1 - 1e-9, Status.MAX_ITER), (1 + 1e-9, Status.DIVERGED), (1.05, Status.DIVERGED)],
)
@pytest.mark.parametrize("max_iter", [1, 3, 40])
def test_jacobi_that_max_iter_ends_diverged_above_the_bound_of_its_weights(share, status, max_iter):
    system, ridge = alike(), np.full(3, 0.01)
    bound = decorrelation_bounds(system, ridge).jacobi_exact
    assert bound < LIMIT
    solution = BlockJacobi(max_iter=max_iter, step_tol=0.0).solve(system, share * bound, ridge)
    assert solution.status is status
    assert (solution.spectral_radius >= 1) == (status is Status.DIVERGED)
    if status is Status.DIVERGED:
        assert f"use a decorrelation below {bound:.4g}" in solution.message


@pytest.mark.parametrize(("share", "status"), [(0.98, Status.MAX_ITER), (1.05, Status.DIVERGED)])
def test_without_the_gram_matrix_growing_steps_tell_a_divergence(share, status):
    system, ridge = alike(), np.full(3, 0.01)
    lam = share * decorrelation_bounds(system, ridge).jacobi_exact
    solution = BlockJacobi(max_iter=80, step_tol=0.0).solve(matrix_free(system), lam, ridge)
    assert solution.status is status
    if status is Status.DIVERGED:
        assert solution.decorrelation_bound == pytest.approx(0.5 / (1 - 0.2) ** 2)


@given(st.integers(0, 10_000), st.floats(0.9, 0.999), st.floats(0.0, 10.0), st.integers(2, 8), st.floats(0.02, 0.3))
def test_growing_steps_never_tell_a_divergence_that_is_none(seed, share, ridge, max_iter, least):
    system = alike(seed, 0.3, (2, 3, 2), np.array([0.98 - 1.5 * least, 0.02 + 0.5 * least, least]))
    lam = share * decorrelation_bounds(system, ridge).jacobi_exact
    for solver in (BlockJacobi(max_iter=max_iter, step_tol=0.0), BlockGaussSeidel(max_iter=max_iter, step_tol=0.0)):
        if solver.name == "gauss-seidel":
            lam = min(lam, 0.999 * system.decorrelation_limit)
        assert solver.solve(matrix_free(system), lam, ridge).status is not Status.DIVERGED


def test_gauss_seidel_beyond_the_limit_of_its_weights_names_that_limit():
    system = alike(apart=1e-2)
    ridge = np.full(3, 1e-4)
    near = BlockGaussSeidel(max_iter=5, step_tol=0.0).solve(system, 0.999 * LIMIT, ridge)
    assert near.status is Status.MAX_ITER
    # Equal weights would end at 1.5.
    soon = BlockGaussSeidel(max_iter=5, step_tol=0.0).solve(system, 1.4, ridge)
    assert (soon.status, soon.n_iter) == (Status.DIVERGED, 5)
    assert soon.spectral_radius > 1
    beyond = BlockGaussSeidel(max_iter=20_000, keep_weights_history=False).solve(system, 1.3 * LIMIT, ridge)
    assert beyond.status is Status.DIVERGED
    assert beyond.decorrelation_bound == pytest.approx(LIMIT)
    assert "use a decorrelation below 1.25" in beyond.message


@pytest.mark.parametrize("n_members", [2, 5, 10])
def test_costs_are_refused_where_rounding_is_a_thousandth_of_them(n_members):
    """Members h = (w + 1) h - w h at a distance of 1 from y: their terms, and the mean's, lose EPS (2 w + 1)^2 each."""
    hidden, y = [np.array([[1.0, 1.0], [0.0, 0.0]])] * n_members, np.array([[1.0], [1.0]])
    system = EnsembleSystem.from_outputs(hidden, y)
    for share, refused in ((0.9, False), (1.1, True)):
        w = np.rint((np.sqrt(share * 1e-3 / (2 * np.finfo(float).eps)) - 1) / 2)
        weights = np.tile([[w + 1], [-w]], (n_members, 1))
        with pytest.raises(ValueError, match="cannot be computed") if refused else nullcontext():
            np.testing.assert_allclose(member_costs(system, weights, 0.5).squared_error, 1.0, rtol=1e-3)


@pytest.mark.parametrize("size", [0.25, 4.0])
def test_costs_of_an_exact_fit_are_refused_where_rounding_is_a_millionth_of_the_targets(size):
    """As before, but with y = h of any size: the members' errors are zero."""
    h = np.array([[size], [0.0]])
    system = EnsembleSystem.from_outputs([np.hstack([h, h])] * 4, h)
    for share, refused in ((0.9, False), (1.1, True)):
        w = np.rint((np.sqrt(share * 1e-6 / (2 * np.finfo(float).eps)) - 1) / 2)
        weights = np.tile([[w + 1], [-w]], (4, 1))
        with pytest.raises(ValueError, match="cannot be computed") if refused else nullcontext():
            assert not member_costs(system, weights, 0.5).squared_error.any()
