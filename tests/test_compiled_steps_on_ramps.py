"""Steps of tuning that look ramps up are those that multiply them, and those of NumPy."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from test_compiled_steps import by_numpy, replace_width
from test_tuning import search_rows

from scne.networks import ACTIVATIONS, TuningSettings, pool_generator, sparse_pool, tune_nodes
from scne.networks import _tuning as tuning
from scne.networks._lookups import FEWEST_RAMPS, WIDTH_OF_LOOKUPS, LookupBlocks, ramp_heights
from scne.networks.compiled import KERNELS
from scne.rows import ColumnScaling, RampScaling

looks_up = pytest.mark.skipif(
    KERNELS is None or KERNELS.width < WIDTH_OF_LOOKUPS, reason="this processor multiplies ramps"
)


def ramp_scaling(counts):
    """Columns with so many ramps between equally distant quantiles of a normal distribution's middle."""
    plain = ColumnScaling(np.zeros(len(counts)), np.ones(len(counts)))
    knots = [np.linspace(-1.5, 1.5, count + 1) for count in counts]
    starts = np.concatenate([some[:-1] for some in knots])
    widths = np.concatenate([np.diff(some) for some in knots])
    return RampScaling(plain, np.repeat(np.arange(len(counts)), counts), starts, widths)


def rows_on_ramps(counts, n=500, q=1, weighted=False):
    weights = np.random.default_rng(1).integers(0, 4, n).astype(float) if weighted else None
    rows, scaling = search_rows(n, d=len(counts), q=q, weights=weights), ramp_scaling(counts)
    features = np.hstack([scaling.apply(rows.inputs[:, :-1]), rows.inputs[:, -1:]]).astype(np.float32)
    return replace(rows, inputs=features, feature_columns=scaling.feature_columns, n_given=len(counts))


@looks_up
@pytest.mark.parametrize("activation", ["tanh", "sigmoid"])
@pytest.mark.parametrize(("q", "weighted"), [(1, False), (3, True)])
@pytest.mark.parametrize(
    ("counts", "n_nodes"),
    [([6, 0], 3), ([12, 7, 6], 16), ([16, 0, 12, 1, 5, 8], 21), ([17, 32, 9, 3], 33), ([32] * 6, 90)],
)
def test_steps_are_those_of_numpy(counts, n_nodes, q, weighted, activation, monkeypatch):
    rows = rows_on_ramps(counts, q=q, weighted=weighted)
    nodes = sparse_pool(pool_generator(0, 1), rows, n_nodes, [0.5, 1.0, 2.0])
    looked_up = [count for count in counts if count >= FEWEST_RAMPS]
    assert [len(ramps) for ramps in rows.heights.ramps] == looked_up
    settings = TuningSettings(0.2, 100)
    assert settings.n_steps(rows) > 10
    arguments = (rows, nodes, ACTIVATIONS[activation], False, settings)
    expected = by_numpy(monkeypatch, *arguments)
    moved = np.abs(expected - nodes).max()
    assert moved > 0.05
    tuned = tune_nodes(*arguments, np.random.default_rng(4))
    np.testing.assert_allclose(tuned, expected, atol=3e-3 * moved)
    assert np.array_equal(tuned == 0, nodes == 0)
    # Vectors of eight multiply.
    monkeypatch.setattr(tuning, "KERNELS", replace_width(8))
    np.testing.assert_allclose(tune_nodes(*arguments, np.random.default_rng(4)), expected, atol=3e-3 * moved)


@looks_up
@pytest.mark.parametrize("counts", [[8, 12], [32, 7, 0]])
def test_one_step_has_the_gradient_of_numpy(counts, monkeypatch):
    """As in test_compiled_steps.py: beside a large divisor the first step of Adam shows the gradient's size."""
    rows = rows_on_ramps(counts, n=600)
    nodes = sparse_pool(pool_generator(0, 1), rows, 19, [1.0])
    monkeypatch.setattr(tuning, "NO_DIVISION_BY_ZERO", 1e3)
    monkeypatch.setattr("scne.networks._numpy_steps.NO_DIVISION_BY_ZERO", 1e3)
    monkeypatch.setattr(tuning, "rates_at", lambda step, steps: np.ones(len(step)))
    monkeypatch.setattr(TuningSettings, "n_steps", lambda self, rows: 1)
    arguments = (rows, nodes, ACTIVATIONS["tanh"], False, TuningSettings(1, 64, input_rate=1e4))
    got = tune_nodes(*arguments, np.random.default_rng(4)) - nodes
    expected = by_numpy(monkeypatch, *arguments) - nodes
    np.testing.assert_allclose(got, expected, atol=1e-4 * np.abs(expected).max())


@looks_up
def test_a_batch_of_all_rows_is_gathered_once(monkeypatch):
    rows = rows_on_ramps([9, 6], n=200)
    nodes = sparse_pool(pool_generator(0, 1), rows, 5, [1.0])
    arguments = (rows, nodes, ACTIVATIONS["tanh"], False, TuningSettings(0.2))
    assert rows.n_training <= TuningSettings(1).batch_rows
    expected = by_numpy(monkeypatch, *arguments)
    tuned = tune_nodes(*arguments, np.random.default_rng(4))
    np.testing.assert_allclose(tuned, expected, atol=3e-3 * np.abs(expected - nodes).max())


def test_heights_say_what_all_ramps_are():
    rows, counts = rows_on_ramps([8, 2, 30]), [8, 30]
    heights = rows.heights
    assert heights.features.tolist() == [0, 1, 2, 11, 12, rows.n_columns]
    np.testing.assert_array_equal(heights.inputs[:, :6], rows.inputs[: rows.n_training, heights.features])
    for height, count, ramps in zip(heights.inputs[:, 6:].T, counts, heights.ramps, strict=True):
        assert height.min() == 0.0
        assert height.max() == 2.0 * count
        again = np.clip(height[:, None] - 2.0 * np.arange(count) - 1.0, -1.0, 1.0)
        np.testing.assert_allclose(again, rows.inputs[: rows.n_training, ramps], atol=1e-5)


@pytest.mark.parametrize("change", ["another order", "other features"])
def test_features_that_are_no_ramps_in_a_row_are_multiplied(change):
    rows = rows_on_ramps([7, 0])
    inputs = rows.inputs.copy()
    if change == "another order":
        inputs[:, [3, 4]] = inputs[:, [4, 3]]
    else:
        inputs[:, 2:-1] = np.random.default_rng(0).standard_normal((len(inputs), 7))
    places = np.array([0, 1, *[0] * (inputs.shape[1] - 3)])
    assert ramp_heights(inputs, places) is None
    assert rows.heights is not None


def test_weights_stand_in_rows_by_nodes():
    weights = np.arange(1.0, 19.0).reshape(9, 2)
    weights[1:8, 1] = 0.0
    blocks = LookupBlocks(weights, [np.arange(1, 8)], 2)
    assert (blocks.n_rows, blocks.size) == (1, 16)
    rows = blocks.rows(weights)
    assert rows.tolist() == [*weights[1:8, 0].tolist(), *[0.0] * 9]
    back = np.zeros_like(weights)
    back.ravel()[blocks.places] = rows[blocks.entries]
    assert np.array_equal(back[1:8], weights[1:8])


SWITCH = """
import numpy as np
from scne import SCNERegressor

X = np.random.default_rng(0).normal(size=(600, 6))
X[:, 0] = X[:, 0] > 0
print(SCNERegressor(effort=1, random_state=0).fit(X, X[:, 0]).score(X, X[:, 0]))
"""


def test_columns_whose_ramps_no_node_looks_at_take_no_memory_of_others():
    """In a process of its own, which an overflow would end."""
    done = subprocess.run(
        [sys.executable, "-c", SWITCH], env={**os.environ, "MALLOC_CHECK_": "3"}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) > 0.999
