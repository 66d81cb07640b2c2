"""Contributions add up, and are the Shapley values and set terms that brute force over all coalitions gives."""

from itertools import combinations
from math import comb

import numpy as np
import pandas as pd
import pytest
import shap
from hypothesis import given, settings
from hypothesis import strategies as st

from scne import (
    DNNERegressor,
    RVFLRegressor,
    SCNEClassifier,
    SCNERegressor,
    SCNRegressor,
    listening,
)
from scne.explain import _layer_game, _sine_series, column_players, source_players


def brute_force(predict, rows, background, parts):
    """v of all coalitions of `parts`, lists of columns of frames, by predicting mixed rows."""
    values = {}
    for size in range(len(parts) + 1):
        for coalition in combinations(range(len(parts)), size):
            own = [column for player in coalition for column in parts[player]]
            mixed = pd.concat([background] * len(rows), ignore_index=True)
            repeated = rows.loc[rows.index.repeat(len(background))].reset_index(drop=True)
            mixed[own] = repeated[own]
            outputs = predict(mixed)
            values[coalition] = outputs.reshape(len(rows), len(background), -1).mean(axis=1)
    return values


def shapley(values, p):
    """Shapley values (n, p, q) by their definition."""
    shares = []
    for j in range(p):
        others = [player for player in range(p) if player != j]
        shares.append(
            sum(
                (values[tuple(sorted((*held, j)))] - values[held]) / (p * comb(p - 1, size))
                for size in range(p)
                for held in combinations(others, size)
            )
        )
    return np.stack(shares, axis=1)


def set_term(values, held):
    return sum(
        (-1) ** (len(held) - size) * values[part] for size in range(len(held) + 1) for part in combinations(held, size)
    )


def as_three(values):
    return values if values.ndim == 3 else values[:, :, None]


RNG = np.random.default_rng(5)
NUMBERS = pd.DataFrame(RNG.uniform(-2, 2, (300, 4)), columns=list("abcd"))
PRODUCT = (np.sin(2 * NUMBERS.a) + NUMBERS.b * NUMBERS.c + 0.3 * NUMBERS.d).to_numpy()
TWO = np.column_stack([PRODUCT, NUMBERS.a * NUMBERS.d])
GROUPS = {"left": ["a", "b"], "right": ["c", "d"]}
SMALL_NETWORK = SCNRegressor.tuned(effort=1, max_hidden=20)
MODELS = {
    "default": (SCNERegressor(effort=1, random_state=0), PRODUCT),
    "two outputs, blended trend": (SCNERegressor(SMALL_NETWORK, n_estimators=2, random_state=0), TWO),
    "trend taken off": (SCNERegressor(effort=1, trend="linear", random_state=0), TWO),
    "groups": (SCNERegressor(effort=1, groups=GROUPS, networks="per group", random_state=0), PRODUCT),
    "paper": (SCNERegressor.paper(groups=GROUPS, random_state=0), PRODUCT),
    "direct links": (RVFLRegressor(15, direct_link=True, random_state=0), TWO),
    "drawn": (DNNERegressor(RVFLRegressor(10, random_state=0), n_estimators=2, random_state=0), PRODUCT),
    "member weights": (
        SCNERegressor(effort=1, member_weights=[0.5, 0.2, 0.3], n_estimators=3, random_state=0),
        PRODUCT,
    ),
}


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    model, y = MODELS[request.param]
    return model.fit(NUMBERS, y)


def test_models_have_all_kinds_of_trends():
    assert {model.fit(NUMBERS, y).fitted_.trend.mode for model, y in MODELS.values()} == {
        "none",
        "taken off",
        "blended",
    }


def test_values_of_columns_are_those_of_brute_force(fitted):
    rows, background = NUMBERS[:6], NUMBERS[100:113]
    found = fitted.contributions(rows, background)
    values = brute_force(fitted.predict, rows, background, [[name] for name in "abcd"])
    assert found.names == tuple("abcd")
    np.testing.assert_allclose(as_three(found.values), shapley(values, 4), rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.base_value, fitted.predict(background).mean(axis=0), rtol=0, atol=1e-10)


def test_terms_of_sets_are_those_of_brute_force_and_sum_to_shapley_values(fitted):
    rows, background = NUMBERS[:5], NUMBERS[100:109]
    by = {"first": ["a"], "middle": ["b", "c"], "last": ["d"]}
    found = fitted.contributions(rows, background, by=by, interactions=True)
    values = brute_force(fitted.predict, rows, background, list(by.values()))
    places = {name: place for place, name in enumerate(by)}
    for members, term in zip(found.members, as_three(found.values).swapaxes(0, 1), strict=True):
        expected = set_term(values, tuple(places[name] for name in members))
        np.testing.assert_allclose(term, expected, rtol=0, atol=1e-10)
    singles = as_three(fitted.contributions(rows, background, by=by).values)
    for name, place in places.items():
        shares = [
            term / len(members)
            for members, term in zip(found.members, as_three(found.values).swapaxes(0, 1), strict=True)
            if name in members
        ]
        np.testing.assert_allclose(sum(shares), singles[:, place], rtol=0, atol=1e-10)


def test_terms_add_up_to_predictions(fitted):
    for options in ({}, {"interactions": True}, {"by": {"pair": ["a", "d"]}}, {"tolerance": 0.5}):
        found = fitted.contributions(NUMBERS[:20], NUMBERS[50:80], **options)
        np.testing.assert_allclose(found.predictions, fitted.predict(NUMBERS[:20]), rtol=0, atol=1e-10)


@pytest.fixture(scope="module")
def mixed():
    """Text, gaps, a date of its own and one in three columns, a column that says nothing."""
    rng = np.random.default_rng(3)
    n = 400
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "kind": rng.choice(["pine", "oak", "ash"], n),
            "empty": None,
            "sold": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(700, size=n), "D"),
            "year": rng.integers(2020, 2024, n),
            "month": rng.integers(1, 13, n),
            "day": rng.integers(1, 28, n),
        }
    )
    y = (
        frame["size"].fillna(0.5) * frame.kind.map({"pine": 1.0, "oak": 2.0, "ash": -1.0})
        + np.sin(frame.month)
        + frame.sold.dt.month / 6
    )
    model = SCNERegressor(effort=1, groups={"tree": ["size", "kind"], "time": ["sold", "year", "month", "day"]})
    return frame, model.set_params(random_state=0).fit(frame, y)


def test_a_text_a_gap_and_a_date_are_one_column_each(mixed):
    frame, model = mixed
    rows, background = frame[:5], frame[60:68]
    found = model.contributions(rows, background)
    assert found.names == ("size", "kind", "empty", "sold", "year, month, day")
    parts = [["size"], ["kind"], ["empty"], ["sold"], ["year", "month", "day"]]
    values = brute_force(model.predict, rows, background, parts)
    np.testing.assert_allclose(as_three(found.values), shapley(values, 5), rtol=0, atol=1e-10)
    assert not found.values[:, 2].any()


def test_sources_are_the_groups_of_the_fit_and_the_rest(mixed):
    frame, model = mixed
    rows, background = frame[:5], frame[60:68]
    found = model.contributions(rows, background, by="sources")
    assert found.names == ("tree", "time")
    values = brute_force(model.predict, rows, background, [["size", "kind"], ["sold", "year", "month", "day"]])
    np.testing.assert_allclose(as_three(found.values), shapley(values, 2), rtol=0, atol=1e-10)
    part = model.contributions(rows, background, by={"tree": ["size", "kind"]})
    assert part.names == ("tree", "other columns")
    np.testing.assert_allclose(part.values, found.values, rtol=0, atol=1e-10)


def test_of_arrays_columns_are_positions_and_gaps_are_filled():
    X = NUMBERS.to_numpy().copy()
    X[::7, 1] = np.nan
    model = SCNERegressor(effort=1, random_state=0).fit(X, PRODUCT)
    found = model.contributions(X[:20])
    assert found.names == (0, 1, 2, 3)
    np.testing.assert_allclose(found.predictions, model.predict(X[:20]), rtol=0, atol=1e-10)


@pytest.mark.parametrize("classes", [2, 3])
def test_of_a_classifier_they_are_terms_of_its_outputs(classes):
    labels = np.digitize(PRODUCT, np.quantile(PRODUCT, np.linspace(0, 1, classes + 1)[1:-1]))
    model = SCNEClassifier(effort=1, random_state=0).fit(NUMBERS, labels)
    found = model.contributions(NUMBERS[:6], NUMBERS[100:110])
    outputs = model.regressor_.predict
    values = brute_force(lambda frame: outputs(frame).reshape(len(frame), -1), NUMBERS[:6], NUMBERS[100:110], "abcd")
    assert found.values.shape == ((6, 4) if classes == 2 else (6, 4, 3))
    np.testing.assert_allclose(as_three(found.values), shapley(values, 4), rtol=0, atol=1e-10)


@settings(max_examples=40, deadline=None)
@given(
    p=st.integers(1, 9),
    n=st.integers(1, 4),
    n_background=st.integers(1, 19),
    reach=st.floats(1e-6, 30.0),
    bias=st.floats(-40.0, 40.0),
    tolerance=st.sampled_from([1e-1, 1e-4, 1e-8, 1e-12]),
    seed=st.integers(0, 2**31),
)
def test_a_series_keeps_to_its_tolerance(p, n, n_background, reach, bias, tolerance, seed):
    rng = np.random.default_rng(seed)
    rows, background = rng.normal(0, reach, (n, p)), rng.normal(0, reach, (n_background, p))
    values = {}
    for size in range(p + 1):
        for held in combinations(range(p), size):
            inside = np.isin(np.arange(p), held)
            sums = (rows * inside).sum(1)[:, None] + (background * ~inside).sum(1) + bias
            values[held] = np.tanh(sums / 2).mean(axis=1)[:, None]
    expected = shapley(values, p)[:, :, 0]
    rule = _sine_series.series_rule(p, tolerance)
    for way in (_sine_series.series_values, _sine_series._by_numpy):
        assert np.abs(way(rows, background, bias, rule) - expected).max() <= tolerance + 1e-13


def test_many_players_agree_with_their_enumeration(monkeypatch):
    """Dense nodes on ten columns: by the series, and with all coalitions."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 10))
    for activation in ("tanh", "sigmoid"):
        network = RVFLRegressor(25, activation=activation, scope=2.0, random_state=0)
        model = network.fit(X, np.column_stack([np.prod(1 + X[:, :3], axis=1), X[:, 4] * X[:, 5]]))
        with monkeypatch.context() as patch:
            # Without compiled kernels ten players are enumerated.
            patch.setattr(_layer_game, "MOST_ENUMERATED", 7)
            series = model.contributions(X[:4], X[50:61]).values
            loose = model.contributions(X[:4], X[50:61], tolerance=1e-4).values
        with monkeypatch.context() as patch:
            patch.setattr(_layer_game, "MOST_ENUMERATED", 10)
            exact = model.contributions(X[:4], X[50:61]).values
        np.testing.assert_allclose(series, exact, rtol=0, atol=1e-10)
        scale = model.fitted_.target_scaling.scale
        assert 0 < np.abs((loose - exact) / scale).max() <= 1e-4


def test_shap_finds_the_same_values_and_takes_the_explanation():
    model = SCNERegressor(effort=1, random_state=0).fit(NUMBERS, PRODUCT)
    found = model.contributions(NUMBERS[:30], NUMBERS[100:130])
    exact = shap.ExactExplainer(model.predict, shap.maskers.Independent(NUMBERS[100:130], 30))(NUMBERS[:30])
    np.testing.assert_allclose(found.values, exact.values, rtol=0, atol=1e-6)
    sampled = shap.PermutationExplainer(model.predict, shap.maskers.Independent(NUMBERS[100:130], 30), seed=0)
    errors = sampled(NUMBERS[:30], max_evals=400).values - found.values
    assert np.abs(errors).mean() < 0.02 * np.abs(found.values).mean()
    explanation = found.to_explanation()
    assert isinstance(explanation, shap.Explanation)
    assert explanation.feature_names == list("abcd")
    np.testing.assert_array_equal(explanation.data, NUMBERS[:30].to_numpy())
    np.testing.assert_allclose(explanation.values.sum(1) + explanation.base_values, model.predict(NUMBERS[:30]))
    import matplotlib.pyplot as plt

    shap.plots.beeswarm(explanation, show=False)
    shap.plots.waterfall(explanation[0], show=False)
    plt.close("all")


def test_the_same_bits_on_any_number_of_threads_and_in_any_blocks():
    model = SCNERegressor(effort=1, random_state=0).fit(NUMBERS, TWO)
    whole = model.contributions(NUMBERS, NUMBERS[:40]).values
    np.testing.assert_array_equal(model.set_params(n_jobs=1).contributions(NUMBERS, NUMBERS[:40]).values, whole)
    np.testing.assert_allclose(model.contributions(NUMBERS[7:9], NUMBERS[:40]).values, whole[7:9], rtol=0, atol=1e-12)


def test_progress_is_told_to_its_end():
    model = SCNRegressor(5, random_state=0).fit(NUMBERS, PRODUCT)
    seen = []
    with listening(seen.append):
        model.contributions(NUMBERS)
    assert [step.stage for step in seen] == ["explaining rows"] * len(seen)
    assert seen[-1].done == seen[-1].total == len(seen) > 1


def test_a_background_is_drawn_by_the_random_state():
    model = SCNRegressor(10, random_state=0).fit(NUMBERS, PRODUCT)
    first, again, other = (
        model.contributions(NUMBERS, max_background=20, random_state=seed).base_value for seed in (0, 0, 1)
    )
    assert first == again != other
    assert model.contributions(NUMBERS, max_background=20).n_background == 20
    everything = model.contributions(NUMBERS, max_background=None)
    assert everything.base_value == pytest.approx(model.predict(NUMBERS).mean())


def friedman(X):
    return {
        (0, 1): 10 * np.sin(np.pi * X[:, 0] * X[:, 1]),
        (2,): 20 * (X[:, 2] - 0.5) ** 2,
        (3,): 10 * X[:, 3],
        (4,): 5 * X[:, 4],
    }


def test_terms_of_friedmans_first_function_are_found():
    X = np.random.default_rng(0).uniform(size=(3_000, 6))
    terms = friedman(X)
    model = SCNERegressor(random_state=0).fit(X, sum(terms.values()))
    by = {"product": [0, 1], "square": [2], "line": [3], "slope": [4], "noise": [5]}
    found = model.contributions(X[:400], X[1_000:], by=by, interactions=True)
    for name, columns in list(by.items())[:4]:
        place = found.names.index(name)
        assert np.corrcoef(found.values[:, place], terms[tuple(columns)][:400])[0, 1] > 0.98
    spread = found.values.std(axis=0)
    assert spread[4:].max() < 0.1 * spread[:4].min()


def test_a_product_of_two_sources_is_their_interaction():
    X = np.random.default_rng(1).uniform(-1, 1, (3_000, 4))
    first, second = X[:, 0] + 0.5 * X[:, 1] ** 2, np.sin(2 * X[:, 2]) + X[:, 3]
    model = SCNERegressor(groups={"one": [0, 1], "two": [2, 3]}, random_state=0).fit(X, first * second)
    found = model.contributions(X[:400], X[1_000:], by="sources", interactions=True, max_background=300)
    assert found.names == ("one", "two", "one x two")
    truth = (first - first.mean()) * (second - second.mean())
    assert np.corrcoef(found.values[:, 2], truth[:400])[0, 1] > 0.98
    assert found.values[:, 0].std() < 0.15 * found.values[:, 2].std()


def test_files_are_explained_as_frames_are(tmp_path):
    model = SCNERegressor(effort=1, random_state=0).fit(NUMBERS, PRODUCT)
    NUMBERS.to_parquet(tmp_path / "rows.parquet")
    found = model.contributions(tmp_path / "rows.parquet", NUMBERS[:30])
    np.testing.assert_array_equal(found.values, model.contributions(NUMBERS, NUMBERS[:30]).values)


def test_what_cannot_be_explained_is_refused_by_name():
    model = SCNRegressor(10, random_state=0).fit(NUMBERS, PRODUCT)
    for options, words in [
        ({"by": "sources"}, "fitted without groups"),
        ({"by": "rows"}, "by is 'rows'"),
        ({"by": {"x": ["a", "b"], "y": ["b"]}}, "'x' and 'y' share columns"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"max_background": 0}, "max_background"),
    ]:
        with pytest.raises(ValueError, match=words):
            model.contributions(NUMBERS, **options)
    with pytest.raises(ValueError, match="X has one row"):
        model.contributions(NUMBERS[:1])
    wide = np.random.default_rng(0).normal(size=(50, 12))
    dense = RVFLRegressor(5, random_state=0).fit(wide, wide[:, 0])
    with pytest.raises(ValueError, match="reads 12 of the 12"):
        dense.contributions(wide, interactions=True)


def test_a_date_may_not_be_cut(mixed):
    _, model = mixed
    assert column_players(model.fitted_).names[-1] == "year, month, day"
    with pytest.raises(ValueError, match="year, month and day"):
        source_players(model.fitted_, {"one": ["year"], "two": ["month", "day"]})
