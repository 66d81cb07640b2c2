"""Made-up rows: reproducible in blocks, of the right form, heavily tailed, and with something to learn."""

import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from scne.datasets import (
    DATASETS,
    find_stored,
    make_twitter_like,
    make_year_like,
    twitter_like_blocks,
    write_parquet,
    year_like_blocks,
)

MAKE = {"year": make_year_like, "twitter": make_twitter_like}
BLOCKS = {"year": year_like_blocks, "twitter": twitter_like_blocks}
both = pytest.mark.parametrize("name", ["year", "twitter"])


@pytest.fixture(scope="module")
def rows():
    return {name: make(20_000) for name, make in MAKE.items()}


@both
def test_the_form_is_that_of_the_fetched_data(rows, name):
    record, made = DATASETS[name], rows[name]
    assert made.data.shape == (20_000, len(record.features))
    assert made.feature_names == record.features
    assert made.target_names == [record.target]
    assert made.groups == {group: list(columns) for group, columns in record.groups.items()}
    assert np.isfinite(made.data).all()
    assert np.isfinite(made.target).all()
    assert "synthetic" in made.DESCR


@both
def test_more_rows_leave_the_first_ones_as_they_are(rows, name):
    for n_rows in (1, 8191, 8192, 8193):
        fewer = MAKE[name](n_rows)
        assert np.array_equal(fewer.data, rows[name].data[:n_rows])
        assert np.array_equal(fewer.target, rows[name].target[:n_rows])


@both
def test_the_seed_draws_the_rows(rows, name):
    other = MAKE[name](100, seed=1)
    assert not np.array_equal(other.data, rows[name].data[:100])
    assert np.array_equal(other.data, MAKE[name](100, seed=1).data)


@both
def test_blocks_are_different(rows, name):
    assert len(np.unique(rows[name].data, axis=0)) > 0.95 * 20_000
    assert not np.array_equal(rows[name].data[:100], rows[name].data[8192:8292])


@both
def test_a_file_of_them_is_the_data_set(rows, name, tmp_path):
    path = tmp_path / "rows.parquet"
    assert write_parquet(path, BLOCKS[name](20_000)) == 20_000
    read = pq.read_table(path)
    assert read.schema.equals(DATASETS[name].schema)
    assert np.array_equal(np.column_stack([read[column] for column in rows[name].feature_names]), rows[name].data)
    assert np.array_equal(read[rows[name].target_names[0]], rows[name].target)
    assert [path.name for path in tmp_path.iterdir()] == ["rows.parquet"]
    assert find_stored(DATASETS[name], tmp_path) is None


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "rows.parquet"

    def breaking():
        # More than one row group, so that something was written.
        yield from [next(year_like_blocks(8192))] * 9
        raise RuntimeError("stop")

    write_parquet(path, year_like_blocks(10))
    before = path.read_bytes()
    with pytest.raises(RuntimeError, match="stop"):
        write_parquet(path, breaking())
    assert path.read_bytes() == before
    with pytest.raises(ValueError, match="blocks is empty"):
        write_parquet(path, [])
    assert [path.name for path in tmp_path.iterdir()] == ["rows.parquet"]


PEAK = """
import resource, sys
from scne.datasets import write_parquet, year_like_blocks
write_parquet(sys.argv[1], year_like_blocks(10))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
write_parquet(sys.argv[1], year_like_blocks(400_000))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


@pytest.mark.slow
def test_a_file_larger_than_its_memory(tmp_path):
    # 400,000 rows are 290 MB; a row group of 65,536 is 48, twice while it is encoded.
    grown = subprocess.run(
        [sys.executable, "-c", PEAK, tmp_path / "rows.parquet"], capture_output=True, text=True, check=True, timeout=120
    )
    assert float(grown.stdout) < 170


@both
def test_no_rows_are_refused(name):
    for call in (MAKE[name], BLOCKS[name]):
        with pytest.raises(ValueError, match="n_rows is 0"):
            call(0)


def test_years_are_skewed_to_recent_ones(rows):
    years = rows["year"].target
    assert (years == np.rint(years)).all()
    assert years.min() >= 1922
    assert years.max() == 2011
    # Quartiles of 7,000 real songs: 1994, 2002, 2006; mean 1998.4, deviation 10.8.
    np.testing.assert_allclose(np.quantile(years, [0.25, 0.5, 0.75]), [1994, 2002, 2006], atol=1.5)
    assert abs(years.std() - 10.8) < 1
    assert rows["year"].n_train == 20_000 * 463_715 // 515_345


def test_covariances_are_covariances(rows):
    data = rows["year"].data[:500]
    variances = data[:, 12:24]
    assert (variances > 0).all()
    matrices = np.zeros((500, 12, 12))
    column = 24
    for step in range(1, 12):
        for first in range(12 - step):
            matrices[:, first, first + step] = matrices[:, first + step, first] = data[:, column]
            column += 1
    matrices[:, range(12), range(12)] = variances
    assert column == 90
    assert (np.linalg.eigvalsh(matrices) > 0).all()


def kurtosis(values):
    standard = (values - values.mean(axis=0)) / values.std(axis=0)
    return (standard**4).mean(axis=0) - 3


def test_tails_are_heavy(rows):
    assert np.median(kurtosis(rows["year"].data[:, 12:])) > 2
    groups, names = rows["twitter"].groups, rows["twitter"].feature_names
    for group in ("NCD", "AI", "AS(NA)", "NAC", "AS(NAC)", "NA", "NAD"):
        assert (kurtosis(rows["twitter"].data[:, [names.index(column) for column in groups[group]]]) > 50).all()
    assert kurtosis(rows["twitter"].target) > 50


def week(rows, column):
    return rows["twitter"].data[:, rows["twitter"].feature_names.index(column)]


def test_twitter_counts_hold_together(rows):
    for step in range(7):
        ncd, nac, na, nad = (week(rows, f"{group}_{step}") for group in ("NCD", "NAC", "NA", "NAD"))
        assert (ncd <= nad).all()
        assert (nad <= nac).all()
        assert (na <= nac).all()
        assert (week(rows, f"AI_{step}") <= na).all()
        active = nad > 0
        assert 0.03 < 1 - active.mean() < 0.15
        for group, part in (("BL", ncd), ("ADL", nac)):
            ratio = week(rows, f"{group}_{step}")
            np.testing.assert_allclose(ratio[active], part[active] / nad[active], atol=1e-6)
            assert (ratio[~active] == 0).all()


def test_twitter_is_like_the_published_statistics(rows):
    # NAD_6: quartiles 6, 31, 165, mean 220, deviation 673; the target: 4.5, 25.5, 139, mean 191, deviation 612.
    for values, quartiles, mean, deviation in (
        (week(rows, "NAD_6"), [6, 31, 165], 220, 673),
        (rows["twitter"].target, [4.5, 25.5, 139], 191, 612),
    ):
        np.testing.assert_allclose(np.quantile(values, [0.25, 0.5, 0.75]), quartiles, rtol=0.3)
        assert abs(values.mean() / mean - 1) < 0.3
        assert abs(values.std() / deviation - 1) < 0.4


def test_steps_of_a_twitter_group_are_strongly_correlated(rows):
    logs = np.log1p([week(rows, f"NAD_{step}") for step in range(7)])
    assert np.corrcoef(logs).min() > 0.8


@both
def test_the_signal_is_there_and_not_linear(rows, name):
    data, target = rows[name].data, rows[name].target
    if name == "twitter":
        data, target = np.log1p(data), np.log1p(target)
    train, test = slice(0, 8000), slice(8000, 16_000)
    linear = make_pipeline(StandardScaler(), RidgeCV()).fit(data[train], target[train])
    # One thread: two that wait for each other on a busy machine take twenty times as long.
    with threadpool_limits(1):
        trees = HistGradientBoostingRegressor(max_iter=60, random_state=0).fit(data[train], target[train])
    straight, bent = (model.score(data[test], target[test]) for model in (linear, trees))
    assert straight > 0.15
    assert bent > straight + 0.02
