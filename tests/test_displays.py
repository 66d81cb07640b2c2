"""Displays of real fitted models: right numbers, labelled axes, the caller's axes and styles, sentences otherwise."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib

from scne.ncl import decorrelation_bounds, lambda_path

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from ensembles import plain_ensemble
from matplotlib.offsetbox import AnnotationBbox, TextArea
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import scne
from scne import (
    ConvergenceDisplay,
    DecorrelationPathDisplay,
    DNNERegressor,
    GroupContributionDisplay,
    MemberCorrelationDisplay,
    NodesDisplay,
    PredictionIntervalDisplay,
    RVFLRegressor,
    SCNERegressor,
    SCNRegressor,
)
from scne.report import DARK, themed

# Some columns are in no group here, which is said where it is tested.
pytestmark = pytest.mark.filterwarnings("ignore:.* no network sees:scne.ScneWarning")

GROUPS = {"first": [0], "second": [1], "pair": [2, 3], "idle": [4]}


def make_rows(n: int = 700) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    X = rng.uniform(size=(n, 5))
    return X, 30 * X[:, 0] + 10 * np.sin(6 * X[:, 1]) + 10 * X[:, 2] * X[:, 3] + rng.standard_normal(n)


X, Y = make_rows()
TRAIN, TEST = slice(0, 500), slice(500, None)
BOTH = np.column_stack([Y, -Y + 3 * X[:, 4]])


@pytest.fixture(scope="module")
def ensemble() -> SCNERegressor:
    base = SCNRegressor(15, n_candidates=20, validation_fraction=0.2)
    return plain_ensemble(base, groups=GROUPS, random_state=0).fit(X[TRAIN], Y[TRAIN])


@pytest.fixture(scope="module")
def jacobi(ensemble: SCNERegressor) -> SCNERegressor:
    return ensemble.reweighted(solver="jacobi", decorrelation=0.4, ridge=ensemble.ridge_)


@pytest.fixture(scope="module")
def drawn() -> DNNERegressor:
    return DNNERegressor(RVFLRegressor(10), groups=GROUPS, random_state=0).fit(X[TRAIN], Y[TRAIN])


@pytest.fixture(scope="module")
def network() -> SCNRegressor:
    return SCNRegressor(12, n_candidates=20, validation_fraction=0.3, random_state=0).fit(X[TRAIN], Y[TRAIN])


@pytest.fixture(scope="module")
def random_network() -> RVFLRegressor:
    return RVFLRegressor(20, random_state=0).fit(X[TRAIN], Y[TRAIN], X_val=X[TEST], y_val=Y[TEST])


@pytest.fixture(scope="module")
def two_outputs() -> SCNERegressor:
    base = SCNRegressor(12, n_candidates=20, validation_fraction=0.2)
    return plain_ensemble(base, groups=GROUPS, random_state=0).fit(X[TRAIN], BOTH[TRAIN])


@pytest.fixture(autouse=True)
def no_figures_left() -> Iterator[None]:
    yield
    plt.close("all")


def key_labels(ax: Any) -> list[str]:
    boxes = [child for child in ax.get_children() if isinstance(child, AnnotationBbox)]
    return [text.get_text() for box in boxes for text in box.findobj(TextArea)]


DISPLAYS = {
    "nodes": lambda m, **kw: NodesDisplay.from_estimator(m["ensemble"], **kw),
    "nodes, one network": lambda m, **kw: NodesDisplay.from_estimator(m["network"], **kw),
    "nodes, two outputs": lambda m, **kw: NodesDisplay.from_estimator(m["two_outputs"], **kw),
    "convergence": lambda m, **kw: ConvergenceDisplay.from_estimator(m["jacobi"], **kw),
    "lambda": lambda m, **kw: DecorrelationPathDisplay.from_estimator(m["ensemble"], **kw),
    "lambda, given": lambda m, **kw: DecorrelationPathDisplay.from_estimator(m["jacobi"], **kw),
    "lambda, DNNE": lambda m, **kw: DecorrelationPathDisplay.from_estimator(m["drawn"], **kw),
    "lambda, two outputs": lambda m, **kw: DecorrelationPathDisplay.from_estimator(m["two_outputs"], **kw),
    "members": lambda m, **kw: MemberCorrelationDisplay.from_estimator(m["ensemble"], X[TEST], **kw),
    "members, errors": lambda m, **kw: MemberCorrelationDisplay.from_estimator(
        m["drawn"], X[TEST], Y[TEST], kind="errors", **kw
    ),
    "members, two outputs": lambda m, **kw: MemberCorrelationDisplay.from_estimator(
        m["two_outputs"], X[TEST], output=1, **kw
    ),
    "networks": lambda m, **kw: GroupContributionDisplay.from_estimator(m["ensemble"], **kw),
    "groups": lambda m, **kw: GroupContributionDisplay.from_estimator(
        m["ensemble"], X[TEST], Y[TEST], random_state=0, **kw
    ),
    "columns": lambda m, **kw: GroupContributionDisplay.from_estimator(
        m["random_network"], X[TEST], Y[TEST], random_state=0, **kw
    ),
    "groups, two outputs": lambda m, **kw: GroupContributionDisplay.from_estimator(
        m["two_outputs"], X[TEST], BOTH[TEST], output=1, random_state=0, **kw
    ),
    "intervals": lambda m, **kw: PredictionIntervalDisplay.from_estimator(m["ensemble"], X[TEST], Y[TEST], **kw),
    "intervals, RVFL": lambda m, **kw: PredictionIntervalDisplay.from_estimator(
        m["random_network"], X[TEST], Y[TEST], interval=0.5, **kw
    ),
    "intervals, two outputs": lambda m, **kw: PredictionIntervalDisplay.from_estimator(
        m["two_outputs"], X[TEST], BOTH[TEST], output=1, target="other", **kw
    ),
    "no intervals": lambda m, **kw: PredictionIntervalDisplay.from_estimator(
        m["drawn"], X[TEST], Y[TEST], interval=None, **kw
    ),
}


@pytest.fixture(scope="module")
def models(ensemble, jacobi, drawn, network, random_network, two_outputs) -> dict[str, Any]:
    return {
        "ensemble": ensemble,
        "jacobi": jacobi,
        "drawn": drawn,
        "network": network,
        "random_network": random_network,
        "two_outputs": two_outputs,
    }


@pytest.mark.parametrize("case", DISPLAYS)
def test_it_draws_on_the_axes_that_it_is_given(case: str, models: dict[str, Any]) -> None:
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    display = DISPLAYS[case](models, ax=axes[0])
    assert display.ax_ is axes[0]
    assert display.figure_ is figure
    assert not axes[1].has_data()
    assert display.ax_.get_xlabel()
    assert display.ax_.get_ylabel() or [tick.get_text() for tick in display.ax_.get_yticklabels()]
    figure.canvas.draw()
    assert len(plt.get_fignums()) == 1
    # Drawn again, elsewhere and in other colours.
    with themed(DARK):
        again = display.plot()
        again.figure_.canvas.draw()
    assert again is display
    assert display.ax_ is not axes[0]
    assert len(plt.get_fignums()) == 2


@pytest.mark.parametrize(
    ("case", "names"),
    [
        ("nodes", [*GROUPS]),
        ("lambda", ["held-out rows", "training"]),
        ("lambda, DNNE", ["cross-validation", "training"]),
        ("convergence", ["jacobi"]),
    ],
)
def test_every_curve_has_a_name(case: str, names: list[str], models: dict[str, Any]) -> None:
    display = DISPLAYS[case](models)
    assert sorted(key_labels(display.ax_)) == sorted(names)


def test_nodes_are_the_errors_of_the_search_in_units_of_y(ensemble: SCNERegressor, network: SCNRegressor) -> None:
    display = NodesDisplay.from_estimator(ensemble)
    scale = ensemble.target_scaling_.scale[0]
    for m, member in enumerate(ensemble.members_):
        training, validation = display.lines_[2 * m : 2 * m + 2]
        np.testing.assert_allclose(training.get_ydata(), member.search.training_curve * scale)
        np.testing.assert_allclose(validation.get_ydata(), member.search.validation_curve * scale)
        assert list(display.markers_[m].get_xdata()) == [member.layer.n_nodes]
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == ["training", "validation", "kept prefix"]
    # A network keeps the best prefix: the marker lies on the least validation error.
    alone = NodesDisplay.from_estimator(network)
    assert alone.markers_[0].get_ydata()[0] == pytest.approx(np.min(alone.lines_[1].get_ydata()))


def test_networks_that_watched_no_rows_have_no_kept_prefix() -> None:
    model = SCNRegressor(6, n_candidates=10, random_state=0).fit(X[TRAIN], Y[TRAIN])
    display = NodesDisplay.from_estimator(model)
    assert len(display.lines_) == 1
    assert display.markers_ == []


def test_two_models_on_one_picture(network: SCNRegressor, ensemble: SCNERegressor) -> None:
    both = {**NodesDisplay.from_estimator(ensemble).curves, **NodesDisplay.from_estimator(network).curves}
    assert sorted(key_labels(NodesDisplay(curves=both).plot().ax_)) == sorted([*GROUPS, "network"])


def test_convergence_has_the_slope_of_the_spectral_radius(jacobi: SCNERegressor, ensemble: SCNERegressor) -> None:
    exact = float(lambda_path(ensemble.system_, ensemble.ridge_, [0.4]).errors[0])
    display = ConvergenceDisplay.from_estimator(jacobi, reference=exact)
    history = jacobi.solution_.error_history
    expected = np.abs(history - exact) / exact
    seen = np.asarray(display.lines_[0].get_ydata())
    assert len(seen) == len(history)
    # The last ones are rounding, or lie on the bottom of the axes.
    np.testing.assert_allclose(seen[:4], expected[:4], rtol=1e-6)
    slope = np.asarray(display.radius_lines_[0].get_ydata())
    np.testing.assert_allclose(slope[1:] / slope[:-1], jacobi.solution_.spectral_radius)
    assert slope[0] == seen[0]
    assert "0." in display.ax_.get_legend().get_texts()[0].get_text()


def test_several_solvers_with_the_exact_one_as_their_limit(ensemble: SCNERegressor, jacobi: SCNERegressor) -> None:
    sweeps = ensemble.reweighted(solver="gauss-seidel", decorrelation=0.4, ridge=ensemble.ridge_)
    direct = ensemble.reweighted(solver="cholesky", decorrelation=0.4, ridge=ensemble.ridge_)
    solutions = {"Jacobi": jacobi.solution_, "Gauss-Seidel": sweeps.solution_, "Cholesky": direct.solution_}
    display = ConvergenceDisplay.from_solutions(solutions)
    assert sorted(key_labels(display.ax_)) == ["Cholesky", "Gauss-Seidel", "Jacobi"]
    assert len(display.radius_lines_) == 2
    assert sweeps.solution_.spectral_radius < jacobi.solution_.spectral_radius


def test_a_diverging_iteration_can_be_drawn() -> None:
    groups = {"a": [0, 1, 2, 3], "b": [0, 1, 2, 3], "c": [0, 1, 2, 3]}
    model = DNNERegressor(RVFLRegressor(15), groups=groups, random_state=0).fit(X[TRAIN], Y[TRAIN])
    with pytest.warns(ConvergenceWarning):
        diverged = model.reweighted(solver="jacobi", decorrelation=1.4, ridge=1e-3)
    display = ConvergenceDisplay.from_estimator(diverged)
    assert display.spectral_radii["jacobi"] > 1
    display.figure_.canvas.draw()


def test_the_chosen_lambda_lies_on_the_scores(ensemble: SCNERegressor) -> None:
    display = DecorrelationPathDisplay.from_estimator(ensemble)
    table, scale = ensemble.choice_, ensemble.target_scaling_.scale[0]
    ridge = [np.array_equal(row, table.ridge) for row in table.ridges].index(True)
    chosen = int(np.argmin(np.abs(table.decorrelations - ensemble.decorrelation_)))
    assert display.marker_ is not None
    x, y = float(display.marker_.get_xdata()[0]), float(display.marker_.get_ydata()[0])
    assert x == ensemble.decorrelation_
    assert y == pytest.approx(np.sqrt(table.scores[ridge, chosen]) * scale)
    assert len(display.lines_) == 2
    np.testing.assert_allclose(display.lines_[1].get_ydata(), table.errors[ridge] * scale)


def test_a_given_lambda_is_shown_on_the_path_of_its_ridge(jacobi: SCNERegressor) -> None:
    assert jacobi.choice_ is None
    marks = {"Jacobi": decorrelation_bounds(jacobi.system_, jacobi.ridge_).jacobi_exact}
    display = DecorrelationPathDisplay.from_estimator(jacobi, decorrelations=np.linspace(0, 1.2, 30), marks=marks)
    path = lambda_path(jacobi.system_, jacobi.ridge_, np.linspace(0, 1.2, 30))
    np.testing.assert_allclose(display.scores, np.sqrt(path.gcv) * jacobi.target_scaling_.scale[0])
    assert display.chosen == 0.4
    assert len(display.lines_) == 2


def test_the_table_survives_in_a_file_and_the_path_does_not(
    ensemble: SCNERegressor, jacobi: SCNERegressor, tmp_path: Path
) -> None:
    for name, model in (("chosen", ensemble), ("given", jacobi)):
        scne.save(model, tmp_path / f"{name}.scne")
    again = DecorrelationPathDisplay.from_estimator(scne.load(tmp_path / "chosen.scne"))
    np.testing.assert_array_equal(again.scores, DecorrelationPathDisplay.from_estimator(ensemble).scores)
    with pytest.raises(ValueError, match="with_system=True"):
        DecorrelationPathDisplay.from_estimator(scne.load(tmp_path / "given.scne"))


def test_members_correlate_as_numpy_says(ensemble: SCNERegressor) -> None:
    outputs = ensemble.predict_members(X[TEST])
    display = MemberCorrelationDisplay.from_estimator(ensemble, X[TEST])
    np.testing.assert_allclose(display.correlation, np.corrcoef(outputs), atol=1e-12)
    errors = MemberCorrelationDisplay.from_estimator(ensemble, X[TEST], Y[TEST], kind="errors")
    np.testing.assert_allclose(errors.correlation, np.corrcoef(outputs - Y[TEST]), atol=1e-12)
    assert display.names == [*GROUPS]
    assert len(display.text_) == 16
    assert display.text_[0].get_text() == "1.00"


def test_a_member_that_says_nothing_has_no_correlation() -> None:
    outputs = np.stack([np.full(50, 0.1), np.arange(50.0), -np.arange(50.0)])
    display = MemberCorrelationDisplay.from_predictions(outputs)
    assert np.isnan(display.correlation[0]).all()
    assert display.correlation[1, 2] == pytest.approx(-1)
    assert len(display.text_) == 4


def test_many_members_get_no_numbers() -> None:
    rng = np.random.default_rng(0)
    display = MemberCorrelationDisplay.from_predictions(rng.standard_normal((60, 100)))
    assert display.text_ == []
    display.figure_.canvas.draw()


def test_contributions_are_the_importances(ensemble: SCNERegressor) -> None:
    found = ensemble.permutation_importances(X[TEST], Y[TEST], random_state=0)
    display = GroupContributionDisplay.from_estimator(ensemble, X[TEST], Y[TEST], random_state=0)
    order = np.argsort(-found.groups.mean)
    assert display.names == [found.groups.names[place] for place in order]
    np.testing.assert_array_equal(display.rises, found.groups.mean[order])
    np.testing.assert_array_equal(display.spreads, found.groups.std[order])
    np.testing.assert_allclose([bar.get_width() for bar in display.bars_], display.rises)
    assert display.errorbar_ is not None
    segments = display.errorbar_[2][0].get_segments()
    np.testing.assert_allclose([s[1, 0] - s[0, 0] for s in segments], 2 * display.spreads)
    # Nothing of a spread is cut off.
    assert display.ax_.get_xlim()[1] >= (display.rises + display.spreads).max()
    networks = GroupContributionDisplay.from_estimator(ensemble)
    rises = ensemble.group_importances_.rises
    assert networks.spreads is None
    assert dict(zip(networks.names, networks.rises, strict=True)) == rises
    assert "held-out rows" in networks.ax_.get_xlabel()


def test_only_the_largest_are_drawn(random_network: RVFLRegressor) -> None:
    display = GroupContributionDisplay.from_estimator(
        random_network, X[TEST], Y[TEST], kind="columns", largest=2, random_state=0
    )
    assert display.names == ["column 0", "column 1"]
    assert display.ax_.get_xlabel().endswith("(2 of 5)")


def test_the_title_says_what_the_intervals_cover(ensemble: SCNERegressor) -> None:
    prediction, lower, upper = ensemble.predict(X[TEST], interval=0.8)
    inside = np.mean((lower <= Y[TEST]) & (Y[TEST] <= upper))
    display = PredictionIntervalDisplay.from_estimator(ensemble, X[TEST], Y[TEST], interval=0.8, target="heat (kJ)")
    assert display.coverage == inside
    title = display.ax_.get_title(loc="left").replace("\n", " ")
    assert title == f"80 % intervals cover {100 * inside:.1f} % of 200 rows"
    assert display.ax_.get_xlabel() == "true heat (kJ)"
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["perfect", "80 % interval"]
    # A point lies in the band just when the truth lies in its interval.
    below, above = display.interval_
    band = [np.interp(Y[TEST], line.get_xdata(), line.get_ydata()) for line in (below, above)]
    seen = (Y[TEST] >= display.ax_.get_xlim()[0]) & (Y[TEST] <= display.ax_.get_xlim()[1])
    in_band = (band[0] <= prediction) & (prediction <= band[1])
    assert np.array_equal(in_band[seen], ((lower <= Y[TEST]) & (Y[TEST] <= upper))[seen])


def test_intervals_of_different_widths_are_drawn_row_by_row() -> None:
    rng = np.random.default_rng(0)
    truth = rng.standard_normal(1000)
    widths = rng.uniform(0.5, 1, 1000)
    display = PredictionIntervalDisplay.from_predictions(truth, truth + 0.1, truth - widths, truth + widths)
    assert len(display.interval_.get_segments()) == 200
    assert display.coverage == 1
    display.figure_.canvas.draw()


def test_a_sample_can_be_drawn_with_the_coverage_of_all_rows() -> None:
    display = PredictionIntervalDisplay(
        y_true=[1.0, 2.0], y_pred=[1.1, 2.1], lower=[0, 1], upper=[2, 3], coverage=0.875, n_rows=4000
    ).plot()
    assert "87.5 % of 4,000 rows" in display.ax_.get_title(loc="left").replace("\n", " ")


@pytest.mark.parametrize(
    ("case", "keyword", "properties", "artists"),
    [
        ("nodes", "line_kwargs", {"lw": 4, "color": "#123456"}, "lines_"),
        ("nodes", "marker_kwargs", {"markersize": 11}, "markers_"),
        ("convergence", "line_kwargs", {"alpha": 0.25}, "lines_"),
        ("convergence", "radius_kwargs", {"linewidth": 5}, "radius_lines_"),
        ("lambda", "line_kwargs", {"linewidth": 3}, "lines_"),
        ("lambda", "marker_kwargs", {"markersize": 3}, "marker_"),
        ("members", "im_kwargs", {"alpha": 0.5}, "im_"),
        ("members", "text_kwargs", {"fontsize": 4}, "text_"),
        ("groups", "bar_kwargs", {"alpha": 0.5}, "bars_"),
        ("intervals", "line_kwargs", {"linewidth": 7}, "line_"),
        ("intervals", "interval_kwargs", {"color": "#00ff00"}, "interval_"),
    ],
)
def test_artists_take_the_styles_of_the_caller(
    case: str, keyword: str, properties: dict[str, Any], artists: str, models: dict[str, Any]
) -> None:
    display = DISPLAYS[case](models, **{keyword: properties})
    found = getattr(display, artists)
    found = list(found) if isinstance(found, list | tuple) else [found]
    assert found
    for artist in found:
        for name, value in properties.items():
            assert getattr(artist, f"get_{name}")() == value
    display.figure_.canvas.draw()


def test_the_key_follows_the_colour_of_the_caller(ensemble: SCNERegressor) -> None:
    display = NodesDisplay.from_estimator(ensemble, line_kwargs={"color": "#123456"})
    boxes = [child for child in display.ax_.get_children() if isinstance(child, AnnotationBbox)]
    samples = [line for box in boxes for line in box.findobj(plt.Line2D)]
    assert {line.get_color() for line in samples} == {"#123456"}
    assert {marker.get_color() for marker in display.markers_} == {"#123456"}


def test_spreads_take_parameters_of_errorbar(ensemble: SCNERegressor) -> None:
    display = GroupContributionDisplay.from_estimator(
        ensemble, X[TEST], Y[TEST], random_state=0, errorbar_kwargs={"ecolor": "red"}
    )
    assert display.errorbar_ is not None
    assert display.errorbar_[2][0].get_color()[0].tolist() == [1, 0, 0, 1]


def test_a_pipeline_is_looked_into() -> None:
    base = SCNRegressor(8, n_candidates=10, validation_fraction=0.2)
    pipeline = make_pipeline(StandardScaler(), plain_ensemble(base, groups=GROUPS, random_state=0))
    pipeline.fit(X[TRAIN], Y[TRAIN])
    scaled = pipeline[0].transform(X[TEST])
    assert list(NodesDisplay.from_estimator(pipeline).curves) == [*GROUPS]
    members = MemberCorrelationDisplay.from_estimator(pipeline, X[TEST])
    np.testing.assert_allclose(members.correlation, np.corrcoef(pipeline[-1].predict_members(scaled)), atol=1e-12)
    rises = GroupContributionDisplay.from_estimator(pipeline, X[TEST], Y[TEST], random_state=0)
    assert rises.names[0] == "first"
    intervals = PredictionIntervalDisplay.from_estimator(pipeline, X[TEST], Y[TEST])
    np.testing.assert_allclose(intervals.y_pred, pipeline[-1].predict(scaled))


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (lambda m: NodesDisplay.from_estimator(m["random_network"]), "drawn at random"),
        (lambda m: NodesDisplay.from_estimator(m["drawn"]), "drawn at random"),
        (lambda m: ConvergenceDisplay.from_estimator(m["ensemble"]), "solved directly by solver 'cholesky'"),
        (lambda m: ConvergenceDisplay.from_estimator(m["network"]), "needs a fitted ensemble .* an SCNRegressor"),
        (lambda m: DecorrelationPathDisplay.from_estimator(m["random_network"]), "needs a fitted ensemble"),
        (lambda m: MemberCorrelationDisplay.from_estimator(m["ensemble"], X[:1]), "at least two rows"),
        (lambda m: MemberCorrelationDisplay.from_estimator(m["ensemble"], X, kind="errors"), "y is None"),
        (lambda m: MemberCorrelationDisplay.from_estimator(m["ensemble"], X, kind="error"), "'outputs', 'errors'"),
        (lambda m: MemberCorrelationDisplay.from_estimator(m["two_outputs"], X, output=2), "outputs 0 to 1"),
        (lambda m: MemberCorrelationDisplay(correlation=np.eye(2), names=["a"]), r"\(1, 1\)"),
        (lambda m: GroupContributionDisplay.from_estimator(m["ensemble"], kind="columns"), "X is None"),
        (lambda m: GroupContributionDisplay.from_estimator(m["network"]), "needs a fitted ensemble"),
        (
            lambda m: GroupContributionDisplay.from_estimator(m["network"], X, Y, kind="groups"),
            "fitted without groups",
        ),
        (lambda m: PredictionIntervalDisplay.from_estimator(m["drawn"], X, Y), "cannot give prediction intervals"),
        (lambda m: PredictionIntervalDisplay.from_estimator(m["ensemble"], X, Y, output=1), "outputs 0 to 0"),
        (lambda m: PredictionIntervalDisplay.from_predictions([1, 2], [1, 2, 3]), "y_true has 2, y_pred has 3"),
        (lambda m: PredictionIntervalDisplay.from_predictions([1], [1], [0]), "both ends"),
        (lambda m: DecorrelationPathDisplay(decorrelations=[0, 1], training=[1]), "training has 1"),
    ],
)
def test_what_cannot_be_drawn_is_said_in_a_sentence(draw: Any, words: str, models: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=words):
        draw(models)
    assert plt.get_fignums() == []


def test_one_network_has_no_road() -> None:
    model = plain_ensemble(SCNRegressor(5, n_candidates=10), n_estimators=1, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="every lambda is the same"):
        DecorrelationPathDisplay.from_estimator(model)


@pytest.mark.parametrize("display", [NodesDisplay, ConvergenceDisplay, DecorrelationPathDisplay])
def test_an_unfitted_model_is_refused(display: Any) -> None:
    with pytest.raises(NotFittedError):
        display.from_estimator(SCNERegressor())


def test_any_regressor_can_be_drawn_without_intervals() -> None:
    model = LinearRegression().fit(X[TRAIN], Y[TRAIN])
    display = PredictionIntervalDisplay.from_estimator(model, X[TEST], Y[TEST], interval=None)
    assert display.interval_ is None
    assert display.ax_.get_title(loc="left") == ""


def test_drawing_leaves_the_model_as_it_was(ensemble: SCNERegressor) -> None:
    before = {name: id(value) for name, value in vars(ensemble).items()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        NodesDisplay.from_estimator(ensemble)
        DecorrelationPathDisplay.from_estimator(ensemble)
        GroupContributionDisplay.from_estimator(ensemble)
    assert {name: id(value) for name, value in vars(ensemble).items()} == before


def test_importing_scne_loads_nothing_before_it_is_asked_for() -> None:
    script = """
import sys, scne
assert not {"numpy", "sklearn", "matplotlib", "pyarrow"} & {*sys.modules}
scne.NodesDisplay
assert "matplotlib" in sys.modules and "matplotlib.pyplot" not in sys.modules
assert scne.datasets.load_beijing_air and scne.SCNRegressor
assert "sklearn" in sys.modules and {*scne.__all__} <= {*dir(scne)}
from scne import *
assert load and SCNERegressor
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
