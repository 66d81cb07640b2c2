"""Learn an encoder, and the statistics of the encoded columns, in one pass over the rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from scne.rows._batches import missing_in, numbers
from scne.rows._column_encodings import ColumnEncoding
from scne.rows._data_error import DataError, RefusedValue
from scne.rows._encoder import Encoder, plain_column, refuse_missing
from scne.rows._encodings import (
    CategoryEncoding,
    DateEncoding,
    FlagEncoding,
    NumberEncoding,
    calendar_part,
    calendar_parts,
)
from scne.rows._level_counts import MOST_LEVELS, LevelCounts
from scne.rows._level_means import Described, are_whole, level_means, may_name, may_still_name, named_numbers
from scne.rows._level_sums import LevelSums, folds_of
from scne.rows._scaling_learner import ColumnStatistics, Moments, column_statistics, moments
from scne.rows._schemas import kind_of, unfit_type
from scne.rows._stray_texts import find_strays, mostly, stray_error
from scne.rows._tables import RawRows

# Targets up to which levels have means: there is a column for each, and sums of each are held by level.
_MOST_TARGETS = 8
# Levels up to which each has a column of its own.
_MOST_ONE_HOT = 8


class EncoderLearner:
    """What has been seen of the rows so far; two learners on parts of the rows combine into that of both.

    Nothing here depends on how the rows are split into batches or machines, up to rounding. Rows of weight zero are
    rows that are not there.

    Parameters
    ----------
    rows : RawRows
        Gives the columns, their types and groups.
    max_levels : int
        The most levels of a text column that get a column of their own, where levels have no means: without targets,
        with more than 8 of them, or with up to 8 levels.
    missing : {"indicator", "refuse"}
        Missing values are replaced by the mean and marked in a column of their own, or not accepted.

    Attributes
    ----------
    targets : ColumnStatistics
        Of the target columns.
    n_rows : int
    weight : float

    Examples
    --------
    >>> import tempfile, pyarrow.parquet as pq
    >>> from scne.rows import open_rows
    >>> table = pa.table({"TEMP": [3.0, None, 5.0], "wd": ["N", "NNW", "N"], "PM": [9.0, 11.0, 10.0]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(table, f"{folder}/air.parquet")
    ...     rows = open_rows(folder, target="PM")
    ...     learner = EncoderLearner(rows)
    ...     for batch in rows.batches():
    ...         learner.update(batch)
    >>> learner.finish().names
    ('TEMP', 'TEMP missing', 'wd=N', 'wd=NNW')
    >>> learner.statistics().mean.round(2)
    array([4.  , 0.33, 0.67, 0.33])
    """

    def __init__(
        self, rows: RawRows, *, max_levels: int = 32, missing: Literal["indicator", "refuse"] = "indicator"
    ) -> None:
        if max_levels < 1:
            raise ValueError(f"max_levels is {max_levels}, but it must be at least 1.")
        if missing not in ("indicator", "refuse"):
            raise ValueError(f'missing is {missing!r}, but it must be "indicator" or "refuse".')
        self.rows, self.max_levels = rows, max_levels
        self.missing: Literal["indicator", "refuse"] = missing
        self._measures = list(_measures(rows))
        self._moments = Moments.of_nothing(len(self._measures))
        self._levels = {
            name: LevelCounts(name, rows.path)
            for name in rows.input_names
            if kind_of(rows.schema.field(name).type) == "category"
        }
        q = len(rows.target_names)
        # Targets by level, of texts and of columns of whole numbers as long as these may name something.
        self._sums = {
            name: LevelSums.of_nothing(pa.string() if name in self._levels else pa.float64(), q)
            for name in rows.input_names
            if 0 < q <= _MOST_TARGETS and (name in self._levels or may_name(rows.schema.field(name).type))
        }
        self._n_shown = 0
        self._known: list[tuple[ColumnEncoding, list[Described]]] | None = None
        nothing = np.zeros(q)
        self.targets = ColumnStatistics(0.0, nothing, nothing, nothing + np.inf, nothing - np.inf)
        self.n_rows = 0
        self.weight = 0.0

    def update(self, batch: pa.RecordBatch, start: int | None = None) -> None:
        """Learn from the rows of one batch; `start` is the number of its first row, by default the next one."""
        numbers = np.arange(batch.num_rows) + (self._n_shown if start is None else start)
        try:
            self._update(batch, numbers)
        except RefusedValue as error:
            raise error.at(str(self.rows.path) if start is None else self.rows.place(start + error.row)) from None

    def _update(self, batch: pa.RecordBatch, places: NDArray[np.int64]) -> None:
        self._n_shown, self._known = self._n_shown + batch.num_rows, None
        if self.missing == "refuse":
            for name in self.rows.input_names:
                refuse_missing(name, plain_column(batch, name))
        measured = [measure.values(batch) for measure in self._measures]
        texts = {name: plain_column(batch, name) for name in self._levels}
        targets = [numbers(batch.column(name)) for name in self.rows.target_names]
        n_rows, weights = batch.num_rows, None
        if self.rows.weight_name is not None:
            weights = numbers(batch.column(self.rows.weight_name))
            if not weights.all():
                there = weights > 0
                measured, weights = [values[there] for values in measured], weights[there]
                targets = [values[there] for values in targets]
                texts = {name: text.filter(pa.array(there)) for name, text in texts.items()}
                places = places[there]
            n_rows = len(weights)
        self._moments = self._moments.combined(moments(measured, weights))
        if targets:
            self.targets = self.targets.combined(column_statistics(np.column_stack(targets), weights))
        for name, text in texts.items():
            with self._judged(name, self._levels[name]):
                self._levels[name].update(text, weights)
        if self._sums and n_rows:
            values = {m.column: v for m, v in zip(self._measures, measured, strict=True) if m.column in self._sums}
            self._add_sums(texts, values, folds_of(places), np.column_stack(targets), weights)
        self.n_rows += n_rows
        self.weight += float(n_rows) if weights is None else float(weights.sum())

    def _add_sums(
        self,
        texts: dict[str, pa.Array],
        values: dict[str, NDArray[np.float64]],
        folds: NDArray[np.intp],
        targets: NDArray[np.float64],
        weights: NDArray[np.float64] | None,
    ) -> None:
        for name, text in texts.items():
            sums = LevelSums.of_rows(text.cast(pa.string()), folds, targets, weights)
            self._sums[name] = self._sums[name].combined(sums)
        for name, numbers_ in values.items():
            if not are_whole(numbers_):
                del self._sums[name]
                continue
            # Of two zeros one: they are equal, but their bits are not.
            sums = LevelSums.of_rows(pa.array(numbers_ + 0.0, from_pandas=True), folds, targets, weights)
            both = self._sums[name].combined(sums)
            if may_still_name(sums, len(numbers_)) and len(both.levels) <= MOST_LEVELS:
                self._sums[name] = both
            else:
                del self._sums[name]

    def combined(self, other: "EncoderLearner") -> "EncoderLearner":
        """What both have seen; `self` and `other` stay as they are."""
        both = EncoderLearner(self.rows, max_levels=self.max_levels, missing=self.missing)
        both._moments = self._moments.combined(other._moments)
        for name, counts in self._levels.items():
            with self._judged(name, counts):
                both._levels[name] = counts.combined(other._levels[name])
        both._sums = {}
        for name in self._sums.keys() & other._sums.keys():
            sums = self._sums[name].combined(other._sums[name])
            if len(sums.levels) <= MOST_LEVELS:
                both._sums[name] = sums
        both._n_shown = self._n_shown + other._n_shown
        both.targets = self.targets.combined(other.targets)
        both.n_rows, both.weight = self.n_rows + other.n_rows, self.weight + other.weight
        return both

    @property
    def level_bytes(self) -> float:
        """What the levels of all texts take; sums twice, since they are put in order when means are made of them."""
        counted = sum(counts.nbytes for counts in self._levels.values())
        return float(counted + 2 * sum(sums.nbytes for name, sums in self._sums.items() if name in self._levels))

    @property
    def name_bytes(self) -> float:
        """What numbers take that may name things."""
        return float(sum(sums.nbytes for name, sums in self._sums.items() if name not in self._levels))

    def forget_names(self) -> None:
        """Let go of what numbers may name: they stay numbers."""
        self._sums = {name: sums for name, sums in self._sums.items() if name in self._levels}
        self._known = None

    @contextmanager
    def _judged(self, column: str, counts: LevelCounts) -> Iterator[None]:
        """Of a column with too many levels, say that it mostly holds numbers where it does: then that is why."""
        try:
            yield
        except DataError:
            _refuse_strays(self.rows, column, counts)
            raise

    def finish(self) -> Encoder:
        """The encoder for rows such as these."""
        encodings = tuple(encoding for encoding, _ in self._settled())
        groups = tuple((group, tuple(columns)) for group, columns in self.rows.groups.items())
        telling = {encoding.column for encoding in encodings}
        for group, columns in groups:
            if not telling & set(columns):
                raise DataError(
                    f"Every column of group {group!r} in {self.rows.path} is constant or empty; leave the group out."
                )
        families = tuple((name, self.rows.families[name]) for name in self.rows.families if name in telling)
        return Encoder(encodings, groups, self.missing, self.rows.missing_texts, families, self.rows.input_names)

    def statistics(self) -> ColumnStatistics:
        """Statistics of the encoded columns over all rows seen: what `learn_scaling` needs, without another pass."""
        columns = [column for _, described in self._settled() for column in described]
        mean, squares, smallest, largest = np.array(columns, dtype=np.float64).reshape(-1, 4).T
        return ColumnStatistics(self.weight, mean, squares, smallest, largest)

    def _settled(self) -> list[tuple[ColumnEncoding, list[Described]]]:
        """The encoding of every column that says anything, and what its encoded columns look like."""
        if self._known is None:
            self._known = list(self._settle())
        return self._known

    def _settle(self) -> Iterator[tuple[ColumnEncoding, list[Described]]]:
        if self.weight == 0:
            raise DataError(f"{self.rows.path} holds no rows{' with a weight' if self.rows.weight_name else ''}.")
        places: dict[str, list[int]] = {}
        for position, measure in enumerate(self._measures):
            places.setdefault(measure.column, []).append(position)
        for column in self.rows.input_names:
            if column in self._levels:
                yield self._category(column, self._levels[column])
            elif column in places:
                yield from self._measured(column, places[column])

    def _category(self, column: str, counts: LevelCounts) -> tuple[ColumnEncoding, list[Described]]:
        _refuse_strays(self.rows, column, counts)
        if column in self._sums and counts.n_levels > _MOST_ONE_HOT:
            return level_means(column, self._sums[column].settled())
        levels = counts.most_frequent(self.max_levels)
        encoding = CategoryEncoding(column, levels, missing=counts.has_missing, other=counts.n_levels > len(levels))
        weights = [counts.weight_of(level) for level in levels]
        rest = self.weight - sum(weights)
        if encoding.missing:
            weights.append(counts.weight_of(None))
            rest -= weights[-1]
        if encoding.other:
            weights.append(rest)
        return encoding, [self._indicator(weight) for weight in weights]

    def _measured(self, column: str, places: list[int]) -> Iterator[tuple[ColumnEncoding, list[Described]]]:
        learned = self._moments
        if learned.weight[places[0]] == 0:
            return
        indicator = bool(learned.missing[places[0]])
        marks = [self._indicator(self.weight - learned.weight[places[0]])] if indicator else []
        # Rounding may put the mean of equal values beside them.
        means = np.clip(learned.mean, learned.smallest, learned.largest)
        kind = kind_of(self.rows.schema.field(column).type)
        if kind == "date":
            places = [place for place in places if learned.smallest[place] < learned.largest[place]]
            parts = tuple(self._measures[place].part for place in places)
            if "hour" in parts and column in self.rows.bare_dates:
                raise DataError(
                    f"Column {column!r} has no hours in {self.rows.bare_dates[column]}, but other files of "
                    f"{self.rows.path} have some; write all as timestamps, or all as dates."
                )
            encoding: ColumnEncoding = DateEncoding(column, parts, tuple(float(means[p]) for p in places), indicator)
        else:
            kind_of_encoding = FlagEncoding if kind == "flag" else NumberEncoding
            encoding = kind_of_encoding(column, float(means[places[0]]), indicator)
        described = [(means[p], learned.squares[p], learned.smallest[p], learned.largest[p]) for p in places]
        named = None
        if column in self._sums and isinstance(encoding, NumberEncoding):
            sums = self._sums[column].settled()
            named = named_numbers(encoding, sums) if len(sums.levels) <= MOST_LEVELS else None
        if named is not None:
            encoding, told = named
            yield encoding, described + marks + told
        elif encoding.names:
            yield encoding, described + marks

    def _indicator(self, weight: float) -> Described:
        """Mean, squares, smallest and largest of a column that is one in rows of this weight and zero elsewhere."""
        share = min(1.0, weight / self.weight)
        return share, self.weight * share * (1 - share), float(share == 1), float(share > 0)


@dataclass(frozen=True)
class _Measure:
    """A number that each row has: a value, or a calendar part of it."""

    column: str
    part: str

    def values(self, batch: pa.RecordBatch) -> NDArray[np.float64]:
        array = plain_column(batch, self.column)
        if self.part:
            return calendar_part(self.column, array, self.part)
        values = numbers(array)
        missing_in(values, self.column)
        return values


def _measures(rows: RawRows) -> Iterator[_Measure]:
    for column in rows.input_names:
        type_ = rows.schema.field(column).type
        kind = kind_of(type_)
        if kind is None:
            raise unfit_type(column, rows.path, type_, in_memory=not rows.files)
        if kind == "date":
            yield from (_Measure(column, part) for part in calendar_parts(type_))
        elif kind in ("number", "flag"):
            yield _Measure(column, "")


def _refuse_strays(rows: RawRows, column: str, counts: LevelCounts) -> None:
    """Raise when a column that nobody stated to be text turns out to hold mostly numbers or dates.

    The first block of a file, which `open_rows` looks at, need not show it. Only a refusal reads the column again.
    """
    if column not in rows.undeclared_texts:
        return
    judged = mostly(counts.levels.to_pylist(), counts.rows.tolist())
    if judged is None:
        return
    strays = find_strays((batch.column(0) for batch in rows.batches([column])), judged)
    if strays is not None:
        raise stray_error(column, rows.path, strays, None if len(rows.files) == 1 else rows.place)
