"""The door for rows whose predictions are explained, and for the background that they are explained against."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from scne.estimators.inputs._data import check_prediction_inputs, is_dask_collection, is_file_rows
from scne.estimators.inputs._known_files import file_encoder, opened
from scne.explain import Players, column_players, source_players
from scne.fitting import FittedNetworks
from scne.passes import stripe_rows
from scne.rows import is_frame, sample_positions, to_numpy

if TYPE_CHECKING:
    from scne.estimators._class_predictions import ClassPredictions
    from scne.estimators._regressor import FittedRegressor


def explained_inputs(model: "FittedRegressor | ClassPredictions", X: Any, argument: str) -> NDArray[np.float64]:
    """Rows in memory or in files as the numbers (n, d) that networks see."""
    if is_dask_collection(X):
        raise TypeError(
            f"{argument} is a Dask collection, but rows are explained in the memory of this process; pass a part of "
            "them, such as X.partitions[0].compute()."
        )
    X = opened(model, X)
    if is_file_rows(X):
        encoder = file_encoder(model)
        files, inputs = X.read_as(encoder), [encoding.column for encoding in encoder.encodings]
        batches = files.batches(inputs, rows=stripe_rows(files.count_rows()))
        return np.concatenate([encoder.transform(batch) for batch in batches])
    return np.asarray(to_numpy(check_prediction_inputs(model, X, model.fitted_.columns)), dtype=np.float64)


def background_rows(inputs: NDArray[np.float64], most: int | None, seed: int) -> NDArray[np.float64]:
    """At most `most` of the rows, drawn by the seed."""
    if most is None or len(inputs) <= most:
        return inputs
    return inputs[sample_positions(len(inputs), most, seed)]


def players_of(model: FittedNetworks, by: str | Mapping[str, object]) -> Players:
    """Who shares predictions."""
    if isinstance(by, Mapping):
        return source_players(model, by)
    if by not in ("columns", "sources"):
        raise ValueError(f"by is {by!r}, but it must be 'columns', 'sources', or a mapping of names to columns.")
    return column_players(model) if by == "columns" else source_players(model)


def column_data(X: Any, n_terms: int) -> NDArray[Any] | None:
    """The values of the columns as the user gave them, if there is one for each term."""
    if not (is_frame(X) or isinstance(X, np.ndarray)):
        return None
    values = np.asarray(X)
    return values if values.ndim == 2 and values.shape[1] == n_terms else None
