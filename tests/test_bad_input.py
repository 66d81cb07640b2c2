"""Bad input gets a sentence that names the argument and what it was, and leaves the estimator as it found it."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from ensembles import plain_ensemble
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from scne import DNNERegressor, RVFLRegressor, SCNERegressor, SCNRegressor, error_decomposition

# Some columns are in no group here, which is said where it is tested.
pytestmark = pytest.mark.filterwarnings("ignore:.* no network sees:scne.ScneWarning")

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(30, 3))
Y = RNG.standard_normal(30)
NAMES = ["TEMP", "PRES", "SO2"]
SMALL = {
    "rvfl": RVFLRegressor(4, random_state=0),
    "scn": SCNRegressor(3, n_candidates=10, random_state=0),
    "scne": plain_ensemble(SCNRegressor(3, n_candidates=10), groups=[[0, 1], [1, 2]], random_state=0),
    "dnne": DNNERegressor(RVFLRegressor(4), n_estimators=3, random_state=0),
}


def spoiled(values, value, *where):
    changed = np.array(values, dtype=float)
    changed[where] = value
    return changed


def pandas_frame(**columns):
    return pd.DataFrame(X, columns=NAMES).assign(**columns)


def polars_frame(**columns):
    return pl.DataFrame(X, schema=NAMES).with_columns(**{name: pl.Series(values) for name, values in columns.items()})


TEXT = ["calm"] * 30

# what is wrong -> (arguments of fit, the error, words that its message must hold)
ROWS = {
    "infinity in X": ((spoiled(X, np.inf, 4, 2), Y), ValueError, ["X", "inf", "column 2", "row 4"]),
    "minus infinity in X": ((spoiled(X, -np.inf, 0, 0), Y), ValueError, ["X", "inf", "column 0"]),
    "NaN in y": ((X, spoiled(Y, np.nan, 3)), ValueError, ["y", "NaN"]),
    "infinity in y": ((X, spoiled(Y, np.inf, 3)), ValueError, ["y", "inf"]),
    "NaN in one output": ((X, spoiled(np.column_stack([Y, Y]), np.nan, 3, 1)), ValueError, ["y", "NaN"]),
    "no rows": ((X[:0], Y[:0]), ValueError, ["0 sample", "minimum of 1"]),
    "one row": ((X[:1], Y[:1]), ValueError, ["1 sample", "at least 2"]),
    "no columns": ((X[:, :0], Y), ValueError, ["0 feature", "minimum of 1"]),
    "rows that do not match": ((X, Y[:-1]), ValueError, ["30", "29", "inconsistent"]),
    "X without columns": ((X[:, 0], Y), ValueError, ["2D array", "1D array"]),
    "y of three dimensions": ((X, np.ones((30, 2, 2))), ValueError, ["dim 3"]),
    "no y": ((X, None), ValueError, ["y", "None"]),
    "text in y": ((X, np.array(TEXT)), ValueError, ["y", "calm"]),
    "objects of several kinds": ((pandas_frame(wind=[1, "calm"] * 15), Y), ValueError, ["'wind'", "X", "int", "str"]),
    "lists in a frame": ((pandas_frame(wind=[[1, 2]] * 30), Y), ValueError, ["'wind'", "X", "list"]),
    "two columns of one name": (
        (pandas_frame(wind=TEXT).set_axis(["a", "b", "a", "c"], axis=1), Y),
        ValueError,
        ["X", "'a'", "name"],
    ),
    "nothing but constants and gaps": ((pd.DataFrame({"a": [np.nan] * 30, "b": [None] * 30}), Y), ValueError, ["X"]),
    "complex numbers": ((X + 1j, Y), ValueError, ["Complex"]),
    "weights that do not match": ((X, Y, np.ones(29)), ValueError, ["sample_weight", "(29,)", "(30,)"]),
    "weights of two dimensions": ((X, Y, np.ones((30, 2))), ValueError, ["ample", "weights", "1D"]),
    "weights that are all zero": ((X, Y, np.zeros(30)), ValueError, ["sample_weight", "zero"]),
    "a negative weight": ((X, Y, spoiled(np.ones(30), -1, 5)), ValueError, ["sample_weight", "egative"]),
    "NaN among the weights": ((X, Y, spoiled(np.ones(30), np.nan, 5)), ValueError, ["sample_weight", "NaN"]),
}

WATCHED = {
    "X_val without y_val": ({"X_val": X}, ["X_val", "y_val"]),
    "y_val without X_val": ({"y_val": Y}, ["X_val", "y_val"]),
    "too few columns in X_val": ({"X_val": X[:, :2], "y_val": Y}, ["2 features", "3 features"]),
    "more outputs in y_val": ({"X_val": X, "y_val": np.column_stack([Y, Y])}, ["y_val", "2 outputs", "1"]),
    "infinity in X_val": ({"X_val": spoiled(X, np.inf, 4, 1), "y_val": Y}, ["X_val", "inf", "column 1"]),
    "NaN in y_val": ({"X_val": X, "y_val": spoiled(Y, np.nan, 4)}, ["y_val", "NaN"]),
}

# parameter -> values that it cannot have, for each estimator that has the parameter
NETWORK = {
    "scaling": ["minmax", None, 1],
    "target_scaling": ["z", None],
    "activation": ["relu", None, 3],
    "ridge": [-1e-9, np.nan, np.inf, "large", None],
    "n_jobs": [0, 1.5, "all", True],
}
SETTINGS = {
    "rvfl": {**NETWORK, "n_hidden": [0, -1, 2.5, "ten", None, True], "scope": [0, -1.0, np.nan, np.inf, "wide"]},
    "scn": {
        **NETWORK,
        "max_hidden": [0, -3, 2.5, "ten", None],
        "n_candidates": [0, -1, 1.5],
        "batch_size": [0, -1, 1.5],
        "tol": [-1e-3, np.nan, "small"],
        "scopes": [
            (),
            (0.0, 1.0),
            (-1.0, 1.0),
            (2.0, 1.0),
            (1.0, 1.0),
            3.0,
            ("a",),
            (1.0, np.inf),
            (1.0, np.nan),
            None,
        ],
        "contraction": [(), (0.0, 0.5), (0.5, 1.0), (0.9, 0.5), 0.9, ("a",), (0.5, np.nan), None],
        "criterion": ["best", None],
        "scope_search": ["last", None],
        "validation_fraction": [0, 1.0, -0.5, 2, "half", np.nan],
        "precision": ["float16", np.float32, None],
    },
    "scne": {
        "estimator": [LinearRegression(), SCNERegressor(), SCNRegressor, "scn", 3],
        "groups": [[], {}, "TEMP", 3, {"a": []}, {"a": [0, 0]}, [[0], []], [[0], [3]], [[0], [-4]], [[0], ["TEMP"]]],
        "effort": [0, 2, 6, 3.0, "3", None, True],
        "n_estimators": [0, -1, 2.5, True],
        "solver": ["newton", None, 3, "Jacobi"],
        "decorrelation": [-0.1, 2.0, 2.5, np.nan, np.inf, "much", None, True],
        "ridge": [-0.1, np.nan, np.inf, "large", None, [0.1], [0.1, 0.1, 0.1], [0.1, -0.1], {"group 1": 0.1}, []],
        "max_iter": [0, -1, 2.5],
        "tol": [-1.0, np.nan, "small"],
        "networks": ["auto", "each", None, 2],
        "trend": ["auto", "quadratic", None, True],
        "n_jobs": [0, 1.5],
        "estimator__max_hidden": [0],
        "estimator__precision": ["float16", np.float32, None],
        "estimator__scopes": [(2.0, 1.0)],
        "estimator__scaling": ["minmax", 3, ""],
        "estimator__target_scaling": ["z", 3],
    },
}
BAD_SETTINGS = [
    pytest.param(kind, name, value, id=f"{kind} {name}={str(value)[:30]}")
    for kind, table in SETTINGS.items()
    for name, values in table.items()
    for value in values
]

every = pytest.mark.parametrize("estimator", SMALL.values(), ids=SMALL.keys())
rows = pytest.mark.parametrize(("arguments", "error", "words"), ROWS.values(), ids=ROWS.keys())
watched = pytest.mark.parametrize(("arguments", "words"), WATCHED.values(), ids=WATCHED.keys())


def assert_says(caught, words):
    message = str(caught.value)
    missing = [word for word in words if word not in message]
    assert not missing, message


def assert_unfitted_and_untouched(model, before):
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is before[name] for name in before)
    with pytest.raises(NotFittedError):
        model.predict(X)


# --- rows


@rows
@every
def test_bad_rows_get_a_sentence(estimator, arguments, error, words):
    with pytest.raises(error) as caught:
        clone(estimator).fit(*arguments)
    assert_says(caught, words)


@rows
@every
def test_after_bad_rows_an_unfitted_model_is_unfitted(estimator, arguments, error, words):
    model = clone(estimator)
    before = dict(vars(model))
    with pytest.raises(error):
        model.fit(*arguments)
    assert_unfitted_and_untouched(model, before)


@rows
@every
def test_after_bad_rows_a_fitted_model_predicts_as_before(estimator, arguments, error, words):
    model = clone(estimator).fit(X, Y)
    before, prediction = dict(vars(model)), model.predict(X)
    with pytest.raises(error):
        model.fit(*arguments)
    assert all(vars(model)[name] is before[name] for name in before)
    assert vars(model).keys() == before.keys()
    assert np.array_equal(model.predict(X), prediction)


@watched
@every
def test_bad_validation_rows_get_a_sentence(estimator, arguments, words):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        clone(estimator).fit(X, Y, **arguments)
    assert_says(caught, words)


@watched
@every
def test_after_bad_validation_rows_an_unfitted_model_is_unfitted(estimator, arguments, words):
    model = clone(estimator)
    before = dict(vars(model))
    with pytest.raises(ValueError):  # noqa: PT011
        model.fit(X, Y, **arguments)
    assert_unfitted_and_untouched(model, before)


# --- settings


@pytest.mark.parametrize(("kind", "name", "value"), BAD_SETTINGS)
def test_a_bad_setting_is_named_with_its_value(kind, name, value):
    """Which argument, and what it was: for groups and ridges the entry that is wrong."""
    model = clone(SMALL[kind]).set_params(**{name: value})
    with pytest.raises((ValueError, TypeError)) as caught:
        model.fit(X, Y)
    message = str(caught.value)
    assert re.search(rf"\b{name.split('__')[-1]}\b", message), message
    if name not in ("groups", "ridge"):
        assert repr(value) in message or str(value) in message


@pytest.mark.parametrize(("kind", "name", "value"), BAD_SETTINGS)
def test_after_a_bad_setting_an_unfitted_model_is_unfitted(kind, name, value):
    model = clone(SMALL[kind]).set_params(**{name: value})
    before = dict(vars(model))
    with pytest.raises((ValueError, TypeError)):
        model.fit(X, Y)
    assert_unfitted_and_untouched(model, before)


@pytest.mark.parametrize(("kind", "name", "value"), BAD_SETTINGS)
def test_after_a_bad_setting_a_fitted_model_predicts_as_before(kind, name, value):
    model = clone(SMALL[kind]).fit(X, Y)
    before = model.predict(X)
    jobs = model.n_jobs
    model.set_params(**{name: value})
    with pytest.raises((ValueError, TypeError)):
        model.fit(X, Y)
    model.n_jobs = jobs  # predict reads it too, and refuses a bad one as fit does
    assert np.array_equal(model.predict(X), before)


GROUPS = {
    "no groups": ([], ["groups", "empty", "None"]),
    "a group without columns": ({"gas": []}, ["'gas'", "groups", "no columns"]),
    "an empty slice": ({"gas": slice(2, 2)}, ["'gas'", "no columns"]),
    "a mask of nothing": ({"gas": [False] * 3}, ["'gas'", "no columns"]),
    "a mask of another length": ({"gas": [True, False]}, ["'gas'", "length 2", "3 columns"]),
    "a column twice": ({"gas": ["SO2", 2]}, ["'gas'", "'SO2'", "more than once"]),
    "an unknown name": ({"gas": ["CO"]}, ["'gas'", "'CO'", "'TEMP', 'PRES', 'SO2'"]),
    "an unknown name in a slice": ({"gas": slice("CO", None)}, ["'gas'", "'CO'"]),
    "a position out of range": ({"gas": [3]}, ["'gas'", "position 3", "3 columns", "0 to 2"]),
    "a position before the first": ({"gas": [-4]}, ["'gas'", "position -4"]),
    "a position that is not whole": ({"gas": [0.5]}, ["'gas'", "0.5"]),
    "a slice that is not whole": ({"gas": slice(0, 1.5)}, ["'gas'", "groups", "1.5"]),
    "a step of zero": ({"gas": slice(0, 2, 0)}, ["'gas'", "groups"]),
    "no columns at all": ({"gas": None}, ["'gas'", "groups", "None"]),
    "a nested list": ({"gas": [[0]]}, ["'gas'", "[0]"]),
    "text": ("TEMP", ["groups", "'TEMP'"]),
    "a number": (2, ["groups", "2"]),
}


@pytest.mark.parametrize(("groups", "words"), GROUPS.values(), ids=GROUPS.keys())
def test_bad_groups_get_a_sentence(groups, words):
    with pytest.raises((ValueError, TypeError)) as caught:
        plain_ensemble(RVFLRegressor(3), groups=groups).fit(pandas_frame(), Y)
    assert_says(caught, words)


def test_names_without_a_frame_get_a_sentence():
    with pytest.raises(ValueError, match="no column names") as caught:
        plain_ensemble(RVFLRegressor(3), groups={"gas": ["SO2"]}).fit(X, Y)
    assert_says(caught, ["'gas'", "'SO2'", "0 to 2"])


@pytest.mark.parametrize(("value", "n_members"), [(2.0, 2), (1.5, 3), (-0.01, 3), (np.nan, 3)])
def test_lambda_out_of_range_is_told_the_range(value, n_members):
    model = DNNERegressor(RVFLRegressor(3), n_estimators=n_members, decorrelation=value)
    with pytest.raises(ValueError, match="decorrelation") as caught:
        model.fit(X, Y)
    assert_says(caught, [repr(value), "M/(M-1)", f"{n_members / (n_members - 1):g}"])


def test_lambda_just_inside_its_range_is_taken():
    DNNERegressor(RVFLRegressor(3), n_estimators=3, decorrelation=np.nextafter(1.5, 0), ridge=0.1).fit(X, Y)


RIDGES = {
    "too few": ([0.1], ["ridge", "1 values", "2 networks"]),
    "too many": ((0.1, 0.2, 0.3), ["ridge", "3 values", "2 networks"]),
    "one of them negative": ([0.1, -0.5], ["ridge", "-0.5"]),
    "an array with one negative": (np.array([0.1, -0.5]), ["ridge", "-0.5"]),
    "a group missing": ({"a": 0.1}, ["ridge", "'b'"]),
    "an unknown group": ({"a": 0.1, "b": 0.1, "z": 0.1}, ["ridge", "'z'"]),
    "one of them text": ({"a": 0.1, "b": "large"}, ["ridge", "'large'"]),
    "negative": (-0.25, ["ridge", "-0.25"]),
    "a matrix": (np.ones((2, 2)), ["ridge"]),
}


@pytest.mark.parametrize(("ridge", "words"), RIDGES.values(), ids=RIDGES.keys())
def test_bad_ridges_get_a_sentence(ridge, words):
    with pytest.raises(ValueError, match="ridge") as caught:
        plain_ensemble(RVFLRegressor(3), groups={"a": [0], "b": [1]}, ridge=ridge).fit(X, Y)
    assert_says(caught, words)


# --- settings that do not go together


@pytest.mark.parametrize("settings", [{}, {"ridge": 0.1}, {"decorrelation": 0.5}], ids=["both", "lambda", "ridge"])
def test_without_a_matrix_nothing_can_be_chosen(settings):
    with pytest.raises(ValueError, match="solver is 'matrix-free cg'") as caught:
        plain_ensemble(RVFLRegressor(3), n_estimators=2, solver="matrix-free cg", **settings).fit(X, Y)
    assert_says(caught, ["'auto'", "numbers"])


@pytest.mark.parametrize("solver", ["matrix-free pinv", "matrix-free cholesky", "matrix-free auto", "matrix-free"])
def test_without_a_matrix_direct_solvers_are_refused(solver):
    model = plain_ensemble(RVFLRegressor(3), n_estimators=2, decorrelation=0.5, ridge=0.1, solver=solver)
    with pytest.raises(ValueError, match="solver") as caught:
        model.fit(X, Y)
    assert_says(caught, [solver, "'matrix-free naive'", "'matrix-free cg'"])


def test_an_ensemble_without_a_matrix_cannot_be_solved_again():
    settings = dict(n_estimators=2, decorrelation=0.5, ridge=0.1)
    model = plain_ensemble(RVFLRegressor(3), solver="matrix-free cg", **settings).fit(X, Y)
    with pytest.raises(ValueError, match="matrix-free solver"):
        model.reweighted()
    with pytest.raises(ValueError, match="matrix-free solver"):
        _ = model.group_importances_
    with pytest.raises(AttributeError, match="holds no Gram matrix"):
        _ = model.system_
    with pytest.raises(ValueError, match="which are no longer available; use solver='cg'"):
        plain_ensemble(RVFLRegressor(3), **settings).fit(X, Y).reweighted(solver="matrix-free cg")


REWEIGHTED = {
    "a setting of the networks": ({"n_estimators": 3}, TypeError, ["'n_estimators'", "solver"]),
    "lambda out of range": ({"decorrelation": 2.0}, ValueError, ["decorrelation", "2.0"]),
    "a wrong number of ridges": ({"ridge": [0.1]}, ValueError, ["ridge", "1 values", "2 networks"]),
    "an unknown solver": ({"solver": "newton"}, ValueError, ["solver", "'newton'"]),
}


@pytest.mark.parametrize(("settings", "error", "words"), REWEIGHTED.values(), ids=REWEIGHTED.keys())
def test_solving_again_with_bad_settings_gets_a_sentence(settings, error, words):
    model = clone(SMALL["scne"]).fit(X, Y)
    before = model.predict(X)
    with pytest.raises(error) as caught:
        model.reweighted(**settings)
    assert_says(caught, words)
    assert np.array_equal(model.predict(X), before)
    assert model.get_params(deep=False)["solver"] == "auto"


# --- predictions

PREDICTIONS = {
    "too few columns": (X[:, :2], ValueError, ["X", "2 features", "3 features"]),
    "too many columns": (np.hstack([X, X]), ValueError, ["X", "6 features", "3 features"]),
    "one row without its dimension": (X[0], ValueError, ["2D array", "1D array"]),
    "no rows": (X[:0], ValueError, ["0 sample"]),
    "infinity": (spoiled(X, np.inf, 4, 1), ValueError, ["X", "inf", "column 1"]),
}


@pytest.mark.parametrize(("inputs", "error", "words"), PREDICTIONS.values(), ids=PREDICTIONS.keys())
@every
def test_bad_rows_to_predict_get_a_sentence(estimator, inputs, error, words):
    model = clone(estimator).fit(X, Y)
    with pytest.raises(error) as caught:
        model.predict(inputs)
    assert_says(caught, words)


@pytest.mark.parametrize("method", ["predict_members", "predict"])
def test_members_refuse_what_the_ensemble_refuses(method):
    model = clone(SMALL["scne"]).fit(X, Y)
    with pytest.raises(ValueError, match="2 features"):
        getattr(model, method)(X[:, :2])


@pytest.mark.parametrize("frame", [pandas_frame, polars_frame], ids=["pandas", "polars"])
def test_text_in_a_frame_to_predict_is_named(frame):
    model = RVFLRegressor(3).fit(frame(), Y)
    with pytest.raises(ValueError, match="'SO2'"):
        model.predict(frame(SO2=TEXT))


METHODS = ["predict_members", "reweighted"]


@pytest.mark.parametrize("method", METHODS)
def test_an_ensemble_that_is_not_fitted_says_so(method):
    arguments = (X,) if method == "predict_members" else ()
    with pytest.raises(NotFittedError, match="SCNERegressor"):
        getattr(SCNERegressor(), method)(*arguments)


# --- Theorem 2

DECOMPOSITION = {
    "one repeat": ({"n_repeats": 1}, ["n_repeats", "1", "2"]),
    "negative noise": ({"noise": -0.1}, ["noise", "-0.1"]),
    "text for noise": ({"noise": "some"}, ["noise", "'some'"]),
}


@pytest.mark.parametrize(("settings", "words"), DECOMPOSITION.values(), ids=DECOMPOSITION.keys())
def test_bad_settings_of_the_decomposition_get_a_sentence(settings, words):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        error_decomposition(clone(SMALL["dnne"]), X, Y, X, Y, **settings)
    assert_says(caught, words)


def test_the_decomposition_takes_one_output():
    with pytest.raises(ValueError, match="one output"):
        error_decomposition(clone(SMALL["dnne"]), X, np.column_stack([Y, Y]), X, np.column_stack([Y, Y]))
