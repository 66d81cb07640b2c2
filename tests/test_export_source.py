"""Models as C and Python source: compiled and run, they say what `predict` says."""

import json
import os
import re
import subprocess
import sys
from datetime import date, datetime, time
from functools import partial

import numpy as np
import pandas as pd
import pyarrow.csv
import pytest
from ensembles import plain_ensemble
from export_models import (
    ARRAY_MODELS,
    COLUMNS,
    DATED_MODELS,
    LARGE,
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
    size_of_terms,
)

from scne import RVFLRegressor, SCNRegressor, open_rows
from scne.models import ExportError, ModelFileError

# Some columns are in no group here, which is said where it is tested.
pytestmark = pytest.mark.filterwarnings("ignore:.* no network sees:scne.ScneWarning")

# The base interpreter, not that of the virtual environment: nothing but its own library, and no site-packages.
BARE = [os.path.realpath(sys.executable), "-I", "-S"]
MAIN = """
#include <stdio.h>
#include <string.h>
{includes}
#define WIDEST 128
int main(void)
{{
    static {real} row[WIDEST], out[WIDEST];
    char name[64];
    unsigned long n;
    while (scanf("%63s %lu", name, &n) == 2) {{
        unsigned long q = 0;
        for (unsigned long i = 0; i < n; i++) {{
            double value;
            if (scanf("%lf", &value) != 1) return 1;
            row[i] = ({real})value;
        }}
{calls}
        for (unsigned long i = 0; i < q; i++) printf("%.17g ", (double)out[i]);
        printf("\\n");
    }}
    return 0;
}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


def compiled(models, folder, real="double"):
    """A program that predicts rows with any of some models, called m0, m1 and so on; strict about warnings."""
    names = [f"m{place}" for place in range(len(models))]
    for name, model in zip(names, models, strict=True):
        model.export("c", folder / f"{name}.h", name=name, dtype="float64" if real == "double" else "float32")
    calls = [
        f'        if (!strcmp(name, "{name}") && n == {name.upper()}_INPUTS) '
        f"{{ {name}_predict(row, out); q = {name.upper()}_OUTPUTS; }}"
        for name in names
    ]
    includes = "\n".join(f'#include "{name}.h"' for name in names)
    # Included twice, as a header may be.
    (folder / "main.c").write_text(MAIN.format(real=real, includes=f"{includes}\n{includes}", calls="\n".join(calls)))
    strict = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-pedantic", "-Werror", "-std=c99"]
    command = ["cc", *strict, "-O1", "-o", str(folder / "main"), str(folder / "main.c"), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]
    return folder / "main"


def run_c(program, name, X):
    lines = [" ".join([name, str(len(row)), *(f"{value:.17g}" for value in row)]) for row in np.asarray(X)]
    done = subprocess.run([program], input="\n".join(lines), capture_output=True, text=True, check=True)
    return np.array([[float(value) for value in line.split()] for line in done.stdout.splitlines()])


@pytest.fixture(scope="module")
def zoo(tmp_path_factory):
    """All small models in one program: the compiler starts once."""
    named = {name: (array_model(name), array_rows()) for name in ARRAY_MODELS}
    named |= {f"{name}, {outputs}": (array_model(name, outputs), array_rows()) for name, outputs in SEVERAL}
    named |= {f"dated {name}": (dated_model(name), dated_rows()) for name in DATED_MODELS}
    program = compiled([model for model, _ in named.values()], tmp_path_factory.mktemp("zoo"))
    return {name: (program, f"m{place}", *pair) for place, (name, pair) in enumerate(named.items())}


SEVERAL = [
    (name, outputs)
    for name in ("rvfl", "scn ramps tanh linked clipped", "dnne", "scne judged", "scne on a line")
    for outputs in ("one column", "three")
]
ZOO = [
    *ARRAY_MODELS,
    *(f"{name}, {outputs}" for name, outputs in SEVERAL),
    *(f"dated {name}" for name in DATED_MODELS),
]


@pytest.mark.parametrize("name", ZOO)
def test_c_says_what_predict_says(zoo, name):
    program, prefix, model, X = zoo[name]
    wanted = model.predict(X)
    assert_agree(run_c(program, prefix, X).reshape(wanted.shape), wanted, model)


@pytest.mark.parametrize("name", ZOO)
def test_python_says_what_predict_says(zoo, name):
    _, _, model, X = zoo[name]
    module = {"__name__": "exported"}
    exec(model.export("python"), module)
    rows = np.asarray(X).tolist()
    assert_agree(module["predict_rows"](rows), model.predict(X), model)
    first = module["predict"](rows[0])
    assert isinstance(first, float if model.predict(X).ndim == 1 else list)
    assert module["predict_rows"]([]) == []


def test_nodes_in_the_lower_tail_say_what_predict_says(tmp_path):
    """And where an exponential overflows, as it does in no training row, a node is zero."""
    model, X = saturated_model(), array_rows()[:40]
    assert_agree_in_the_tail(run_c(compiled([model], tmp_path), "m0", X), model, X)
    module = {"__name__": "exported"}
    exec(model.export("python"), module)
    assert_agree_in_the_tail(module["predict_rows"](X.tolist()), model, X)
    assert [module["_logistic"](z) for z in (-1e4, 0.0, 1e4)] == [1.0, 0.5, 0.0]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_row_with_a_gap_has_no_prediction(zoo, bad):
    program, prefix, model, X = zoo["scne judged, three"]
    X = X[:3].copy()
    X[1, 2] = bad
    assert np.isnan(run_c(program, prefix, X)).tolist() == [[False] * 3, [True] * 3, [False] * 3]
    module = {"__name__": "exported"}
    exec(model.export("python"), module)
    with pytest.raises(ValueError, match=r"Column 'column 2' is .*, but it must be a finite number"):
        module["predict"](X[1].tolist())


def test_single_precision_in_c(tmp_path):
    models = [array_model("scne judged"), dated_model("ramps")]
    program = compiled(models, tmp_path, "float")
    for place, (model, X) in enumerate(zip(models, (array_rows()[:40], dated_rows()[5:105]), strict=True)):
        single = np.asarray(X, dtype=np.float32)
        found = run_c(program, f"m{place}", single)[:, 0]
        wanted = model.predict(pd.DataFrame(single, columns=X.columns) if hasattr(X, "columns") else single)
        assert (np.abs(found - wanted) <= 1e-5 * size_of_terms(model, wanted)).all()
        # The day of the week and the ramps are where they should be.
        assert np.abs(found - wanted).max() <= 2e-3 * wanted.std()


def test_numbers_that_a_float_cannot_hold_are_refused():
    X, y = arrays()
    model = RVFLRegressor(4, random_state=0).fit(X * 1e200, y)
    assert "double" in model.export("c")
    with pytest.raises(ExportError, match=r"holds the number .*e\+2\d\d, which a float cannot hold"):
        model.export("c", dtype="float32")
    tiny = RVFLRegressor(4, random_state=0).fit(X * 1e-60, y)
    with pytest.raises(ExportError, match="which a float cannot hold"):
        tiny.export("c", dtype="float32")


def test_a_constant_target_has_no_nodes(tmp_path):
    X, _ = arrays()
    model = RVFLRegressor(5, random_state=0).fit(X, np.full(len(X), 7.5))
    assert run_c(compiled([model], tmp_path), "m0", X[:2]).tolist() == [[7.5], [7.5]]
    module = {"__name__": "exported"}
    exec(model.export("python"), module)
    assert module["predict_rows"](X[:2].tolist()) == [7.5, 7.5]


def test_numbers_read_back_exactly():
    model = array_model("scn standard tanh")
    header = model.export("c")
    biases = re.search(r"_biases\[\d+\] = \{(.*?)\}", header, re.DOTALL)[1]
    assert [float(text) for text in biases.split(",") if text.strip()] == model.biases_.tolist()
    module = {"__name__": "exported"}
    exec(model.export("python"), module)
    nodes = module["BRANCHES"][0]["layers"][0][1]
    assert [node[0] for node in nodes] == model.biases_.tolist()


def test_weights_that_are_mostly_zero_are_written_by_place(tmp_path):
    X, y = arrays()
    sparse = SCNRegressor.tuned(max_hidden=30, tuning_epochs=5, random_state=0).fit(X, y[:, 0])
    # More weights than a byte can count.
    assert np.count_nonzero(sparse.input_weights_) > 255
    found = run_c(compiled([sparse], tmp_path), "m0", array_rows())[:, 0]
    assert_agree(found, sparse.predict(array_rows()), sparse)
    share = np.count_nonzero(sparse.input_weights_) / sparse.input_weights_.size
    assert share < 0.5
    header, dense = sparse.export("c"), array_model("scn standard tanh").export("c")
    assert "_places[" in header
    assert "_places[" not in dense
    stored = int(re.search(r"_l0_weights\[(\d+)\]", header)[1])
    assert stored == np.count_nonzero(sparse.input_weights_)
    module = {"__name__": "exported"}
    exec(sparse.export("python"), module)
    nodes = module["BRANCHES"][0]["layers"][0][1]
    assert sum(len(weights) for _, _, weights, _ in nodes) < 0.6 * sparse.input_weights_.size
    assert all(len(weights) == len(places) for _, places, weights, _ in nodes if places is not None)


@pytest.mark.parametrize("name", ["", "1st", "a-b", "a b", "_x", "é", "x;", "a" * 41, None, 3, "x\n"])
def test_names_that_c_has_no_room_for(name):
    with pytest.raises(ValueError, match=r"name is .*, but it must be a letter"):
        array_model("rvfl").export("c", name=name)


def test_names_of_columns_stay_in_their_comment():
    """Names that would end a comment, or a line, or turn the direction of text."""
    for source in (dated_model("ramps").export("c"), dated_model("ramps").export("python")):
        comment = [line for line in source.splitlines() if line.startswith((" *", "#"))]
        assert any("load" in line for line in comment)
        assert "\u202e" not in source
        assert "\\u202e" in source
        assert "fitted on 200 rows" in source
    assert dated_model("ramps").export("c").split("#ifndef")[0].count("*/") == 1


def bare(path, text="", *arguments):
    return subprocess.run([*BARE, str(path), *arguments], input=text, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("outputs", OUTPUTS)
def test_a_bare_interpreter_reads_csv(tmp_path, outputs):
    model, X = array_model("scne judged", outputs), array_rows()
    path = tmp_path / "model.py"
    model.export("python", path)
    text = "\n".join(",".join(map(repr, row)) for row in X.tolist())
    done = bare(path, text)
    assert done.returncode == 0, done.stderr
    found = np.array([[float(value) for value in line.split(",")] for line in done.stdout.splitlines()])
    assert_agree(found.reshape(model.predict(X).shape), model.predict(X), model)
    assert bare(path, "a,b,c,d\n" + text).stdout == done.stdout
    assert bare(path, "\na,b,c,d\n\n" + text).stdout == done.stdout
    assert bare(path, "").stdout == ""


def test_the_bare_interpreter_has_no_packages(tmp_path):
    (tmp_path / "look.py").write_text("import numpy")
    assert "No module named 'numpy'" in bare(tmp_path / "look.py").stderr


def test_csv_columns_are_found_by_name(tmp_path):
    model, X = dated_model("ramps"), dated_rows()
    path = tmp_path / "model.py"
    model.export("python", path)
    shuffled = X.assign(more="text")[[*reversed(COLUMNS), "more"]]
    done = bare(path, shuffled.to_csv(index=False, lineterminator="\n"))
    assert done.returncode == 0, done.stderr
    assert_agree([float(line) for line in done.stdout.splitlines()], model.predict(X), model)
    module = {"__name__": "exported"}
    exec(path.read_text(encoding="utf-8"), module)
    assert_agree(module["predict_rows"](X.to_dict("records")), model.predict(X), model)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1,2,3,4\n1,2,3\n", "Error in line 2: The row has 3 values, but there must be 4."),
        ("1,2,3,4\n1,2,x,4\n", "Error in line 2: Column 'column 2' is 'x', but it must be a number."),
        ("1,2,3,4\n1,2,,4\n", "Error in line 2: Column 'column 2' is '', but it must be a number."),
        ("a,b,c\n", "Error: the first line has no column 'column 0'."),
        ("a,b,c,d\n1,2,3\n", "Error in line 2: There are 3 fields, but 4 names in the first line."),
    ],
)
def test_bad_csv_ends_in_a_sentence(tmp_path, text, words):
    array_model("rvfl").export("python", tmp_path / "model.py")
    done = bare(tmp_path / "model.py", text)
    assert done.returncode == 1
    assert done.stderr.strip() == words


def test_a_row_needs_all_of_its_columns():
    module = {"__name__": "exported"}
    exec(dated_model("ramps").export("python"), module)
    with pytest.raises(ValueError, match="no value for column 'year'"):
        module["predict"]({"hour": 3})


def test_files_in_c_take_encoded_columns(folder, tmp_path):
    model, table = file_model(folder), file_table(60, seed=11)
    program = compiled([model], tmp_path)
    found = run_c(program, "m0", model.encoder_.transform(table))[:, 0]
    assert_agree(found, file_predictions(model, table, folder), model)
    header = model.export("c")
    for name in model.encoder_.names:
        assert repr(name) in header
    assert repr(float(model.encoder_.encodings[0].fill)) in header


LEVELS_MAIN = """
#include <stdio.h>
#include "m.h"
int main(void)
{{
    {real} row[M_INPUTS], out[M_OUTPUTS];
    char text[64];
    double x, person;
    while (scanf("%lf %lf %63[^\\n]", &x, &person, text) == 3) {{
        row[0] = ({real})x;
        m_level_1(text[1] == '?' ? NULL : text + 1, &row[1]);
        row[3] = ({real})(isnan(person) ? {fill!r} : person);
        row[4] = ({real})(isnan(person) ? 1 : 0);
        m_number_2(person, &row[5]);
        m_predict(row, out);
        printf("%.17g %.17g\\n", (double)out[0], (double)out[1]);
    }}
    return 0;
}}
"""


@pytest.mark.parametrize(
    ("real", "dtype", "digits", "first"), [("double", "float64", 1e-13, LARGE), ("float", "float32", 1e-5, SMALL)]
)
def test_c_looks_levels_up(folder, tmp_path, real, dtype, digits, first):
    model, table = level_model(folder, first), new_levels(first=first)
    if real == "float":
        # Without the two numbers that are infinite there.
        table = table.take([n for n in range(len(table)) if not 5 <= n <= 6])
    assert model.encoder_.names[3:5] == ("person", "person missing")
    fill = model.encoder_.encodings[2].fill
    header = model.export("c", tmp_path / "m.h", name="m", dtype=dtype)
    assert "'town': m_level_1(text in UTF-8 or NULL, &row[1]) writes the mean target of its level" in header
    assert "m_number_2(number or NAN, &row[5]) writes the mean target of what it names" in header
    (tmp_path / "main.c").write_text(LEVELS_MAIN.format(real=real, fill=fill))
    strict = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-pedantic", "-Werror", "-std=c99"]
    command = ["cc", *strict, "-O1", "-o", str(tmp_path / "main"), str(tmp_path / "main.c"), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]
    lines = [
        f"{row['x']!r} {'nan' if row['person'] is None else repr(row['person'])} "
        f"{'!?' if row['town'] is None else '!' + row['town']}"
        for row in table.to_pylist()
    ]
    done = subprocess.run([tmp_path / "main"], input="\n".join(lines), capture_output=True, text=True, check=True)
    found = np.array([[float(value) for value in line.split()] for line in done.stdout.splitlines()])
    wanted = file_predictions(model, table, folder)
    assert found.shape == wanted.shape
    assert (np.abs(found - wanted) <= digits * size_of_terms(model, wanted)).all()


def test_python_looks_levels_up(folder, tmp_path):
    model = level_model(folder)
    model.export("python", tmp_path / "model.py")
    module = {"__name__": "exported"}
    exec((tmp_path / "model.py").read_text(encoding="utf-8"), module)
    for table in (level_table(), new_levels()):
        rows = table.to_pylist()
        assert_agree(module["predict_rows"](rows), file_predictions(model, table, folder), model)


def test_names_that_a_float_cannot_hold_are_refused(folder):
    with pytest.raises(ExportError, match=r"Column 'person' holds numbers that name things, such as 10000000000\d\d"):
        level_model(folder).export("c", dtype="float32")


def test_levels_that_c_has_no_text_for_are_refused(tmp_path):
    texts = [f"a{n}\0" for n in range(20)] * 5
    rows = pd.DataFrame({"place": texts, "x": np.arange(100.0)})
    model = RVFLRegressor(5, random_state=0).fit(rows, np.arange(100.0))
    with pytest.raises(ExportError, match=r"in column 'place' a level 'a0\\x00' whose name holds a zero character"):
        model.export("c")


@pytest.mark.parametrize("make", [file_model, many_targets_model])
def test_files_in_python_take_rows_as_they_are(folder, make):
    model, table = make(folder), file_table(200, seed=12)
    module = {"__name__": "exported"}
    exec(model.export("python"), module)
    assert_agree(module["predict_rows"](table.to_pylist()), file_predictions(model, table, folder), model)


def test_files_in_csv_by_a_bare_interpreter(tmp_path):
    """The same text through `open_rows` and through the exported file, with its marks for missing values."""
    table = file_table().drop_columns(["local"])
    pyarrow.csv.write_csv(table, tmp_path / "all.csv")
    rows = open_rows(tmp_path / "all.csv", target="y")
    model = plain_ensemble(SCNRegressor(6, n_candidates=10), random_state=0).fit(rows)
    assert {encoding.kind for encoding in model.encoder_.encodings} == {"number", "flag", "category", "date"}
    model.export("python", tmp_path / "model.py")
    done = bare(tmp_path / "model.py", (tmp_path / "all.csv").read_text(encoding="utf-8"))
    assert done.returncode == 0, done.stderr
    assert_agree([float(line) for line in done.stdout.splitlines()], model.predict(rows), model)
    done = bare(tmp_path / "model.py", "size\n1\n")
    assert (done.returncode, done.stderr.strip()) == (1, "Error: the first line has no column 'count'.")


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("size", "much", "Column 'size' is 'much', but it must be a number"),
        ("size", float("inf"), "Column 'size' is inf, but it must be a finite number"),
        ("on", "perhaps", "Column 'on' is 'perhaps', but it must be true or false"),
        ("seen", "yesterday", "Column 'seen' is 'yesterday', but it must be a date or a time"),
        ("seen", time(3, 4), "Column 'seen' is '03:04:00', but it must be a date"),
        ("seen", 7, "Column 'seen' is 7, but it must be a date or a time"),
    ],
)
def test_values_of_another_kind_are_refused(folder, column, value, words):
    module = {"__name__": "exported"}
    exec(file_model(folder).export("python"), module)
    (row,) = file_table(1, seed=13).to_pylist()
    with pytest.raises(ValueError, match=re.escape(words)):
        module["predict"]({**row, column: value})


def test_dates_may_be_texts(folder):
    module = {"__name__": "exported"}
    exec(file_model(folder).export("python"), module)
    (row,) = file_table(1, seed=13).to_pylist()
    row |= {"seen": datetime(1969, 7, 20, 20, 17), "born": date(2000, 2, 29), "clock": time(23, 59), "on": True}
    texts = {**row, "seen": "1969-07-20T20:17:00", "born": "2000-02-29", "clock": "23:59", "on": "True"}
    assert module["predict"](texts) == module["predict"](row)


def test_gaps_where_the_fit_allowed_none(folder):
    source = file_model(folder).export("python")
    module = {"__name__": "exported"}
    exec(source.replace("REFUSE_MISSING = False", "REFUSE_MISSING = True"), module)
    (row,) = file_table(1, seed=13).to_pylist()
    with pytest.raises(ValueError, match="Column 'size' is missing, but the model was fitted without missing values"):
        module["predict"]({**row, "size": None})


def test_written_whole_or_not_at_all(tmp_path):
    model = array_model("rvfl")
    for form, suffix in (("c", "h"), ("python", "py")):
        write = partial(model.export, form)
        path = tmp_path / f"model.{suffix}"
        assert write(path) == path.read_text(encoding="utf-8") == write()
        with pytest.raises(ModelFileError, match="there is no folder"):
            write(tmp_path / "nowhere" / "model")
        with pytest.raises(ModelFileError, match="it is a folder"):
            write(tmp_path)
    before = (tmp_path / "model.h").read_bytes()
    with pytest.raises(ValueError, match="name is"):
        model.export("c", tmp_path / "model.h", name="a b")
    assert (tmp_path / "model.h").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.h", "model.py"]


def test_the_file_says_what_it_is():
    facts = json.dumps(
        [array_model("scne judged").export("c")[:400], array_model("scne judged").export("python")[:400]]
    )
    assert facts.count("SCNERegressor of scne") == 2
    assert facts.count("2 networks with") == 2
