"""A range of rows of a CSV file is read from the bytes that hold it, and is what reading from the start gives."""

import gzip
import io
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import scne
from scne import open_rows
from scne.rows import DataError
from scne.rows import _csv_records as csv_records
from scne.rows._csv_format import CsvFormat
from scne.rows._csv_records import find_records, quoted

IO = Path("/proc/self/io")


@pytest.fixture
def many_marks(monkeypatch):
    monkeypatch.setattr(csv_records, "_LEAST_SPACING", 1)
    monkeypatch.setattr(csv_records, "_READ_BYTES", 50)


def walked(block: bytes, delimiter: int) -> list[bool]:
    """What lies in quotes, byte by byte, as pyarrow's lexer goes."""
    inside, field_start, place, result = False, True, 0, []
    while place < len(block):
        char = block[place]
        if inside:
            if char == 34 and block[place + 1 : place + 2] == b'"':
                # Two quotes: the text goes on. That it ends and begins again comes to the same.
                result += [False, True]
                place += 2
                continue
            inside = char != 34
        elif char == 34 and field_start:
            inside = True
        field_start = not inside and char in (10, 13, delimiter)
        result.append(inside)
        place += 1
    return result


@given(st.text('",\na\r', max_size=60).map(str.encode))
def test_quotes_are_followed_as_the_parser_follows_them(block):
    line_ends = [place for place, char in enumerate(block) if char in b"\r\n"]
    found, expected = quoted(block, ","), walked(block, ord(","))
    assert [bool(found[place]) for place in line_ends] == [expected[place] for place in line_ends]


words = st.text('ab" ', min_size=1, max_size=4).filter(lambda text: not text.startswith('"'))
in_quotes = st.text('a",\n\r', max_size=5).map(lambda text: '"' + text.replace('"', '""') + '"')
fields = st.one_of(words, in_quotes, in_quotes.map(lambda text: text + "z"), st.just("7"), st.just(""))
line_ends = st.sampled_from(["\n", "\r\n", "\r", "\n\n", "\r\n\r\n"])


@st.composite
def csv_files(draw):
    """Three columns, quotes and line ends of all kinds, and the end of the file with a line end or without."""
    text = draw(st.sampled_from(["", "\ufeff", "\n"])) + draw(st.sampled_from(['"k",x,y\n', 'k,"x\nx",y\r\n']))
    records = draw(st.lists(st.tuples(fields, fields, line_ends), min_size=1, max_size=25))
    for number, (first, second, end) in enumerate(records):
        # A byte-order mark in the middle belongs to the value.
        mark = draw(st.sampled_from(["", "\ufeff"])) if number else ""
        text += f"{mark}{number},{first},{second}{end}"
    return text.removesuffix(draw(st.sampled_from(["\n", "nothing"]))).encode()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100, deadline=None)
@given(content=csv_files())
def test_every_mark_begins_a_record(content, tmp_path, many_marks):
    (tmp_path / "a.csv").write_bytes(content)
    format_, path = CsvFormat(), tmp_path / "a.csv"
    names = format_.schema(path).names
    schema = pa.schema([(name, pa.string()) for name in names])
    whole = pa.Table.from_batches(format_.batches(path, schema, 100, 0), schema).to_pylist()
    records = find_records(io.BytesIO(content), ",")
    assert records.n_records == len(whole) + 1
    starts = records.starts(len(whole), tuple(names), ",")
    if starts is None:
        assert len(content) < 150 or b"\xef\xbb\xbf" in content[3:]
        return
    for first in range(len(whole)):
        for stop in (first + 1, len(whole)):
            stretch = starts.stretch(first, stop)
            part = pa.Table.from_batches(format_.batches(path, schema, 100, first, stretch), schema)
            assert part.slice(0, stop - first).to_pylist() == whole[first:stop]


def write(path, n, text="plain"):
    rng = np.random.default_rng(0)
    x = rng.normal(size=n).round(6)
    y = np.where(rng.random(n) < 0.05, np.nan, x + np.arange(n) % 7)
    texts = [f"{text} {i % 5}" for i in range(n)]
    csv.write_csv(pa.table({"k": np.arange(n), "x": x, "note": texts, "y": pa.array(y, from_pandas=True)}), path)
    return path


def assert_ranges_agree(files, ranges):
    whole = pa.Table.from_batches(files.batches())
    for start, stop in ranges:
        part = list(files.batches(rows=300, start=start, stop=stop))
        assert {batch.num_rows for batch in part[:-1]} <= {300}
        assert pa.Table.from_batches(part).equals(whole.slice(start, stop - start))


@pytest.mark.parametrize("text", ["plain", 'a "quoted"\r\nline,', 'six " wide'])
def test_ranges_of_a_folder(tmp_path, monkeypatch, text):
    monkeypatch.setattr(csv_records, "_LEAST_SPACING", 4_096)
    monkeypatch.setattr(csv_records, "_READ_BYTES", 1_000)
    for year in (2013, 2014):
        (tmp_path / f"year={year}").mkdir()
        write(tmp_path / f"year={year}" / "a.csv", 3_000, text)
    files = open_rows(tmp_path, target="k")
    ranges = [(0, 10), (0, 6_000), (2_990, 3_010), (4_321, 5_000), (5_999, 6_000)]
    assert_ranges_agree(files, ranges)
    assert all(starts is not None and len(starts.rows) > 10 for starts in files._stored._starts)
    # As on a worker, and without the rows that lack a target.
    assert_ranges_agree(pickle.loads(pickle.dumps(files)), ranges)
    complete = open_rows(tmp_path, target="y").complete_rows()
    assert 0 < complete.n_dropped < 500
    assert_ranges_agree(complete, [(0, 10), (2_800, 2_900), (4_321, 5_000), (5_400, complete.n_rows)])


def test_counts_that_differ_from_the_parsers_give_no_marks(tmp_path, many_marks):
    path = write(tmp_path / "a.csv", 100)
    assert CsvFormat().record_starts(path, 100, 0) is not None
    assert CsvFormat().record_starts(path, 99, 0) is None


def test_compressed_files_are_read_from_the_start(tmp_path, many_marks):
    plain = write(tmp_path / "a.csv", 500)
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(plain.read_bytes()))
    files = open_rows(tmp_path / "b.csv.gz", target="k")
    assert_ranges_agree(files, [(0, 10), (321, 450)])
    assert files._stored._starts == [None]


def test_a_value_that_does_not_fit_is_named_in_a_range_too(tmp_path, many_marks):
    lines = [f"{i},{i if i != 700 else 'oops'}" for i in range(1_000)]
    (tmp_path / "a.csv").write_text("\n".join(["x,y", *lines]))
    files = open_rows(tmp_path / "a.csv", target="x", kinds={"y": "number"})
    assert files.count_rows() == 1_000
    with pytest.raises(DataError, match=r"'y' .*'oops' \(row 701\)"):
        list(files.batches(start=650, stop=800))


@pytest.mark.skipif(not IO.exists(), reason="the system does not count the bytes that a process reads")
def test_a_range_reads_about_its_own_bytes(tmp_path):
    path = write(tmp_path / "a.csv", 400_000, "a text that makes the file longer, and longer still")
    files = open_rows(path, target="k")
    files.count_rows()
    size, n_ranges = path.stat().st_size, 8
    assert size > 25 << 20
    for number in (0, 3, 7):
        before = bytes_read()
        part = list(files.batches(start=50_000 * number, stop=50_000 * (number + 1)))
        assert sum(batch.num_rows for batch in part) == 50_000
        # A stretch begins and ends at marks, which lie about a megabyte apart.
        assert bytes_read() - before < size / n_ranges + (3 << 20)


def bytes_read() -> int:
    return int(dict(line.split(": ") for line in IO.read_text().splitlines())["rchar"])


@pytest.mark.slow
@pytest.mark.skipif(not IO.exists(), reason="the system does not count the bytes that a process reads")
def test_workers_of_a_cluster_read_each_byte_once_a_pass(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    from scne.passes import ClusterRows, check_client, file_partitions

    # Marks are made here, and workers get them.
    monkeypatch.setattr(csv_records, "_LEAST_SPACING", 1 << 18)
    monkeypatch.setattr(csv_records, "_READ_BYTES", 1 << 16)
    path = write(tmp_path / "a.csv", 40_000, "a text in quotes,\nwhich makes the file longer " * 12)
    size = path.stat().st_size
    files = open_rows(path, target="k", drop_missing_target=False)
    n_rows = files.count_rows()

    def work(batches):
        return sum(batch.num_rows for batch in batches)

    def read(step, start, stop):
        return files.batches(["k"], step, start, stop)

    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        here = ClusterRows(n_rows, 1, file_partitions(n_rows), read, check_client(client))
        # What is imported is read as well, once.
        list(here.run(work, here.partitions, "counting"))
        before = sum(client.run(bytes_read).values())
        counted = [count for _, count in here.run(work, here.partitions, "counting")]
        passed = sum(client.run(bytes_read).values()) - before
        assert len(counted) > 10
        assert sum(counted) == n_rows
        # From the beginning for every range it would be half of their number. Each range reads up to two marks more.
        assert size < passed < size + len(counted) * (1 << 20) < len(counted) / 4 * size
        local = scne.RVFLRegressor(5, random_state=0).fit(files)
        there = scne.RVFLRegressor(5, random_state=0).fit(files, client=client)
        np.testing.assert_array_equal(there.predict(path), local.predict(path))
