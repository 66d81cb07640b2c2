"""Rows without a target: left out of files as if they were not there, refused in memory."""

import json
import pickle
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from commands import run_here

from scne import RVFLRegressor, SCNEClassifier, SCNERegressor, ScneWarning, SCNRegressor, open_rows
from scne.passes import listening
from scne.rows import DataError, identity_of_files
from scne.rows._kept_rows import BlockCount, KeptRows

N_ROWS = 2_400
WARNING = r"rows \(\d+\.\d\d%\) of .* have no value in the target 'y' and are left out; drop_missing_target=False"
pytestmark = pytest.mark.filterwarnings("ignore:.*are left out:scne.ScneWarning")


def make_table(n=N_ROWS):
    """Columns, weights and two targets with gaps: stretches of them, and single ones."""
    rng = np.random.default_rng(0)
    a, b, text = rng.normal(size=n), rng.normal(size=n), rng.choice(["north", "south"], n)
    y = a + b**2 + (text == "north") + 0.1 * rng.normal(size=n)
    z = a * b
    y[rng.random(n) < 0.1] = np.nan
    y[:700] = np.nan
    z[1_300:1_450] = np.nan
    # A level, a number and a weight that only rows without a target have.
    text[0], a[1] = "nowhere", 1e6
    weights = rng.choice([1.0, 2.0], n)
    weights[2] = np.nan
    columns = {"a": a, "b": b, "text": text, "w": weights, "y": y, "z": z}
    return pa.table({name: pa.array(values, from_pandas=True) for name, values in columns.items()})


def without_gaps(table, *targets):
    there = np.ones(table.num_rows, dtype=bool)
    for target in targets:
        there &= table[target].is_valid().to_numpy()
    return table.filter(pa.array(there))


def write(table, path):
    if path.suffix == ".csv":
        pa.csv.write_csv(table, path)
    elif path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=333)
    else:
        pa.feather.write_feather(table, path)
    return path


def small_model(**settings):
    base = SCNRegressor(6, n_candidates=20, validation_fraction=0.2, search_rows=800)
    return SCNERegressor(base, n_estimators=2, random_state=0, **settings)


def same(one, other):
    return np.array_equal(one.solution_.weights, other.solution_.weights) and one.n_rows_ == other.n_rows_


@pytest.fixture
def gaps(tmp_path):
    return write(make_table(), tmp_path / "gaps.parquet")


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".arrow"])
def test_a_fit_is_that_of_the_file_without_these_rows(tmp_path, ending):
    table = make_table()
    rows = open_rows(write(table, tmp_path / f"gaps{ending}"), target="y", ignore=["z"], weight="w")
    with pytest.warns(ScneWarning, match=WARNING) as caught:
        model = small_model().fit(rows)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert str(caught[0].message).startswith(f"{table['y'].null_count:,} of 2,400 rows")
    whole = write(without_gaps(table, "y"), tmp_path / f"whole{ending}")
    assert same(model, small_model().fit(open_rows(whole, target="y", ignore=["z"], weight="w")))


def test_of_several_targets_any_may_be_missing(gaps, tmp_path):
    whole = write(without_gaps(make_table(), "y", "z"), tmp_path / "whole.parquet")
    models = [RVFLRegressor(5, random_state=0).fit(open_rows(path, target=["y", "z"])) for path in (gaps, whole)]
    assert np.array_equal(*(model.output_weights_ for model in models))


def test_files_of_a_folder_and_passes_from_any_row(tmp_path):
    table = make_table()
    for part, start in enumerate(range(0, N_ROWS, 650)):
        write(table.slice(start, 650), tmp_path / f"{part}.parquet")
    rows = pickle.loads(pickle.dumps(open_rows(tmp_path, target="y").complete_rows()))
    kept = without_gaps(table, "y")
    assert rows.n_rows == rows.count_rows() == kept.num_rows
    assert rows.n_dropped == N_ROWS - kept.num_rows
    for start, stop in [(0, 10), (600, 1_300), (kept.num_rows - 1, None), (kept.num_rows, None), (977, 977)]:
        batches = list(rows.batches(["a"], 100, start, stop))
        found = [value for batch in batches for value in batch.column("a").to_pylist()]
        assert found == kept["a"].to_pylist()[start:stop]
        assert all(batch.num_rows == 100 for batch in batches[:-1])


def test_counts_find_every_row():
    rng = np.random.default_rng(0)
    there = rng.random(500) < 0.3
    there[100:220] = False
    kept = KeptRows(BlockCount(len(part), int(part.sum())) for part in np.split(there, [7, 50, 120, 200, 200, 390]))
    for number, row in enumerate(np.flatnonzero(there)):
        first, between = kept.locate(number)
        assert np.flatnonzero(there[first:])[between] + first == row


def test_an_error_names_the_row_of_the_file(tmp_path):
    table = make_table()
    a = table["a"].to_numpy().copy()
    row = int(np.flatnonzero(table["y"].is_valid().to_numpy())[900])
    a[row] = np.inf
    path = write(table.set_column(0, "a", pa.array(a)), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=rf"infinite value in row {row + 1:,} of .*a\.parquet"):
        small_model().fit(open_rows(path, target="y"))
    y = table["y"].to_numpy().copy()
    y[row] = np.inf
    path = write(table.set_column(4, "y", pa.array(y, from_pandas=True)), tmp_path / "b.parquet")
    with pytest.raises(DataError, match=rf"target column 'y' .* infinite values: the first in row {row + 1:,},"):
        small_model().fit(open_rows(path, target="y"))


def test_refused_on_request(gaps):
    rows = open_rows(gaps, target="y", drop_missing_target=False)
    with pytest.raises(DataError, match=r"missing values: the first in row 1, .*drop_missing_target=True \(--drop-mis"):
        small_model().fit(rows)


def test_no_row_left(tmp_path):
    table = make_table(50)
    path = write(table.set_column(4, "y", pa.nulls(50, pa.float64())), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"No row of .*a\.parquet has a target in 'y'"):
        small_model().fit(open_rows(path, target="y"))


def test_rows_without_gaps_are_the_rows_themselves(tmp_path):
    rows = open_rows(write(without_gaps(make_table(), "y"), tmp_path / "a.parquet"), target="y")
    assert rows.complete_rows() is rows
    assert rows.n_dropped == 0


def test_rows_are_left_out_once_and_only_where_they_may_be(gaps):
    complete = open_rows(gaps, target="y").complete_rows()
    assert complete.n_dropped > 700
    assert complete.complete_rows() is complete
    for rows in (open_rows(gaps, target="y", drop_missing_target=False), open_rows(gaps, target=None)):
        assert rows.complete_rows() is rows


def test_predictions_are_made_for_all_rows_and_scores_for_those_with_a_target(gaps, tmp_path):
    table = make_table()
    rows = open_rows(gaps, target="y", ignore=["w", "z"])
    model = small_model().fit(rows)
    predicted = model.predict(rows)
    assert len(predicted) == N_ROWS
    there = table["y"].is_valid().to_numpy()
    truth = table["y"].to_numpy()[there]
    r2 = 1 - np.sum((truth - predicted[there]) ** 2) / np.sum((truth - truth.mean()) ** 2)
    assert model.score(rows) == pytest.approx(r2, rel=1e-12)
    whole = open_rows(write(without_gaps(table, "y"), tmp_path / "whole.parquet"), target="y")
    importances = [model.permutation_importances(r, n_repeats=1, random_state=0).columns.mean for r in (rows, whole)]
    assert np.array_equal(*importances)


def test_later_rows_too(gaps, tmp_path):
    rows = open_rows(gaps, target="y", weight="w")
    whole = open_rows(write(without_gaps(make_table(), "y"), tmp_path / "whole.parquet"), target="y", weight="w")
    learned, grown = [], []
    for one in (rows, whole):
        learned.append(RVFLRegressor(5, random_state=0).fit(whole).partial_fit(one))
        grown.append(SCNRegressor(4, random_state=0).fit(whole).add_nodes(2, one))
    assert np.array_equal(*(model.output_weights_ for model in learned))
    assert np.array_equal(*(model.output_weights_ for model in grown))


def test_a_checkpoint_knows_and_resumes(gaps, tmp_path):
    rows = open_rows(gaps, target="y")
    refused = open_rows(gaps, target="y", drop_missing_target=False)
    assert identity_of_files(rows)["missing targets"] != identity_of_files(refused)["missing targets"]

    def stop(step):
        if step.stage == "summing rows":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), listening(stop):
        small_model().fit(rows, checkpoint=tmp_path / "p")
    assert (tmp_path / "p").exists()
    assert same(small_model().fit(rows, checkpoint=tmp_path / "p"), small_model().fit(rows))


@pytest.mark.slow
def test_on_a_cluster(gaps):
    distributed = pytest.importorskip("distributed")
    rows = open_rows(gaps, target="y")
    with distributed.Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as client:
        model = small_model().fit(rows, client=client)
    alone = small_model().fit(rows)
    assert model.n_rows_ == alone.n_rows_
    np.testing.assert_allclose(model.predict(rows), alone.predict(rows), rtol=1e-9)


FAST = ("--networks", "2", "--nodes", "4", "--tuning", "0")


@pytest.fixture
def heard():
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        yield


@pytest.mark.usefixtures("heard", "gaps")
def test_the_command_tells_how_many(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    line = "871 of 2,400 rows (36.29%) of gaps.parquet have no value in the target 'y' and are left out;"
    status, _, said = run_here(monkeypatch, capsys, "fit", "gaps.parquet", "--target", "y", *FAST)
    assert status == 0, said
    assert said.startswith(line)
    assert said.count(line) == 1
    assert "Warning" not in said
    status, printed, said = run_here(monkeypatch, capsys, "evaluate", "model.scne", "gaps.parquet", "--json")
    assert status == 0, said
    assert json.loads(printed)["n_rows"] == 2_400 - 871
    assert said.startswith(line)
    for command in (
        ("fit", "gaps.parquet", "--target", "y", *FAST),
        ("evaluate", "model.scne", "gaps.parquet"),
        ("report", "model.scne", "gaps.parquet"),
    ):
        status, _, said = run_here(monkeypatch, capsys, *command, "--no-drop-missing-target")
        assert status == 1
        assert "missing values: the first in row 1" in said


@pytest.mark.slow
@pytest.mark.usefixtures("gaps")
def test_a_report_leaves_them_out_too(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    RVFLRegressor(5, random_state=0).fit(open_rows("gaps.parquet", target="y")).save("model.scne")
    status, printed, said = run_here(monkeypatch, capsys, "report", "model.scne", "gaps.parquet", "--json")
    assert status == 0, said
    assert json.loads(printed)["n_rows"] == 2_400 - 871


@pytest.mark.parametrize("shape", [(20,), (20, 2)])
def test_rows_in_memory_are_refused_and_the_way_out_works(shape):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)), rng.normal(size=shape)
    y[3] = np.nan
    with pytest.raises(ValueError, match=r"y contains NaN .*leave those rows out: mask = np\.isfinite\(y\)"):
        RVFLRegressor(3, random_state=0).fit(X, y)
    mask = np.isfinite(y) if len(shape) == 1 else np.isfinite(y).all(axis=1)
    assert RVFLRegressor(3, random_state=0).fit(X[mask], y[mask]).n_rows_ == 19


def test_labels_in_memory_are_refused_and_the_way_out_is_told():
    with pytest.raises(ValueError, match=r"every row needs a label: .*mask = pandas\.notna\(y\)"):
        SCNEClassifier().fit(np.zeros((4, 2)), np.array(["a", "b", None, "a"], dtype=object))
