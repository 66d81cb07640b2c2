"""The door for rows that come to a model after its fit: checked against the columns and targets that it knows."""

import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scne.estimators.inputs._complete_files import complete_files
from scne.estimators.inputs._dask import look_through
from scne.estimators.inputs._data import (
    CheckedRows,
    GivenRows,
    checked_rows,
    is_dask_collection,
    is_file_rows,
    is_plain,
)
from scne.estimators.inputs._known_files import check_targets, file_encoder, opened
from scne.estimators.inputs._weight_scale import scaled_files
from scne.fitting import LaterRows
from scne.passes import stripe_rows
from scne.rows import ArrayRows, SampledRows, WeightScale, is_foreign

if TYPE_CHECKING:
    from scne.estimators._regressor import FittedRegressor


def later_rows(
    model: "FittedRegressor", given: GivenRows, sample_size: int | None, seed: int, weight_scale: WeightScale | None
) -> LaterRows:
    """Check rows against a fitted model, of which nothing changes.

    Parameters
    ----------
    model : fitted network or ensemble
    sample_size : int or None
        Rows of the sample; None is all.
    seed : int
        Decides which rows those are.
    weight_scale : WeightScale or None
        How weights become numbers of rows; None is by their own ratios.
    """
    plain = is_plain(given.X)
    given = given if plain else replace(given, X=opened(model, given.X, with_targets=True))
    if not plain and is_file_rows(given.X):
        return _later_files(model, given, sample_size, seed, weight_scale)
    if not plain and is_dask_collection(given.X):
        seen = look_through(given.X, given.y, given.sample_weight, None, sample_size, seed, weight_scale)
        _check_columns(model, seen.rows.n_columns, seen.column_names)
        _check_outputs(model, seen.sample)
        return LaterRows(seen.rows, lambda: seen.sample, seen.weight_scale)
    if is_dask_collection(given.y) or is_dask_collection(given.sample_weight):
        raise TypeError(
            f"X is a {type(given.X).__name__} in the memory of this process, but y or sample_weight is a Dask "
            "collection; pass all of them as one or the other."
        )
    if plain or not is_foreign(given.X):
        columns = model.fitted_.columns
        checked = checked_rows(model, given.X, given.y, given.sample_weight, columns, weight_scale=weight_scale)
    else:
        checked = _tensor_rows(model, given, weight_scale)
    rows = checked.rows
    _check_outputs(model, rows)
    positions = _positions(rows.n_rows, sample_size, seed)
    return LaterRows(rows, lambda: rows.take(positions).in_numpy(), checked.weight_scale)


def _tensor_rows(model: "FittedRegressor", given: GivenRows, weight_scale: WeightScale | None) -> CheckedRows:
    from scne.estimators.inputs._tensors import check_tensors

    # That door gives the columns that it sees to the estimator: to a copy, since the model knows its own.
    checked = check_tensors(copy.copy(model), given, None, 0, weight_scale)
    assert isinstance(checked.rows, ArrayRows)
    _check_columns(model, checked.rows.n_columns, None)
    return CheckedRows(checked.rows, checked.flat_target, checked.weight_scale)


def _later_files(
    model: "FittedRegressor", given: GivenRows, sample_size: int | None, seed: int, weight_scale: WeightScale | None
) -> LaterRows:
    files = given.X
    for name in ("y", "sample_weight"):
        if getattr(given, name) is not None:
            raise ValueError(f"{name} was passed beside rows in files; open_rows names the target and weight columns.")
    encoder = file_encoder(model)
    check_targets(model, files)
    from scne.rows import encoded_rows

    files = scaled_files(complete_files(files), known=weight_scale)
    source = encoded_rows(files, encoder)
    rows = SampledRows(source, _positions(source.n_rows, sample_size, seed))
    return LaterRows(rows, lambda: rows.sample(stripe_rows(rows.n_rows)), files.weight_scale)


def _positions(n_rows: int, size: int | None, seed: int) -> NDArray[np.int64]:
    if size is None or size >= n_rows:
        return np.arange(n_rows)
    # Arrow comes with it, which those with few rows in memory need not wait for.
    from scne.rows import sample_positions

    positions: NDArray[np.int64] = sample_positions(n_rows, size, seed)
    return positions


def _check_columns(model: "FittedRegressor", n_columns: int, names: list[str] | None) -> None:
    if n_columns != model.n_features_in_:
        raise ValueError(
            f"X has {n_columns} features, but {type(model).__name__} is expecting {model.n_features_in_} features as "
            "input."
        )
    fitted = getattr(model, "feature_names_in_", None)
    if names is not None and fitted is not None and names != list(fitted):
        place = next(place for place, pair in enumerate(zip(names, fitted, strict=True)) if pair[0] != pair[1])
        raise ValueError(
            f"Column {place} of X is {names[place]!r}, but it was {fitted[place]!r} in the fit; the columns must be "
            "the same, in the same order."
        )


def _check_outputs(model: "FittedRegressor", rows: ArrayRows) -> None:
    assert rows.targets is not None
    n_outputs = model.fitted_.n_outputs
    if rows.targets.shape[1] != n_outputs:
        raise ValueError(
            f"y has {rows.targets.shape[1]} output(s), but this {type(model).__name__} was fitted to {n_outputs}; they "
            "must be equal."
        )
