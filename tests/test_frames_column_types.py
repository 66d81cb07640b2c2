"""Columns of every type that a frame can have: taken with the bits of the file, or refused with a clear error."""

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pytest

from scne import RVFLRegressor, load, open_rows
from scne.rows._frames import frame_table

N = 40
NUMBERS = np.random.default_rng(0).standard_normal(N)
Y = np.sin(NUMBERS)
CODES = np.arange(N) % 5
TEXTS = np.array(["a", "b"])[CODES % 2]
DAYS = pd.date_range("2020-01-01", periods=N)
HOURS = [datetime.time(place % 24) for place in range(N)]
DECIMALS = [decimal.Decimal(int(code)) / 4 for code in CODES]


def pandas(values):
    return pd.DataFrame({"x": NUMBERS, "c": values})


def polars(values, dtype=None):
    return pl.DataFrame({"x": NUMBERS, "c": pl.Series(values, dtype=dtype)})


def arrow(values, type_=None):
    return pa.table({"x": NUMBERS, "c": values if type_ is None else pa.array(values, type_)})


def estimator():
    return RVFLRegressor(4, random_state=0)


def same_bits(one, other):
    return np.array_equal(one.view(np.int64), other.view(np.int64))


def write_arrow(frame, path):
    """The frame with its target as its own library writes it."""
    if isinstance(frame, pd.DataFrame):
        frame.assign(target=Y).to_feather(path)
    elif isinstance(frame, pl.DataFrame):
        frame.with_columns(target=pl.Series(Y)).write_ipc(path)
    else:
        pyarrow.feather.write_feather(frame.append_column("target", pa.array(Y)), path)


TAKEN = {
    "all NaN": lambda: pandas(np.nan),
    "all None": lambda: pandas([None] * N),
    "NaT": lambda: pandas(pd.Series([pd.NaT] * N)),
    "whole and other numbers as objects": lambda: pandas(pd.Series([1, 2.5] * (N // 2), dtype=object)),
    "dates as objects": lambda: pandas([day.date() for day in DAYS]),
    "times as objects": lambda: pandas(HOURS),
    "zone": lambda: pandas(DAYS.tz_localize("America/New_York")),
    "fixed zone": lambda: pandas(DAYS.tz_localize("+05:30")),
    "far years": lambda: pandas(pd.Series(np.array(["9999-01-01", "0001-01-01"] * (N // 2), "datetime64[s]"))),
    "timedelta": lambda: pandas(pd.to_timedelta(CODES, unit="D")),
    "unused levels": lambda: pandas(pd.Categorical(TEXTS, categories=["z", "a", "b"])),
    "no level used": lambda: pandas(pd.Categorical([None] * N, categories=["a"])),
    "ordered levels": lambda: pandas(pd.Categorical(TEXTS, ordered=True)),
    "levels of dates": lambda: pandas(pd.Categorical(DAYS[CODES])),
    "levels of true and false": lambda: pandas(pd.Categorical(CODES % 2 == 0)),
    "levels of numbers": lambda: pandas(pd.Categorical(CODES + 0.5)),
    "decimals": lambda: pandas(DECIMALS),
    "beyond 2^53": lambda: pandas(np.arange(N) + 2**60),
    "beyond 2^63": lambda: pandas(np.arange(N).astype(np.uint64) + np.uint64(2**63)),
    "half precision": lambda: pandas(NUMBERS.astype(np.float16)),
    "empty text": lambda: pandas(["", "b"] * (N // 2)),
    "one value": lambda: pandas("a"),
    "decimals on Arrow": lambda: pandas(pd.array(DECIMALS, dtype=pd.ArrowDtype(pa.decimal128(10, 2)))),
    "Enum": lambda: polars(TEXTS, pl.Enum(["z", "a", "b"])),
    "Categorical": lambda: polars(TEXTS, pl.Categorical),
    "Duration": lambda: polars([datetime.timedelta(seconds=int(code)) for code in CODES]),
    "Time": lambda: polars(HOURS),
    "Date": lambda: polars([day.date() for day in DAYS]),
    "Datetime in a zone": lambda: polars(DAYS.to_list()).with_columns(pl.col("c").dt.replace_time_zone("Asia/Tokyo")),
    "Decimal": lambda: polars(DECIMALS, pl.Decimal(10, 2)),
    "Null": lambda: polars([None] * N),
    "dictionary": lambda: arrow(pa.array(TEXTS).dictionary_encode()),
    "dictionary of numbers": lambda: arrow(pa.array(CODES).dictionary_encode()),
    "dictionary with a gap": lambda: arrow(pa.DictionaryArray.from_arrays(CODES % 3, ["a", None, "z"])),
    "decimal256": lambda: arrow(DECIMALS, pa.decimal256(50, 3)),
    "run-end encoded text": lambda: arrow(pa.RunEndEncodedArray.from_arrays([N // 2, N], ["a", "b"])),
    "run-end encoded numbers": lambda: arrow(pa.RunEndEncodedArray.from_arrays([N // 2, N], [1.0, 2.0])),
    "string view": lambda: arrow(pa.array(TEXTS).cast(pa.string_view())),
    "date64": lambda: arrow(pa.array(DAYS).cast(pa.date64())),
    "time32": lambda: arrow(HOURS, pa.time32("s")),
}


SPARSE = {
    "numbers with gaps": np.where(CODES == 0, np.nan, NUMBERS),
    "whole numbers": CODES,
    "true and false": CODES > 3,
    "texts": TEXTS.astype(object),
}


@pytest.mark.parametrize("values", SPARSE.values(), ids=SPARSE.keys())
def test_a_sparse_column_is_taken_as_the_dense_one(values):
    sparse, dense = pandas(pd.arrays.SparseArray(values)), pandas(values)
    expected = estimator().fit(dense, Y).predict(dense)
    assert same_bits(estimator().fit(sparse, Y).predict(sparse), expected)


@pytest.mark.parametrize("values", [NUMBERS, SPARSE["numbers with gaps"], CODES], ids=["full", "gaps", "whole"])
def test_a_column_of_numbers_takes_no_memory_of_its_own(values):
    frame = pd.DataFrame({"x": values})
    column = frame_table(frame)["x"].chunk(0)
    buffers = [buffer for buffer in column.buffers() if buffer is not None]
    assert [buffer.address for buffer in buffers] == [frame["x"].to_numpy().ctypes.data]


@pytest.mark.parametrize("make", TAKEN.values(), ids=TAKEN.keys())
def test_a_column_is_taken_with_the_bits_of_its_file(make, tmp_path):
    frame = make()
    fitted = estimator().fit(frame, Y)
    predicted = fitted.predict(frame)
    assert np.isfinite(predicted).all()
    fitted.save(tmp_path / "model.scne")
    assert same_bits(load(tmp_path / "model.scne").predict(frame), predicted)
    write_arrow(frame, tmp_path / "rows.arrow")
    rows = open_rows(tmp_path / "rows.arrow", target="target")
    of_file = estimator().fit(rows)
    assert same_bits(of_file.predict(rows), predicted)
    assert same_bits(of_file.predict(frame), predicted)


REFUSED = {
    "text and numbers": (lambda: pandas(["a", 1] * (N // 2)), r"mixes .* str and int, .*\.astype\(str\)"),
    "true and numbers": (lambda: pandas(pd.Series([True, 2] * (N // 2), dtype=object)), r"mixes .*\.astype\(float\)"),
    "complex": (lambda: pandas(NUMBERS + 1j), "complex numbers .* real and its imaginary part"),
    "lists": (lambda: pandas([[1, 2]] * N), "type list.*; spread its values over columns of their own"),
    "dictionaries": (lambda: pandas([{"a": 1}] * N), "type struct.*; spread its values"),
    "objects": (lambda: pandas([object()] * N), "holds values of a type that cannot be read"),
    "bytes": (lambda: pandas([b"a"] * N), "type binary.*; decode it to text, or leave it out"),
    "periods": (lambda: pandas(pd.period_range("2020", periods=N, freq="M")), r"pandas.period, .*to_timestamp\(\)"),
    "intervals": (lambda: pandas(pd.cut(NUMBERS, 4)), r"pandas.interval, .*\.astype\(str\)"),
    "more than 64 bits": (lambda: pandas(pd.Series([2**70] * N, dtype=object)), r"64 bits; .*\.astype\(float\)"),
    "infinity": (lambda: pandas(np.inf), r"infinity .*'c' .*replace it by a number, or by NaN"),
    "infinity beside text": (lambda: pandas(np.inf).assign(t="a"), "'c' holds an infinite value in row 0 of X"),
    "a name twice": (lambda: pd.DataFrame(np.ones((N, 2)), columns=["a", "a"]), "more than one column .*'a'"),
    "no columns": (lambda: pandas("a")[[]], "0 feature.*at least one column"),
    "no rows": (lambda: pandas("a")[:0], "0 sample"),
    "no value": (lambda: pandas(np.nan)[["c"]], "No column of X holds any value"),
    "a series": (lambda: pandas("a")["c"], "X is a Series, but it must be a table"),
    "a mapping": (lambda: {"x": NUMBERS}, r"X is a dictionary; .*pandas.DataFrame\(X\)"),
    "a structured array": (lambda: np.zeros(N, [("a", float)]), r"structured array; .*pandas.DataFrame\(X\)"),
    "a complex array": (lambda: np.ones((N, 2)) * 1j, r"Complex data not supported.*X.real, X.imag"),
    "Int128": (lambda: polars([2**90] * N, pl.Int128), "'c' of X is of a type that Arrow does not know .*64-bit"),
    "List": (lambda: polars([[1, 2]] * N), "type large_list.*; spread its values"),
    "Struct": (lambda: polars([{"a": 1}] * N), "type struct.*; spread its values"),
    "Binary": (lambda: polars([b"a"] * N), "type binary_view.*; decode it"),
    "lazy List": (lambda: polars([[1, 2]] * N).lazy(), "type large_list.*; spread its values"),
    "union": (
        lambda: arrow(pa.UnionArray.from_sparse(pa.array([0] * N, pa.int8()), [pa.array(CODES)])),
        "sparse_union.*; leave it out",
    ),
    "a zone nobody knows": (lambda: arrow(pa.array(DAYS).cast(pa.timestamp("us", "Mars/Phobos"))), "Mars/Phobos"),
}


@pytest.mark.parametrize(("make", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_a_column_is_refused_with_a_way_out(make, words):
    X = make()
    n_rows = N if isinstance(X, pl.LazyFrame | dict) else len(X)
    with pytest.raises((ValueError, TypeError), match=words) as refused:
        estimator().fit(X, Y[:n_rows])
    assert "\n" not in str(refused.value)


class TestNewRows:
    MIXED = pd.DataFrame(
        {"x": NUMBERS, "text": TEXTS, "day": DAYS, "lasted": pd.to_timedelta(CODES, unit="D"), "flag": CODES > 2}
    )

    @pytest.mark.parametrize("column", ["text", "day", "lasted", "flag"])
    def test_a_column_of_nothing_but_gaps_is_taken_in_any_type(self, column):
        # A single row without its text is NaN in pandas, which says nothing of its type.
        fitted = estimator().fit(self.MIXED, Y)
        expected = fitted.predict(self.MIXED.assign(**{column: None}))
        assert same_bits(fitted.predict(self.MIXED.assign(**{column: np.nan})), expected)

    def test_flags_that_pandas_has_made_numbers(self):
        fitted = estimator().fit(self.MIXED, Y)
        gappy = pd.array(np.where(CODES == 0, None, CODES > 2), dtype="boolean")
        expected = fitted.predict(self.MIXED.assign(flag=gappy))
        assert same_bits(fitted.predict(self.MIXED.assign(flag=gappy.to_numpy(float, na_value=np.nan))), expected)

    def test_a_model_of_numbers_takes_what_means_numbers(self):
        frame = pandas(CODES / 4.0)
        fitted = estimator().fit(frame, Y)
        expected = fitted.predict(frame)
        assert same_bits(fitted.predict(pandas(DECIMALS)), expected)
        assert same_bits(fitted.predict(pl.from_pandas(frame).lazy()), expected)
        assert same_bits(fitted.predict(frame.assign(c=None)), fitted.predict(frame.assign(c=np.nan)))

    @pytest.mark.parametrize("names", [[5, 7], [("a", "b"), ("a", "c")]], ids=["numbers", "two levels"])
    @pytest.mark.filterwarnings("ignore:X does not have valid feature names")
    def test_names_that_are_no_text_are_none(self, names):
        frame = pandas(TEXTS)
        unnamed = frame.set_axis(pd.Index(names), axis=1)
        expected = estimator().fit(frame, Y).predict(frame)
        fitted = estimator().fit(unnamed, Y)
        assert not hasattr(fitted, "feature_names_in_")
        assert same_bits(fitted.predict(unnamed), expected)
        assert same_bits(fitted.predict(frame.to_numpy()), expected)
        assert same_bits(estimator().fit(frame, Y).predict(unnamed), expected)
