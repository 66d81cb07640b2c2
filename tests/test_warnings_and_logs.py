"""One family of warnings, a log that is silent unless asked, and fits that others can watch."""

import ast
import logging
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from ensembles import plain_ensemble, single_classifier
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

import scne
from scne import (
    RVFLRegressor,
    ScneConvergenceWarning,
    ScneWarning,
    SCNRegressor,
    listening,
)
from scne.passes import _warnings, announce
from scne.passes._progress import logging_stages

SOURCE = Path(scne.__file__).parent
FAMILY = {name for name, value in vars(_warnings).items() if isinstance(value, type) and issubclass(value, ScneWarning)}


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 3))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]


def ensemble(**settings):
    groups = {"left": [0], "right": [1, 2]}
    return plain_ensemble(SCNRegressor(8), groups=groups, random_state=0, **settings)


# Warnings


def calls_of_warn() -> list[tuple[str, ast.Call]]:
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("warnings.warn", "warn"):
                found.append((f"{path.relative_to(SOURCE)}:{node.lineno}", node))
    return found


def test_every_warning_is_of_the_family():
    calls = calls_of_warn()
    assert calls
    for place, call in calls:
        given = [*call.args[1:2], *(keyword.value for keyword in call.keywords if keyword.arg == "category")]
        assert [ast.unparse(category) for category in given if ast.unparse(category) in FAMILY], place


def test_the_family_is_public():
    assert {"ScneWarning", "ScneConvergenceWarning"} == FAMILY <= set(scne.__all__)


def jacobi_beyond_its_bound(X, y):
    X = np.repeat(X[:, :1], 3, axis=1)
    groups = {"a": [0], "b": [1], "c": [2]}
    return plain_ensemble(
        SCNRegressor(8), groups=groups, solver="jacobi", decorrelation=1.4, ridge=1e-6, random_state=0
    ).fit(X, y)


def too_few_iterations(X, y):
    return ensemble(solver="gauss-seidel", decorrelation=1.0, ridge=1e-3, max_iter=1).fit(X, y)


@pytest.mark.parametrize(
    ("cause", "category", "advice"),
    [
        (jacobi_beyond_its_bound, ScneConvergenceWarning, r"use a decorrelation below [\d.]+, or another solver"),
        (too_few_iterations, ScneConvergenceWarning, r"raise max_iter"),
    ],
)
def test_each_warning_says_what_to_do_points_at_the_user_and_can_be_silenced(rows, cause, category, advice):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cause(*rows)
    assert any(re.search(advice, str(warning.message)) for warning in caught)
    assert {warning.category for warning in caught} == {category}
    assert {warning.filename for warning in caught} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ScneWarning)
        cause(*rows)


def test_filters_for_scikit_learn_hold(rows):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        too_few_iterations(*rows)


# The log


def messages(caplog, level):
    return [record.getMessage() for record in caplog.records if record.name == "scne" and record.levelno == level]


def test_a_fit_logs_each_stage_once_with_its_seconds(rows, caplog):
    with caplog.at_level(logging.INFO, logger="scne"):
        ensemble(n_jobs=2).fit(*rows)
    found = messages(caplog, logging.INFO)
    assert all(re.fullmatch(r".+: (at most )?\d+\.\d{3} s", message) for message in found)
    stages = [message.rpartition(": ")[0] for message in found]
    assert stages[0] == "reading columns"
    assert stages[-1] == "SCNERegressor.fit"
    assert {"building left", "building right", "summing rows"} < set(stages)
    assert len(set(stages)) == len(stages)


@pytest.mark.parametrize("model", [SCNRegressor(5), RVFLRegressor(5)], ids=["SCN", "RVFL"])
def test_single_networks_log_too(rows, caplog, model):
    with caplog.at_level(logging.INFO, logger="scne"):
        model.fit(*rows)
    assert messages(caplog, logging.INFO)[-1].startswith(f"{type(model).__name__}.fit: ")


def test_choices_are_logged_at_debug(rows, caplog):
    with caplog.at_level(logging.DEBUG, logger="scne"):
        model = ensemble().fit(*rows)
    ridges = ", ".join(f"{value:.4g}" for value in model.ridge_)
    expected = f"solver {model.solution_.solver}, decorrelation (lambda) {model.decorrelation_:.6g}, ridge {ridges}"
    assert messages(caplog, logging.DEBUG) == [expected]


def test_seconds_of_a_stage_are_its_own(caplog, monkeypatch):
    now = iter([0.0, 1.0, 2.0, 3.0, 13.0, 20.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(now))
    with caplog.at_level(logging.INFO, logger="scne"), logging_stages("job"):
        for done in (1, 2, 3):
            announce("even steps", done, 3)
        announce("one step", 1, 1)
    assert messages(caplog, logging.INFO) == ["even steps: 3.000 s", "one step: at most 10.000 s", "job: 20.000 s"]


def test_a_failed_fit_leaves_no_log_open(rows, caplog):
    def fail(step):
        raise RuntimeError("enough")

    with caplog.at_level(logging.INFO, logger="scne"):
        with pytest.raises(RuntimeError, match="enough"), listening(fail):
            ensemble().fit(*rows)
        caplog.clear()
        announce("after the fit", 1, 1)
    assert messages(caplog, logging.INFO) == []


def test_nothing_is_printed_by_default():
    code = (
        "import numpy as np; from scne import SCNERegressor, SCNRegressor; X = np.linspace(-1, 1, 60).reshape(30, 2); "
        "SCNERegressor(SCNRegressor(3), groups={'a': [0], 'b': [1]}, random_state=0).fit(X, X[:, 0])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_a_handler_is_all_it_takes():
    code = (
        "import logging, numpy as np; from scne import SCNRegressor; logging.basicConfig(level=logging.INFO); "
        "X = np.linspace(-1, 1, 60)[:, None]; SCNRegressor(3, random_state=0).fit(X, X[:, 0])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "INFO:scne:SCNRegressor.fit: " in done.stderr


def test_only_the_command_prints():
    for path in sorted(SOURCE.rglob("*.py")):
        calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
        printed = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]
        assert not printed or path.parent == SOURCE / "cli", path


# Listeners


def test_listeners_hear_every_node(rows):
    seen = []
    with listening(seen.append):
        model = ensemble().fit(*rows)
    built = [step.done for step in seen if step.stage == "building left"]
    assert built[: len(model.members_[0].search.training_curve)] == list(range(1, 9))
    assert seen[-1].stage.startswith("summing")


ASKED = "a listener asked to stop"


def test_a_listener_that_stops_at_a_step_ends_the_stage_with_what_it_has(rows):
    def stop_at_once(step):
        raise StopIteration

    with listening(stop_at_once):
        model = ensemble().fit(*rows)
    assert model.n_hidden_ == [1, 1]
    assert {member.search.stop_reason.value for member in model.members_} == {ASKED}
    assert np.isfinite(model.predict(rows[0])).all()


def test_a_listener_can_wait_for_the_validation_error_to_fall(rows):
    """Patience, which the search itself has no parameter for: it ends four nodes after the best of them."""
    errors = []

    def patient(step):
        if step.validation_error is not None:
            errors.append(step.validation_error)
            if len(errors) - 1 - int(np.argmin(errors)) >= 4:
                raise StopIteration

    growing = SCNRegressor(60, validation_fraction=0.3, n_candidates=20, random_state=0)
    with listening(patient):
        stopped = clone(growing).fit(*rows)
    whole = clone(growing).fit(*rows)
    assert len(stopped.loss_curve_) < 60
    assert len(stopped.validation_curve_) == np.argmin(stopped.validation_curve_) + 1 + 4
    np.testing.assert_array_equal(stopped.validation_curve_, errors)
    np.testing.assert_array_equal(stopped.loss_curve_, whole.loss_curve_[: len(stopped.loss_curve_)])
    assert stopped.stop_reason_ == ASKED


def tuned_nodes(rows, listener):
    with listening(listener):
        return SCNRegressor.tuned(max_hidden=5, random_state=0).fit(*rows).input_weights_


def test_tuning_is_announced_and_can_be_stopped(rows):
    seen = []
    whole = tuned_nodes(rows, seen.append)
    parts = [step.done for step in seen if step.stage == "tuning network"]
    # Few rows are tuned on twice, without the held-out ones and then with them.
    assert parts == list(range(1, 51)) * 2

    def stop_tuning_at(part):
        def listener(step):
            if step.stage == "tuning network" and step.done >= part:
                raise StopIteration

        return listener

    half = tuned_nodes(rows, stop_tuning_at(25))
    np.testing.assert_array_equal(half, tuned_nodes(rows, stop_tuning_at(25)))
    assert half.shape == whole.shape
    assert not np.allclose(half, whole)


def test_batches_count_their_nodes(rows):
    seen = []
    with listening(seen.append):
        model = SCNRegressor(9, batch_size=3, random_state=0).fit(*rows)
    assert max(step.done for step in seen if step.stage == "building network") == model.n_hidden_ == 9


def test_a_network_that_stops_early_ends_its_stage_with_the_nodes_it_has(rows, caplog):
    seen = []
    with listening(seen.append), caplog.at_level(logging.INFO, logger="scne"):
        model = SCNRegressor(50, tol=0.2, random_state=0).fit(*rows)
    assert 1 < model.n_hidden_ < 50
    assert max(step.done for step in seen if step.stage == "building network" and step.done < 50) == model.n_hidden_
    assert sum(message.startswith("building network: ") for message in messages(caplog, logging.INFO)) == 1


def test_nobody_listens_after_a_failure(rows):
    X, y = rows
    seen = []
    with pytest.raises(ValueError, match="NaN"), listening(seen.append):
        SCNRegressor(5, random_state=0).fit(X, np.where(y > 0.9, np.nan, y))
    seen.clear()
    SCNRegressor(5, random_state=0).fit(X, y)
    assert seen == []


def test_searches_can_be_listened_to(rows):
    seen = []
    search = GridSearchCV(SCNRegressor(random_state=0), {"max_hidden": [2, 3]}, cv=2)
    with listening(seen.append):
        search.fit(*rows)
    # Two values on two folds, and the best one again on all rows.
    assert sum(step.stage == "building network" and step.done == 1 for step in seen) == 5


def test_classifiers_log_the_fit_inside(rows, caplog):
    with caplog.at_level(logging.INFO, logger="scne"):
        single_classifier(5, random_state=0).fit(rows[0], rows[1] > 0)
    assert any(message.startswith("building network 1: ") for message in messages(caplog, logging.INFO))
