"""On few rows networks are built twice: without the held-out rows, which choose and calibrate, and then on all rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import scne.fitting._building as building
from scne import SCNERegressor, SCNRegressor
from scne.fitting._fit import FEWEST_TO_BUILD_ONCE

FEW = 200


def rows(n=FEW, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n)


def quick(**settings):
    """The default's way with fewer nodes."""
    return SCNERegressor(SCNRegressor.tuned(max_hidden=5, **settings), n_estimators=2, n_jobs=1, random_state=0)


@pytest.fixture
def tuned_on(monkeypatch):
    """How many rows each network was tuned on, as they come."""
    counts, tune = [], building.tune_nodes

    def watched(rows, *args):
        counts.append(rows.n_training)
        return tune(rows, *args)

    monkeypatch.setattr(building, "tune_nodes", watched)
    return counts


def test_first_without_the_held_out_rows_then_on_all(tuned_on):
    quick().fit(*rows())
    assert tuned_on == [FEW - 30] * 2 + [FEW] * 2


def test_nodes_are_searched_once(monkeypatch):
    stages, build = [], building.build_network
    monkeypatch.setattr(building, "build_network", lambda *args: stages.append(args[6]) or build(*args))
    model = quick().fit(*rows())
    assert stages == ["building network 1", "building network 2"]
    # A node keeps the columns of its search, whichever rows it is tuned on.
    once = quick(tuning_epochs=9).fit(*rows())
    for again, first in zip(model.fitted_.layers, once.fitted_.layers, strict=True):
        np.testing.assert_array_equal(again.weights != 0, first.weights != 0)
        assert not np.allclose(again.weights, first.weights)


def test_many_rows_are_enough_for_once(tuned_on):
    n = FEWEST_TO_BUILD_ONCE
    model = quick().fit(*rows(n))
    assert tuned_on == [n * 85 // 100] * 2
    assert model.held_out_ is not None
    quick().fit(*rows(n - 1))
    assert tuned_on[2:] == [(n - 1) - round(0.15 * (n - 1))] * 2 + [n - 1] * 2


@pytest.mark.parametrize(
    ("settings", "given"),
    [
        ({"tuning_epochs": 5}, {}),
        ({"validation_fraction": None}, {}),
        ({}, {"X_val": rows(50, 1)[0], "y_val": rows(50, 1)[1]}),
    ],
    ids=["a quick look", "nothing held out", "validation rows of the user"],
)
def test_once_where_nothing_is_missed_or_time_counts(tuned_on, settings, given):
    quick(**settings).fit(*rows(), **given)
    assert len(tuned_on) == 2


def test_once_for_networks_on_columns_of_their_own(tuned_on):
    model = quick().set_params(networks="per group", groups=[[0], [1, 2]]).fit(*rows())
    assert len(tuned_on) == 2
    # What a network is worth is told by rows that it has not seen.
    assert model.group_importances_.rows == "held-out rows"


def test_choices_and_intervals_come_from_the_held_out_rows_and_weights_from_all():
    X, y = rows()
    model = quick().fit(X, y)
    solved = model.fitted_.solved
    assert solved.choice is not None
    assert (model.decorrelation_, model.ridge_[0]) == (solved.choice.decorrelation, solved.choice.ridge[0])
    # No row is left that these networks have not seen.
    assert model.held_out_ is None
    assert len(model.calibration_) == 30
    assert model.fitted_.held_out_errors.n_rows == 30
    assert model.system_.n_rows == FEW
    again = model.reweighted(decorrelation=model.decorrelation_, ridge=model.ridge_)
    assert_allclose(again.predict(X), model.predict(X), rtol=1e-9)


def test_files_frames_and_arrays_agree(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    import scne

    X, y = rows()
    table = pa.table({**{f"x{place}": X[:, place] for place in range(3)}, "y": y})
    pq.write_table(table, tmp_path / "rows.parquet")
    from_file = quick().fit(scne.open_rows(tmp_path / "rows.parquet", target="y"))
    from_frame = quick().fit(table.drop_columns("y"), y)
    assert np.array_equal(from_file.predict(table.drop_columns("y")), from_frame.predict(table.drop_columns("y")))
    assert_allclose(from_frame.predict(table.drop_columns("y")), quick().fit(X, y).predict(X), rtol=1e-6)
