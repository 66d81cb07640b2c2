"""Fits on rows in files: what a pass over them learns, and the rows that are searched."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from scne.estimators.inputs._data import GivenRows
from scne.estimators.inputs._weight_scale import scaled_files
from scne.fitting import (
    BlockStatistics,
    Checkpoint,
    Form,
    MemoryPlan,
    TrainingData,
    check_threads,
    statistics_form,
    statistics_hold,
    statistics_to_store,
    stored_statistics,
)
from scne.passes import (
    Cluster,
    ClusterRows,
    ThreadEngine,
    announce,
    cluster_of,
    learn_files_on_cluster,
    rows_on_cluster,
    stripe_rows,
)
from scne.rows import Array, ArrayRows, DataError, FeatureGroup, RowSource, release_memory

if TYPE_CHECKING:
    from scne.rows import Encoder, EncoderLearner, FileRows, RowSample

# Rows of the sample that are encoded at a time.
_ENCODED_ROWS = 4_096


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


def check_files_alone(given: GivenRows) -> None:
    """Refuse targets, weights or validation rows beside files, and files without a target."""
    for name in ("y", "sample_weight", "X_val", "y_val"):
        if getattr(given, name) is not None:
            raise ValueError(
                f"{name} was passed beside rows in files; open_rows names the target and weight columns, and "
                "validation rows are held out with validation_fraction."
            )
    if not given.X.target_names:
        raise ValueError(
            f"The rows of {given.X.path} were opened without a target; pass open_rows(..., target=COLUMN)."
        )


def check_numeric_targets(files: "FileRows") -> None:
    """Refuse targets that are no numbers, which only a classifier takes."""
    from scne.rows import is_numeric

    for name in files.target_names:
        type_ = files.schema.field(name).type
        if not is_numeric(type_):
            raise DataError(
                f"The target column {name!r} of {files.path} holds values of type {type_}, but the model predicts "
                "numbers; to predict classes use SCNEClassifier (scne fit --classify)."
            )


def training_files(
    estimator: BaseEstimator,
    given: GivenRows,
    search_rows: int | None,
    seed: int,
    checkpoint: Checkpoint | None,
    plan: MemoryPlan | None,
) -> TrainingData:
    """Rows of files, of which a first pass learns the encoder and draws the sample, for a fit."""
    check_files_alone(given)
    files = given.X
    cluster = cluster_of(given.client)
    files = scaled_files(files, cluster)
    threads = check_threads(estimator.n_jobs) if plan is None else plan.threads
    learned = learn_files(files, search_rows, seed, checkpoint, cluster, threads, plan)
    encoder = learned.encoder
    if learned.source.n_rows < 2:
        raise ValueError(f"{files.path} holds 1 row, but a fit needs at least 2.")
    estimator.n_features_in_ = len(encoder.inputs)
    estimator.feature_names_in_ = np.array(encoder.inputs, dtype=object)
    groups = tuple(FeatureGroup(name, columns) for name, columns in encoder.groups.items())
    return TrainingData(
        rows=learned.source,
        search=learned.sample,
        validation=None,
        column_names=list(encoder.names),
        flat_target=len(files.target_names) == 1,
        groups=groups,
        encoder=encoder.settled(),
        statistics=learned.statistics,
        weight_scale=files.weight_scale,
    )


def learn_files(
    files: "FileRows",
    sample_size: int | None,
    seed: int,
    checkpoint: Checkpoint | None = None,
    cluster: Cluster | None = None,
    threads: int = 1,
    plan: MemoryPlan | None = None,
) -> LearnedFiles:
    """The first pass: learn the encoder and the columns' statistics, count the rows, and draw those of the search.

    Parameters
    ----------
    sample_size : int or None
        Rows of the search; None takes all of them into memory.
    cluster : Cluster or None
        Whose workers read the files, if any.
    threads : int
        In this process; what is learned does not depend on it.
    plan : MemoryPlan or None
        How many rows there is memory for, instead of `sample_size`.
    """
    resumed = _kept_sample(files, checkpoint) if checkpoint else None
    if resumed is not None:
        sample, encoder, statistics = resumed
        return LearnedFiles(_source(files, encoder, cluster), sample, encoder, statistics)

    size = sample_size if plan is None else plan.search_rows
    if cluster is None:
        looked = _look_through(files, size, seed, threads, plan)
    else:
        learner, drawn = learn_files_on_cluster(files, size, seed, cluster)
        looked = _Looked(learner, lambda most: _first_keys(drawn, files.count_rows(), size, most, seed), plan)
    encoder = looked.learner.finish()
    statistics = looked.learner.statistics(), looked.learner.targets
    most = None if looked.plan is None else looked.plan.after_learning(encoder, files.count_rows()).search_rows
    sample = _encoded_sample(files, encoder, looked.draw(most))
    release_memory()
    if checkpoint:
        stored = _to_json(encoder.to_dict(with_crossed=True))
        arrays = {"sample": sample.inputs, "sample_targets": sample.targets, "encoder": stored}
        arrays |= statistics_to_store("inputs", statistics[0]) | statistics_to_store("targets", statistics[1])
        checkpoint.save("sample", arrays if sample.weights is None else {**arrays, "weights": sample.weights})
    return LearnedFiles(_source(files, encoder, cluster), sample, encoder, statistics)


def _kept_sample(files: "FileRows", checkpoint: Checkpoint) -> tuple[ArrayRows, "Encoder", BlockStatistics] | None:
    """What an interrupted fit had learned in its first pass."""
    from scne.rows import Encoder

    q = len(files.target_names)
    form: dict[str, Form] = {
        "sample": ("float64", "n", "d"),
        "sample_targets": ("float64", "n", q),
        "encoder": ("uint8", None),
        **statistics_form("inputs", "d"),
        **statistics_form("targets", q),
    }
    if files.weight_name is not None:
        form["weights"] = ("float64", "n")
    stored = checkpoint.load("sample", form, statistics_hold)
    if stored is None:
        return None
    try:
        encoder = Encoder.from_dict(_from_json(stored["encoder"]))
        width = len(encoder.names)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise checkpoint.damaged("sample", "holds something that is not an encoder") from error
    statistics = stored_statistics("inputs", stored), stored_statistics("targets", stored)
    n_rows, n_columns = stored["sample"].shape
    belongs = set(encoder.kinds) <= set(files.input_names) and encoder.tells_folds
    if n_rows == 0 or width != n_columns or not belongs:
        raise checkpoint.damaged("sample", "holds arrays that do not belong together")
    return ArrayRows(stored["sample"], stored["sample_targets"], stored.get("weights")), encoder, statistics


@dataclass(frozen=True)
class _Looked:
    """What a pass has seen: the learner, a function that gives the sample of at most so many rows, and the plan."""

    learner: "EncoderLearner"
    draw: Callable[[int | None], Any]
    plan: MemoryPlan | None


@dataclass(frozen=True)
class _NumberedBatch:
    """A batch, and the number of its first row."""

    start: int
    batch: Array

    @property
    def nbytes(self) -> int:
        return int(self.batch.nbytes)


def _look_through(
    files: "FileRows", sample_size: int | None, seed: int, threads: int, plan: MemoryPlan | None
) -> _Looked:
    from scne.rows import EncoderLearner, SampleDrawer

    # CSV files are counted first: the length of stripes, and so the last bits of sums, must not depend on the format.
    total = files.count_rows()
    drawer = SampleDrawer(total if sample_size is None else sample_size, seed)
    step = stripe_rows(total)
    plans = [plan]

    def revise(row_bytes: float, level_bytes: float) -> None:
        """Draw fewer rows where texts take more than the first of them promised."""
        if plans[0] is not None:
            plans[0] = plans[0].after_some_rows(row_bytes, level_bytes)
            drawer.shrink(plans[0].search_rows)

    def batches() -> Iterator[_NumberedBatch]:
        start = 0
        for batch in files.batches(rows=step):
            if plans[0] is not None and batch.num_rows == step:
                revise(batch.nbytes / step, 0.0)
            drawer.update(batch, start)
            numbered = _NumberedBatch(start, batch)
            start += batch.num_rows
            del batch
            yield numbered
            del numbered

    def learn(numbered: _NumberedBatch) -> EncoderLearner:
        learner = EncoderLearner(files)
        learner.update(numbered.batch, numbered.start)
        return learner

    learned = EncoderLearner(files)
    with ThreadEngine(threads, float("inf") if plan is None else plan.in_flight_bytes) as engine:
        for done, learner in enumerate(engine.map(learn, batches()), start=1):
            learned = learned.combined(learner)
            revise(0.0, 2 * learned.level_bytes)
            # Names of things are a bonus: rows of the search are worth more.
            if plans[0] is not None and not plans[0].has_room(2 * (learned.level_bytes + learned.name_bytes)):
                learned.forget_names()
            announce("learning columns", done, -(-total // step), total)
    release_memory()
    return _Looked(learned, drawer.finish, plans[0])


def _first_keys(drawn: Array, n_rows: int, size: int | None, most: int | None, seed: int) -> "RowSample":
    """Those of the drawn rows that a smaller sample holds."""
    from scne.rows import RowSample, sample_positions

    held = sample_positions(n_rows, n_rows if size is None else size, seed)
    if most is None or most >= drawn.num_rows:
        return RowSample(held, drawn)
    fewer = sample_positions(n_rows, most, seed)
    return RowSample(fewer, drawn.take(np.searchsorted(held, fewer)))


def _encoded_sample(files: "FileRows", encoder: "Encoder", sample: "RowSample") -> ArrayRows:
    """The drawn rows encoded, a piece at a time; each piece is let go once it is."""
    from scne.rows import numbers

    places, drawn = sample.positions, sample.table
    del sample
    n = drawn.num_rows
    inputs, targets = np.empty((n, len(encoder.names))), np.empty((n, len(files.target_names)))
    weights = None if files.weight_name is None else np.empty(n)
    pieces = drawn.to_batches(max_chunksize=_ENCODED_ROWS)[::-1]
    del drawn
    start = 0
    while pieces:
        piece = pieces.pop()
        rows = slice(start, start + piece.num_rows)
        inputs[rows] = encoder.transform(piece, places[rows])
        for place, name in enumerate(files.target_names):
            targets[rows, place] = numbers(piece.column(name))
        if weights is not None:
            weights[rows] = numbers(piece.column(files.weight_name))
        start = rows.stop
        if len(pieces) % 16 == 0:
            del piece
            release_memory()
    return ArrayRows(inputs, targets, weights)


def _source(files: "FileRows", encoder: "Encoder", cluster: Cluster | None) -> RowSource | ClusterRows:
    from scne.rows import encoded_rows

    return encoded_rows(files, encoder, learned=True) if cluster is None else rows_on_cluster(files, encoder, cluster)


def _to_json(value: object) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)


def _from_json(stored: NDArray[np.uint8]) -> Any:
    return json.loads(stored.tobytes().decode())
