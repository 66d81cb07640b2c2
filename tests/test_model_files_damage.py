"""Whatever a file holds, loading it gives the model that was saved or a sentence that says why not."""

import json
import re
import struct

import numpy as np
import pytest
from ensembles import plain_ensemble
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load, save, save_file

from scne import DNNERegressor, RVFLRegressor, SCNERegressor, SCNRegressor
from scne.estimators import load_model, save_model
from scne.models import FORMAT_VERSION, ModelFileError
from scne.models.file._container import _checksum, _dump
from scne.models.file._header import KEY

X = np.random.default_rng(0).uniform(size=(60, 3))
Y = np.column_stack([X.sum(axis=1), X[:, 0] * X[:, 1]])
MODELS = {
    "rvfl": RVFLRegressor(2, random_state=0),
    "scn": SCNRegressor(2, n_candidates=5, validation_fraction=0.2, random_state=0),
    "scne": plain_ensemble(SCNRegressor(2, n_candidates=5), groups={"a": [0, 1], "b": slice(2, 3)}, random_state=0),
    "dnne": DNNERegressor(RVFLRegressor(2), n_estimators=2, decorrelation=0.1, ridge=0.1, random_state=0),
    "tuned": SCNERegressor(
        SCNRegressor.tuned(max_hidden=2),
        n_estimators=2,
        groups={"a": [0, 2], "b": [1]},
        networks="across",
        trend="linear",
        random_state=0,
    ),
}


@pytest.fixture(scope="module", params=MODELS)
def saved(request, tmp_path_factory):
    """Bytes of a small model's file, its predictions, and a path to write altered bytes to."""
    model = MODELS[request.param].fit(X, Y)
    path = tmp_path_factory.mktemp("damage") / "m.scne"
    save_model(model, path, **({"with_system": True} if request.param == "scne" else {}))
    return path.read_bytes(), model.predict(X), path


@pytest.fixture
def ensemble(tmp_path):
    path = tmp_path / "m.scne"
    save_model(MODELS["scne"].fit(X, Y), path)
    return path


def assert_refused_or_whole(data, predictions, path):
    path.write_bytes(data)
    try:
        loaded = load_model(path)
    except ModelFileError:
        return False
    assert np.array_equal(loaded.predict(X), predictions)
    return True


def opened(path):
    """The tensors and the JSON document of a file."""
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    return load(data), json.loads(json.loads(data[8 : 8 + length])["__metadata__"][KEY])


def signed(path, tensors, document):
    """Write altered content with a checksum that fits it, as somebody who means it could."""
    document.pop("sha256", None)
    document["sha256"] = _checksum(document, {name: np.asarray(tensor) for name, tensor in tensors.items()})
    path.write_bytes(save(tensors, {KEY: _dump(document)}))


def refusal(path):
    with pytest.raises(ModelFileError) as caught:
        load_model(path)
    assert str(caught.value).startswith(str(path))
    return str(caught.value).removeprefix(str(path)).strip()


def test_a_file_cut_off_anywhere_is_refused(saved):
    data, predictions, path = saved
    for length in range(0, len(data), max(1, len(data) // 400)):
        assert not assert_refused_or_whole(data[:length], predictions, path)


def test_a_flipped_bit_anywhere_is_seen(saved):
    """Bits of the header's blanks mean nothing; every other one does."""
    data, predictions, path = saved
    rng = np.random.default_rng(1)
    unnoticed = 0
    for position in range(0, len(data), max(1, len(data) // 800)):
        altered = bytearray(data)
        altered[position] ^= 1 << rng.integers(8)
        unnoticed += assert_refused_or_whole(bytes(altered), predictions, path)
    assert unnoticed < 3


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(cuts=st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=12), st.integers(0, 20)), min_size=1, max_size=4))
def test_bytes_replaced_inserted_and_removed_are_seen(saved, cuts):
    data, predictions, path = saved
    for share, inserted, removed in cuts:
        position = int(share * len(data))
        data = data[:position] + inserted + data[position + removed :]
    assert_refused_or_whole(data, predictions, path)


@settings(max_examples=100)
@given(data=st.binary(max_size=200), claimed=st.integers(0, 2**64 - 1) | st.integers(0, 200))
def test_any_bytes_are_refused(tmp_path_factory, data, claimed):
    path = tmp_path_factory.getbasetemp() / "any.scne"
    for content in (data, struct.pack("<Q", claimed) + data):
        path.write_bytes(content)
        refusal(path)


WRONG_VALUES = [None, "x", -1, 10**30, 2.5, True, [], {}, {"__kind__": "tuple"}, {"__kind__": "slice", "items": 3}]


def every_place(node, path=()):
    """Paths to every value inside nested lists and dicts."""
    if path:
        yield path
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, item in inner:
        yield from every_place(item, (*path, key))


def test_metadata_altered_on_purpose_never_fail_in_another_way(saved):
    """With the right checksum: the file may then hold another model, but loading still ends with one, or a sentence."""
    data, _, path = saved
    path.write_bytes(data)
    tensors, document = opened(path)
    outcomes = {"loaded": 0, "refused": 0}
    for *outer, last in every_place(document):
        for value in [*WRONG_VALUES, "removed"]:
            changed = json.loads(json.dumps(document))
            holder = changed
            for key in outer:
                holder = holder[key]
            if value == "removed":
                del holder[last]
            else:
                holder[last] = value
            signed(path, tensors, changed)
            try:
                load_model(path)
                outcomes["loaded"] += 1
            except ModelFileError:
                outcomes["refused"] += 1
    assert min(outcomes.values()) > 0


def test_tensors_altered_on_purpose_are_refused(saved):
    data, _, path = saved
    path.write_bytes(data)
    tensors, document = opened(path)
    for name, tensor in tensors.items():
        integers = tensor.dtype.kind == "i"
        # Scores of what was not tried are infinite.
        whole = np.nan_to_num(tensor, posinf=0.0)
        others = [
            None,
            tensor.astype(np.float64) if integers else whole.astype(np.int64),
            tensor.astype(np.float32),
            # A longer history of errors, or other curves of one search alone, would be a model too.
            tensor[:0] if name.endswith("history") else np.concatenate([tensor, tensor[:1]]),
            tensor[..., None],
            tensor.reshape(-1)[0],
        ]
        if integers:
            others += [tensor + 3, tensor - 3]
        for other in others:
            changed = {key: value for key, value in tensors.items() if key != name}
            if other is not None:
                changed[name] = np.ascontiguousarray(other) if other.ndim else np.array(other)
            signed(path, changed, dict(document))
            assert "is damaged" in refusal(path)


def test_a_tensor_too_many_is_refused(ensemble):
    tensors, document = opened(ensemble)
    signed(ensemble, {**tensors, "extra": np.zeros(1)}, document)
    assert "tensor 'extra' does not belong in it" in refusal(ensemble)


def test_a_missing_file_is_refused(tmp_path):
    assert refusal(tmp_path / "none.scne") == "cannot be read: there is no such file."
    assert refusal(tmp_path) == "cannot be read: it is a folder, not a model file."


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04" + bytes(100), b"a,b,c\n1,2,3\n" * 50, bytes(1000)])
def test_another_kind_of_file_is_refused(content, tmp_path):
    path = tmp_path / "m.scne"
    path.write_bytes(content)
    assert "is not a model file" in refusal(path)


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}])
def test_a_safetensors_file_of_another_program_is_refused(metadata, tmp_path):
    path = tmp_path / "m.safetensors"
    save_file({"weight": np.ones((2, 2))}, path, metadata)
    assert refusal(path) == "is a safetensors file of another program, not a model that scne saved."


@pytest.mark.parametrize(
    "text", ["", "1", "[]", "{}", "{", "[" * 100_000, '{"format": "other"}', '{"format": "scne model"}', "\ud7ff"]
)
def test_metadata_of_another_kind_are_refused(text, tmp_path):
    path = tmp_path / "m.scne"
    save_file({"weight": np.ones((2, 2))}, path, {KEY: text})
    refusal(path)


def test_metadata_nested_without_end_are_refused(ensemble):
    tensors, document = opened(ensemble)
    nested = []
    for _ in range(98):
        nested = [nested]
    document["data"] = {"deep": nested}
    signed(ensemble, tensors, document)
    assert load_model(ensemble).data_ == {"deep": nested}
    signed(ensemble, tensors, {**document, "data": {"deep": [[[nested]]]}})
    assert "nested too deeply" in refusal(ensemble)
    text = json.dumps(document).replace("[" * 50, "[" * 50_000).replace("]" * 50, "]" * 50_000)
    save_file(tensors, ensemble, {KEY: text})
    assert "is damaged" in refusal(ensemble)


def test_a_newer_format_asks_for_an_upgrade(ensemble):
    tensors, document = opened(ensemble)
    # A newer format may compute its checksum otherwise: it must be known as newer without.
    document |= {"version": FORMAT_VERSION + 1, "scne": "7.1", "sha256": "other"}
    save_file(tensors, ensemble, {KEY: json.dumps(document)})
    assert refusal(ensemble) == (
        f"was written by scne 7.1 with format {FORMAT_VERSION + 1}; this scne reads up to {FORMAT_VERSION}: upgrade "
        "scne to read it."
    )


def test_a_newer_parameter_asks_for_an_upgrade(ensemble):
    tensors, document = opened(ensemble)
    document["scne"] = "0.9"
    document["estimator"]["parameters"]["sparkle"] = True
    signed(ensemble, tensors, document)
    assert re.search(r"written by scne 0\.9, whose SCNERegressor has a parameter 'sparkle'.*upgrade", refusal(ensemble))


def test_a_parameter_younger_than_the_file_has_its_default(ensemble):
    tensors, document = opened(ensemble)
    del document["estimator"]["parameters"]["max_iter"]
    signed(ensemble, tensors, document)
    assert load_model(ensemble).max_iter == SCNERegressor().max_iter


@pytest.mark.parametrize("name", ["os.system", "LinearRegression", "SCNRegressor2", "__import__"])
def test_only_known_classes_are_made(name, ensemble):
    tensors, document = opened(ensemble)
    document["estimator"]["class"] = name
    signed(ensemble, tensors, document)
    assert refusal(ensemble).startswith(f"holds a {name!r}, and this scne can read only SCNERegressor, ")
    document["estimator"]["class"] = "SCNERegressor"
    document["estimator"]["base"] = dict(document["estimator"])
    signed(ensemble, tensors, document)
    assert "holds a 'SCNERegressor'" in refusal(ensemble)
