"""Files as a row source: the stripes of the same rows in memory, read ahead by a thread."""

import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from scne.rows import ArrayRows, DataError, EncoderLearner, column_statistics, encoded_rows, open_rows
from scne.rows._encoded import read_ahead


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    n = 5000
    return pa.table(
        {
            "x": pa.array(rng.normal(size=n), mask=rng.random(n) < 0.1),
            "c": rng.choice(["a", "b"], n),
            "w": rng.random(n),
            "y": rng.normal(size=n),
            "z": rng.integers(0, 9, n),
        }
    )


def source(path, **options):
    options = {"target": ["y", "z"], "weight": "w", **options}
    files = open_rows(path, **options)
    learner = EncoderLearner(files)
    for batch in files.batches():
        learner.update(batch)
    return encoded_rows(open_rows(path, **options), learner.finish()), learner


def readers():
    return [thread for thread in threading.enumerate() if thread.name == "scne reader"]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("stripe", [1, 512, 1280, 16_384])
def test_stripes_are_those_of_the_same_rows_in_memory(tmp_path, rows, ending, stripe):
    if stripe == 1:
        rows = rows[:40]
    for number, part in enumerate((rows[:7], rows[7:20], rows[20:])):
        path = tmp_path / f"{number}.{ending}"
        if ending == "csv":
            csv.write_csv(part, str(path))
        else:
            pq.write_table(part, path, row_group_size=999)
    files, learner = source(tmp_path)
    inputs = learner.finish().transform(rows)
    targets = np.column_stack([rows["y"].to_numpy(), rows["z"].to_numpy().astype(float)])
    memory = ArrayRows(inputs, targets, rows["w"].to_numpy())
    assert (files.n_rows, files.n_columns) == (memory.n_rows, memory.n_columns)
    for found, expected in zip(files.stripes(stripe), memory.stripes(stripe), strict=True):
        assert found.start == expected.start
        for name in ("inputs", "targets", "weights"):
            value = getattr(found, name)
            np.testing.assert_array_equal(value, getattr(expected, name))
            assert value.dtype == np.float64
            assert value.flags.c_contiguous
    assert not readers()


def test_a_range_of_stripes(tmp_path, rows):
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=300)
    files, _ = source(tmp_path)
    whole = list(files.stripes(500))
    part = list(files.stripes(500, start=1500, stop=3000))
    assert [block.start for block in part] == [1500, 2000, 2500]
    np.testing.assert_array_equal(part[1].inputs, whole[4].inputs)


def test_without_target_and_weight(tmp_path, rows):
    pq.write_table(rows, tmp_path / "a.parquet")
    files, _ = source(tmp_path, target=None, weight=None)
    block = next(files.stripes(10))
    assert block.targets is None
    assert block.weights is None


def test_statistics_of_the_pass_equal_those_of_the_stripes(tmp_path, rows):
    pq.write_table(rows, tmp_path / "a.parquet")
    files, learner = source(tmp_path)
    total = None
    for block in files.stripes(700):
        part = column_statistics(block.inputs, block.weights)
        total = part if total is None else total.combined(part)
    np.testing.assert_allclose(learner.statistics().mean, total.mean, rtol=1e-12)
    np.testing.assert_allclose(learner.statistics().squares, total.squares, rtol=1e-9)


def test_bad_values_are_placed(tmp_path, rows):
    pq.write_table(rows, tmp_path / "0.parquet")
    _, learner = source(tmp_path)
    bad = rows.set_column(0, "x", pa.array([*np.ones(4321), np.inf, *np.ones(678)]))
    pq.write_table(bad, tmp_path / "1.parquet")
    files = encoded_rows(open_rows(tmp_path, target="y", weight="w"), learner.finish())
    with pytest.raises(DataError, match=r"'x' holds an infinite value in row 4,322 of .*1\.parquet"):
        list(files.stripes(1000))
    assert not readers()


def test_changed_files_are_noticed(tmp_path, rows):
    pq.write_table(rows, tmp_path / "a.parquet")
    files, _ = source(tmp_path)
    (tmp_path / "a.parquet").touch()
    with pytest.raises(DataError, match=r"a\.parquet has changed"):
        next(files.stripes(10))


class TestReadAhead:
    def test_the_thread_ends_when_the_consumer_stops(self):
        stream = read_ahead(lambda: iter(range(1_000_000)))
        assert [next(stream), next(stream)] == [0, 1]
        assert len(readers()) == 1
        stream.close()
        assert not readers()

    def test_errors_come_after_the_items_before_them(self):
        def items():
            yield 1
            raise DataError("Here is what is wrong.")

        stream = read_ahead(items)
        assert next(stream) == 1
        with pytest.raises(DataError, match="Here is what is wrong"):
            next(stream)
        assert not readers()

    def test_it_runs_only_so_far_ahead(self):
        made = []

        def items():
            for number in range(100):
                made.append(number)
                yield number

        stream = read_ahead(items, ahead=2)
        next(stream)
        time.sleep(0.2)
        assert len(made) <= 4
        assert list(stream) == list(range(1, 100))

    def test_it_does_not_wait_for_what_nobody_wants(self, monkeypatch):
        monkeypatch.setattr("scne.rows._encoded._LOOK_SECONDS", 5.0)
        made = []

        def items():
            for number in range(100):
                made.append(number)
                yield number

        stream = read_ahead(items, ahead=2)
        next(stream)
        while len(made) < 4:
            time.sleep(0.001)
        # The thread has two items ready, and waits with a third.
        began = time.monotonic()
        stream.close()
        assert time.monotonic() - began < 2.0
        assert not readers()
