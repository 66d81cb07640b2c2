"""Groups: from patterns, from what names have in common, and from TOML files."""

import os
import warnings
from typing import ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scne import SCNERegressor, ScneWarning, SCNRegressor
from scne.rows import DataError, open_rows, read_groups, resolve_groups
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
    # Columns in no group are inputs all the same.
    assert rows.input_names == tuple(NAMES[:-1])
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
    "columns",
    [["timbre_cov_*"], ["x[0]", "*_1"], ["timbre_*", "timbre_cov_1"], ["timbre_cov_1", "timbre_*"], ["?oudness"], "*"],
)
def test_patterns_in_memory_are_those_of_files(songs, columns):
    in_file = open_rows(songs, target="year", groups={"g": columns}).groups["g"]
    (group,) = resolve_groups({"g": columns}, len(NAMES) - 1, NAMES[:-1])
    assert tuple(NAMES[place] for place in group.columns) == in_file


def test_patterns_that_cannot_be_in_memory():
    with pytest.raises(
        ValueError, match=r"The pattern 'gas_\*' of group 'g' of groups matches no column .* are 'a', 'b'"
    ):
        resolve_groups({"g": ["gas_*"]}, 2, ["a", "b"])
    with pytest.raises(ValueError, match=r"names column 'gas_\*', but the input has no column names"):
        resolve_groups({"g": ["gas_*"]}, 2)
    with pytest.raises(ValueError, match="lists column 'a' more than once"):
        resolve_groups({"g": ["a", "a"]}, 2, ["a", "b"])


class TestColumnsInNoGroup:
    @pytest.fixture
    def frame(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(rng.normal(size=(300, 4)), columns=["gas_a", "gas_b", "temp", "rest"])
        frame["place"] = rng.choice(["north", "south"], 300)
        return frame.assign(y=frame.gas_a * frame.temp + 3 * frame.rest + (frame.place == "north"))

    @pytest.fixture
    def path(self, frame, tmp_path):
        frame.to_parquet(tmp_path / "a.parquet", index=False)
        return tmp_path / "a.parquet"

    groups: ClassVar = {"gas": ["gas_*"], "temp": ["temp"]}

    @staticmethod
    def model(**settings):
        return SCNERegressor(SCNRegressor(5, n_candidates=10), n_estimators=2, random_state=0, **settings)

    def test_all_columns_are_used_across_the_groups(self, frame, path):
        inputs = frame.drop(columns="y")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            in_memory = self.model(groups=self.groups).fit(inputs, frame.y)
            from_file = self.model().fit(open_rows(path, target="y", groups=self.groups))
        assert np.array_equal(in_memory.solution_.weights, from_file.solution_.weights)
        for model in (in_memory, from_file):
            importances = dict(zip(model.feature_names_in_, model.feature_importances_, strict=True))
            assert importances["rest"] > 0.3
            assert list(model.column_groups_) == ["gas", "temp"]

    def test_networks_of_groups_do_not_see_them_which_is_said(self, frame, path):
        words = r"Columns 'rest', 'place' are in no group, and with networks='per group' no network sees them; add them"
        with pytest.warns(ScneWarning, match=words) as caught:
            in_memory = self.model(groups=self.groups, networks="per group").fit(frame.drop(columns="y"), frame.y)
        assert len(caught) == 1
        with pytest.warns(ScneWarning, match=words) as caught:
            from_file = self.model(networks="per group").fit(open_rows(path, target="y", groups=self.groups))
        assert len(caught) == 1
        assert np.array_equal(in_memory.solution_.weights, from_file.solution_.weights)
        with pytest.warns(ScneWarning, match="Column '2' is in no group"):
            self.model(groups=[[0], [1]], networks="per group").fit(
                frame[["gas_a", "gas_b", "temp"]].to_numpy(), frame.y
            )
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            whole = {**self.groups, "other": ["rest", "place"]}
            self.model(groups=whole, networks="per group").fit(frame.drop(columns="y"), frame.y)


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
