"""CSV files with line breaks inside quotes are read at any size; too long records and open quotes are named."""

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from ensembles import plain_ensemble

from scne import SCNRegressor, open_rows
from scne.rows import DataError
from scne.rows import _csv_format as csv_format
from scne.rows import _csv_records as csv_records


def table(n, text_of):
    rng = np.random.default_rng(0)
    x = rng.normal(size=n).round(4)
    return pa.table({"x": x, "k": np.arange(n), "note": [text_of(i) for i in range(n)], "y": x + np.arange(n) % 7})


def model_bytes(path, tmp_path):
    model = plain_ensemble(SCNRegressor(4, n_candidates=10), random_state=0).fit(open_rows(path, target="y"))
    model.save(tmp_path / "m.scne")
    return (tmp_path / "m.scne").read_bytes()


def test_the_model_is_that_of_the_same_table_in_parquet(tmp_path):
    rows = table(120_000, lambda i: f'line {i % 5}\nand\n\n{"more" * (i % 3)}, "quoted"\r\n')
    csv.write_csv(rows, tmp_path / "a.csv")
    pq.write_table(rows, tmp_path / "a.parquet")
    assert (tmp_path / "a.csv").stat().st_size > 5 * csv_format._BLOCK_BYTES
    read = pa.Table.from_batches(open_rows(tmp_path / "a.csv", target="y").batches())
    assert read["note"].to_pylist() == rows["note"].to_pylist()
    assert model_bytes(tmp_path / "a.csv", tmp_path) == model_bytes(tmp_path / "a.parquet", tmp_path)


def test_a_range_of_rows_of_a_file_with_line_breaks(tmp_path):
    rows = table(60_000, lambda i: f"{i}\n{i}")
    csv.write_csv(rows, tmp_path / "a.csv")
    files = open_rows(tmp_path / "a.csv", target="y")
    assert files.count_rows() == 60_000
    part = pa.Table.from_batches(files.batches(["k"], 1000, 40_123, 47_000))
    assert part["k"].to_pylist() == list(range(40_123, 47_000))


@pytest.mark.parametrize(("place", "size"), [(0, 3), (3, 3), (70_000, 9), (79_999, 3)])
def test_records_longer_than_a_block(tmp_path, place, size):
    long = "a line\n" * (size * csv_format._BLOCK_BYTES // 7)
    rows = table(80_000, lambda i: long if i == place else f"t{i % 5}")
    csv.write_csv(rows, tmp_path / "a.csv")
    files = open_rows(tmp_path / "a.csv", target="y")
    read = pa.Table.from_batches(files.batches())
    assert read["k"].to_pylist() == list(range(80_000))
    assert read["note"][place].as_py() == long


def test_records_that_are_too_long(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_format, "_LARGEST_BLOCK", 1 << 22)
    rows = table(80_000, lambda i: "a line\n" * (1 << 21) if i == 60_000 else f"t{i % 5}")
    csv.write_csv(rows, tmp_path / "a.csv")
    files = open_rows(tmp_path / "a.csv", target="y")
    with pytest.raises(DataError, match=r"a.csv has a record of more than 4 MB.*a quote is opened"):
        files.count_rows()
    rows = table(10, lambda i: "a line\n" * (1 << 21) if i == 0 else f"t{i % 5}")
    csv.write_csv(rows, tmp_path / "a.csv")
    with pytest.raises(DataError, match=r"a.csv has a record of more than 4 MB"):
        open_rows(tmp_path / "a.csv", target="y")


class TestOpenQuotes:
    def refused(self, path, words):
        with pytest.raises(DataError, match=words):
            open_rows(path, target="y").count_rows()

    @pytest.mark.parametrize("end", ["", "\n"])
    def test_that_swallow_the_rest_of_the_file(self, tmp_path, end):
        path = tmp_path / "a.csv"
        path.write_text("y,c\n" + "1,a\n" * 20 + '2,"b\n' + "1,a\n" * 19 + "1,a" + end)
        self.refused(path, r"a.csv ends inside a text in quotes that began \d+ line\(s\) before its end, with 'b")

    def test_in_a_column_that_is_not_the_last(self, tmp_path):
        path = tmp_path / "a.csv"
        path.write_text("c,y\n" + "a,1\n" * 20 + '"b,2\n' + "a,1\n" * 20)
        self.refused(path, "Expected 2 columns")

    @pytest.mark.parametrize("last", ['"b\nc"\n', '"b\nc"', '12" pipe\n', '"12"" pipe\n12"" long"\n'])
    def test_that_are_closed_or_no_quotes(self, tmp_path, last):
        path = tmp_path / "a.csv"
        path.write_text("y,c\n" + '1,12" pipe\n' * 21 + f"2,{last}")
        assert open_rows(path, target="y").count_rows() == 22

    def test_that_swallow_more_than_is_compared(self, tmp_path):
        path = tmp_path / "a.csv"
        path.write_text("y,c\n" + "1,a\n" * 20 + '2,"b\n' + "1,a\n" * csv_records._END_BYTES)
        self.refused(path, r"a.csv ends inside a text in quotes that began 4,\d+ line\(s\) before its end, with 'b")

    @pytest.mark.parametrize("first", ["a", '12" pipe'])
    @pytest.mark.parametrize("last", ['"\n"', '"\n\n"\n'])
    def test_around_line_breaks_alone(self, tmp_path, first, last):
        path = tmp_path / "a.csv"
        path.write_text(f"y,c\n1,{first}\n2,{last}")
        assert open_rows(path, target="y").count_rows() == 2

    def test_in_pairs_are_not_followed_to_their_ends(self, tmp_path, monkeypatch):
        path = tmp_path / "a.csv"
        path.write_text('y,c\n1,"a\nb"\n')
        monkeypatch.delattr(csv_format.CsvFormat, "batches")
        csv_format.CsvFormat().record_starts(path, 1, 20)
        path.write_text('y,c\n1,12" pipe\n')
        with pytest.raises(AttributeError):
            csv_format.CsvFormat().record_starts(path, 1, 20)
