"""Groups: from patterns, from what names have in common, and from TOML files."""

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scne.rows import DataError, open_rows, read_groups
from scne.rows._columns import guess_groups

NAMES = ["timbre_avg_1", "timbre_avg_2", "timbre_cov_1", "timbre_cov_2", "loudness", "x[0]", "year"]


@pytest.fixture
def songs(tmp_path):
    pq.write_table(pa.table({name: [1.0, 2.0] for name in NAMES}), tmp_path / "songs.parquet")
    return tmp_path / "songs.parquet"


def test_names_and_patterns(songs):
    rows = open_rows(songs, target="year", groups={"cov": ["timbre_cov_*"], "rest": ["loudness", "*_1", "x[0]"]})
    assert rows.groups == {
        "cov": ("timbre_cov_1", "timbre_cov_2"),
        "rest": ("loudness", "timbre_avg_1", "timbre_cov_1", "x[0]"),
    }
    assert rows.guessed_groups is None


def test_a_column_in_no_group_is_an_input_all_the_same(songs):
    rows = open_rows(songs, target="year", groups={"cov": ["timbre_cov_*"]})
    assert rows.input_names == open_rows(songs, target="year").input_names
    assert open_rows(songs, target="year", groups={"cov": ["timbre_cov_*"]}, ignore="loudness").input_names == tuple(
        name for name in rows.input_names if name != "loudness"
    )


def test_a_pattern_never_takes_the_target(songs):
    assert "year" not in open_rows(songs, target="year", groups={"all": ["*"]}).input_names


def test_guessed_from_prefixes_and_said(songs):
    rows = open_rows(songs, target="year")
    assert rows.groups == {
        "timbre_avg": ("timbre_avg_1", "timbre_avg_2"),
        "timbre_cov": ("timbre_cov_1", "timbre_cov_2"),
        "columns": ("loudness", "x[0]"),
    }
    assert "'timbre_avg' (2 columns)" in rows.guessed_groups


@pytest.mark.parametrize(
    ("names", "groups"),
    [
        (["a", "b"], {"columns": ("a", "b")}),
        (["s1", "s2", "s10"], {"s": ("s1", "s2", "s10")}),
        (["temp", "temp_min", "temp_max"], {"temp": ("temp", "temp_min", "temp_max")}),
        (["a_1", "b_1"], {"columns": ("a_1", "b_1")}),
        (["columns_1", "columns_2", "z"], {"columns": ("columns_1", "columns_2", "z")}),
        (["1", "2", "_3"], {"columns": ("1", "2", "_3")}),
    ],
)
def test_guesses(names, groups):
    assert guess_groups(names)[0] == groups


class TestGroupsFile:
    @pytest.mark.parametrize("head", ["", "[groups]\n"])
    def test_read(self, tmp_path, head):
        (tmp_path / "g.toml").write_text(head + 'weather = ["TEMP", "PRES"]\n"all gases" = ["*O2"]\n')
        assert read_groups(tmp_path / "g.toml") == {"weather": ["TEMP", "PRES"], "all gases": ["*O2"]}

    def test_a_group_may_be_called_groups(self, tmp_path):
        (tmp_path / "g.toml").write_text('groups = ["a"]')
        assert read_groups(tmp_path / "g.toml") == {"groups": ["a"]}

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("", "names no groups"),
            ("[groups]\n", "names no groups"),
            ('a = ["x"]\nb = ?', "line 2"),
            ('a = "x"', "'a' .* is 'x', but it must be a list"),
            ("a = [1]", "'a' .* must be a list of column names"),
            ("a = []", "'a' .* has no columns"),
            ("[a]\nx = 1", "'a' .* must be a list"),
            ('b = ["x"]\n[groups]\na = ["x"]', "also 'b' outside of it"),
        ],
    )
    def test_refused(self, tmp_path, text, words):
        (tmp_path / "g.toml").write_text(text)
        with pytest.raises(DataError, match=words) as caught:
            read_groups(tmp_path / "g.toml")
        assert str(tmp_path / "g.toml") in str(caught.value)

    def test_missing(self, tmp_path):
        with pytest.raises(DataError, match=r"g\.toml cannot be read: No such file"):
            read_groups(tmp_path / "g.toml")

    def test_not_text(self, tmp_path):
        (tmp_path / "g.toml").write_bytes(b"a = ['\xff']")
        with pytest.raises(DataError, match="UTF-8"):
            read_groups(tmp_path / "g.toml")


@pytest.mark.parametrize(
    "text",
    ["a = " + "[" * 3_000, "a = " + "[" * 400 + "]" * 400, "a = " + "{b=" * 2_000, "a" + ".a" * 900_000 + " = 1"],
    ids=["open lists", "lists", "tables", "dotted"],
)
def test_a_groups_file_that_nests_without_end_is_refused_at_once(text, tmp_path):
    path = tmp_path / "groups.toml"
    path.write_text(text)
    with pytest.raises(DataError, match=r"groups\.toml"):
        read_groups(path)


def test_a_groups_file_that_never_ends_is_refused(tmp_path):
    os.mkfifo(tmp_path / "groups.toml")
    for path in (tmp_path / "groups.toml", "/dev/zero", tmp_path):
        with pytest.raises(DataError, match=r"regular files|directory"):
            read_groups(path)
    large = tmp_path / "large.toml"
    large.write_text("#" * 2_000_001)
    with pytest.raises(DataError, match="is the most"):
        read_groups(large)
