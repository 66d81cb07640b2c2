"""Nodes keep to a few sources where they are told to, and nothing changes where they are not."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scne import RVFLRegressor, SCNEClassifier, SCNERegressor, SCNRegressor, load
from scne.explain import source_players
from scne.networks import SourceLimit, pool_generator, uniform_pool

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (700, 6))
Y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) * X[:, 4] + X[:, 5]
GROUPS = {"a": [0, 1], "b": [2, 3], "c": [4]}


def sources_read(model):
    """The most sources that any node reads."""
    players = source_players(model.fitted_)
    most = 0
    for layer in model.fitted_.layers:
        of_features = players.of_columns[layer.columns[layer.scaling.feature_columns]]
        most = max(most, sum(layer.weights[of_features == p].any(axis=0) for p in np.unique(of_features)).max())
    return most


def fitted(most, **settings):
    settings = {"groups": GROUPS, "random_state": 0, **settings}
    if settings.get("estimator") is None:
        settings["effort"] = 1
    return SCNERegressor(sources_per_node=most, **settings).fit(X, Y)


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("base", [None, SCNRegressor(25), SCNRegressor(25, batch_size=3, pool="sparse")])
def test_no_node_reads_more_sources(most, base):
    model = fitted(most, estimator=base, n_estimators=2)
    assert sources_read(model) == most
    terms = model.contributions(X[:9], X[50:70], by="sources", interactions=True)
    assert max(map(len, terms.members)) == most
    np.testing.assert_allclose(terms.predictions, model.predict(X[:9]), rtol=0, atol=1e-10)


def test_columns_in_no_group_are_one_source():
    model = fitted(1)
    names = source_players(model.fitted_).names
    assert names[-1] == "other columns"
    terms = model.contributions(X[:50], X[50:70], by="sources")
    assert np.abs(terms.values[:, -1]).max() > 0.3


def test_a_product_of_two_sources_needs_nodes_on_both():
    errors = [np.mean((fitted(most).predict(X) - Y) ** 2) for most in (1, 2)]
    assert errors[1] < 0.3 * errors[0]


def test_nodes_that_are_added_keep_to_it_too(tmp_path):
    model = fitted(1, estimator=SCNRegressor(10), n_estimators=2)
    model.save(tmp_path / "model.scne")
    again = load(tmp_path / "model.scne")
    assert again.sources_per_node == 1
    again.add_nodes(6, X, Y)
    assert again.n_hidden_ == [16, 16]
    assert sources_read(again) == 1


def test_the_same_bits_on_any_number_of_threads():
    first, second = (fitted(2, n_jobs=jobs).predict(X) for jobs in (1, 2))
    np.testing.assert_array_equal(first, second)


def test_a_frame_with_text_and_a_classifier():
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(kind=RNG.choice(["x", "y", "z"], len(X)))
    groups = {"numbers": ["a", "b"], "others": ["c", "kind"]}
    model = SCNEClassifier(effort=1, groups=groups, sources_per_node=1, random_state=0)
    model.fit(frame, np.where(Y > 0, "up", "down"))
    assert sources_read(model.regressor_) == 1


@settings(max_examples=30, deadline=None)
@given(
    of_columns=st.lists(st.integers(0, 4), min_size=1, max_size=9),
    most=st.integers(1, 6),
    seed=st.integers(0, 2**31),
)
def test_uniform_pools_look_at_whole_sources(of_columns, most, seed):
    pool = uniform_pool(pool_generator(seed, 1), len(of_columns), 40, [1.0], SourceLimit(tuple(of_columns), most))
    sources = np.array(of_columns)
    read = np.array([(pool[:-1][sources == source] != 0).all(axis=0) for source in np.unique(sources)])
    touched = np.array([(pool[:-1][sources == source] != 0).any(axis=0) for source in np.unique(sources)])
    np.testing.assert_array_equal(read, touched)
    counts = read.sum(axis=0)
    assert counts.min() >= 1
    # Every number of sources has its turn.
    assert set(counts) == set(range(1, min(most, len(read)) + 1))


def test_what_cannot_be_is_refused_by_name():
    for parameters, words in [
        ({"most": 0}, "sources_per_node is 0, but it must be a whole number of at least 1"),
        ({"most": 1, "groups": None}, "there are no groups to be the sources"),
        ({"most": 1, "groups": {"a": [0, 1], "b": [1, 2]}}, "groups 'a' and 'b' share columns"),
        ({"most": 1, "estimator": RVFLRegressor(10)}, "nodes of RVFL networks are drawn on all columns"),
    ]:
        with pytest.raises(ValueError, match=words):
            fitted(**parameters)
