"""Model files that somebody made to do harm: refused in a sentence, in bounded memory and time."""

import json
import os
import struct
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from altered import with_columns, with_weights
from ensembles import plain_ensemble, single_classifier
from export_models import file_model, level_model
from test_model_files_damage import MODELS, X, Y, opened, refusal, signed

from scne import RVFLRegressor, SCNEClassifier, SCNRegressor, open_rows
from scne.estimators import describe_model, load_model, save_model
from scne.models import ModelFileError
from scne.models.file._header import LONGEST_HEADER, MOST_VALUES


@pytest.fixture
def ensemble(tmp_path):
    path = tmp_path / "m.scne"
    save_model(MODELS["scne"].fit(X, Y), path, with_system=True)
    return path


def altered(path, change):
    """Sign a file again after `change(tensors, document)`."""
    tensors, document = opened(path)
    tensors = {name: tensor.copy() for name, tensor in tensors.items()}
    change(tensors, document)
    signed(path, tensors, document)
    return path


NOT_FINITE = [
    "members.0.input_weights",
    "members.0.biases",
    "members.0.output_weights",
    "members.0.scaling.shift",
    "target_scaling.shift",
    "ridge",
    "system.gram",
    "system.moments",
]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", NOT_FINITE)
def test_numbers_that_are_not_finite_are_refused(name, value, ensemble):
    def change(tensors, document):
        tensors[name].reshape(-1)[-1] = value

    assert f"tensor '{name}' holds numbers that are not finite" in refusal(altered(ensemble, change))


def _set(name, value):
    def change(tensors, document):
        tensors[name].reshape(-1)[0] = value

    return change


def _put(value, *path):
    def change(tensors, document):
        holder = document
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = value

    return change


IMPOSSIBLE = {
    "a scale of zero": (_set("target_scaling.scale", 0.0), "are not positive"),
    "a negative scale": (_set("members.0.scaling.scale", -1.0), "are not positive"),
    "limits the wrong way round": (_set("members.0.scaling.lower", 1e9), "is above that of"),
    "a negative ridge": (_set("ridge", -1.0), "holds negative numbers"),
    "a column twice": (_set("members.0.columns", 1), "names columns that the input"),
    "a group's column twice": (_set("column_groups.0", 1), "or one twice"),
    "negative squares": (_set("system.gram", -1.0), "below zero"),
    "too much decorrelation": (_put(2.0, "decorrelation"), "too much for 2 networks"),
    "no decorrelation": (_put({"__kind__": "float", "text": "nan"}, "decorrelation"), "must be a finite number"),
    "two networks of one name": (_put("a", "members", 1, "name"), "same name"),
    "two groups of one name": (_put(["a", "a"], "column_groups"), "no name of its own"),
    "too many columns": (_put(10**9, "n_features_in"), "at most 250000"),
    "columns beyond counting": (_put(10**400, "n_features_in"), "more than 64 bits"),
    "a flat target of two": (_put(True, "flat_target"), "its target is flat"),
    "a solver of another program": (_put("os.system", "solution", "solver"), "does not know"),
    "a name that is no text": (_put("\ud800", "members", 0, "name"), "no valid Unicode"),
    "an absurd parameter": (_put([1], "estimator", "parameters", "max_iter"), "its parameters cannot be"),
    "an absurd base": (_put("many", "estimator", "base", "parameters", "max_hidden"), "its parameters cannot be"),
    "names of other targets": (_put({"target_names": ["y"]}, "data"), "not 2 different names"),
    "a range without end": (_put({"a": {"__kind__": "range", "items": [0, 2**62, 1]}}, "data"), "an invalid"),
    "column-major vectors": (_put(["ridge"], "column_major"), "it is no matrix"),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_what_no_fit_gives_is_refused(name, ensemble):
    change, words = IMPOSSIBLE[name]
    assert words in refusal(altered(ensemble, change))


def test_calibration_must_be_in_order(tmp_path):
    save_model(MODELS["scn"].fit(X, Y), tmp_path / "m.scne")
    altered(tmp_path / "m.scne", _set("calibration", 1e9))
    assert "ascending order" in refusal(tmp_path / "m.scne")


ENCODERS = {
    "a mean that is a text": lambda encoder: encoder["encodings"][0].update(fill="x"),
    "another kind": lambda encoder: encoder["encodings"][0].update(kind="os.system"),
    "a column twice": lambda encoder: encoder["encodings"].append(encoder["encodings"][0]),
    "a column less": lambda encoder: encoder["encodings"].pop(),
    "a level more": lambda encoder: _of_kind(encoder, "category")["levels"].append("new"),
    "a level twice": lambda encoder: _of_kind(encoder, "category")["levels"].__setitem__(0, "north"),
    "another part of a date": lambda encoder: _of_kind(encoder, "date")["parts"].__setitem__(0, "century"),
    "groups that are none": lambda encoder: encoder.update(groups=[["a", 3]]),
    "gaps treated in no way": lambda encoder: encoder.update(missing="keep"),
}


def _of_kind(encoder, kind):
    return next(record for record in encoder["encodings"] if record["kind"] == kind)


@pytest.fixture(scope="module")
def of_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    file_model(folder).save(folder / "m.scne")
    return (folder / "m.scne").read_bytes()


MEANS = {
    "no levels": lambda document, tensors: document.update(levels=[]),
    "a level twice": lambda document, tensors: document["levels"].__setitem__(0, document["levels"][1]),
    "levels in another order": lambda document, tensors: document["levels"].reverse(),
    "a level that is a number": lambda document, tensors: document["levels"].__setitem__(0, 3),
    "levels that are a text": lambda document, tensors: document.update(levels="abc"),
    "a mean less": lambda document, tensors: tensors.update({"encoder.1.means": tensors["encoder.1.means"][1:]}),
    "means of levels in a matrix": lambda document, tensors: tensors.update({"encoder.1.means": np.ones((40, 2))}),
    "means that are not finite": lambda document, tensors: tensors["encoder.1.means"].__setitem__(3, np.nan),
    "no means": lambda document, tensors: tensors.pop("encoder.1.means"),
    "means in the header too": lambda document, tensors: tensors.update({"encoder.0.means": np.ones(2)}),
    "more means than there is room for": lambda document, tensors: tensors.update(
        {"encoder.1.means": np.ones(3_000_001)}
    ),
    "a gap less": lambda document, tensors: document["missing"].pop(),
    "a gap that is a text": lambda document, tensors: document.update(missing=["a", "b"]),
    "a gap that is true": lambda document, tensors: document.update(missing=True),
    "no default": lambda document, tensors: document.update(default=[]),
    "a default of another target": lambda document, tensors: document.update(default=[1.0, 2.0, 3.0]),
    "a default that is not finite": lambda document, tensors: document.update(
        default=[{"__kind__": "float", "text": "nan"}, 1.0]
    ),
    "folds that are none": lambda document, tensors: document.update(crossed=[[1.0]]),
    "folds that are a text": lambda document, tensors: document.update(crossed="abc"),
    "names in another order": lambda document, tensors: tensors.update(
        {"encoder.2.levels": tensors["encoder.2.levels"][::-1].copy()}
    ),
    "a name twice": lambda document, tensors: tensors["encoder.2.levels"].__setitem__(
        0, tensors["encoder.2.levels"][1]
    ),
    "a name less": lambda document, tensors: tensors.update({"encoder.2.levels": tensors["encoder.2.levels"][1:]}),
    "a name that is not finite": lambda document, tensors: tensors["encoder.2.levels"].__setitem__(-1, np.inf),
    "no names": lambda document, tensors: tensors.update(
        {"encoder.2.levels": np.ones(0), "encoder.2.means": np.ones(0)}
    ),
}


@pytest.fixture(scope="module")
def of_levels(tmp_path_factory):
    folder = tmp_path_factory.mktemp("levels")
    level_model(folder).save(folder / "m.scne")
    return (folder / "m.scne").read_bytes()


@pytest.mark.parametrize("name", MEANS)
def test_means_by_level_that_no_rows_give_are_refused(name, of_levels, tmp_path):
    path = tmp_path / "m.scne"
    path.write_bytes(of_levels)
    assert opened(path)[1]["version"] == 5
    altered(path, lambda tensors, document: MEANS[name](document["encoder"]["encodings"][1], tensors))
    assert "is damaged: " in refusal(path)


def test_a_model_whose_means_no_file_can_hold_is_refused(of_levels, tmp_path):
    (tmp_path / "m.scne").write_bytes(of_levels)
    model = load_model(tmp_path / "m.scne")
    encoding = model.encoder_.encodings[1]
    many = replace(encoding, means=encoding.means * 37_501)
    with_columns(model, encoder=replace(model.encoder_, encodings=(many, *model.encoder_.encodings[1:])))
    with pytest.raises(ModelFileError, match="more than 3,000,000 means of levels in all"):
        model.save(tmp_path / "m.scne")


@pytest.mark.parametrize("name", ENCODERS)
def test_encoders_that_no_rows_give_are_refused(name, of_files, tmp_path):
    path = tmp_path / "m.scne"
    path.write_bytes(of_files)
    altered(path, lambda tensors, document: ENCODERS[name](document["encoder"]))
    assert "its encoder" in refusal(path)


def test_an_entry_that_occurs_twice_is_refused(ensemble):
    tensors, document = opened(ensemble)
    from safetensors.numpy import save

    from scne.models.file._container import _checksum, _dump

    del document["sha256"]
    document["sha256"] = _checksum(document, tensors)
    for text in (_dump({"n_outputs": 1})[:-1] + "," + _dump(document)[1:], json.dumps(document)):
        ensemble.write_bytes(save(tensors, {"scne": text}))
        assert "not written as scne writes them" in refusal(ensemble)


@pytest.fixture(scope="module")
def classes_of_files(tmp_path_factory):
    path = tmp_path_factory.mktemp("classes") / "rows.csv"
    path.write_text("x,place,label\n" + "1.5,north,a\n2.5,south,b\n0.5,north,c\n" * 20)
    model = SCNEClassifier(RVFLRegressor(5), n_estimators=2, class_weight="balanced", random_state=0)
    model.fit(open_rows(path, target="label"))
    save_model(model, path.with_suffix(".scne"))
    return path.with_suffix(".scne")


LABELS = {
    "no label": lambda tensors, document: document["data"].pop("label"),
    "a label that is no name": _put(["label"], "data", "label"),
    "targets of other classes": _put(["label=a", "label=b"], "data", "target_names"),
    "a target twice": _put(["label=a", "label=b", "label=b"], "data", "target_names"),
    "negative weights": lambda tensors, document: tensors["classifier.weights"].__imul__(-1),
    "no weight": lambda tensors, document: tensors["classifier.weights"].__imul__(0),
    "weights of more classes": lambda tensors, document: tensors.update({"classifier.weights": np.ones(4)}),
    "classes in another order": _put(["b", "a", "c"], "classifier", "classes"),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_that_no_files_give_are_refused(name, classes_of_files, tmp_path):
    path = tmp_path / "m.scne"
    path.write_bytes(classes_of_files.read_bytes())
    assert describe_model(path).target_names == ("label",)
    with pytest.raises(ModelFileError, match="is damaged"):
        load_model(altered(path, LABELS[name]))


def test_a_regressor_has_no_label(of_files, tmp_path):
    path = tmp_path / "m.scne"
    path.write_bytes(of_files)
    with pytest.raises(ModelFileError, match="'label' in its metadata"):
        load_model(altered(path, _put("x", "data", "label")))


def test_classes_cannot_claim_more_room_than_they_take(tmp_path):
    path = tmp_path / "m.scne"
    single_classifier(2, random_state=0).fit(X, np.where(X[:, 0] > 0.5, "a", "b")).save(path)
    altered(path, _put(["a" * 1_000_000, *(f"b{n}" for n in range(100))], "classifier", "classes"))
    assert "its classes are not labels" in refusal(path)


def tensor_header(**entries):
    raw = json.dumps({"__metadata__": {"scne": "{}"}, **entries}).encode()
    return struct.pack("<Q", len(raw)) + raw


def place(dtype="F64", shape=(1,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


@pytest.mark.parametrize(
    "entries",
    [
        {"a": place(shape=(2**40,))},
        {"a": place(shape=(2**32, 2**32))},
        {"a": place(shape=(2**61,), offsets=(0, 2**64))},
        {"a": place(), "b": place()},
        {"a": place(offsets=(8, 16))},
        {"a": place(), "b": place(offsets=(16, 24))},
        {"a": place(offsets=(8, 0))},
        {"a": place(shape=(-1,), offsets=(8, 0))},
        {"a": place(dtype="BF16", shape=(4,))},
        {"a": place(dtype="BOOL", shape=(8,))},
        {"a": place(shape=(1, 1, 1))},
        {"a": 3},
        {},
    ],
    ids=str,
)
def test_tensors_that_do_not_fill_the_file_are_refused(entries, tmp_path):
    path = tmp_path / "m.scne"
    path.write_bytes(tensor_header(**entries) + bytes(8))
    assert "is damaged: " in refusal(path)


def test_headers_are_bounded(tmp_path):
    path = tmp_path / "m.scne"
    for text, words in (
        (b"{}" + b" " * LONGEST_HEADER, "its header takes"),
        (b"[" + b"0," * MOST_VALUES + b"0]", "more than 500,000 values"),
        (b'"' + b"\\n" * 9_000_000 + b'"', "no plain text"),
        ('{"é":1}'.encode(), "its header is not that of"),
        (b'{"a":1,"a":2}', "its header is not that of"),
        (b'{"a":NaN}', "its header is not that of"),
        (b"[" * 100_000, "its header is not that of"),
    ):
        path.write_bytes(struct.pack("<Q", len(text)) + text)
        assert words in refusal(path)


def test_models_of_many_columns_with_long_names_are_saved_and_loaded(tmp_path):
    import pandas as pd

    names = [f"\u5317\u4eac station {place:05d} " + "of the northern district " * 2 for place in range(5_000)]
    frame = pd.DataFrame(np.random.default_rng(0).random((30, 5_000)), columns=names)
    groups = {"a": names[:2_000], "b": names[2_000:]}
    model = plain_ensemble(SCNRegressor(2, n_candidates=2), groups=groups, random_state=0).fit(frame, frame[names[0]])
    model.save(tmp_path / "m.scne")
    loaded = load_model(tmp_path / "m.scne")
    assert np.array_equal(loaded.predict(frame), model.predict(frame))
    assert list(loaded.feature_names_in_) == names


def test_what_cannot_be_loaded_is_not_saved(tmp_path):
    model = MODELS["rvfl"].fit(X, Y)
    nested = []
    for _ in range(200):
        nested = [nested]
    for data in ({"a": nested}, {"a": 2**64}, {"a": "\ud800"}, {"a": ["x" * LONGEST_HEADER]}, {"a": [0] * MOST_VALUES}):
        with_columns(model, data=data)
        with pytest.raises(ModelFileError, match="was not written"):
            model.save(tmp_path / "m.scne")
    with_weights(with_columns(model, data=None), lambda weights: weights * np.nan)
    with pytest.raises(ModelFileError, match="are not finite"):
        model.save(tmp_path / "m.scne")
    assert not (tmp_path / "m.scne").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are Unix's")
def test_pipes_and_devices_are_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe.scne")
    for path in (tmp_path / "pipe.scne", Path("/dev/zero"), Path("/dev/null")):
        assert "it is a pipe or a device, not a file" in refusal(path)
        with pytest.raises(ModelFileError):
            describe_model(path)


def test_a_file_larger_than_memory_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "m.scne"
    with open(path, "wb") as file:
        try:
            # A hole: it takes no room on the disk.
            file.truncate(1 << 43)
        except OSError:
            pytest.skip("this file system has no files of 8 TB")
    assert "more than the memory of this machine" in refusal(path)


def test_a_file_that_changes_while_it_is_read_is_refused_or_whole(tmp_path):
    path = tmp_path / "m.scne"
    MODELS["scne"].fit(X, Y).save(path)
    whole = path.read_bytes()
    stop = threading.Event()

    def meddle():
        generator = np.random.default_rng(0)
        while not stop.is_set():
            with open(path, "r+b") as file:
                file.truncate(int(generator.integers(0, len(whole))))
                time.sleep(0.0002)
                file.seek(0)
                file.write(whole + bytes(int(generator.integers(0, 2)) * 100))

    meddler = threading.Thread(target=meddle)
    meddler.start()
    try:
        for _ in range(300):
            with suppress(ModelFileError):
                assert load_model(path).n_features_in_ == 3
    finally:
        stop.set()
        meddler.join()


def test_inspect_shows_names_and_obeys_none(tmp_path):
    path = tmp_path / "m.scne"
    groups = {"a\x1b]0;owned\x07[red]": [0], "b\u202e": [1, 2]}
    plain_ensemble(SCNRegressor(2, n_candidates=5), groups=groups, random_state=0).fit(X, Y).save(path)
    done = subprocess.run([sys.executable, "-m", "scne", "inspect", str(path)], capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert b"\x1b" not in done.stdout
    assert b"\\x1b]0;owned" in done.stdout.replace(b"\n", b"")


def test_sums_in_another_order_in_memory_are_the_same_sums(ensemble):
    whole = load_model(ensemble)
    altered(ensemble, _put(["system.gram", "system.moments"], "column_major"))
    other = load_model(ensemble)
    assert other.summary() == whole.summary()
    for model in (whole, other):
        model.reweighted(solver="cholesky")
        model.partial_fit(X, Y)
    assert np.array_equal(other.system_.gram, whole.system_.gram)
    assert np.allclose(other.predict(X), whole.predict(X), rtol=0, atol=1e-12)
