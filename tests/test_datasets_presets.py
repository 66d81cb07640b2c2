"""The paper's groups, splits and normalisation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scne.datasets import (
    DATASETS,
    TWITTER_GROUPS,
    YEAR_GROUPS,
    DatasetError,
    load_year_sample,
    make_year_like,
    paper_groups,
    paper_scaling,
    paper_split,
)

# As printed in Tables 2 and 3, counted from one, but for NA.
PRINTED = {
    "year": {
        "TA": (1, 12), "TC-a": (13, 25), "TC-b": (26, 38), "TC-c": (39, 51),
        "TC-d": (52, 64), "TC-e": (65, 77), "TC-f": (78, 90),
    },
    "twitter": {
        "NCD": (1, 7), "AI": (8, 14), "AS(NA)": (15, 21), "BL": (22, 28), "NAC": (29, 35), "AS(NAC)": (36, 42),
        "CS": (43, 49), "AT": (50, 56), "NA": (57, 63), "ADL": (64, 70), "NAD": (71, 77),
    },
}  # fmt: skip


@pytest.mark.parametrize("name", ["year", "twitter"])
def test_groups_are_those_that_the_paper_prints(name):
    columns = paper_groups(name, indices=True)
    assert {group: (where[0] + 1, where[-1] + 1) for group, where in columns.items()} == PRINTED[name]
    assert [column for where in columns.values() for column in where] == list(range(len(DATASETS[name].features)))
    assert {group: list(where) for group, where in {"year": YEAR_GROUPS, "twitter": TWITTER_GROUPS}[name].items()} == (
        columns
    )


@pytest.mark.parametrize("name", ["year", "twitter"])
def test_names_and_numbers_of_a_group_are_the_same_columns(name):
    features, numbers = DATASETS[name].features, paper_groups(name, indices=True)
    for group, names in paper_groups(name).items():
        assert [features.index(column) for column in names] == numbers[group]


def test_names_of_a_twitter_group_begin_with_it():
    for group, names in paper_groups("twitter").items():
        assert names == [f"{group}_{week}" for week in range(7)]


def test_groups_can_be_changed_without_changing_the_next():
    paper_groups("year")["TA"].clear()
    assert len(paper_groups("year")["TA"]) == 12


def test_table_1():
    twitter, year = paper_split("twitter"), paper_split("year")
    assert (len(twitter.final), len(twitter.test)) == (495_763, 87_487)
    assert (len(year.final), len(year.test)) == (463_715, 51_630)


def test_the_official_test_block_of_year_comes_last_and_does_not_depend_on_the_seed():
    for seed in (0, 1):
        assert np.array_equal(paper_split("year", seed=seed).test, np.arange(463_715, 515_345))


@given(st.sampled_from(["year", "twitter"]), st.integers(10, 5000), st.integers(0, 2**31))
def test_every_row_is_in_one_part(name, n_rows, seed):
    split = paper_split(name, n_rows, seed)
    parts = [split.train, split.validation, split.test]
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(n_rows))
    shares = {"year": (7 / 10, 2 / 10, 1 / 10), "twitter": (0.7, 0.15, 0.15)}[name]
    for part, share in zip(parts, shares, strict=True):
        assert abs(len(part) - share * n_rows) <= 2 + 0.001 * n_rows
        assert (np.diff(part) > 0).all()


@pytest.mark.parametrize("name", ["year", "twitter"])
def test_the_seed_draws_the_rows(name):
    first, again, other = (paper_split(name, 10_000, seed) for seed in (1, 1, 2))
    assert np.array_equal(first.train, again.train)
    # Two draws of a share p from n rows have p^2 n in common.
    share = len(first.validation) / len(first.final)
    common = len(np.intersect1d(first.validation, other.validation)) / len(first.validation)
    assert abs(common - share) < 0.06


def test_the_paper_has_two_data_sets():
    for call in (paper_split, paper_groups):
        with pytest.raises(ValueError, match=r"'songs'.*'year' and 'twitter'"):
            call("songs")
    with pytest.raises(ValueError, match="n_rows is 3"):
        paper_split("year", 3)


@given(st.integers(2, 50), st.integers(1, 5), st.integers(0, 100))
def test_scaling_reaches_0_and_1_and_can_be_undone(n_rows, n_columns, seed):
    values = np.random.default_rng(seed).normal(size=(n_rows, n_columns)) * 10.0 ** np.arange(n_columns)
    scaling = paper_scaling(values)
    scaled = scaling.apply(values)
    np.testing.assert_array_equal(scaled.min(axis=0), 0.0)
    np.testing.assert_allclose(scaled.max(axis=0), 1.0, rtol=1e-15)
    np.testing.assert_allclose(scaling.undo(scaled), values, rtol=1e-12, atol=1e-12)


def test_a_constant_column_becomes_zero():
    np.testing.assert_array_equal(paper_scaling(np.full((3, 1), 7.0)).apply(np.full((2, 1), 7.0)), 0.0)


def test_an_error_of_the_paper_in_years():
    years = paper_scaling(np.array([1922.0, 2011.0]))
    assert float(years.undo(0.1147) - years.undo(0.0)) == pytest.approx(10.2, abs=0.05)


SOURCES = ["bixubot_sm_train"] * 6 + ["somebody"] * 2 + ["bixubot_sm_test"] * 3


@pytest.fixture
def sample_file(tmp_path):
    frame = make_year_like(len(SOURCES), as_frame=True).frame
    path = tmp_path / "year_sample.parquet"
    frame.assign(source=SOURCES).to_parquet(path)
    return path


def test_the_sample_says_which_rows_are_random(sample_file):
    sample, like = load_year_sample(sample_file), make_year_like(len(SOURCES))
    assert np.array_equal(sample.data, like.data)
    assert np.array_equal(sample.target, like.target)
    assert sample.feature_names == like.feature_names
    assert sample.groups == like.groups
    assert np.array_equal(sample.random_rows, [source != "somebody" for source in SOURCES])
    assert list(sample.train_rows) == [0, 1, 2, 3, 4, 5]
    assert list(sample.test_rows) == [8, 9, 10]
    assert list(sample.source) == SOURCES
    for words in ("clustered by\nartist", "6 to train", "3 to test", "CC BY 4.0"):
        assert words in sample.DESCR


def test_the_sample_is_looked_for_in_the_data_folder(sample_file, monkeypatch):
    monkeypatch.setenv("SCNE_DATA", str(sample_file.parent))
    data, target = load_year_sample(return_X_y=True, as_frame=True)
    assert list(data.columns) == DATASETS["year"].features
    assert len(target) == len(SOURCES)


def test_no_sample_and_no_sample_at_all(tmp_path, monkeypatch):
    monkeypatch.setenv("SCNE_DATA", str(tmp_path))
    with pytest.raises(DatasetError, match="SCNE_DATA"):
        load_year_sample()
    path = tmp_path / "year_sample.parquet"
    path.write_bytes(b"something else")
    with pytest.raises(DatasetError, match="cannot be read as Parquet"):
        load_year_sample()
    make_year_like(5, as_frame=True).frame.to_parquet(path)
    with pytest.raises(DatasetError, match="lacks the column source"):
        load_year_sample()
