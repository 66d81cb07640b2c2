"""A memory budget bounds a fit on files: fewer rows or threads, or a refusal before a row is read."""

import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from commands import run_here
from ensembles import plain_ensemble

import scne
from scne.fitting._memory import FEWEST_SEARCH_ROWS, needed_bytes
from scne.fitting._memory_plan import plan_memory
from scne.rows import DataError, SampleDrawer, open_rows, reading_cost, sample_positions
from scne.rows._parquet_footer import _skipped, _zigzag, footer_bytes, read_short_footer
from scne.rows._parquet_format import ParquetFormat, ReadingCost, _group_sizes, _runs
from scne.rows._reading_cost import FilesCost

IMPORTS = """from scne.estimators import describe_model, save_model
import scne.cli._app, scne.cli._dask, scne.cli._progress, scne.cli._tables, pyarrow.dataset, sklearn.base, scipy.linalg
"""


def write(path, n_rows, n_columns, group_rows=None):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_columns, n_rows))
    table = pa.table({**{f"x{j}": values for j, values in enumerate(X)}, "y": X[0] * X[1] + X[2]})
    pq.write_table(table, path, row_group_size=group_rows)
    return path


def peak(code, *arguments):
    """Peak of a process in bytes, by its own count: what the system says of a child also counts its parent."""
    tell = "import atexit; atexit.register(lambda: print(open('/proc/self/status').read()))"
    command = [sys.executable, "-c", f"{tell}\n{code}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return 1024 * int(re.search(r"VmHWM:\s+(\d+)", done.stdout)[1])


def template(**settings):
    return scne.SCNRegressor.tuned(**{"max_hidden": 8, "tuning_epochs": 0.0, "scaling": "standard", **settings})


def spoilt(path):
    """The same file with garbage instead of its pages; the footer is left."""
    held = bytearray(path.read_bytes())
    end = len(held) - 8 - footer_bytes(path)
    held[4:end] = b"\xff" * (end - 4)
    path.write_bytes(held)
    return path


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux for the peak")
@pytest.mark.slow
def test_a_process_keeps_to_its_budget(tmp_path):
    path = write(tmp_path / "wide.parquet", 12_000, 250, 3_000)
    budget = 200
    options = ("--networks", "1", "--nodes", "10", "--tuning", "0", "--out", str(tmp_path / "m.scne"))
    command = ("fit", str(path), "--target", "y", "--memory", f"{budget}MB", *options)
    taken = peak("from scne.cli import main\nmain()", *command)
    assert taken - peak(IMPORTS) < 1.1e6 * budget


def test_what_cannot_fit_is_refused_before_a_row_is_read(tmp_path):
    path = spoilt(write(tmp_path / "a.parquet", 6_000, 200))
    rows = scne.open_rows(path, target="y", memory="30MB")
    with pytest.raises(ValueError, match=r"memory is '30MB', but .* needs \d+MB; allow that much"):
        plain_ensemble(template(), random_state=0).fit(rows)
    for memory in ({}, {"memory": "1GB"}):
        with pytest.raises(DataError, match="corrupt"):
            plain_ensemble(template(), random_state=0).fit(scne.open_rows(path, target="y", **memory))


def test_the_number_that_is_named_is_enough(tmp_path):
    path = write(tmp_path / "a.parquet", 6_000, 200)
    model = plain_ensemble(template(), n_estimators=1, networks="across", random_state=0)
    with pytest.raises(ValueError, match="allow that much") as refused:
        model.fit(scne.open_rows(path, target="y", memory="30MB"))
    named = re.search(r"needs (\d+MB)", str(refused.value))[1]
    assert model.fit(scne.open_rows(path, target="y", memory=named)).n_rows_ == 6_000


@pytest.mark.parametrize("memory", [-1, "much", "5 apples", np.nan, np.inf, None, True])
def test_what_is_no_memory_is_refused(tmp_path, memory):
    path = write(tmp_path / "a.parquet", 20, 3)
    with pytest.raises(ValueError, match=r"memory is .*, but it must be a number of bytes, or text such as '2GB'"):
        scne.open_rows(path, target="y", memory=memory)


def tight_budget(path, **settings):
    """Megabytes that hold about 24,000 rows of the search."""
    plan = plan_memory(template(), open_rows(path, target="y", memory="8GB"), 1, 1, "auto", **settings)
    return f"{needed_bytes(plan.most, 24_000, 1) / 1e6:.0f}MB"


def test_a_search_is_shortened_to_what_fits_on_any_number_of_threads(tmp_path):
    path = write(tmp_path / "a.parquet", 40_000, 150, 5_000)
    rows = scne.open_rows(path, target="y", memory=tight_budget(path))
    models = [template(n_jobs=jobs, random_state=0).fit(rows) for jobs in (1, 2)]
    searched = models[0].data_["search_rows"]
    assert FEWEST_SEARCH_ROWS < searched < 30_000
    assert f"searched on {searched:,} rows instead of 40,000" in models[0].memory_note_
    assert f"a sample of {searched:,} rows" in models[0].summary()
    np.testing.assert_array_equal(models[0].output_weights_, models[1].output_weights_)
    enough = scne.open_rows(path, target="y", memory="2GB")
    assert plan_memory(template(), enough, 1, 1, "auto").search_rows == 40_000


def test_the_command_prints_that_a_search_was_shortened(tmp_path, monkeypatch, capsys):
    path = write(tmp_path / "a.parquet", 40_000, 150, 5_000)
    budget = tight_budget(path, blended=True)
    options = ("--networks", "1", "--nodes", "8", "--tuning", "0", "--scaling", "standard", "--memory", budget)
    options = (*options, "--out", str(tmp_path / "m.scne"))
    code, printed, _ = run_here(monkeypatch, capsys, "fit", str(path), "--target", "y", *options)
    assert code == 0
    assert f"as many as the memory budget of {budget} allows" in " ".join(printed.split())


def test_a_smaller_sample_is_part_of_a_larger_one():
    drawer, shrunk = SampleDrawer(4_000, seed=3), SampleDrawer(4_000, seed=3)
    for start in range(0, 50_000, 5_000):
        batch = pa.record_batch({"x": range(start, start + 5_000)})
        drawer.update(batch, start)
        shrunk.update(batch, start)
        shrunk.shrink(900)
    for drawn in (drawer.finish(900), shrunk.finish()):
        np.testing.assert_array_equal(drawn.positions, sample_positions(50_000, 900, seed=3))
        assert drawn.table["x"].to_pylist() == drawn.positions.tolist()


@pytest.mark.parametrize("group_rows", [10, 777, 5_000])
def test_rows_do_not_depend_on_row_groups(tmp_path, group_rows):
    path = write(tmp_path / "a.parquet", 5_000, 30, group_rows)
    whole = pq.read_table(path)
    rows = open_rows(path, target="y")
    for start in (0, 1_234):
        found = pa.Table.from_batches(list(rows.batches(rows=512, start=start)))
        assert found.equals(whole.slice(start).select(found.column_names))


def test_groups_are_streamed_or_read_whole_with_the_same_rows(tmp_path):
    # A group of few columns is streamed, one of many is decoded a few columns at a time.
    for n_rows, n_columns in ((300_000, 3), (4_000, 900)):
        path = write(tmp_path / f"{n_columns}.parquet", n_rows, n_columns)
        schema = pq.read_schema(path)
        batches = list(ParquetFormat().batches(path, schema, 1_024, 0))
        assert pa.Table.from_batches(batches).equals(pq.read_table(path))
        assert max(batch.num_rows for batch in batches) == 1_024


@pytest.mark.parametrize("stored", [True, False])
def test_a_short_footer_says_what_the_whole_one_says(tmp_path, stored):
    zone = pa.array([1, 2, 3], pa.timestamp("us", "Europe/Berlin"))
    table = pa.table(
        {
            "number": [1.0, None, 2.0],
            "text": ["a", "b", "a"],
            "coded": pa.array(["a", "b", "a"]).dictionary_encode(),
            "when": zone,
            "day": pa.array([1, 2, 3], pa.date32()),
            "flag": [True, False, None],
            "list": [[1], [2, 3], None],
            "money": pa.array([1, 2, 3], pa.decimal128(10, 2)),
        }
    )
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, row_group_size=2, store_schema=stored)
    short = read_short_footer(path)
    assert (short.n_rows, short.n_groups) == (3, 2)
    assert short.schema.equals(pq.read_schema(path).remove_metadata())


def test_a_long_footer_is_not_parsed_to_refuse_a_fit(tmp_path):
    path = write(tmp_path / "a.parquet", 60_000, 12, 10)
    assert footer_bytes(path) > 1 << 22
    rows = open_rows(path, target="y", memory="60MB")
    assert rows.n_rows == 60_000
    with pytest.raises(ValueError, match="allow that much"):
        plain_ensemble(template(), random_state=0).fit(rows)


def test_the_footer_counts(tmp_path):
    rows = open_rows(write(tmp_path / "a.parquet", 2_000, 5), target="y")
    shape = plan_memory(template(), rows, 1, 1, "auto").most
    small, large = (needed_bytes(replace(shape, footer_bytes=size), 2_000, 1) for size in (0.0, 3e8))
    assert large - small > 2.5e8


def test_a_sample_of_wide_rows_is_held_in_small_pieces():
    rng, drawer, size = np.random.default_rng(0), SampleDrawer(1_000, seed=0), 8 * 2_000
    before, most = pa.total_allocated_bytes(), 0
    for start in range(0, 6_000, 600):
        batch = pa.record_batch({f"x{j}": rng.standard_normal(600) for j in range(2_000)})
        drawer.update(batch, start)
        most = max(most, pa.total_allocated_bytes() - before - batch.nbytes)
    assert most < 1.5 * 1_000 * size
    assert drawer.finish().table.num_rows == 1_000


def test_a_slow_reader_of_csv_does_not_pile_up_blocks(tmp_path):
    path = tmp_path / "a.csv"
    line = ",".join(["0.123456789"] * 10)
    path.write_text("\n".join([",".join(f"x{j}" for j in range(10)), *[line] * 600_000]))
    before, most = pa.total_allocated_bytes(), 0
    for number, _ in enumerate(open_rows(path, target="x9").batches(rows=16_384)):
        if number < 5:
            time.sleep(0.2)
            most = max(most, pa.total_allocated_bytes() - before)
    assert path.stat().st_size > 70e6
    assert most < 50e6


def texts(path, levels, n_rows=40_000, length=60):
    rng = np.random.default_rng(0)
    values = [f"{'a long level ' * (length // 13)}{level}" for level in rng.integers(0, levels, n_rows)]
    pq.write_table(pa.table({"text": values, "y": rng.standard_normal(n_rows)}), path)
    return scne.open_rows(path, target="y")


def test_the_first_rows_tell_how_long_texts_are_and_how_many_differ(tmp_path):
    few, many = (texts(tmp_path / f"{levels}.parquet", levels) for levels in (20, 30_000))
    for rows, levels in ((few, 20), (many, 22_000)):
        cost = reading_cost(rows, 16_384)
        assert cost.text_row == pytest.approx(64, rel=0.2)
        # Between a third and three times of what is then counted and summed; both are held twice.
        assert 1 / 3 < cost.levels / (2 * levels * 400) < 3


def test_texts_that_differ_more_than_the_first_rows_let_expect_are_refused_in_time(tmp_path):
    rng = np.random.default_rng(0)
    values = [f"{'the same ' * 20}"] * 10_000 + [f"{'another ' * 200}{row}" for row in range(30_000)]
    table = pa.table({"text": values, "y": rng.standard_normal(40_000)})
    pq.write_table(table, tmp_path / "a.parquet", use_dictionary=False)
    rows = scne.open_rows(tmp_path / "a.parquet", target="y", memory="120MB")
    with pytest.raises(ValueError, match=r"memory is '120MB', but .* needs \d+MB; allow that much"):
        template(random_state=0).fit(rows)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["mid", "texts", "keys", "lines", "folder"])
def test_shapes_of_the_benchmark_keep_to_their_budget(shape):
    benchmark = Path(__file__).parents[1] / "benchmarks" / "memory.py"
    done = subprocess.run([sys.executable, benchmark, "--shapes", shape], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_reading_takes_follows_from_the_footer(tmp_path):
    """Numbers of the model of memory, computed by hand from how the files were cut."""
    few, many = tmp_path / "few.parquet", tmp_path / "many.parquet"
    write(few, 4_000, 9)
    write(many, 4_000, 9, 100)
    schema = pq.read_schema(few)
    for path, texts in ((few, 0.0), (many, 0.0), (few, 100.0)):
        group = 4_000 if path == few else 100
        cost = ParquetFormat().cost(path, schema, 1_000, texts)
        assert cost.footer == pytest.approx(9.3 * footer_bytes(path))
        # Pages of ten columns take more than these rows, which are decoded whole.
        assert cost.piece == (1 << 24) + (80.0 + texts) * max(group, 1_000)


def test_a_group_of_many_rows_is_streamed(tmp_path):
    path = write(tmp_path / "a.parquet", 600_000, 3)
    schema, metadata = pq.read_schema(path), pq.read_metadata(path)
    sizes = [metadata.row_group(0).column(place).total_uncompressed_size for place in range(4)]
    cost = ParquetFormat().cost(path, schema, 1_000, 0.0)
    assert cost.piece == sum(65_536 + min(2.0 * size, 2_400_000) for size in sizes)
    assert cost.piece < 8 * 4 * 600_000


def test_a_group_that_is_streamed_is_never_held_whole(tmp_path):
    values = np.arange(1_000_000) % 7 / 7
    pq.write_table(pa.table({"x": values}), tmp_path / "a.parquet", row_group_size=len(values))
    before, most, parts = pa.total_allocated_bytes(), 0, []
    for batch in ParquetFormat().batches(tmp_path / "a.parquet", pq.read_schema(tmp_path / "a.parquet"), 10_000, 0):
        parts.append(batch.column(0).to_numpy().copy())
        most = max(most, pa.total_allocated_bytes() - before)
    np.testing.assert_array_equal(np.concatenate(parts), values)
    assert most < values.nbytes / 4


def test_rows_of_a_group_by_a_long_footer_are_those_of_all_groups_alike(tmp_path, monkeypatch):
    path = write(tmp_path / "a.parquet", 4_000, 9, 1_000)
    monkeypatch.setattr("scne.rows._parquet_format._LONG_FOOTER", footer_bytes(path) - 1)
    schema = pq.read_schema(path)
    for rows, held in ((100, 1_000), (1_000, 1_000), (3_000, 3_000)):
        cost = ParquetFormat().cost(path, schema, rows, 20.0)
        assert (cost.footer, cost.piece) == (pytest.approx(9.3 * footer_bytes(path)), (80.0 + 20.0) * held)


def test_texts_count_as_they_are_stored_when_a_way_of_reading_is_chosen(tmp_path):
    """A group of long texts is streamed although its rows are few: by eight bytes a value it would be decoded whole."""
    table = pa.table({f"t{k}": [f"{k} {row} " * 40 for row in range(20_000)] for k in range(4)})
    pq.write_table(table, tmp_path / "a.parquet", use_dictionary=False)
    cost = ParquetFormat().cost(tmp_path / "a.parquet", table.schema, 1_000, 400.0)
    assert cost.piece == 4 * (65_536 + 2_400_000)


def test_short_texts_and_repeated_numbers_are_streamed_by_what_they_take(tmp_path):
    """Two groups between the ways of reading: what a text takes beside its letters, and pages that are small."""
    texts = pa.table({"t": [f"a text of 19 letters{row % 10}" for row in range(100_000)]})
    pq.write_table(texts, tmp_path / "texts.parquet", use_dictionary=False)
    size = pq.read_metadata(tmp_path / "texts.parquet").row_group(0).column(0).total_uncompressed_size
    assert size - 400_000 < 65_536 + 2_400_000 < size + 400_000
    assert ParquetFormat().cost(tmp_path / "texts.parquet", texts.schema, 1_000, 25.0).piece == 65_536 + 2_400_000
    numbers = pa.table({"x": np.arange(200_000) % 7 / 7})
    pq.write_table(numbers, tmp_path / "numbers.parquet")
    size = pq.read_metadata(tmp_path / "numbers.parquet").row_group(0).column(0).total_uncompressed_size
    cost = ParquetFormat().cost(tmp_path / "numbers.parquet", numbers.schema, 1_000, 0.0)
    assert cost.piece == 65_536 + 2.0 * size < 2_400_000


def test_a_short_footer_of_many_columns(tmp_path):
    path = write(tmp_path / "a.parquet", 1_000, 300, 100)
    short = read_short_footer(path)
    assert (short.n_rows, short.n_groups) == (1_000, 10)
    assert short.schema.equals(pq.read_schema(path).remove_metadata())


def test_numbers_of_a_footer():
    """Thrift's compact protocol: zigzag numbers, lists of truth values, fields with a number of their own."""
    assert [_zigzag(number) for number in range(5)] == [0, -1, 1, -2, 2]
    truths = bytes([3 << 4 | 1, 1, 2, 1, 77])
    assert _skipped(truths, 0, 9) == 4
    # True and false as fields have no bytes of their own: their type says which it is.
    assert [_skipped(bytes([1 << 4 | truth, 0, 77]), 0, 12) for truth in (1, 2)] == [2, 2]
    # A field whose number is far from the last: type 5, number 20, value 1; then true, which has no bytes; the end.
    far = bytes([5, 40, 2, 1 << 4 | 1, 0, 77])
    assert _skipped(far, 0, 12) == 5


def test_a_file_without_row_groups_takes_nothing(tmp_path):
    schema = pa.schema([("x", pa.float64())])
    pq.ParquetWriter(tmp_path / "a.parquet", schema).close()
    assert ParquetFormat().cost(tmp_path / "a.parquet", schema, 1_000, 0.0) == ReadingCost(0.0, 0.0)


def test_a_group_of_as_many_rows_as_are_read_is_read_whole(tmp_path):
    table = pa.table({"x": np.arange(100_000) % 7 / 7})
    pq.write_table(table, tmp_path / "a.parquet")
    whole = (1 << 24) + 8.0 * 100_000
    assert ParquetFormat().cost(tmp_path / "a.parquet", table.schema, 100_000, 0.0).piece == whole
    assert ParquetFormat().cost(tmp_path / "a.parquet", table.schema, 99_999, 0.0).piece < whole


def test_bytes_of_a_group(tmp_path):
    path = write(tmp_path / "a.parquet", 500, 3)
    with pq.ParquetFile(path) as file:
        columns = [file.metadata.row_group(0).column(place) for place in range(4)]
        sizes = _group_sizes(file, 0, pq.read_schema(path))
    assert sizes.decoded == 8.0 * 500 * 4
    assert sizes.streamed == sum(65_536 + 2.0 * column.total_uncompressed_size for column in columns)


def test_a_text_takes_sixteen_bytes_however_short_it_is(tmp_path):
    table = pa.table({"t": ["a", "b"] * 500})
    pq.write_table(table, tmp_path / "a.parquet")
    with pq.ParquetFile(tmp_path / "a.parquet") as file:
        assert file.metadata.row_group(0).column(0).total_uncompressed_size < 12 * 1_000
        assert _group_sizes(file, 0, table.schema).decoded == 16.0 * 1_000


@pytest.mark.parametrize(
    ("counts", "first", "runs"),
    [
        ([3, 3, 3, 3], 0, [(0, 2), (2, 4)]),
        ([3, 3, 3, 3], 1, [(1, 3), (3, 4)]),
        ([7, 1, 9, 2, 4], 0, [(0, 1), (1, 2), (2, 3), (3, 5)]),
        ([6, 1], 0, [(0, 1), (1, 2)]),
        ([], 0, []),
    ],
)
def test_small_groups_are_read_together(counts, first, runs):
    assert [(run.start, run.stop) for run in _runs(counts, first, 6)] == runs


def test_only_parquet_files_have_a_footer(tmp_path):
    table = pa.table({"x": [1.0], "y": [2.0]})
    pa.csv.write_csv(table, tmp_path / "a.csv")
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as writer:
        writer.write_table(table)
    assert reading_cost(open_rows(tmp_path / "a.csv", target="y"), 512) == FilesCost(0.0, 50e6, 0.0, 0.0)
    assert reading_cost(open_rows(tmp_path / "a.arrow", target="y"), 512) == FilesCost(0.0, 0.0, 0.0, 0.0)


def test_the_first_rows_alone_are_looked_at_for_their_texts(tmp_path):
    """Two levels of one letter, held twice: 42 bytes to count each, 64 for each of five folds; later texts are long."""
    values = ["a", "b"] * 4_096 + ["a very long text"] * 1_000
    pq.write_table(pa.table({"text": values, "y": np.ones(len(values))}), tmp_path / "a.parquet")
    cost = reading_cost(open_rows(tmp_path / "a.parquet", target="y"), 512)
    assert cost.text_row == pytest.approx(5.0, rel=0.01)
    assert cost.levels == 2 * 2 * (42.0 + 5 * 64.0)
