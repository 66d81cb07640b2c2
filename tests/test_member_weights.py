"""Eq. (10) with weights a_m: the costs of Eq. (20) are stationary, and iterates are those of plain loops."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scne import DNNERegressor, RVFLRegressor, SCNEClassifier, SCNERegressor, SCNRegressor
from scne.estimators import load_model
from scne.models import ModelFileError
from scne.ncl import (
    BlockGaussSeidel,
    BlockJacobi,
    Cholesky,
    ConjugateGradient,
    EnsembleSystem,
    Naive,
    PseudoInverse,
    decorrelation_bounds,
    lambda_path,
    leave_one_out,
    member_costs,
    spectral_radius_gauss_seidel,
    spectral_radius_jacobi,
)


@dataclass
class Problem:
    """Hidden outputs, a target, weights a_m, ridges and a lambda, with nothing from the package but the system."""

    H: list[np.ndarray]
    y: np.ndarray
    a: np.ndarray
    ridge: np.ndarray
    decorrelation: float

    @property
    def system(self) -> EnsembleSystem:
        return replace(EnsembleSystem.from_outputs(self.H, self.y), member_weights=self.a)

    def own(self, B: np.ndarray) -> list[np.ndarray]:
        """b_m from B_m = M a_m b_m."""
        parts = np.split(B, np.cumsum([h.shape[1] for h in self.H])[:-1])
        return [part / (len(self.a) * weight) for part, weight in zip(parts, self.a, strict=True)]

    def output(self, b: list[np.ndarray]) -> np.ndarray:
        return sum(a * h @ own for a, h, own in zip(self.a, self.H, b, strict=True))

    def solved_output(self) -> np.ndarray:
        """The output of the weights that the equations give."""
        ends = np.cumsum([h.shape[1] for h in self.H])[:-1]
        return self.output(np.split(np.linalg.solve(self.matrix(), np.hstack(self.H).T @ self.y), ends))

    def gradient(self, b: list[np.ndarray], m: int) -> np.ndarray:
        """Of e_m, Eq. (20), with respect to b_m: its distance from the output moves with 1 - a_m."""
        said = self.H[m] @ b[m]
        slope = said - self.y - self.decorrelation * (1 - self.a[m]) * (said - self.output(b))
        ridge = (1 - self.decorrelation * (1 - self.a[m]) ** 2) * self.ridge[m]
        return self.H[m].T @ slope + ridge * b[m]

    def matrix(self) -> np.ndarray:
        """The equations in the members' own weights, which are not symmetric."""
        rows = []
        for m, mine in enumerate(self.H):
            others = self.decorrelation * (1 - self.a[m])
            row = [others * a * mine.T @ h for a, h in zip(self.a, self.H, strict=True)]
            own = 1 - self.decorrelation * (1 - self.a[m]) ** 2
            row[m] = own * (mine.T @ mine + self.ridge[m] * np.eye(mine.shape[1]))
            rows.append(np.hstack(row))
        return np.vstack(rows)


@st.composite
def problems(draw):
    sizes = draw(st.lists(st.integers(1, 5), min_size=2, max_size=5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    overlap, fraction = draw(st.floats(0.0, 0.9)), draw(st.floats(0.0, 0.99))
    n_rows = sum(sizes) + 10
    common = rng.standard_normal((n_rows, 1))
    H = [(1 - overlap) * rng.standard_normal((n_rows, size)) + overlap * common for size in sizes]
    a = rng.uniform(0.05, 1.0, len(sizes))
    a /= a.sum()
    y = rng.standard_normal((n_rows, 2)) + common
    return Problem(H, y, a, 10.0 ** rng.uniform(-2, 1, len(sizes)), fraction / (1 - a.min()))


@given(problems())
def test_every_cost_is_stationary(problem):
    for solver in (PseudoInverse(), Cholesky(), ConjugateGradient()):
        b = problem.own(solver.solve(problem.system, problem.decorrelation, problem.ridge).weights)
        for m in range(len(b)):
            np.testing.assert_allclose(problem.gradient(b, m), 0.0, atol=1e-6)
    expected = np.linalg.solve(problem.matrix(), np.hstack(problem.H).T @ problem.y)
    np.testing.assert_allclose(np.vstack(b), expected, rtol=1e-5, atol=1e-7)


@given(problems())
def test_all_members_together_minimise_one_function(problem):
    """sum_m a_m (1/(1-a_m) - lambda) |y - H_m b_m|^2 / 2 + lambda |y - sum_m a_m H_m b_m|^2 / 2, with its ridges."""
    b = problem.own(Cholesky().solve(problem.system, problem.decorrelation, problem.ridge).weights)
    a, lam = problem.a, problem.decorrelation

    def minimised(b):
        apart = [np.sum((problem.y - h @ own) ** 2) for h, own in zip(problem.H, b, strict=True)]
        shrunk = [r * np.sum(own**2) for r, own in zip(problem.ridge, b, strict=True)]
        ridges = a / (1 - a) * (1 - lam * (1 - a) ** 2)
        joint = np.sum((problem.y - problem.output(b)) ** 2)
        return (a * (1 / (1 - a) - lam) @ apart + ridges @ shrunk + lam * joint) / 2

    least, rng = minimised(b), np.random.default_rng(0)
    for _ in range(5):
        assert minimised([own + 0.1 * rng.standard_normal(own.shape) for own in b]) > least


@given(problems())
def test_iterates_are_those_of_plain_loops(problem):
    """Algorithms 2 and 3 as the paper writes them, with c1 and c2 of each member."""
    system, a, lam = problem.system, problem.a, problem.decorrelation
    pairs = zip(problem.H, problem.ridge, strict=True)
    inverses = [np.linalg.solve(h.T @ h + r * np.eye(h.shape[1]), h.T) for h, r in pairs]
    for solver, newest in ((BlockJacobi, False), (BlockGaussSeidel, True)):
        solution = solver(max_iter=4, step_tol=0.0).solve(system, lam, problem.ridge)
        b = [inverse @ problem.y for inverse in inverses]
        for k in range(solution.n_iter + 1):
            np.testing.assert_allclose(
                np.vstack(problem.own(solution.weights_history[k])), np.vstack(b), rtol=1e-7, atol=1e-8
            )
            error = np.sqrt(np.mean((problem.y - problem.output(b)) ** 2))
            assert solution.error_history[k] == pytest.approx(error, rel=1e-7)
            before = list(b)
            for m, inverse in enumerate(inverses):
                state = b if newest else before
                others = sum(a[q] * problem.H[q] @ state[q] for q in range(len(b)) if q != m)
                own = 1 - lam * (1 - a[m]) ** 2
                b[m] = inverse @ (problem.y - lam * (1 - a[m]) * others) / own


@given(problems())
def test_naive_is_the_weighted_average_of_members_alone(problem):
    weights = Naive().solve(problem.system, 0.0, problem.ridge).weights
    for h, r, own in zip(problem.H, problem.ridge, problem.own(weights), strict=True):
        np.testing.assert_allclose(
            own, np.linalg.solve(h.T @ h + r * np.eye(h.shape[1]), h.T @ problem.y), rtol=1e-7, atol=1e-9
        )


@given(problems())
def test_radii_are_those_of_the_iteration_matrices(problem):
    A = problem.matrix()
    D, lower = np.zeros_like(A), np.tril(A)
    for nodes in problem.system.slices:
        D[nodes, nodes] = lower[nodes, nodes] = A[nodes, nodes]
    jacobi = np.abs(np.linalg.eigvals(np.linalg.solve(D, A - D))).max()
    assert spectral_radius_jacobi(problem.system, problem.decorrelation, problem.ridge) == pytest.approx(
        jacobi, rel=1e-6
    )
    seidel = np.abs(np.linalg.eigvals(np.linalg.solve(lower, A - lower))).max()
    found = spectral_radius_gauss_seidel(problem.system, problem.decorrelation, problem.ridge)
    assert found == pytest.approx(seidel, rel=1e-3, abs=1e-3)
    assert found < 1


@given(problems())
def test_bounds(problem):
    system, a = problem.system, problem.a
    bounds = decorrelation_bounds(system, problem.ridge)
    assert bounds.positive_definite == pytest.approx(1 / (1 - a.min()))
    assert bounds.jacobi_any_data == pytest.approx(0.5 / (1 - a.min()) ** 2)
    assert bounds.jacobi_any_data <= bounds.jacobi_exact * (1 + 1e-9)
    assert bounds.paper <= bounds.jacobi_exact * (1 + 1e-9)
    assert spectral_radius_jacobi(system, bounds.jacobi_exact, problem.ridge) == pytest.approx(1.0, rel=1e-6)
    assert spectral_radius_jacobi(system, 0.999 * bounds.jacobi_exact, problem.ridge) < 1


@given(problems())
def test_the_path_is_the_explicit_fit(problem):
    system, N = problem.system, len(problem.y)
    path = lambda_path(system, problem.ridge, [problem.decorrelation])
    expected = Cholesky().solve(system, problem.decorrelation, problem.ridge)
    np.testing.assert_allclose(path.weights_at(problem.decorrelation), expected.weights, rtol=1e-6, atol=1e-8)
    assert path.errors[0] == pytest.approx(expected.error_history[0], rel=1e-7)
    inverse = np.linalg.inv(problem.matrix())
    outputs = np.hstack([a * h for a, h in zip(problem.a, problem.H, strict=True)])
    df = np.trace(outputs @ inverse @ np.hstack(problem.H).T)
    assert path.degrees_of_freedom[0] == pytest.approx(df, rel=1e-6)
    assert path.gcv[0] == pytest.approx(path.errors[0] ** 2 / (1 - df / N) ** 2, rel=1e-5)
    held_out = EnsembleSystem.from_outputs([h[:9] for h in problem.H], problem.y[:9])
    residual = problem.y[:9] - problem.output(problem.own(expected.weights))[:9]
    assert path.squares(held_out).held_out[0] == pytest.approx(np.mean(residual**2), rel=1e-6)


@given(problems())
def test_costs_are_those_of_the_rows(problem):
    """Eqs. (15) to (20), the penalty in its squared form; Eq. (16)'s sum over the others is the same for a_m = 1/M."""
    M = len(problem.a)
    for a in (problem.a, np.full(M, 1 / M)):
        problem.a = a
        weights = Cholesky().solve(problem.system, min(problem.decorrelation, 1.0), problem.ridge).weights
        costs = member_costs(problem.system, weights, 0.7)
        b = problem.own(weights)
        output = problem.output(b)
        for m, h in enumerate(problem.H):
            said = h @ b[m]
            np.testing.assert_allclose(costs.squared_error[m], np.sum((said - problem.y) ** 2, axis=0), rtol=1e-8)
            penalty = -np.sum((said - output) ** 2, axis=0)
            np.testing.assert_allclose(costs.penalty[m], penalty, rtol=1e-6, atol=1e-8)
            np.testing.assert_allclose(costs.cost[m], (costs.squared_error[m] + 0.7 * penalty) / 2, rtol=1e-8)
            if np.ptp(a) == 0:
                others = sum(problem.H[q] @ b[q] - output for q in range(M) if q != m)
                np.testing.assert_allclose(penalty, np.sum((said - output) * others, axis=0), rtol=1e-6, atol=1e-8)


def test_bounds_of_members_that_do_not_see_each_other():
    """Orthogonal outputs: block Jacobi solves in one step, and c1_m = 1 - lambda (1 - a_m)^2 > 0 is all it needs."""
    for a in (np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.8, 0.1])):
        problem = Problem([np.eye(3)[:, [m]] for m in range(3)], np.ones((3, 1)), a, np.full(3, 0.1), 0.6)
        bounds = decorrelation_bounds(problem.system, problem.ridge)
        assert bounds.theta_zero == 0.0
        assert bounds.paper == pytest.approx(1 / (1 - a.min()) ** 2, rel=1e-14)
        assert bounds.jacobi_exact == pytest.approx(1 / (1 - a.min()) ** 2, rel=1e-14)


def test_without_a_member_the_others_keep_their_ratios():
    rng = np.random.default_rng(0)
    H, y = [rng.standard_normal((60, 3)) for _ in range(3)], rng.standard_normal(60)
    problem = Problem(H, y[:, None], np.array([0.5, 0.3, 0.2]), np.full(3, 0.1), 0.6)
    errors = leave_one_out(problem.system, problem.system, 0.6, problem.ridge)
    rest = Problem(H[1:], y[:, None], np.array([0.6, 0.4]), np.full(2, 0.1), 0.6 * 0.8 / 0.6)
    assert errors.without[0, 0] == pytest.approx(np.sqrt(np.mean((rest.y - rest.solved_output()) ** 2)))


def test_of_two_members_the_one_that_is_left_stands_alone():
    rng = np.random.default_rng(0)
    H, y = [rng.standard_normal((60, 3)) for _ in range(2)], rng.standard_normal((60, 1))
    problem = Problem(H, y, np.array([0.7, 0.3]), np.full(2, 0.1), 0.6)
    errors = leave_one_out(problem.system, problem.system, 0.6, problem.ridge)
    for left, h in enumerate(reversed(H)):
        alone = h @ np.linalg.solve(h.T @ h + 0.1 * np.eye(3), h.T @ y)
        assert errors.without[left, 0] == pytest.approx(np.sqrt(np.mean((y - alone) ** 2)))


# Through the package.

GROUPS = {"a": [0], "b": [1, 2], "c": [0, 2]}
WEIGHTS = {"c": 0.2, "a": 0.5, "b": 0.3}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (400, 3))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(400)


def ensemble(**settings):
    base = SCNRegressor(12, validation_fraction=0.2)
    return SCNERegressor(base, groups=GROUPS, networks="per group", random_state=0, **settings)


@pytest.mark.parametrize("trend", ["none", "linear", "judged"])
def test_the_output_is_the_weighted_sum_of_the_members(rows, trend):
    X, y = rows
    model = ensemble(trend=trend, member_weights=WEIGHTS, decorrelation=0.4).fit(X, y)
    np.testing.assert_array_equal(model.member_weights_, [0.5, 0.3, 0.2])
    np.testing.assert_allclose(model.member_weights_ @ model.predict_members(X), model.predict(X), rtol=1e-9, atol=1e-9)
    assert not np.allclose(model.predict_members(X).mean(axis=0), model.predict(X), atol=1e-3)
    if trend == "none":
        hidden = [member.layer.outputs(X) for member in model.members_]
        scaled = sum(a * h @ b for a, h, b in zip(model.member_weights_, hidden, model.output_weights_, strict=True))
        np.testing.assert_allclose(model.target_scaling_.undo(scaled)[:, 0], model.predict(X), rtol=1e-8, atol=1e-8)


def test_weights_change_the_fit_and_equal_ones_change_no_bit(rows):
    X, y = rows
    settings = dict(trend="none", decorrelation=0.4, ridge=0.1)
    plain = ensemble(**settings).fit(X, y)
    equal = ensemble(**settings, member_weights=[1 / 3] * 3).fit(X, y)
    np.testing.assert_array_equal(equal.predict(X), plain.predict(X))
    np.testing.assert_array_equal(plain.member_weights_, [1 / 3] * 3)
    weighted = plain.reweighted(member_weights=WEIGHTS)
    assert not np.allclose(weighted.predict(X), plain.predict(X), atol=1e-3)
    again = weighted.reweighted(member_weights=None)
    np.testing.assert_array_equal(again.predict(X), plain.predict(X))


@pytest.mark.parametrize("solver", ["auto", "matrix-free gauss-seidel"])
def test_a_fit_solves_its_own_equations(rows, solver):
    X, y = rows
    settings = dict(trend="none", decorrelation=0.5, ridge=0.1, solver=solver, max_iter=500)
    model = ensemble(member_weights=WEIGHTS, **settings).fit(X, y)
    H = [member.layer.outputs(X) for member in model.members_]
    target = model.target_scaling_.apply(y[:, None])
    problem = Problem(H, target, model.member_weights_, np.full(3, 0.1), 0.5)
    expected = problem.solved_output()
    np.testing.assert_allclose(model.target_scaling_.undo(expected)[:, 0], model.predict(X), atol=1e-5)
    assert model.loss_curve_[-1] == pytest.approx(np.sqrt(np.mean((expected - target) ** 2)), rel=1e-5)


def test_costs_of_a_fitted_ensemble(rows):
    X, y = rows
    model = ensemble(member_weights=WEIGHTS, trend="none", decorrelation=0.4).fit(X, y)
    said = (model.predict_members(X) - y) / model.target_scaling_.scale
    apart = (model.predict_members(X) - model.predict(X)) / model.target_scaling_.scale
    costs = model.member_errors_
    np.testing.assert_allclose(costs.squared_error[:, 0], np.sum(said**2, axis=1), rtol=1e-7)
    np.testing.assert_allclose(costs.penalty[:, 0], -np.sum(apart**2, axis=1), rtol=1e-7)
    expected = (np.sum(said**2, axis=1) - 0.4 * np.sum(apart**2, axis=1)) / 2
    np.testing.assert_allclose(costs.cost[:, 0], expected, rtol=1e-7)


@pytest.mark.parametrize("with_system", [False, True])
def test_files_and_exports_keep_the_weights(rows, tmp_path, with_system):
    X, y = rows
    model = ensemble(member_weights=WEIGHTS).fit(X, y)
    model.save(tmp_path / "m.scne", with_system=with_system)
    again = load_model(tmp_path / "m.scne")
    assert again.member_weights == WEIGHTS
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.predict_members(X), model.predict_members(X))
    np.testing.assert_array_equal(again.member_weights_, model.member_weights_)
    names = {}
    exec(model.export("python"), names)
    np.testing.assert_allclose([names["predict"](row) for row in X[:5].tolist()], model.predict(X[:5]), rtol=1e-9)
    if with_system:
        assert again.group_importances_.rises == model.group_importances_.rises
        np.testing.assert_array_equal(again.member_errors_.cost, model.member_errors_.cost)


def test_a_file_without_weights_names_none(rows, tmp_path):
    X, y = rows
    ensemble().fit(X, y).save(tmp_path / "plain.scne")
    assert b"member_weights" not in (tmp_path / "plain.scne").read_bytes()


def test_later_rows_and_more_nodes_keep_the_weights(rows):
    X, y = rows
    settings = dict(trend="none", decorrelation=0.4, ridge=0.1, member_weights=WEIGHTS)
    model = ensemble(**settings).fit(X[:250], y[:250])
    model.set_params(member_weights=None)
    model.partial_fit(X[250:], y[250:])
    np.testing.assert_array_equal(model.member_weights_, [0.5, 0.3, 0.2])
    H = [member.layer.outputs(X) for member in model.members_]
    target = model.target_scaling_.apply(y[:, None])
    problem = Problem(H, target, model.member_weights_, np.full(3, 0.1), 0.4)
    expected = problem.solved_output()
    np.testing.assert_allclose(model.target_scaling_.undo(expected)[:, 0], model.predict(X), atol=1e-6)
    model.add_nodes(3, X, y)
    np.testing.assert_allclose(model.member_weights_ @ model.predict_members(X), model.predict(X), atol=1e-9)


def test_classes_and_random_networks(rows):
    X, y = rows
    labels = np.digitize(y, [-0.5, 0.5])
    base = SCNRegressor(12, validation_fraction=0.2)
    model = SCNEClassifier(base, n_estimators=2, member_weights=[0.25, 0.75], random_state=0).fit(X, labels)
    np.testing.assert_array_equal(model.regressor_.member_weights_, [0.25, 0.75])
    assert model.score(X, labels) > 0.6
    dnne = DNNERegressor(RVFLRegressor(10), groups=GROUPS, member_weights=WEIGHTS, random_state=0).fit(X, y)
    np.testing.assert_allclose(dnne.member_weights_ @ dnne.predict_members(X), dnne.predict(X), atol=1e-9)
    assert "weights between 0.2 and 0.5" in dnne.summary()


@pytest.mark.parametrize(
    ("member_weights", "words"),
    [
        ("equal", "member_weights is 'equal', but it must be None"),
        ([0.5, 0.5], "member_weights has 2 values, but there are 3 networks"),
        ([0.5, 0.3, 0.3], "member_weights sum to 1.1, but they must sum to 1"),
        ([0.5, 0.5, 0.0], r"member_weights is 0 for \['c'\]"),
        ([1.5, -0.25, -0.25], "member_weights is -0.25"),
        ({"a": 0.5, "b": 0.5}, r"member_weights names \['a', 'b'\], but it must name each of the networks"),
    ],
)
def test_weights_that_cannot_be_are_refused(rows, member_weights, words):
    with pytest.raises(ValueError, match=words):
        ensemble(member_weights=member_weights).fit(*rows)


def test_lambda_ends_earlier_for_unequal_weights(rows):
    with pytest.raises(ValueError, match=r"below 1/\(1 - least of member_weights\) = 1.25"):
        ensemble(member_weights=WEIGHTS, decorrelation=1.3).fit(*rows)


def test_a_damaged_weight_is_refused(rows, tmp_path):
    model = ensemble(member_weights=WEIGHTS).fit(*rows)
    solved = replace(model.fitted_.solved, member_weights=np.array([0.5, 0.6, 0.2]))
    model.fitted_ = replace(model.fitted_, solved=solved)
    model.save(tmp_path / "bad.scne")
    with pytest.raises(ModelFileError, match="member_weights"):
        load_model(tmp_path / "bad.scne")
