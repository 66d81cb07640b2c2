"""The door for rows of which every network of an ensemble says its own."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from scne.estimators.inputs._data import check_prediction_inputs, is_dask_collection, is_file_rows
from scne.estimators.inputs._known_files import file_encoder, opened
from scne.fitting import check_threads
from scne.passes import ThreadEngine, stripe_rows

if TYPE_CHECKING:
    from scne.estimators._regressor import FittedRegressor
    from scne.rows import FileRows


def member_outputs_of(model: "FittedRegressor", X: Any) -> Any:
    """Every network's own outputs (M, n, q) for rows in memory or in files."""
    if is_dask_collection(X):
        raise TypeError(
            "X is a Dask collection, but predict_members takes rows in memory or in files; pass a part of it, such as "
            "X.partitions[0].compute()."
        )
    X = opened(model, X)
    if is_file_rows(X):
        return _of_files(model, X)
    inputs = check_prediction_inputs(model, X, model.fitted_.columns)
    with ThreadEngine(check_threads(model.n_jobs)) as engine:
        return model.fitted_.member_outputs(inputs, engine)


def _of_files(model: "FittedRegressor", files: "FileRows") -> NDArray[np.float64]:
    """Targets, which some rows may lack, are not read."""
    encoder = file_encoder(model)
    files, inputs = files.read_as(encoder), [encoding.column for encoding in encoder.encodings]
    with ThreadEngine(check_threads(model.n_jobs)) as engine:
        batches = files.batches(inputs, rows=stripe_rows(files.count_rows()))
        outputs = [model.fitted_.member_outputs(encoder.transform(batch), engine) for batch in batches]
    return np.concatenate(outputs, axis=1)
