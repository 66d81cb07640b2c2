"""Hidden outputs by compiled kernels are those of NumPy, row by row, in vectors of any width."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from scne import SCNERegressor, load
from scne.networks import ACTIVATIONS, HiddenLayer, each_outputs
from scne.networks._compiled_layer import CompiledTerms, compile_layer
from scne.networks._features import put_features
from scne.networks.compiled import KERNELS
from scne.rows import ColumnScaling, RampScaling

# One for each size of the tables in which kernels look up what the ramps of a column come to.
RAMPS_THAT_MEET = [0, 1, 4, 7, 8, 12, 16, 25, 32]
WIDTHS = [width for width in (4, 8, 16) if KERNELS and width <= KERNELS.width]


def layer_of(n_nodes, activation, n_columns=5, n_ramps=12, share=0.3, reach=1.0, seed=0, meet=False):
    """A layer on columns far from zero, of which a third of the nodes look at all features.

    Ramps meet end to end, as a fit makes them, or lie anywhere.
    """
    rng = np.random.default_rng(seed)
    plain = ColumnScaling(rng.normal(50.0, 5.0, n_columns), rng.uniform(0.5, 2.0, n_columns))
    if meet:
        sources = np.repeat(np.arange(n_columns), rng.permutation(RAMPS_THAT_MEET)[:n_columns])
        n_ramps = len(sources)
        widths = rng.uniform(0.1, 3.0, n_ramps)
        starts = np.concatenate(
            [40.0 + np.cumsum(widths[sources == c]) - widths[sources == c] for c in range(n_columns)]
        )
    else:
        sources = np.sort(rng.integers(n_columns, size=n_ramps))
        starts, widths = rng.normal(50.0, 5.0, n_ramps), rng.uniform(0.1, 5.0, n_ramps)
    scaling = RampScaling(plain, sources, starts, widths)
    weights = rng.normal(0.0, reach, (n_columns + n_ramps, n_nodes))
    weights[:, n_nodes // 3 :][rng.random(weights[:, n_nodes // 3 :].shape) > share] = 0.0
    return HiddenLayer(np.arange(n_columns), scaling, weights, rng.normal(size=n_nodes), activation)


def inputs_of(layer, n, seed=1):
    return np.random.default_rng(seed).normal(50.0, 6.0, (n, len(layer.columns)))


def by_numpy(layer, inputs):
    z = layer.scaling.apply(inputs[:, layer.columns]) @ layer.weights + layer.biases
    return ACTIVATIONS[layer.activation](z)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("activation", ["tanh", "sigmoid"])
@pytest.mark.parametrize("n_nodes", [1, 4, 7, 30])
@pytest.mark.parametrize("n", [1, 3, 63, 64, 65, 200])
@pytest.mark.parametrize("meet", [False, True])
def test_outputs_are_those_of_numpy(width, activation, n_nodes, n, meet):
    layer = layer_of(n_nodes, activation, n_columns=9 if meet else 5, reach=0.5 if meet else 1.0, meet=meet)
    inputs = inputs_of(layer, n)
    kernels = KERNELS._replace(width=width)
    nodes = compile_layer(layer, kernels)
    expected = by_numpy(layer, inputs)
    np.testing.assert_allclose(CompiledTerms([nodes]).outputs(inputs), expected, rtol=1e-12, atol=1e-14)
    for q in (1, 3):
        betas = np.random.default_rng(2).standard_normal((n_nodes, q))
        product = CompiledTerms([nodes], [betas]).outputs(inputs)
        np.testing.assert_allclose(product, expected @ betas, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_ramps", [0, 1, 12, 40])
def test_features_of_a_search_have_the_bits_of_numpy(width, dtype, n_ramps, monkeypatch):
    monkeypatch.setattr("scne.networks._features.KERNELS", KERNELS._replace(width=width))
    layer = layer_of(3, "tanh", n_ramps=n_ramps)
    inputs = inputs_of(layer, 77)
    # Beyond both ends of all ramps, and beyond what columns are cut off at.
    inputs[0], inputs[1] = 1e3, -1e3
    features = np.full((77, 6 + n_ramps), 7.0, dtype=dtype)
    put_features(layer.scaling, inputs, features[:, :-1])
    np.testing.assert_array_equal(features[:, :-1], layer.scaling.apply(inputs).astype(dtype))
    assert (features[:, -1] == 7.0).all()


@pytest.mark.parametrize("width", WIDTHS)
def test_activations_are_precise_to_the_last_digits_everywhere(width):
    """One node on one column is phi itself: near zero, in the tails, and far beyond them."""
    sizes = np.concatenate([[0.0], np.geomspace(1e-300, 1e-3, 300), np.linspace(0.001, 45.0, 5_000), [700.0, 1e300]])
    z = np.concatenate([sizes, -sizes])[:, None]
    scaling = ColumnScaling(np.zeros(1), np.ones(1))
    for logistic, phi in ((False, np.tanh), (True, lambda x: 1.0 / (1.0 + np.exp(-x)))):
        layer = HiddenLayer(np.arange(1), scaling, np.ones((1, 1)), np.zeros(1), "sigmoid" if logistic else "tanh")
        with np.errstate(over="ignore"):
            expected = phi(z.astype(np.longdouble)).astype(float)
        got = CompiledTerms([compile_layer(layer, KERNELS._replace(width=width))]).outputs(z)
        # Of the logistic function, as NumPy computes it, what lies below 1e-300 may be zero.
        np.testing.assert_allclose(got, expected, rtol=1e-15 * 4, atol=1e-300)
        assert (np.sign(got) == np.sign(expected))[expected > 1e-300].all()


@pytest.mark.skipif(KERNELS is None, reason="products of NumPy depend on the number of rows")
@pytest.mark.parametrize("meet", [False, True])
def test_a_row_has_the_same_bits_wherever_it_stands(meet):
    layer = layer_of(30, "tanh", meet=meet)
    inputs = inputs_of(layer, 300)
    together = layer.outputs(inputs)
    for start, stop in ((0, 1), (1, 3), (5, 70), (64, 300), (131, 132)):
        assert np.array_equal(layer.outputs(inputs[start:stop]), together[start:stop])


@pytest.mark.parametrize("n_nodes", [0, 6])
def test_direct_links_follow_the_nodes(n_nodes):
    """A trend is a layer of direct links without a node."""
    layer = replace(layer_of(n_nodes, "tanh"), direct_link=True)
    inputs = inputs_of(layer, 70)
    expected = np.hstack([by_numpy(layer, inputs), layer.scaling.apply(inputs)[:, :5]])
    np.testing.assert_allclose(layer.outputs(inputs), expected, rtol=1e-12, atol=1e-14)
    betas = np.random.default_rng(3).standard_normal((n_nodes + 5, 2))
    (product,) = each_outputs([layer], inputs, betas=[betas])
    np.testing.assert_allclose(product, expected @ betas, rtol=1e-11, atol=1e-11)


def test_neighbours_share_columns_only_if_these_are_the_same():
    layer = layer_of(6, "tanh")
    other = replace(layer_of(4, "tanh", seed=5), columns=np.array([4, 3, 2, 1, 0]))
    moved = replace(layer, columns=other.columns)
    inputs = inputs_of(layer, 20)
    for together in ([layer, other, layer], [layer, moved, moved]):
        for one, outputs in zip(together, each_outputs(together, inputs), strict=True):
            np.testing.assert_allclose(outputs, by_numpy(one, inputs), rtol=1e-12, atol=1e-14)


def test_a_model_that_has_predicted_can_be_pickled():
    X = np.random.default_rng(0).standard_normal((300, 3))
    model = SCNERegressor(effort=1, random_state=0).fit(X, X[:, 0] * X[:, 1])
    before = model.predict(X)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), before)


@pytest.mark.parametrize("trend", ["none", "judged", "linear"])
def test_networks_on_the_same_features_predict_as_one(tmp_path, trend):
    """Also those of a file, whose scalings are objects of their own: with the same bits."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 4))
    y = np.stack([X[:, 0] + np.sin(2 * X[:, 1]), X[:, 2] * X[:, 3]], axis=1)
    model = SCNERegressor(effort=1, n_estimators=5, trend=trend, random_state=0).fit(X, y)
    fitted = model.fitted_
    layers, weights = fitted.terms()
    joined = fitted.joined_terms[0]
    assert len(joined) < len(layers)
    assert sum(layer.n_nodes for layer in joined) == sum(layer.n_nodes for layer in layers)
    mean = sum(layer.outputs(X) @ beta for layer, beta in zip(layers, weights, strict=True)) / len(layers)
    np.testing.assert_allclose(model.predict(X), fitted.target_scaling.undo(mean), rtol=1e-12, atol=1e-12)
    model.save(tmp_path / "model.scne")
    loaded = load(tmp_path / "model.scne")
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert len(loaded.fitted_.joined_terms[0]) == len(joined)
    assert "joined_terms" not in pickle.loads(pickle.dumps(model)).fitted_.__dict__


def test_layers_that_differ_in_anything_stay_apart():
    X = np.random.default_rng(0).standard_normal((300, 3))
    fitted = SCNERegressor(effort=1, n_estimators=2, trend="none", random_state=0).fit(X, X[:, 0]).fitted_
    first, second = fitted.members
    alike = replace(second, layer=replace(second.layer, scaling=first.layer.scaling))
    assert len(replace(fitted, members=(first, alike)).joined_terms[0]) == 1
    plain = alike.layer.scaling.columns
    moved = replace(alike.layer.scaling, columns=replace(plain, shift=plain.shift + 1e-9))
    others = {
        "columns": replace(alike.layer, columns=alike.layer.columns[::-1].copy()),
        "activation": replace(alike.layer, activation="sigmoid"),
        "scaling": replace(alike.layer, scaling=moved),
    }
    for name, layer in others.items():
        members = first, replace(alike, layer=layer)
        assert len(replace(fitted, members=members).joined_terms[0]) == 2, name


def test_a_prediction_is_that_of_the_plain_sum():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2_300, 4))
    model = SCNERegressor(effort=1, trend="none", random_state=0).fit(X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2])
    fitted = model.fitted_
    total = 0.0
    for member, beta in zip(fitted.members, model.output_weights_, strict=True):
        total = total + by_numpy(member.layer, X) @ np.reshape(beta, (len(member.layer.biases), -1))
    expected = fitted.target_scaling.undo(total / len(fitted.members))[:, 0]
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-10, atol=1e-10)
