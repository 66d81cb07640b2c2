"""Models that grow: the search of the fit goes on, no error rises, and what was there stays."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from ensembles import plain_ensemble
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import scne
from scne import DNNERegressor, RVFLRegressor, SCNERegressor, SCNRegressor
from scne.estimators._regressor import draw_seed
from scne.fitting._fit import BuildingSite
from scne.fitting._growing import grown_members
from scne.fitting._members import draw_held_out
from scne.ncl import EnsembleSystem, decorrelation_limit
from scne.networks import admissible_nodes
from scne.passes import ThreadEngine, listening
from scne.rows import ArrayRows

small = {"n_candidates": 10}
GROUPS = {"a": [0, 1], "b": [1, 2], "c": [3]}


def make_rows(n=400, seed=0, n_outputs=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 4))
    y = 7 + 2 * np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + X[:, 3] ** 2 + 0.1 * rng.standard_normal(n)
    return X, np.column_stack([y, 100 * np.exp(X[:, 1])])[:, :n_outputs] if n_outputs else y


def rmse(model, X, y):
    return np.sqrt(np.mean((model.predict(X) - y) ** 2))


# The search goes on.


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"pool": "sparse", "activation": "tanh", "scaling": "ramps"},
        {"criterion": "paper", "scope_search": "first"},
        {"precision": "float32"},
        {"search_rows": 150},
    ],
    ids=["default", "sparse", "paper", "single", "sample"],
)
@pytest.mark.parametrize("n_outputs", [0, 2])
def test_a_grown_network_is_one_that_was_built_larger(options, n_outputs):
    X, y = make_rows(n_outputs=n_outputs)
    weights = np.random.default_rng(1).uniform(0.5, 2, len(X))
    network = SCNRegressor(6, **small, **options, random_state=3)
    grown = network.fit(X, y, weights).add_nodes(4, X, y, weights).add_nodes(5, X, y, weights)
    whole = SCNRegressor(15, **small, **options, random_state=3).fit(X, y, weights)
    np.testing.assert_array_equal(grown.input_weights_, whole.input_weights_)
    np.testing.assert_array_equal(grown.biases_, whole.biases_)
    np.testing.assert_allclose(grown.predict(X), whole.predict(X), rtol=1e-9)
    np.testing.assert_allclose(grown.loss_curve_, whole.loss_curve_, rtol=1e-9)
    assert grown.n_hidden_ == 15


@given(
    seed=st.integers(0, 50),
    n=st.integers(1, 6),
    n_rows=st.integers(12, 300),
    criterion=st.sampled_from(["orthogonal", "paper"]),
    n_outputs=st.sampled_from([0, 2]),
)
@settings(max_examples=25)
def test_without_a_ridge_the_error_of_a_network_does_not_rise(seed, n, n_rows, criterion, n_outputs):
    X, y = make_rows(300, seed, n_outputs)
    network = SCNRegressor(5, **small, criterion=criterion, ridge=0.0, random_state=seed).fit(X, y)
    rows, aims = X[:n_rows], y[:n_rows]
    before = np.mean((network.predict(rows) - aims) ** 2, axis=0)
    network.add_nodes(n, rows, aims)
    # A pseudo-inverse takes dependent nodes for none, up to its tolerance.
    assert (np.mean((network.predict(rows) - aims) ** 2, axis=0) <= before + 1e-9 * aims.var(axis=0)).all()


def minimised(model, X, y):
    """Eq. (20), summed over the networks and outputs: what the output weights of an ensemble minimise."""
    outputs = model.predict_members(X)
    apart = ((outputs - outputs.mean(axis=0)) ** 2).sum()
    return ((outputs - y) ** 2).sum() - model.decorrelation_ * apart


@given(seed=st.integers(0, 50), n=st.integers(1, 5), road=st.sampled_from([0.0, 0.1, 0.6, 0.95]))
@settings(max_examples=15)
def test_without_a_ridge_what_an_ensemble_minimises_does_not_rise(seed, n, road):
    X, y = make_rows(300, seed)
    model = plain_ensemble(
        SCNRegressor(5, **small),
        groups=GROUPS,
        ridge=0.0,
        decorrelation=road * decorrelation_limit(3),
        random_state=seed,
    ).fit(X, y)
    before = minimised(model, X, y)
    model.add_nodes(n, X, y)
    assert model.n_hidden_ == [5 + n] * 3
    assert minimised(model, X, y) <= before + 1e-9 * y.var()


def test_near_the_joint_fit_the_error_of_an_ensemble_falls():
    X, y = make_rows()
    model = plain_ensemble(SCNRegressor(5, **small), groups=GROUPS, ridge=1e-6, decorrelation=1.499, random_state=0)
    errors = [rmse(model.fit(X, y), X, y)] + [rmse(model.add_nodes(3, X, y), X, y) for _ in range(4)]
    assert (np.diff(errors) < 0).all()
    assert errors[-1] < 0.5 * errors[0]


def test_new_nodes_obey_the_inequality():
    X, y = make_rows()
    model = plain_ensemble(SCNRegressor(6, **small), n_estimators=1, random_state=0).fit(X, y).add_nodes(8, X, y)
    (held,) = model.admissible_nodes_.values()
    assert held.shape == (14,)
    assert held.all()


def test_every_network_is_grown_against_what_the_others_leave():
    X, y = make_rows()
    template = SCNRegressor(6, **small, ridge=0.0)
    model = plain_ensemble(template, groups=GROUPS, decorrelation=1.49, ridge=1e-6, random_state=0).fit(X, y)
    with ThreadEngine(1) as engine:
        rows, scaling = ArrayRows(X, y[:, None]), model.target_scaling_
        site = BuildingSite(rows, None, None, None, scaling, np.zeros(0), draw_seed(0), engine)
        plans = model._member_plans(list(model.groups_))
        members = grown_members(plans, model.members_, model.fitted_.weights, 4, site)
    said = [layer.outputs(X) @ beta / 3 for layer, beta in zip(*model.fitted_.terms(), strict=True)]
    targets = scaling.apply(rows.targets)
    before = np.square(targets - sum(said)).sum()
    for m, member in enumerate(members):
        H = member.layer.outputs(X)
        left = targets - sum(other for place, other in enumerate(said) if place != m)
        own = EnsembleSystem.from_outputs([H], left)
        held = admissible_nodes(own.gram, own.moments, own.target_square, member.search.contractions, "orthogonal", 0.0)
        assert member.layer.n_nodes == 10
        assert held[6:].all()
        np.testing.assert_array_equal(member.layer.weights[:, :6], model.members_[m].layer.weights)
        said[m] = H @ np.linalg.lstsq(H, left, rcond=None)[0]
        now = np.square(targets - sum(said)).sum()
        assert now < before
        before = now


# Output weights.


MODELS = {
    "scn": SCNRegressor(6, **small, ridge=1e-3),
    "rvfl": RVFLRegressor(10, ridge=1e-3),
    "scne": plain_ensemble(SCNRegressor(6, **small), groups=GROUPS, ridge=0.01),
    "linked": plain_ensemble(RVFLRegressor(6), groups=GROUPS, ridge=0.01),
    "dnne": DNNERegressor(RVFLRegressor(6, scope=2), n_estimators=2, ridge=0.01),
    "scne after a trend": plain_ensemble(SCNRegressor(6, **small), groups=GROUPS, trend="linear", ridge=0.01),
    "scne beside a trend": plain_ensemble(
        SCNRegressor(6, **small, validation_fraction=0.3, target_scaling="0-1"),
        groups=GROUPS,
        trend="judged",
        ridge=0.1,
    ),
    "tuned": plain_ensemble(SCNRegressor.tuned(max_hidden=8, n_candidates=10), n_estimators=2, ridge=0.01),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_weights_are_those_of_the_rows_that_are_given(name):
    """Which are all that the model knows afterwards; what comes later is added to them."""
    model = copy.deepcopy(MODELS[name]).set_params(random_state=0).fit(*make_rows())
    before = copy.deepcopy(model)
    X, y = make_rows(300, 1)
    assert model.add_nodes(4, X, y) is model
    assert model.n_rows_ == model.system_.n_rows == 300
    for now, then in zip(model.fitted_.members, before.fitted_.members, strict=True):
        assert now.layer.n_nodes == then.layer.n_nodes + 4
        np.testing.assert_array_equal(now.layer.weights[:, : then.layer.n_nodes], then.layer.weights)
    # A model that learns all rows of a batch again, with nothing left of what was before.
    again = copy.deepcopy(model).partial_fit(X, y, forgetting=1e-300)
    np.testing.assert_allclose(again.predict(X), model.predict(X), rtol=1e-9)
    assert rmse(model, X, y) < rmse(before, X, y)
    more, aims = make_rows(200, 2)
    model.partial_fit(more, aims)
    whole = copy.deepcopy(before).add_nodes(4, X, y)
    both = copy.deepcopy(whole).partial_fit(np.vstack([X, more]), np.concatenate([y, aims]), forgetting=1e-300)
    np.testing.assert_allclose(model.predict(X), both.predict(X), rtol=1e-8)


def test_drawn_nodes_are_drawn_as_the_others_were():
    X, y = make_rows()
    model = RVFLRegressor(10, scope=0.5, random_state=0).fit(X, y).add_nodes(20, X, y).add_nodes(20, X, y)
    assert model.input_weights_.shape == (4, 50)
    assert np.abs(model.input_weights_).max() <= 0.5
    assert len(np.unique(np.round(model.biases_, 12))) == 50


@pytest.mark.parametrize("name", ["scn", "scne beside a trend"])
def test_held_out_rows_calibrate(name):
    X, y = make_rows(1_500)
    model = copy.deepcopy(MODELS[name]).set_params(random_state=0)
    base = model.estimator if isinstance(model, SCNERegressor) else model
    base.set_params(validation_fraction=0.3)
    model.fit(X, y).add_nodes(5, X, y)
    held = draw_held_out(ArrayRows(X), 0.3, draw_seed(0))
    assert len(model.calibration_) == len(held)
    T, t = make_rows(4_000, 5)
    interval = model.predict(T, interval=0.9)
    assert np.mean((interval.lower <= t) & (t <= interval.upper)) == pytest.approx(0.9, abs=0.04)
    if isinstance(model, SCNERegressor):
        assert model.held_out_.system.n_rows == len(held)
        assert model.group_importances_.rows == "held-out rows"


def test_without_held_out_rows_there_are_no_intervals_until_new_rows_come():
    X, y = make_rows()
    model = copy.deepcopy(MODELS["scn"]).fit(X, y, X_val=X[:50], y_val=y[:50])
    model.partial_fit(*make_rows(30, 1)).add_nodes(3, X, y)
    assert model.calibration_ is None
    assert len(model.partial_fit(*make_rows(40, 2)).calibration_) == 40


def test_a_search_that_ends_gives_fewer_nodes():
    X = np.linspace(0, 1, 50)[:, None]
    model = SCNRegressor(3, tol=0.5, random_state=0).fit(X, X[:, 0])
    before = model.n_hidden_
    model.add_nodes(10, X, X[:, 0])
    assert model.n_hidden_ == before
    assert "tolerance" in model.stop_reason_


# Where rows come from, and what a model keeps.


def test_rows_in_files(tmp_path):
    X, y = make_rows(1_200)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(t=y)
    pa.parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False), tmp_path / "rows.parquet")
    rows = scne.open_rows(tmp_path / "rows.parquet", target="t")
    model = SCNRegressor(6, **small, search_rows=500, ridge=1e-3, random_state=0).fit(rows)
    arrays = copy.deepcopy(model).add_nodes(4, frame[list("abcd")], y)
    np.testing.assert_allclose(model.add_nodes(4, rows).predict(rows), arrays.predict(rows), rtol=1e-9)


def test_dask_rows():
    da = pytest.importorskip("dask.array")
    X, y = make_rows(1_200)
    model = SCNRegressor(6, **small, search_rows=500, ridge=1e-3, random_state=0).fit(X, y)
    arrays = copy.deepcopy(model).add_nodes(4, X, y)
    model.add_nodes(4, da.from_array(X, chunks=(500, 4)), da.from_array(y, chunks=500))
    np.testing.assert_allclose(model.predict(X), arrays.predict(X), rtol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_a_grown_model_is_saved_and_pickled(name, tmp_path):
    X, y = make_rows()
    model = copy.deepcopy(MODELS[name]).set_params(random_state=0).fit(X, y).add_nodes(3, X, y)
    model.save(tmp_path / "m.scne", with_system=isinstance(model, SCNERegressor))
    for again in (scne.load(tmp_path / "m.scne"), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(again.predict(X), model.predict(X))
    assert str(model.n_hidden_ if isinstance(model.n_hidden_, int) else sum(model.n_hidden_)) in model.summary()


@pytest.mark.parametrize("name", ["scn", "scne", "tuned"])
def test_the_bits_do_not_depend_on_the_threads(name):
    X, y = make_rows(3_000)
    first = copy.deepcopy(MODELS[name]).set_params(random_state=0).fit(X, y)
    one, three = (copy.deepcopy(first).set_params(n_jobs=n).add_nodes(3, X, y) for n in (1, 3))
    assert np.array_equal(one.predict(X), three.predict(X))


# What must not happen.


def refused(model, match, *arguments, error=ValueError):
    before = pickle.dumps(vars(model))
    with pytest.raises(error, match=match):
        model.add_nodes(*arguments)
    assert pickle.dumps(vars(model)) == before


@pytest.mark.parametrize("name", ["scn", "scne beside a trend"])
def test_a_failure_changes_nothing(name):
    X, y = make_rows()
    model = copy.deepcopy(MODELS[name]).set_params(random_state=0).fit(X, y)
    refused(model, "X has 2 features", 3, X[:, :2], y)
    refused(model, "y has 2 output", 3, X, np.column_stack([y, y]))
    for n in (0, -1, 1.5, "three"):
        refused(model, "n is .*, but it must be a whole number of at least 1", n, X, y)

    def interrupt(progress):
        if progress.stage == "summing rows":
            raise KeyboardInterrupt("enough")

    with listening(interrupt):
        refused(model, "enough", 3, X, y, error=KeyboardInterrupt)


def test_models_that_cannot_grow_say_so(tmp_path):
    X, y = make_rows()
    with pytest.raises(NotFittedError):
        SCNRegressor().add_nodes(3, X, y)
    free = plain_ensemble(RVFLRegressor(5), n_estimators=2, solver="matrix-free cg", decorrelation=0.5, ridge=0.1)
    refused(free.fit(X, y), "solver is 'matrix-free cg'", 3, X, y)
    # Without its system a model of a file can grow, because the sums are made anew.
    model = copy.deepcopy(MODELS["scne"]).set_params(random_state=0).fit(X, y)
    model.save(tmp_path / "m.scne")
    loaded = scne.load(tmp_path / "m.scne")
    assert np.array_equal(loaded.add_nodes(3, X, y).predict(X), model.add_nodes(3, X, y).predict(X))


def test_present_members_are_not_changed_in_place():
    X, y = make_rows()
    model = copy.deepcopy(MODELS["scne"]).set_params(random_state=0).fit(X, y)
    members, weights = model.members_, [member.layer.weights.copy() for member in model.members_]
    system = replace(model.system_, gram=model.system_.gram.copy())
    kept = model.system_
    model.add_nodes(3, X, y).partial_fit(X, y, forgetting=0.5)
    for member, before in zip(members, weights, strict=True):
        np.testing.assert_array_equal(member.layer.weights, before)
    np.testing.assert_array_equal(kept.gram, system.gram)
