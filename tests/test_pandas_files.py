"""Files that pandas wrote: its index is no input, and its categories are categories, as they are in memory."""

import json
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from commands import run_here

from scne import RVFLRegressor, SCNERegressor, ScneWarning, SCNRegressor, open_rows

N_ROWS = 600


def make_frame(index=None):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=N_ROWS),
            "code": pd.Categorical(rng.choice([3, 10, 7], N_ROWS)),
            "half": pd.Categorical(rng.choice([0.5, 2.0], N_ROWS)),
            "place": pd.Categorical(rng.choice(["north", "south"], N_ROWS)),
            "day": pd.Categorical(rng.choice(pd.date_range("2020-01-01", periods=40), N_ROWS)),
            "flag": pd.Categorical(rng.choice([True, False], N_ROWS)),
        },
        index=index,
    )
    frame.loc[frame.index[:30], "code"] = np.nan
    frame["y"] = frame.x + frame.code.astype(float).fillna(0) + (frame.place == "north") + 0.1 * rng.normal(size=N_ROWS)
    return frame


def write(frame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        pa.feather.write_feather(pa.Table.from_pandas(frame), path)
    return path


def opened_silently(path, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return open_rows(path, target="y", **settings)


@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
@pytest.mark.parametrize("index", [None, pd.Index(np.arange(N_ROWS) % 97, name="id")], ids=["filtered", "named"])
def test_a_frame_and_the_file_that_it_was_written_to_give_the_same_bits(tmp_path, ending, index):
    frame = make_frame(index)
    frame = frame[frame.x > -1]
    path = write(frame, tmp_path / f"a{ending}")
    model = SCNERegressor(SCNRegressor(6, n_candidates=20), n_estimators=2, random_state=0)
    inputs = frame.drop(columns="y")
    in_memory = model.fit(inputs, frame.y)
    weights, predicted = in_memory.solution_.weights, in_memory.predict(inputs)
    assert in_memory.encoder_.kinds["code"] == in_memory.encoder_.kinds["half"] == "category"
    assert np.array_equal(in_memory.predict(path), predicted)
    with pytest.warns(ScneWarning, match="is the index of a pandas data frame and is left out"):
        rows = open_rows(path, target="y")
    from_file = model.fit(rows)
    assert np.array_equal(from_file.solution_.weights, weights)
    assert np.array_equal(from_file.predict(inputs), predicted)


@pytest.fixture
def indexed(tmp_path):
    return write(make_frame(pd.Index(np.arange(N_ROWS) % 97, name="id")), tmp_path / "a.parquet")


def test_an_index_that_is_named_is_used(indexed):
    assert "id" in opened_silently(indexed, kinds={"id": "number"}).input_names
    assert opened_silently(indexed, groups={"g": ["id", "x"]}).groups == {"g": ("id", "x")}
    assert opened_silently(indexed, keys="id").key_names == ("id",)
    assert "id" not in opened_silently(indexed, ignore="id").input_names
    assert open_rows(indexed, target="id").target_names == ("id",)
    with pytest.warns(ScneWarning, match=r"Column 'id' of .*a\.parquet .* name it in kinds, groups or keys"):
        assert "id" not in open_rows(indexed, target="y", groups={"g": ["*"]}).groups["g"]


def test_a_model_that_learned_from_an_index_finds_it_again(indexed):
    model = RVFLRegressor(4, random_state=0).fit(open_rows(indexed, target="y", kinds={"id": "number"}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(model.predict(indexed)) == N_ROWS


def test_an_index_of_several_levels_and_of_some_files_only(tmp_path):
    frame = make_frame().drop(columns="day")
    write(frame.iloc[:300], tmp_path / "0.parquet")
    levels = pd.MultiIndex.from_arrays([np.arange(300) % 7, np.arange(300) % 5], names=["one", "two"])
    write(frame.iloc[300:].set_index(levels), tmp_path / "1.parquet")
    with pytest.warns(ScneWarning, match=r"Columns 'one', 'two' of .* are the index"):
        rows = open_rows(tmp_path, target="y")
    assert rows.input_names == ("x", "code", "half", "place", "flag")


def test_without_the_words_of_pandas_its_name_for_an_index_is_known(tmp_path):
    table = pa.table({"__index_level_0__": [3, 1], "x": [1.0, 2.0], "y": [1.0, 2.0]})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.warns(ScneWarning, match="'__index_level_0__'"):
        assert open_rows(tmp_path / "a.parquet", target="y").input_names == ("x",)


@pytest.mark.parametrize(
    "words",
    [b"{", b"[]", b"\xff", b'{"index_columns": 3, "columns": 4}', b'{"index_columns": [{}, null], "columns": [1, {}]}'],
)
def test_spoiled_words_of_pandas_are_passed_over(tmp_path, words):
    table = pa.table({"x": [1.0, 2.0], "y": [1.0, 2.0]}).replace_schema_metadata({b"pandas": words})
    pq.write_table(table, tmp_path / "a.parquet")
    assert opened_silently(tmp_path / "a.parquet").input_names == ("x",)


def test_what_is_stated_comes_before_what_pandas_says(indexed):
    rows = open_rows(indexed, target="y", kinds={"code": "number"}, ignore="id")
    assert pa.types.is_floating(rows.schema.field("code").type)
    assert next(rows.batches(["code"]))["code"].to_pylist()[30:33] == make_frame().code.tolist()[30:33]
    # Targets and keys are values, whatever they are stored as.
    rows = open_rows(indexed, target="half", keys=["code"], ignore="id")
    assert [pa.types.is_string(rows.schema.field(name).type) for name in ("half", "code")] == [False, False]


def test_footers_that_are_not_parsed_tell_it_too(indexed, monkeypatch):
    from scne.rows import _parquet_format

    parsed = open_rows(indexed, target="y", ignore="id")
    monkeypatch.setattr(_parquet_format, "_LONG_FOOTER", 0)
    short = open_rows(indexed, target="y", ignore="id")
    assert parsed.schema == short.schema
    with pytest.warns(ScneWarning, match="'id'"):
        open_rows(indexed, target="y")


@pytest.mark.filterwarnings("default")
@pytest.mark.usefixtures("indexed")
def test_the_command_says_it_once(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    fast = ("--networks", "2", "--nodes", "4", "--tuning", "0", "--json")
    status, printed, said = run_here(monkeypatch, capsys, "fit", "a.parquet", "--target", "y", *fast)
    assert status == 0, said
    assert said.startswith("Column 'id' of a.parquet is the index of a pandas data frame and is left out;")
    assert said.count("index") == 1
    assert "id" not in json.dumps(json.loads(printed)["groups"]).split('"')
