"""What is wrong with files is said in a sentence that names the file and the column."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

from scne.rows import DataError, open_rows
from scne.rows._file_parts import unreadable


def refused(path, *words, read=False, **options):
    """Opening (or reading) the path fails with a sentence that holds all the words."""
    options.setdefault("target", "y")
    if read:
        files = open_rows(path, **options)
        with pytest.raises(DataError) as caught:
            list(files.batches())
    else:
        with pytest.raises(DataError) as caught:
            open_rows(path, **options)
    sentence = str(caught.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    for word in words:
        assert str(word) in sentence
    return sentence


@pytest.fixture
def air(tmp_path):
    rows = pa.table({"TEMP": [1.0, 2.0], "PRES": [3.0, 4.0], "wd": ["N", "S"], "y": [5.0, 6.0], "w": [1.0, 2.0]})
    pq.write_table(rows, tmp_path / "air.parquet")
    return tmp_path / "air.parquet"


class TestPaths:
    def test_missing(self, tmp_path):
        refused(tmp_path / "nowhere.parquet", "no file or folder", tmp_path / "nowhere.parquet")

    def test_empty_folder(self, tmp_path):
        (tmp_path / ".hidden.csv").write_text("x\n1\n")
        refused(tmp_path, tmp_path, "holds no data files", ".parquet", ".csv")

    def test_unsupported_format(self, tmp_path):
        (tmp_path / "a.xlsx").write_text("x")
        refused(tmp_path / "a.xlsx", tmp_path / "a.xlsx", "not in a format that can be read")

    def test_mixed_formats(self, air):
        (air.parent / "b.csv").write_text("x,y\n1,2\n")
        refused(air.parent, "mixes formats", air, air.parent / "b.csv")

    @pytest.mark.parametrize("ending", ["parquet", "arrow"])
    def test_no_rows(self, tmp_path, ending):
        rows = pa.table({"x": pa.array([], pa.float64()), "y": pa.array([], pa.float64())})
        path = tmp_path / f"a.{ending}"
        if ending == "parquet":
            pq.write_table(rows, path)
        else:
            with pa.OSFile(str(path), "wb") as sink, ipc.new_file(sink, rows.schema):
                pass
        refused(path, path, "holds no rows")

    def test_csv_without_rows(self, tmp_path):
        (tmp_path / "a.csv").write_text("x,y\n")
        refused(tmp_path / "a.csv", tmp_path / "a.csv", "holds no rows", read=True)

    def test_csv_without_anything(self, tmp_path):
        (tmp_path / "a.csv").write_text("")
        refused(tmp_path / "a.csv", tmp_path / "a.csv", "Empty CSV file")

    def test_csv_without_names(self, tmp_path):
        (tmp_path / "a.csv").write_text("1.5,2\n3,4\n")
        refused(tmp_path / "a.csv", tmp_path / "a.csv", "'1.5', '2'", "names of the columns")


class TestDamage:
    @pytest.fixture
    def big(self, tmp_path):
        rng = np.random.default_rng(0)
        return pa.table({"x": rng.normal(size=50_000), "c": rng.choice(["a", "b"], 50_000), "y": np.ones(50_000)})

    @pytest.mark.parametrize("share", [0, 0.001, 0.5, 0.999])
    def test_truncated_parquet(self, tmp_path, big, share):
        path = tmp_path / "a.parquet"
        pq.write_table(big, path)
        content = path.read_bytes()
        path.write_bytes(content[: int(len(content) * share)])
        refused(path, path, "corrupt, truncated or no Parquet file")

    @pytest.mark.parametrize("options", [{"compression": "gzip"}, {"write_page_checksum": True}])
    def test_parquet_damaged_in_the_middle(self, tmp_path, big, options):
        path = tmp_path / "a.parquet"
        pq.write_table(big, path, row_group_size=5_000, **options)
        content = bytearray(path.read_bytes())
        middle = len(content) // 2
        content[middle : middle + 20_000] = b"\xff" * 20_000
        path.write_bytes(content)
        refused(path, path, "corrupt", read=True)

    @pytest.mark.parametrize("share", [0, 0.001, 0.5, 0.999])
    def test_truncated_arrow(self, tmp_path, big, share):
        path = tmp_path / "a.arrow"
        with pa.OSFile(str(path), "wb") as sink, ipc.new_file(sink, big.schema) as writer:
            writer.write_table(big, max_chunksize=5_000)
        content = path.read_bytes()
        path.write_bytes(content[: int(len(content) * share)])
        refused(path, path, "corrupt, truncated or no Arrow file")

    def test_arrow_stream(self, tmp_path, big):
        path = tmp_path / "a.arrow"
        with pa.OSFile(str(path), "wb") as sink, ipc.new_stream(sink, big.schema) as writer:
            writer.write_table(big)
        refused(path, path, "pyarrow.ipc.new_file")

    def test_arrow_with_texts_that_are_not_unicode(self, tmp_path):
        path = tmp_path / "a.arrow"
        rows = pa.table({"c": ["abcd"] * 10, "y": np.ones(10)})
        with pa.OSFile(str(path), "wb") as sink, ipc.new_file(sink, rows.schema) as writer:
            writer.write_table(rows)
        path.write_bytes(path.read_bytes().replace(b"abcd", b"\xff\xff\xff\xff"))
        refused(path, path, "Invalid UTF8", "corrupt", read=True)

    def test_arrow_with_texts_that_point_outside(self, tmp_path):
        path = tmp_path / "a.arrow"
        rows = pa.table({"c": ["abcd"] * 1000, "y": np.ones(1000)})
        with pa.OSFile(str(path), "wb") as sink, ipc.new_file(sink, rows.schema) as writer:
            writer.write_table(rows)
        offsets = np.arange(0, 4004, 4, dtype=np.int32).tobytes()
        content = path.read_bytes()
        assert offsets in content
        path.write_bytes(content.replace(offsets, b"\x7f" * len(offsets)))
        refused(path, path, "corrupt", read=True)


class TestSchemas:
    def folder(self, path, *tables):
        for number, columns in enumerate(tables):
            pq.write_table(pa.table(columns), path / f"{number}.parquet")
        return path

    def test_different_types(self, tmp_path):
        self.folder(tmp_path, {"x": [1.0], "y": [1.0]}, {"x": [2], "y": [1.0]}, {"x": ["a"], "y": [1.0]})
        refused(tmp_path, "'x'", "string", tmp_path / "2.parquet", "double", tmp_path / "0.parquet")

    def test_a_column_that_one_file_lacks(self, tmp_path):
        self.folder(tmp_path, {"x": [1.0], "y": [1.0]}, {"y": [1.0]})
        refused(tmp_path, tmp_path / "1.parquet", "'x'", tmp_path / "0.parquet")

    def test_a_column_that_only_one_file_has(self, tmp_path):
        self.folder(tmp_path, {"x": [1.0], "y": [1.0]}, {"x": [1.0], "z": [1.0], "y": [1.0]})
        refused(tmp_path, tmp_path / "0.parquet", "'z'", tmp_path / "1.parquet")

    def test_differences_in_columns_that_are_not_read_do_not_matter(self, tmp_path):
        self.folder(tmp_path, {"x": [1.0], "u": [1], "y": [1.0]}, {"x": [1.0], "z": [1.0], "u": ["a"], "y": [1.0]})
        assert open_rows(tmp_path, target="y", ignore=["z", "u"]).n_rows == 2

    def test_time_zones(self, tmp_path):
        here, there = pa.array([0], pa.timestamp("us", "UTC")), pa.array([0], pa.timestamp("us"))
        self.folder(tmp_path, {"t": here, "y": [1.0]}, {"t": there, "y": [1.0]})
        refused(tmp_path, "'t'", "tz=UTC", tmp_path / "1.parquet")

    def test_two_columns_of_one_name(self, tmp_path):
        (tmp_path / "a.csv").write_text("x,x,y\n1,2,3\n")
        refused(tmp_path / "a.csv", tmp_path / "a.csv", "'x'", "more than one column")


class TestColumns:
    @pytest.mark.parametrize(
        "options",
        [
            {"target": "TMEP"},
            {"target": ["y", "TMEP"]},
            {"weight": "TMEP"},
            {"keys": ["TMEP"]},
            {"ignore": "TMEP"},
            {"groups": {"weather": ["PRES", "TMEP"]}},
            {"kinds": {"TMEP": "number"}},
        ],
    )
    def test_no_such_column(self, air, options):
        refused(air, air, "'TMEP'", "did you mean 'TEMP'?", "'TEMP', 'PRES', 'wd', 'y', 'w'", **options)

    def test_no_such_column_and_none_like_it(self, air):
        assert "did you mean" not in refused(air, "'zzzzzz'", "its columns are", target="zzzzzz")

    def test_weight_that_is_text(self, air):
        refused(air, air, "weight", "'wd'", "must hold numbers", weight="wd")

    def test_two_parts_for_one_column(self, air):
        refused(air, air, "'w'", "both target and weight", target="w", weight="w")

    @pytest.mark.parametrize(("column", "role"), [("y", "target"), ("w", "weight"), ("wd", "ignored")])
    def test_a_group_with_a_column_that_has_another_part(self, air, column, role):
        refused(air, air, "'g'", repr(column), role, weight="w", ignore=["wd"], groups={"g": ["TEMP", column]})

    def test_a_pattern_that_matches_nothing(self, air):
        refused(air, air, "'timbre_*'", "'sound'", "'TEMP'", groups={"sound": ["timbre_*"]})

    @pytest.mark.parametrize("groups", [{}, {"a": []}])
    def test_no_groups(self, air, groups):
        refused(air, "at least one", groups=groups)

    def test_nothing_left_to_learn_from(self, air):
        refused(air, air, "No input columns", ignore=["TEMP", "PRES", "wd", "w"])

    def test_unknown_kind(self, air):
        refused(air, "'TEMP'", "'int'", "number, flag, category, date", kinds={"TEMP": "int"})

    def test_a_column_that_is_not_of_the_kind_stated(self, air):
        refused(air, air, "'wd'", "string", "double", read=True, kinds={"wd": "number"})

    def test_reading_a_column_that_was_not_opened(self, air):
        files = open_rows(air, target="y", ignore="wd")
        with pytest.raises(DataError, match="'wd'"):
            files.batches(["wd"])


class TestValues:
    def two_files(self, path, column, values):
        for number in range(2):
            filled = values if number else [1.0] * len(values)
            pq.write_table(
                pa.table({"x": np.ones(len(values)), column: filled, "z": filled}), path / f"{number}.parquet"
            )
        return path

    @pytest.mark.parametrize("bad", [None, float("nan"), float("inf")])
    def test_target(self, tmp_path, bad):
        self.two_files(tmp_path, "y", [1.0, bad, 2.0, bad])
        word = "infinite" if bad == float("inf") else "missing"
        refused(tmp_path, "'y'", tmp_path / "1.parquet", word, "row 2", "2 among", read=True, ignore="z")

    @pytest.mark.parametrize("bad", [None, -1.0])
    def test_weight(self, tmp_path, bad):
        self.two_files(tmp_path, "w", [1.0, 0.0, bad])
        word = "negative" if bad == -1.0 else "missing"
        options = {"target": "x", "weight": "w"}
        refused(tmp_path, "weight", "'w'", tmp_path / "1.parquet", word, "row 3", read=True, **options)

    def test_csv_value_that_does_not_fit(self, tmp_path):
        (tmp_path / "0.csv").write_text("x,t,y\n" + "1,2,3\n" * 10)
        (tmp_path / "1.csv").write_text("x,t,y\n" + "1,2,3\n" * 400_000 + "1,error,3\n" + "1,2,3\n")
        refused(tmp_path, tmp_path / "1.csv", "'t'", "'error'", "row 400,001", read=True)

    def test_csv_line_of_another_length(self, tmp_path):
        (tmp_path / "a.csv").write_text("x,t,y\n" + "1,2,3\n" * 400_000 + "1,2\n")
        refused(tmp_path / "a.csv", tmp_path / "a.csv", "Expected 3 columns, got 2", read=True)

    def test_csv_text_that_is_not_unicode(self, tmp_path):
        (tmp_path / "a.csv").write_bytes(b"x,y\ncaf\xe9,2\n")
        refused(tmp_path / "a.csv", tmp_path / "a.csv", "'x'", "invalid UTF8 data", read=True)


def test_what_the_system_says_of_a_file_is_passed_on():
    path = Path("rows.parquet")
    words = str(unreadable(path, "Parquet", PermissionError(13, "Permission denied", str(path))))
    assert words == "rows.parquet cannot be read: Permission denied."
    # pyarrow raises OSErrors of its own, without a number: those are about what the file holds.
    words = str(unreadable(path, "Parquet", OSError("Truncated.\nMore lines")))
    assert words == "rows.parquet cannot be read as Parquet: Truncated; it is corrupt, truncated or no Parquet file."
    assert "pyarrow.ipc.new_file" in str(unreadable(path, "Arrow", OSError("Not an Arrow file")))
    assert "pyarrow.ipc.new_file" not in str(unreadable(path, "Parquet", OSError("Not an Arrow file")))
    assert "pyarrow.ipc.new_file" not in str(unreadable(path, "Arrow", OSError("Truncated")))
    assert str(unreadable(path, "CSV", OSError())).startswith("rows.parquet cannot be read as CSV: OSError; ")
    words = str(unreadable(path, "Parquet", OSError("Failed to launch worker thread: Resource unavailable")))
    assert words.startswith("rows.parquet cannot be read: the system has no memory left for the threads")
