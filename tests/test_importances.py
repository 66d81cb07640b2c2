"""What networks and columns are worth: against refits from scratch, known functions, predictions of shuffled rows."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from ensembles import plain_ensemble
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel

from scne import DNNERegressor, RVFLRegressor, SCNERegressor, SCNRegressor
from scne.estimators import load_model, save_model
from scne.estimators._regressor import draw_seed
from scne.explain import _sensitivity, level_effect, number_effect
from scne.explain._sensitivity import _quantiles
from scne.fitting._members import draw_held_out
from scne.ncl import EnsembleSystem, leave_one_out, subsystem
from scne.passes import ThreadEngine
from scne.rows import ArrayRows, column_statistics, learn_scaling, open_rows

# Some columns are in no group here, which is said where it is tested.
pytestmark = pytest.mark.filterwarnings("ignore:.* no network sees:scne.ScneWarning")

small = {"n_candidates": 30}


def friedman(X):
    """Friedman's first function: five columns matter, all others do not."""
    return 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]


def friedman_rows(n, seed, noise=1.0, n_columns=8):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, n_columns))
    return X, friedman(X) + noise * rng.standard_normal(n)


# Groups of networks, from the Gram matrix.


def refit_error(members, y, judged_members, judged_y, decorrelation, ridge):
    """Root mean squared error of an ensemble that is solved from its hidden outputs, as the paper writes it."""
    M = len(members)
    c1, c2 = 1 - decorrelation * ((M - 1) / M) ** 2, decorrelation * (M - 1) / M**2
    ends = np.cumsum([0, *(H.shape[1] for H in members)])
    A = np.zeros((ends[-1], ends[-1]))
    for i, Hi in enumerate(members):
        for j, Hj in enumerate(members):
            block = c1 * (Hi.T @ Hi + ridge[i] * np.eye(Hi.shape[1])) if i == j else c2 * Hi.T @ Hj
            A[ends[i] : ends[i + 1], ends[j] : ends[j + 1]] = block
    B = np.linalg.solve(A, np.hstack(members).T @ y)
    return np.sqrt(np.mean((judged_y - np.hstack(judged_members) @ B / M) ** 2, axis=0))


def refit_errors(members, y, judged_members, judged_y, decorrelation, ridge):
    """The same with all members, and without each: at the same place between averaging and the joint fit."""
    M = len(members)
    place = decorrelation * (M - 1) / M
    whole = refit_error(members, y, judged_members, judged_y, decorrelation, ridge)
    without = []
    for m in range(M):
        rest = [k for k in range(M) if k != m]
        there = place * (M - 1) / (M - 2) if M > 2 else 0.0
        parts = [members[k] for k in rest], y, [judged_members[k] for k in rest], judged_y
        without.append(refit_error(*parts, there, [ridge[k] for k in rest]))
    return whole, np.array(without)


@st.composite
def systems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = draw(st.lists(st.integers(1, 4), min_size=2, max_size=5))
    n, q, M = 30, draw(st.integers(1, 2)), len(sizes)
    H = rng.standard_normal((2 * n, sum(sizes)))
    if draw(st.booleans()):
        # Two nodes that are all but the same, in different members.
        H[:, -1] = H[:, 0] + 1e-3 * H[:, -1]
    y = rng.standard_normal((2 * n, q)) + H[:, :1]
    members = np.split(H, np.cumsum(sizes)[:-1], axis=1)
    decorrelation = draw(st.sampled_from([0.0, 0.1, 0.5, 0.9, 0.999])) * M / (M - 1)
    ridge = [10.0 ** draw(st.integers(-3, 1)) for _ in sizes]
    return [Hm[:n] for Hm in members], y[:n], [Hm[n:] for Hm in members], y[n:], decorrelation, ridge


@given(systems())
def test_leaving_a_member_out_is_a_refit_without_it(case):
    members, y, judged_members, judged_y, decorrelation, ridge = case
    fitted = EnsembleSystem.from_outputs(members, y)
    for other, judged in (((members, y), fitted), ((judged_members, judged_y), None)):
        judged = judged or EnsembleSystem.from_outputs(*other)
        whole, without = refit_errors(members, y, *other, decorrelation, ridge)
        found = leave_one_out(fitted, judged, decorrelation, ridge)
        np.testing.assert_allclose(found.whole, whole, rtol=1e-6)
        np.testing.assert_allclose(found.without, without, rtol=1e-6)


@given(systems())
def test_a_subsystem_is_the_system_of_its_members(case):
    members, y = case[:2]
    whole = EnsembleSystem.from_outputs(members, y)
    chosen = list(range(len(members)))[1:]
    part, wanted = subsystem(whole, chosen), EnsembleSystem.from_outputs([members[m] for m in chosen], y)
    assert part.sizes == wanted.sizes
    np.testing.assert_allclose(part.gram, wanted.gram, atol=1e-12)
    np.testing.assert_allclose(part.moments, wanted.moments, atol=1e-12)


def hidden(model, X):
    return [layer.outputs(X) for layer in model.fitted_.terms()[0]]


GROUPS = {"product": [0, 1], "bend": [2], "lines": [3, 4], "noise": [5, 6, 7]}


@pytest.mark.parametrize("held_out", ["none", "fraction", "given"])
@pytest.mark.parametrize("outputs", ["flat", "two"])
def test_group_importances_are_those_of_a_refit(held_out, outputs):
    X, y = friedman_rows(600, 0)
    y = y if outputs == "flat" else np.column_stack([y, 1000 * X[:, 2]])
    fraction = 0.3 if held_out == "fraction" else None
    model = plain_ensemble(SCNRegressor(12, **small, validation_fraction=fraction), groups=GROUPS, random_state=4)
    train, judged = np.arange(400), np.arange(400)
    if held_out == "given":
        judged = np.arange(400, 600)
        model.fit(X[:400], y[:400], X_val=X[400:], y_val=y[400:])
    else:
        model.fit(X[:400], y[:400])
        if held_out == "fraction":
            judged = draw_held_out(ArrayRows(X[:400]), 0.3, draw_seed(4))
            train = np.setdiff1d(train, judged)
    scaled = model.target_scaling_.apply(y.reshape(600, -1))
    whole, without = refit_errors(
        hidden(model, X[train]),
        scaled[train],
        hidden(model, X[judged]),
        scaled[judged],
        model.decorrelation_,
        model.ridge_,
    )
    scale = model.target_scaling_.scale
    found = model.group_importances_
    assert found.rows == ("training rows" if held_out == "none" else "held-out rows")
    np.testing.assert_allclose(np.reshape(found.error, -1), whole * scale, rtol=1e-5)
    np.testing.assert_allclose(np.reshape(found.errors_without, (4, -1)), without * scale, rtol=1e-5)
    assert list(found.rises) == list(GROUPS)
    for m, rise in enumerate(found.rises.values()):
        assert np.shape(rise) == (() if outputs == "flat" else (2,))
        np.testing.assert_array_equal(rise, found.errors_without[m] - found.error)


def test_a_group_of_noise_is_worth_nothing_and_the_others_what_they_explain():
    X, y = friedman_rows(2_000, 1)
    model = plain_ensemble(SCNRegressor(30, **small, validation_fraction=0.3), groups=GROUPS, random_state=0).fit(X, y)
    found = model.group_importances_
    assert 0.9 < found.error < 1.15
    assert abs(found.rises["noise"]) < 0.02
    # Without "bend" its variance, 400 / 180, is added to that of the noise.
    assert found.errors_without[1] == pytest.approx(np.sqrt(found.error**2 + 400 / 180), rel=0.1)
    # Without "lines" the variance of 10 x + 5 x'.
    assert found.errors_without[2] == pytest.approx(np.sqrt(found.error**2 + 125 / 12), rel=0.1)


def test_group_importances_have_the_units_of_y():
    X, y = friedman_rows(300, 2)
    model = plain_ensemble(SCNRegressor(8, **small), groups=GROUPS, random_state=0)
    plain = model.fit(X, y).group_importances_.errors_without
    np.testing.assert_allclose(model.fit(X, 1000 * y + 5).group_importances_.errors_without, 1000 * plain, rtol=1e-6)


def test_a_naive_ensemble_without_a_network_is_the_mean_of_the_others():
    X, y = friedman_rows(300, 3)
    model = plain_ensemble(SCNRegressor(8, **small), groups=GROUPS, solver="naive", random_state=0).fit(X, y)
    members = model.predict_members(X)
    found = model.group_importances_
    for m in range(4):
        mean = np.delete(members, m, axis=0).mean(axis=0)
        assert found.errors_without[m] == pytest.approx(np.sqrt(np.mean((y - mean) ** 2)), rel=1e-8)


def test_group_importances_of_a_reweighted_and_of_a_loaded_ensemble(tmp_path):
    X, y = friedman_rows(300, 4)
    model = plain_ensemble(SCNRegressor(8, **small, validation_fraction=0.3), groups=GROUPS, random_state=0).fit(X, y)
    save_model(model, tmp_path / "m.scne", with_system=True)
    again = load_model(tmp_path / "m.scne").group_importances_
    np.testing.assert_array_equal(again.errors_without, model.group_importances_.errors_without)
    assert again.rows == "held-out rows"
    lazy = model.reweighted(decorrelation=0.1).group_importances_
    assert lazy.error > again.error
    save_model(model, tmp_path / "m.scne")
    with pytest.raises(ValueError, match=r"holds no Gram matrix.*with_system=True"):
        _ = load_model(tmp_path / "m.scne").group_importances_


def test_group_importances_that_cannot_be_are_refused():
    X, y = friedman_rows(100, 5)
    with pytest.raises(NotFittedError):
        _ = SCNERegressor().group_importances_
    with pytest.raises(NotFittedError):
        _ = SCNERegressor().admissible_nodes_
    one = DNNERegressor(RVFLRegressor(5), n_estimators=1, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="one network"):
        _ = one.group_importances_
    assert not hasattr(one, "group_importances_")
    settings = dict(n_estimators=2, solver="matrix-free cg", decorrelation=0.5, ridge=0.1)
    free = DNNERegressor(RVFLRegressor(5), **settings).fit(X, y)
    with pytest.raises(ValueError, match="matrix-free solver"):
        _ = free.group_importances_
    assert not hasattr(free, "group_importances_")
    assert not hasattr(free, "admissible_nodes_")


# Shuffled columns.


def test_shuffled_errors_are_those_of_predictions_of_shuffled_rows():
    X, y = friedman_rows(400, 6)
    model = plain_ensemble(SCNRegressor(8, **small), groups=GROUPS, random_state=0).fit(X, y)
    found = model.permutation_importances(X, y, n_repeats=3, random_state=9)
    generator = np.random.RandomState(9)
    generator.randint(np.iinfo(np.int32).max)

    def error(rows):
        return np.sqrt(np.mean((model.predict(rows) - y) ** 2))

    assert found.error == pytest.approx(error(X), rel=1e-12)
    sets = [[column] for column in range(8)] + list(GROUPS.values())
    repeats = np.vstack([found.columns.repeats, found.groups.repeats])
    for columns, rises in zip(sets, repeats, strict=True):
        for rise in rises:
            shuffled = X.copy()
            shuffled[:, columns] = X[np.ix_(generator.permutation(400), columns)]
            assert rise == pytest.approx(error(shuffled) - error(X), rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(found.columns.mean, found.columns.repeats.mean(axis=1))
    np.testing.assert_allclose(found.groups.std, found.groups.repeats.std(axis=1))
    assert found.columns.names == tuple(range(8))
    assert found.groups.names == tuple(GROUPS)
    assert found.n_rows == 400


DATED = pd.DataFrame(
    {
        "year": 2019 + np.arange(300) % 3,
        "month": 1 + np.arange(300) % 12,
        "day": 1 + np.arange(300) % 28,
        "TEMP": np.random.default_rng(0).standard_normal(300),
    }
)


@pytest.mark.parametrize("compiled", [True, False], ids=["kernels", "NumPy"])
@pytest.mark.parametrize("kept", [True, False], ids=["sums kept", "networks run again"])
@pytest.mark.parametrize(
    "base",
    [
        SCNRegressor.tuned(1, max_hidden=8),
        RVFLRegressor(8, direct_link=True),
        SCNRegressor(8, scaling="ramps", pool="sparse"),
    ],
    ids=["tuned", "direct links", "sparse"],
)
def test_what_a_shuffle_reaches_is_what_networks_say_of_shuffled_rows(base, kept, compiled, monkeypatch):
    """Of a date that comes as three columns, one shuffled column moves what is read from all of them."""
    if not compiled:
        monkeypatch.setattr("scne.networks.HiddenLayer.compiled", None)
    if not kept:
        monkeypatch.setattr("scne.explain._shuffled.MOST_SUMS", 0)
    y = np.sin(DATED["month"] / 2.0) + DATED["TEMP"] + DATED["day"] / 30.0
    model = SCNERegressor(base, n_estimators=2, random_state=0).fit(DATED, y)
    found = model.permutation_importances(DATED, y, n_repeats=2, random_state=9)
    generator = np.random.RandomState(9)
    generator.randint(np.iinfo(np.int32).max)
    whole = np.sqrt(np.mean((model.predict(DATED) - y) ** 2))
    for column, rises in zip(DATED.columns, found.columns.repeats, strict=True):
        for rise in rises:
            shuffled = DATED.assign(**{column: DATED[column].to_numpy()[generator.permutation(300)]})
            error = np.sqrt(np.mean((model.predict(shuffled) - y) ** 2))
            assert rise == pytest.approx(error - whole, rel=1e-9, abs=1e-12)
    assert found.columns.mean[3] > 0.1


def test_effects_move_what_is_read_from_the_outputs():
    X = np.column_stack([DATED["TEMP"], np.arange(300) % 2, np.arange(300) % 2 == 0]).astype(float)
    model = SCNRegressor(8, **small, random_state=0).fit(X, X[:, 0] + X[:, 1]).fitted_
    with ThreadEngine(1) as engine:
        plain, levels = number_effect(model, X, 0, engine), level_effect(model, X, np.array([1, 2]), engine)
        read = number_effect(model, X, 0, engine, read=lambda outputs: -2.0 * outputs)
        read_levels = level_effect(model, X, np.array([1, 2]), engine, lambda outputs: -2.0 * outputs)
    np.testing.assert_allclose(read.effects, -2.0 * plain.effects, atol=1e-12)
    np.testing.assert_allclose(read_levels.effects, -2.0 * levels.effects, atol=1e-12)
    assert np.ptp(plain.effects) > 1


def test_shuffling_a_column_adds_twice_its_total_effect():
    """For the true function the mean squared error rises by E[(f(x) - f(x with another x_j))^2]."""
    X, y = friedman_rows(3_000, 7, noise=0.1)
    model = SCNRegressor(120, **small, random_state=0).fit(X, y)
    T, t = friedman_rows(4_000, 8, noise=0.0)
    found = model.permutation_importances(T, t, random_state=0)
    squares = (found.columns.mean + found.error) ** 2 - found.error**2
    for column, effect in ((2, 400 / 180), (3, 100 / 12), (4, 25 / 12)):
        assert squares[column] == pytest.approx(2 * effect, rel=0.1)
    assert np.all(np.abs(found.columns.mean[5:]) < 0.05)


def test_the_error_counts_rows_by_their_weights():
    X, y = friedman_rows(300, 9)
    model = RVFLRegressor(10, random_state=0).fit(X, y)
    weights = np.where(np.arange(300) < 100, 1.0, 0.0)
    found = model.permutation_importances(X, y, sample_weight=weights, random_state=0)
    assert found.error == pytest.approx(np.sqrt(np.mean((model.predict(X[:100]) - y[:100]) ** 2)))


def test_frames_several_outputs_and_samples_of_rows():
    X, y = friedman_rows(500, 10)
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    Y = np.column_stack([y, -7 * y])
    model = DNNERegressor(RVFLRegressor(10), groups={"first": list("abc"), "rest": list("cdefgh")}, random_state=0)
    found = model.fit(frame, Y).permutation_importances(frame, Y, n_repeats=2, random_state=0, max_rows=200)
    assert found.columns.names == tuple("abcdefgh")
    assert found.n_rows == 200
    assert found.columns.repeats.shape == (8, 2, 2)
    assert found.groups.mean.shape == (2, 2)
    np.testing.assert_allclose(found.columns.mean[:, 1], 7 * found.columns.mean[:, 0], rtol=1e-6)
    again = model.permutation_importances(frame, Y, n_repeats=2, random_state=0, max_rows=200)
    np.testing.assert_array_equal(again.columns.repeats, found.columns.repeats)


def test_groups_of_all_columns_and_single_networks_have_no_groups():
    X, y = friedman_rows(200, 11)
    for model in (DNNERegressor(RVFLRegressor(5), n_estimators=2, random_state=0), RVFLRegressor(5, random_state=0)):
        found = model.fit(X, y).permutation_importances(X, y, n_repeats=2, random_state=0)
        assert found.groups.names == ()
        assert found.groups.repeats.shape == (0, 2)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    rng = np.random.default_rng(0)
    n = 3_000
    gas, place = rng.uniform(size=n), rng.choice(["north", "south", "east"], n)
    idle = rng.uniform(size=n)
    table = pa.table(
        {"gas": gas, "idle": idle, "place": place, "weight": np.ones(n), "y": gas + 2 * (place == "north")}
    )
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    pa.parquet.write_table(table, path, row_group_size=700)
    rows = open_rows(path, target="y", weight="weight", groups={"a": ["gas", "idle"], "b": ["place"]})
    base = SCNRegressor(10, **small, validation_fraction=0.2)
    return rows, plain_ensemble(base, random_state=0).fit(rows), table


def test_files_are_shuffled_by_their_own_columns(files):
    rows, model, table = files
    found = model.permutation_importances(rows, random_state=0)
    assert found.columns.names == ("gas", "idle", "place")
    assert found.groups.names == ("a", "b")
    gas, idle, place = found.columns.mean
    assert place > gas > 0.1 > abs(idle)
    # A group of one column is that column, shuffled another time.
    assert found.groups.mean[1] == pytest.approx(place, rel=0.1)
    frame, y = table.to_pandas(), np.asarray(table["y"])
    assert found.error == pytest.approx(np.sqrt(np.mean((model.predict(frame) - y) ** 2)))
    assert model.permutation_importances(rows, random_state=0, max_rows=1_000).n_rows == 1_000
    assert model.permutation_importances(frame, y, random_state=0).columns.names == ("gas", "idle", "place")


def test_what_cannot_be_shuffled_is_refused(files):
    rows, model, _ = files
    X, y = friedman_rows(100, 12)
    network = RVFLRegressor(5, random_state=0).fit(X, y)
    with pytest.raises(NotFittedError):
        RVFLRegressor().permutation_importances(X, y)
    for arguments, words in (
        ((X, None), "y"),
        ((X, np.column_stack([y, y])), "2 outputs.*1"),
        ((X[:, :3], y), "features"),
        ((X, y, 0), "n_repeats is 0"),
        ((rows, None), "fitted on an array"),
    ):
        with pytest.raises(ValueError, match=words):
            network.permutation_importances(*arguments)
    with pytest.raises(ValueError, match="max_rows"):
        network.permutation_importances(X, y, max_rows=0)
    with pytest.raises(ValueError, match="open_rows names both"):
        model.permutation_importances(rows, y)
    with pytest.raises(ValueError, match="without a target"):
        model.permutation_importances(open_rows(rows.path, target=None, ignore=["y", "weight"]))
    dask_array = pytest.importorskip("dask.array")
    with pytest.raises(TypeError, match="Dask"):
        network.permutation_importances(dask_array.from_array(X), y)


# Shares of the columns in what moves the output.


def friedman_effects(n_columns=8, n=200_000):
    """Total effects of the columns: known but for those of the sine, which are averaged over many pairs of rows."""
    rng = np.random.default_rng(0)
    a, b, c = rng.uniform(size=(3, n))
    product = np.mean((10 * np.sin(np.pi * a * b) - 10 * np.sin(np.pi * c * b)) ** 2) / 2
    return np.array([product, product, 400 / 180, 100 / 12, 25 / 12] + [0.0] * (n_columns - 5))


# Without a scaling or a range, columns stand for a standard normal, which those of this function are not.
@pytest.mark.parametrize("scaling", ["0-1", "min-max", "standard", "ramps"])
def test_the_shares_are_the_total_effects_of_a_known_function(scaling):
    X, y = friedman_rows(3_000, 13, noise=0.1)
    wide = {"scopes": (0.3, 1.0, 3.0)} if scaling in ("standard", "ramps") else {}
    model = SCNRegressor(100, **small, **wide, scaling=scaling, random_state=0).fit(X, y)
    wanted = friedman_effects() / friedman_effects().sum()
    np.testing.assert_allclose(model.feature_importances_, wanted, atol=0.04)


@pytest.mark.parametrize("make", [SCNRegressor.tuned, lambda **settings: RVFLRegressor(60, **settings)])
def test_columns_that_matter_have_larger_shares_than_those_that_do_not(make):
    X, y = friedman_rows(1_500, 14)
    shares = make(random_state=0).fit(X, y).feature_importances_
    assert shares[5:].max() < 0.03 < shares[:5].min()


@pytest.mark.parametrize("scaling", ["0-1", "min-max", "standard", "none"])
def test_the_shares_of_a_linear_function_are_the_variances_of_its_terms(scaling):
    rng = np.random.default_rng(15)
    # Whole ranges, and with no scaling and no range a standard normal is what columns stand for.
    normal = scaling in ("standard", "none")
    X = rng.standard_normal((2_000, 3)) if normal else rng.uniform(size=(2_000, 3))
    y = X @ [3.0, 2.0, 0.0]
    model = RVFLRegressor(1, scaling=scaling, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.feature_importances_, [9 / 13, 4 / 13, 0.0], atol=0.03)


def test_drawn_columns_have_the_moments_and_range_of_the_training_rows():
    rng = np.random.default_rng(16)
    n = 5_000
    columns = [rng.uniform(-3, 8, n), rng.random(n) < 0.1, rng.lognormal(size=n), 5 + rng.standard_normal(n)]
    X = np.column_stack([*columns, np.full(n, 2.5), rng.integers(0, 3, n)])
    drawn = _quantiles(learn_scaling(column_statistics(X), "standard", clip=True), "standard", 1_000)
    assert drawn.shape == (1_000, 6)
    np.testing.assert_allclose(drawn.mean(axis=0), X.mean(axis=0), atol=0.02)
    np.testing.assert_allclose(drawn.std(axis=0), X.std(axis=0), rtol=0.05)
    assert np.all(drawn >= X.min(axis=0))
    assert np.all(drawn <= X.max(axis=0))
    assert set(drawn[:, 1]) == {0.0, 1.0}
    assert set(drawn[:, 4]) == {2.5}


def test_wide_models_are_measured_on_fewer_rows(monkeypatch):
    X, y = friedman_rows(1_000, 21)
    model = RVFLRegressor(60, random_state=0).fit(X, y)
    shares = model.feature_importances_
    monkeypatch.setattr(_sensitivity, "MOST_ACTIVATIONS", 0)
    np.testing.assert_allclose(model.feature_importances_, shares, atol=0.06)


def test_the_shares_are_shares():
    X, y = friedman_rows(300, 17)
    X[:, 7] = 4.0
    model = plain_ensemble(SCNRegressor(8, **small), groups=[[0, 1], [1, 2], [7, 3]], random_state=0).fit(X, y)
    shares = model.feature_importances_
    assert shares.shape == (8,)
    assert shares.sum() == pytest.approx(1.0)
    assert np.all(shares[:4] > 0)
    # Columns that no network sees, and one that never changes.
    assert not shares[4:].any()
    np.testing.assert_array_equal(shares, model.feature_importances_)
    assert not DNNERegressor(RVFLRegressor(5), random_state=0).fit(X, np.ones(300)).feature_importances_.any()
    assert not hasattr(SCNERegressor(), "feature_importances_")


def test_outputs_count_by_their_scaled_variance():
    X = np.random.default_rng(18).uniform(size=(500, 2))
    model = RVFLRegressor(1, random_state=0).fit(X, np.column_stack([X[:, 0], 1e6 * X[:, 1]]))
    np.testing.assert_allclose(model.feature_importances_, [0.5, 0.5], atol=0.03)


@pytest.mark.parametrize(
    "base", [SCNRegressor(8, **small), RVFLRegressor(8), SCNRegressor(8, **small, scaling="standard")]
)
def test_a_file_keeps_the_shares_to_the_last_bit(base, tmp_path):
    X, y = friedman_rows(300, 19)
    model = plain_ensemble(base, groups=GROUPS, random_state=0).fit(X, y)
    save_model(model, tmp_path / "m.scne")
    np.testing.assert_array_equal(load_model(tmp_path / "m.scne").feature_importances_, model.feature_importances_)


def test_scikit_learn_selects_columns_by_the_shares():
    X, y = friedman_rows(1_000, 20)
    chosen = SelectFromModel(RVFLRegressor(60, direct_link=False, random_state=0), threshold=0.03).fit(X, y)
    assert chosen.get_support().tolist() == [True] * 5 + [False] * 3


def test_columns_that_were_not_scaled_are_standard_normal():
    """Nothing is known of them: shares are those of columns of deviation one, whatever their own is."""
    X = np.random.default_rng(0).normal(size=(500, 2)) * [1.0, 0.1]
    y = X[:, 0] + 2 * X[:, 1]
    shares = {
        scaling: RVFLRegressor(5, scaling=scaling, random_state=0).fit(X, y).feature_importances_
        for scaling in ("none", "standard")
    }
    np.testing.assert_allclose(shares["none"], [1 / 5, 4 / 5], atol=0.02)
    np.testing.assert_allclose(shares["standard"], [1 / 1.04, 0.04 / 1.04], atol=0.02)
