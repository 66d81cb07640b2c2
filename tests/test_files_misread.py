"""Files that look like tables and are not quite: each is read as it was meant, or named with what is wrong with it."""

import gzip
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scne import ScneWarning
from scne.rows import DataError, open_rows

PLAIN = "x,y\n" + "".join(f"{i / 4},{i}\n" for i in range(20))


def read(tmp_path, content, name="a.csv", **options):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    options.setdefault("target", "y")
    return pa.Table.from_batches(open_rows(path, **options).batches())


def refused(tmp_path, content, words, **options):
    with pytest.raises(DataError, match=words):
        read(tmp_path, content, **options)


class TestEncodings:
    @pytest.mark.parametrize(
        "content",
        [
            PLAIN.encode("utf-8-sig"),
            PLAIN.replace("\n", "\r\n").encode(),
            PLAIN.replace("\n", "\r").encode(),
            ("\n\n" + PLAIN).encode(),
            PLAIN.replace(",", ";").encode(),
            PLAIN.replace(",", "\t").encode(),
            PLAIN.replace(",", " , ").replace(" , y", ",y").replace("x ", "x").encode(),
        ],
    )
    def test_other_beginnings_line_ends_and_separators(self, tmp_path, content):
        table = read(tmp_path, content)
        assert table.column_names == ["x", "y"]
        assert table["x"].to_pylist() == [i / 4 for i in range(20)]

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
    def test_wide_characters(self, tmp_path, encoding):
        refused(
            tmp_path, PLAIN.encode(encoding), r"a.csv is written in UTF-16 or UTF-32; CSV files must be text in UTF-8"
        )

    def test_zero_bytes(self, tmp_path):
        refused(tmp_path, PLAIN.replace("0.25", "0.25\0"), "a.csv holds zero bytes")
        # More than one byte in eight, and they are halves of letters.
        refused(tmp_path, b"x,y\n1,2\n3,4\n5\0\0,", "a.csv holds zero bytes")
        refused(tmp_path, b"x,y\n1,2\n3,4\n5\0\0\0", "a.csv is written in UTF-16 or UTF-32")

    def test_names_that_are_not_unicode(self, tmp_path):
        refused(
            tmp_path, PLAIN.replace("x,y", "é,y").encode("latin-1"), "line of names of .*a.csv is not written in UTF-8"
        )

    def test_compressed_wide_characters(self, tmp_path):
        content = gzip.compress(PLAIN.encode("utf-16"))
        refused(tmp_path, content, "UTF-16", name="a.csv.gz")


class TestNames:
    def test_separators_inside_names(self, tmp_path):
        table = read(tmp_path, '"T, max, C";y\n' + "1;2\n3;4\n")
        assert table.column_names == ["T, max, C", "y"]

    def test_a_separator_at_the_end_of_every_line(self, tmp_path):
        assert read(tmp_path, PLAIN.replace("\n", ",\n")).column_names == ["x", "y"]

    @pytest.mark.parametrize("name", ["", " "])
    def test_a_column_without_a_name(self, tmp_path, name):
        content = f"{name},x,y\n" + "0,1,2\n1,2,3\n"
        refused(tmp_path, content, "Column 1 of .*a.csv, .* has no name; if it only numbers the row")
        assert read(tmp_path, content, ignore=name).column_names == ["x", "y"]
        assert read(tmp_path, content, groups={"g": [name, "x"]}).column_names == [name, "x", "y"]

    def test_the_index_of_a_data_frame(self, tmp_path):
        path = tmp_path / "a.parquet"
        pd.DataFrame({"x": [1.0, 2.0], "y": [1.0, 2.0]}, index=[7, 3]).to_parquet(path)
        with pytest.warns(
            ScneWarning, match=r"'__index_level_0__' of .* is the index of a pandas data frame and is left"
        ):
            assert open_rows(path, target="y").input_names == ("x",)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert open_rows(path, target="y", ignore="__index_level_0__").input_names == ("x",)


class TestValues:
    def test_marks_of_missing_values(self, tmp_path):
        marks = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "#N/A"]
        table = read(tmp_path, "x,y\n1.5,0\n" + "".join(f"{mark},1\n" for mark in marks))
        assert table["x"].to_pylist() == [1.5] + [None] * len(marks)

    def test_codes_with_leading_zeros_are_texts_if_stated(self, tmp_path):
        content = "x,y\n" + "007,1\n7,2\n0x7,3\n" * 5
        table = read(tmp_path, content, kinds={"x": "category"})
        assert table["x"].to_pylist()[:3] == ["007", "7", "0x7"]

    def test_integers_beyond_the_exact_ones_are_texts_if_stated(self, tmp_path):
        values = [2**60 + 1, 2**60 + 3]
        pq.write_table(pa.table({"x": values, "y": [1.0, 2.0]}), tmp_path / "a.parquet")
        rows = open_rows(tmp_path / "a.parquet", target="y", kinds={"x": "category"})
        assert next(rows.batches())["x"].to_pylist() == [str(value) for value in values]

    def test_flags_in_every_usual_spelling(self, tmp_path):
        table = read(tmp_path, "x,y\n" + "".join(f"{flag},1\n" for flag in ("true", "False", "TRUE", "0", "1", "")))
        assert table["x"].to_pylist() == [True, False, True, False, True, None]

    def test_arrays_with_nothing_but_marks(self, tmp_path):
        table = read(tmp_path, "x,z,y\n?,1,1\n?,2,2\n", missing="?")
        assert table["x"].null_count == 2

    def test_hexadecimal_numbers(self, tmp_path):
        refused(tmp_path, "x,y\n0x1f,1\n0x20,2\n", r"notation that is not read: '0x1f' \(row 1\)")

    @pytest.mark.parametrize(("line", "count"), [("1", 1), ("1,2,3", 3)])
    def test_lines_of_another_length(self, tmp_path, line, count):
        refused(tmp_path, PLAIN + line + "\n", f"Row #22: Expected 2 columns, got {count}")


def test_every_reading_option_is_in_the_pass_over_a_folder(tmp_path):
    for number, mark in enumerate(("?", "-")):
        (tmp_path / f"{number}.csv").write_text(f"x,y\n1.5,1\n{mark},2\n")
    table = pa.Table.from_batches(open_rows(tmp_path, target="y", missing=("?", "-")).batches())
    assert np.isnan(np.array(table["x"].to_pylist(), dtype=float)).tolist() == [False, True, False, True]
