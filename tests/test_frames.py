"""Tables as they lie on a user's desk: text, categories, dates, gaps, in frames of any library and in arrays."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from ensembles import plain_ensemble
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from scne import RVFLRegressor, SCNEClassifier, SCNERegressor, ScneWarning, SCNRegressor, load, open_rows

N = 240
RNG = np.random.default_rng(0)


def mixed_frame(n=N):
    rng = np.random.default_rng(1)
    gaps = rng.random(n) < 0.1
    return pd.DataFrame(
        {
            "number": rng.standard_normal(n),
            "gappy": np.where(gaps, np.nan, rng.standard_normal(n)),
            "text": rng.choice(["calm", "breeze", "storm"], n),
            "text with gaps": np.where(gaps, None, rng.choice(["a", "b"], n)),
            "category": pd.Categorical(rng.choice(["x", "y"], n)),
            "code": pd.Categorical(rng.choice([10, 20, 30], n)),
            "flag": rng.random(n) < 0.5,
            "flag with gaps": pd.array(np.where(gaps, None, rng.random(n) < 0.5), dtype="boolean"),
            "whole": rng.integers(0, 9, n),
            "whole with gaps": pd.array(np.where(gaps, None, rng.integers(0, 9, n)), dtype="Int64"),
            "when": pd.date_range("2020-01-01", periods=n, freq="7h"),
            "when in a zone": pd.date_range("2020-01-01", periods=n, freq="5h", tz="Europe/Berlin"),
            "lasted": pd.to_timedelta(rng.integers(1, 10_000, n), unit="s"),
        }
    )


def target_of(frame):
    return (
        np.sin(frame["number"].to_numpy())
        + (frame["text"] == "storm").to_numpy()
        + np.nan_to_num(frame["gappy"].to_numpy())
        + frame["lasted"].dt.total_seconds().to_numpy() / 1e4
    )


FRAME = mixed_frame()
Y = target_of(FRAME)
KINDS = {
    "pandas": lambda frame: frame,
    "pandas on Arrow": lambda frame: pa.Table.from_pandas(frame).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.from_pandas,
    "polars, lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "Arrow table": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "Arrow table in pieces": lambda frame: pa.concat_tables(
        [pa.Table.from_pandas(part, preserve_index=False) for part in (frame[:100], frame[100:])]
    ),
    "Arrow batch": lambda frame: pa.RecordBatch.from_pandas(frame, preserve_index=False),
}
kinds = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
MODELS = {
    "rvfl": RVFLRegressor(8, random_state=0),
    "scn": SCNRegressor(6, n_candidates=10, random_state=0),
    "scne": plain_ensemble(SCNRegressor(6, n_candidates=10), n_estimators=2, random_state=0),
}


def same_bits(one, other):
    return np.array_equal(one.view(np.int64), other.view(np.int64))


@pytest.fixture(scope="module")
def model():
    return RVFLRegressor(8, random_state=0).fit(FRAME, Y)


@kinds
@pytest.mark.parametrize("estimator", MODELS.values(), ids=MODELS.keys())
def test_frames_of_every_library_give_the_same_bits(estimator, kind):
    # Polars has no categories of numbers.
    frame = FRAME.drop(columns="code")
    expected = estimator.fit(frame, Y).predict(frame)
    found = estimator.fit(kind(frame), Y)
    assert same_bits(found.predict(kind(frame)), expected)
    assert list(found.feature_names_in_) == list(frame.columns)
    assert found.n_features_in_ == len(frame.columns)


@pytest.mark.parametrize("suffix", ["arrow", "parquet"])
def test_a_frame_and_the_file_it_was_written_to_give_the_same_bits(tmp_path, suffix):
    # The codes of a category of numbers come back from Parquet as numbers.
    frame = FRAME if suffix == "arrow" else FRAME.drop(columns="code")
    path = tmp_path / f"rows.{suffix}"
    table = frame.assign(target=Y)
    if suffix == "arrow":
        table.to_feather(path)
    else:
        table.to_parquet(path)
    estimator = SCNERegressor(SCNRegressor(6, n_candidates=10), n_estimators=2, random_state=0)
    of_frame = estimator.fit(frame, Y).predict(frame)
    rows = open_rows(path, target="target")
    of_file = estimator.fit(rows)
    assert list(of_file.feature_names_in_) == list(frame.columns)
    for given_rows in (rows, frame, table, pa.Table.from_pandas(table)):
        assert same_bits(of_file.predict(given_rows), of_frame)


def test_rows_that_are_read_in_many_stripes_give_the_same_bits(tmp_path):
    n = 20_000
    frame = mixed_frame(n).drop(columns="code")
    y = target_of(frame)
    frame.assign(target=y).to_parquet(tmp_path / "rows.parquet")
    estimator = SCNRegressor(4, n_candidates=5, search_rows=3_000, random_state=0)
    of_frame = estimator.fit(frame, y).predict(frame)
    assert same_bits(estimator.fit(open_rows(tmp_path / "rows.parquet", target="target")).predict(frame), of_frame)


def test_threads_change_no_bit(model):
    again = RVFLRegressor(8, random_state=0, n_jobs=1).fit(FRAME, Y)
    assert same_bits(again.predict(FRAME), model.set_params(n_jobs=2).predict(FRAME))


COLUMNS = {
    "float": lambda rng, n: rng.standard_normal(n),
    "float32": lambda rng, n: rng.standard_normal(n).astype(np.float32),
    "int8": lambda rng, n: rng.integers(-9, 9, n).astype(np.int8),
    "uint64": lambda rng, n: rng.integers(0, 9, n).astype(np.uint64),
    "Int32": lambda rng, n: pd.array(rng.integers(0, 9, n), dtype="Int32"),
    "Float64": lambda rng, n: pd.array(rng.random(n), dtype="Float64"),
    "bool": lambda rng, n: rng.random(n) < 0.5,
    "boolean": lambda rng, n: pd.array(rng.random(n) < 0.5, dtype="boolean"),
    "str": lambda rng, n: pd.array(rng.choice(["a", "b", "c"], n), dtype="str"),
    "object": lambda rng, n: np.array(rng.choice(["a", "b"], n), dtype=object),
    "category": lambda rng, n: pd.Categorical(rng.choice(["a", "b"], n)),
    "datetime": lambda rng, n: pd.Timestamp("2021-05-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="h"),
    "zone": lambda rng, n: (
        pd.Timestamp("2021-05-01", tz="Asia/Tokyo") + pd.to_timedelta(rng.integers(0, 900, n), unit="h")
    ),
    "timedelta": lambda rng, n: pd.to_timedelta(rng.integers(0, 900, n), unit="m"),
}
GAPLESS = {"int8", "uint64", "bool"}


@settings(max_examples=25)
@given(
    types=st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=6),
    seed=st.integers(0, 2**16),
    share=st.sampled_from([0.0, 0.2]),
)
def test_any_types_with_and_without_gaps(types, seed, share, tmp_path_factory):
    rng, n = np.random.default_rng(seed), 60
    frame = pd.DataFrame({f"{place} {kind}": pd.Series(COLUMNS[kind](rng, n)) for place, kind in enumerate(types)})
    for place, kind in enumerate(types):
        if kind not in GAPLESS:
            frame.iloc[rng.random(n) < share, place] = None
    y = rng.standard_normal(n)
    estimator = RVFLRegressor(4, random_state=0)
    expected = estimator.fit(frame, y).predict(frame)
    assert np.isfinite(expected).all()
    polars = pl.from_pandas(frame)
    assert same_bits(estimator.fit(polars, y).predict(polars), expected)
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    frame.assign(target=y).to_parquet(path)
    of_file = estimator.fit(open_rows(path, target="target"))
    assert same_bits(of_file.predict(frame), expected)


class TestNewRows:
    def test_a_level_that_the_fit_did_not_see(self, model):
        other = FRAME.assign(text="hurricane")
        assert np.isfinite(model.predict(other)).all()
        calm, storm = (model.predict(FRAME.assign(text=level)) for level in ("calm", "storm"))
        assert not np.array_equal(model.predict(other), calm)
        assert not np.array_equal(model.predict(other), storm)

    def test_reordered_columns_are_refused_as_scikit_learn_does(self, model):
        with pytest.raises(ValueError, match="same order"):
            model.predict(FRAME[FRAME.columns[::-1]])

    def test_a_model_of_files_finds_its_columns_by_name(self, tmp_path):
        FRAME.assign(target=Y).to_feather(tmp_path / "rows.arrow")
        of_file = RVFLRegressor(8, random_state=0).fit(open_rows(tmp_path / "rows.arrow", target="target"))
        assert same_bits(of_file.predict(FRAME[FRAME.columns[::-1]]), of_file.predict(FRAME))
        with pytest.raises(ValueError, match="X has no column 'text', which the model was fitted on"):
            of_file.predict(FRAME.drop(columns="text"))

    def test_a_missing_column_is_named(self, model):
        with pytest.raises(ValueError, match=r"(?s)missing.*text"):
            model.predict(FRAME.drop(columns="text"))

    @pytest.mark.parametrize(
        ("column", "values", "words"),
        [
            ("number", ["a"] * N, "was a number .* is (large_)?string"),
            ("text", np.arange(N), "was a string .* is int64"),
            ("when", np.arange(N), "was a timestamp .* is int64"),
            ("when in a zone", pd.date_range("2020-01-01", periods=N), "zone Europe/Berlin"),
            ("lasted", np.arange(N), "was a duration .* is int64"),
        ],
    )
    def test_a_column_of_another_type_is_named(self, model, column, values, words):
        with pytest.raises(ValueError, match=rf"Column '{column}' .*{words}"):
            model.predict(FRAME.assign(**{column: values}))

    def test_types_that_mean_the_same_are_taken(self, model):
        expected = model.predict(FRAME)
        for column, kind in (("whole", float), ("whole", np.int16), ("text", "category"), ("category", str)):
            assert same_bits(model.predict(FRAME.astype({column: kind})), expected)

    def test_gaps_where_the_fit_had_none_stand_for_the_mean(self):
        X = RNG.standard_normal((80, 3))
        frame = pd.DataFrame(X, columns=["a", "b", "c"])
        gappy = frame.copy()
        gappy.loc[5:9, "b"] = np.nan
        filled = frame.copy()
        filled.loc[5:9, "b"] = frame["b"].mean()
        for estimator in (RVFLRegressor(5, random_state=0), RVFLRegressor(5, scaling="min-max", random_state=0)):
            found = estimator.fit(frame, Y[:80])
            np.testing.assert_allclose(found.predict(gappy), found.predict(filled), rtol=1e-12)

    def test_the_mean_is_kept_in_a_file(self, tmp_path):
        X = RNG.standard_normal((80, 2))
        fitted = RVFLRegressor(5, random_state=0).fit(X, Y[:80])
        fitted.save(tmp_path / "model.scne")
        X[3, 1] = np.nan
        assert same_bits(load(tmp_path / "model.scne").predict(X), fitted.predict(X))

    def test_infinity_is_refused_with_its_place(self, model):
        with pytest.raises(ValueError, match="Column 'number' holds an infinite value in row 7 of X"):
            model.predict(FRAME.assign(number=np.where(np.arange(N) == 7, np.inf, 0.0)))

    def test_text_for_a_model_of_numbers_is_named(self):
        frame = pd.DataFrame({"a": RNG.random(40), "b": RNG.random(40)})
        fitted = RVFLRegressor(4, random_state=0).fit(frame, Y[:40])
        with pytest.raises(ValueError, match=r"Column 'b' of X holds text, dates or objects, but .* numbers alone"):
            fitted.predict(frame.assign(b="x"))


class TestArrays:
    def test_gaps_are_told_from_numbers(self):
        X = RNG.standard_normal((300, 3))
        y = np.isnan(np.where(X[:, 0] > 0.5, np.nan, X[:, 0])) + 0.1 * X[:, 1]
        X[X[:, 0] > 0.5, 0] = np.nan
        fitted = SCNRegressor(10, random_state=0).fit(X, y)
        assert fitted.score(X, y) > 0.99
        assert fitted.n_features_in_ == 3
        assert not hasattr(fitted, "feature_names_in_")

    def test_an_array_gives_the_bits_of_its_frame(self):
        X = np.where(RNG.random((100, 3)) < 0.1, np.nan, RNG.standard_normal((100, 3)))
        frame = pd.DataFrame(X, columns=["a", "b", "c"])
        estimator = RVFLRegressor(5, random_state=0)
        assert same_bits(estimator.fit(X, Y[:100]).predict(X), estimator.fit(frame, Y[:100]).predict(frame))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            assert same_bits(estimator.fit(frame, Y[:100]).predict(X), estimator.predict(frame))

    def test_objects_by_column(self):
        frame = FRAME[["number", "text", "gappy"]]
        objects = frame.to_numpy(dtype=object)
        estimator = RVFLRegressor(5, random_state=0)
        expected = estimator.fit(frame, Y).predict(frame)
        assert same_bits(estimator.fit(objects, Y).predict(objects), expected)
        assert same_bits(estimator.fit(objects.tolist(), Y).predict(objects.tolist()), expected)

    def test_dates(self):
        days = np.datetime64("2020-01-01") + np.arange(60)[:, None] * np.array([1, 30])
        fitted = RVFLRegressor(5, random_state=0).fit(days, np.sin(np.arange(60) / 9))
        assert np.isfinite(fitted.predict(days)).all()

    def test_durations_count_in_seconds(self):
        days = np.arange(60)[:, None].astype("timedelta64[D]")
        estimator, y = RVFLRegressor(5, random_state=0), np.sin(np.arange(60) / 9)
        seconds = pd.DataFrame({"0": np.arange(60) * 86_400.0, "1": None})
        expected = estimator.fit(seconds, y).predict(seconds)
        assert same_bits(estimator.fit(days, y).predict(days), expected)

    def test_sparse_matrices_are_taken_with_their_zeros(self):
        X = scipy.sparse.random(100, 6, 0.3, format="csr", random_state=0)
        estimator = RVFLRegressor(5, random_state=0)
        expected = estimator.fit(X.toarray(), Y[:100]).predict(X.toarray())
        assert same_bits(estimator.fit(X, Y[:100]).predict(X), expected)

    def test_a_sparse_matrix_too_large_for_memory_names_a_way(self):
        X = scipy.sparse.csr_array((10**6, 10**9))
        with pytest.raises(ValueError, match=r"takes 8,000,000.0 GB .*TruncatedSVD"):
            RVFLRegressor(5).fit(X, np.zeros(10**6))


class TestAllThatAModelDoes:
    def test_validation_rows_are_encoded_as_those_of_the_fit(self):
        fitted = SCNRegressor(6, n_candidates=10, random_state=0)
        fitted.fit(FRAME[:160], Y[:160], X_val=FRAME[160:], y_val=Y[160:])
        assert fitted.calibration_.shape == (80, 1)

    def test_more_rows_and_more_nodes(self):
        fitted = SCNRegressor(6, n_candidates=10, random_state=0).fit(FRAME[:160], Y[:160])
        fitted.partial_fit(FRAME[160:], Y[160:])
        assert fitted.n_rows_ == N
        assert fitted.add_nodes(2, FRAME, Y).n_hidden_ == 8

    def test_importances_are_of_the_users_columns(self):
        fitted = SCNRegressor(20, random_state=0).fit(FRAME, Y)
        assert fitted.feature_importances_.shape == (len(FRAME.columns),)
        np.testing.assert_allclose(fitted.feature_importances_.sum(), 1.0)
        found = fitted.permutation_importances(FRAME, Y, random_state=0).columns
        assert list(found.names) == list(FRAME.columns)

    def test_a_column_that_says_nothing_matters_nothing(self):
        fitted = RVFLRegressor(5, random_state=0).fit(FRAME.assign(empty=None), Y)
        assert fitted.n_features_in_ == len(FRAME.columns) + 1
        assert fitted.feature_importances_[-1] == 0.0
        found = fitted.permutation_importances(FRAME.assign(empty=None), Y, random_state=0).columns
        assert found.names[-1] == "empty"
        assert found.mean[-1] == 0.0

    def test_groups_of_the_users_columns(self):
        groups = {"wind": ["text", "flag"], "rest": ["number", "gappy", "when"]}
        with pytest.warns(ScneWarning, match=r"Columns 'text with gaps', .* are in no group"):
            fitted = plain_ensemble(RVFLRegressor(5), groups=groups, random_state=0).fit(FRAME, Y)
        names = [fitted.encoder_.names[place] for place in fitted.groups_["wind"]]
        assert names == ["text=breeze", "text=calm", "text=storm", "flag"] or set(names) == {
            "text=breeze",
            "text=calm",
            "text=storm",
            "flag",
        }
        found = fitted.permutation_importances(FRAME, Y, random_state=0).groups
        assert tuple(found.names) == ("wind", "rest")

    def test_a_group_that_says_nothing_is_named(self):
        groups = {"wind": ["text"], "nothing": ["empty"]}
        with pytest.raises(ValueError, match="Every column of group 'nothing'"):
            plain_ensemble(RVFLRegressor(5), groups=groups).fit(FRAME.assign(empty=None), Y)

    def test_intervals(self):
        fitted = SCNRegressor(6, validation_fraction=0.3, random_state=0).fit(FRAME, Y)
        prediction, lower, upper = fitted.predict(pa.Table.from_pandas(FRAME, preserve_index=False), interval=0.8)
        assert (lower < prediction).all()
        assert (prediction < upper).all()

    @pytest.mark.parametrize("frame", [FRAME, FRAME[["number", "gappy"]].to_numpy()], ids=["frame", "array"])
    def test_a_file_holds_all_of_it(self, tmp_path, frame):
        fitted = plain_ensemble(RVFLRegressor(5), n_estimators=2, random_state=0).fit(frame, Y)
        fitted.save(tmp_path / "model.scne")
        loaded = load(tmp_path / "model.scne")
        assert same_bits(loaded.predict(frame), fitted.predict(frame))
        assert loaded.n_features_in_ == fitted.n_features_in_
        assert hasattr(loaded, "feature_names_in_") == hasattr(fitted, "feature_names_in_")
        loaded.summary()

    def test_classes(self, tmp_path):
        labels = np.where(FRAME["text"] == "storm", "wet", "dry")
        fitted = SCNEClassifier(SCNRegressor(8), n_estimators=2, random_state=0).fit(FRAME, labels)
        assert fitted.score(FRAME, labels) > 0.98
        fitted.save(tmp_path / "model.scne")
        assert np.array_equal(load(tmp_path / "model.scne").predict(FRAME), fitted.predict(FRAME))

    def test_weights_of_zero_leave_rows_out(self):
        weights = np.r_[np.ones(160), np.zeros(80)]
        odd = FRAME.copy()
        odd.loc[160:, "text"] = "never"
        estimator = RVFLRegressor(5, random_state=0)
        expected = estimator.fit(FRAME[:160], Y[:160]).predict(FRAME)
        np.testing.assert_allclose(estimator.fit(odd, Y, weights).predict(FRAME), expected, rtol=1e-6, atol=1e-6)

    def test_a_checkpoint_resumes_only_for_the_same_frame(self, tmp_path):
        estimator = RVFLRegressor(5, random_state=0)
        assert same_bits(
            estimator.fit(FRAME, Y, checkpoint=tmp_path / "kept").predict(FRAME), estimator.fit(FRAME, Y).predict(FRAME)
        )
        assert not (tmp_path / "kept").exists()


def test_tags_tell_what_is_taken():
    for estimator in (RVFLRegressor(), SCNRegressor(), SCNERegressor(), SCNEClassifier()):
        tags = estimator.__sklearn_tags__().input_tags
        assert tags.allow_nan
        assert tags.categorical
        assert tags.sparse


class TestMembers:
    """`predict_members` takes what `predict` takes."""

    ENSEMBLE = plain_ensemble(SCNRegressor(6, n_candidates=10), n_estimators=2, random_state=0)

    @kinds
    def test_of_frames(self, kind):
        frame = FRAME.drop(columns="code")
        fitted = clone(self.ENSEMBLE).fit(frame, Y)
        members = fitted.predict_members(kind(frame))
        assert members.shape == (2, N)
        np.testing.assert_allclose(members.mean(axis=0), fitted.predict(frame), rtol=1e-12)

    def test_of_files(self, tmp_path):
        frame = FRAME.drop(columns="code")
        path = tmp_path / "rows.parquet"
        frame.assign(target=Y).to_parquet(path)
        fitted = clone(self.ENSEMBLE).fit(frame, Y)
        for rows in (path, str(path), open_rows(path, target=None), open_rows(path, target="target")):
            assert same_bits(fitted.predict_members(rows), fitted.predict_members(frame))

    def test_of_dask_is_refused_with_a_way_out(self):
        dask = pytest.importorskip("dask.dataframe")
        fitted = clone(self.ENSEMBLE).fit(FRAME, Y)
        with pytest.raises(TypeError, match=r"predict_members .* pass a part of it, such as X.partitions"):
            fitted.predict_members(dask.from_pandas(FRAME, npartitions=2))


def test_the_encoder_names_what_networks_see():
    frame = FRAME[["gappy", "text", "when"]]
    encoder = RVFLRegressor(4, random_state=0).fit(frame, Y).encoder_
    names = encoder.get_feature_names_out()
    assert list(names[:2]) == ["gappy", "gappy missing"]
    assert sorted(names[2:5]) == ["text=breeze", "text=calm", "text=storm"]
    assert names[5:].tolist() == ["when.month", "when.day_of_year", "when.weekday", "when.hour"]
    assert encoder.get_feature_names_out(["gappy", "text", "when"]).tolist() == names.tolist()
    with pytest.raises(ValueError, match="input_features is 'a', but the encoder was fitted on 'gappy'"):
        encoder.get_feature_names_out(["a"])
