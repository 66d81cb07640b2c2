"""A search by the compiled kernel finds the nodes that NumPy finds, in vectors of any width."""

from dataclasses import replace

import numpy as np
import pytest
from test_tuning import search_rows

from scne.networks import SearchRows, SearchSettings, build_network, search_kernels
from scne.networks import _builder as builder
from scne.networks import _compiled_search as compiled_search
from scne.networks.compiled import KERNELS
from scne.passes import ThreadEngine, listening

WIDTHS = [width for width in (4, 8, 16) if KERNELS and width <= KERNELS.width]
SETTINGS = SearchSettings(
    max_hidden=30,
    tol=1e-4,
    n_candidates=20,
    batch_size=2,
    scopes=(0.3, 1.2, 5.0),
    contraction=(0.9, 0.999, 0.999999),
    scope_search="together",
    activation="tanh",
    criterion="orthogonal",
    direct_link=False,
    ridge=1e-6,
    pool="sparse",
)


@pytest.fixture(params=WIDTHS)
def width(request, monkeypatch):
    monkeypatch.setattr(compiled_search, "KERNELS", KERNELS._replace(width=request.param))
    return request.param


def found(rows, settings, resume=None):
    with ThreadEngine(1) as engine:
        return build_network(rows, settings, 3, 1, engine, 1e9, resume=resume)


def found_by_numpy(monkeypatch, rows, settings):
    with monkeypatch.context() as patch:
        patch.setattr(builder, "search_kernels", lambda *arguments: None)
        return found(rows, settings)


def assert_same(one, other, tolerance):
    assert one.weights.shape == other.weights.shape
    np.testing.assert_array_equal(one.weights, other.weights)
    np.testing.assert_array_equal(one.biases, other.biases)
    np.testing.assert_array_equal(one.contractions, other.contractions)
    np.testing.assert_array_equal(one.scopes, other.scopes)
    np.testing.assert_allclose(one.training_curve, other.training_curve, rtol=tolerance)
    assert one.stop_reason is other.stop_reason


@pytest.mark.parametrize("activation", ["tanh", "sigmoid"])
@pytest.mark.parametrize(("q", "weighted"), [(1, False), (3, True)])
@pytest.mark.parametrize("n", [90, 700])
def test_nodes_are_those_of_numpy(width, activation, q, weighted, n, monkeypatch):
    weights = np.random.default_rng(1).integers(0, 4, n).astype(float) if weighted else None
    rows = search_rows(n, d=7, q=q, weights=weights)
    settings = replace(SETTINGS, activation=activation)
    assert search_kernels(rows, settings, 1e9) is not None
    assert_same(found(rows, settings), found_by_numpy(monkeypatch, rows, settings), 1e-9)


def test_single_precision_finds_the_same_nodes(width, monkeypatch):
    rows = search_rows(1_500, d=9, dtype=np.float32)
    assert_same(found(rows, SETTINGS), found_by_numpy(monkeypatch, rows, SETTINGS), 1e-5)


@pytest.mark.parametrize("batch_size", [1, 2, 5])
@pytest.mark.parametrize("scope_search", ["together", "first"])
def test_batches_and_scopes(width, batch_size, scope_search, monkeypatch):
    rows = replace(search_rows(300, d=12), feature_columns=np.repeat(np.arange(4), 3))
    settings = replace(SETTINGS, batch_size=batch_size, scope_search=scope_search, ridge=0.01)
    assert_same(found(rows, settings), found_by_numpy(monkeypatch, rows, settings), 1e-9)


def test_candidates_that_depend_on_present_nodes_are_passed_over(width, monkeypatch):
    """On three different rows there are no more than three independent nodes, whatever a pool offers."""
    rows = search_rows(3, d=2)
    settings = replace(SETTINGS, ridge=0.0, tol=0.0)
    one, other = found(rows, settings), found_by_numpy(monkeypatch, rows, settings)
    assert one.weights.shape[1] == other.weights.shape[1] <= 3
    assert one.stop_reason is other.stop_reason


def test_a_constant_target_gets_one_node(width):
    rows = search_rows(100, d=3)
    assert found(replace(rows, targets=np.zeros_like(rows.targets)), SETTINGS).weights.shape == (3, 1)


def test_a_search_that_was_cut_goes_on_to_the_same_nodes(width):
    rows, heard = search_rows(300, d=5), []

    def stop_at_ten(step):
        heard.append(step.done)
        if step.done >= 10:
            raise StopIteration

    with listening(stop_at_ten):
        cut = found(rows, SETTINGS)
    assert cut.chosen is not None
    assert len(cut.chosen.weights) == 10
    assert_same(found(rows, SETTINGS, cut.chosen), found(rows, SETTINGS), 1e-9)


@pytest.mark.parametrize(
    "change", [{"pool": "uniform"}, {"criterion": "paper"}, {"direct_link": True}], ids=["uniform", "paper", "links"]
)
def test_other_searches_are_left_to_numpy(change):
    assert search_kernels(search_rows(100), replace(SETTINGS, **change), 1e9) is None


def test_rows_that_do_not_suit_are_left_to_numpy():
    rows = search_rows(5_000)
    assert search_kernels(rows, SETTINGS, 1e9) is None
    few = search_rows(100)
    assert search_kernels(few, SETTINGS, 1e3) is None
    held_out = SearchRows(few.inputs, few.targets, None, 80, 80.0, 20.0)
    assert search_kernels(held_out, SETTINGS, 1e9) is None
