"""Fits and predictions on rows in files: what a pass over them learns, and how they stream."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from scne.estimators._checkpoint import Checkpoint, Form
from scne.estimators._cluster import ClusterRows, learn_files_on_cluster, rows_on_cluster
from scne.estimators._cluster_results import Cluster
from scne.estimators._engines import open_engine
from scne.estimators._members import BlockStatistics, statistics_form, statistics_to_store, stored_statistics
from scne.passes import Engine, announce, stripe_rows
from scne.rows import ArrayRows, RowSource

if TYPE_CHECKING:
    from scne.rows import Encoder, EncoderLearner, FileRows


def is_file_rows(X: Any) -> bool:
    """Whether X was made by `open_rows`; asked without loading Arrow for those who never use files."""
    return type(X).__name__ == "FileRows" and type(X).__module__.startswith("scne.rows")


@dataclass(frozen=True)
class LearnedFiles:
    """What the first pass over files finds.

    Attributes
    ----------
    source : RowSource or ClusterRows
        All rows, encoded, to be read again.
    sample : ArrayRows
        The rows of the search, encoded.
    encoder : Encoder
    statistics : pair of ColumnStatistics
        Of the encoded columns and of the targets, over all rows.
    """

    source: RowSource | ClusterRows
    sample: ArrayRows
    encoder: "Encoder"
    statistics: BlockStatistics


def learn_files(
    files: "FileRows",
    sample_size: int | None,
    seed: int,
    checkpoint: Checkpoint | None = None,
    cluster: Cluster | None = None,
    threads: int = 1,
) -> LearnedFiles:
    """The first pass: learn the encoder and the columns' statistics, count the rows, and draw those of the search.

    Parameters
    ----------
    files : FileRows
    sample_size : int or None
        Rows of the search; None takes all of them into memory.
    seed : int
    checkpoint : Checkpoint or None
    cluster : Cluster or None
        Whose workers read the files, if any.
    threads : int
        In this process; what is learned does not depend on it.
    """
    import pyarrow as pa

    kept = _kept_sample(files, checkpoint) if checkpoint else None
    if kept is not None:
        sample, encoder, statistics = kept
        return LearnedFiles(_source(files, encoder, cluster), sample, encoder, statistics)

    if cluster is None:
        learner, drawn = _look_through(files, sample_size, seed, threads)
    else:
        learner, drawn = learn_files_on_cluster(files, sample_size, seed, cluster)
    encoder = learner.finish()
    statistics = learner.statistics(), learner.targets
    columns = [np.asarray(drawn[name].cast(pa.float64())) for name in files.target_names]
    weights = None if files.weight_name is None else np.asarray(drawn[files.weight_name].cast(pa.float64()))
    sample = ArrayRows(encoder.transform(drawn), np.column_stack(columns), weights)
    if checkpoint:
        arrays = {"sample": sample.inputs, "sample_targets": sample.targets, "encoder": _to_json(encoder.to_dict())}
        arrays |= statistics_to_store("inputs", statistics[0]) | statistics_to_store("targets", statistics[1])
        checkpoint.save("sample", arrays if weights is None else {**arrays, "weights": weights})
    return LearnedFiles(_source(files, encoder, cluster), sample, encoder, statistics)


def _kept_sample(files: "FileRows", checkpoint: Checkpoint) -> tuple[ArrayRows, "Encoder", BlockStatistics] | None:
    """What an interrupted fit had learned in its first pass."""
    from scne.rows import Encoder

    q = len(files.target_names)
    form: dict[str, Form] = {
        "sample": ("float64", None, None),
        "sample_targets": ("float64", None, q),
        "encoder": ("uint8", None),
        **statistics_form("inputs", None),
        **statistics_form("targets", q),
    }
    if files.weight_name is not None:
        form["weights"] = ("float64", None)
    kept = checkpoint.load("sample", form)
    if kept is None:
        return None
    try:
        encoder = Encoder.from_dict(_from_json(kept["encoder"]))
        width = len(encoder.names)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise checkpoint.damaged("sample", "holds an encoder that is none") from error
    statistics = stored_statistics("inputs", kept), stored_statistics("targets", kept)
    n_rows = len(kept["sample"])
    lengths = {width, kept["sample"].shape[1], len(statistics[0].mean)}
    rows = {n_rows, len(kept["sample_targets"]), len(kept.get("weights", kept["sample"]))}
    if len(lengths) > 1 or len(rows) > 1 or n_rows == 0 or not set(encoder.kinds) <= set(files.input_names):
        raise checkpoint.damaged("sample", "holds arrays that do not belong together")
    return ArrayRows(kept["sample"], kept["sample_targets"], kept.get("weights")), encoder, statistics


def _look_through(files: "FileRows", sample_size: int | None, seed: int, threads: int) -> tuple["EncoderLearner", Any]:
    from scne.rows import EncoderLearner, SampleDrawer

    # CSV files are counted first: the length of stripes, and so the last bits of sums, must not depend on the format.
    total = files.count_rows()
    drawer = SampleDrawer(total if sample_size is None else sample_size, seed)
    step = stripe_rows(total)

    def batches() -> Iterator[tuple[int, Any]]:
        start = 0
        for batch in files.batches(rows=step):
            drawer.update(batch, start)
            yield start, batch
            start += batch.num_rows

    def learn(numbered: tuple[int, Any]) -> EncoderLearner:
        start, batch = numbered
        learner = EncoderLearner(files)
        learner.update(batch, start)
        return learner

    learned = EncoderLearner(files)
    with Engine(threads) as engine:
        for done, learner in enumerate(engine.map(learn, batches()), start=1):
            learned = learned.combined(learner)
            announce("learning columns", done, -(-total // step), total)
    return learned, drawer.finish().table


def _source(files: "FileRows", encoder: "Encoder", cluster: Cluster | None) -> RowSource | ClusterRows:
    from scne.rows import encoded_rows

    return encoded_rows(files, encoder) if cluster is None else rows_on_cluster(files, encoder, cluster)


def predict_batches(model: Any, files: "FileRows") -> Iterator[tuple[Any, NDArray[np.float64]]]:
    """Record batches of files with a fitted model's predictions (n, q) for them, in the order of the rows."""
    files = files.read_as(model.encoder_)
    total = files.count_rows()
    rows = stripe_rows(total)
    done = 0
    with open_engine(model.device, "float64", model.n_jobs) as engine:
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
