"""Means of the target by level: scikit-learn's, told from fold to fold, and the same from any split of the rows."""

from dataclasses import replace
from functools import reduce

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ensembles import plain_ensemble
from export_models import SMALL, level_model, level_table, new_levels
from sklearn.preprocessing import TargetEncoder
from test_checkpoints import interrupted

import scne
from scne import RVFLRegressor, SCNEClassifier, SCNERegressor, SCNRegressor, open_rows
from scne.estimators import CheckpointError
from scne.estimators.inputs._frames import learn_table
from scne.fitting._memory import needed_bytes
from scne.rows import DataError, Encoder, EncoderLearner, TableRows, column_statistics
from scne.rows._encoder_checks import check_encodings
from scne.rows._encodings import NumberEncoding
from scne.rows._level_counts import MOST_LEVELS, LevelCounts
from scne.rows._level_encodings import LevelMeanEncoding, NamedNumberEncoding
from scne.rows._level_means import _by_ranges, _sorted, may_still_name, named_numbers
from scne.rows._level_sums import N_FOLDS, LevelSums, explained, folds_of


def towns(n_rows=600, n_towns=40, n_targets=1, seed=0):
    """Texts with some effect each on every target."""
    rng = np.random.default_rng(seed)
    town = rng.integers(0, n_towns, n_rows)
    targets = rng.normal(size=(n_towns, n_targets))[town] + rng.normal(size=(n_rows, n_targets))
    return pa.table({"town": [f"town {n}" for n in town]}), targets


def learned(table, targets, weights=None, rows=None):
    """A learner that has seen a table, so many rows at a time, and its encoder."""
    source = TableRows("X", table, np.atleast_2d(targets.T).T, weights)
    learner, start = EncoderLearner(source), 0
    for batch in source.batches(rows=rows or table.num_rows):
        one = EncoderLearner(source)
        one.update(batch, start)
        learner, start = learner.combined(one), start + batch.num_rows
    return learner, learner.finish()


def told(table, encoder):
    """What the rows of a fit are told."""
    return encoder.transform(table, np.arange(table.num_rows))


def scikit_learn(texts, targets):
    encoder = TargetEncoder(smooth="auto", target_type="continuous", shuffle=False)
    return encoder.fit(np.array(texts, dtype=object)[:, None], targets)


def test_new_rows_are_told_what_scikit_learn_tells_them():
    table, targets = towns()
    _, encoder = learned(table, targets)
    reference = scikit_learn(table["town"].to_pylist(), targets[:, 0])
    new = [*table["town"].to_pylist(), "nowhere"]
    wanted = reference.transform(np.array(new, dtype=object)[:, None])
    np.testing.assert_allclose(encoder.transform(pa.table({"town": new})), wanted, rtol=1e-9)


def test_rows_of_a_fit_are_told_what_the_other_folds_tell():
    table, targets = towns()
    _, encoder = learned(table, targets)
    found, folds = told(table, encoder), folds_of(np.arange(600))
    assert set(folds) == set(range(N_FOLDS))
    texts = np.array(table["town"].to_pylist(), dtype=object)[:, None]
    for fold in range(N_FOLDS):
        reference = scikit_learn(texts[folds != fold][:, 0], targets[folds != fold, 0])
        np.testing.assert_allclose(found[folds == fold], reference.transform(texts[folds == fold]), rtol=1e-9)


@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_large_targets_keep_their_digits(offset):
    table, targets = towns()
    plain, shifted = (learned(table, targets + more)[1] for more in (0.0, offset))
    for rows in (None, np.arange(600)):
        found = shifted.transform(table, rows) - offset
        np.testing.assert_allclose(found, plain.transform(table, rows), atol=1e-6)


def test_the_target_of_a_row_never_comes_back_to_it():
    table, targets = level_table(), np.column_stack([level_table()[name].to_numpy() for name in "yz"])
    table = table.drop_columns(["y", "z"])
    before = told(table, learned(table, targets)[1])
    for row in (0, 17, 2_399):
        changed = targets.copy()
        changed[row] += 0.5
        after = told(table, learned(table, changed)[1])
        assert after[row].tolist() == before[row].tolist()
        assert (after != before).any(axis=1).sum() > 10


def test_a_column_that_says_nothing_is_not_trusted():
    """With its own target in it the mean of a level has a coefficient of one, told from other folds of about none."""
    rng = np.random.default_rng(0)
    table, targets = pa.table({"town": [f"town {n}" for n in rng.integers(0, 500, 2_000)]}), rng.normal(size=2_000)
    _, encoder = learned(table, targets)
    own, others = encoder.transform(table)[:, 0], told(table, encoder)[:, 0]
    assert np.corrcoef(own, targets)[0, 1] > 0.4
    assert abs(np.corrcoef(others, targets)[0, 1]) < 0.06


@pytest.mark.parametrize("rows", [4, 17, 100, 599])
def test_any_split_tells_the_same(rows):
    table, targets = towns(n_targets=2)
    whole, parts = learned(table, targets)[1], learned(table, targets, rows=rows)[1]
    for numbers in (None, np.arange(600)):
        np.testing.assert_allclose(parts.transform(table, numbers), whole.transform(table, numbers), rtol=1e-12)


def test_threads_change_no_bit():
    rows = level_table(3_000)
    table, targets = rows.drop_columns(["y", "z"]), np.column_stack([rows["y"], rows["z"]])
    one, four = (learn_table(table, targets, None, False, threads) for threads in (1, 4))
    assert one.encoder == four.encoder
    assert one.inputs.tolist() == four.inputs.tolist()


def test_statistics_are_those_of_what_rows_are_told():
    for weights in (None, np.random.default_rng(1).integers(0, 3, 2_400).astype(float)):
        rows = level_table(first=SMALL)
        table, targets = rows.drop_columns(["y", "z"]), rows["y"].to_numpy()
        learner, encoder = learned(table, targets, weights, rows=500)
        assert [one.form for one in encoder.encodings] == ["number", "level means", "named numbers"]
        wanted, found = column_statistics(told(table, encoder), weights), learner.statistics()
        for name in ("mean", "squares", "smallest", "largest"):
            np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-9, atol=1e-12)


def test_a_weight_is_a_number_of_rows():
    table, targets = towns()
    times = np.random.default_rng(1).integers(0, 4, 600)
    again = np.repeat(np.arange(600), times)
    _, weighted = learned(table, targets, times.astype(float))
    _, repeated = learned(table.take(again), targets[again])
    np.testing.assert_allclose(weighted.transform(table), repeated.transform(table), rtol=1e-9)


def test_rows_of_weight_zero_tell_nothing():
    table, targets = towns()
    weights = np.ones(600)
    weights[::3] = 0.0
    wild = np.where(weights[:, None] > 0, targets, 1e6)
    first, second = (learned(table, values, weights)[1] for values in (targets, wild))
    assert first == second
    assert told(table, first).tolist() == told(table, second).tolist()


def network(**settings):
    base = SCNRegressor(6, n_candidates=10, scaling="ramps", **settings)
    return plain_ensemble(base, networks="across", n_estimators=2, random_state=0)


def test_only_ratios_of_weights_count():
    rows = level_table().to_pandas()
    X, y, weights = rows[["x", "town", "person"]], rows["y"], np.random.default_rng(0).uniform(0.5, 2.0, len(rows))
    one, thousand = (network().fit(X, y, sample_weight=scale * weights) for scale in (1.0, 1000.0))
    np.testing.assert_allclose(one.predict(X), thousand.predict(X), rtol=1e-9)


def test_levels_that_are_missing_or_new():
    rows = level_table()
    _, encoder = learned(rows.select(["town"]), rows["y"].to_numpy())
    found = encoder.transform(pa.table({"town": ["nowhere", None, "", "Town 1"]}))[:, 0]
    y, gaps = rows["y"].to_numpy(), rows["town"].is_null().to_numpy()
    assert found[0] == found[3] == pytest.approx(y.mean())
    assert found[1] == pytest.approx(y[gaps].mean(), rel=0.2)
    assert len(set(found)) == 3
    whole = rows.filter(rows["town"].is_valid())
    _, encoder = learned(whole.select(["town"]), whole["y"].to_numpy())
    # Where no text was missing, a missing one is as good as a new one.
    assert len(set(encoder.transform(pa.table({"town": ["nowhere", None]}))[:, 0])) == 1


def test_several_targets_have_a_mean_each():
    table, targets = towns(n_targets=3)
    _, encoder = learned(table, targets)
    assert encoder.names == ("town mean 1", "town mean 2", "town mean 3")
    alone = [learned(table, targets[:, place])[1] for place in range(3)]
    for rows in (None, np.arange(600)):
        together = np.hstack([one.transform(table, rows) for one in alone])
        np.testing.assert_allclose(encoder.transform(table, rows), together, rtol=1e-12)


def test_more_targets_than_eight_have_columns_for_levels():
    table, targets = towns(n_targets=9)
    assert [one.form for one in learned(table, targets)[1].encodings] == ["category"]


def test_classes_by_town():
    rng = np.random.default_rng(0)
    town = rng.integers(0, 40, 1_500)
    X = pd.DataFrame({"town": [f"town {n}" for n in town], "x": rng.normal(size=1_500)})
    chance = rng.uniform(0, 1, (40, 3)) ** 4
    labels = np.array(["a", "b", "c"])[[rng.choice(3, p=row / row.sum()) for row in chance[town]]]
    model = SCNEClassifier(SCNRegressor(6, n_candidates=10), n_estimators=2, random_state=0).fit(
        X[:1_000], labels[:1_000]
    )
    assert [one.form for one in model.encoder_.encodings] == ["level means", "number"]
    assert model.encoder_.names[:3] == ("town mean 1", "town mean 2", "town mean 3")
    best = np.mean(np.array(["a", "b", "c"])[chance[town[1_000:]].argmax(axis=1)] == labels[1_000:])
    assert model.score(X[1_000:], labels[1_000:]) > best - 0.06


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_a_frame_and_its_file_give_the_same_bits(tmp_path, form):
    rows = level_table()
    pq.write_table(rows, tmp_path / "rows.parquet")
    frame = rows.to_pandas(types_mapper=pd.ArrowDtype)
    if form == "csv":
        # An empty text is what is missing there.
        frame["town"] = frame["town"].replace("", "none")
        frame.to_csv(tmp_path / "rows.csv", index=False)
    from_file = network().fit(open_rows(tmp_path / f"rows.{form}", target=["y", "z"]))
    from_frame = network().fit(frame[["x", "town", "person"]], frame[["y", "z"]])
    assert from_file.encoder_.encodings == from_frame.encoder_.encodings
    assert all(getattr(one, "crossed", None) is None for one in from_file.encoder_.encodings)
    new = new_levels().to_pandas()
    assert from_file.predict(new).tolist() == from_frame.predict(new).tolist()


def test_a_model_of_towns_and_persons_predicts_new_rows():
    rows, new = level_table().to_pandas(), level_table(500, seed=30).to_pandas()
    model = SCNERegressor(n_estimators=2, random_state=0).fit(rows[["x", "town", "person"]], rows[["y", "z"]])
    known = new["town"].notna() & new["person"].notna()
    assert model.score(new[known][["x", "town", "person"]], new[known][["y", "z"]]) > 0.9


def test_a_fit_that_was_stopped_after_its_first_pass_resumes_to_the_same_bits(tmp_path):
    pq.write_table(level_table(), tmp_path / "rows.parquet")

    def fit(**kept):
        return network().fit(open_rows(tmp_path / "rows.parquet", target=["y", "z"]), **kept)

    whole = fit()
    interrupted(lambda: fit(checkpoint=tmp_path / "kept"))
    resumed = fit(checkpoint=tmp_path / "kept")
    assert resumed.encoder_ == whole.encoder_
    assert resumed.predict(new_levels().to_pandas()).tolist() == whole.predict(new_levels().to_pandas()).tolist()


def test_a_checkpoint_that_tells_no_folds_is_refused(tmp_path, monkeypatch):
    pq.write_table(level_table(), tmp_path / "rows.parquet")
    plain = Encoder.to_dict
    monkeypatch.setattr(Encoder, "to_dict", lambda self, with_crossed=False: plain(self))

    def fit():
        return network().fit(open_rows(tmp_path / "rows.parquet", target="y"), checkpoint=tmp_path / "kept")

    interrupted(fit)
    with pytest.raises(CheckpointError, match="do not belong together"):
        fit()


@pytest.mark.slow
def test_a_cluster_gives_the_same_bits(tmp_path):
    from dask.distributed import Client, LocalCluster

    pq.write_table(level_table(60_000), tmp_path / "rows.parquet")
    rows = open_rows(tmp_path / "rows.parquet", target=["y", "z"])
    here = network().fit(rows)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        there = network().fit(rows, client=client)
    assert there.encoder_ == here.encoder_
    assert there.predict(rows).tolist() == here.predict(rows).tolist()


def numbers_of(kind, n_rows=4_000):
    """A column of whole numbers and a target that depends on it, each in its own way."""
    rng = np.random.default_rng(0)
    noise = 0.3 * rng.normal(size=n_rows)
    if kind == "persons":
        person = rng.integers(0, 300, n_rows)
        return rng.permutation(10_000)[:300][person], rng.normal(size=300)[person] + noise
    if kind == "prices":
        price = np.round(rng.lognormal(5, 1, n_rows))
        return price, np.log(price) + noise
    if kind == "counts":
        count = rng.poisson(60, n_rows)
        return count, np.sin(count / 8) + noise
    year = rng.integers(1900, 2020, n_rows)
    return year, np.cos((year - 1900) / 30) + noise


@pytest.mark.parametrize("kind", ["persons", "prices", "counts", "years"])
@pytest.mark.parametrize("gaps", [False, True])
def test_numbers_that_name_things_are_told_from_quantities(kind, gaps):
    values, targets = numbers_of(kind)
    mask = np.arange(len(values)) % 9 == 0 if gaps else None
    table = pa.table({"n": pa.array(values.astype(float), mask=mask)})
    _, encoder = learned(table, targets)
    expected = ("n", *["n missing"] * gaps)
    assert encoder.names == ((*expected, "n mean") if kind == "persons" else expected)
    if kind == "persons":
        found = encoder.transform(pa.table({"n": pa.array([values[1], -1, None], pa.float64())}))
        same = (values == values[1]) & (True if mask is None else ~mask)
        assert found[0, -1] == pytest.approx(targets[same].mean(), rel=0.1)
        assert found[1:, -1].tolist() == pytest.approx([targets.mean()] * 2)


def test_numbers_of_too_many_levels_stay_numbers(monkeypatch):
    values, targets = numbers_of("persons")
    table = pa.table({"n": values.astype(float)})
    monkeypatch.setattr("scne.rows._encoder_learner.MOST_LEVELS", 300)
    assert learned(table, targets, rows=700)[1].names == ("n", "n mean")
    monkeypatch.setattr("scne.rows._encoder_learner.MOST_LEVELS", 299)
    for rows in (None, 700, 100):
        assert learned(table, targets, rows=rows)[1].names == ("n",)


def test_texts_of_too_many_levels_are_refused():
    assert MOST_LEVELS == 100_000
    table = pa.table({"key": [f"key {n}" for n in range(MOST_LEVELS + 1)]})
    with pytest.raises(DataError, match="has more than 100,000 different texts, too many for a category"):
        learned(table, np.zeros(MOST_LEVELS + 1))


def test_numbers_that_are_not_whole_name_nothing():
    values, targets = numbers_of("persons")
    table = pa.table({"n": values + np.where(np.arange(4_000) == 3_999, 0.5, 0.0)})
    for rows in (None, 700):
        assert learned(table, targets, rows=rows)[1].names == ("n",)


@pytest.mark.parametrize("few", [1, 50, 1 << 14])
def test_when_sums_are_added_makes_no_difference(monkeypatch, few):
    table, targets = towns(200, n_targets=2)
    texts, folds = table["town"].combine_chunks(), folds_of(np.arange(200))
    parts = [
        LevelSums.of_rows(texts[rows], folds[rows], targets[rows], None)
        for rows in (slice(0, 90), slice(90, 91), slice(91, 200))
    ]
    at_once = [reduce(LevelSums.combined, parts).settled()]
    monkeypatch.setattr("scne.rows._level_sums._FEW_CELLS", few)
    at_once.append(reduce(LevelSums.combined, parts, LevelSums.of_nothing(pa.string(), 2)).settled())
    first, second = at_once
    assert first.levels == second.levels
    for one, other in zip(first.by_fold().arrays, second.by_fold().arrays, strict=True):
        assert one.tolist() == other.tolist()
    whole = LevelSums.of_rows(texts, folds, targets, None).by_fold()
    for one, other in zip(first.by_fold().arrays, whole.arrays, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_keys_and_quantities_of_many_digits_are_let_go_at_once():
    rng = np.random.default_rng(0)
    table = pa.table({"key": rng.permutation(1 << 15).astype(float), "n": rng.integers(0, 2_000, 1 << 15)})
    source = TableRows("X", table, rng.normal(size=(1 << 15, 1)), None)
    learner = EncoderLearner(source)
    learner.update(next(source.batches(rows=1 << 14)), 0)
    assert set(learner._sums) == {"n"}
    # A number for each level at least.
    assert 8 * 2_000 < learner.name_bytes < 1e6
    learner.forget_names()
    assert learner.name_bytes == 0.0


def test_two_zeros_are_one_number():
    values, targets = numbers_of("persons")
    values = np.where(values == values[0], 0.0, values.astype(float))
    values[np.flatnonzero(values == 0.0)[::2]] *= -1.0
    _, encoder = learned(pa.table({"n": values}), targets)
    assert encoder.encodings[0].levels.count(0.0) == 1
    check_encodings(encoder.encodings)


TEXTS = LevelMeanEncoding("town", ("a", "b"), (1.0, 2.0, 3.0, 4.0), (5.0, 6.0), (7.0, 8.0), np.ones((5, 3, 2)))
NUMBERS = NamedNumberEncoding("person", 1.5, False, (1.0, 2.0), (1.0, 2.0), (1.5,), np.ones((5, 3, 1)))


@pytest.mark.parametrize("encoding", [TEXTS, NUMBERS], ids=["texts", "numbers"])
def test_encodings_come_back_from_what_is_stored(encoding):
    stored = Encoder((encoding,), ((encoding.column, (encoding.column,)),), inputs=(encoding.column,))
    for with_crossed in (True, False):
        again = Encoder.from_dict(stored.to_dict(with_crossed))
        assert again == stored
        assert again.tells_folds == with_crossed
        assert Encoder.from_dict(stored.settled().to_dict(True)) == stored


@pytest.mark.parametrize("encoding", [TEXTS, NUMBERS], ids=["texts", "numbers"])
def test_what_other_folds_say_is_no_part_of_an_encoding(encoding):
    other = replace(encoding, crossed=encoding.crossed + 1.0)
    assert other == encoding
    assert hash(other) == hash(encoding)
    assert repr(other) == repr(encoding)
    assert "crossed" not in repr(encoding)


@pytest.mark.parametrize(
    ("encoding", "changed", "words"),
    [
        (TEXTS, {"levels": ()}, "not in ascending order"),
        (TEXTS, {"levels": ("b", "a")}, "not in ascending order"),
        (TEXTS, {"levels": ("a", "a")}, "are not different texts"),
        (TEXTS, {"levels": ("a", 2)}, "are not different texts"),
        (TEXTS, {"means": (1.0, 2.0, 3.0)}, "means of column 'town' are not a number for each level and target"),
        (TEXTS, {"means": (1.0, 2.0, 3.0, np.inf)}, "not a number for each level and target"),
        (TEXTS, {"means": (1.0, 2.0, 3.0, True)}, "not a number for each level and target"),
        (TEXTS, {"missing": (5.0,)}, "what stands for gaps in column 'town' is not a number for each target"),
        (TEXTS, {"missing": (5.0, np.nan)}, "what stands for gaps"),
        (TEXTS, {"default": ()}, "what stands for new levels of column 'town' is not a number for each target"),
        (TEXTS, {"default": (np.nan, 1.0)}, "what stands for new levels"),
        (TEXTS, {"crossed": np.ones((5, 2, 2))}, "by fold are not a number"),
        (TEXTS, {"crossed": np.ones((4, 3, 2))}, "by fold are not a number"),
        (TEXTS, {"crossed": np.full((5, 3, 2), np.nan)}, "by fold are not a number"),
        (NUMBERS, {"levels": ()}, "not in ascending order"),
        (NUMBERS, {"levels": (2.0, 1.0)}, "not in ascending order"),
        (NUMBERS, {"levels": (1.0, np.nan)}, "are not numbers"),
        (NUMBERS, {"levels": (1.0, "2")}, "are not numbers"),
        (NUMBERS, {"means": (1.0,)}, "not a number for each level and target"),
        (NUMBERS, {"default": (1.0, 2.0)}, "not a number for each level and target"),
        (NUMBERS, {"crossed": np.ones((5, 3))}, "by fold are not a number"),
        (NUMBERS, {"fill": np.nan}, "mean of column 'person' is not a finite number"),
        (NUMBERS, {"indicator": 1}, "marks of column 'person'"),
    ],
)
def test_encodings_that_no_rows_give_are_refused(encoding, changed, words):
    check_encodings((encoding,))
    with pytest.raises(ValueError, match=words):
        check_encodings((replace(encoding, **changed),))


def test_targets_whose_squares_overflow_are_refused_by_name():
    X = pd.DataFrame({"town": towns()[0]["town"].to_pylist()})
    with pytest.raises(ValueError, match="y"):
        RVFLRegressor(4).fit(X, np.linspace(-1e300, 1e300, 600))


def test_names_of_things_never_cost_rows_of_the_search(tmp_path):
    rng = np.random.default_rng(0)
    person = rng.integers(0, 15_000, 60_000)
    y = rng.normal(size=15_000)[person] + 0.1 * rng.normal(size=60_000)
    table = pa.table({"person": rng.permutation(15_000)[person], "x": rng.normal(size=60_000), "y": y})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=8_192)

    def opened(memory):
        return open_rows(tmp_path / "rows.parquet", target="y", memory=memory)

    base = SCNRegressor(4, n_candidates=5, search_rows=20_000)
    plan = scne.fitting.plan_memory(base, opened("1GB"), 1, 1, "float64")
    needed = needed_bytes(plan.most, 20_000, 1)
    assert not replace(plan, budget=needed).has_room(1e6)
    named, plain = (base.fit(opened(memory)).encoder_.names for memory in ("1GB", f"{needed / 1e6 + 1:.0f}MB"))
    assert (named, plain) == (("person", "person mean", "x"), ("person", "x"))


def test_the_plan_of_memory_counts_means_as_graded_columns(tmp_path):
    pq.write_table(level_table(), tmp_path / "rows.parquet")
    rows = open_rows(tmp_path / "rows.parquet", target="y", ignore=["z"], memory="2GB")
    plan = scne.fitting.plan_memory(SCNRegressor.tuned(), rows, 2, 1, "float64")
    known = plan.after_learning(level_model(tmp_path).encoder_, 1_200)
    assert (known.most.n_columns, known.most.n_graded) == (7, 7)


def sums_of(values, targets, weights=None):
    """Targets by level of a column and by fold."""
    folds = folds_of(np.arange(len(values)))
    return LevelSums.of_rows(pa.array(values, from_pandas=True), folds, np.atleast_2d(targets.T).T, weights)


def frequent_and_rare(n_levels):
    """Numbers of which the first is in nine of ten rows, and a target that only the others, by name, decide."""
    rare = np.tile(np.arange(1.0, n_levels), 10)
    values = np.concatenate([np.zeros(9 * len(rare)), rare])
    return values, np.where(values > 0, np.where(values % 2 > 0, 1.0, -1.0), 0.0)


@pytest.mark.parametrize(("n_levels", "named"), [(29, False), (30, True)])
def test_thirty_numbers_at_least_name_things(n_levels, named):
    values, targets = frequent_and_rare(n_levels)
    found = named_numbers(NumberEncoding("n", 0.0, False), sums_of(values, targets))
    assert (found is not None) == named


@pytest.mark.parametrize(("n_rows", "named"), [(199, False), (200, True)])
def test_numbers_that_name_things_come_twice_on_average(n_rows, named):
    values = np.tile(np.arange(100.0), 2)[:n_rows]
    targets = np.random.default_rng(0).normal(size=100)[values.astype(int)]
    found = named_numbers(NumberEncoding("n", 0.0, False), sums_of(values, targets))
    assert (found is not None) == named


@pytest.mark.parametrize("gaps", [False, True])
def test_ranges_of_numbers_have_the_same_weight(gaps):
    """Of 65 equally frequent numbers two, in the middle, have a range together; what is missing is one of its own."""
    values = np.tile([*np.arange(65.0), *[np.nan] * gaps], 20)
    rng = np.random.default_rng(0)
    targets = rng.normal(size=(66, 2))[np.nan_to_num(values, nan=65.0).astype(int)] + rng.normal(size=(len(values), 2))
    merged = _sorted(sums_of(np.where(values == 33.0, 32.0, values), targets))
    by_ranges = _by_ranges(_sorted(sums_of(values, targets)))
    assert by_ranges > 0.3
    assert by_ranges == pytest.approx(explained(merged.cells, merged.told.crossed), rel=1e-9)


@pytest.mark.parametrize(
    ("n_rows", "n_levels", "open_still"),
    [(20_000, 18_000, True), (20_000, 18_001, False), (16_384, 16_384, False), (16_383, 16_383, True)],
)
def test_long_batches_in_which_nine_of_ten_numbers_differ_name_nothing(n_rows, n_levels, open_still):
    values = np.minimum(np.arange(float(n_rows)), n_levels - 1)
    assert may_still_name(sums_of(values, np.zeros(n_rows)), n_rows) == open_still


@pytest.mark.parametrize(("offset", "spread"), [(0.0, 1.0), (1e6, 1e-4)])
def test_what_is_explained_is_a_share_of_the_variance(offset, spread):
    rng = np.random.default_rng(0)
    values, folds = rng.integers(0, 12, 500), folds_of(np.arange(500))
    targets = np.column_stack([rng.normal(size=(12, 2))[values] + rng.normal(size=(500, 2)), np.full(500, 3.0)])
    weights = rng.uniform(0.5, 2.0, 500)
    sums = sums_of(values, offset + spread * targets, weights)
    told = sums.by_fold().over(0).mean + 0.1 * spread * rng.normal(size=(N_FOLDS, 12, 3))
    left = np.square(targets - (told[folds, np.argsort(sums.levels)[values]] - offset) / spread)
    whole = np.square(targets - np.average(targets, axis=0, weights=weights))
    shares = 1.0 - (weights @ left[:, :2]) / (weights @ whole[:, :2])
    # A target that never changes has no variance of which something could be explained.
    assert explained(sums.by_fold(), told) == pytest.approx(shares.sum() / 3, rel=1e-4)
    assert explained(sums.by_fold(), told + 9.0 * spread) == 0.0


def test_a_target_that_never_changes_is_told_as_it_is():
    table, _ = towns()
    _, encoder = learned(table, np.full(600, 3.0))
    assert set(encoder.transform(table)[:, 0]) == set(told(table, encoder)[:, 0]) == {3.0}


@pytest.mark.parametrize("target", [0.0, 0.1, 1e6])
@pytest.mark.parametrize("rows", [None, 700])
def test_numbers_name_nothing_for_a_target_that_never_changes(rows, target):
    """What rounding leaves of its variance explains nothing."""
    values, _ = numbers_of("persons")
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(values))
    table = pa.table({"n": values.astype(float)})
    assert learned(table, np.full(len(values), target), weights, rows)[1].names == ("n",)


def test_a_text_may_have_as_many_levels_as_are_allowed():
    counts = LevelCounts("key", "X")
    counts.update(pa.array([f"key {n}" for n in range(MOST_LEVELS)]), None)
    assert counts.n_levels == MOST_LEVELS
    with pytest.raises(DataError, match="'key' of X has more than 100,000"):
        counts.update(pa.array(["one more"]), None)


@pytest.mark.parametrize("n_targets", [1, 3])
def test_sums_know_what_they_take(n_targets):
    table, targets = towns(n_targets=n_targets)
    texts = table["town"].combine_chunks()
    one, other = (sums_of(texts[rows], targets[rows]) for rows in (slice(0, 400), slice(400, 600)))
    assert one.nbytes == one.levels.nbytes + one.places.nbytes + sum(part.nbytes for part in one.cells.arrays)
    assert one.combined(other).waiting
    assert one.combined(other).nbytes == one.nbytes + other.nbytes
    assert LevelSums.of_nothing(pa.string(), n_targets).nbytes == 0
    counts = LevelCounts("town", "X")
    counts.update(texts, None)
    assert counts.nbytes == counts.levels.nbytes + counts.rows.nbytes + counts.weight.nbytes


def test_numbers_of_all_levels_are_not_written_out():
    sums = sums_of(np.arange(3.0), np.zeros(3))
    assert not any(name in repr(sums) for name in ("places", "cells", "waiting"))
    assert not any("crossed" in repr(encoding) for encoding in (TEXTS, NUMBERS))


def test_targets_that_are_the_same_in_a_level_have_no_variance_in_it():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 12, 500)
    cells = sums_of(values, 1e9 / (values + 3.0), rng.uniform(0.5, 2.0, 500)).cells
    np.testing.assert_allclose(cells.squares, 0.0, atol=1e-25)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize(("n_levels", "form"), [(8, "category"), (9, "level means")])
def test_from_nine_levels_on_they_have_means_and_what_is_missing_is_no_level(n_levels, form, gaps):
    texts = [*(f"town {n}" for n in range(n_levels)), *[None] * gaps] * 10
    _, encoder = learned(pa.table({"town": pa.array(texts, pa.string())}), np.arange(float(len(texts))))
    assert [one.form for one in encoder.encodings] == [form]


def test_what_a_single_row_is_told_is_a_part_of_the_statistics():
    table, targets = towns(60)
    learner, encoder = learned(table, targets)
    wanted, found = column_statistics(told(table, encoder)), learner.statistics()
    for name in ("smallest", "largest"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-9)


@pytest.mark.parametrize("gaps", [False, True])
def test_what_is_learned_could_be_read_from_a_file(gaps):
    values, targets = numbers_of("persons")
    mask = np.arange(len(values)) % 9 == 0 if gaps else None
    columns = {"n": pa.array(values.astype(float), mask=mask), "town": pa.array(values.astype(str), mask=mask)}
    _, encoder = learned(pa.table(columns), targets)
    assert [one.form for one in encoder.encodings] == ["named numbers", "level means"]
    check_encodings(encoder.encodings)


@pytest.mark.parametrize("scale", [1.0, 1e-4])
def test_how_much_the_mean_of_a_level_counts(scale):
    """n v / (n v + s), with the weight n and the variance s of the level and the variance v of all, however small n."""
    table, targets = towns()
    weights = scale * np.random.default_rng(1).uniform(0.5, 2.0, 600)
    texts, y = np.array(table["town"].to_pylist()), targets[:, 0]
    mean = np.average(y, weights=weights)
    v = np.average(np.square(y - mean), weights=weights)
    expected = np.empty(600)
    for level in np.unique(texts):
        own, n = y[texts == level], weights[texts == level]
        of_level = np.average(own, weights=n)
        pull = n.sum() * v
        share = pull / (pull + np.average(np.square(own - of_level), weights=n))
        expected[texts == level] = share * of_level + (1 - share) * mean
    np.testing.assert_allclose(learned(table, targets, weights)[1].transform(table)[:, 0], expected, rtol=1e-9)


def test_rows_that_are_all_of_one_fold_are_told_numbers():
    table, targets = towns()
    weights = (folds_of(np.arange(600)) == 2).astype(float)
    _, encoder = learned(table, targets, weights)
    assert np.isfinite(told(table, encoder)).all()
    there = np.flatnonzero(weights)
    alone = learned(table.take(there), targets[there])[1]
    np.testing.assert_allclose(encoder.transform(table), alone.transform(table), rtol=1e-9)
