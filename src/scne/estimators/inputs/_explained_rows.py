"""The door for rows whose predictions are explained, and for the background that they are explained against."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scne.estimators.inputs._data import check_prediction_inputs, is_dask_collection, is_file_rows
from scne.estimators.inputs._known_files import file_encoder, opened
from scne.estimators.inputs._lazy import predict_lazily
from scne.explain import Contributions, Explainer, Players, column_players, contributions, source_players
from scne.fitting import FittedNetworks, check_threads
from scne.passes import ThreadEngine, stripe_rows
from scne.rows import is_frame, sample_positions, to_numpy

if TYPE_CHECKING:
    from scne.estimators._class_predictions import ClassPredictions
    from scne.estimators._regressor import FittedRegressor
    from scne.rows import FileRows


# Rows of files whose terms are held at a time.
_ROWS_TOGETHER = 4_096


class Background(NamedTuple):
    """Rows of files to compare with, None for those that are explained, how many are drawn, and the seed."""

    rows: Any
    most: int | None
    seed: int


class TermSettings(NamedTuple):
    """What is asked for, as in `contributions`."""

    by: str | Mapping[str, object]
    interactions: bool
    tolerance: float


def single_row(X: Any) -> bool:
    """Whether there is one row only."""
    if is_file_rows(X):
        return bool(X.count_rows() == 1)
    return (len(X) if is_frame(X) or not hasattr(X, "shape") else X.shape[0]) == 1


def explained(
    model: "FittedRegressor | ClassPredictions", X: Any, background: NDArray[np.float64], terms: TermSettings
) -> Contributions:
    """Contributions of rows in memory, or of rows in files, of which memory holds the terms alone."""
    players = players_of(model.fitted_, terms.by)
    if is_file_rows(X):
        files = X.read_as(file_encoder(model))
        parts = [found for _, found in _explained_batches(model, files, background, players, terms)]
        return replace(parts[0], values=np.concatenate([found.values for found in parts]))
    inputs = explained_inputs(model, X, "X")
    with ThreadEngine(check_threads(model.n_jobs)) as engine:
        return _found(model, inputs, background, players, engine, terms)


def explained_lazily(
    model: "FittedRegressor | ClassPredictions", X: Any, background: NDArray[np.float64], terms: TermSettings
) -> Contributions:
    """Contributions of a Dask collection, whose values are a Dask array cut like it; not computed yet."""
    players = players_of(model.fitted_, terms.by)
    with ThreadEngine(check_threads(model.n_jobs)) as engine:
        # Of the background itself: names, the mean, and the shape of what is said of one row.
        shape = _found(model, background[:1], background, players, engine, terms)
    say = partial(_values_of, background=background, terms=terms)
    values = predict_lazily(model, X, said_by=say, widths=shape.values.shape[1:])
    return replace(shape, values=values)


def _values_of(model: Any, piece: Any, background: NDArray[np.float64], terms: TermSettings) -> NDArray[np.float64]:
    """The terms of the rows of one part of a collection."""
    return explained(model, piece, background, terms).values


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


def background_inputs(
    model: "FittedRegressor | ClassPredictions", X: Any, argument: str, most: int | None, seed: int
) -> NDArray[np.float64]:
    """At most `most` rows, drawn by the seed, as the numbers that networks see; of files no others are held."""
    X = opened(model, X)
    if most is None or not is_file_rows(X):
        inputs = explained_inputs(model, X, argument)
        return inputs if most is None or len(inputs) <= most else inputs[sample_positions(len(inputs), most, seed)]
    encoder, drawn, start = file_encoder(model), [], 0
    files, columns = X.read_as(encoder), [encoding.column for encoding in encoder.encodings]
    total = files.count_rows()
    positions = sample_positions(total, most, seed)
    for batch in files.batches(columns, rows=stripe_rows(total)):
        first, last = np.searchsorted(positions, [start, start + batch.num_rows])
        drawn.append(encoder.transform(batch.take(positions[first:last] - start)))
        start += batch.num_rows
    return np.concatenate(drawn)


def contribution_batches(
    model: "FittedRegressor | ClassPredictions", files: "FileRows", against: Background, terms: TermSettings
) -> Iterator[tuple[Any, Contributions]]:
    """Record batches of files with the contributions of their rows, in the order of the rows."""
    encoder = file_encoder(model)
    files, players = files.read_as(encoder), players_of(model.fitted_, terms.by)
    if against.rows is None and files.count_rows() == 1:
        raise ValueError(
            f"{files.path} has one row, and without a background there is nothing to compare it with; pass a "
            "background, such as the rows of the fit."
        )
    source = files if against.rows is None else against.rows
    background = background_inputs(model, source, "background", against.most, against.seed)
    yield from _explained_batches(model, files, background, players, terms)


def _explained_batches(
    model: "FittedRegressor | ClassPredictions",
    files: "FileRows",
    background: NDArray[np.float64],
    players: Players,
    terms: TermSettings,
) -> Iterator[tuple[Any, Contributions]]:
    encoder = file_encoder(model)
    with ThreadEngine(check_threads(model.n_jobs)) as engine:
        options: dict[str, Any] = {"interactions": terms.interactions, "tolerance": terms.tolerance}
        explainer = Explainer(model.fitted_, background, players, engine, n_rows=files.count_rows(), **options)
        for batch in files.batches(None, rows=_ROWS_TOGETHER):
            yield batch, explainer.of(encoder.transform(batch), engine)


def _found(
    model: "FittedRegressor | ClassPredictions",
    inputs: NDArray[np.float64],
    background: NDArray[np.float64],
    players: Players,
    engine: ThreadEngine,
    terms: TermSettings,
) -> Contributions:
    options: dict[str, Any] = {"interactions": terms.interactions, "tolerance": terms.tolerance}
    return contributions(model.fitted_, inputs, background, players, engine, **options)


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
