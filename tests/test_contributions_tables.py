"""Values of coalitions that are looked up, for many rows, are those that are computed pair by pair."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_contributions import GROUPS, MODELS, NUMBERS, PRODUCT

from scne import SCNERegressor, SCNRegressor
from scne.explain import _contributions, _tabled_nodes
from scne.explain._value_tables import CELL_WIDTHS, GrowingTables, cell_error
from scne.networks import ACTIVATIONS, KERNELS

pytestmark = pytest.mark.skipif(KERNELS is None, reason="tables are read by compiled kernels")
BY = {"first": ["a"], "middle": ["b", "c"], "last": ["d"]}


def both(monkeypatch, model, rows, background, **options):
    """The same contributions pair by pair, and by tables."""
    plain = model.contributions(rows, background, **options)
    looked_up = []
    with monkeypatch.context() as patch:
        patch.setattr(_contributions, "FEWEST_FOR_TABLES", 1)
        inner = _tabled_nodes.TabledNodes.add
        patch.setattr(
            _tabled_nodes.TabledNodes, "add", lambda nodes, *given: looked_up.append(1) or inner(nodes, *given)
        )
        by_tables = model.contributions(rows, background, **options)
    assert looked_up
    return plain, by_tables


@pytest.mark.parametrize("options", [{}, {"by": BY}, {"by": BY, "interactions": True}])
@pytest.mark.parametrize("name", MODELS)
def test_every_model_says_the_same_by_tables(monkeypatch, name, options):
    model, y = MODELS[name]
    model.fit(NUMBERS, y)
    rows = NUMBERS[:70].copy()
    # Far out tables are flat.
    rows.iloc[3] *= 1e6
    plain, by_tables = both(monkeypatch, model, rows, NUMBERS[100:113], **options)
    scale = max(1.0, np.abs(plain.predictions).max())
    np.testing.assert_allclose(by_tables.values, plain.values, rtol=0, atol=1e-10 * scale)
    np.testing.assert_allclose(by_tables.predictions, model.predict(rows), rtol=0, atol=1e-10 * scale)


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(["tanh", "sigmoid"]),
    reach=st.floats(1e-3, 60.0),
    middle=st.floats(-80.0, 80.0),
    width=st.sampled_from(CELL_WIDTHS),
    seed=st.integers(0, 2**31),
)
def test_a_cell_is_as_close_as_is_promised(name, reach, middle, width, seed):
    rng, phi = np.random.default_rng(seed), ACTIVATIONS[name]
    shifts = middle + rng.normal(0, reach, 7)
    tables = GrowingTables(1, lambda table: shifts, phi, phi.span, width)
    s = rng.uniform(*tables.limits[0], 50)
    positions = s * tables.per_cell
    for part in (positions[:5], positions):
        tables.cover(np.array([[part.min(), part.max()]]))
    cells = np.floor(positions).astype(int)
    rows = tables.now.coefficients[0][cells - tables.now.firsts[0]]
    found = (rows * (2 * (positions - cells) - 1)[:, None] ** np.arange(8)).sum(axis=1)
    exact = phi(s[:, None] + shifts).mean(axis=1)
    assert np.abs(found - exact).max() <= 0.5 * phi.span * cell_error(width) + 1e-14


def test_the_same_bits_on_any_number_of_threads_and_in_any_order_of_growing(monkeypatch):
    monkeypatch.setattr(_contributions, "FEWEST_FOR_TABLES", 1)
    monkeypatch.setattr(_contributions, "TABLED_ROWS", 64)
    model = SCNERegressor(effort=1, groups=GROUPS, random_state=0).fit(NUMBERS, PRODUCT)
    whole = model.contributions(NUMBERS, NUMBERS[:40], by="sources").values
    one = model.set_params(n_jobs=1).contributions(NUMBERS, NUMBERS[:40], by="sources").values
    np.testing.assert_array_equal(one, whole)
    # Tables that begin elsewhere.
    later = model.contributions(NUMBERS[64:192], NUMBERS[:40], by="sources").values
    np.testing.assert_array_equal(later, whole[64:192])


def test_nodes_that_read_many_players_are_computed_pair_by_pair(monkeypatch):
    X = np.random.default_rng(0).uniform(-1, 1, (150, 6))
    model = SCNRegressor(5, random_state=0).fit(X, np.prod(1 + X, axis=1))
    plain = model.contributions(X, X[:9])
    monkeypatch.setattr(_contributions, "FEWEST_FOR_TABLES", 1)
    np.testing.assert_array_equal(model.contributions(X, X[:9]).values, plain.values)


def test_a_smaller_tolerance_than_that_of_a_cell_is_kept(monkeypatch):
    model = SCNERegressor(effort=1, groups=GROUPS, random_state=0).fit(NUMBERS, PRODUCT)
    plain = model.contributions(NUMBERS[:50], NUMBERS[:9], by="sources", tolerance=1e-16)
    monkeypatch.setattr(_contributions, "FEWEST_FOR_TABLES", 1)
    found = model.contributions(NUMBERS[:50], NUMBERS[:9], by="sources", tolerance=1e-16)
    np.testing.assert_array_equal(found.values, plain.values)


def test_narrower_vectors_say_the_same(monkeypatch):
    model = SCNERegressor(effort=1, groups=GROUPS, random_state=0)
    model.fit(NUMBERS, np.column_stack([PRODUCT, NUMBERS.a]))
    monkeypatch.setattr(_contributions, "FEWEST_FOR_TABLES", 1)
    widths = [width for width in (4, 8, 16) if width <= KERNELS.width]
    found = []
    for width in widths:
        monkeypatch.setattr(_tabled_nodes, "KERNELS", KERNELS._replace(width=width))
        found.append(model.contributions(NUMBERS[:77], NUMBERS[:9], by="sources").values)
    for values in found[1:]:
        np.testing.assert_allclose(values, found[0], rtol=0, atol=1e-12)


def test_the_eighth_derivative_of_tanh_is_as_small_as_is_claimed():
    """d/dz of a polynomial in tanh is its derivative times 1 - tanh^2."""
    t = np.polynomial.Polynomial([0.0, 1.0])
    derivative = t
    for _ in range(8):
        derivative = derivative.deriv() * (1 - t**2)
    assert np.abs(derivative(np.linspace(-1, 1, 20_001))).max() / 40_320 < 0.04
