"""The door for rows on which a fitted model's columns are shuffled."""

from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils import check_random_state

from scne.estimators.inputs._complete_files import complete_files
from scne.estimators.inputs._data import checked_rows, is_dask_collection, is_file_rows
from scne.estimators.inputs._known_files import check_targets, file_encoder, opened
from scne.estimators.inputs._types import RandomState
from scne.fitting import check_integer
from scne.passes import stripe_rows
from scne.rows import Array, ArrayRows, SampledRows

if TYPE_CHECKING:
    from scne.estimators._regressor import FittedRegressor
    from scne.rows import FileRows


def shuffles(n_repeats: int, max_rows: int | None, random_state: RandomState) -> np.random.RandomState:
    """Check how often and on how many rows columns are shuffled; the generator that does it."""
    check_integer("n_repeats", n_repeats, 1)
    if max_rows is not None:
        check_integer("max_rows", max_rows, 1)
    generator: np.random.RandomState = check_random_state(random_state)
    return generator


def rows_to_shuffle(
    model: "FittedRegressor",
    X: Array,
    y: Array | None,
    sample_weight: Array | None,
    max_rows: int | None,
    generator: np.random.RandomState,
) -> ArrayRows:
    """At most `max_rows` rows with their targets, encoded, for a fitted model."""
    seed = int(generator.randint(np.iinfo(np.int32).max))
    refuse_collections(X, y, sample_weight)
    X = opened(model, X, with_targets=True)
    if is_file_rows(X):
        rows = _file_rows(model, X, y, sample_weight, max_rows, seed)
    else:
        rows = checked_rows(model, X, y, sample_weight, model.fitted_.columns).rows
        if max_rows is not None and rows.n_rows > max_rows:
            from scne.rows import sample_positions

            rows = rows.take(sample_positions(rows.n_rows, max_rows, seed))
    assert rows.targets is not None
    if rows.targets.shape[1] != model.n_outputs_:
        raise ValueError(f"y has {rows.targets.shape[1]} outputs, but the model was fitted to {model.n_outputs_}.")
    return rows


def refuse_collections(X: Array, y: Array | None, sample_weight: Array | None) -> None:
    """Refuse rows that are not in the memory of this process, nor in files."""
    if any(is_dask_collection(values) for values in (X, y, sample_weight)):
        raise TypeError(
            "X or y is a Dask collection, but rows are shuffled in the memory of this process; pass a sample of them, "
            "such as X.partitions[0].compute() with the same rows of y."
        )


def _file_rows(
    model: "FittedRegressor",
    files: "FileRows",
    y: Array | None,
    sample_weight: Array | None,
    max_rows: int | None,
    seed: int,
) -> ArrayRows:
    from scne.rows import encoded_rows, sample_positions

    if y is not None or sample_weight is not None:
        raise ValueError("y or sample_weight was passed beside rows in files; open_rows names both columns.")
    encoder = file_encoder(model)
    check_targets(model, files)
    source = encoded_rows(complete_files(files), encoder)
    positions = sample_positions(source.n_rows, max_rows or source.n_rows, seed)
    return SampledRows(source, positions).sample(stripe_rows(source.n_rows))
