"""The same seed and rows give the same model to the last bit, however the work is spread, and nothing else leaks in."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from ensembles import plain_ensemble
from sklearn.base import clone

from scne import DNNERegressor, RVFLRegressor, SCNRegressor

ESTIMATORS = {
    "rvfl": RVFLRegressor(12, random_state=5),
    "scn": SCNRegressor(8, n_candidates=20, random_state=5),
    "scn in single precision": SCNRegressor(8, n_candidates=20, precision="float32", random_state=5),
    "scn by the paper": SCNRegressor(
        8, n_candidates=20, criterion="paper", scope_search="first", batch_size=3, random_state=5
    ),
    "scn that watches": SCNRegressor(8, n_candidates=20, validation_fraction=0.3, random_state=5),
    "dnne": DNNERegressor(RVFLRegressor(10), n_estimators=3, random_state=5),
    "scne": plain_ensemble(SCNRegressor(6, n_candidates=20), groups=[[0, 1], [1, 2]], random_state=5),
    "scne without a matrix": plain_ensemble(
        RVFLRegressor(8), n_estimators=3, solver="matrix-free cg", decorrelation=0.5, ridge=0.1, random_state=5
    ),
}
every = pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS.keys())


def make_rows(n_rows=2500):
    """Enough rows for several stripes, the last of them short."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n_rows, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]


@pytest.fixture(scope="module")
def data():
    return make_rows()


def bits(model, X):
    """Every weight of a model and its predictions, in one flat array."""
    parts = []
    for name in ("input_weights_", "biases_", "output_weights_", "direct_weights_", "loss_curve_", "ridge_"):
        value = getattr(model, name, None)
        parts += value if isinstance(value, list) else [value]
    parts += [getattr(model, "decorrelation_", None), model.predict(X)]
    return np.concatenate([np.ravel(part) for part in parts if part is not None])


@pytest.mark.parametrize("n_jobs", [2, 3, 7, -1, None])
@every
def test_threads_do_not_change_a_bit(estimator, n_jobs, data):
    alone = clone(estimator).set_params(n_jobs=1).fit(*data)
    spread = clone(estimator).set_params(n_jobs=n_jobs).fit(*data)
    assert np.array_equal(bits(spread, data[0]), bits(alone, data[0]))


@pytest.mark.parametrize("n_jobs", [2, 7])
@pytest.mark.parametrize("outputs", [1, 2])
def test_threads_do_not_change_a_bit_without_room_for_a_basis(n_jobs, outputs, data, monkeypatch):
    monkeypatch.setattr("scne.estimators._regressor.BASIS_BYTES", 0.0)
    X, y = data
    targets = y if outputs == 1 else np.column_stack([y, X[:, 0]])
    alone, spread = (SCNRegressor(6, n_candidates=20, n_jobs=n, random_state=5).fit(X, targets) for n in (1, n_jobs))
    assert np.array_equal(bits(spread, X), bits(alone, X))


@pytest.mark.parametrize("n_jobs", [2, 7])
@every
def test_threads_do_not_change_a_bit_of_weighted_outputs(estimator, n_jobs, data):
    X, y = data
    Y, weights = np.column_stack([y, X[:, 0]]), np.linspace(0, 2, len(y))
    alone = clone(estimator).set_params(n_jobs=1).fit(X, Y, weights)
    spread = clone(estimator).set_params(n_jobs=n_jobs).fit(X, Y, weights)
    assert np.array_equal(bits(spread, X), bits(alone, X))


def test_threads_do_not_change_what_members_predict(data):
    model = clone(ESTIMATORS["scne"]).set_params(n_jobs=1).fit(*data)
    alone = model.predict_members(data[0])
    assert np.array_equal(model.set_params(n_jobs=3).predict_members(data[0]), alone)


@every
def test_fitting_twice_is_fitting_once(estimator, data):
    X, y = data
    model = clone(estimator).fit(-X[:700], y[:700] ** 2)
    model.fit(X, y)
    assert np.array_equal(bits(model, X), bits(clone(estimator).fit(X, y), X))


def test_a_refit_leaves_nothing_of_the_fit_before(data):
    """Attributes that only some fits have go when a fit without them follows."""
    X, y = data
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = DNNERegressor(RVFLRegressor(5), n_estimators=2, decorrelation=0.5, ridge=0.1, random_state=0)
    model.fit(frame, y).set_params(solver="matrix-free cg").fit(X, y)
    fresh = clone(model).fit(X, y)
    assert set(vars(model)) == set(vars(fresh))


def test_another_seed_is_another_model(data):
    X, y = data
    for name, estimator in ESTIMATORS.items():
        other = clone(estimator).set_params(random_state=6).fit(X, y)
        assert not np.array_equal(other.predict(X), clone(estimator).fit(X, y).predict(X)), name


def test_without_a_seed_every_fit_draws_anew(data):
    model = RVFLRegressor(5)
    first = model.fit(*data).biases_
    assert not np.array_equal(model.fit(*data).biases_, first)


def test_a_random_state_object_moves_on(data):
    model = RVFLRegressor(5, random_state=np.random.RandomState(0))
    first = model.fit(*data).biases_
    assert not np.array_equal(model.fit(*data).biases_, first)


def test_members_on_the_same_columns_draw_different_nodes(data):
    model = clone(ESTIMATORS["dnne"]).fit(*data)
    assert not np.array_equal(model.biases_[0], model.biases_[1])


@every
def test_the_global_random_state_is_left_alone(estimator, data):
    np.random.seed(0)  # noqa: NPY002
    clone(estimator).fit(*data)
    after = np.random.random_sample()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    assert after == np.random.random_sample()  # noqa: NPY002


@every
def test_a_fit_does_not_write_on_its_rows(estimator, data):
    X, y = (values.copy() for values in data)
    weights = np.ones(len(y))
    for values in (X, y, weights):
        values.setflags(write=False)
    clone(estimator).fit(X, y, weights).predict(X)
    assert np.array_equal(X, data[0])
    assert np.array_equal(y, data[1])


@every
def test_a_model_does_not_hang_on_its_rows(estimator, data):
    X, y = (values.copy() for values in data)
    model = clone(estimator).fit(X, y)
    before = bits(model, data[0])
    X += 100.0
    y *= -1
    assert np.array_equal(bits(model, data[0]), before)


def test_a_fitted_model_can_be_solved_again_after_its_rows_changed(data):
    X, y = (values.copy() for values in data)
    model = clone(ESTIMATORS["dnne"]).fit(X, y)
    before = model.reweighted(decorrelation=0.3).predict(data[0])
    X += 100.0
    y *= -1
    assert np.array_equal(model.reweighted(decorrelation=0.3).predict(data[0]), before)


PROGRAM = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
from test_same_seed_same_bits import ESTIMATORS, bits, clone, make_rows
X, y = make_rows()
print(hashlib.sha256(bits(clone(ESTIMATORS[sys.argv[2]]).fit(X, y), X).tobytes()).hexdigest())
"""


def digest(name, **environment):
    """The bits of a model that another process fits."""
    command = [sys.executable, "-c", PROGRAM, os.path.dirname(__file__), name]
    run = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=True)
    return run.stdout


@pytest.mark.parametrize("name", ["scn", "scne"])
def test_another_process_with_other_blas_threads_has_the_same_bits(name):
    assert digest(name, OPENBLAS_NUM_THREADS="1") == digest(name, OPENBLAS_NUM_THREADS="2")


GROUPS_PROGRAM = """
from scne.rows import resolve_groups
names = [f"column {i}" for i in range(9)]
print(resolve_groups({"all": set(names)}, 9, names)[0].columns.tolist())
"""


def test_a_set_of_columns_has_one_order():
    """Sets of text are ordered by a hash that changes from run to run; columns must not be."""
    orders = {
        subprocess.run(
            [sys.executable, "-c", GROUPS_PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(orders) == 1
