"""The encoder: learned in one pass, the same from any split of the rows, applied and stored exactly."""

import datetime
import decimal
import itertools
import json
import pickle
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scne.rows import DataError, Encoder, EncoderLearner, column_statistics, open_rows
from scne.rows._encoder_checks import check_encodings
from scne.rows._encodings import DateEncoding
from scne.rows._level_counts import MOST_LEVELS, LevelCounts


def learned(path, rows=16_384, learn=None, **options):
    files = open_rows(path, **options)
    learner = EncoderLearner(files, **(learn or {}))
    start = 0
    for batch in files.batches(rows=rows):
        learner.update(batch, start)
        start += len(batch)
    return learner


def encoder_of(tmp_path, columns, learn=None, **options):
    """Learn from a table with these columns and a target."""
    rows = pa.table(columns)
    rows = rows.append_column("y", pa.array(np.arange(rows.num_rows, dtype=float)))
    pq.write_table(rows, tmp_path / "rows.parquet")
    return learned(tmp_path / "rows.parquet", learn=learn, target="y", **options).finish()


def encoded(tmp_path, **columns):
    """Names and values of the encoded columns of a small table."""
    encoder = encoder_of(tmp_path, columns)
    values = encoder.transform(pa.table(columns))
    return {name: values[:, position].tolist() for position, name in enumerate(encoder.names)}


def mixed_table(n, seed=0):
    rng = np.random.default_rng(seed)
    some = rng.random(n) < 0.2
    moments = np.datetime64("2013-03-01T00:00:00") + rng.integers(0, 100_000_000, n)
    return pa.table(
        {
            "num": pa.array(rng.normal(1e6, 1.0, n), mask=some),
            "count": rng.integers(-5, 5, n),
            "flag": pa.array(rng.random(n) < 0.3, mask=rng.random(n) < 0.1),
            "wd": pa.array(rng.choice(["N", "NNW", "S", "E", "W"], n, p=[0.4, 0.3, 0.1, 0.1, 0.1]), mask=some),
            "when": pa.array(moments, pa.timestamp("s"), mask=rng.random(n) < 0.05),
            "w": rng.choice([0.0, 0.5, 2.0], n),
            "y": rng.normal(size=n),
        }
    )


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    path = tmp_path_factory.mktemp("mixed") / "mixed.parquet"
    pq.write_table(mixed_table(2000), path)
    return path


class TestKinds:
    def test_numbers(self, tmp_path):
        assert encoded(
            tmp_path,
            whole=pa.array([1, 2, 3], pa.int8()),
            exact=[decimal.Decimal("1.25"), decimal.Decimal("2.50"), None],
            gap=[1.0, float("nan"), 4.0],
            small=pa.array([1, 2, 4], pa.float16()),
        ) == {
            "whole": [1, 2, 3],
            "exact": [1.25, 2.5, 1.875],
            "exact missing": [0, 0, 1],
            "gap": [1, 2.5, 4],
            "gap missing": [0, 1, 0],
            "small": [1, 2, 4],
        }

    def test_flags(self, tmp_path):
        assert encoded(tmp_path, a=[True, False, True], b=[True, None, False]) == {
            "a": [1, 0, 1],
            "b": [1, 0.5, 0],
            "b missing": [0, 1, 0],
        }

    @pytest.mark.parametrize("type_", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
    def test_categories(self, tmp_path, type_):
        assert encoded(tmp_path, wd=pa.array(["S", "N", None, "N"], pa.string()).cast(type_)) == {
            "wd=N": [0, 1, 0, 1],
            "wd=S": [1, 0, 0, 0],
            "wd missing": [0, 0, 1, 0],
        }

    def test_rare_levels_share_a_column_and_ties_go_by_name(self, tmp_path):
        encoder = encoder_of(tmp_path, {"c": list("zzzbbaaq")}, {"max_levels": 2})
        assert encoder.names == ("c=z", "c=a", "c other")
        values = encoder.transform(pa.table({"c": ["a", "q", "never seen", None]}))
        assert values.tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 1], [0, 0, 1]]

    def test_new_levels_are_zeros_when_there_was_no_other_level(self, tmp_path):
        encoder = encoder_of(tmp_path, {"c": ["a", "b"]})
        assert encoder.transform(pa.table({"c": ["new", None, "b"]})).tolist() == [[0, 0], [0, 0], [0, 1]]

    def test_timestamps(self, tmp_path):
        moments = [datetime.datetime(2013, 3, 1, 6, 30), datetime.datetime(2014, 12, 31), None]
        assert encoded(tmp_path, when=moments) == {
            "when.year": [2013, 2014, 2013.5],
            "when.month": [3, 12, 7.5],
            "when.day_of_year": [60, 365, 212.5],
            "when.weekday": [4, 2, 3],
            "when.hour": [6.5, 0, 3.25],
            "when missing": [0, 0, 1],
        }

    @pytest.mark.parametrize("type_", [pa.date32(), pa.date64()])
    def test_dates_without_the_parts_that_never_change(self, tmp_path, type_):
        days = pa.array([datetime.date(2013, 3, 1), datetime.date(2013, 3, 8)]).cast(type_)
        assert encoded(tmp_path, day=days) == {"day.day_of_year": [60, 67]}

    def test_time_zones_count(self, tmp_path):
        moments = pa.array([0, 3600], pa.timestamp("s", "Asia/Shanghai"))
        assert encoded(tmp_path, t=moments) == {"t.hour": [8, 9]}

    def test_times_of_the_day(self, tmp_path):
        assert encoded(tmp_path, t=[datetime.time(6, 15), datetime.time(18)]) == {"t.hour": [6.25, 18]}

    def test_columns_that_say_nothing_are_left_out(self, tmp_path):
        day = pa.array([datetime.date(2013, 3, 1)] * 2)
        columns = {"x": [1.0, 2.0], "empty": pa.nulls(2), "nan": [float("nan")] * 2, "day": day}
        encoder = encoder_of(tmp_path, columns)
        assert encoder.names == ("x",)
        assert encoder.transform(pa.table({"x": [3.0]})).tolist() == [[3.0]]

    def test_a_column_that_cannot_be_numbers(self, tmp_path):
        with pytest.raises(DataError, match=r"'l' of .*rows\.parquet .* list.*; name it in ignore"):
            encoder_of(tmp_path, {"x": [1.0], "l": [[1, 2]]})

    def test_a_group_that_says_nothing(self, tmp_path):
        with pytest.raises(DataError, match="group 'none'"):
            encoder_of(tmp_path, {"x": [1.0], "e": pa.nulls(1)}, groups={"some": ["x"], "none": ["e"]})

    def test_a_text_that_is_a_key(self, tmp_path):
        with pytest.raises(DataError, match=r"'id' of .*rows\.parquet has more than 100,000 different texts"):
            encoder_of(tmp_path, {"x": np.ones(MOST_LEVELS + 1), "id": [str(i) for i in range(MOST_LEVELS + 1)]})

    def test_a_text_with_as_many_levels_as_are_allowed(self, tmp_path):
        counts = LevelCounts("id", tmp_path)
        levels = pa.array([str(i) for i in range(MOST_LEVELS)])
        for _ in range(2):
            counts.update(levels, np.full(MOST_LEVELS, 0.5))
        assert len(counts.rows) == MOST_LEVELS
        assert set(counts.rows) == {2}
        assert set(counts.weight) == {1.0}
        with pytest.raises(DataError, match="more than 100,000"):
            counts.update(pa.array(["one more"]), None)


class TestLearning:
    def test_names_sources_and_groups(self, mixed):
        encoder = learned(mixed, target="y", ignore="w", groups={"a": ["wd", "num"], "b": ["when", "num"]}).finish()
        assert set(encoder.inputs) > {"wd", "num", "when"}
        assert encoder.names[:2] == ("num", "num missing")
        assert encoder.sources[:2] == ("num", "num")
        present = pq.read_table(mixed)["wd"].drop_null().to_pylist()
        assert [encoder.names[p] for p in encoder.groups["a"]] == [
            *(f"wd={level}" for level, _ in Counter(present).most_common()),
            "wd missing",
            "num",
            "num missing",
        ]
        assert encoder.sources[encoder.groups["b"][0]] == "when"
        assert {name: encoder.kinds[name] for name in ("num", "wd", "when")} == {
            "num": "number",
            "wd": "category",
            "when": "date",
        }

    @pytest.mark.parametrize("weight", [None, "w"])
    @given(cuts=st.lists(st.integers(0, 2000), max_size=4), rows=st.integers(90, 2500))
    def test_the_same_from_any_split(self, mixed, weight, cuts, rows):
        files = open_rows(mixed, target="y", weight=weight, ignore=[] if weight else ["w"])
        whole = learned(mixed, 2000, target="y", weight=weight, ignore=[] if weight else ["w"])
        edges = sorted({0, *cuts, 2000})
        parts = []
        for start, stop in itertools.pairwise(edges):
            part = EncoderLearner(files)
            for batch in files.batches(rows=rows, start=start, stop=stop):
                part.update(batch)
            parts.append(part)
        both = parts[0]
        for part in parts[1:]:
            both = both.combined(part)
        assert both.n_rows == whole.n_rows
        assert both.finish().names == whole.finish().names
        batch = next(files.batches(rows=50))
        np.testing.assert_allclose(both.finish().transform(batch), whole.finish().transform(batch), rtol=1e-14)
        for name in ("mean", "squares", "smallest", "largest"):
            np.testing.assert_allclose(
                getattr(both.statistics(), name), getattr(whole.statistics(), name), rtol=1e-10, atol=1e-9
            )

    @pytest.mark.parametrize("weight", [None, "w"])
    def test_statistics_are_those_of_the_encoded_rows(self, mixed, weight):
        options = {"target": "y", "weight": weight, "ignore": [] if weight else ["w"]}
        learner = learned(mixed, 300, {"max_levels": 3}, **options)
        rows = pq.read_table(mixed)
        values = learner.finish().transform(rows)
        direct = column_statistics(values, rows["w"].to_numpy() if weight else None)
        found = learner.statistics()
        assert found.weight == pytest.approx(direct.weight, rel=1e-13)
        np.testing.assert_allclose(found.mean, direct.mean, rtol=1e-12)
        np.testing.assert_allclose(found.squares, direct.squares, rtol=1e-9)
        np.testing.assert_allclose(found.smallest, direct.smallest)
        np.testing.assert_allclose(found.largest, direct.largest)

    @pytest.mark.parametrize("weight", [None, "w"])
    def test_a_level_in_all_rows_is_a_column_of_ones(self, tmp_path, weight):
        rows = pa.table({"c": ["a", "a", "a"], "x": [1.0, None, 4.0], "w": [1.0, 1.0, 2.0], "y": [1.0, 2.0, 3.0]})
        pq.write_table(rows, tmp_path / "a.parquet")
        learner = learned(tmp_path / "a.parquet", target="y", weight=weight, ignore=[] if weight else ["w"])
        assert learner.finish().names == ("c=a", "x", "x missing")
        found, share = learner.statistics(), 1 / 4 if weight else 1 / 3
        assert (found.mean[0], found.squares[0], found.smallest[0], found.largest[0]) == (1, 0, 1, 1)
        assert (found.mean[2], found.smallest[2], found.largest[2]) == (pytest.approx(share), 0, 1)
        assert found.squares[2] == pytest.approx(found.weight * share * (1 - share))

    def test_means_do_not_cancel(self, tmp_path):
        values = 1e9 + np.array([0.1, 0.2, 0.3, 0.6])
        pq.write_table(pa.table({"x": values, "y": values}), tmp_path / "a.parquet")
        found = learned(tmp_path / "a.parquet", 1, target="y").statistics()
        assert found.squares[0] == pytest.approx(np.square(values - values.mean()).sum(), rel=1e-6)

    def test_learners_travel_between_processes(self, mixed):
        learner = learned(mixed, target="y")
        assert pickle.loads(pickle.dumps(learner)).finish() == learner.finish()

    def test_rows_of_weight_zero_are_not_there(self, tmp_path):
        rows = pa.table({"x": [1.0, 9.0, None], "c": ["a", "b", "c"], "w": [2.0, 0.0, 0.0], "y": [1.0, 2.0, 3.0]})
        pq.write_table(rows, tmp_path / "a.parquet")
        assert learned(tmp_path / "a.parquet", target="y", weight="w").finish().names == ("x", "c=a")

    @pytest.mark.parametrize("options", [{"max_levels": 0}, {"missing": "drop"}])
    def test_options(self, mixed, options):
        with pytest.raises(ValueError, match=next(iter(options))):
            EncoderLearner(open_rows(mixed, target="y"), **options)


class TestStored:
    def test_round_trip_through_json(self, mixed):
        encoder = learned(mixed, learn={"max_levels": 3}, target="y").finish()
        copy = Encoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
        assert copy == encoder
        assert copy.to_dict() == encoder.to_dict()
        rows = pq.read_table(mixed)
        assert (copy.transform(rows) == encoder.transform(rows)).all()

    def test_unequal(self, mixed):
        assert learned(mixed, target="y").finish() != learned(mixed, learn={"max_levels": 3}, target="y").finish()


class TestApplied:
    def test_columns_are_found_by_name_in_any_order_and_storage(self, mixed):
        encoder = learned(mixed, target="y").finish()
        rows = pq.read_table(mixed)
        other = rows.select(rows.column_names[::-1]).append_column("extra", pa.nulls(2000))
        other = other.set_column(other.column_names.index("wd"), "wd", rows["wd"].combine_chunks().dictionary_encode())
        other = other.set_column(other.column_names.index("count"), "count", rows["count"].cast(pa.float32()))
        assert (encoder.transform(other) == encoder.transform(rows)).all()

    def test_batch_by_batch_is_the_whole(self, mixed):
        encoder = learned(mixed, target="y").finish()
        rows = pq.read_table(mixed)
        parts = [encoder.transform(batch) for batch in rows.to_batches(max_chunksize=77)]
        assert (np.concatenate(parts) == encoder.transform(rows)).all()

    def test_no_rows(self, mixed):
        encoder = learned(mixed, target="y").finish()
        assert encoder.transform(pq.read_table(mixed)[:0]).shape == (0, len(encoder.names))

    def test_missing_where_none_was_missing_in_learning(self, tmp_path):
        encoder = encoder_of(tmp_path, {"x": [1.0, 3.0], "t": [datetime.date(2013, 1, 1), datetime.date(2013, 1, 3)]})
        gone = pa.table({"x": pa.nulls(1), "t": pa.nulls(1)})
        assert encoder.transform(gone).tolist() == [[2.0, 2.0, 2.0]]

    def test_missing_column(self, mixed):
        encoder = learned(mixed, target="y").finish()
        with pytest.raises(DataError, match="no column 'wd' among the rows"):
            encoder.transform(pq.read_table(mixed).drop_columns(["wd"]))

    @pytest.mark.parametrize(("column", "words"), [("num", "fitted on numbers"), ("when", "fitted on dates")])
    def test_wrong_type(self, mixed, column, words):
        encoder = learned(mixed, target="y").finish()
        rows = pq.read_table(mixed)
        wrong = rows.set_column(rows.column_names.index(column), column, rows["wd"])
        with pytest.raises(DataError, match=f"'{column}' holds values of type string.*{words}"):
            encoder.transform(wrong)

    def test_csv_is_read_as_what_was_learned(self, tmp_path):
        encoder = encoder_of(tmp_path, {"code": ["1", "A"], "x": [1.0, 2.0]})
        (tmp_path / "new.csv").write_text("code,x\n1,\n")
        files = open_rows(tmp_path / "new.csv", target=None, kinds=encoder.kinds)
        assert encoder.transform(next(files.batches())).tolist() == [[1, 0, 1.5]]


class TestRefused:
    @pytest.mark.parametrize("bad", [np.inf, -np.inf])
    def test_infinite_values_in_learning(self, tmp_path, bad):
        for number, value in enumerate((1.0, bad)):
            pq.write_table(pa.table({"x": [1.0, None, value], "y": [1.0, 2.0, 3.0]}), tmp_path / f"{number}.parquet")
        with pytest.raises(DataError, match=r"'x' holds an infinite value in row 3 of .*1\.parquet"):
            learned(tmp_path, target="y")

    def test_infinite_values_in_use(self, tmp_path):
        encoder = encoder_of(tmp_path, {"x": [1.0, None], "c": ["a", "b"]})
        with pytest.raises(DataError, match="'x' holds an infinite value in row 2 of the batch"):
            encoder.transform(pa.table({"c": ["a", "a"], "x": [1.0, np.inf]}))

    @pytest.mark.parametrize(
        "values", [[1.0, None, 3.0], [1.0, float("nan"), 3.0], ["a", None, "b"], [True, None, True]]
    )
    def test_missing_values(self, tmp_path, values):
        with pytest.raises(DataError, match=r"'x' has missing values \(1 among 3 rows\).* row 2 of .*rows\.parquet"):
            encoder_of(tmp_path, {"x": values}, {"missing": "refuse"})
        encoder = encoder_of(tmp_path, {"x": [values[0], values[2]]}, {"missing": "refuse"})
        with pytest.raises(DataError, match="'x' has missing values"):
            encoder.transform(pa.table({"x": values}))


def test_rows_without_any_weight_are_refused(tmp_path):
    with pytest.raises(DataError, match="holds no rows with a weight"):
        encoder_of(tmp_path, {"x": [1.0, 2.0], "w": [0.0, 0.0]}, weight="w")


def test_eight_levels_have_columns_and_more_have_means(tmp_path):
    for n_levels, names in ((8, [f"c=level {n}" for n in range(8)]), (9, ["c mean"])):
        encoder = encoder_of(tmp_path, {"c": [f"level {row % n_levels}" for row in range(360)]})
        assert list(encoder.names) == names


def test_without_a_target_thirty_two_levels_are_kept_unless_told_otherwise(tmp_path):
    pq.write_table(pa.table({"c": [f"level {row % 40:02d}" for row in range(400)]}), tmp_path / "a.parquet")
    encoder = learned(tmp_path / "a.parquet", target=None).finish()
    assert len(encoder.encodings[0].levels) == 32
    assert len(encoder.names) == 33


@pytest.mark.parametrize("weight", [None, "w"])
def test_rows_are_counted_as_they_are_learned_from(tmp_path, weight):
    rows = mixed_table(100)
    pq.write_table(rows, tmp_path / "a.parquet")
    learner = learned(tmp_path / "a.parquet", rows=30, target="y", weight=weight)
    weights = rows["w"].to_numpy() if weight else np.ones(100)
    assert (learner.n_rows, learner.weight) == (np.count_nonzero(weights), weights.sum())
    assert learner.combined(learner).n_rows == 2 * learner.n_rows


@pytest.mark.parametrize(
    ("parts", "fills"),
    [
        (["month"], (6.0,)),
        (("month", "month"), (6.0, 6.0)),
        (("century",), (20.0,)),
        (("month",), [6.0]),
        (("month",), ()),
        (("month",), (6.0, 7.0)),
        (("month",), (np.nan,)),
        (("month", "hour"), (6.0, "noon")),
    ],
)
def test_parts_of_dates_that_no_rows_give_are_refused(parts, fills):
    check_encodings((DateEncoding("when", ("month", "hour"), (6.0, 12.0), True),))
    with pytest.raises(ValueError, match="the parts of date 'when' are not calendar parts with a mean each"):
        check_encodings((DateEncoding("when", parts, fills, True),))


STORED = Encoder(
    (DateEncoding("when", ("month",), (6.0,), True),), (("g", ("when",)),), "indicator", inputs=("when",)
).to_dict()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"groups": [["g", ["when"]], ["g", ["when"]]]}, "groups are not different names with different columns each"),
        ({"groups": [[1, ["when"]], [2, ["when"]]]}, "groups are not different names with different columns each"),
        ({"groups": [["g", ["when", "when"]]]}, "groups are not different names with different columns each"),
        ({"groups": [["g", ["when", 1]]]}, "groups are not different names with different columns each"),
        ({"encodings": 2 * STORED["encodings"]}, "two encodings are of the same column"),
        ({"families": [["when", "date"], ["when", "time"]]}, "types of columns are not one for each column"),
        ({"missing": "sometimes"}, "does not say what to do with missing values"),
        ({"missing": None}, "does not say what to do with missing values"),
    ],
)
def test_names_in_a_stored_encoder_are_texts_of_which_no_two_are_the_same(changed, words):
    assert Encoder.from_dict(STORED).to_dict() == STORED
    with pytest.raises(ValueError, match=words):
        Encoder.from_dict({**STORED, **changed})


@pytest.mark.parametrize(
    ("families", "hours"),
    [((("when", "timestamp, zone Asia/Kolkata"),), [5.5, 11.5, 4.5]), ((), [0.0, 6.0, 23.0])],
    ids=["known", "unknown"],
)
def test_dates_of_tables_are_read_in_the_zone_of_the_fit(families, hours):
    moments = pa.array([datetime.datetime(2024, 1, 1, hour) for hour in (0, 6, 23)], pa.timestamp("us", "UTC"))
    date = DateEncoding("when", ("hour",), (0.0,), False)
    encoder = Encoder((date,), (("g", ("when",)),), "indicator", (), families)
    assert encoder.transform(pa.table({"when": moments}))[:, 0].tolist() == hours
