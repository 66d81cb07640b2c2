"""The logistic function in its lower tail: relative precision, not absolute, wherever nodes are computed."""

import decimal
import os
import warnings
from importlib import import_module
from importlib.util import find_spec

import array_api_strict
import numpy as np
import pytest

from scne import SCNRegressor
from scne.networks import ACTIVATIONS, GrowingBasis, _layer, prepare_search
from scne.passes import ThreadEngine
from scne.rows import ArrayRows, ColumnScaling

# Where exp(-z) is a number of the precision, with room for its rounding.
RANGES = {"float64": (-700.0, 30.0), "float32": (-80.0, 15.0)}
SIGMOID = ACTIVATIONS["sigmoid"]
# .ci/run installs PyTorch, and runs these tests once more.
LIBRARIES = ["numpy", "array_api_strict", *(["torch"] if find_spec("torch") or "SCNE_TORCH" in os.environ else [])]


def exact_logistic(z):
    """1 / (1 + exp(-z)) in 60 digits, rounded to float64 at the end."""
    with decimal.localcontext(decimal.Context(prec=60)):
        return np.array([float(1 / (1 + (-decimal.Decimal(float(value))).exp())) for value in z])


@pytest.mark.parametrize("precision", RANGES)
@pytest.mark.parametrize("library", LIBRARIES)
def test_the_tail_is_as_precise_as_the_rest(precision, library):
    z = np.linspace(*RANGES[precision], 2_001).astype(precision)
    own = import_module(library)
    found = np.asarray(SIGMOID(own.asarray(z.copy())), dtype=np.float64)
    wanted = exact_logistic(z)
    assert (abs(found - wanted) / wanted).max() < 4 * np.finfo(precision).eps


@pytest.mark.parametrize("precision", RANGES)
@pytest.mark.parametrize("library", [np, array_api_strict])
def test_far_beyond_the_tail_it_is_zero_or_one_without_a_warning(precision, library):
    z = np.array([-1e30, -1e4, -800.0, 800.0, 1e4, 1e30], dtype=precision)
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        found = np.asarray(SIGMOID(library.asarray(z)))
    assert found.tolist() == [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]


@pytest.mark.parametrize("precision", RANGES)
def test_slopes_are_precise_in_the_tail_too(precision):
    """What a step of tuning multiplies by: h (1 - h), with the sign of the input gain."""
    z = np.linspace(RANGES[precision][0], 0.0, 500).astype(precision)
    slopes = SIGMOID.input_gain * SIGMOID.core_slope(SIGMOID.core(SIGMOID.input_gain * z))
    h = exact_logistic(z)
    np.testing.assert_allclose(slopes, h * (1 - h), rtol=6 * np.finfo(precision).eps)


# --- the search


@pytest.fixture(params=[False, True], ids=["by exp", "by powers of two"])
def powers(request, monkeypatch):
    """Pools by either form, whichever is the fast one on this processor."""
    monkeypatch.setattr(_layer, "_powers_are_fast", lambda: request.param)
    return request.param


def test_pools_are_as_precise_as_their_weights(powers):
    """A weight in single precision is off by half a unit, so h by |z| / 2 of them; the form adds a few."""
    z = np.linspace(*RANGES["float32"], 2_001)
    form = _layer.pool_activation(SIGMOID, "float32")
    assert (form.core is not SIGMOID.core) == powers
    weights = (form.input_gain * z).astype(np.float32)
    found = form.core(weights.copy()).astype(np.float64)
    wanted = exact_logistic(weights.astype(np.float64) / form.input_gain)
    assert (abs(found - wanted) / wanted).max() < 4 * np.finfo(np.float32).eps


@pytest.mark.parametrize(("name", "precision"), [("sigmoid", "float64"), ("tanh", "float32"), ("tanh", "float64")])
def test_all_but_the_logistic_function_in_single_precision_is_left_alone(name, precision, powers):
    assert _layer.pool_activation(ACTIVATIONS[name], precision) is ACTIVATIONS[name]


def test_far_beyond_the_tail_pools_are_zero_or_one_without_a_warning(powers):
    z = np.array([-1e30, -1e4, -800.0, 800.0, 1e4, 1e30])
    form = _layer.pool_activation(SIGMOID, "float32")
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        found = form.core((form.input_gain * z).astype(np.float32))
    assert found.tolist() == [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]


def pool_sums(x, y, pool, dtype):
    with ThreadEngine(1) as engine:
        one = ColumnScaling(np.zeros(1), np.ones(1))
        rows = prepare_search(ArrayRows(x, y), np.arange(1), one, one, engine, dtype=dtype)
        return GrowingBasis(rows, SIGMOID, 3, engine, np.inf).score(pool, False, False)


@pytest.mark.parametrize(("dtype", "depth"), [(np.float64, 300.0), (np.float32, 40.0)])
def test_candidates_in_the_tail_have_the_gains_of_their_shape(dtype, depth, powers):
    """exp(w x) far down the tail is all but 1 / (1 + exp(-w x)) scaled, and a gain knows no scale."""
    x = np.linspace(0, 1, 400)[:, None]
    y = np.sin(9 * x) + x
    slopes = np.array([0.5, 3.0, -20.0, 90.0])
    biases = -depth - np.maximum(slopes, 0.0)
    sums = pool_sums(x, y, np.stack([slopes, biases]), dtype)
    shapes = np.exp(x * slopes - np.maximum(slopes, 0.0))
    gains = (y.T @ shapes)[0] ** 2 / np.square(shapes).sum(axis=0)
    tolerance = 1e-11 if dtype is np.float64 else 1e-4
    np.testing.assert_allclose(sums.moments[0] ** 2 / sums.squares, gains, rtol=tolerance)


@pytest.mark.parametrize(("dtype", "deepest"), [(np.float64, 380.0), (np.float32, 56.0)])
def test_candidates_whose_squares_are_roundings_are_passed_over(dtype, deepest, powers):
    """A candidate has the gain of its shape or none: squares that underflow in part would give it any."""
    x = np.linspace(0, 1, 400)[:, None]
    y = np.sin(9 * x) + x
    biases = -np.linspace(deepest - 30.0, deepest, 200)
    sums = pool_sums(x, y, np.stack([np.ones(200), biases]), dtype)
    shape = np.exp(x[:, 0])
    gain = (y[:, 0] @ shape) ** 2 / (shape @ shape)
    counted = sums.squares > 0
    assert counted.any()
    assert not counted.all()
    found = sums.moments[0, counted] ** 2 / sums.squares[counted]
    np.testing.assert_allclose(found, gain, rtol=1e-10 if dtype is np.float64 else 1e-4)


def spikes():
    x = np.linspace(0, 1, 1_000)
    bumps = ((0.2, 10, 4), (0.5, 80, 40), (0.3, 80, 20))
    return x, sum(height * np.exp(-((rate * x - centre) ** 2)) for height, rate, centre in bumps)


PAPER = {"criterion": "paper", "scope_search": "first", "ridge": 0}


@pytest.mark.parametrize("precision", RANGES)
def test_the_search_fits_the_spikes_of_the_first_scn_paper(precision, powers):
    """27 of 50 nodes were roundings with 0.5 (1 + tanh(z / 2)), and the median error was 0.041."""
    x, y = spikes()
    errors = []
    for seed in range(5):
        model = SCNRegressor(50, **PAPER, precision=precision, random_state=seed).fit(x[:, None], y)
        errors.append(model.loss_curve_[-1] * y.std())
    assert np.median(errors) <= 0.015
