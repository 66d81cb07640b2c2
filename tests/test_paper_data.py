"""Which rows experiments run on, and that they say so."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from scne.datasets import make_year_like, write_parquet, year_like_blocks
from scne.paper import EXPERIMENTS, choose_data, published, run_experiments
from scne.paper._data import load_rows
from scne.paper._hidden_nodes import sampled_rows
from scne.paper._runner import make_plan


@pytest.fixture(autouse=True)
def nothing_at_hand(tmp_path, monkeypatch):
    """An empty data folder, and a working folder without neighbours."""
    folder = tmp_path / "empty" / "work"
    folder.mkdir(parents=True)
    monkeypatch.setenv("SCNE_DATA", str(tmp_path / "no-data"))
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def sample(tmp_path):
    """A file of the sample's form: 90 rows to fit, 40 to test, and 20 that belong to neither."""
    made = make_year_like(150)
    source = ["elsewhere"] * 20 + ["bixubot_sm_train"] * 90 + ["bixubot_sm_test"] * 40
    columns = {"year": made.target.astype(np.int16), **dict(zip(made.feature_names, made.data.T, strict=True))}
    path = tmp_path / "sample" / "year_sample.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table({**columns, "source": source}), path)
    return path, made


def test_without_data_a_generator_stands_in_and_says_so():
    for dataset in ("year", "twitter"):
        choice = choose_data(dataset)
        assert (choice.kind, choice.name, choice.substitute) == ("generator", f"make_{dataset}_like", True)
        assert choice.rows == 200_000
        assert "generator" in choice.note
        assert "cannot be compared" in choice.note


def test_the_sample_is_found_by_file_folder_data_home_or_neighbour(sample, nothing_at_hand, monkeypatch):
    path, _ = sample
    neighbour = nothing_at_hand.parent / "shared" / "data"
    for given in (path, path.parent):
        choice = choose_data("year", given)
        assert (choice.kind, choice.train, choice.test, choice.path) == ("sample", 90, 40, str(path))
        assert "515,345" in choice.note
        assert "130" in choice.note
    monkeypatch.setenv("SCNE_DATA", str(path.parent))
    assert choose_data("year").kind == "sample"
    assert choose_data("twitter").kind == "generator"
    monkeypatch.delenv("SCNE_DATA")
    monkeypatch.setenv("SCNE_DATA", str(nothing_at_hand))
    assert choose_data("year").kind == "generator"
    neighbour.mkdir(parents=True)
    (neighbour / "year_sample.parquet").write_bytes(path.read_bytes())
    assert choose_data("year").kind == "sample"


def test_sample_rows_are_scaled_by_the_full_range_and_keep_their_parts(sample):
    path, made = sample
    rows = load_rows(choose_data("year", path))
    assert rows.inputs.shape == (130, 90)
    assert_array_equal(rows.original_target, made.target[20:])
    assert_allclose(rows.target * 89 + 1922, made.target[20:])
    assert_allclose([rows.inputs.min(), rows.inputs.max()], [0, 1])
    split = rows.split(0)
    assert_array_equal(split.test, np.arange(90, 130))
    assert (len(split.train), len(split.validation)) == (70, 20)
    assert_array_equal(split.final, np.arange(90))
    assert not np.array_equal(split.train, rows.split(1).train)


def test_generated_rows_are_scaled_and_split_as_in_the_paper():
    rows = load_rows(choose_data("twitter", quick=True))
    assert_allclose([rows.target.min(), rows.target.max()], [0, 1])
    split = rows.split(5)
    parts = [split.train, split.validation, split.test]
    assert [len(part) for part in parts] == [700, 150, 150]
    assert_array_equal(np.sort(np.concatenate(parts)), np.arange(1000))


def test_repeats_on_few_rows_are_not_the_same_rows():
    plan = make_plan(EXPERIMENTS["hidden-nodes-year"], quick=True)
    rows = load_rows(plan.data["year"])
    first, second = (sampled_rows(rows, plan, index) for index in (0, 1))
    assert not np.array_equal(first[0], second[0])
    for fitted, watched in (first, second):
        assert len(np.intersect1d(fitted, watched)) == 0
        assert fitted.max() < rows.split(0).test.min()
        assert (len(fitted), len(watched)) == (600, 199)


def test_a_data_path_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="nowhere"):
        choose_data("twitter", Path("nowhere"))


def test_cost_runs_on_the_generator_at_full_size(sample):
    plan = make_plan(EXPERIMENTS["cost"], data=sample[0])
    assert plan.data["twitter"].rows == published("twitter").samples
    assert plan.settings["sizes"][0]["rows"] == published("twitter").train


@pytest.mark.slow
def test_full_data_is_used_where_it_was_fetched(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    # Rows of the generator in the form of the fetched data: the right number of rows and columns.
    write_parquet(home / "year.parquet", year_like_blocks())
    choice = choose_data("year", home)
    assert (choice.kind, choice.name, choice.substitute) == ("full", "Year", False)
    assert (choice.train, choice.test) == (463_715, 51_630)
    assert load_rows(choice).inputs.shape == (515_345, 90)
    [outcome] = run_experiments([EXPERIMENTS["ensembles-year"]], tmp_path / "out", quick=True, data=home)
    assert outcome.result["data"]["name"] == "Year"
    assert not outcome.result["data"]["substitute"]
