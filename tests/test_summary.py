"""The summary of a fit: one paragraph that says what the attributes say."""

import json
import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from commands import SCNE
from ensembles import plain_ensemble
from sklearn.exceptions import NotFittedError

from scne import DNNERegressor, RVFLRegressor, SCNERegressor, SCNRegressor
from scne.estimators import load_model, save_model
from scne.networks import StopReason

small = {"n_candidates": 20}
GROUPS = {"gases": ["a", "b"], "weather": ["c"], "calendar": ["d"]}


def make_rows(n=900, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 4))
    y = 1000 * (3 * np.sin(3 * X[:, 0]) + X[:, 2] ** 2) + 200 * rng.standard_normal(n)
    return pd.DataFrame(X, columns=list("abcd")), y


@pytest.fixture(scope="module")
def held_out():
    base = SCNRegressor(20, **small, validation_fraction=0.3, search_rows=800)
    return plain_ensemble(base, groups=GROUPS, random_state=0).fit(*make_rows())


def number(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def test_an_ensemble_says_what_it_chose_and_why(held_out):
    text = held_out.summary()
    assert "\n" not in text
    assert "This SCNERegressor was fitted on 900 rows of 4 columns" in text
    assert "with nodes searched on a sample of 800 rows" in text
    first, second, third = held_out.n_hidden_
    nodes = f"3 networks with {sum(held_out.n_hidden_)} hidden nodes in all"
    assert f"{nodes} (gases: {first}, weather: {second}, calendar: {third})" in text
    assert f"{sum(held_out.n_hidden_)} of 60 nodes were kept, up to the lowest error on held-out rows" in text
    share = f"{100 * held_out.decorrelation_ / 1.5:.4g}"
    assert f"Lambda is {held_out.decorrelation_:.5g}, {share} % of the way from a plain average" in text
    assert "to one joint fit of all their nodes (1.5)" in text
    assert f"the ridge is {held_out.ridge_[0]:.3g}" in text
    assert "Among 100 lambdas and 8 ridges, this pair has the lowest squared error on held-out rows" in text
    assert "solver" not in text  # it solved directly: nothing to do


def test_the_errors_are_in_units_of_y(held_out):
    text = held_out.summary()
    choice, scale = held_out.choice_, held_out.target_scaling_.scale[0]
    chosen = choice.scores[
        np.flatnonzero((choice.ridges == choice.ridge).all(axis=1))[0],
        np.flatnonzero(choice.decorrelations == choice.decorrelation)[0],
    ]
    assert f"to expect on new rows is about {number(np.sqrt(chosen) * scale)} in units of y" in text
    assert f"on the training rows it is {number(held_out.loss_curve_[-1] * scale)}" in text
    X, y = make_rows(4_000, 1)
    assert np.sqrt(np.mean((held_out.predict(X) - y) ** 2)) == pytest.approx(np.sqrt(chosen) * scale, rel=0.1)
    prediction, _, upper = held_out.predict(X.iloc[:1], interval=0.9)
    assert f"About 90 % of new rows should lie within {number((upper - prediction)[0])} of their prediction" in text


def test_the_networks_and_columns_that_matter_are_named(held_out):
    text = held_out.summary()
    rises = held_out.group_importances_.rises
    assert f"on held-out rows the most for gases (by {number(rises['gases'])}) and weather (by " in text
    assert "calendar (by" not in text
    assert f"Most influential: a ({100 * held_out.feature_importances_[0]:.0f} %)" in text


def test_a_file_says_the_same_but_for_what_it_does_not_hold(held_out, tmp_path):
    save_model(held_out, tmp_path / "m.scne", with_system=True)
    assert load_model(tmp_path / "m.scne").summary() == held_out.summary()
    save_model(held_out, tmp_path / "m.scne")
    loaded = load_model(tmp_path / "m.scne").summary()
    before, _, after = held_out.summary().partition(" Leaving out a network")
    assert loaded.startswith(before)
    assert loaded.endswith(after[after.index("Most influential") :])


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parent / "stored_models").glob("v1_*.scne")), ids=lambda p: p.stem
)
def test_older_files_can_be_told_of_too(path):
    model = load_model(path)
    assert model.summary().startswith(f"This {type(model).__name__} takes 4 columns.")


def test_without_held_out_rows_it_warns_of_its_own_judgement():
    X, y = make_rows(300)
    searched = plain_ensemble(SCNRegressor(5, **small), groups=GROUPS, random_state=0).fit(X, y).summary()
    assert "lowest score of generalised cross-validation" in searched
    assert "or larger, because the nodes were chosen on the same rows" in searched
    drawn = DNNERegressor(RVFLRegressor(5), groups=GROUPS, random_state=0).fit(X, y).summary()
    assert "or larger" not in drawn
    assert "in all (5 each), drawn at random." in drawn
    assert "raises the error on training rows the most for" in drawn


def test_what_was_given_is_not_said_to_be_chosen():
    X, y = make_rows(300)
    base = RVFLRegressor(5)
    text = SCNERegressor.paper(GROUPS, max_hidden=5, random_state=0).fit(X, y).summary()
    assert "Lambda is 0.1, 7 % of the way" in text
    assert "Both were given, not chosen." in text
    assert "solver 'gauss-seidel'" in text
    text = DNNERegressor(base, groups=GROUPS, decorrelation=0.5, random_state=0).fit(X, y).summary()
    assert "Among 8 ridges, this one has" in text
    text = DNNERegressor(base, groups=GROUPS, ridge=[0.1, 1, 20], random_state=0).fit(X, y).summary()
    assert "the ridge is between 0.1 and 20. Among 100 lambdas, this one has" in text
    one = DNNERegressor(base, n_estimators=1, ridge=2, decorrelation=0, random_state=0).fit(X, y).summary()
    assert "1 network with 5 hidden nodes" in one
    assert "The ridge is 2. It was given, not chosen." in one


def test_different_reasons_to_stop_are_counted():
    X, y = make_rows(200)
    model = plain_ensemble(SCNRegressor(6, **small, tol=0.5), groups=GROUPS, random_state=0).fit(X, y)
    reasons = [member.search.stop_reason for member in model.members_]
    assert set(reasons) == {StopReason.TOLERANCE, StopReason.MAX_HIDDEN}
    assert f"2 networks stopped because {StopReason.MAX_HIDDEN.value}" in model.summary()
    assert f"and 1 network stopped because {StopReason.TOLERANCE.value}." in model.summary()


def test_many_networks_and_several_outputs():
    X, y = make_rows(300)
    base = SCNRegressor(4, **small, validation_fraction=0.3)
    text = plain_ensemble(base, n_estimators=8, random_state=0).fit(X, np.column_stack([y, X["b"]])).summary()
    assert "8 networks with" in text
    assert "each)" in text
    assert "of the targets' scale" in text
    assert "in units of y" not in text
    assert "(one number for each output)" in text


def test_single_networks():
    X, y = make_rows(300)
    text = SCNRegressor(6, **small, validation_fraction=0.3, random_state=0).fit(X, y).summary()
    assert text.startswith("This SCNRegressor was fitted on 300 rows of 4 columns. It is one network of ")
    assert "The root mean squared error on held-out rows is " in text
    assert "ambda" not in text
    drawn = RVFLRegressor(6, random_state=0).fit(X, y).summary()
    assert "one network of 6 hidden nodes, drawn at random. Most influential: a (" in drawn
    constant = RVFLRegressor(6, random_state=0).fit(X, np.ones(300)).summary()
    assert constant.endswith("Its output is the same for every row.")
    with pytest.raises(NotFittedError):
        RVFLRegressor().summary()


def test_tuned_networks_say_so():
    X, y = make_rows(300)
    model = plain_ensemble(SCNRegressor.tuned(max_hidden=6, tuning_epochs=2), n_estimators=2, random_state=0).fit(X, y)
    assert "All nodes of a network were then tuned together." in model.summary()


def test_a_solve_that_did_not_end_well_is_told():
    X, y = make_rows(300)
    with pytest.warns(Warning, match="max_iter"):
        model = DNNERegressor(
            RVFLRegressor(8), n_estimators=3, solver="gauss-seidel", decorrelation=1.4, ridge=1e-6, max_iter=2
        ).fit(X, y)
    assert "solver 'gauss-seidel': stopped after max_iter = 2 iterations" in model.summary()


# In the command.

FIT = ["rows.parquet", "--target", "y", "--groups", "groups.toml", "--nodes", "10", "--tuning", "1"]


@pytest.fixture(scope="module")
def fitted_by_command(tmp_path_factory):
    folder = tmp_path_factory.mktemp("summary")
    X, y = make_rows(2_000)
    pa.parquet.write_table(pa.table({**dict(X.items()), "y": y}), folder / "rows.parquet")
    (folder / "groups.toml").write_text('[groups]\ngases = ["a", "b"]\nrest = ["c", "d"]\n')
    return folder, run("fit", *FIT, cwd=folder)


def run(*arguments, cwd):
    return subprocess.run(
        [*SCNE, *arguments], cwd=cwd, env={**os.environ, "COLUMNS": "80"}, capture_output=True, text=True, check=True
    ).stdout


def test_fit_tells_the_paragraph_to_those_who_ask(fitted_by_command):
    folder, printed = fitted_by_command
    assert "This SCNERegressor" not in printed
    words = " ".join(run("fit", *FIT, "--verbose", cwd=folder).split())
    assert "solver cholesky" in words
    assert "This SCNERegressor was fitted on 2,000 rows of 4 columns." in words
    # Networks that are worse by themselves may be left out.
    assert re.search(r"\b([2-9]|1[0-2]) networks\b", words)


def test_inspect_shows_the_paragraph(fitted_by_command):
    folder, _ = fitted_by_command
    text = load_model(folder / "model.scne").summary()
    printed = run("inspect", "model.scne", cwd=folder)
    assert "solver   cholesky" in printed
    assert " ".join(printed.rpartition("\n\n")[2].split()) == text
    assert json.loads(run("inspect", "model.scne", "--json", cwd=folder))["summary"] == text


def test_what_takes_long_to_measure_is_left_to_its_method():
    """A paragraph takes seconds at most, whatever the model: files may hold any."""
    X = np.random.default_rng(0).random((40, 2))
    many = plain_ensemble(RVFLRegressor(1), n_estimators=101, decorrelation=0.1, ridge=0.1, random_state=0)
    assert "See group_importances_ for the networks that matter most." in many.fit(X, X[:, 0]).summary()
    wide = np.random.default_rng(1).random((5, 30_001))
    model = RVFLRegressor(1, direct_link=False, random_state=0).fit(wide, wide[:, 0])
    assert "See feature_importances_ for the columns that matter most." in model.summary()
    assert np.isclose(model.feature_importances_.sum(), 1)
