"""Classifiers as ONNX, C and Python source: run, they say what `predict_proba` and `predict` say."""

import csv
import io
import json
import os
import subprocess
import sys
from functools import cache, partial

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from commands import run_here
from ensembles import plain_classifier, single_classifier
from export_models import COLUMNS, array_rows, arrays, dated_frame, dated_rows
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import scne
from scne import RVFLRegressor, SCNEClassifier, SCNRegressor
from scne.fitting._probabilities import LEAST_OUTPUT, MOST_OUTPUT, ProbabilityMap
from scne.models import ExportError, ModelFileError

# The base interpreter, not that of the virtual environment: nothing but its own library, and no site-packages.
BARE = [os.path.realpath(sys.executable), "-I", "-S"]
STRICT = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-pedantic", "-Werror", "-std=c99"]
# Texts that would end a string, a comment or a line, that C99 reads as another character, and that are none.
TEXTS = np.array(['a "b" \\ */ /*', "\u5317\n\u202e'", "??/??=", "", "7"])
few = {"n_candidates": 10, "random_state": 4}
MODELS = {
    "scn, two texts": (single_classifier(6, **few), TEXTS[[0, 1]]),
    "scn, three numbers": (
        plain_classifier(RVFLRegressor(6, scaling="min-max"), n_estimators=1, random_state=4),
        np.array([-7, 2**40, 3]),
    ),
    "scn, five texts": (single_classifier(20, scaling="standard", activation="tanh", **few), TEXTS),
    "scn, flags": (single_classifier(6, validation_fraction=None, **few), np.array([True, False])),
    "scn, whole floats": (single_classifier(5, **few), np.array([2.0, 1.0, 5.0], dtype=np.float32)),
    "scne, two numbers": (
        plain_classifier(SCNRegressor.tuned(max_hidden=5, tuning_epochs=1), n_estimators=2, random_state=4),
        np.array([-(2**63), 2**63 - 1]),
    ),
    "scne, three texts": (
        plain_classifier(SCNRegressor(5, **few), groups=[[0, 1], [2, 3]], trend="linear", random_state=4),
        TEXTS[:3].astype(object),
    ),
    "scne by name, two texts": (
        plain_classifier(SCNRegressor(6, scaling="ramps", **few), groups=[COLUMNS[:3], COLUMNS[1:]], random_state=4),
        np.array(["low", "high"]),
    ),
}
every = pytest.mark.parametrize("name", MODELS)
# Outputs from far below zero, where log s(f) is about -50, to where they are limited, and slopes that single precision
# takes for 1.
MAPS = {
    "probabilities already": ProbabilityMap(np.array([0.0, 1.0]), np.array([0.1, -0.1, 0.0]), 9),
    "nearly so": ProbabilityMap(np.array([1.0 + 1e-9, 1.0 - 1e-9]), np.array([1e-9, 0.0, 0.0]), 9),
    "steep": ProbabilityMap(np.array([30.0, 2.0]), np.array([-3.0, 0.0, 5.0]), 9),
}


def labelled(y, labels):
    """Classes of equally many rows, by a number of each."""
    return labels[np.digitize(y, np.quantile(y, np.arange(1, len(labels)) / len(labels)))]


@cache
def fitted(name):
    model, labels = MODELS[name]
    if "by name" in name:
        frame = dated_frame()
        return clone(model).fit(frame, labelled(np.sin(frame["Month"]) + frame[COLUMNS[2]], labels))
    X, y = arrays()
    return clone(model).fit(X, labelled(X[:, 0] + 0.2 * y[:, 1], labels))


@cache
def mapped(name):
    """A network of three classes with a map of our own, which uses all that a map can have."""
    model = clone(MODELS["scn, three numbers"][0])
    model.__dict__.update(fitted("scn, three numbers").__dict__)
    model.probability_map_ = MAPS[name]
    return model


def rows_for(name):
    """New rows, near and far; in a frame where the fit had one."""
    return dated_rows() if "by name" in name else array_rows()


@cache
def session(model, **options):
    proto = model.export("onnx", **options)
    onnx.checker.check_model(proto, full_check=True)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(proto.SerializeToString(), settings, providers=["CPUExecutionProvider"])


def run_onnx(model, X, **options):
    return session(model, **options).run(["label", "probabilities"], {"X": np.asarray(X)})


def module_of(model):
    module = {"__name__": "exported"}
    exec(model.export("python"), module)
    return module


def assert_agree(model, X, labels, found, within=1e-11):
    wanted = model.predict_proba(X)
    assert np.shape(found) == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=0, atol=within)
    # Relatively too: a small probability is a number of its own.
    np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-14)
    assert list(labels) == model.predict(X).tolist()


def test_rows_reach_where_outputs_are_limited_and_all_classes():
    model = fitted("scn, three numbers")
    outputs = model.regressor_.predict(array_rows())
    assert (outputs < LEAST_OUTPUT).any()
    assert (outputs > MOST_OUTPUT).any()
    assert ((outputs > LEAST_OUTPUT) & (outputs < -0.2)).any()
    for name in MODELS:
        assert set(fitted(name).predict(rows_for(name)).tolist()) == set(MODELS[name][1].tolist())


@every
def test_onnx_says_what_the_classifier_says(name):
    model, X = fitted(name), rows_for(name)
    labels, found = run_onnx(model, X)
    assert_agree(model, X, labels, found)
    assert found.dtype == np.float64
    assert labels.dtype == (object if "text" in name else np.int64)
    (listed,) = [entry.value for entry in model.export("onnx").metadata_props if entry.key == "classes"]
    assert json.loads(listed)["labels"] == model.classes_.tolist()


@pytest.mark.parametrize("name", MAPS)
def test_every_map_in_all_forms(name, compiled):
    model, X = mapped(name), array_rows()
    labels, found = run_onnx(model, X)
    assert_agree(model, X, labels, found, within=2e-12)
    module, lists = module_of(model), X.tolist()
    assert_agree(model, X, module["predict_rows"](lists), module["predict_proba_rows"](lists), within=2e-12)
    labels, found = compiled(f"map {name}", X)
    assert_agree(model, X, map(int, labels), found, within=2e-12)


@pytest.mark.parametrize("n_rows", [0, 1])
@pytest.mark.parametrize("name", ["scn, two texts", "scne, three texts", "scn, three numbers"])
def test_onnx_of_one_row_and_none(name, n_rows):
    model, X = fitted(name), array_rows()[:n_rows]
    labels, found = run_onnx(model, X)
    assert labels.shape == (n_rows,)
    assert found.shape == (n_rows, len(model.classes_))
    if n_rows:
        assert_agree(model, X, labels, found)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    ("name", "none"),
    [
        ("scn, two texts", ""),
        ("scn, five texts", "<missing>"),
        ("scn, three numbers", -(2**63)),
        ("scne, two numbers", 1 - 2**63),
    ],
)
def test_a_row_with_a_gap_has_no_class(compiled, name, none, bad):
    model, X = fitted(name), array_rows()[:3]
    X[1, 2] = bad
    labels, found = run_onnx(model, X)
    assert np.isnan(found).all(axis=1).tolist() == np.isnan(found).any(axis=1).tolist() == [False, True, False]
    assert labels[1] == none
    assert none not in model.classes_.tolist()
    (listed,) = [entry.value for entry in model.export("onnx").metadata_props if entry.key == "classes"]
    assert json.loads(listed)["missing"] == none
    in_c, found = compiled(name, X)
    assert np.isnan(found).all(axis=1).tolist() == np.isnan(found).any(axis=1).tolist() == [False, True, False]
    assert in_c[1] is None
    with pytest.raises(ValueError, match=r"Column 'column 2' is .*, but it must be a finite number"):
        module_of(model)["predict"](X[1].tolist())


def test_single_precision_in_and_out():
    model, X = fitted("scne, three texts"), array_rows()[:40].astype(np.float32)
    labels, found = run_onnx(model, X, dtype="float32")
    assert found.dtype == np.float32
    # Computed in double: what is lost is the last rounding alone.
    np.testing.assert_allclose(found, model.predict_proba(X), rtol=1e-7)
    assert labels.tolist() == model.predict(X).tolist()


MAIN = """
#include <stdio.h>
#include <string.h>
{includes}
#define WIDEST 16
static void print_text(const char *text)
{{
    for (; *text; text++) printf("%02x", (unsigned)(unsigned char)*text);
    printf(".");
}}
int main(void)
{{
    static {real} row[WIDEST], out[WIDEST];
    char name[64];
    unsigned long n;
    while (scanf("%63s %lu", name, &n) == 2) {{
        unsigned long k = 0;
        for (unsigned long i = 0; i < n; i++) {{
            double value;
            if (scanf("%lf", &value) != 1) return 1;
            row[i] = ({real})value;
        }}
{calls}
        for (unsigned long i = 0; i < k; i++) printf(" %.17g", (double)out[i]);
        printf("\\n");
    }}
    return 0;
}}
"""
CALL = """\
        if (!strcmp(name, "{name}") && n == {upper}_INPUTS) {{
            const int place = {name}_predict(row);
            {name}_predict_proba(row, out);
            k = {upper}_CLASSES;
            if (place < 0) printf("none");
            else {shown};
        }}"""


def program(models, folder, dtype="float64"):
    """A program that asks classifiers m0, m1 and so on about rows; strict about warnings."""
    calls, includes = [], []
    for place, model in enumerate(models):
        name, is_text = f"m{place}", model.classes_.dtype.kind in "UO"
        model.export("c", folder / f"{name}.h", name=name, dtype=dtype)
        shown = f"print_text({name}_classes[place])" if is_text else f'printf("%lld", {name}_classes[place])'
        calls.append(CALL.format(name=name, upper=name.upper(), shown=shown))
        includes.append(f'#include "{name}.h"')
    real = {"float64": "double", "float32": "float"}[dtype]
    (folder / "main.c").write_text(
        MAIN.format(real=real, includes="\n".join(includes), calls="\n".join(calls)), encoding="utf-8"
    )
    command = ["cc", *STRICT, "-O1", "-o", str(folder / "main"), str(folder / "main.c"), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]
    return folder / "main"


def ask(path, name, X, is_text):
    """Labels as the table of classes has them (None for no class), and probabilities."""
    lines = [" ".join([name, str(len(row)), *(f"{value:.17g}" for value in row)]) for row in np.asarray(X)]
    done = subprocess.run([path], input="\n".join(lines), capture_output=True, text=True, check=True)
    cells = [line.split() for line in done.stdout.splitlines()]
    labels = [
        None if first == "none" else bytes.fromhex(first.rstrip(".")).decode() if is_text else int(first)
        for first, *_ in cells
    ]
    return labels, np.array([[float(value) for value in rest] for _, *rest in cells])


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """All classifiers in one program: the compiler starts once."""
    models = {name: fitted(name) for name in MODELS} | {f"map {name}": mapped(name) for name in MAPS}
    path = program(list(models.values()), tmp_path_factory.mktemp("classes"))
    places = {name: f"m{place}" for place, name in enumerate(models)}
    return lambda name, X: ask(path, places[name], X, models[name].classes_.dtype.kind in "UO")


@every
def test_c_says_what_the_classifier_says(compiled, name):
    model, X = fitted(name), rows_for(name)
    assert_agree(model, X, *compiled(name, X))


def test_single_precision_in_c(tmp_path):
    names = ["scne, three texts", "scn, two texts"]
    path = program([fitted(name) for name in names], tmp_path, "float32")
    for place, name in enumerate(names):
        X = array_rows()[:40].astype(np.float32)
        labels, found = ask(path, f"m{place}", X, True)
        wanted = fitted(name).predict_proba(X)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-3)
        sure = np.sort(wanted, axis=1)[:, -1] - np.sort(wanted, axis=1)[:, -2] > 1e-2
        assert sure.sum() > 20
        assert np.array(labels)[sure].tolist() == fitted(name).predict(X)[sure].tolist()


@every
def test_python_says_what_the_classifier_says(name):
    model, X = fitted(name), rows_for(name)
    module, rows = module_of(model), np.asarray(X).tolist()
    assert_agree(model, X, module["predict_rows"](rows), module["predict_proba_rows"](rows))
    assert type(module["predict"](rows[0])) is type(model.predict(X).tolist()[0])
    assert module["predict_rows"]([]) == module["predict_proba_rows"]([]) == []
    if isinstance(X, pd.DataFrame):
        assert_agree(
            model,
            X,
            *zip(
                *((module["predict"](row), module["predict_proba"](row)) for row in X.to_dict("records")), strict=True
            ),
        )


@pytest.mark.parametrize("name", ["scn, five texts", "scne, two numbers", "scne by name, two texts"])
def test_a_bare_interpreter_reads_csv(tmp_path, name):
    model, X = fitted(name), rows_for(name)
    model.export("python", tmp_path / "model.py")
    if isinstance(X, pd.DataFrame):
        text = X.assign(more="text")[[*reversed(COLUMNS), "more"]].to_csv(index=False, lineterminator="\n")
    else:
        text = "\n".join(",".join(map(repr, row)) for row in X.tolist())
    done = subprocess.run(
        [*BARE, tmp_path / "model.py"], input=text.encode(), capture_output=True, check=False, env={"PYTHONUTF8": "1"}
    )
    assert (done.returncode, done.stderr) == (0, b"")
    cells = list(csv.reader(io.StringIO(done.stdout.decode())))
    labels = [first if "text" in name else int(first) for first, *_ in cells]
    assert_agree(model, X, labels, [[float(value) for value in rest] for _, *rest in cells])


def test_the_exports_say_what_they_are():
    model = fitted("scne by name, two texts")
    for source in (model.export("c"), model.export("python"), model.export("onnx").doc_string):
        assert "SCNEClassifier of scne" in source
        assert "fitted on 200 rows" in source
    header = model.export("c", name="air")
    assert "#define AIR_CLASSES 2" in header
    assert "AIR_OUTPUTS" not in header
    for source in (header, model.export("python")):
        assert "0: 'high'" in source
        assert "\u202e" not in source
    assert fitted("scn, two texts").export("c").split("#ifndef")[0].count("*/") == 1


def replaced(labels):
    """A classifier of two classes whose names are others."""
    model = clone(MODELS["scn, two texts"][0])
    model.__dict__.update(fitted("scn, two texts").__dict__)
    model.classes_ = labels
    return model


@pytest.mark.parametrize(
    ("labels", "form", "words"),
    [
        (np.array(["a", "\ud800"]), "onnx", r"a class '\\ud800', which is no valid Unicode"),
        (np.array(["a", "\ud800"]), "c", r"a class '\\ud800', which is no valid Unicode"),
        (np.array(["a", "b\0c"]), "c", r"a class 'b\\x00c' whose name holds a zero character"),
        (np.array(["a", "b" * 5000]), "c", "whose name is longer than 4,095 bytes"),
        (np.array([1, 2**63], dtype=np.uint64), "onnx", "a class 9223372036854775808, but numbers that are classes"),
        (np.array([1.0, 1e30]), "c", r"a class 1e\+30, but numbers that are classes must be whole and fit 64 bits"),
        (np.array([(1,), (2,), None], dtype=object)[:2], "python", r"a class \(1,\), a tuple, but only"),
    ],
)
def test_classes_that_a_form_cannot_hold(tmp_path, labels, form, words):
    with pytest.raises(ExportError, match=words):
        replaced(labels).export(form, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_python_holds_every_label():
    for labels in (np.array(["a", "\ud800b\0c"]), np.array([1, 2**63], dtype=np.uint64), np.array([1.0, 1e30])):
        model = replaced(labels)
        assert module_of(model)["predict_rows"](array_rows().tolist()) == model.predict(array_rows()).tolist()


def test_a_map_that_is_not_finite_is_refused():
    model = replaced(np.array(["a", "b"]))
    model.probability_map_ = ProbabilityMap(np.array([np.nan, 0.0]), np.zeros(2), 9)
    with pytest.raises(ExportError, match="map to probabilities holds numbers that are not finite"):
        model.export("python")


WRITE = {
    "save": lambda model, path: model.save(path),
    "onnx": lambda model, path: model.export("onnx", path),
    "c": lambda model, path: model.export("c", path),
    "python": lambda model, path: model.export("python", path),
}
ways_to_write = pytest.mark.parametrize("write", WRITE.values(), ids=WRITE)


class Sure(SCNEClassifier):
    """Predicts otherwise than its parent."""

    def predict_proba(self, X):
        return np.round(super().predict_proba(X))


@ways_to_write
def test_only_fitted_classifiers_of_ours_are_written(tmp_path, write):
    with pytest.raises(NotFittedError):
        write(SCNEClassifier(), tmp_path / "model")
    other = Sure()
    other.__dict__.update(fitted("scn, two texts").__dict__)
    with pytest.raises((ExportError, ModelFileError), match="Sure"):
        write(other, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@ways_to_write
@pytest.mark.parametrize("name", ["scn, five texts", "scne by name, two texts"])
def test_a_loaded_classifier_is_written_as_the_first_one(tmp_path, name, write):
    fitted(name).save(tmp_path / "model.scne")
    first, second = tmp_path / "first", tmp_path / "second"
    write(fitted(name), first)
    write(scne.load(tmp_path / "model.scne"), second)
    assert first.read_bytes() == second.read_bytes()


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    return partial(run_here, monkeypatch, capsys)


@pytest.mark.parametrize(
    ("form", "options", "write"),
    [
        ("onnx", ["--float32"], lambda model, path: model.export("onnx", path, dtype="float32")),
        ("c", ["--name", "air"], lambda model, path: model.export("c", path, name="air")),
        ("python", [], lambda model, path: model.export("python", path)),
    ],
)
def test_the_command_writes_what_the_methods_write(tmp_path, command, form, options, write):
    model = fitted("scne, three texts")
    model.save(tmp_path / "model.scne")
    status, out, err = command("export", "model.scne", "--to", form, "--out", "found", *options)
    assert (status, err) == (0, "")
    assert "found" in out
    write(model, tmp_path / "wanted")
    assert (tmp_path / "found").read_bytes() == (tmp_path / "wanted").read_bytes()


def test_a_classifier_has_no_intervals(tmp_path, command):
    words = "interval is 0.9, but the model is a SCNEClassifier, which gives probabilities and no intervals"
    fitted("scn, two texts").save(tmp_path / "model.scne")
    status, _, err = command("export", "model.scne", "--to", "onnx", "--out", "bad", "--interval", "0.9")
    assert status == 1
    assert words in " ".join(err.split())
    with pytest.raises(
        ValueError, match=r"interval is 0\.9, but a SCNEClassifier gives probabilities and no intervals"
    ):
        fitted("scn, two texts").export("onnx", tmp_path / "bad", interval=0.9)
    assert not (tmp_path / "bad").exists()
