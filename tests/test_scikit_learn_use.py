"""The estimators inside scikit-learn's machinery: clones, pipelines, searches, frames, files, weights."""

import importlib
import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
import skops.io
from ensembles import plain_ensemble
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from scne import DNNERegressor, RVFLRegressor, SCNEClassifier, SCNERegressor, SCNRegressor
from scne.models import SKOPS_TYPES

NAMES = ["TEMP", "PRES", "SO2"]
ESTIMATORS = {
    "rvfl": RVFLRegressor(8, random_state=3),
    "scn": SCNRegressor(8, n_candidates=20, random_state=3),
    "dnne": DNNERegressor(RVFLRegressor(8), groups=[[0, 1], [1, 2]], random_state=3),
    "scne": plain_ensemble(SCNRegressor(6, n_candidates=20), groups=[[0, 1], [1, 2]], random_state=3),
}
every = pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS.keys())
FRAMES = {
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
    "pyarrow": lambda X: pa.table({name: X[:, i] for i, name in enumerate(NAMES)}),
}
frames = pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (120, 3))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]


@every
def test_a_clone_has_the_same_parameters(estimator):
    assert repr(clone(estimator).get_params()) == repr(estimator.get_params())


@every
def test_a_clone_of_a_fitted_model_is_not_fitted(estimator, data):
    with pytest.raises(NotFittedError):
        clone(clone(estimator).fit(*data)).predict(data[0])


@every
def test_fitting_leaves_the_parameters_as_they_were(estimator, data):
    model = clone(estimator)
    before = repr(model.get_params())
    model.fit(*data)
    assert repr(model.get_params()) == before


def test_the_base_model_of_an_ensemble_is_not_fitted_itself(data):
    base = SCNRegressor(5, n_candidates=10)
    before = dict(vars(base))
    plain_ensemble(base, n_estimators=2).fit(*data)
    assert vars(base) == before


def test_nested_parameters_can_be_set(data):
    model = clone(ESTIMATORS["scne"]).set_params(estimator__max_hidden=3, decorrelation=0.25)
    model.fit(*data)
    assert (model.n_hidden_, model.decorrelation_) == ([3, 3], 0.25)


def test_the_base_model_by_default_follows_the_class(data):
    X, y = data
    small = {"n_estimators": 2, "random_state": 0, "ridge": 0.1, "decorrelation": 0.5}
    scne = SCNERegressor(**small).fit(X[:40], y[:40])
    dnne = DNNERegressor(**small).fit(X[:40], y[:40])
    assert scne.members_[0].search is not None
    assert dnne.members_[0].search is None
    assert dnne.direct_weights_ is None


@every
def test_in_a_pipeline_it_predicts_as_alone_on_scaled_columns(estimator, data):
    X, y = data
    scaled = StandardScaler().fit_transform(X)
    piped = make_pipeline(StandardScaler(), clone(estimator)).fit(X, y).predict(X)
    assert np.array_equal(piped, clone(estimator).fit(scaled, y).predict(scaled))


def test_after_a_scaler_with_pandas_output_groups_go_by_name(data):
    X, y = data
    model = plain_ensemble(RVFLRegressor(5), groups={"air": ["TEMP", "PRES"], "gas": ["SO2"]}, random_state=0)
    pipe = make_pipeline(StandardScaler().set_output(transform="pandas"), model).fit(FRAMES["pandas"](X), y)
    assert [list(columns) for columns in pipe[-1].groups_.values()] == [[0, 1], [2]]


def test_a_grid_search_over_nested_parameters_keeps_the_better_model(data):
    grid = {"estimator__max_hidden": [1, 12], "decorrelation": [0.0, 1.5]}
    search = GridSearchCV(clone(ESTIMATORS["scne"]), grid, cv=2).fit(*data)
    assert search.best_params_ == {"estimator__max_hidden": 12, "decorrelation": 1.5}
    assert search.best_estimator_.decorrelation_ == 1.5


def test_cross_validation_scores_a_learnable_target_well(data):
    model = plain_ensemble(SCNRegressor(15, n_candidates=50), groups=[[0], [1, 2]], random_state=0)
    assert cross_val_score(model, *data, cv=3).min() > 0.8


@every
def test_a_pickle_predicts_the_same(estimator, data):
    model = clone(estimator).fit(*data)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(data[0]), model.predict(data[0]))


@every
def test_a_joblib_file_predicts_the_same(estimator, data, tmp_path):
    model = clone(estimator).fit(*data)
    joblib.dump(model, tmp_path / "model")
    assert np.array_equal(joblib.load(tmp_path / "model").predict(data[0]), model.predict(data[0]))


@every
def test_a_skops_file_predicts_the_same_and_holds_only_known_types_of_this_package(estimator, data):
    model = clone(estimator).fit(*data)
    again = skops.io.loads(skops.io.dumps(model), trusted=SKOPS_TYPES)
    assert np.array_equal(again.predict(data[0]), model.predict(data[0]))


@pytest.mark.parametrize("kind", [SCNERegressor, SCNEClassifier])
def test_a_skops_file_of_a_frame_holds_only_known_types(kind, data):
    X, y = data
    frame = pd.DataFrame(X, columns=NAMES).assign(
        wind=pd.Categorical(np.where(X[:, 1] > 0, "north", "south")),
        station=[f"number {place % 40}" for place in range(len(X))],
        time=pd.date_range("2024-01-01", periods=len(X), freq="h"),
    )
    frame.loc[::9, "TEMP"] = np.nan
    model = kind(effort=1, random_state=0).fit(frame, y if kind is SCNERegressor else y > 0)
    again = skops.io.loads(skops.io.dumps(model), trusted=SKOPS_TYPES)
    assert np.array_equal(again.predict(frame), model.predict(frame))


def test_types_that_skops_may_trust_are_classes_of_this_package():
    for name in SKOPS_TYPES:
        module, _, attribute = name.rpartition(".")
        assert isinstance(getattr(importlib.import_module(module), attribute), type), name


def test_a_pickled_ensemble_can_be_solved_again(data):
    model = clone(ESTIMATORS["scne"]).fit(*data)
    again = pickle.loads(pickle.dumps(model)).reweighted(solver="naive")
    assert np.array_equal(again.predict(data[0]), model.reweighted(solver="naive").predict(data[0]))


@frames
@every
def test_a_frame_predicts_as_its_array(estimator, frame, data):
    X, y = data
    by_frame = clone(estimator).fit(frame(X), y)
    assert np.array_equal(by_frame.predict(frame(X)), clone(estimator).fit(X, y).predict(X))


@frames
def test_a_frame_names_its_columns(frame, data):
    model = RVFLRegressor(5).fit(frame(data[0]), data[1])
    assert list(model.feature_names_in_) == NAMES


@frames
def test_groups_by_name_are_those_columns(frame, data):
    X, y = data
    settings = {"estimator": RVFLRegressor(5), "random_state": 0}
    named = plain_ensemble(groups={"gas": "SO2", "air": ["PRES", "TEMP"]}, **settings).fit(frame(X), y)
    placed = plain_ensemble(groups=[[2], [1, 0]], **settings).fit(X, y)
    assert {name: list(columns) for name, columns in named.groups_.items()} == {"gas": [2], "air": [1, 0]}
    assert np.array_equal(named.predict(frame(X)), placed.predict(X))


@pytest.mark.parametrize("frame", [FRAMES["pandas"], FRAMES["polars"]], ids=["pandas", "polars"])
@every
def test_columns_in_another_order_are_refused(estimator, frame, data):
    X, y = data
    model = clone(estimator).fit(frame(X), y)
    with pytest.raises(ValueError, match="same order"):
        model.predict(frame(X)[NAMES[::-1]])


@pytest.mark.parametrize("frame", [FRAMES["pandas"], FRAMES["polars"]], ids=["pandas", "polars"])
@every
def test_a_missing_column_is_refused_by_name(estimator, frame, data):
    X, y = data
    model = clone(estimator).fit(frame(X), y)
    with pytest.raises(ValueError, match=r"missing(.|\n)*SO2"):
        model.predict(frame(X)[NAMES[:2]])


def test_a_polars_series_is_a_target(data):
    X, y = data
    from_series = RVFLRegressor(5, random_state=0).fit(X, pl.Series("y", y)).predict(X)
    assert np.array_equal(from_series, RVFLRegressor(5, random_state=0).fit(X, y).predict(X))


@every
def test_single_precision_input_is_read_as_it_is(estimator, data):
    X = data[0].astype(np.float32)
    narrow = clone(estimator).fit(X, data[1]).predict(X)
    assert np.array_equal(narrow, clone(estimator).fit(X.astype(float), data[1]).predict(X.astype(float)))


@every
def test_whole_numbers_and_lists_are_input_too(estimator):
    X = np.arange(60).reshape(20, 3)
    y = X.sum(axis=1)
    assert np.array_equal(
        clone(estimator).fit(X.tolist(), y.tolist()).predict(X.tolist()),
        clone(estimator).fit(X.astype(float), y.astype(float)).predict(X),
    )


@every
def test_memory_order_does_not_matter(estimator, data):
    X, y = data
    columnwise = clone(estimator).fit(np.asfortranarray(X), y).predict(X)
    np.testing.assert_allclose(columnwise, clone(estimator).fit(X, y).predict(X), rtol=1e-6, atol=1e-8)


@every
def test_a_column_target_gives_a_column(estimator, data):
    X, y = data
    model = clone(estimator).fit(X, y[:, None])
    assert np.array_equal(model.predict(X), clone(estimator).fit(X, y).predict(X)[:, None])


@every
def test_several_outputs_have_their_shapes(estimator, data):
    X, y = data
    model = clone(estimator).fit(X, np.column_stack([y, -y, X[:, 0]]))
    assert model.predict(X).shape == (120, 3)
    assert model.n_outputs_ == 3


def test_members_of_several_outputs_have_their_shapes(data):
    X, y = data
    model = clone(ESTIMATORS["dnne"])
    assert model.fit(X, y).predict_members(X).shape == (2, 120)
    assert model.fit(X, np.column_stack([y, -y, y])).predict_members(X).shape == (2, 120, 3)


def test_outputs_on_drawn_nodes_are_fitted_one_by_one(data):
    """Where no node is searched, several outputs share the nodes and nothing else."""
    X, y = data
    Y = np.column_stack([y, X[:, 0] ** 2])
    together = DNNERegressor(RVFLRegressor(8), n_estimators=2, decorrelation=0.7, ridge=0.1, random_state=0)
    np.testing.assert_allclose(
        together.fit(X, Y).predict(X), MultiOutputRegressor(clone(together)).fit(X, Y).predict(X), atol=1e-10
    )


@every
def test_a_transformed_target_wraps_it(estimator, data):
    X, y = data
    wrapped = TransformedTargetRegressor(clone(estimator), func=np.sinh, inverse_func=np.arcsinh)
    assert wrapped.fit(X, y).predict(X).shape == (120,)


@pytest.mark.parametrize(
    "model",
    [
        plain_ensemble(SCNRegressor(8, n_candidates=30), groups=[[0, 1], [1, 2], [0, 2]], random_state=0),
        plain_ensemble(RVFLRegressor(8, direct_link=True), n_estimators=2, random_state=0),
        SCNERegressor.paper(groups=[[0, 1], [1, 2]], max_hidden=8, random_state=0),
        DNNERegressor(RVFLRegressor(8), n_estimators=4, random_state=0),
        SCNRegressor(10, n_candidates=30, batch_size=3, random_state=0),
        RVFLRegressor(10, scaling="standard", random_state=0),
    ],
    ids=["scne", "scne with direct links", "paper", "dnne", "scn", "rvfl"],
)
def test_a_weight_is_a_number_of_repetitions(model):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(300)
    counts = rng.integers(0, 4, 300)
    weighted = clone(model).fit(X, y, sample_weight=counts).predict(X)
    repeated = clone(model).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts)).predict(X)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-6, atol=1e-6)


@every
def test_weights_of_one_are_no_weights(estimator, data):
    X, y = data
    weighted = clone(estimator).fit(X, y, sample_weight=np.ones(len(y))).predict(X)
    np.testing.assert_allclose(weighted, clone(estimator).fit(X, y).predict(X), rtol=1e-6, atol=1e-6)


@every
def test_weights_reach_the_fit(estimator, data):
    X, y = data
    uneven = np.where(X[:, 0] > 0, 10.0, 0.1)
    assert not np.allclose(clone(estimator).fit(X, y, uneven).predict(X), clone(estimator).fit(X, y).predict(X))


@every
def test_weights_are_routed_through_a_pipeline(estimator, data):
    X, y = data
    weights = np.where(X[:, 0] > 0, 3.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = clone(estimator).set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        piped = make_pipeline(scaler, routed).fit(X, y, sample_weight=weights).predict(X)
    scaled = StandardScaler().fit_transform(X)
    assert np.array_equal(piped, clone(estimator).fit(scaled, y, sample_weight=weights).predict(scaled))


@every
def test_only_weights_are_routed(estimator):
    """An interval is asked for by name, where predictions are wanted."""
    assert not hasattr(estimator, "set_predict_request")
    assert hasattr(estimator, "set_fit_request")


@every
def test_a_score_is_r_squared(estimator, data):
    X, y = data
    model = clone(estimator).fit(X, y)
    share = 1 - np.square(y - model.predict(X)).sum() / np.square(y - y.mean()).sum()
    assert model.score(X, y) == pytest.approx(share)
