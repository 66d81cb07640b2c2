"""Files of every format give the same rows, in order, in batches of one length."""

import gzip
import pickle
import subprocess
import sys
import textwrap
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.feather as feather
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scne.rows import DataError, open_rows
from scne.rows._batches import rechunked
from scne.rows._formats import _mapped_batch
from scne.rows._settled_types import FittedColumn


def table(n=1000, seed=0):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "id": np.arange(n),
            "a_1": rng.normal(size=n),
            "a_2": rng.normal(size=n),
            "PM2.5": rng.normal(size=n),
            "wd": rng.choice(["N", "S", "W"], n),
            "y": rng.normal(size=n),
        }
    )


def write_arrow(rows, path, **options):
    with pa.OSFile(str(path), "wb") as sink, ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(rows, **options)


WRITERS = {
    "parquet": lambda rows, path: pq.write_table(rows, path),
    "parquet in groups of 7": lambda rows, path: pq.write_table(rows, path, row_group_size=7),
    "parquet in groups of 300": lambda rows, path: pq.write_table(rows, path, row_group_size=300),
    "arrow": write_arrow,
    "arrow in batches of 130": lambda rows, path: write_arrow(rows, path, max_chunksize=130),
    "feather lz4": lambda rows, path: feather.write_feather(rows, str(path), compression="lz4", chunksize=400),
    "csv": lambda rows, path: csv.write_csv(rows, str(path)),
}
ENDINGS = {"parquet": ".parquet", "arrow": ".arrow", "feather": ".feather", "csv": ".csv"}


@pytest.fixture(params=WRITERS)
def written(request, tmp_path):
    """1,000 rows in three files of a folder, and the rows."""
    rows = table()
    for number, part in enumerate((rows[:450], rows[450:453], rows[453:])):
        WRITERS[request.param](part, tmp_path / f"part-{number}{ENDINGS[request.param.split()[0]]}")
    return tmp_path, rows


@pytest.mark.parametrize("rows", [1, 64, 450, 5000])
def test_batches_have_one_length_and_all_rows_in_order(written, rows):
    path, whole = written
    files = open_rows(path, target="y", keys="id")
    batches = list(files.batches(rows=rows))
    assert [len(batch) for batch in batches] == [min(rows, 1000 - start) for start in range(0, 1000, rows)]
    assert pa.Table.from_batches(batches).equals(whole)
    assert files.n_rows == 1000


@pytest.mark.parametrize(("start", "stop"), [(0, 10), (100, 451), (449, 1000), (452, None), (999, None), (0, 0)])
def test_a_range_of_rows(written, start, stop):
    path, whole = written
    files = open_rows(path, target="y", keys="id")
    found = [value for batch in files.batches(["id"], 64, start, stop) for value in batch["id"].to_pylist()]
    assert found == whole["id"].to_pylist()[start:stop]


@pytest.mark.parametrize("start", [3, 4, 7])
def test_no_piece_is_empty_where_files_of_unknown_length_are_read_from_a_row_on(tmp_path, start):
    for number in range(2):
        csv.write_csv(table(6), str(tmp_path / f"{number}.csv"))
    files = open_rows(tmp_path, target="y", keys="id")
    pieces = list(files._stored.chunks(pa.schema([("y", pa.float64())]), 2, start))
    assert min(map(len, pieces)) > 0
    assert sum(map(len, pieces)) == 12 - start


@pytest.mark.parametrize("start", [10, 15])
def test_row_groups_before_the_first_row_are_not_read(tmp_path, start):
    path, rows = tmp_path / "a.parquet", pa.table({"x": np.arange(20.0), "y": np.arange(20.0)})
    pq.write_table(rows, path, row_group_size=10, compression="gzip", use_dictionary=False)
    column = pq.read_metadata(path).row_group(0).column(1)
    content, first = bytearray(path.read_bytes()), column.data_page_offset
    content[first : first + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(content)
    files = open_rows(path, target="y")
    assert np.concatenate([batch["y"] for batch in files.batches(["y"], 5, start)]).tolist() == list(range(start, 20))
    with pytest.raises(DataError, match="corrupt"):
        list(files.batches(["y"], 5))


def test_columns_are_read_in_the_order_asked_for(written):
    path, whole = written
    batch = next(open_rows(path, target="y", keys="id").batches(["y", "PM2.5", "a_1"], 100))
    assert pa.Table.from_batches([batch]).equals(whole.select(["y", "PM2.5", "a_1"])[:100])


def test_what_lies_in_the_map_of_a_file_is_told_from_what_was_unpacked(tmp_path):
    rows = table(50)
    write_arrow(rows, tmp_path / "a.arrow")
    feather.write_feather(rows, str(tmp_path / "a.feather"), compression="lz4")
    for name, mapped in (("a.arrow", True), ("a.feather", False)):
        batch, in_map = _mapped_batch(tmp_path / name, 0)
        assert pa.Table.from_batches([batch]).equals(rows)
        assert in_map == mapped


def test_row_counts_are_known_at_once_except_for_csv(tmp_path):
    rows = table(50)
    pq.write_table(rows, tmp_path / "a.parquet")
    write_arrow(rows, tmp_path / "a.arrow")
    csv.write_csv(rows, str(tmp_path / "a.csv"))
    assert open_rows(tmp_path / "a.parquet", target="y").n_rows == 50
    assert open_rows(tmp_path / "a.arrow", target="y").n_rows == 50
    text = open_rows(tmp_path / "a.csv", target="y")
    assert text.n_rows is None
    assert text.count_rows() == text.n_rows == 50
    assert "50 rows" in repr(text)


def test_folders_are_read_recursively_in_the_order_of_names_without_hidden_files(tmp_path):
    for name in ("b/1.parquet", "a/2.parquet", "a/10.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"x": [name], "y": [1.0]}), tmp_path / name)
    for name in ("_SUCCESS", ".hidden.parquet", "a/.crc"):
        (tmp_path / name).write_text("nothing")
    files = open_rows(tmp_path, target="y")
    assert [value for batch in files.batches() for value in batch["x"].to_pylist()] == [
        "a/10.parquet",
        "a/2.parquet",
        "b/1.parquet",
    ]
    assert [facts.path.name for facts in files.files] == ["10.parquet", "2.parquet", "1.parquet"]


def test_columns_in_folder_names(tmp_path):
    for year, station in ((2013, "A b"), (2014, "C")):
        folder = tmp_path / f"year={year}" / f"station={station.replace(' ', '%20')}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"x": [1.0, 2.0], "y": [1.0, 2.0]}), folder / "0.parquet")
    files = open_rows(tmp_path, target="y")
    assert set(files.input_names) == {"x", "year", "station"}
    whole = pa.Table.from_batches(files.batches(rows=3))
    assert whole["year"].to_pylist() == [2013, 2013, 2014, 2014]
    assert whole["station"].to_pylist() == ["A b", "A b", "C", "C"]
    assert [len(batch) for batch in files.batches(["year"])] == [4]


def test_rows_without_a_target_can_be_read_for_prediction(tmp_path):
    pq.write_table(table(10).drop_columns(["y"]), tmp_path / "a.parquet")
    files = open_rows(tmp_path / "a.parquet", target=None, keys=["id"], ignore="wd")
    assert files.target_names == ()
    assert files.key_names == ("id",)
    assert files.input_names == ("a_1", "a_2", "PM2.5")


def test_opened_rows_travel_between_processes(written):
    files = open_rows(written[0], target="y", keys="id")
    copy = pickle.loads(pickle.dumps(files))
    assert list(copy.batches()) == list(files.batches())


@given(st.lists(st.integers(0, 9)), st.integers(1, 12))
def test_rechunked_keeps_rows(lengths, rows):
    values = iter(range(sum(lengths)))
    pieces = [pa.record_batch({"x": pa.array([next(values) for _ in range(n)], pa.int64())}) for n in lengths]
    batches = list(rechunked(pieces, rows))
    assert all(len(batch) == rows for batch in batches[:-1])
    assert [value for batch in batches for value in batch["x"].to_pylist()] == list(range(sum(lengths)))


class TestTypes:
    def test_integers_and_floats_meet_and_so_do_dictionaries_and_texts(self, tmp_path):
        pq.write_table(pa.table({"x": [1, 2], "c": ["a", "b"], "y": [1.0, 2.0]}), tmp_path / "0.parquet")
        coded = pa.array(["b", "c"]).dictionary_encode()
        pq.write_table(
            pa.table({"c": coded, "x": [0.5, 1.5], "y": pa.array([1, 2], pa.int32())}), tmp_path / "1.parquet"
        )
        whole = pa.Table.from_batches(open_rows(tmp_path, target="y").batches(rows=3))
        assert whole.to_pydict() == {"x": [1, 2, 0.5, 1.5], "c": ["a", "b", "b", "c"], "y": [1.0, 2.0, 1.0, 2.0]}

    def test_dates_and_timestamps_meet(self, tmp_path):
        days = pa.array([0, 1], pa.date32())
        pq.write_table(pa.table({"t": days, "y": [1.0, 2.0]}), tmp_path / "0.parquet")
        pq.write_table(pa.table({"t": days.cast(pa.timestamp("us")), "y": [1.0, 2.0]}), tmp_path / "1.parquet")
        assert open_rows(tmp_path, target="y").schema.field("t").type == pa.timestamp("us")

    def test_an_empty_column_takes_the_type_that_it_has_elsewhere(self, tmp_path):
        pq.write_table(pa.table({"t": pa.nulls(2), "y": [1.0, 2.0]}), tmp_path / "0.parquet")
        pq.write_table(pa.table({"t": ["a", "b"], "y": [1.0, 2.0]}), tmp_path / "1.parquet")
        files = open_rows(tmp_path, target="y")
        assert pa.Table.from_batches(files.batches())["t"].to_pylist() == [None, None, "a", "b"]

    def test_codes_can_be_read_as_categories(self, tmp_path):
        pq.write_table(pa.table({"code": [7, 8], "y": [1.0, 2.0]}), tmp_path / "a.parquet")
        files = open_rows(tmp_path / "a.parquet", target="y", kinds={"code": "category"})
        assert next(files.batches())["code"].to_pylist() == ["7", "8"]


class TestCsv:
    def test_whole_numbers_may_go_on_as_fractions_after_the_first_block(self, tmp_path):
        lines = ["x,k,empty,y", *["1,7,,2"] * 400_000, "1.5,8,2.5,3"]
        (tmp_path / "a.csv").write_text("\n".join(lines))
        files = open_rows(tmp_path / "a.csv", target="y", keys="k")
        *_, last = files.batches()
        assert {name: values[-1] for name, values in last.to_pydict().items()} == {
            "x": 1.5,
            "k": 8,
            "empty": 2.5,
            "y": 3.0,
        }
        assert last["k"].type == pa.int64()

    @pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
    def test_separators(self, tmp_path, delimiter):
        text = "a,b,y\n1,x,3\n,NA,4\n".replace(",", delimiter)
        (tmp_path / "a.csv").write_text(text)
        batch = next(open_rows(tmp_path / "a.csv", target="y").batches())
        assert batch.to_pydict() == {"a": [1.0, None], "b": ["x", None], "y": [3.0, 4.0]}

    def test_compressed_files(self, tmp_path):
        with gzip.open(tmp_path / "a.csv.gz", "wt") as file:
            file.write("a,y\n1,2\n3,4\n")
        assert open_rows(tmp_path, target="y").count_rows() == 2

    def test_types_come_from_the_first_block_of_every_file(self, tmp_path):
        (tmp_path / "0.csv").write_text("a,t,y\n,2013-01-01,3\n")
        (tmp_path / "1.csv").write_text("y,t,a\n3.5,2013-01-01 12:30:00,north\n")
        files = open_rows(tmp_path, target="y")
        assert files.schema.field("t").type == pa.timestamp("us")
        assert pa.Table.from_batches(files.batches())["a"].to_pylist() == [None, "north"]

    def test_kinds_keep_codes_as_they_are_written(self, tmp_path):
        (tmp_path / "a.csv").write_text("code,y\n007,3\n08,4\n")
        files = open_rows(tmp_path / "a.csv", target="y", kinds={"code": "category"})
        assert next(files.batches())["code"].to_pylist() == ["007", "08"]


class TestChanges:
    def test_a_file_that_changed_stops_the_next_pass(self, written):
        files = open_rows(written[0], target="y")
        first = files.files[1].path
        first.write_bytes(first.read_bytes() + b"\n")
        with pytest.raises(DataError, match=f"{first.name} has changed since"):
            files.batches()

    def test_a_file_that_changes_while_it_is_read(self, written):
        files = open_rows(written[0], target="y")
        stream = files.batches(rows=10)
        next(stream)
        files.files[0].path.touch()
        with pytest.raises(DataError, match=r"part-0.* has changed since"):
            list(stream)

    def test_a_file_that_went_away(self, written):
        files = open_rows(written[0], target="y")
        files.files[2].path.unlink()
        with pytest.raises(DataError, match=r"part-2.* is gone now"):
            files.check_unchanged()


MEASURE = """
    import sys
    from scne.rows import open_rows

    def resident():
        return int(open("/proc/self/statm").read().split()[1]) * 4096

    files = open_rows(sys.argv[1], target="c0")
    next(files.batches())
    before, most = resident(), 0
    for number, batch in enumerate(files.batches()):
        total = sum(column.to_numpy().sum() for column in batch.columns)  # touches every page of a mapped file
        if number % 8 == 0:
            most = max(most, resident() - before)
    print(most)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_memory_is_bounded_when_all_rows_are_in_one_part(tmp_path, ending):
    n, d = 1_500_000, 20
    rows = pa.table({f"c{j}": np.arange(j, n + j, dtype=np.float64) for j in range(d)})
    path = tmp_path / f"one.{ending}"
    if ending == "parquet":
        pq.write_table(rows, path, row_group_size=n, use_dictionary=False, compression="none")
    else:
        write_arrow(rows, path)
    code = [sys.executable, "-c", textwrap.dedent(MEASURE), str(path)]
    grown = int(subprocess.run(code, check=True, capture_output=True, text=True).stdout)
    assert grown < 100e6 < 240e6 == n * d * 8


def test_rows_are_counted_by_one_column(tmp_path):
    """The target is not read, and so not found to have a gap."""
    (tmp_path / "a.csv").write_text("x,y\n1,2\n3,\n5,6\n")
    files = open_rows(tmp_path / "a.csv", target="y")
    assert files.schema.names[:2] == ["x", "y"]
    assert files.count_rows() == 3
    with pytest.raises(DataError, match="missing"):
        list(files.batches())


def test_texts_in_folder_names_beside_text_files(tmp_path):
    for code in ("a", "b"):
        (tmp_path / f"k={code}").mkdir()
        (tmp_path / f"k={code}" / "0.csv").write_text("c,y\nu,1\nv,2\n")
    whole = pa.Table.from_batches(open_rows(tmp_path, target="y").batches())
    assert whole["k"].to_pylist() == ["a", "a", "b", "b"]
    assert whole["c"].to_pylist() == ["u", "v", "u", "v"]


class TestReadAs:
    """Rows opened without a model, and read as the model read them."""

    def opened(self, tmp_path, **options):
        (tmp_path / "a.csv").write_text("c,x,y\n1,?,5\n2,4,6\n")
        return open_rows(tmp_path / "a.csv", target="y", kinds={"x": "category"}, **options)

    def knows(self, *missing_texts, **kinds):
        columns = {name: FittedColumn(kind, None, False) for name, kind in kinds.items()}
        return SimpleNamespace(columns=columns, missing_texts=missing_texts)

    def test_types_of_the_fit(self, tmp_path):
        files = self.opened(tmp_path, missing=["?"])
        assert files.schema.field("c").type == pa.float64()
        # Columns that are no inputs here are no matter.
        read = files.read_as(self.knows("?", c="category", y="category", elsewhere="number"))
        assert read.missing_texts == files.missing_texts
        assert [read.schema.field(name).type for name in "cxy"] == [pa.string(), pa.string(), pa.float64()]
        assert next(read.batches())["c"].to_pylist() == ["1", "2"]

    def test_marks_of_the_fit(self, tmp_path):
        files = self.opened(tmp_path)
        read = files.read_as(self.knows("?", x="category"))
        assert read.schema == files.schema
        assert next(files.batches())["x"].to_pylist() == ["?", "4"]
        assert next(read.batches())["x"].to_pylist() == [None, "4"]
