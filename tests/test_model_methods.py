"""What every fitted model can be written as, by its own methods and by the command."""

import json
import re
import subprocess
import sys
from functools import partial

import numpy as np
import onnx
import pytest
from commands import SCNE, run_here
from export_models import array_model, array_rows
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import scne
from scne import DNNERegressor, RVFLRegressor, SCNEClassifier, SCNERegressor, SCNRegressor
from scne.models import ExportError, ModelFileError

MODELS = ["rvfl", "scn that watches", "dnne", "scne judged"]
WRITE = {
    "save": lambda model, path: model.save(path),
    "onnx": lambda model, path: model.export("onnx", path),
    "c": lambda model, path: model.export("c", path),
    "python": lambda model, path: model.export("python", path),
}
ways_to_write = pytest.mark.parametrize("write", WRITE.values(), ids=WRITE)


@pytest.mark.parametrize("name", MODELS)
def test_save_and_load_give_the_same_model(tmp_path, name):
    model, X = array_model(name), array_rows()
    model.save(tmp_path / "model.scne")
    again = scne.load(tmp_path / "model.scne")
    assert np.array_equal(again.predict(X), model.predict(X))
    scne.save(model, tmp_path / "other.scne")
    assert (tmp_path / "other.scne").read_bytes() == (tmp_path / "model.scne").read_bytes()


def test_save_with_the_system(tmp_path):
    model = array_model("dnne")
    model.save(tmp_path / "model.scne", with_system=True)
    again = scne.load(tmp_path / "model.scne").reweighted(solver="naive")
    assert np.array_equal(again.predict(array_rows()), model.reweighted(solver="naive").predict(array_rows()))
    model.save(tmp_path / "model.scne")
    with pytest.raises(ModelFileError, match="no Gram matrix to save"):
        scne.load(tmp_path / "model.scne").save(tmp_path / "no.scne", with_system=True)


@ways_to_write
@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_is_written_as_the_first_one(tmp_path, name, write):
    model = array_model(name)
    model.save(tmp_path / "model.scne")
    first, second = tmp_path / "first", tmp_path / "second"
    write(model, first)
    write(scne.load(tmp_path / "model.scne"), second)
    assert first.read_bytes() == second.read_bytes()


@ways_to_write
@pytest.mark.parametrize("cls", [SCNERegressor, DNNERegressor, SCNRegressor, RVFLRegressor])
def test_a_model_must_be_fitted_first(tmp_path, cls, write):
    with pytest.raises(NotFittedError):
        write(cls(), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


class Doubled(RVFLRegressor):
    """Predicts otherwise than its parent."""

    def predict(self, X, interval=None):
        return 2 * super().predict(X)


@ways_to_write
def test_a_model_that_may_predict_otherwise_is_refused(tmp_path, write):
    model = Doubled(5, random_state=0).fit(array_rows()[:40], np.arange(40.0))
    with pytest.raises((ExportError, ModelFileError), match="Doubled"):
        write(model, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_fit_does_not_load_what_exports_need():
    """Neither Arrow's readers nor onnx: half a second for those who never leave the process."""
    script = (
        "import sys, numpy as np; from scne import RVFLRegressor; X = np.arange(9.0)[:, None]; "
        "model = RVFLRegressor(3).fit(X, X[:, 0]); print([m for m in sys.modules if m in ('onnx', 'scne.models')]); "
        "model.export('c'); print('scne.models' in sys.modules, 'onnx' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "True False"]


def test_clones_and_classes_share_the_methods():
    assert clone(array_model("rvfl")).export.__func__ is SCNERegressor.export is SCNEClassifier.export


@pytest.mark.parametrize(
    ("form", "options", "words"),
    [
        ("onnx", {"name": "air"}, "export('onnx') got 'name', but it takes dtype, interval."),
        ("c", {"interval": 0.9}, "export('c') got 'interval', but it takes dtype, name."),
        ("python", {"dtype": "float32"}, "export('python') got 'dtype', but it takes no options."),
        ("python", {"with_system": True}, "export('python') got 'with_system', but it takes no options."),
    ],
)
def test_options_that_a_form_does_not_take_are_refused(tmp_path, form, options, words):
    with pytest.raises(TypeError, match=re.escape(words)):
        array_model("scne judged").export(form, tmp_path / "model", **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", ["fortran", "ONNX", "", None])
def test_unknown_forms_are_refused(tmp_path, form):
    words = f"form is {form!r}, but it must be one of 'onnx', 'c', 'python'."
    for model in (array_model("rvfl"), SCNEClassifier()):
        with pytest.raises(ValueError, match=re.escape(words)):
            model.export(form, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stored")
    array_model("scne judged").save(folder / "model.scne")
    array_model("rvfl").save(folder / "rvfl.scne")
    return folder


@pytest.fixture
def command(stored, monkeypatch, capsys):
    monkeypatch.chdir(stored)
    return partial(run_here, monkeypatch, capsys)


@pytest.mark.parametrize(
    ("form", "options", "write"),
    [
        ("onnx", ["--interval", "0.8", "--float32"], lambda model: model.export("onnx", interval=0.8, dtype="float32")),
        ("onnx", [], lambda model: model.export("onnx")),
        ("c", ["--name", "air"], lambda model: model.export("c", name="air")),
        ("c", ["--float32"], lambda model: model.export("c", dtype="float32")),
        ("python", [], lambda model: model.export("python")),
    ],
)
def test_the_command_writes_what_the_methods_write(stored, command, form, options, write):
    status, out, err = command("export", "model.scne", "--to", form, "--out", f"model.{form}", *options)
    assert (status, err) == (0, "")
    path = stored / f"model.{form}"
    assert (onnx.load(path) if form == "onnx" else path.read_text(encoding="utf-8")) == write(
        array_model("scne judged")
    )
    assert f"model.{form}" in out


def test_the_command_as_a_process(stored):
    arguments = ["export", "model.scne", "--to", "python", "-o", "air.py", "--json"]
    done = subprocess.run([*SCNE, *arguments], cwd=stored, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    n_bytes = (stored / "air.py").stat().st_size
    assert json.loads(done.stdout) == {"model": "model.scne", "form": "python", "file": "air.py", "bytes": n_bytes}


def test_without_onnx_the_command_says_what_to_install(stored, command, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    status, _, err = command("export", "model.scne", "--to", "onnx", "--out", "none.onnx")
    assert status == 1
    assert "pip install onnx onnxruntime" in err
    assert not (stored / "none.onnx").exists()


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["nowhere.scne", "--to", "c"], 1, "nowhere.scne cannot be read: there is no such file."),
        (["model.scne", "--to", "fortran"], 2, "fortran"),
        (["model.scne", "--to", "c", "--name", "a b"], 1, "name is 'a b', but it must be a letter"),
        (["model.scne", "--to", "onnx", "--name", "air"], 1, "--name is 'air', but it is for --to c only"),
        (["model.scne", "--to", "c", "--interval", "0.9"], 1, "--interval is 0.9, but it is for --to onnx only"),
        (["model.scne", "--to", "python", "--float32"], 1, "--float32 was given, but Python has double precision"),
        (["rvfl.scne", "--to", "onnx", "--interval", "0.9"], 1, "cannot give prediction intervals"),
    ],
)
def test_mistakes_end_in_a_sentence(stored, command, arguments, status, words):
    found, _, err = command("export", *arguments, "--out", "bad")
    assert found == status
    assert words in err
    assert not (stored / "bad").exists()
