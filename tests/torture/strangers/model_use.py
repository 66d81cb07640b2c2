"""Everything that can be done with a loaded model; each use works, or raises a ValueError or OSError."""

import contextlib
import io
import random
from pathlib import Path

import numpy as np
from sklearn.base import clone

from scne import load, open_rows
from scne.cli._app import inspect as inspect_command
from scne.estimators import describe_model
from scne.ncl import decorrelation_bounds

from .corpus import file_path, folder
from .harness import Escape

_ROWS = 4


def _inputs(model) -> np.ndarray:
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 2, (_ROWS, model.n_features_in_))
    # One that no training row was like.
    rows[-1] = 1e9
    return rows


def _targets(model, n_rows: int) -> np.ndarray:
    n_outputs = model.n_outputs_
    targets = np.linspace(-1, 1, n_rows * n_outputs).reshape(n_rows, n_outputs)
    return targets[:, 0] if model.fitted_.columns.flat_target else targets


def _predict(rng, model, path):
    predictions = model.predict(_inputs(model))
    if len(predictions) != _ROWS:
        raise Escape(f"{len(predictions)} predictions of {_ROWS} rows")


def _interval(rng, model, path):
    model.predict(_inputs(model), interval=rng.choice((0.1, 0.5, 0.9)))


def _members(rng, model, path):
    model.predict_members(_inputs(model))


def _probabilities(rng, model, path):
    probabilities = model.predict_proba(_inputs(model))
    if np.isfinite(probabilities).all() and not np.allclose(probabilities.sum(axis=1), 1):
        raise Escape("probabilities do not sum to one")
    model.decision_function(_inputs(model))


def _summary(rng, model, path):
    if not isinstance(model.summary(), str):
        raise Escape("the summary is no text")


def _described(rng, model, path):
    describe_model(path)


def _inspected(rng, model, path):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        inspect_command(path, json_output=rng.random() < 0.5)
    out.getvalue().encode()


def _shown(rng, model, path):
    repr(model)
    clone(model)
    model.get_params(deep=True)


def _importances(rng, model, path):
    shares = model.feature_importances_
    if len(shares) != model.n_features_in_:
        raise Escape("importances of other columns")


def _python(rng, model, path):
    source = model.export("python")
    compile(source, "exported.py", "exec")


def _c(rng, model, path):
    model.export("c", dtype=rng.choice(("float64", "float32")))


def _onnx(rng, model, path):
    model.export("onnx").SerializeToString()


def _more_rows(rng, model, path):
    if hasattr(model, "partial_fit"):
        rows = _inputs(model)[:-1]
        model.partial_fit(rows, _targets(model, len(rows)), forgetting=rng.choice((1.0, 0.5)))


def _reweighted(rng, model, path):
    solver = rng.choice(("cholesky", "naive", "jacobi", "gauss-seidel", "cg", "pinv", "auto"))
    model.reweighted(solver=solver, max_iter=5).predict(_inputs(model))


def _groups(rng, model, path):
    _ = model.group_importances_, model.admissible_nodes_
    decorrelation_bounds(model.system_, model.ridge_)


def _saved_again(rng, model, path):
    again = folder() / "again.scne"
    model.save(again, with_system=rng.random() < 0.5 and hasattr(getattr(model, "regressor_", model), "system_"))
    # What was read and written once more must be readable.
    try:
        loaded = load(again)
    except ValueError as error:
        raise Escape(f"it was loaded and saved, but cannot be loaded again: {error}") from error
    given = _inputs(model)
    try:
        said = model.predict(given)
    except ValueError:
        return
    if not np.array_equal(loaded.predict(given), said, equal_nan=said.dtype.kind == "f"):
        raise Escape("it says something else once it was saved again")


def _files(rng, model, path):
    if hasattr(model, "encoder_"):
        model.predict(open_rows(file_path(), target=None, like=model.encoder_))


_COMMON = (_predict, _summary, _described, _inspected, _shown, _importances, _saved_again)
# Source with a line for each of very many columns takes long to compile: that is no news.
_MANY_COLUMNS = 20_000


def use(rng: random.Random, model, path: Path) -> None:
    """Predict, and do a few other things, some of which change the model."""
    uses = list(_COMMON)
    regressor = getattr(model, "regressor_", None)
    if regressor is None:
        uses += [_interval, _more_rows, _files]
        uses += [_members, _reweighted, _groups] if hasattr(model, "members_") else []
    else:
        uses += [_probabilities]
    if model.n_features_in_ < _MANY_COLUMNS:
        uses += [_python, _c, *[_onnx] * (rng.random() < 0.1)]
    for one in (_predict, *rng.sample(uses, 2)):
        with contextlib.suppress(ValueError, OSError):
            one(rng, model, path)
