"""Networks without a ridge: output weights are those of pseudo-inverses of the hidden outputs, not of their squares."""

import numpy as np
import pytest
from ensembles import plain_ensemble

from scne import RVFLRegressor, SCNRegressor, open_rows
from scne.fitting._output_rows import output_rows
from scne.ncl import (
    SOLVERS,
    BlockJacobi,
    EnsembleSystem,
    Naive,
    OutputRows,
    PseudoInverse,
    Status,
    coefficients,
    solve_outputs,
    system_matrix,
)
from scne.paper._demonstration import RIDGES, _compared, synthetic_rows
from scne.passes import ThreadEngine
from scne.rows import ArrayRows, ColumnScaling

SIZES, LAMBDA = (4, 3, 5), 0.7
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


def by_least_squares(hidden, y, decorrelation):
    """A(lambda) B = H'y is the normal equation of |y/s - s H B|^2 + (c1 - c2) sum_m |H_m b_m|^2, s^2 = c2."""
    c = coefficients(decorrelation, len(hidden))
    blocks = np.zeros((sum(map(len, hidden)), sum(H.shape[1] for H in hidden)))
    row = column = 0
    for H in hidden:
        blocks[row : row + len(H), column : column + H.shape[1]] = H
        row, column = row + len(H), column + H.shape[1]
    stacked = np.vstack([np.sqrt(c.c2) * np.hstack(hidden), np.sqrt(c.c1 - c.c2) * blocks])
    wanted = np.vstack([y / np.sqrt(c.c2), np.zeros((len(blocks), y.shape[1]))])
    return np.linalg.lstsq(stacked, wanted, rcond=1e-15)[0]


@everyone
@pytest.mark.parametrize("gap", [1.0, 1e-6], ids=["apart", "nearly dependent"])
def test_every_solver_finds_what_least_squares_on_the_rows_find(name, gap):
    hidden, y = nearly_dependent(hidden_outputs(), gap), targets()
    solution = solve_outputs(settled(name), OutputRows.of(hidden, y), LAMBDA, 0.0)
    expected = by_least_squares(hidden, y, LAMBDA)
    if name == "naive":
        expected = np.concatenate([np.linalg.pinv(H) @ y for H in hidden])
    output, wanted = np.hstack(hidden) @ solution.weights, np.hstack(hidden) @ expected
    np.testing.assert_allclose(output, wanted, atol=1e-7 * np.abs(wanted).max())
    np.testing.assert_allclose(solution.weights, expected, atol=1e-7 * np.abs(expected).max())
    error = np.sqrt(np.mean((y - output / 3) ** 2))
    # Weights of a million times the output leave so many digits of a sum.
    assert solution.error_history[-1] == pytest.approx(error, rel=1e-8)
    assert solution.status in (Status.SOLVED, Status.CONVERGED)


def test_the_sums_see_half_of_the_digits():
    """Why: the same nodes from H'H, whose condition is 1e14 here, lose what H at 1e7 has."""
    hidden, y = nearly_dependent(hidden_outputs((4,)), 1e-7), targets()
    exact = np.linalg.norm(y - hidden[0] @ np.linalg.lstsq(hidden[0], y, rcond=1e-15)[0])
    solved = solve_outputs(Naive(), OutputRows.of(hidden, y), 0.0, 0.0)
    assert np.linalg.norm(y - hidden[0] @ solved.weights) == pytest.approx(exact, rel=1e-7)
    summed = Naive().solve(EnsembleSystem.from_outputs(hidden, y), 0.0, 0.0)
    assert np.linalg.norm(y - hidden[0] @ summed.weights) > 1.0001 * exact


@everyone
def test_dependent_nodes_get_the_weights_of_least_norm(name):
    hidden, y = hidden_outputs((4, 3, 2)), targets()
    hidden[0][:, 1] = 3 * hidden[0][:, 0]  # twins within a network, of different size
    hidden[1][:, 0] = hidden[2][:, 0]  # twins between networks
    hidden[2][:, 1] = 0.0  # a dead node
    solution = solve_outputs(settled(name), OutputRows.of(hidden, y), LAMBDA, 0.0)
    system = EnsembleSystem.from_outputs(hidden, y)
    expected = np.linalg.pinv(system_matrix(system, LAMBDA, 0.0), rcond=1e-12) @ system.moments
    if name == "naive":
        expected = np.concatenate([np.linalg.pinv(H) @ y for H in hidden])
    np.testing.assert_allclose(solution.weights, expected, atol=1e-8)
    assert (
        "1 of 4 directions of member 0 and 1 of 2 of member 2 cannot be distinguished from rounding in H"
        in solution.message
    )
    assert solution.status is (Status.CONVERGED if solution.n_iter else Status.RANK_DEFICIENT)


@pytest.mark.parametrize("name", ["jacobi", "gauss-seidel"])
def test_iterates_are_those_of_the_paper_with_pseudo_inverses_of_each_network(name):
    hidden, y, M = nearly_dependent(hidden_outputs(), 1e-6), targets(), 3
    c = coefficients(LAMBDA, M)
    pinvs = [np.linalg.pinv(H) for H in hidden]
    beta = [pinv @ y for pinv in pinvs]
    solution = solve_outputs(SOLVERS[name](max_iter=3), OutputRows.of(hidden, y), LAMBDA, 0.0)
    for iterate in solution.weights_history:
        expected = np.concatenate(beta)
        np.testing.assert_allclose(iterate, expected, atol=1e-7 * np.abs(expected).max())
        old = list(beta)
        for m in range(M):
            source = old if name == "jacobi" else beta
            others = sum(hidden[q] @ source[q] for q in range(M) if q != m)
            beta[m] = pinvs[m] @ (y - c.c2 * others) / c.c1


@everyone
def test_a_network_with_a_ridge_beside_one_without(name):
    hidden, y, ridge = hidden_outputs(), targets(), np.array([0.0, 0.5, 0.0])
    weights = np.random.default_rng(2).uniform(0.1, 2.0, 60)
    solution = solve_outputs(settled(name), OutputRows.of(hidden, y, weights), LAMBDA, ridge)
    expected = settled(name).solve(EnsembleSystem.from_outputs(hidden, y, weights), LAMBDA, ridge)
    np.testing.assert_allclose(solution.weights, expected.weights, rtol=1e-8, atol=1e-10)
    assert solution.error_history[-1] == pytest.approx(expected.error_history[-1], rel=1e-9)


def test_iterations_keep_their_radius():
    rows = OutputRows.of(hidden_outputs(), targets())
    system = EnsembleSystem.from_outputs(hidden_outputs(), targets())
    for name in ("jacobi", "gauss-seidel"):
        solution = solve_outputs(SOLVERS[name](), rows, LAMBDA, 0.0)
        assert callable(solution.radius)
        assert solution.spectral_radius == pytest.approx(
            SOLVERS[name]().solve(system, LAMBDA, 0.0).spectral_radius, rel=1e-9
        )


def test_small_nodes_are_not_taken_for_dependent_ones():
    hidden, y = hidden_outputs((4,))[0], targets()
    small = hidden * [1.0, 1e-13, 1.0, 1e-20]
    plain, scaled = (solve_outputs(PseudoInverse(), OutputRows.of([H], y), 0.0, 0.0) for H in (hidden, small))
    np.testing.assert_allclose(scaled.weights * [[1.0], [1e-13], [1.0], [1e-20]], plain.weights, rtol=1e-9)


def test_weights_of_small_nodes_have_as_many_digits_as_those_of_large_ones():
    hidden, y, scales = hidden_outputs((4,))[0], targets(), np.array([1.0, 1e-12, 1.0, 1e-12])
    plain, scaled = (solve_outputs(PseudoInverse(), OutputRows.of([H], y), 0.0, 0.0) for H in (hidden, hidden * scales))
    np.testing.assert_allclose(scaled.weights * scales[:, None], plain.weights, rtol=1e-9)


@pytest.mark.parametrize("n_parts", [1, 3, 40])
def test_rows_in_parts_stand_for_all_rows(n_parts):
    hidden, y = nearly_dependent(hidden_outputs(n_rows=200), 1e-6), targets(200)
    parts = np.array_split(np.arange(200), n_parts)
    joined = OutputRows(np.empty((0, 14)), 0.0, SIZES)
    for part in parts:
        joined = joined.joined(OutputRows.of([H[part] for H in hidden], y[part]))
    assert len(joined.values) < 2 * (12 + 2)
    assert joined.n_rows == 200
    whole = solve_outputs(PseudoInverse(), OutputRows.of(hidden, y), LAMBDA, 0.0)
    split = solve_outputs(PseudoInverse(), joined, LAMBDA, 0.0)
    np.testing.assert_allclose(split.weights, whole.weights, atol=1e-8 * np.abs(whole.weights).max())
    assert split.error_history[-1] == pytest.approx(whole.error_history[-1], rel=1e-10)


def test_rows_are_turned_only_when_they_are_twice_as_many_as_needed():
    """Of [H y] with 12 + 2 columns 14 rows are enough; fewer than 28 are kept as they came."""
    hidden, y = hidden_outputs(n_rows=28), targets(28)
    one, other, last = (OutputRows.of([H[part] for H in hidden], y[part]) for part in np.split(np.arange(28), [20, 27]))
    few = one.joined(other)
    np.testing.assert_array_equal(few.values, OutputRows.of([H[:27] for H in hidden], y[:27]).values)
    turned, whole = few.joined(last).values, OutputRows.of(hidden, y).values
    assert turned.shape == (14, 14)
    np.testing.assert_allclose(turned.T @ turned, whole.T @ whole, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("criterion", ["orthogonal", "paper"])
def test_predictions_are_as_good_as_the_search_says(seed, criterion):
    X, y = synthetic_rows(2_000, seed)
    scope_search = "first" if criterion == "paper" else "together"
    model = SCNRegressor(
        max_hidden=60, tol=0.0, ridge=0.0, criterion=criterion, scope_search=scope_search, random_state=seed
    ).fit(X, y)
    error = np.sqrt(np.mean((model.predict(X) - y) ** 2)) / model.fitted_.target_scaling.scale[0]
    assert error == pytest.approx(model.loss_curve_[-1], rel=1e-6)
    assert model.fitted_.solved.solution.error_history[-1] == pytest.approx(error, rel=1e-6)


def demonstration_ensemble(**settings):
    base = SCNRegressor(max_hidden=30, tol=0.0)
    given = {"n_estimators": 3, "decorrelation": 0.5, "ridge": 0.0, "random_state": 0, "max_iter": 1000, **settings}
    return plain_ensemble(base, **given).fit(*synthetic_rows(1_000, 0))


def test_an_ensemble_predicts_what_its_curve_says_with_every_solver():
    X, y = synthetic_rows(1_000, 0)
    for name in ("pinv", "jacobi", "gauss-seidel", "cholesky", "cg", "naive"):
        model = demonstration_ensemble(solver=name)
        error = np.sqrt(np.mean((model.predict(X) - y) ** 2)) / model.fitted_.target_scaling.scale[0]
        assert error == pytest.approx(model.loss_curve_[-1], rel=1e-9), name


def test_the_same_bits_on_any_number_of_threads():
    one, three = (demonstration_ensemble(solver="pinv", n_jobs=n_jobs) for n_jobs in (1, 3))
    np.testing.assert_array_equal(one.solution_.weights, three.solution_.weights)


def test_what_is_solved_from_sums_says_what_was_left_out():
    X, y = synthetic_rows(1_000, 0)
    model = SCNRegressor(max_hidden=60, tol=0.0, ridge=0.0, random_state=0).fit(X, y)
    assert model.fitted_.solved.solution.status is Status.SOLVED
    later = model.partial_fit(X, y).fitted_.solved.solution
    assert later.status is Status.RANK_DEFICIENT
    assert "of 60 directions of member 0 cannot be distinguished from rounding in H'H" in later.message


def test_iterations_on_sums_say_what_was_left_out_behind_how_they_ended():
    hidden = hidden_outputs()
    hidden[1][:, 1] = hidden[1][:, 0]
    system = EnsembleSystem.from_outputs(hidden, targets())
    for name in ("jacobi", "gauss-seidel", "cg"):
        message = SOLVERS[name]().solve(system, 0.2, 0.0).message
        assert message.startswith("The output weights stopped moving after")
        assert "because 1 of 3 directions of member 1 cannot be distinguished from rounding in H'H" in message
    assert "rank 11 of 12 (1 of 3 directions of member 1" in PseudoInverse().solve(system, 0.2, 0.0).message


def test_added_nodes_are_solved_from_the_rows_too():
    X, y = synthetic_rows(1_000, 0)
    model = SCNRegressor(max_hidden=40, tol=0.0, ridge=0.0, random_state=0).fit(X, y)
    model.add_nodes(15, X, y)
    error = np.sqrt(np.mean((model.predict(X) - y) ** 2)) / model.fitted_.target_scaling.scale[0]
    assert model.fitted_.solved.solution.error_history[-1] == pytest.approx(error, rel=1e-6)
    assert error == pytest.approx(model.loss_curve_[-1], rel=1e-6)


def test_rows_that_do_not_fit_are_left_to_the_sums():
    X, y = synthetic_rows(500, 0)
    model = RVFLRegressor(n_hidden=10, ridge=0.0, random_state=0).fit(X, y)
    arguments = ArrayRows(X, y[:, None]), [model.layer_], ColumnScaling(np.zeros(1), np.ones(1))
    with ThreadEngine(2) as engine:
        # 10 nodes, 2 direct links and a target: 16 x 13^2 bytes.
        assert output_rows(*arguments, engine, 16 * 13**2 - 1) is None
        rows = output_rows(*arguments, engine, 16 * 13**2)
    H = model.layer_.outputs(X)
    np.testing.assert_allclose(rows.values.T @ rows.values, np.c_[H, y].T @ np.c_[H, y], rtol=1e-10)


def test_without_a_ridge_the_pseudo_inverse_parts_from_the_iterations_as_networks_grow():
    """Fig. 2(b): Algorithm 1 forms H'H, where Algorithms 2 and 3 have pseudo-inverses of each H_m."""
    x = np.linspace(0.0, 1.0, 400)
    hidden = [np.cos(np.outer(x, np.arange(1, 41)) * width) for width in (0.5, 0.6, 0.7)]
    settings = {"lambda": 0.1, "k_max": 5, "tau": 1e-6}
    found = {}
    for ridge in RIDGES.values():
        found[ridge] = [_compared([H[:, :n] for H in hidden], np.exp(x), settings, ridge) for n in (4, 40)]
    few, many = (unit["correlations"] for unit in found[0.0])
    assert few["A1-A2"] > 0.99
    assert abs(many["A1-A2"]) < 0.5
    assert min(few["A2-A3"], many["A2-A3"]) > 0.99
    assert min(value for unit in found[0.1] for value in unit["correlations"].values()) > 0.99


def test_jacobi_on_one_network_is_the_pseudo_inverse():
    hidden, y = hidden_outputs((5,)), targets()
    solution = solve_outputs(BlockJacobi(), OutputRows.of(hidden, y), 0.5, 0.0)
    np.testing.assert_allclose(solution.weights, np.linalg.pinv(hidden[0]) @ y, atol=1e-10)


def test_rows_of_files_give_what_arrays_do(tmp_path):
    X, y = synthetic_rows(1_000, 0)
    path = tmp_path / "rows.csv"
    table = np.column_stack([X, y])
    path.write_text("a,b,y\n" + "\n".join(",".join(map(repr, row)) for row in table.tolist()) + "\n")
    model = SCNRegressor(max_hidden=60, tol=0.0, ridge=0.0, random_state=0)
    arrays = SCNRegressor(max_hidden=60, tol=0.0, ridge=0.0, random_state=0).fit(X, y)
    files = model.fit(open_rows(path, target="y"))
    assert files.fitted_.solved.solution.status is Status.SOLVED
    np.testing.assert_array_equal(files.fitted_.solved.solution.weights, arrays.fitted_.solved.solution.weights)
    assert files.fitted_.solved.solution.error_history[-1] == pytest.approx(files.loss_curve_[-1], rel=1e-6)
