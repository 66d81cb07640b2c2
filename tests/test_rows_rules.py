"""Small rules of the rows: which type two columns share, what a name says, where a batch is cut, what has no spread."""

import datetime
from pathlib import Path

import array_api_strict
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scne.rows import (
    ArrayRows,
    ColumnStatistics,
    Encoder,
    SampleDrawer,
    all_finite,
    cast,
    class_codes,
    column_readings,
    column_statistics,
    content_keys,
    is_foreign,
    keys_in_numpy,
    learn_scaling,
    like,
    namespace_of,
    row_keys,
    sample_positions,
    to_numpy,
)
from scne.rows._arrays import is_lazy
from scne.rows._batches import missing_in, numbers, only_first, without_first
from scne.rows._data_error import DataError, RefusedValue, listing
from scne.rows._encodings import CategoryEncoding, DateEncoding, NumberEncoding, calendar_part, calendar_parts
from scne.rows._formats import find_files, format_of, partition_values
from scne.rows._level_encodings import NamedNumberEncoding
from scne.rows._memory_sizes import check_bytes
from scne.rows._scaling_learner import _n_graded, moments
from scne.rows._schemas import common_type, kind_of, type_for_kind, unify_columns
from scne.rows._settled_types import settled_types
from scne.rows._stray_texts import find_strays, stray_target
from scne.rows._type_changes import converted, read_type, without_marks

STAMP, ZONED = pa.timestamp("us"), pa.timestamp("ns", "UTC")


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (pa.int8(), pa.int32(), pa.int64()),
        (pa.int8(), pa.int8(), pa.int8()),
        (pa.uint32(), pa.int8(), pa.int64()),
        (pa.uint64(), pa.int8(), pa.float64()),  # no integer type holds both
        (pa.int64(), pa.float32(), pa.float64()),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.decimal128(5, 2), pa.int8(), pa.float64()),
        (pa.null(), pa.string(), pa.string()),
        (pa.null(), pa.null(), pa.null()),
        (pa.large_string(), pa.dictionary(pa.int8(), pa.string()), pa.string()),
        (pa.date32(), pa.date64(), pa.timestamp("ms")),
        (pa.date32(), STAMP, STAMP),
        (pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("ns")),
        (ZONED, pa.timestamp("s", "UTC"), ZONED),
        (STAMP, ZONED, None),
        (pa.date32(), ZONED, None),
        (pa.date32(), pa.time32("s"), None),
        (pa.date32(), pa.int32(), None),
        (pa.time32("s"), STAMP, None),
        (pa.bool_(), pa.int8(), None),
        (pa.int8(), pa.string(), None),
    ],
)
def test_the_type_that_two_columns_share(one, other, both):
    assert common_type(one, other) == both
    assert common_type(other, one) == both


@pytest.mark.parametrize(
    ("type_", "kind"),
    [
        (pa.null(), "empty"),
        (pa.uint8(), "number"),
        (pa.float16(), "number"),
        (pa.decimal128(5, 2), "number"),
        (pa.bool_(), "flag"),
        (pa.string(), "category"),
        (pa.large_string(), "category"),
        (pa.run_end_encoded(pa.int32(), pa.string()), "category"),
        (pa.dictionary(pa.int8(), pa.int64()), "category"),
        (pa.date64(), "date"),
        (pa.time64("us"), "date"),
        (STAMP, "date"),
        (pa.binary(), None),
        (pa.list_(pa.int8()), None),
        (pa.duration("s"), "number"),
    ],
)
def test_what_a_type_is_to_a_model(type_, kind):
    assert kind_of(type_) == kind


def test_the_type_of_a_stated_kind():
    assert type_for_kind("date", pa.string()) == pa.timestamp("us")
    assert type_for_kind("date", pa.time32("s")) == pa.time32("s")
    assert type_for_kind("date", pa.date32()) == pa.date32()
    assert [type_for_kind(kind, pa.int8()) for kind in ("number", "flag", "category")] == [
        pa.float64(),
        pa.bool_(),
        pa.string(),
    ]


@pytest.mark.parametrize(
    ("found", "in_text", "as_key_in_text"),
    [
        (pa.int64(), pa.float64(), pa.int64()),
        (pa.null(), pa.float64(), pa.string()),
        (pa.float64(), pa.float64(), pa.float64()),
        (pa.string(), pa.string(), pa.string()),
    ],
)
def test_text_files_tell_a_type_only_as_far_as_they_were_looked_at(found, in_text, as_key_in_text):
    unified = unify_columns([(Path("a.csv"), pa.schema([("x", found)]))])
    for keys, text_files, type_ in (((), True, in_text), (("x",), True, as_key_in_text), ((), False, found)):
        assert settled_types(unified, ["x"], {}, keys, text_files=text_files).field("x").type == type_
    stated = settled_types(unified, ["x"], {"x": "flag"}, (), text_files=True, written=["x"])
    assert stated.field("x").type == pa.bool_()


def test_an_empty_column_of_the_first_file_is_not_what_others_must_agree_with():
    schemas = [(Path(f"{number}"), pa.schema([("x", type_)])) for number, type_ in enumerate([pa.null(), pa.int8()])]
    assert unify_columns(schemas).types == {"x": pa.int8()}
    unified = unify_columns([*schemas, (Path("2"), pa.schema([("x", pa.string())]))])
    assert "is string in 2, but int8 in 1" in unified.conflicts["x"]


@pytest.mark.parametrize(
    ("name", "format_name"),
    [
        ("a.csv", "CSV"),
        ("a.TSV", "CSV"),
        ("a.csv.gz", "CSV"),
        ("a.b.csv.gz", "CSV"),
        ("a.tsv.zst", "CSV"),
        ("a.parquet.gz", None),
        ("a.gz", None),
        ("a.csv.txt", None),
        ("csv", None),
        ("a.b.feather", "Arrow"),
        ("a.ipc", "Arrow"),
        ("a.pq", "Parquet"),
    ],
)
def test_a_format_by_the_ending(name, format_name):
    found = format_of(Path(name))
    assert (found and found.name) == format_name


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["1", "-20"], [1, -20]),
        (["0", "10"], [0, 10]),
        (["7", "007"], ["7", "007"]),  # a leading zero is a code
        (["1", "a"], ["1", "a"]),
        (["1", "1.5"], ["1", "1.5"]),
        (["9" * 18, "1"], [10**18 - 1, 1]),
        (["9" * 19, "1"], ["9" * 19, "1"]),  # no 64 bits hold it
        (["2", "\N{SUPERSCRIPT TWO}"], ["2", "\N{SUPERSCRIPT TWO}"]),
        (["2", "\N{ARABIC-INDIC DIGIT TWO}"], ["2", "\N{ARABIC-INDIC DIGIT TWO}"]),
        (["1", "__HIVE_DEFAULT_PARTITION__"], [1, None]),
        (["b", "__HIVE_DEFAULT_PARTITION__"], ["b", None]),
    ],
)
def test_a_column_in_folder_names_is_whole_numbers_or_texts(texts, values):
    paths = [Path("root", f"k={text}", "0.csv") for text in texts]
    assert [found["k"].as_py() for found in partition_values(Path("root"), paths)] == values


def test_folders_that_name_no_column():
    paths = [Path("root/plain/=3/a=/0.csv"), Path("root/0.csv")]
    assert partition_values(Path("root"), paths) == [{"a": pa.scalar("")}, {}]


def test_hidden_files_and_what_others_leave_beside_the_data(tmp_path):
    for name in ("a.csv", "_SUCCESS", ".hidden.csv", "_temporary/b.csv", "_k=1/c.csv", ".git/d.csv", "sub/e.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x\n1\n")
    assert [path.name for path in find_files(tmp_path)[1]] == ["c.csv", "a.csv", "e.csv"]


def test_the_first_file_that_cannot_be_read_and_the_first_of_another_format_are_named(tmp_path):
    (tmp_path / "a.csv").touch()
    (tmp_path / "b.parquet").touch()
    with pytest.raises(DataError, match=r"b\.parquet is Parquet, but .*a\.csv is CSV"):
        find_files(tmp_path)
    (tmp_path / "a.docx").touch()
    with pytest.raises(DataError, match=r"a\.docx is not in a format"):
        find_files(tmp_path)


@given(st.lists(st.integers(0, 5), max_size=6), st.integers(-1, 20))
def test_batches_are_cut_to_the_row(lengths, count):
    stops = np.cumsum(lengths, dtype=int).tolist()
    batches = [
        pa.record_batch({"x": pa.array(range(stop - n, stop), pa.int64())})
        for stop, n in zip(stops, lengths, strict=True)
    ]
    whole = list(range(sum(lengths)))
    first, rest = list(only_first(batches, count)), list(without_first(batches, max(0, count)))
    assert [x for batch in first for x in batch["x"].to_pylist()] == whole[: max(0, count)]
    assert [x for batch in rest for x in batch["x"].to_pylist()] == whole[max(0, count) :]
    assert all(len(batch) for batch in rest)


def test_what_follows_the_last_row_wanted_is_not_asked_for():
    asked = []

    def batches():
        for number in range(5):
            asked.append(number)
            yield pa.record_batch({"x": [1, 2]})

    assert sum(len(batch) for batch in only_first(batches(), 4)) == 4
    assert asked == [0, 1]
    assert list(only_first(batches(), 0)) == []
    assert asked == [0, 1]


def test_missing_and_infinite_numbers():
    assert missing_in(np.array([1.0, 2.0]), "x") is None
    assert missing_in(np.array([1e308, 1e308]), "x") is None  # the sum overflows, the numbers do not
    assert missing_in(np.array([1.0, np.nan]), "x").tolist() == [False, True]
    with pytest.raises(RefusedValue, match="row 3 of the batch") as caught:
        missing_in(np.array([1.0, np.nan, -np.inf, np.inf]), "x")
    assert caught.value.row == 2


def test_a_listing_says_how_many_more():
    assert listing("abc", 3) == "'a', 'b', 'c'"
    assert listing("abcd", 3) == "'a', 'b', 'c' and 1 more"
    assert listing([f"{n}" for n in range(20)]).endswith("'19'")
    assert listing([f"{n}" for n in range(21)]).endswith("'19' and 1 more")


@pytest.mark.parametrize("method", ["0-1", "standard"])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e9])
def test_a_spread_of_rounding_is_none(method, size):
    """Neighbouring numbers are a constant; a spread of a hundred units of rounding is not."""
    eps = np.finfo(float).eps
    for spread, constant in ((eps, True), (200 * eps, False)):
        values = -size * np.array([[1.0], [1.0 + spread], [1.0]])
        scaling = learn_scaling(column_statistics(values), method)
        assert (scaling.scale[0] == 1.0) == constant
        assert np.abs(scaling.apply(values)).max() < (1e-5 if constant else 2)


def test_scaled_values_are_mapped_back_however_they_are_written():
    scaling = learn_scaling(column_statistics(np.array([[1.0, -2.0], [3.0, 6.0]])), "standard")
    for values in ([[1, 6], [3, -2]], np.array([[1, 6], [3, -2]]), np.array([[1, 6], [3, -2]], dtype=np.float32)):
        np.testing.assert_allclose(scaling.undo(scaling.apply(values)), [[1.0, 6.0], [3.0, -2.0]], rtol=1e-15)
    np.testing.assert_allclose(scaling.undo([[0, 0], [1, -1]]), [[2.0, 2.0], [3.0, -2.0]], rtol=1e-15)


def test_a_range_is_kept_only_where_values_are_to_be_clipped():
    statistics = column_statistics(np.array([[1.0], [3.0]]))
    for method in ("none", "0-1", "standard"):
        free, clipped = learn_scaling(statistics, method), learn_scaling(statistics, method, clip=True)
        assert (free.lower, free.upper) == (None, None)
        assert (clipped.lower.tolist(), clipped.upper.tolist()) == ([1.0], [3.0])
        np.testing.assert_array_equal(clipped.apply([[-9.0], [9.0]]), free.apply([[1.0], [3.0]]))


@pytest.mark.parametrize("n_rows", [65_535, 65_536, 65_537, 131_073])
@pytest.mark.parametrize("size", [1, 65_536])
def test_a_sample_of_whole_blocks_and_a_row_more(n_rows, size):
    expected = np.sort(np.argsort(row_keys(1, 0, n_rows))[:size])
    np.testing.assert_array_equal(sample_positions(n_rows, size, 1), expected)


def test_single_rows_are_put_together():
    drawer = SampleDrawer(5_000, 0)
    for start in range(1_000):
        drawer.update(pa.record_batch({"x": [start]}), start)
        assert len(drawer._pieces) == 1
    assert drawer.finish().table["x"].to_pylist() == list(range(1_000))


def test_a_quarter_more_rows_are_held_than_the_sample_has():
    drawer, most = SampleDrawer(10_000, 0), 0
    for start in range(0, 40_000, 1_000):
        drawer.update(pa.record_batch({"x": range(start, start + 1_000)}), start)
        held = sum(piece.table.num_rows for piece in drawer._pieces)
        most = max(most, held)
        assert held == sum(len(piece.keys) for piece in drawer._pieces)
    assert 10_000 < most <= 12_500
    positions, table = drawer.finish()
    np.testing.assert_array_equal(positions, sample_positions(40_000, 10_000, 0))
    np.testing.assert_array_equal(table["x"].to_numpy(), positions)


def test_an_empty_batch_tells_the_columns():
    drawer = SampleDrawer(3, 0)
    drawer.update(pa.record_batch({"x": pa.array([], pa.float32())}), 0)
    sample = drawer.finish()
    assert sample.positions.tolist() == []
    assert sample.table.schema == pa.schema([("x", pa.float32())])


@given(st.integers(-5, 5), st.integers(0, 40), st.integers(1, 50))
def test_keys_and_samples_beside_an_array(seed, n_rows, size):
    """Beside one of NumPy's they are as they are without; beside another library's they are the same rows."""
    alone = row_keys(seed, 3, 3 + n_rows)
    here = row_keys(seed, 3, 3 + n_rows, np.zeros(2))
    there = row_keys(seed, 3, 3 + n_rows, array_api_strict.zeros(2))
    assert alone.dtype == here.dtype == np.uint64
    np.testing.assert_array_equal(here, alone)
    np.testing.assert_array_equal(keys_in_numpy(there), alone)
    chosen = sample_positions(n_rows, size, seed)
    assert len(chosen) == min(n_rows, size)
    np.testing.assert_array_equal(sample_positions(n_rows, size, seed, np.zeros(2)), chosen)
    if n_rows:
        np.testing.assert_array_equal(to_numpy(sample_positions(n_rows, size, seed, array_api_strict.zeros(2))), chosen)


@pytest.mark.parametrize("library", [np, array_api_strict])
def test_a_cast_to_the_same_precision_is_the_same_array(library):
    values = library.asarray([1.0, 2.0], dtype=library.float64)
    assert cast(values, "float64") is values
    single = cast(values, "float32")
    assert single.dtype == library.float32
    assert to_numpy(single).tolist() == [1.0, 2.0]


def test_values_like_an_array():
    for library in (np, array_api_strict):
        beside = library.zeros(2, dtype=library.float32)
        assert like([1, 2], beside).dtype == library.float32
        assert like([1, 2], beside, library.int64).dtype == library.int64
        assert namespace_of(like([1, 2], beside)) is library
        assert to_numpy(like([1, 2], beside)).tolist() == [1, 2]


@pytest.mark.parametrize("library", [np, array_api_strict])
def test_finite_arrays(library):
    def finite(*values):
        return all_finite(library.asarray(values, dtype=library.float64))

    assert finite(1.0, 1e308, 1e308)
    assert finite(1e308, 1e308, -1e308, -1e308, -1e308)
    assert not finite(1.0, np.inf)
    assert not finite(np.inf, -np.inf)
    assert not finite(np.nan)


def test_what_is_an_array_of_another_library():
    assert is_foreign(array_api_strict.zeros(2))
    others = (np.zeros(2), [1.0], None, 3.0, np.float64(3.0), pa.array([1.0]), pd.Series([1.0]))
    for value in (*others, array_api_strict.float64):
        assert not is_foreign(value)


def test_only_a_lazy_frame_is_lazy():
    assert is_lazy(pl.LazyFrame({"x": [1.0]}))
    collecting = type("Collector", (), {"collect": lambda self: self})()
    named = type("LazyFrame", (), {})()
    for value in (pl.DataFrame({"x": [1.0]}), collecting, named):
        assert not is_lazy(value)


def test_rows_without_a_value_leave_the_moments_of_others_as_they_are():
    some, none = moments([np.array([1e-20, 2e-20, 6e-20])]), moments([np.full(2, np.nan)])
    for both in (some.combined(none), none.combined(some)):
        assert both.missing == 2
        for name in ("weight", "mean", "squares", "smallest", "largest"):
            assert getattr(both, name) == getattr(some, name)


@pytest.mark.parametrize(("label", "other"), [("a", "b"), (True, False), (1, 2), (0.5, 1.5)])
def test_labels_are_compared_with_a_single_class(label, other):
    assert class_codes(pa.array([label, other]), [label], "kind", "x.csv").tolist() == [0, -1]


def test_parts_of_the_calendar():
    moments = pa.array([datetime.datetime(2013, 3, 1, 6, 45), None])
    days = moments.cast(pa.date32(), safe=False)
    expected = {"year": 2013, "month": 3, "day_of_year": 60, "weekday": 4, "hour": 6.75}
    assert calendar_parts(moments.type) == tuple(expected)
    assert calendar_parts(days.type) == tuple(expected)[:-1]
    assert calendar_parts(pa.time32("s")) == ("hour",)
    for part, value in expected.items():
        np.testing.assert_array_equal(calendar_part("t", moments, part), [value, np.nan])
        # A day begins at midnight.
        np.testing.assert_array_equal(calendar_part("t", days, part), [0 if part == "hour" else value, np.nan])
        if part != "hour":
            np.testing.assert_array_equal(calendar_part("t", pa.nulls(2), part), [np.nan, np.nan])


def test_the_share_of_gaps_is_the_mean_of_the_column_that_marks_them():
    persons = NamedNumberEncoding("person", 8.0, True, (7.0, 9.0), (1.5, 2.5), (2.0,))
    encodings = (DateEncoding("t", ("year", "hour"), (2013.0, 6.0), True), NumberEncoding("x", 1.0, True), persons)
    encoder = Encoder(encodings, (), inputs=("t", "x", "person"))
    means = np.arange(len(encoder.names)) / 10
    readings = column_readings(encoder, ColumnStatistics(1.0, means, means, means, means + 1.0))
    assert [reading.gap_share for reading in readings] == [
        means[encoder.names.index(f"{name} missing")] for name in encoder.inputs
    ]


def test_the_share_of_gaps_of_a_text_is_the_mean_of_the_column_after_its_levels():
    texts = CategoryEncoding("c", ("a", "b", "d"), missing=True, other=True)
    encoder = Encoder((NumberEncoding("x", 1.0, True), texts), (), inputs=("x", "c"))
    means = np.arange(len(encoder.names)) / 10
    reading = column_readings(encoder, ColumnStatistics(1.0, means, means, means, means + 1.0))[1]
    assert reading.gap_share == means[encoder.names.index("c missing")]


def test_a_clock_that_nobody_knows_is_named():
    moments = pa.array([0], pa.timestamp("us", "Mars/Olympus"))
    with pytest.raises(DataError, match=r"The hour of column 't' \(timestamp.*\) cannot be found: .*Mars/Olympus"):
        calendar_part("t", moments, "hour")


@pytest.mark.parametrize(("unit", "ticks"), [("s", 1), ("ms", 1_000), ("us", 1_000_000), ("ns", 1_000_000_000)])
def test_durations_are_seconds(unit, ticks):
    durations = pa.array([90 * ticks, None, -ticks // 2 if unit != "s" else -1], pa.duration(unit))
    assert numbers(durations).tolist() == pytest.approx([90.0, np.nan, -0.5 if unit != "s" else -1.0], nan_ok=True)


def test_whole_numbers_that_float64_cannot_hold_are_rounded():
    assert numbers(pa.array([2**53 + 1, None], pa.int64())).tolist() == pytest.approx([2.0**53, np.nan], nan_ok=True)
    read = converted(pa.array([2**53 + 1], pa.int64()), pa.field("x", pa.float64()), "a.parquet")
    assert read.to_pylist() == [2.0**53]


@pytest.mark.parametrize("type_", [pa.int8(), pa.uint64(), pa.float32(), pa.float64(), pa.decimal128(9, 2)], ids=str)
def test_true_is_one_and_false_is_zero_in_any_type_of_number(type_):
    assert converted(pa.array([True, False, None]), pa.field("x", type_), "a.parquet").to_pylist() == [1, 0, None]


def test_a_float_is_the_text_of_a_code_as_long_as_it_can_be_no_other():
    """2^53 may stand for 2^53 + 1 as well: from there on a float is no code."""
    exact = [0, 7, -7, 2**53 - 1, 1 - 2**53]
    texts = converted(pa.array([*map(float, exact), None]), pa.field("x", pa.string()), "a.parquet").to_pylist()
    assert texts == [*map(str, exact), None]
    beyond = [2.0**53, -(2.0**53), 2.0**53 + 2, 2.0**54]
    texts = converted(pa.array(beyond), pa.field("x", pa.string()), "a.parquet").to_pylist()
    assert [float(text) for text in texts] == beyond
    assert not {str(int(value)) for value in beyond} & set(texts)


def test_what_is_no_number_is_converted_without_a_loss_or_refused():
    stamps = pa.array([1_000, 1_001], pa.timestamp("ns"))
    whole = converted(stamps[:1], pa.field("x", STAMP), "a.parquet")
    assert whole.cast(pa.int64()).to_pylist() == [1]
    with pytest.raises(DataError, match=r"'x' of a\.parquet is timestamp\[ns\] and cannot be read as timestamp\[us\]"):
        converted(stamps, pa.field("x", STAMP), "a.parquet")


def test_flags_are_checked_at_any_size():
    flags = pa.field("x", pa.bool_())
    assert converted(pa.array([1, 0, None]), flags, "a.parquet").to_pylist() == [True, False, None]
    with pytest.raises(DataError, match=r"read as true or false, but holds 9\.0072e\+15"):
        converted(pa.array([1, 2**53 + 1]), flags, "a.parquet")


@pytest.mark.parametrize(
    ("written", "size"),
    [(3, 3), (3.5, 3.5), ("3", 3), ("3B", 3), *((f" 1.5 {unit}b ", 1.5 * 1000**k) for k, unit in enumerate("kMgT", 1))],
)
def test_sizes_of_memory(written, size):
    assert check_bytes("memory", written) == size
    if isinstance(written, str):
        assert check_bytes("memory", written.rstrip("bB ")) == size


def test_marks_are_found_among_integers_of_any_size():
    array = pa.array([2**53 + 1, -999, None, 2**62], pa.int64())
    assert without_marks(array, ("-999",)).to_pylist() == [2**53 + 1, None, None, 2**62]


def test_without_marks_a_column_is_left_as_it_is():
    for array in (pa.array(["a", "b"]).dictionary_encode(), pa.array([1.5]), pa.array(["?"])):
        assert without_marks(array, ()) is array


@pytest.mark.parametrize(
    ("kind", "found", "options", "type_"),
    [
        ("number", pa.null(), {}, pa.float64()),
        ("number", pa.string(), {"written": True, "fitted": "number"}, pa.float64()),
        ("category", pa.null(), {"fitted": "string"}, pa.string()),
        ("category", pa.int64(), {"written": True, "fitted": "string"}, pa.string()),
        ("category", pa.int64(), {"fitted": "string"}, None),
        ("date", pa.null(), {}, STAMP),
        ("date", pa.null(), {"fitted": "date"}, pa.date32()),
        ("date", pa.null(), {"fitted": "timestamp, zone UTC"}, pa.timestamp("us", "UTC")),
        ("date", pa.string(), {"written": True}, STAMP),
        ("date", pa.string(), {"written": True, "fitted": "time"}, pa.time32("s")),
        ("date", pa.int64(), {}, None),
    ],
)
def test_empty_columns_and_texts_are_read_as_what_they_are_said_to_be(kind, found, options, type_):
    assert read_type(kind, found, **options) == type_


def test_stated_dates_that_no_type_holds_together_are_refused():
    days, times = pa.schema([("x", pa.date32())]), pa.schema([("x", pa.time32("s"))])
    unified = unify_columns([(Path("0"), days), (Path("1"), times), (Path("2"), pa.schema([("x", pa.time64("us"))]))])
    with pytest.raises(DataError, match=r"is time32\[s\] in 1, but date32\[day\] in 0"):
        settled_types(unified, ["x"], {"x": "date"}, (), text_files=False)


def test_texts_that_are_all_what_a_column_holds_are_no_strays():
    assert find_strays([pa.array(["1", "2.5", None])]) is None
    assert find_strays([pa.array(["1", "2.5"])], "numbers") is None
    assert find_strays([]) is None


@pytest.mark.parametrize("library", [np, array_api_strict])
def test_rows_that_are_alike_but_in_one_column_never_share_a_key(library):
    """With all other columns fixed, the key is a one-to-one map of the numbers of a column."""
    for column in range(3):
        values = np.ones((2_000, 3))
        values[:, column] = np.arange(2_000)
        keys = keys_in_numpy(content_keys(library.asarray(values), seed=5))
        assert len(np.unique(keys)) == 2_000


def test_the_key_of_a_zero_is_the_first_number_of_splitmix64():
    assert content_keys(np.zeros((1, 1))).tolist() == [0xE220A8397B1DCDAF]


@pytest.mark.parametrize("n_texts", [99, 100, 101, 150])
def test_no_more_than_a_hundred_strays_are_counted(n_texts):
    strays = find_strays(pa.array(["1", f"x{text}"]) for text in range(n_texts))
    assert (strays.mostly, strays.n_texts) == ("numbers", min(n_texts, 100))
    assert strays.rows == {"x0": 1, "x1": 3, "x2": 5}
    more = " and 96 more;" if n_texts == 99 else " and at least 97 more;"
    assert more in str(stray_target("target", "y", "a.csv", strays))


@pytest.mark.parametrize("library", [np, array_api_strict])
def test_a_column_is_graded_when_it_has_three_values(library):
    values = np.array([[1.0, 0.0, 0.0, 7.0], [1.0, 1.0, 0.5, 7.0], [1.0, 1.0, 1.0, 8.0], [1.0, 0.0, 0.5, 9.0]])
    assert [_n_graded(library.asarray(values[:, :d])) for d in range(1, 5)] == [0, 0, 1, 2]


def test_rows_in_memory_are_not_copied_there():
    rows = ArrayRows(np.ones((3, 2)))
    assert rows.in_numpy() is rows
    # Rows that came from this process's memory are still there.
    there = ArrayRows(array_api_strict.asarray(rows.inputs), host=rows)
    assert there.in_numpy() is rows
    np.testing.assert_array_equal(ArrayRows(there.inputs).in_numpy().inputs, rows.inputs)
