"""The summary of a model says what the model is, from the file as from the estimator."""

import json
from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest
from altered import with_columns
from ensembles import plain_ensemble
from sklearn.exceptions import NotFittedError

from scne import DNNERegressor, RVFLRegressor, SCNRegressor
from scne.estimators import GroupSummary, describe_model, save_model
from scne.models import ModelFileError

X = np.random.default_rng(0).uniform(size=(200, 3))
Y = np.column_stack([np.sin(3 * X[:, 0]), X[:, 1] * X[:, 2]])
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
MODELS = {
    "scne": plain_ensemble(
        SCNRegressor(6, n_candidates=20, validation_fraction=0.2), groups={"one": ["a"], "two": ["b", "c"]}
    ),
    "dnne": DNNERegressor(RVFLRegressor(5), n_estimators=2, solver="jacobi", decorrelation=0.2, ridge=0.1),
    "scn": SCNRegressor(6, n_candidates=20, ridge=0.5),
    "rvfl": RVFLRegressor(5),
}


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param].set_params(random_state=0).fit(FRAME, Y)


def test_a_file_is_described_as_its_model_is(model, tmp_path):
    path = tmp_path / "m.scne"
    save_model(model, path)
    from_file = describe_model(path)
    assert from_file.n_bytes == path.stat().st_size
    described = describe_model(model)
    assert 0 < described.n_bytes < from_file.n_bytes
    assert replace(described, n_bytes=0, has_system=False) == replace(from_file, n_bytes=0)
    assert describe_model(str(path)) == from_file


def test_a_summary_is_plain_json(model):
    assert json.loads(json.dumps(asdict(describe_model(model))))["estimator"] == type(model).__name__


def test_what_an_ensemble_says():
    model = MODELS["scne"].set_params(random_state=0).fit(FRAME, Y)
    with_columns(model, data={"target": ["u", "v"]})
    summary = describe_model(model)
    assert [(group.name, group.columns, group.n_columns) for group in summary.groups] == [
        ("one", ("a",), 1),
        ("two", ("b", "c"), 2),
    ]
    assert [group.n_nodes for group in summary.groups] == model.n_hidden_
    for group, member in zip(summary.groups, model.members_, strict=True):
        assert group.validation_error == member.search.validation_curve.min()
        assert group.training_error == member.search.training_curve[group.n_nodes - 1]
        assert group.stop_reason == member.search.stop_reason.value
    first, second = model.n_hidden_
    assert summary.n_nodes == first + second
    assert summary.n_parameters == first * (1 + 1 + 2) + second * (2 + 1 + 2)
    assert (summary.decorrelation, summary.ridge) == (model.decorrelation_, tuple(model.ridge_))
    assert (summary.solver, summary.status, summary.n_iter) == ("cholesky", "Solved directly.", 0)
    assert summary.training_error == model.loss_curve_[-1]
    assert (summary.feature_names, summary.target_names) == (("a", "b", "c"), ("u", "v"))
    assert (summary.n_features, summary.n_outputs, summary.has_system, summary.encoder) == (3, 2, True, None)


def test_what_a_single_network_says():
    summary = describe_model(RVFLRegressor(5, ridge=0.5, random_state=0).fit(X, Y))
    assert summary.groups == (GroupSummary("network", (0, 1, 2), 5, True, None, None, None),)
    assert (summary.decorrelation, summary.ridge, summary.solver, summary.status) == (None, (0.5,), None, None)
    assert (summary.training_error, summary.feature_names, summary.target_names) == (None, None, None)
    assert summary.n_parameters == 5 * (3 + 1 + 2) + 3 * 2


def test_what_cannot_be_described_is_refused(tmp_path):
    with pytest.raises(NotFittedError):
        describe_model(RVFLRegressor())
    with pytest.raises(ModelFileError, match="there is no such file"):
        describe_model(tmp_path / "m.scne")

    class Mine(RVFLRegressor):
        pass

    with pytest.raises(ModelFileError, match="This model cannot be described: it is a Mine"):
        describe_model(Mine(3).fit(X, Y))
