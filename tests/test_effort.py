"""`effort`: one number for networks, nodes and tuning together, where nothing else says what they are."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import run_here
from sklearn.base import clone

from scne import DNNERegressor, RVFLRegressor, SCNEClassifier, SCNERegressor, SCNRegressor, listening, open_rows
from scne.estimators import CheckpointError, load_model, networks_of
from scne.estimators._effort import STEPS

# Effort, networks, nodes of each and rounds of tuning, as docs/effort.md has them.
LADDER = [(1, 3, 40, 3), (2, 4, 60, 4), (3, 12, 100, 10), (4, 16, 150, 15), (5, 24, 200, 30)]
NO_STEPS = [0, 6, -1, True, 1.0, 3.0, "3", "high", None, np.nan, [3]]
both = pytest.mark.parametrize("cls", [SCNERegressor, SCNEClassifier])


def rows(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]


@pytest.mark.parametrize(("effort", "networks", "nodes", "epochs"), LADDER)
def test_the_steps_of_the_ladder(effort, networks, nodes, epochs):
    assert set(STEPS) == {1, 2, 3, 4, 5}
    assert networks_of(effort) == networks
    base = SCNRegressor.tuned(effort=effort)
    assert (base.max_hidden, base.tuning_epochs) == (nodes, epochs)
    assert base.get_params() == {**SCNRegressor.tuned().get_params(), "max_hidden": nodes, "tuning_epochs": epochs}
    assert SCNRegressor.tuned(np.int64(effort), max_hidden=7).get_params() == {**base.get_params(), "max_hidden": 7}


def test_the_page_has_the_steps():
    page = (Path(__file__).parents[1] / "docs" / "effort.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| (\d)[^|]*\| (\d+)[^|]*\| (\d+) \| (\d+) \|$", page, flags=re.MULTILINE)
    assert [tuple(map(int, line)) for line in table] == LADDER


@pytest.mark.parametrize("effort", NO_STEPS, ids=str)
def test_what_is_no_step_is_refused(effort):
    X, y = rows(40)
    for cls in (SCNERegressor, SCNEClassifier):
        with pytest.raises(ValueError, match=r"effort is .*, but it must be a whole number from 1 to 5"):
            cls(effort=effort).fit(X, y > 0)
        with pytest.raises(ValueError, match=r"effort is .*, but estimator was given too"):
            cls(SCNRegressor(5), effort=effort).fit(X, y > 0)
    with pytest.raises(ValueError, match=r"effort is .*, but it must be a whole number from 1 to 5"):
        SCNRegressor.tuned(effort)


@both
@pytest.mark.parametrize("estimator", [SCNRegressor(5), RVFLRegressor(5), {"group 1": SCNRegressor(5)}], ids=str)
def test_a_base_model_sets_what_effort_would(cls, estimator):
    X, y = rows(40)
    words = r"the base model sets what effort would: pass SCNRegressor\.tuned\(effort=5\) and n_estimators, or effort"
    with pytest.raises(ValueError, match=words):
        cls(estimator, effort=2).fit(X, y > 0)


def test_a_step_is_its_base_model_and_its_networks():
    X, y = rows(250)
    model = SCNERegressor(effort=1, random_state=0).fit(X, y)
    assert len(model.members_) == 3
    assert max(model.n_hidden_) == 40
    spelled_out = SCNERegressor(SCNRegressor.tuned(effort=1), n_estimators=3, random_state=0).fit(X, y)
    assert np.array_equal(model.predict(X), spelled_out.predict(X))
    assert np.array_equal(model.predict(X), clone(model).set_params(n_jobs=1).fit(X, y).predict(X))
    later = model.partial_fit(*rows(50, 1)).add_nodes(2, X, y)
    assert len(later.members_) == 3
    assert max(later.n_hidden_) == 42


def test_what_is_given_overrides_the_step():
    X, y = rows(250)
    assert len(SCNERegressor(effort=1, n_estimators=2, random_state=0).fit(X, y).members_) == 2
    per_group = SCNERegressor(effort=1, groups=[[0], [1], [2]], networks="per group", random_state=0).fit(X, y)
    assert list(per_group.groups_) == ["group 1", "group 2", "group 3"]
    assert max(per_group.n_hidden_) == 40


def test_a_classifier_hands_it_to_its_regressor():
    X, y = rows()
    model = SCNEClassifier(effort=1, random_state=0).partial_fit(X, y > 0)
    assert (model.regressor_.effort, model.regressor_.n_estimators) == (1, None)
    assert len(model.regressor_.members_) == 3


def test_the_default_number_is_the_same_wherever_rows_live(tmp_path):
    """Arrays, files whose rows nobody has counted, Dask; networks that are drawn, because they are many."""
    da, networks = pytest.importorskip("dask.array"), 12
    X, y = rows()
    model = SCNERegressor(RVFLRegressor(3), random_state=0)
    assert len(model.fit(X, y).members_) == networks
    assert len(SCNEClassifier(RVFLRegressor(3), random_state=0).fit(X, y > 0).regressor_.members_) == networks
    pd.DataFrame(X, columns=list("abc")).assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    files = open_rows(tmp_path / "rows.csv", target="y")
    assert model._memory_plan(files, 1).most.n_networks == networks
    assert len(model.fit(files).members_) == networks
    assert len(model.fit(da.from_array(X, chunks=(700, 3)), da.from_array(y, chunks=700)).members_) == networks
    # All rows count, not those of the search.
    assert len(SCNERegressor(SCNRegressor(2, search_rows=50)).fit(X, y).members_) == networks


def test_drawn_ensembles_have_none():
    assert "effort" not in DNNERegressor().get_params()
    assert DNNERegressor().n_estimators == 6
    X, y = rows(2_000)
    assert len(DNNERegressor(RVFLRegressor(3)).fit(X, y).members_) == 6
    assert [member.layer.n_nodes for member in DNNERegressor(n_estimators=1).fit(X, y).members_] == [100]
    with pytest.raises(ValueError, match="n_estimators is None, but it must be a whole number"):
        DNNERegressor(n_estimators=None).fit(X, y)


@both
def test_a_file_holds_it(cls, tmp_path):
    X, y = rows()
    model = cls(effort=1, random_state=0).fit(X, y > 0)
    model.save(tmp_path / "model.scne")
    again = load_model(tmp_path / "model.scne")
    assert again.get_params(deep=False) == model.get_params(deep=False)
    assert np.array_equal(again.predict(X), model.predict(X))


def test_another_effort_is_another_fit(tmp_path):
    X, y = rows()

    class Killed(BaseException):
        pass

    def kill(step):
        if step.stage == "summing rows":
            raise Killed

    with pytest.raises(Killed), listening(kill):
        SCNERegressor(effort=1, n_estimators=2, random_state=0).fit(X, y, checkpoint=tmp_path / "progress")
    with pytest.raises(CheckpointError, match="effort was 1, and is 2"):
        SCNERegressor(effort=2, n_estimators=2, random_state=0).fit(X, y, checkpoint=tmp_path / "progress")


@pytest.mark.parametrize(
    ("options", "networks", "nodes", "epochs"),
    [
        ((), 3, 40, 3),
        (("--networks", "2"), 2, 40, 3),
        (("--nodes", "4", "--tuning", "0"), 3, 4, 0),
        (("--effort", "3", "--nodes", "2", "--tuning", "0"), 12, 2, 0),
    ],
)
def test_the_command_takes_it(options, networks, nodes, epochs, tmp_path, monkeypatch, capsys):
    X, y = rows(250)
    pd.DataFrame(X, columns=list("abc")).assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    monkeypatch.chdir(tmp_path)
    arguments = ("fit", "rows.csv", "--target", "y", "--effort", "1", *options, "--json")
    code, out, error = run_here(monkeypatch, capsys, *arguments)
    assert code == 0, error
    assert len(json.loads(out)["groups"]) == networks
    model = load_model("model.scne")
    assert max(model.n_hidden_) == nodes
    assert (model.estimator.max_hidden, model.estimator.tuning_epochs) == (nodes, epochs)


@pytest.mark.parametrize("effort", ["0", "6", "high", "2.5"])
def test_the_command_refuses_what_is_no_step(effort, tmp_path, monkeypatch, capsys):
    code, _, error = run_here(monkeypatch, capsys, "fit", "rows.csv", "--target", "y", "--effort", effort)
    assert code == 2
    assert "Invalid value for '--effort'" in error


def test_help_tells_of_it(monkeypatch, capsys):
    code, out, _ = run_here(monkeypatch, capsys, "fit", "--help")
    assert code == 0
    # The option itself, and the defaults of the three that it sets.
    assert " ".join(out.replace("│", " ").split()).count("--effort") == 4
