"""Fits on files: the same model as in memory, through kills and mistakes, by the command and in Python."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from commands import SCNE
from ensembles import plain_ensemble

import scne
from scne import SCNRegressor
from scne.cli import main
from scne.passes import listening
from scne.rows import EncoderLearner, open_rows

N_ROWS = 9_000


def make_table(n=N_ROWS, seed=0):
    rng = np.random.default_rng(seed)
    gas = rng.lognormal(size=(n, 3))
    place = rng.choice(["north", "south", "east"], n)
    temperature = 10 + 5 * rng.standard_normal(n)
    target = gas[:, 0] + 0.3 * np.sin(temperature) + (place == "north") + 0.1 * rng.standard_normal(n)
    temperature[rng.random(n) < 0.05] = np.nan
    return pa.table(
        {
            "number": np.arange(n),
            "gas_a": gas[:, 0],
            "gas_b": gas[:, 1],
            "gas_c": gas[:, 2],
            "air_temperature": pa.array(temperature, from_pandas=True),
            "air_place": place,
            "y": target,
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("data")
    table = make_table()
    (place / "parts").mkdir()
    for part in range(3):
        piece = table.slice(part * 3_000, 3_000)
        pa.parquet.write_table(piece, place / "parts" / f"part{part}.parquet", row_group_size=700)
    pa.csv.write_csv(table, place / "all.csv")
    (place / "groups.toml").write_text('[groups]\ngas = ["gas_*"]\nair = ["air_*"]\n')
    return place


def small_model(**settings):
    base = SCNRegressor(8, n_candidates=20, validation_fraction=0.2, search_rows=2_000, **settings)
    return plain_ensemble(base, random_state=3)


def encoded(path):
    """The rows of files as arrays, through the encoder alone."""
    rows = open_rows(path, target="y", ignore=["number"])
    learner = EncoderLearner(rows)
    batches = list(rows.batches())
    for batch in batches:
        learner.update(batch)
    encoder = learner.finish()
    inputs = np.concatenate([encoder.transform(batch) for batch in batches])
    targets = np.concatenate([np.asarray(batch.column("y")) for batch in batches])
    return inputs, targets, encoder


def test_files_and_memory_give_the_same_model(folder):
    rows = open_rows(folder / "parts", target="y", ignore=["number"])
    from_files = small_model().fit(rows)
    inputs, targets, encoder = encoded(folder / "parts")
    groups = {name: columns.tolist() for name, columns in encoder.groups.items()}
    in_memory = small_model().set_params(groups=groups).fit(inputs, targets)
    difference = from_files.predict(rows) - in_memory.predict(inputs)
    assert np.abs(difference).max() <= 1e-9 * targets.std()
    assert from_files.n_hidden_ == in_memory.n_hidden_
    assert from_files.decorrelation_ == in_memory.decorrelation_


def test_a_single_network_fits_files_too(folder):
    rows = open_rows(folder / "parts", target="y", ignore=["number"])
    model = SCNRegressor(10, n_candidates=20, random_state=0).fit(rows)
    truth = make_table()["y"].to_numpy()
    assert np.mean((model.predict(rows) - truth) ** 2) < 0.4 * truth.var()


@pytest.mark.parametrize("row_group_size", [50, 9_000])
def test_the_model_does_not_depend_on_how_rows_are_laid_out(folder, row_group_size, tmp_path):
    pa.parquet.write_table(make_table(), tmp_path / "one.parquet", row_group_size=row_group_size)
    one = small_model().fit(open_rows(tmp_path / "one.parquet", target="y", ignore=["number"]))
    three = small_model().fit(open_rows(folder / "parts", target="y", ignore=["number"]))
    assert np.array_equal(one.solution_.weights, three.solution_.weights)


def test_the_search_sees_only_its_sample(folder):
    """Networks searched on a sample are not those searched on all rows, and both are solved on all rows."""
    rows = open_rows(folder / "parts", target="y", ignore=["number"])
    sampled, whole = small_model().fit(rows), small_model().set_params(estimator__search_rows=None).fit(rows)
    assert not np.array_equal(sampled.input_weights_[0], whole.input_weights_[0])
    assert sampled.system_.n_rows == whole.system_.n_rows == N_ROWS


def test_a_budget_that_cannot_hold_the_system_is_refused_before_reading(folder):
    rows = open_rows(folder / "parts", target="y", ignore=["number"], memory="100MB")
    model = plain_ensemble(SCNRegressor(5_000), random_state=0)
    with pytest.raises(ValueError, match=r"memory is '100MB'.*10,000 nodes"):
        model.fit(rows)
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"y": [1.0]}, "y was passed"),
        ({"sample_weight": [1.0]}, "sample_weight was passed"),
        ({"X_val": [[1.0]], "y_val": [1.0]}, "X_val was passed"),
    ],
)
def test_what_files_bring_themselves_is_refused_beside_them(folder, arguments, words):
    rows = open_rows(folder / "parts", target="y", ignore=["number"])
    with pytest.raises(ValueError, match=words):
        small_model().fit(rows, **arguments)


# --- the command


def run(*arguments, cwd, check=True):
    finished = subprocess.run([*SCNE, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, timeout=120)
    assert not check or finished.returncode == 0, finished.stderr
    assert "Traceback" not in finished.stderr
    return finished


FIT = ("--target", "y", "--ignore", "number", "--nodes", 8, "--search-rows", 2_000, "--tuning", 1)


@pytest.fixture(scope="module")
def model_file(folder):
    run("fit", "parts", *FIT, "--groups", "groups.toml", "--out", "m.scne", cwd=folder)
    return folder / "m.scne"


def test_fit_says_which_groups_it_guessed(folder, tmp_path):
    finished = run("fit", folder / "parts", *FIT, cwd=tmp_path)
    assert "guessed" in finished.stdout
    assert "gas" in finished.stdout
    assert (tmp_path / "model.scne").exists()


def test_predict_keeps_the_order_and_the_keys(folder, model_file, tmp_path):
    run(
        "predict", model_file, folder / "parts", "--key", "number", "--key", "air_place", "--out", "p.csv", cwd=tmp_path
    )
    written = pa.csv.read_csv(tmp_path / "p.csv")
    assert written.column_names == ["number", "air_place", "y_predicted"]
    assert written["number"].to_pylist() == list(range(N_ROWS))
    rows = open_rows(folder / "parts", target=None, groups={"gas": ["gas_*"], "air": ["air_*"]})
    assert np.allclose(written["y_predicted"].to_numpy(), scne.load(model_file).predict(rows), rtol=1e-12)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".csv"])
def test_predictions_in_every_format(folder, model_file, suffix, tmp_path):
    run("predict", model_file, folder / "all.csv", "--out", f"p{suffix}", cwd=tmp_path)
    written = open_rows(tmp_path / f"p{suffix}", target=None)
    values = np.concatenate([np.asarray(batch.column("y_predicted")) for batch in written.batches()])
    assert values.shape == (N_ROWS,)
    assert np.isfinite(values).all()
    assert [file.name for file in tmp_path.iterdir()] == [f"p{suffix}"]


def test_evaluate_agrees_with_scikit_learn(folder, model_file, tmp_path):
    result = json.loads(run("evaluate", model_file, folder / "parts", "--json", cwd=tmp_path).stdout)
    rows = open_rows(folder / "parts", target="y", groups={"gas": ["gas_*"], "air": ["air_*"]})
    truth = make_table()["y"].to_numpy()
    error = scne.load(model_file).predict(rows) - truth
    assert result["n_rows"] == N_ROWS
    assert result["rmse"]["y"] == pytest.approx(np.sqrt(np.mean(error**2)), rel=1e-9)
    assert result["mae"]["y"] == pytest.approx(np.mean(np.abs(error)), rel=1e-9)
    assert result["r2"]["y"] == pytest.approx(1 - np.mean(error**2) / truth.var(), rel=1e-9)


def test_inspect_shows_the_networks(model_file, tmp_path):
    text = run("inspect", model_file, cwd=tmp_path).stdout
    assert all(word in text for word in ("gas", "air", "lambda", "ridge"))
    assert json.loads(run("inspect", model_file, "--json", cwd=tmp_path).stdout)["target_names"] == ["y"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit", "parts", "--target", "z"], ["'z'", "parts"]),
        (["fit", "nowhere", "--target", "y"], ["nowhere"]),
        (["fit", "parts", "--target", "y", "--groups", "missing.toml"], ["missing.toml"]),
        (["fit", "parts", "--target", "y", "--memory", "much"], ["much"]),
        (["fit", "parts", "--target", "y", "--out", "no/m.scne"], ["no"]),
        (["fit", "parts", "--target", "y", "--validation", "1.5"], ["validation_fraction", "1.5"]),
        (["predict", "groups.toml", "parts", "--out", "p.csv"], ["groups.toml"]),
        (["predict", "m.scne", "parts", "--out", "p.xls"], ["p.xls"]),
        (["predict", "m.scne", "groups.toml", "--out", "p.csv"], ["groups.toml"]),
        (["evaluate", "m.scne", "short.parquet"], ["short.parquet", "gas_a"]),
    ],
)
def test_mistakes_end_in_a_sentence_and_leave_nothing(folder, model_file, monkeypatch, capsys, arguments, words):
    pa.parquet.write_table(make_table(20).drop_columns(["gas_a"]), folder / "short.parquet")
    before = sorted(folder.rglob("*"))
    # In this process: that of a command takes two seconds to start.
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.argv", ["scne", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr().err
    assert ended.value.code not in (0, None)
    assert all(word in said for word in words), said
    assert "Traceback" not in said
    assert sorted(folder.rglob("*")) == before


def test_a_truncated_file_is_named(folder, model_file, tmp_path):
    whole = (folder / "parts" / "part0.parquet").read_bytes()
    (tmp_path / "broken.parquet").write_bytes(whole[: len(whole) // 2])
    finished = run("fit", tmp_path / "broken.parquet", "--target", "y", cwd=tmp_path, check=False)
    assert finished.returncode == 1
    assert "broken.parquet" in finished.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["broken.parquet"]


@pytest.mark.slow
def test_a_killed_fit_goes_on_and_ends_with_the_same_bytes(folder, tmp_path):
    """SIGKILL at several moments; what is started again must end with the very file of an undisturbed fit."""
    command = [*SCNE, "fit", str(folder / "parts"), *map(str, FIT[:-4]), "--nodes", "40", "--seed", "5"]
    began = time.monotonic()
    subprocess.run([*command, "--out", "calm.scne"], cwd=tmp_path, check=True, capture_output=True)
    needed = time.monotonic() - began
    environment = {**os.environ, "SCNE_CHECKPOINT_SECONDS": "0"}
    kills = 0
    for wait in needed * np.linspace(0.3, 1.2, 7):
        process = subprocess.Popen(
            [*command, "--out", "killed.scne", "--checkpoint", "progress"],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(wait)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.wait()
        if (tmp_path / "killed.scne").exists():
            break
    # The last kill may have come after the model was written and before what was kept was cleared away.
    if not (tmp_path / "killed.scne").exists() or (tmp_path / "progress").exists():
        subprocess.run([*command, "--out", "killed.scne", "--checkpoint", "progress"], cwd=tmp_path, check=True)
    assert kills >= 2
    assert (tmp_path / "killed.scne").read_bytes() == (tmp_path / "calm.scne").read_bytes()
    assert not (tmp_path / "progress").exists()


def test_a_checkpoint_needs_a_fixed_seed(folder, tmp_path):
    rows = open_rows(folder / "parts", target="y", ignore=["number"])
    with pytest.raises(ValueError, match="random_state"):
        small_model().set_params(random_state=None).fit(rows, checkpoint=tmp_path / "other")


def test_a_file_that_changes_between_passes_is_named(tmp_path):
    path = tmp_path / "growing.parquet"
    pa.parquet.write_table(make_table(), path)
    model = small_model()

    def change(step):
        if step.stage == "learning columns" and step.done == step.total:
            pa.parquet.write_table(make_table(N_ROWS + 1), path)

    with listening(change), pytest.raises(ValueError, match=r"growing\.parquet"):
        model.fit(open_rows(path, target="y", ignore=["number"]))
    assert not hasattr(model, "encoder_")


def test_different_schemas_in_a_folder_are_named(tmp_path):
    pa.parquet.write_table(make_table(50), tmp_path / "a.parquet")
    odd = make_table(50).drop_columns(["gas_b"]).append_column("gas_b", pa.array(["text"] * 50))
    pa.parquet.write_table(odd, tmp_path / "b.parquet")
    finished = run("fit", ".", "--target", "y", cwd=tmp_path, check=False)
    assert finished.returncode == 1
    assert all(word in finished.stderr for word in ("b.parquet", "gas_b"))


def test_a_target_with_gaps_is_named(tmp_path):
    table = make_table(50)
    gaps = pa.array([None if i == 7 else 1.0 * i for i in range(50)])
    pa.parquet.write_table(table.drop_columns(["y"]).append_column("y", gaps), tmp_path / "gaps.parquet")
    finished = run("fit", "gaps.parquet", "--target", "y", "--no-drop-missing-target", cwd=tmp_path, check=False)
    assert finished.returncode == 1
    assert all(word in finished.stderr for word in ("gaps.parquet", "'y'", "row 8"))
    assert not (tmp_path / "model.scne").exists()


def test_a_full_disk_leaves_no_half_written_predictions(folder, model_file, tmp_path):
    """The process may write files of 20 kB and no more, as on a disk that is full."""
    program = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)); from scne.cli import main; main()"
    )
    command = [sys.executable, "-c", program, "predict", str(model_file), str(folder / "parts"), "--out", "p.csv"]
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert finished.returncode == 1
    assert "p.csv" in finished.stderr
    assert "Traceback" not in finished.stderr
    assert list(tmp_path.iterdir()) == []


def test_verbose_says_how_long_the_passes_took(folder, tmp_path):
    lines = run("fit", folder / "parts", *FIT, "--verbose", cwd=tmp_path).stderr.splitlines()
    for number in (1, 2):
        assert sum(line.startswith(f"pass {number} of 2") and "rows/s" in line for line in lines) == 1
