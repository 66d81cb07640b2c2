"""Models as ONNX graphs: onnxruntime says what `predict` says."""

import json
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import onnx
import onnxruntime
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from altered import with_columns, with_share, with_weights
from ensembles import plain_ensemble
from export_models import (
    ARRAY_MODELS,
    DATED_MODELS,
    OUTPUTS,
    SMALL,
    array_model,
    array_rows,
    arrays,
    assert_agree,
    assert_agree_in_the_tail,
    dated_model,
    dated_rows,
    file_model,
    file_predictions,
    file_table,
    level_model,
    level_table,
    many_targets_model,
    new_levels,
    saturated_model,
)
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays as drawn_arrays
from older_networks import OlderModel

from scne import RVFLRegressor, SCNERegressor, SCNRegressor, open_rows
from scne.models import ExportError, ModelFileError
from scne.models.export._onnx_columns import MISSING_DATE, _calendar
from scne.models.export._onnx_graph import IR_VERSION, OPSET, GraphBuilder
from scne.rows._encodings import calendar_part

# Some columns are in no group here, which is said where it is tested.
pytestmark = pytest.mark.filterwarnings("ignore:.* no network sees:scne.ScneWarning")


def session(proto):
    """A session on a checked model, with every optimisation that onnxruntime makes by default."""
    onnx.checker.check_model(proto, full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(proto, X, outputs=("y",)):
    return session(proto).run(list(outputs), {"X": np.asarray(X)})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


@pytest.mark.parametrize("name", ARRAY_MODELS)
def test_every_model_says_what_predict_says(name):
    model, X = array_model(name), array_rows()
    assert_agree(run(model.export("onnx"), X)[0], model.predict(X), model)


def test_nodes_in_the_lower_tail_say_what_predict_says():
    model, X = saturated_model(), array_rows()[:40]
    assert_agree_in_the_tail(run(model.export("onnx"), X)[0], model, X)


@pytest.mark.parametrize("outputs", OUTPUTS)
@pytest.mark.parametrize("name", ["rvfl", "scn ramps tanh linked clipped", "dnne", "scne judged", "scne on a line"])
def test_outputs_have_the_shape_of_predict(name, outputs):
    model, X = array_model(name, outputs), array_rows()
    proto = model.export("onnx")
    assert_agree(run(proto, X)[0], model.predict(X), model)
    n_declared = len(proto.graph.output[0].type.tensor_type.shape.dim)
    assert n_declared == model.predict(X).ndim


@pytest.mark.parametrize("name", DATED_MODELS)
def test_dates_are_read_as_predict_reads_them(name):
    model, X = dated_model(name), dated_rows()
    assert any(getattr(layer.scaling, "dates", ()) for layer in model.fitted_.terms()[0])
    assert_agree(run(model.export("onnx"), X)[0], model.predict(X), model, digits=1e-12)


@pytest.mark.parametrize("activation", ["sigmoid", "tanh"])
@pytest.mark.parametrize("scaling", ["0-1", "standard", "ramps", "none"])
@pytest.mark.parametrize("linked", [False, True])
def test_one_column_keeps_its_digits(scaling, activation, linked):
    """onnxruntime merges a division by a single number into the product after it, in single precision."""
    X = np.linspace(-3, 3, 200)[:, None]
    network = SCNRegressor(8, scaling=scaling, activation=activation, random_state=0)
    model = OlderModel(network, linked).fit(X, np.sin(X[:, 0]))
    assert_agree(run(model.export("onnx"), X)[0], model.predict(X), model)


@given(
    drawn_arrays(
        np.float64,
        st.tuples(st.integers(0, 9), st.just(4)),
        elements=st.floats(-1e12, 1e12) | st.floats(-3, 3) | st.just(0.0),
    )
)
def test_any_finite_rows(X):
    for name in ("scne judged", "scn standard sigmoid linked clipped"):
        model = array_model(name)
        found = _sessions(name).run(["y"], {"X": X})[0]
        assert found.shape == (len(X),)
        if len(X):
            assert_agree(found, model.predict(X), model)


_kept = {}


def _sessions(name):
    if name not in _kept:
        _kept[name] = session(array_model(name).export("onnx"))
    return _kept[name]


@pytest.mark.parametrize("outputs", OUTPUTS)
@pytest.mark.parametrize("n_rows", [0, 1])
def test_one_row_and_none(n_rows, outputs):
    model = array_model("scne judged", outputs)
    X = array_rows()[:n_rows]
    found = run(model.export("onnx", interval=0.5), X, ["y", "lower", "upper"])
    shape = model.predict(array_rows()[:1]).shape
    assert [part.shape for part in found] == [(n_rows, *shape[1:])] * 3
    if n_rows:
        assert_agree(found[0], model.predict(X), model)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["scne judged", "scn 0-1 tanh clipped", "scn none sigmoid linked"])
def test_a_row_with_a_gap_has_no_prediction(name, bad):
    model, X = array_model(name), array_rows()[:5]
    X[2, 1] = bad
    found = run(model.export("onnx", interval=None), X)[0]
    assert np.isnan(found).tolist() == [False, False, True, False, False]


def test_single_precision_in_and_out():
    model, X = array_model("scne judged"), array_rows()[:40].astype(np.float32)
    found = run(model.export("onnx", dtype="float32"), X)[0]
    assert found.dtype == np.float32
    # Computed in double: what is lost is the last rounding alone.
    np.testing.assert_array_equal(found, model.predict(X).astype(np.float32))


@pytest.mark.parametrize("outputs", OUTPUTS)
@pytest.mark.parametrize("name", ["scne judged", "scn that watches"])
def test_intervals(name, outputs):
    model, X = array_model(name, outputs), array_rows()
    for found, wanted in zip(
        run(model.export("onnx", interval=0.8), X, ["y", "lower", "upper"]), model.predict(X, interval=0.8), strict=True
    ):
        assert_agree(found, wanted, model)


def test_intervals_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="knows no errors on rows that its fit held out"):
        array_model("rvfl").export("onnx", interval=0.9)
    with pytest.raises(ValueError, match=r"interval is 0\.999, but"):
        array_model("scne judged").export("onnx", interval=0.999)


def test_networks_that_see_the_same_columns_are_one_product():
    """What three networks share is computed once, and a trend that has all of the output needs no nodes."""
    operators = [node.op_type for node in array_model("dnne").export("onnx").graph.node]
    assert operators.count("Exp") == 1
    X, _ = arrays()
    line = SCNERegressor(n_estimators=2, random_state=0).fit(X, X @ [1.0, 2.0, 0.01, 4.0])
    with_share(line, [0.0])
    proto = line.export("onnx")
    assert "Tanh" not in [node.op_type for node in proto.graph.node]
    assert_agree(run(proto, X)[0], line.predict(X), line)


def test_a_constant_target_has_no_nodes():
    X, _ = arrays()
    model = RVFLRegressor(5, random_state=0).fit(X, np.full(len(X), 7.5))
    proto = model.export("onnx")
    assert "Exp" not in [node.op_type for node in proto.graph.node]
    assert run(proto, X)[0].tolist() == [7.5] * len(X)


def columns_of(table, proto):
    """A table as the inputs of a graph: by what the graph's own property says of them."""
    (listed,) = [entry.value for entry in proto.metadata_props if entry.key == "columns"]
    inputs = {}
    for one in json.loads(listed):
        column = table[one["column"]].combine_chunks()
        if one["type"] == "string":
            values = np.array([one["missing"] if text is None else text for text in column.to_pylist()], dtype=object)
        elif one["type"] == "bool":
            values = np.array(column.to_pylist(), dtype=bool)
        elif one["type"] == "int64":
            values = np.array([_seconds(value, one["missing"]) for value in column.to_pylist()], dtype=np.int64)
        else:
            values = column.cast(pa.float64()).to_numpy(zero_copy_only=False).astype(one["type"])
        inputs[one["input"]] = values[:, None]
    return inputs


def _seconds(value, missing):
    if value is None:
        return missing
    if not hasattr(value, "year"):
        return value.hour * 3600 + value.minute * 60 + value.second
    moment = datetime(value.year, value.month, value.day, *_clock(value), tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)


def _clock(value):
    return (value.hour, value.minute, value.second) if hasattr(value, "hour") else ()


@pytest.mark.parametrize("n_rows", [300, 1])
@pytest.mark.parametrize("interval", [None, 0.7])
def test_files_with_text_dates_flags_and_gaps(folder, interval, n_rows):
    model = file_model(folder)
    assert {encoding.kind for encoding in model.encoder_.encodings} == {"number", "flag", "category", "date"}
    assert any(encoding.form == "level means" for encoding in model.encoder_.encodings)
    table = file_table(n_rows, seed=7)
    proto = model.export("onnx", interval=interval)
    found = session(proto).run(["y"], columns_of(table, proto))[0]
    assert_agree(found, file_predictions(model, table, folder), model)


def test_files_with_a_column_for_each_level(folder):
    model, table = many_targets_model(folder), file_table(300, seed=7)
    proto = model.export("onnx")
    found = session(proto).run(["y"], columns_of(table, proto))[0]
    assert_agree(found, file_predictions(model, table, folder), model)


def test_files_in_single_precision(folder):
    model, table = file_model(folder), file_table(100, seed=7)
    proto = model.export("onnx", dtype="float32")
    found = session(proto).run(["y"], columns_of(table, proto))[0]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, file_predictions(model, table, folder), rtol=1e-4, atol=1e-4)


def test_an_input_has_the_name_of_its_column_unless_an_output_has_it(folder):
    model = file_model(folder)
    assert "lower" in [one.name for one in model.export("onnx").graph.input]
    proto = model.export("onnx", interval=0.7)
    assert "lower" not in [one.name for one in proto.graph.input]
    assert {"size", "where", "seen"} <= {one.name for one in proto.graph.input}


@pytest.mark.parametrize("make", [file_model, many_targets_model])
def test_a_text_that_was_never_seen_is_other_or_nothing(folder, make):
    model, table = make(folder), file_table(5, seed=8)
    unseen = pa.array(["nowhere", "None", "PLACE 1", " north", None])
    table = table.set_column(table.schema.get_field_index("where"), "where", unseen)
    table = table.set_column(table.schema.get_field_index("lower"), "lower", pa.array(["c", "", "A", "a", "b"]))
    proto = model.export("onnx")
    inputs = columns_of(table, proto)
    assert inputs["where"][4] == ""
    assert_agree(session(proto).run(["y"], inputs)[0], file_predictions(model, table, folder), model)


def test_an_empty_text_that_is_a_level_is_not_a_gap(tmp_path):
    texts = ["", "a", None, "<missing>"] * 30
    target = [3.0, 1.0, 7.0, 5.0] * 30
    pq.write_table(pa.table({"text": texts, "x": np.arange(120.0), "y": target}), tmp_path / "t.parquet")
    rows = open_rows(tmp_path / "t.parquet", target="y")
    model = RVFLRegressor(20, random_state=0).fit(rows)
    proto = model.export("onnx")
    table = pa.table({"text": texts, "x": np.arange(120.0)})
    inputs = columns_of(table, proto)
    assert set(inputs["text"].ravel()) == {"", "a", "<missing>", "<missing 2>"}
    assert_agree(session(proto).run(["y"], inputs)[0], model.predict(rows), model)
    np.testing.assert_allclose(model.predict(rows), target, atol=0.5)


@pytest.mark.parametrize("table", [level_table(), new_levels(), new_levels(1)], ids=["seen", "new", "one"])
def test_means_by_level_of_texts_and_of_numbers_that_name_things(folder, table):
    model = level_model(folder)
    proto = model.export("onnx")
    assert_agree(session(proto).run(["y"], columns_of(table, proto))[0], file_predictions(model, table, folder), model)


def test_names_that_a_float_cannot_hold_are_refused(folder):
    with pytest.raises(ExportError, match=r"Column 'person' holds numbers that name things, such as 10000000000\d\d"):
        level_model(folder).export("onnx", dtype="float32")
    model, table = level_model(folder, SMALL), level_table(100, 23, SMALL)
    proto = model.export("onnx", dtype="float32")
    found = session(proto).run(["y"], columns_of(table, proto))[0]
    np.testing.assert_allclose(found, file_predictions(model, table, folder), rtol=1e-4, atol=1e-4)


def test_gaps_in_texts_of_many_levels_where_the_fit_allowed_none(folder):
    model = plain_ensemble(RVFLRegressor(3), random_state=0)
    model.__dict__.update(level_model(folder).__dict__)
    with_columns(model, encoder=replace(model.encoder_, missing="refuse"))
    proto = model.export("onnx")
    table = level_table(100, seed=22)
    found = session(proto).run(["y"], columns_of(table, proto))[0]
    missing = table["town"].is_null().to_numpy() | table["person"].is_null().to_numpy()
    assert 0 < missing.sum() < 100
    assert np.isnan(found).all(axis=1).tolist() == missing.tolist()


def test_a_row_that_the_encoder_refuses_has_no_prediction(folder):
    model = file_model(folder)
    proto = model.export("onnx")
    inputs = columns_of(file_table(3, seed=9), proto)
    inputs["size"][1, 0] = np.inf
    assert np.isnan(session(proto).run(["y"], inputs)[0]).tolist() == [False, True, False]


@pytest.mark.parametrize("column", ["size", "where", "seen"])
def test_gaps_where_the_fit_allowed_none(folder, column):
    model = plain_ensemble(RVFLRegressor(3), random_state=0)
    model.__dict__.update(file_model(folder).__dict__)
    with_columns(model, encoder=replace(model.encoder_, missing="refuse"))
    proto = model.export("onnx")
    table = file_table(40, seed=10)
    missing = np.array([value is None for value in table[column].to_pylist()])
    assert 0 < missing.sum() < 40
    for other in set(table.column_names) - {column}:
        whole = table[other].drop_null()
        table = table.set_column(
            table.schema.get_field_index(other), other, whole.take(pa.array(np.arange(40) % len(whole)))
        )
    found = session(proto).run(["y"], columns_of(table, proto))[0]
    assert np.isnan(found).tolist() == missing.tolist()


def test_calendar_parts_by_whole_numbers():
    """Every day of a thousand years, and moments just before and after midnight in the years before 1970."""
    days = np.arange(np.datetime64("1500-01-01"), np.datetime64("2500-01-01")).astype("datetime64[s]").astype(np.int64)
    seconds = np.concatenate([days, days[::7] - 1, days[::5] + 43_261])
    graph = GraphBuilder(["s"])
    parts = _calendar(graph, "s", {"year", "month", "day_of_year", "weekday", "hour"})
    for part, value in parts.items():
        graph("Identity", value, output=part)
    make, kinds = onnx.helper.make_tensor_value_info, onnx.TensorProto
    proto = onnx.helper.make_model(
        onnx.helper.make_graph(
            graph.nodes,
            "calendar",
            [make("s", kinds.INT64, ["N"])],
            [make(part, kinds.DOUBLE, ["N"]) for part in parts],
            graph.constants,
        ),
        ir_version=IR_VERSION,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
    )
    found = session(proto).run(list(parts), {"s": seconds})
    moments = pa.array(seconds, pa.timestamp("s"))
    for part, values in zip(parts, found, strict=True):
        np.testing.assert_array_equal(values, calendar_part("s", moments, part))


def test_missing_dates_are_what_numpy_makes_of_them():
    assert np.array(["NaT"], dtype="datetime64[s]").astype(np.int64)[0] == MISSING_DATE


def test_written_and_read_back(tmp_path):
    model = array_model("scne judged")
    first, again = tmp_path / "a.onnx", tmp_path / "b.onnx"
    proto = model.export("onnx", first)
    model.export("onnx", str(again))
    assert first.read_bytes() == again.read_bytes()
    assert onnx.load(first) == proto
    assert "SCNERegressor of scne" in proto.doc_string
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.onnx", "b.onnx"]


def test_a_failed_export_leaves_the_old_file(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(b"old")
    with pytest.raises(ValueError, match="dtype is 'float16', but it must be one of 'float64', 'float32'"):
        array_model("rvfl").export("onnx", path, dtype="float16")
    assert path.read_bytes() == b"old"
    with pytest.raises(ModelFileError, match="there is no folder"):
        array_model("rvfl").export("onnx", tmp_path / "nowhere" / "m.onnx")


def test_weights_that_are_not_finite_are_refused():
    X, y = arrays()
    model = RVFLRegressor(5, random_state=0).fit(X, y)
    with_weights(model, lambda weights: np.where(weights > 0, np.inf, weights))
    with pytest.raises(ExportError, match="weights that are not finite"):
        model.export("onnx")


def test_without_the_package_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match="pip install onnx onnxruntime"):
        array_model("rvfl").export("onnx")
