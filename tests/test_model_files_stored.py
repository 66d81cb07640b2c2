"""Files of every format version that was ever written are read for ever (see stored_models/make_stored_models.py)."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from scne import open_rows
from scne.estimators import describe_model, load_model
from scne.models import FORMAT_VERSION

CLASSIFIERS = ("scne_classes", "scn_classes")
STORED = sorted((Path(__file__).parent / "stored_models").glob("v*.scne"))
stored = pytest.mark.parametrize("path", STORED, ids=[path.stem for path in STORED])


def test_every_version_has_a_file_of_every_class():
    kinds = {
        f"v{version}_{name}" for version in range(1, FORMAT_VERSION + 1) for name in ("scne", "dnne", "scn", "rvfl")
    }
    # There were no classifiers before.
    kinds |= {f"v{version}_{name}" for version in range(3, FORMAT_VERSION + 1) for name in CLASSIFIERS}
    assert {path.stem for path in STORED} == kinds


@stored
def test_stored_models_predict_what_they_predicted(path):
    expected = json.loads(path.with_suffix(".json").read_text())
    model = load_model(path)
    inputs = np.array(expected["inputs"])
    names = getattr(model, "feature_names_in_", None)
    rows = inputs if names is None else pd.DataFrame(inputs, columns=names)
    if "probabilities" in expected:
        assert model.predict(rows).tolist() == expected["predictions"]
        np.testing.assert_allclose(model.predict_proba(rows), expected["probabilities"], rtol=1e-9, atol=1e-12)
    else:
        # Other processors add in another order.
        np.testing.assert_allclose(model.predict(rows), expected["predictions"], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("version", range(3, FORMAT_VERSION + 1))
def test_stored_models_of_files_predict_what_they_predicted(version):
    path = Path(__file__).parent / "stored_models" / f"files_v{version}.scne"
    model = load_model(path)
    rows = open_rows(path.with_suffix(".parquet"), target=None, like=model.encoder_)
    expected = json.loads(path.with_suffix(".json").read_text())
    np.testing.assert_allclose(model.predict(rows), expected, rtol=1e-10, atol=1e-12)
    # Rows that were opened without the model are read as it needs them.
    assert model.predict(open_rows(path.with_suffix(".parquet"), target="y")).tolist() == model.predict(rows).tolist()


@stored
def test_stored_models_can_be_described(path):
    summary = describe_model(path)
    assert summary.n_bytes == path.stat().st_size < 30_000
    assert summary.n_features == 4


def test_a_stored_system_can_be_solved_again():
    model = load_model(Path(__file__).parent / "stored_models" / "v1_dnne.scne")
    assert model.reweighted(solver="cholesky").solution_.error_history[-1] > 0


def test_stored_classifiers_have_their_classes_and_settings():
    ensemble, network = (
        load_model(Path(__file__).parent / "stored_models" / f"v3_{name}.scne") for name in CLASSIFIERS
    )
    assert ensemble.classes_.tolist() == ["Nässe", "dry"]
    assert ensemble.class_weight == {"dry": 1.0, "Nässe": 2.0}
    assert ensemble.probability_map_.n_rows == 30
    assert network.classes_.tolist() == [-7, 11, 40]
    assert (network.classes_.dtype, network.device, network.precision) == (np.int64, "cpu", "auto")


def test_the_names_and_groups_of_the_first_version_are_there():
    model = load_model(Path(__file__).parent / "stored_models" / "v1_scne.scne")
    assert model.groups == {"weather": ["TEMP", "PRES"], "gases": slice("SO2", "Ölstand")}
    assert {name: columns.tolist() for name, columns in model.groups_.items()} == {"weather": [0, 1], "gases": [2, 3]}
    assert model.choice_.criterion == "held-out rows"
