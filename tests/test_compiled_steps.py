"""Tuning by compiled kernels takes the steps that NumPy takes, in vectors of any width."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_tuning import search_rows, solved_error

from scne import SCNERegressor, ScneWarning, listening
from scne.networks import ACTIVATIONS, TuningSettings, compiled, pool_generator, sparse_pool, tune_nodes
from scne.networks import _tuning as tuning
from scne.networks.compiled import KERNELS
from scne.networks.compiled._kernels import load_kernels

WIDTHS = [width for width in (4, 8, 16) if KERNELS and width <= KERNELS.width]


# Without a compiler tests fail; with kernels switched off those that are of kernels are left out.
not_switched_off = pytest.mark.skipif(os.environ.get("SCNE_COMPILED") == "0", reason="kernels are switched off")


@not_switched_off
def test_the_kernels_were_compiled():
    """A C compiler is part of the machines that run these tests; without kernels they would test NumPy alone."""
    assert KERNELS is not None
    assert KERNELS.width in (4, 8, 16)


@pytest.fixture(params=WIDTHS)
def width(request, monkeypatch):
    monkeypatch.setattr(tuning, "KERNELS", replace_width(request.param))
    return request.param


def replace_width(width):
    assert KERNELS is not None
    return KERNELS._replace(width=width)


def by_numpy(monkeypatch, *arguments):
    with monkeypatch.context() as patch:
        patch.setattr(tuning, "KERNELS", None)
        return tune_nodes(*arguments, np.random.default_rng(4))


@pytest.mark.parametrize("activation", ["tanh", "sigmoid"])
@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("d", "batch_rows", "n_nodes"), [(3, 32, 4), (21, 50, 11), (40, 128, 30)])
def test_steps_are_those_of_numpy(width, activation, q, weighted, d, batch_rows, n_nodes, monkeypatch):
    n = 400
    weights = np.random.default_rng(1).integers(0, 4, n).astype(float) if weighted else None
    rows = search_rows(n, d=d, q=q, weights=weights, dtype=np.float32)
    nodes = sparse_pool(pool_generator(0, 1), rows, n_nodes, [0.5, 1.0, 2.0])
    settings = TuningSettings(0.3, batch_rows)
    arguments = (rows, nodes, ACTIVATIONS[activation], False, settings)
    steps = settings.n_steps(rows)
    assert steps > 10
    compiled_nodes = tune_nodes(*arguments, np.random.default_rng(4))
    expected = by_numpy(monkeypatch, *arguments)
    moved = np.abs(expected - nodes).max()
    assert moved > 0.05
    np.testing.assert_allclose(compiled_nodes, expected, atol=2e-3 * moved)
    assert np.array_equal(compiled_nodes == 0, nodes == 0)


@pytest.mark.parametrize("activation", ["tanh", "sigmoid"])
@pytest.mark.parametrize(("n", "d", "q", "weighted"), [(130, 7, 1, False), (250, 40, 2, True)])
def test_steps_on_all_rows_are_those_of_numpy_in_double_precision(width, activation, n, d, q, weighted, monkeypatch):
    """So few rows are one batch, the same at every step, in the precision of the search."""
    weights = np.random.default_rng(1).integers(0, 4, n).astype(float) if weighted else None
    rows = search_rows(n, d=d, q=q, weights=weights)
    nodes = sparse_pool(pool_generator(0, 1), rows, 19, [0.5, 1.0, 2.0])
    arguments = (rows, nodes, ACTIVATIONS[activation], False, TuningSettings(0.4))
    assert rows.inputs.dtype == np.float64
    compiled_nodes = tune_nodes(*arguments, np.random.default_rng(4))
    expected = by_numpy(monkeypatch, *arguments)
    assert np.abs(expected - nodes).max() > 0.05
    np.testing.assert_allclose(compiled_nodes, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_features", [1, 2, 3, 4, 5, 6, 7, 8, 11, 13])
def test_columns_of_any_number_of_features(width, n_features, monkeypatch):
    """Nodes look at all features of a column or at none, which the kernels take together."""
    rows = search_rows(400, d=5 * n_features, dtype=np.float32)
    rows = replace(rows, feature_columns=np.repeat(np.arange(5), n_features))
    nodes = sparse_pool(pool_generator(0, 1), rows, 23, [1.0])
    arguments = (rows, nodes, ACTIVATIONS["tanh"], False, TuningSettings(0.1, 64))
    compiled_nodes, expected = tune_nodes(*arguments, np.random.default_rng(4)), by_numpy(monkeypatch, *arguments)
    np.testing.assert_allclose(compiled_nodes, expected, atol=2e-3 * np.abs(expected - nodes).max())


def test_one_step_has_the_gradient_of_numpy(width, monkeypatch):
    """A first step of Adam is the sign of the gradient; with a small one beside the divisor it shows its size too."""
    rows = search_rows(600, d=19, dtype=np.float32)
    nodes = sparse_pool(pool_generator(0, 1), rows, 9, [1.0])
    monkeypatch.setattr(tuning, "NO_DIVISION_BY_ZERO", 1e3)
    monkeypatch.setattr("scne.networks._numpy_steps.NO_DIVISION_BY_ZERO", 1e3)
    monkeypatch.setattr(tuning, "rates_at", lambda step, steps: np.ones(len(step)))
    monkeypatch.setattr(TuningSettings, "n_steps", lambda self, rows: 1)
    arguments = (rows, nodes, ACTIVATIONS["tanh"], False, TuningSettings(1, 64, input_rate=1e4))
    got = tune_nodes(*arguments, np.random.default_rng(4)) - nodes
    expected = by_numpy(monkeypatch, *arguments) - nodes
    np.testing.assert_allclose(got, expected, atol=1e-4 * np.abs(expected).max())


def test_extreme_arguments_stay_finite(width):
    rows = search_rows(400, d=4, dtype=np.float32)
    rows = replace(rows, inputs=rows.inputs * np.float32(1e4))
    for activation in ("tanh", "sigmoid"):
        nodes = sparse_pool(pool_generator(0, 1), rows, 8, [100.0])
        tuned = tune_nodes(rows, nodes, ACTIVATIONS[activation], False, TuningSettings(1), np.random.default_rng(0))
        assert np.isfinite(tuned).all()


def test_tuned_nodes_fit_as_well_as_those_of_numpy(width, monkeypatch):
    rows = search_rows(3_000, d=6, dtype=np.float32)
    before = sparse_pool(pool_generator(0, 1), rows, 20, [0.5, 1.0, 2.0])
    arguments = (rows, before, ACTIVATIONS["tanh"], False, TuningSettings(10))
    errors = []
    for nodes in (tune_nodes(*arguments, np.random.default_rng(4)), by_numpy(monkeypatch, *arguments)):
        errors.append(solved_error(rows, nodes, ACTIVATIONS["tanh"], False))
    assert errors[0] < 1.1 * errors[1]


@pytest.mark.parametrize(
    ("batch_rows", "epochs", "parts"),
    [(100, 200 / 1.2, range(1, 51)), pytest.param(2, 5, [10, 20, 30, 40, 50], marks=not_switched_off)],
    ids=["one step in a pass over the rows", "sixty steps"],
)
def test_a_listener_hears_of_fifty_parts_at_most(batch_rows, epochs, parts):
    rows, heard = search_rows(120, dtype=np.float32), []
    nodes = sparse_pool(pool_generator(0, 1), rows, 4, [1.0])
    settings = TuningSettings(epochs, batch_rows)
    with listening(heard.append):
        tune_nodes(rows, nodes, ACTIVATIONS["tanh"], False, settings, np.random.default_rng(0), "tuning A")
    assert [(step.stage, step.done, step.total) for step in heard] == [("tuning A", part, 50) for part in parts]


def test_a_fit_is_the_same_on_one_thread_and_on_two():
    X = np.random.default_rng(0).standard_normal((2_500, 5))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
    fits = [SCNERegressor(effort=1, random_state=0, n_jobs=jobs).fit(X, y).predict(X) for jobs in (1, 2)]
    assert np.array_equal(*fits)


@not_switched_off
def test_kernels_of_other_sources_are_not_used(tmp_path, monkeypatch):
    folder = Path(compiled.__file__).parent
    for path in folder.glob("*.[ch]"):
        shutil.copy(path, tmp_path)
    shutil.copy(folder / "kernels.so", tmp_path)
    (tmp_path / "tuning.c").write_text((tmp_path / "tuning.c").read_text() + "\n")
    monkeypatch.setattr("scne.networks.compiled._kernels._FOLDER", tmp_path)
    with pytest.warns(ScneWarning, match=r"kernels\.so was compiled from different sources"):
        assert load_kernels() is None


@pytest.mark.parametrize("content", [None, b"not a library"])
def test_without_kernels_numpy_takes_the_steps(content, tmp_path, monkeypatch):
    if content is not None:
        (tmp_path / "kernels.so").write_bytes(content)
    monkeypatch.setattr("scne.networks.compiled._kernels._FOLDER", tmp_path)
    assert load_kernels() is None


def test_they_can_be_switched_off():
    code = "from scne.networks.compiled import KERNELS; raise SystemExit(KERNELS is not None)"
    environment = {**os.environ, "SCNE_COMPILED": "0"}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
