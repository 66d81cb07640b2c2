"""The door for tables in memory that are not plain numbers: an encoder makes them such, as it does those of files."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from scne.estimators.inputs._refusals import no_numbers, refuse_no_table
from scne.fitting import BlockStatistics, physical_memory, refuse_masks
from scne.passes import ThreadEngine, announce, stripe_rows
from scne.rows import is_frame, is_lazy

if TYPE_CHECKING:
    import pyarrow as pa

    from scne.rows import Encoder, EncoderLearner, RawRows

# Rows that are encoded at a time by each thread.
_PIECE_ROWS = 32_768


class LearnedTable(NamedTuple):
    """What is learned of a table in memory.

    Attributes
    ----------
    inputs : ndarray of shape (n, d)
        Its columns, encoded.
    encoder : Encoder
    statistics : pair of ColumnStatistics
        Of the encoded columns and of the targets.
    """

    inputs: NDArray[np.float64]
    encoder: "Encoder"
    statistics: BlockStatistics


def needs_encoder(X: object) -> bool:
    """Whether X holds more than numbers, by its types; gaps among numbers are not looked for.

    Examples
    --------
    >>> needs_encoder(np.array([["a", 1.0]], dtype=object)), needs_encoder(np.array([[1, None]], dtype=object))
    (True, False)
    """
    if is_frame(X):
        from scne.rows import has_only_numbers

        return not has_only_numbers(X)
    if not isinstance(X, np.ndarray | list | tuple):
        return False
    try:
        values = np.asarray(X)
        if values.dtype.kind in "OUST":
            values.astype(np.float64)
    except ValueError:
        # A ragged list is nobody's table.
        return np.ndim(np.array(X, dtype=object)) == 2
    except TypeError:
        return False
    return values.dtype.kind in "mM" and values.ndim == 2


def dense(X: Any, argument: str) -> Any:
    """A sparse matrix with its zeros, if memory holds them; everything else as it is.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> dense(csr_array([[0.0, 2.0]]), "X")
    array([[0., 2.]])
    """
    if not (hasattr(X, "toarray") and hasattr(X, "nnz")):
        return X
    needed, there = 8.0 * X.shape[0] * X.shape[1], physical_memory()
    if needed > there / 2:
        raise ValueError(
            f"{argument} is a sparse matrix of {X.shape[0]:,} x {X.shape[1]:,}, which takes {needed / 1e9:,.1f} GB "
            f"with its zeros, and this machine has {there / 1e9:,.1f} GB; reduce its columns first, for example with "
            "sklearn.decomposition.TruncatedSVD."
        )
    return X.toarray()


def checked_container(X: Any, argument: str) -> Any:
    """What holds the rows: sparse matrices with their zeros; what is no table, or a broken one, is refused."""
    X = dense(X, argument)
    refuse_masks(argument, X)
    refuse_no_table(X, argument)
    if is_frame(X):
        from scne.rows import check_frame

        check_frame(X, argument)
    return X


def numbers_alone(estimator: BaseEstimator, X: Any, argument: str) -> Any:
    """Rows for a model of numbers alone: a frame with decimals, or with columns without a value, as an array."""
    if not is_frame(X):
        raise ValueError(no_numbers(X, argument))
    from scne.rows import has_numbers_or_nothing, number_columns

    table = checked_table(estimator, X, argument, reset=False)
    if not has_numbers_or_nothing(table):
        raise ValueError(no_numbers(X, argument))
    return number_columns(table)


def checked_table(
    estimator: BaseEstimator, X: Any, argument: str, reset: bool, encoder: "Encoder | None" = None
) -> "pa.Table":
    """A frame or an array as a table, its columns checked against those of the fit, or remembered as such.

    Columns that come without names, or with names that are no text, go by their places; an `encoder` knows what it
    calls them, also where a tool has taken the names off the estimator.
    """
    from scne.rows import array_table, frame_table

    if is_frame(X):
        table = frame_table(X, argument)
        pandas = hasattr(X, "iloc")
        validate_data(estimator, X if pandas else table, reset=reset, skip_check_array=True)
        return table.rename_columns(_names(estimator, table.num_columns, encoder))
    # Lists keep their objects: NumPy makes text of all of them where one is text.
    values = X if isinstance(X, np.ndarray) else np.array(X, dtype=object)
    validate_data(estimator, values, reset=reset, skip_check_array=True)
    return array_table(values, _names(estimator, values.shape[1], encoder), argument)


def _names(estimator: BaseEstimator, n_columns: int, encoder: "Encoder | None") -> list[str]:
    if encoder is not None and len(encoder.inputs) == n_columns:
        return list(encoder.inputs)
    names = getattr(estimator, "feature_names_in_", None)
    return [str(name) for name in (range(n_columns) if names is None else names)]


def learn_table(
    table: "pa.Table",
    targets: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
    by_position: bool,
    threads: int,
) -> LearnedTable:
    """Learn how the columns of a table become numbers, and encode them.

    What is learned are sums over the stripes that a file with the same rows is read in, so that both give the same
    model, to the last bit.
    """
    from scne.rows import TableRows

    rows = TableRows("X", table, targets, weights)
    learner = learn_columns(rows, threads)
    encoder = replace(learner.finish(), by_position=by_position)
    if not encoder.names:
        raise ValueError("No column of X holds any value; pass at least one that does.")
    inputs = encoded(table, encoder, threads, learned=True)
    return LearnedTable(inputs, encoder.settled(), (learner.statistics(), learner.targets))


def learn_columns(rows: "RawRows", threads: int) -> "EncoderLearner":
    """One pass over rows in memory."""
    from scne.rows import EncoderLearner

    step = stripe_rows(rows.count_rows())

    def learn(numbered: tuple[int, "pa.RecordBatch"]) -> EncoderLearner:
        learner = EncoderLearner(rows)
        learner.update(numbered[1], numbered[0] * step)
        return learner

    learned = EncoderLearner(rows)
    with ThreadEngine(threads) as engine:
        for done, learner in enumerate(engine.map(learn, enumerate(rows.batches(rows=step))), start=1):
            learned = learned.combined(learner)
            announce("learning columns", done, -(-rows.count_rows() // step), rows.count_rows())
    return learned


def encoded(
    table: "pa.Table", encoder: "Encoder", threads: int, argument: str = "X", learned: bool = False
) -> NDArray[np.float64]:
    """The encoded columns (n, d) of a table, from which the encoder was `learned` or not."""
    batch = encoder.read_table(table, argument)
    out = np.empty((batch.num_rows, len(encoder.names)))

    def fill(start: int) -> None:
        rows = slice(start, start + _PIECE_ROWS)
        encoder.transform_into(batch.slice(start, _PIECE_ROWS), out[rows], start, argument, learned)

    with ThreadEngine(threads) as engine:
        for _ in engine.map(fill, list(range(0, batch.num_rows, _PIECE_ROWS))):
            pass
    return out


def encoded_inputs(
    estimator: BaseEstimator, X: Any, encoder: "Encoder", by_name: bool, threads: int, argument: str = "X"
) -> NDArray[np.float64]:
    """Rows of any kind in memory as the numbers that a fitted encoder makes of them."""
    pieces = [encoded(piece, encoder, threads, argument) for piece in _pieces(estimator, X, encoder, by_name, argument)]
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def _pieces(estimator: BaseEstimator, X: Any, encoder: "Encoder", by_name: bool, argument: str) -> Iterator["pa.Table"]:
    from scne.rows import frame_pieces, frame_table

    if is_lazy(X):
        for piece in frame_pieces(X, argument):
            yield piece if by_name else checked_table(estimator, piece, argument, False, encoder)
    elif by_name and is_frame(X):
        yield frame_table(X, argument)
    else:
        yield checked_table(estimator, X, argument, False, encoder)
