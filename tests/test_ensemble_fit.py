"""The ensemble on real hidden layers: what each solver, lambda and ridge stand for, computed by hand from the rows."""

import re
import warnings
from typing import ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pytest
from ensembles import plain_ensemble
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge

import scne
from scne import DNNERegressor, RVFLRegressor, SCNERegressor, SCNRegressor, error_decomposition
from scne.estimators._regressor import draw_seed
from scne.fitting._members import draw_held_out
from scne.ncl import decorrelation_bounds, lambda_path
from scne.networks import joint_outputs
from scne.rows import ArrayRows

# Some columns are in no group here, which is said where it is tested.
pytestmark = pytest.mark.filterwarnings("ignore:.* no network sees:scne.ScneWarning")

GROUPS = {"a": [0, 1], "b": [1, 2], "c": [0, 2, 3]}
ITERATING = {"max_iter": 5000}
BASES = {
    "scn": SCNRegressor(7, n_candidates=20),
    "rvfl": RVFLRegressor(7, scope=3, direct_link=False),
    "rvfl with links": RVFLRegressor(7, scope=3),
}
bases = pytest.mark.parametrize("base", BASES.values(), ids=BASES.keys())


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (250, 4))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + X[:, 3] + 0.2 * rng.standard_normal(250)


def make(base, **settings):
    return plain_ensemble(clone(base), groups=GROUPS, random_state=0, **settings)


def hidden(model, X):
    return [member.layer.outputs(X) for member in model.members_]


def scaled(y):
    return (y - y.mean()) / y.std()


def unscaled(values, y):
    return y.mean() + y.std() * values


# --- what the ensemble predicts


@bases
def test_the_prediction_is_the_mean_of_the_members(base, data):
    model = make(base).fit(*data)
    np.testing.assert_allclose(model.predict(data[0]), model.predict_members(data[0]).mean(axis=0), atol=1e-12)


@bases
def test_a_member_is_its_hidden_outputs_times_its_weights(base, data):
    X, y = data
    model = make(base, ridge=0.1, decorrelation=0.5).fit(X, y)
    for m, H in enumerate(hidden(model, X)):
        weights = model.output_weights_[m]
        if model.direct_weights_ is not None:
            weights = np.vstack([weights, model.direct_weights_[m]])
        np.testing.assert_allclose(model.predict_members(X)[m], unscaled(H @ weights[:, 0], y), atol=1e-10)


@bases
def test_naive_is_the_average_of_networks_fitted_alone(base, data):
    X, y = data
    model = make(base, solver="naive", ridge=[0.1, 0.2, 0.3]).fit(X, y)
    alone = [
        H @ np.linalg.solve(H.T @ H + r * np.eye(H.shape[1]), H.T @ scaled(y))
        for H, r in zip(hidden(model, X), (0.1, 0.2, 0.3), strict=True)
    ]
    np.testing.assert_allclose(model.predict(X), unscaled(np.mean(alone, axis=0), y), atol=1e-9)


@pytest.mark.parametrize("ridge", [0.05, "auto"])
@pytest.mark.parametrize("decorrelation", ["auto", 0.0, 0.7])
def test_naive_means_a_lambda_of_zero(decorrelation, ridge, data):
    model = make(BASES["rvfl"], solver="naive", decorrelation=decorrelation, ridge=ridge).fit(*data)
    assert model.decorrelation_ == 0


@bases
def test_a_lambda_of_zero_is_naive(base, data):
    X, y = data
    model = make(base, decorrelation=0.0, ridge=0.1).fit(X, y)
    np.testing.assert_allclose(model.predict(X), model.reweighted(solver="naive").predict(X), atol=1e-9)


@bases
def test_the_last_lambda_is_the_joint_ridge_regression(base, data):
    """Identity 1: at M/(M-1) all nodes of all members are fitted together."""
    X, y = data
    model = make(base, decorrelation=1.5 * (1 - 1e-10), ridge=0.1).fit(X, y)
    H = joint_outputs(tuple(member.layer for member in model.members_), X)
    joint = Ridge(alpha=0.1, fit_intercept=False).fit(H, scaled(y)).predict(H)
    np.testing.assert_allclose(model.predict(X), unscaled(joint, y), atol=1e-6)


@bases
@pytest.mark.parametrize("decorrelation", [0.3, 1.2])
def test_weights_solve_equation_25_made_from_the_rows(base, decorrelation, data):
    """A(lambda) B = H'y with c1 = 1 - lambda (M-1)^2/M^2 and c2 = lambda (M-1)/M^2."""
    X, y = data
    model = make(base, decorrelation=decorrelation, ridge=[0.1, 0.2, 0.3]).fit(X, y)
    parts = hidden(model, X)
    H = np.hstack(parts)
    own = np.repeat(np.arange(3), [part.shape[1] for part in parts])
    G, same = H.T @ H, own[:, None] == own
    c1, c2 = 1 - decorrelation * 4 / 9, decorrelation * 2 / 9
    A = np.where(same, c1 * G, c2 * G) + c1 * np.diag(np.array([0.1, 0.2, 0.3])[own])
    expected = H @ np.linalg.solve(A, H.T @ scaled(y)) / 3
    np.testing.assert_allclose(model.predict(X), unscaled(expected, y), atol=1e-7)


def test_each_member_minimises_its_penalised_error(data):
    """Eq. (20) at the solution: no member can lower |H_m b - y|^2 - lambda |H_m b - f|^2 + ridge by moving alone."""
    X, y = data
    lam, r, M = 0.8, 0.1, 3
    model = make(BASES["rvfl"], decorrelation=lam, ridge=r).fit(X, y)
    parts, target = hidden(model, X), scaled(y)
    outputs = [H @ beta[:, 0] for H, beta in zip(parts, model.output_weights_, strict=True)]
    f = np.mean(outputs, axis=0)
    c1 = 1 - lam * (M - 1) ** 2 / M**2
    for H, beta, own in zip(parts, model.output_weights_, outputs, strict=True):
        gradient = H.T @ (own - target - lam * (1 - 1 / M) * (own - f)) + c1 * r * beta[:, 0]
        assert np.abs(gradient).max() < 1e-8


@pytest.mark.parametrize("solver", ["pinv", "cholesky", "cg", "gauss-seidel", "jacobi"])
@bases
def test_solvers_agree(base, solver, data):
    """Block Jacobi converges on all data below M^2 / (2 (M-1)^2) = 1.125, so at 0.9 too."""
    X, y = data
    model = make(base, decorrelation=0.9, ridge=0.01, solver="cholesky").fit(X, y)
    other = model.reweighted(solver=solver, **ITERATING)
    np.testing.assert_allclose(other.predict(X), model.predict(X), atol=1e-6)
    assert other.solution_.solver == solver


@pytest.mark.parametrize("solver", ["pinv", "cholesky", "cg", "gauss-seidel"])
def test_solvers_agree_near_the_end_of_the_road(solver, data):
    X, y = data
    model = make(BASES["rvfl"], decorrelation=1.4, ridge=0.1, solver="cholesky").fit(X, y)
    other = model.reweighted(solver=solver, max_iter=20_000)
    np.testing.assert_allclose(other.predict(X), model.predict(X), atol=1e-5)


def test_solvers_agree_for_several_outputs_and_weights(data):
    X, y = data
    Y, weights = np.column_stack([y, X[:, 0] ** 2]), np.linspace(0, 3, len(y))
    model = make(BASES["scn"], decorrelation=0.5, ridge=0.1).fit(X, Y, weights)
    for solver in ("pinv", "cg", "gauss-seidel", "jacobi"):
        np.testing.assert_allclose(model.reweighted(solver=solver, **ITERATING).predict(X), model.predict(X), atol=1e-6)


@pytest.mark.parametrize("solver", ["jacobi", "gauss-seidel"])
def test_iterations_start_from_the_naive_ensemble(solver, data):
    X, y = data
    model = make(BASES["rvfl"], decorrelation=0.5, ridge=0.1, solver=solver, **ITERATING).fit(X, y)
    naive = model.reweighted(solver="naive").predict(X)
    assert model.loss_curve_[0] == pytest.approx(np.sqrt(np.mean((naive - y) ** 2)) / y.std(), rel=1e-8)


def test_the_loss_curve_ends_at_the_training_error(data):
    X, y = data
    model = make(BASES["scn"]).fit(X, y)
    error = np.sqrt(np.mean((model.predict(X) - y) ** 2)) / y.std()
    assert model.loss_curve_[-1] == pytest.approx(error, rel=1e-6)


def test_a_tolerance_on_the_error_ends_the_iteration(data):
    X, y = data
    model = make(BASES["rvfl"], decorrelation=1.0, ridge=0.1, solver="gauss-seidel", **ITERATING).fit(X, y)
    between = model.loss_curve_[[1, -1]].mean()
    stopped = model.reweighted(tol=float(between))
    assert stopped.loss_curve_[-1] < between <= stopped.loss_curve_[-2]
    assert stopped.n_iter_ < model.n_iter_


# --- solving again


@pytest.mark.parametrize(
    "settings",
    [{"decorrelation": 0.4}, {"ridge": 0.5}, {"solver": "naive"}, {"solver": "gauss-seidel", "max_iter": 500}],
    ids=["lambda", "ridge", "solver", "iterations"],
)
def test_solving_again_is_a_fresh_fit_with_those_settings(settings, data):
    X, y = data
    settings = {"ridge": 0.1, "decorrelation": 0.5, **settings}
    again = make(BASES["scn"]).fit(X, y).reweighted(**settings)
    fresh = make(BASES["scn"], **settings).fit(X, y)
    assert np.array_equal(again.predict(X), fresh.predict(X))
    assert again.get_params()["decorrelation"] == settings["decorrelation"]


def test_solving_again_leaves_the_model_as_it_was(data):
    X, y = data
    model = make(BASES["scn"]).fit(X, y)
    before, attributes = model.predict(X), dict(vars(model))
    model.reweighted(decorrelation=0.1, solver="naive", ridge=1.0)
    assert np.array_equal(model.predict(X), before)
    assert vars(model).keys() == attributes.keys()
    assert all(vars(model)[name] is attributes[name] for name in attributes)


# --- choosing lambda and r


def gcv_by_hand(model, X, y, decorrelation, ridge):
    """(RSS / N) / (1 - df / N)^2 with the smoother written out, an N x N matrix."""
    parts = hidden(model, X)
    H, M = np.hstack(parts), len(parts)
    own = np.repeat(np.arange(M), [part.shape[1] for part in parts])
    G = H.T @ H
    c1, c2 = 1 - decorrelation * (M - 1) ** 2 / M**2, decorrelation * (M - 1) / M**2
    A = np.where(own[:, None] == own, c1 * G, c2 * G) + c1 * ridge * np.eye(len(G))
    smoother = H @ np.linalg.solve(A, H.T) / M
    rest = scaled(y) - smoother @ scaled(y)
    return np.mean(rest**2) / (1 - np.trace(smoother) / len(y)) ** 2


def test_auto_takes_the_pair_nearest_to_an_average_that_is_as_good(data):
    """Squared errors that differ by less than five thousandths are as good as one another."""
    choice = make(BASES["scn"]).fit(*data).choice_
    rows, columns = np.nonzero(choice.scores <= 1.005 * choice.scores.min())
    column = columns.min()
    row = rows[columns == column].max()
    assert choice.decorrelation == choice.decorrelations[column]
    assert np.array_equal(choice.ridge, choice.ridges[row])


def test_what_was_chosen_is_what_was_used(data):
    model = make(BASES["scn"]).fit(*data)
    assert model.decorrelation_ == model.choice_.decorrelation
    assert np.array_equal(model.ridge_, model.choice_.ridge)
    assert 0 <= model.decorrelation_ < 1.5


@pytest.mark.parametrize("pick", [0, 30, 70, 95])
def test_scores_are_generalised_cross_validation_by_hand(pick, data):
    model = make(BASES["rvfl"], ridge=0.1).fit(*data)
    lam = model.choice_.decorrelations[pick]
    assert model.choice_.scores[0, pick] == pytest.approx(gcv_by_hand(model, *data, lam, 0.1), rel=1e-5)


@pytest.mark.parametrize("pick", [0, 30, 70, 95])
def test_with_validation_rows_scores_are_the_error_on_them(pick, data):
    X, y = data
    rows = {"X": X[:150], "y": y[:150], "X_val": X[150:], "y_val": y[150:]}
    model = make(BASES["rvfl"], ridge=0.1).fit(**rows)
    lam = float(model.choice_.decorrelations[pick])
    fitted = make(BASES["rvfl"], ridge=0.1, decorrelation=lam).fit(X[:150], y[:150])
    error = np.mean((fitted.predict(X[150:]) - y[150:]) ** 2) / y[:150].var()
    assert model.choice_.scores[0, pick] == pytest.approx(error, rel=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
def test_with_held_out_rows_scores_are_the_error_on_them(weighted, data):
    """Weights from the rows that were searched, by hand; they judge the others."""
    X, y = data
    w = np.linspace(0.4, 1.6, len(y)) if weighted else np.ones(len(y))  # a mean of 1, as the fit makes it
    base = SCNRegressor(7, n_candidates=20, validation_fraction=0.3)
    model = make(base, ridge=0.1, decorrelation=0.0, solver="naive").fit(X, y, w if weighted else None)
    chosen = clone(model).set_params(decorrelation="auto").fit(X, y, w if weighted else None).choice_
    out = draw_held_out(ArrayRows(X, weights=w), 0.3, draw_seed(0))
    kept = np.setdiff1d(np.arange(len(y)), out)
    mean = np.average(y, weights=w)
    target = (y - mean) / np.sqrt(np.average((y - mean) ** 2, weights=w))
    f = np.zeros(len(y))
    for H in hidden(model, X):
        gram = (H[kept].T * w[kept]) @ H[kept] + 0.1 * np.eye(H.shape[1])
        f += H @ np.linalg.solve(gram, (H[kept].T * w[kept]) @ target[kept]) / 3
    assert chosen.criterion == "held-out rows"
    assert chosen.scores[0, 0] == pytest.approx(np.average((target - f)[out] ** 2, weights=w[out]), rel=1e-6)


def test_a_given_ridge_is_kept_while_lambda_is_chosen(data):
    model = make(BASES["scn"], ridge=0.3).fit(*data)
    assert model.ridge_.tolist() == [0.3] * 3
    assert model.choice_.scores.shape[0] == 1


def test_a_given_lambda_is_kept_while_the_ridge_is_chosen(data):
    model = make(BASES["scn"], decorrelation=0.3).fit(*data)
    assert model.decorrelation_ == 0.3
    assert model.choice_.decorrelations.tolist() == [0.3]


def test_nothing_is_chosen_where_both_are_given(data):
    assert make(BASES["scn"], decorrelation=0.3, ridge=0.1).fit(*data).choice_ is None


def test_one_network_has_nothing_to_be_decorrelated_from(data):
    model = plain_ensemble(BASES["scn"], n_estimators=1, random_state=0).fit(*data)
    assert model.decorrelation_ == 0


def test_sources_that_add_up_want_a_large_lambda(data):
    """No network sees all that the target depends on, so an average of them cannot fit it."""
    model = make(BASES["scn"]).fit(*data)
    assert model.decorrelation_ > 1
    assert model.score(*data) > model.reweighted(solver="naive").score(*data) + 0.1


def test_auto_keeps_jacobi_inside_its_exact_bound(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = make(BASES["rvfl"], solver="jacobi", max_iter=2000).fit(*data)
    assert model.decorrelation_ < decorrelation_bounds(model.system_, model.ridge_).jacobi_exact
    assert model.solution_.status.value == "converged"


def test_the_path_begins_naive_and_passes_the_model(data):
    X, y = data
    model = make(BASES["scn"], ridge=0.1, decorrelation=0.8).fit(X, y)
    path = lambda_path(model.system_, model.ridge_, [0.0, 0.8])
    naive = model.reweighted(solver="naive").predict(X)
    np.testing.assert_allclose(
        path.errors * y.std(), [np.sqrt(np.mean((f - y) ** 2)) for f in (naive, model.predict(X))], rtol=1e-6
    )


# --- warnings that say what to do


@pytest.fixture(scope="module")
def alike(data):
    """Three networks on the same columns, all but alike: beyond 1.13 or so Jacobi diverges."""
    return plain_ensemble(BASES["rvfl"], n_estimators=3, decorrelation=0.1, ridge=1e-3, random_state=0).fit(*data)


def test_jacobi_beyond_its_bound_warns_with_the_bound_and_a_way_out(alike):
    bound = decorrelation_bounds(alike.system_, alike.ridge_).jacobi_exact
    with pytest.warns(ConvergenceWarning) as caught:
        alike.reweighted(solver="jacobi", decorrelation=1.45)
    text = str(caught[0].message)
    assert f"{bound:.4g}" in text
    for word in ("diverged", "decorrelation below", "gauss-seidel", "cholesky"):
        assert word in text


def test_jacobi_inside_its_bound_does_not_warn(alike):
    inside = 0.9 * decorrelation_bounds(alike.system_, alike.ridge_).jacobi_exact
    model = alike.reweighted(solver="jacobi", decorrelation=inside, max_iter=2000)
    assert model.solution_.status.value == "converged"


def test_a_matrix_free_jacobi_that_diverges_says_so(data):
    model = plain_ensemble(
        BASES["rvfl"], n_estimators=3, decorrelation=1.45, ridge=1e-3, solver="matrix-free jacobi", random_state=0
    )
    with pytest.warns(ConvergenceWarning, match="gauss-seidel"):
        model.fit(*data)


def test_too_few_iterations_warn_with_a_way_out(alike):
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        alike.reweighted(solver="gauss-seidel", decorrelation=1.4, max_iter=2)


def test_a_warning_points_at_the_line_of_the_user(data):
    with pytest.warns(ConvergenceWarning) as caught:
        plain_ensemble(
            BASES["rvfl"], n_estimators=3, decorrelation=1.4, ridge=1e-3, solver="gauss-seidel", max_iter=2
        ).fit(*data)
    assert caught[0].filename == __file__


# --- without a matrix


@pytest.mark.parametrize("solver", ["naive", "jacobi", "gauss-seidel", "cg"])
@bases
def test_without_a_matrix_the_same_weights_are_found(base, solver, data):
    X, y = data
    settings = {"decorrelation": 0.5, "ridge": 0.1, **ITERATING}
    dense = make(base, solver=solver, **settings).fit(X, y).predict(X)
    free = make(base, solver=f"matrix-free {solver}", **settings).fit(X, y)
    np.testing.assert_allclose(free.predict(X), dense, atol=1e-8)
    assert free.solution_.solver == solver


def test_without_a_matrix_weights_and_outputs_count_too(data):
    X, y = data
    Y, weights = np.column_stack([y, X[:, 0] ** 2]), np.linspace(0, 3, len(y))
    settings = {"decorrelation": 0.5, "ridge": 0.1, **ITERATING}
    dense = make(BASES["scn"], solver="cg", **settings).fit(X, Y, weights).predict(X)
    free = make(BASES["scn"], solver="matrix-free cg", **settings).fit(X, Y, weights).predict(X)
    np.testing.assert_allclose(free, dense, atol=1e-8)


# --- a ridge for each group


def test_a_ridge_for_each_group_by_name_or_in_order(data):
    X, y = data
    by_name = make(BASES["rvfl"], decorrelation=0.5, ridge={"c": 3.0, "a": 0.1, "b": 0.2}).fit(X, y)
    in_order = make(BASES["rvfl"], decorrelation=0.5, ridge=[0.1, 0.2, 3.0]).fit(X, y)
    assert by_name.ridge_.tolist() == [0.1, 0.2, 3.0]
    assert np.array_equal(by_name.predict(X), in_order.predict(X))


def test_groups_that_are_not_named_by_text_can_have_ridges_by_name(data):
    model = DNNERegressor(RVFLRegressor(5), groups={1: [0], 2: [1, 2]}, ridge={1: 0.1, 2: 0.2}, decorrelation=0.5)
    assert model.fit(*data).ridge_.tolist() == [0.1, 0.2]


def test_a_large_ridge_silences_its_member(data):
    X, y = data
    model = make(BASES["rvfl"], decorrelation=0.5, ridge=[0.1, 1e9, 0.1]).fit(X, y)
    np.testing.assert_allclose(model.predict_members(X)[1], y.mean(), atol=1e-3)


def test_no_ridge_takes_the_pseudo_inverse(data):
    """Two networks share a group and a size: with r = 0 and dependent nodes the fit still stands."""
    X, y = data
    model = make(BASES["rvfl"], decorrelation=0.5, ridge=0.0).fit(X, y)
    assert model.solution_.solver == "pinv"
    H = hidden(model, X)
    gram = [part.T @ part for part in H]
    naive = model.reweighted(solver="naive").predict(X)
    alone = [part @ np.linalg.solve(g, part.T @ scaled(y)) for part, g in zip(H, gram, strict=True)]
    np.testing.assert_allclose(naive, unscaled(np.mean(alone, axis=0), y), atol=1e-5)


# --- kinds of ensemble


def test_dnne_is_the_ensemble_on_random_networks(data):
    X, y = data
    dnne = DNNERegressor(n_estimators=3, random_state=0).fit(X, y)
    scne = plain_ensemble(RVFLRegressor(direct_link=False), n_estimators=3, random_state=0).fit(X, y)
    assert np.array_equal(dnne.predict(X), scne.predict(X))


def test_the_default_ensemble_is_one_of_tuned_networks(data):
    X, y = data
    default, tuned = (SCNERegressor(base, random_state=0).fit(X, y) for base in (None, SCNRegressor.tuned()))
    assert default.get_params(deep=False).keys() == tuned.get_params(deep=False).keys()
    assert np.array_equal(default.solution_.weights, tuned.solution_.weights)
    assert np.array_equal(default.network_share_, tuned.network_share_)
    assert np.array_equal(default.predict(3 * X), tuned.predict(3 * X))


def test_candidates_are_compared_in_the_precision_of_the_base_model(data):
    def curves(precision):
        base = SCNRegressor(7, n_candidates=20, precision=precision)
        return np.array([member.search.training_curve for member in make(base).fit(*data).members_])

    single, double = curves("float32"), curves("float64")
    assert not np.array_equal(single, double)
    np.testing.assert_allclose(single, double, rtol=0.1)
    # Few rows are searched in double precision.
    assert np.array_equal(curves("auto"), double)


def test_base_models_share_one_precision(data):
    bases = {f"group {place + 1}": SCNRegressor(5, precision=value) for place, value in enumerate(("auto", "tf32"))}
    with pytest.raises(ValueError, match="precision='auto' and precision='tf32', but all networks share one precision"):
        plain_ensemble(bases, groups=[[0], [1]]).fit(*data)


@pytest.mark.parametrize("cls", [SCNERegressor, DNNERegressor])
def test_the_paper_is_computed_in_double_precision(cls):
    assert cls.paper().estimator.precision == "float64"


def test_the_settings_of_the_paper():
    """Sections 2.1, 3.3, 4.3 and 4.4: lambda = 0.1, k_max = 10, tau = 1e-6, 0-1 scaling, Eqs. (7) and (8)."""
    model = SCNERegressor.paper({"a": [0], "b": [1]}, max_hidden=30)
    ensemble = {"decorrelation": 0.1, "max_iter": 10, "tol": 1e-6, "ridge": 0.1, "solver": "gauss-seidel"}
    base = {"criterion": "paper", "scope_search": "first", "activation": "sigmoid", "batch_size": 1, "max_hidden": 30}
    base |= {"ridge": 0.0}
    assert {name: getattr(model, name) for name in ensemble} == ensemble
    assert (model.networks, model.trend, model.groups) == ("per group", "none", {"a": [0], "b": [1]})
    assert {name: getattr(model.estimator, name) for name in base} == base
    # The paper scales to 0-1 and limits nothing to that.
    assert (model.estimator.scaling, model.estimator.target_scaling) == ("min-max", "0-1")


def test_the_search_of_the_paper_solves_least_squares():
    """Eq. (8): the error of a search by `.paper()` is that of the pseudo-inverse, not of a ridge regression."""
    x = np.linspace(-5, 5, 1000)
    X, y = np.column_stack([x, np.sin(x)]), np.cos(2 * np.sin(x)) / np.exp(x)
    model = SCNERegressor.paper(n_estimators=1, max_hidden=30, random_state=0).fit(X, y)
    member = model.members_[0]
    H, target = member.layer.outputs(X), model.target_scaling_.apply(y[:, None])

    def error(ridge):
        rows, zeros = np.vstack([H, np.sqrt(ridge) * np.eye(H.shape[1])]), np.zeros((H.shape[1], 1))
        return np.sqrt(np.mean((H @ np.linalg.lstsq(rows, np.vstack([target, zeros]))[0] - target) ** 2))

    assert member.search.training_curve[-1] == pytest.approx(error(0.0), rel=0.05)
    assert error(1e-6) > 2 * error(0.0)


def test_the_settings_of_the_paper_can_be_overridden():
    model = SCNERegressor.paper(solver="jacobi", max_iter=5, ridge=0.0)
    assert (model.solver, model.max_iter, model.ridge) == ("jacobi", 5, 0.0)


def test_the_dnne_of_the_paper_has_random_networks_without_links(data):
    model = DNNERegressor.paper(GROUPS, max_hidden=9, random_state=0).fit(*data)
    assert isinstance(model.estimator, RVFLRegressor)
    assert model.n_hidden_ == [9, 9, 9]
    assert model.direct_weights_ is None


@pytest.mark.parametrize("ridge", [0.0, 0.1])
@pytest.mark.parametrize("solver", ["naive", "pinv", "gauss-seidel", "jacobi"])
def test_the_ensemble_of_the_paper_learns(solver, ridge, data):
    X, y = data
    settings = {"max_hidden": 15, "solver": solver, "ridge": ridge, "max_iter": 200, "random_state": 0}
    model = SCNERegressor.paper([[0, 1, 2, 3]] * 3, **settings).fit(X, y)
    assert model.score(X, y) > 0.6


# --- Theorem 2


def smooth(n_rows, noise, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_rows, 1))
    return X, np.sin(3 * X[:, 0]) + noise * rng.standard_normal(n_rows)


@pytest.mark.parametrize("n_estimators", [1, 3])
def test_bias_variance_covariance_and_noise_add_up_to_the_error(n_estimators):
    X, y = smooth(150, 0.3, 0)
    model = DNNERegressor(RVFLRegressor(8, scope=5), n_estimators=n_estimators, ridge=0.1)
    parts = error_decomposition(model, X[:100], y[:100], X[100:], y[100:], n_repeats=6, noise=0.09, random_state=0)
    assert sum(parts.terms().values()) == pytest.approx(parts.total, rel=1e-10)
    assert (parts.n_members, parts.n_sets, parts.noise) == (n_estimators, 6, 0.09)


def test_the_total_is_the_error_of_models_fitted_on_resampled_rows():
    """The same draws, made by hand."""
    X, y = smooth(120, 0.3, 0)
    model = DNNERegressor(RVFLRegressor(6, scope=5), n_estimators=2, ridge=0.1, decorrelation=0.5)
    parts = error_decomposition(model, X[:80], y[:80], X[80:], y[80:], n_repeats=4, noise=0.09, random_state=1)
    generator, errors = np.random.RandomState(1), []
    for _ in range(4):
        drawn = generator.randint(80, size=80)
        seed = int(generator.randint(np.iinfo(np.int32).max))
        again = clone(model).set_params(random_state=seed).fit(X[drawn], y[drawn])
        errors.append(np.mean((again.predict(X[80:]) - y[80:]) ** 2))
    assert parts.total == pytest.approx(np.mean(errors), rel=1e-10)


def test_the_noise_is_found_from_dense_rows():
    X, y = smooth(2500, 0.3, 0)
    model = DNNERegressor(RVFLRegressor(8, scope=5), n_estimators=2, ridge=1e-4)
    parts = error_decomposition(model, X[:500], y[:500], X[500:], y[500:], n_repeats=3, random_state=0)
    assert parts.noise == pytest.approx(0.09, rel=0.1)
    assert abs(parts.bias_squared) < 0.02


def test_an_exact_function_without_noise_leaves_bias_alone():
    """A straight line fitted by a nearly straight network: no noise, and hardly any variance."""
    X = np.linspace(-1, 1, 120)[:, None]
    model = DNNERegressor(RVFLRegressor(4, scope=1), n_estimators=2, ridge=1e-6, decorrelation=0.0)
    parts = error_decomposition(model, X[::2], X[::2, 0], X[1::2], X[1::2, 0], n_repeats=4, noise=0.0, random_state=0)
    assert parts.noise == 0
    assert parts.total < 1e-3


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_the_error_of_a_frame_is_that_of_its_array(frame):
    X, y = smooth(90, 0.3, 0)
    model = DNNERegressor(RVFLRegressor(5), n_estimators=2, ridge=0.1)
    settings = {"n_repeats": 3, "noise": 0.09, "random_state": 0}
    by_array = error_decomposition(model, X[:60], y[:60], X[60:], y[60:], **settings)
    framed = frame({"x": X[:60, 0]}), frame({"x": X[60:, 0]})
    assert error_decomposition(model, framed[0], y[:60], framed[1], y[60:], **settings) == by_array


def test_the_ensemble_whose_error_is_taken_apart_is_not_fitted():
    X, y = smooth(90, 0.3, 0)
    model = DNNERegressor(RVFLRegressor(5), n_estimators=2, ridge=0.1)
    error_decomposition(model, X[:60], y[:60], X[60:], y[60:], n_repeats=2, noise=0.0, random_state=0)
    assert not hasattr(model, "members_")


@pytest.mark.parametrize("other", ["y", "weights", "watched"])
def test_a_checkpoint_of_other_arrays_is_refused(data, tmp_path, monkeypatch, other):
    """A fit that was cut is not gone on with for other targets, weights or watched rows."""
    X, y = data
    weights = np.ones(len(X))

    def cut(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("scne.fitting._fit.solve_weights", cut)
    with pytest.raises(KeyboardInterrupt):
        make(BASES["scn"]).fit(X, y, weights, X_val=X[:50], y_val=y[:50], checkpoint=tmp_path)
    monkeypatch.undo()
    changed = {"y": (y + 1, weights, y), "weights": (y, np.linspace(1, 2, len(y)), y), "watched": (y, weights, 1 - y)}[
        other
    ]
    with pytest.raises(ValueError, match="other settings or other data"):
        make(BASES["scn"]).fit(X, *changed[:2], X_val=X[:50], y_val=changed[2][:50], checkpoint=tmp_path)
    kept = make(BASES["scn"]).fit(X, y, weights, X_val=X[:50], y_val=y[:50], checkpoint=tmp_path)
    whole = make(BASES["scn"]).fit(X, y, weights, X_val=X[:50], y_val=y[:50])
    np.testing.assert_array_equal(kept.predict(X), whole.predict(X))


class TestByGroup:
    """Sizes, scopes and whole base models for each group, by its name: {L_m} and {alpha_m} of the paper."""

    X = np.random.default_rng(0).uniform(-1, 1, (300, 4))
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
    groups: ClassVar = {"a": [0, 1], "b": [2, 3]}

    def fitted(self, estimator, **settings):
        return plain_ensemble(estimator, groups=self.groups, random_state=0, **settings).fit(self.X, self.y)

    def test_sizes(self):
        model = self.fitted(SCNRegressor({"a": 3, "b": 7}, n_candidates=20))
        assert model.n_hidden_ == [3, 7]
        assert clone(model).estimator.max_hidden == {"a": 3, "b": 7}

    def test_scopes(self):
        model = self.fitted(RVFLRegressor({"a": 200, "b": 100}, scope={"a": 0.5, "b": 4.0}))
        assert model.n_hidden_ == [200, 100]
        np.testing.assert_allclose([np.abs(weights).max() for weights in model.input_weights_], [0.5, 4.0], rtol=0.05)

    def test_base_models(self, tmp_path):
        bases = {"a": SCNRegressor(4, n_candidates=20), "b": RVFLRegressor(9, direct_link=False)}
        model = self.fitted(bases)
        assert model.n_hidden_ == [4, 9]
        assert [member.search is None for member in model.members_] == [False, True]
        model.save(tmp_path / "m.scne")
        loaded = scne.load(tmp_path / "m.scne")
        np.testing.assert_array_equal(loaded.predict(self.X), model.predict(self.X))
        again = clone(loaded).fit(self.X, self.y)
        np.testing.assert_array_equal(again.predict(self.X), model.predict(self.X))
        model.add_nodes(2, self.X, self.y)
        assert model.n_hidden_ == [6, 11]

    def test_base_models_in_any_order(self):
        """Those that are searched say on which rows, wherever they stand."""
        searched, drawn = SCNRegressor(4, n_candidates=20, validation_fraction=0.2), RVFLRegressor(9)
        for bases in ({"a": searched, "b": drawn}, {"b": drawn, "a": searched}, {"b": searched, "a": drawn}):
            model = self.fitted(bases)
            drawn_one = "ab".index(next(name for name in bases if bases[name] is drawn))
            assert model.n_hidden_[drawn_one] == 9
            assert 1 <= model.n_hidden_[1 - drawn_one] <= 4
            assert len(model.calibration_) == 60
            assert model.score(self.X, self.y) > 0.5

    def test_the_same_networks_as_by_themselves(self):
        together = self.fitted({"a": SCNRegressor(4, n_candidates=20), "b": SCNRegressor(4, n_candidates=20)})
        plain = self.fitted(SCNRegressor(4, n_candidates=20))
        np.testing.assert_array_equal(together.predict(self.X), plain.predict(self.X))

    def test_names_must_be_those_of_the_groups(self):
        with pytest.raises(ValueError, match=r"max_hidden names \['a'\], but it must name group 'b' too"):
            self.fitted(SCNRegressor({"a": 3}))
        with pytest.raises(ValueError, match=r"estimator names \['a', 'c'\], but it must name each of the networks"):
            self.fitted({"a": SCNRegressor(3), "c": SCNRegressor(3)})
        with pytest.raises(ValueError, match="empty mapping"):
            self.fitted({})
        with pytest.raises(TypeError, match="must be an SCNRegressor"):
            self.fitted({"a": 3, "b": SCNRegressor(3)})

    @pytest.mark.parametrize(
        ("name", "value"),
        [("scaling", "ramps"), ("target_scaling", "0-1"), ("validation_fraction", 0.2), ("search_rows", 100)],
    )
    def test_networks_share_their_scaling_and_their_rows(self, name, value):
        first = SCNRegressor(3, n_candidates=10)
        words = f"have {name}={getattr(first, name)!r} and {name}={value!r}, but all networks share one {name}"
        with pytest.raises(ValueError, match=re.escape(words)):
            self.fitted({"a": first, "b": clone(first).set_params(**{name: value})})
        alike = self.fitted({group: clone(first).set_params(**{name: value}) for group in "ab"})
        assert max(alike.n_hidden_) <= 3

    def test_drawn_and_searched_networks_share_their_scaling(self):
        with pytest.raises(ValueError, match="all networks share one scaling"):
            self.fitted({"a": SCNRegressor(3, scaling="standard"), "b": RVFLRegressor(3)})

    def test_networks_across_the_groups_have_one_base_model(self):
        bases = {"a": SCNRegressor(3), "b": SCNRegressor(4)}
        with pytest.raises(ValueError, match=r"estimator names \['a', 'b'\].*networks=\"per group\""):
            self.fitted(bases, networks="across")
