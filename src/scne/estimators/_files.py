"""Fits and predictions on rows in files: what a pass over them learns, and how they stream."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from scne.estimators._checkpoint import Checkpoint
from scne.estimators._cluster import ClusterRows, learn_files_on_cluster, rows_on_cluster
from scne.estimators._parameters import check_threads
from scne.passes import Engine, announce, stripe_rows
from scne.rows import ArrayRows, RowSource

if TYPE_CHECKING:
    from scne.rows import Encoder, FileRows


def is_file_rows(X: Any) -> bool:
    """Whether X was made by `open_rows`; asked without loading Arrow for those who never use files."""
    return type(X).__name__ == "FileRows" and type(X).__module__.startswith("scne.rows")


def learn_files(
    files: "FileRows",
    sample_size: int | None,
    seed: int,
    checkpoint: Checkpoint | None = None,
    client: Any = None,
) -> tuple[RowSource | ClusterRows, ArrayRows, "Encoder"]:
    """The first pass: learn the encoder, count the rows, and draw the rows of the search.

    Parameters
    ----------
    files : FileRows
    sample_size : int or None
        Rows of the search; None takes all of them into memory.
    seed : int
    checkpoint : Checkpoint or None
    client : distributed.Client or None
        Whose workers read the files, if any.

    Returns
    -------
    source : RowSource or ClusterRows
        All rows, encoded, to be read again.
    sample : ArrayRows
        The rows of the search, encoded.
    encoder : Encoder
    """
    import pyarrow as pa

    from scne.rows import Encoder

    kept = checkpoint.load("sample") if checkpoint else None
    if kept is not None:
        encoder = Encoder.from_dict(_from_json(kept["encoder"]))
        weights = kept.get("weights")
        return _source(files, encoder, client), ArrayRows(kept["inputs"], kept["targets"], weights), encoder

    if client is None:
        encoder, drawn = _look_through(files, sample_size, seed)
    else:
        encoder, drawn = learn_files_on_cluster(files, sample_size, seed, client)
    columns = [np.asarray(drawn[name].cast(pa.float64())) for name in files.target_names]
    weights = None if files.weight_name is None else np.asarray(drawn[files.weight_name].cast(pa.float64()))
    sample = ArrayRows(encoder.transform(drawn), np.column_stack(columns), weights)
    if checkpoint:
        arrays = {"inputs": sample.inputs, "targets": sample.targets, "encoder": _to_json(encoder.to_dict())}
        checkpoint.save("sample", arrays if weights is None else {**arrays, "weights": weights})
    return _source(files, encoder, client), sample, encoder


def _look_through(files: "FileRows", sample_size: int | None, seed: int) -> tuple["Encoder", Any]:
    from scne.rows import EncoderLearner, SampleDrawer

    learner = EncoderLearner(files)
    drawer = SampleDrawer(files.count_rows() if sample_size is None else sample_size, seed)
    total = files.n_rows or 0
    step = stripe_rows(total)
    start = 0
    for batch in files.batches(rows=step):
        learner.update(batch, start)
        drawer.update(batch, start)
        start += batch.num_rows
        announce("learning columns", -(-start // step), -(-total // step), total)
    return learner.finish(), drawer.finish().table


def _source(files: "FileRows", encoder: "Encoder", client: Any) -> RowSource | ClusterRows:
    from scne.rows import encoded_rows

    return encoded_rows(files, encoder) if client is None else rows_on_cluster(files, encoder, client)


def predict_batches(model: Any, files: "FileRows") -> Iterator[tuple[Any, NDArray[np.float64]]]:
    """Record batches of files with a fitted model's predictions (n, q) for them, in the order of the rows."""
    total = files.count_rows()
    rows = stripe_rows(total)
    done = 0
    with Engine(check_threads(model.n_jobs)) as engine:
        for batch in files.batches(rows=rows):
            outputs = model._outputs(model.encoder_.transform(batch), engine)
            done += batch.num_rows
            announce("predicting", -(-done // rows), -(-total // rows), total)
            yield batch, outputs


def predict_files(model: Any, files: "FileRows") -> NDArray[np.float64]:
    """Predictions (n, q) of all rows of files."""
    if not hasattr(model, "encoder_"):
        raise ValueError("This model was fitted on arrays, not on files, and does not know the columns of files.")
    return np.concatenate([outputs for _, outputs in predict_batches(model, files)])


def _to_json(value: Any) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)


def _from_json(stored: NDArray[np.uint8]) -> Any:
    return json.loads(stored.tobytes().decode())
