"""Encodings by the mean target of a level, from sums by level and fold."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from scne.rows._encodings import NumberEncoding
from scne.rows._level_encodings import LevelMeanEncoding, NamedNumberEncoding
from scne.rows._level_sums import N_FOLDS, Cells, CrossedMeans, LevelSums, crossed_means, explained

# Mean, squares, smallest and largest of an encoded column.
Described = tuple[float, float, float, float]
# A whole number names something when means by number explain so much more of the target than means by ranges of it.
_NAMES_FROM, _GAIN, _RANGES = 30, 0.02, 64
# Values by which a column shows that it holds no whole numbers, most of the time.
_FIRST_VALUES = 64
# Rows of a long batch, and the share of different numbers from which on they name nothing.
_MANY_ROWS, _MOST_DIFFERENT = 1 << 14, 0.9


def level_means(column: str, sums: LevelSums) -> tuple[LevelMeanEncoding, list[Described]]:
    """The encoding of a text with many levels, and what its columns look like."""
    ordered = _sorted(sums)
    told, n = ordered.told, len(ordered.levels)
    missing = told.default if ordered.missing is None else told.means[n]
    crossed = told.crossed
    if ordered.missing is None:
        crossed = np.concatenate([crossed, np.broadcast_to(told.default, (N_FOLDS, 1, len(told.default)))], axis=1)
    encoding = LevelMeanEncoding(
        column,
        tuple(ordered.levels),
        tuple(told.means[:n].ravel().tolist()),
        tuple(missing.tolist()),
        tuple(told.default.tolist()),
        crossed,
    )
    return encoding, _described(ordered.cells, told.crossed)


def named_numbers(plain: NumberEncoding, sums: LevelSums) -> tuple[NamedNumberEncoding, list[Described]] | None:
    """The encoding of whole numbers that name things; None where they do not seem to.

    They do when there are thirty different ones at least, most of them more than once, and when the means of single
    numbers, told from fold to fold, explain more of the target than those of 64 ranges of numbers do: a quantity has
    neighbours that resemble each other, a name has not.
    """
    n_levels = len(sums.levels) - int(sums.levels.null_count)
    if n_levels < _NAMES_FROM or 2 * n_levels > sums.cells.weight.sum():
        return None
    ordered = _sorted(sums)
    if explained(ordered.cells, ordered.told.crossed) - _by_ranges(ordered) < _GAIN:
        return None
    told, n = ordered.told, len(ordered.levels)
    crossed = told.crossed[:, :n]
    # Rows without a number are told the mean of all, wherever they are.
    crossed = np.concatenate([crossed, np.broadcast_to(told.default, (N_FOLDS, 1, len(told.default)))], axis=1)
    encoding = NamedNumberEncoding(
        plain.column,
        plain.fill,
        plain.indicator,
        tuple(ordered.levels),
        tuple(told.means[:n].ravel().tolist()),
        tuple(told.default.tolist()),
        crossed,
    )
    return encoding, _described(ordered.cells, crossed[:, : ordered.cells.weight.shape[1]])


def may_name(type_: pa.DataType) -> bool:
    """Whether a column may hold whole numbers that name things."""
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_))


def may_still_name(sums: LevelSums, n_rows: int) -> bool:
    """Whether a batch of rows leaves it open that a column's numbers name things.

    Not when it is a long one and nearly all of its numbers differ: keys and quantities of many digits would take more
    memory than the rows, for nothing. The stripes of a pass depend on the number of rows alone.
    """
    return n_rows < _MANY_ROWS or len(sums.levels) <= _MOST_DIFFERENT * n_rows


def are_whole(values: NDArray[np.float64]) -> bool:
    """Whether all numbers are whole, but for those that are missing."""
    return all(np.all((some == np.floor(some)) | np.isnan(some)) for some in (values[:_FIRST_VALUES], values))


class _Sorted(NamedTuple):
    """Levels in order, without what is missing; their cells and means, what is missing last."""

    levels: list[Any]
    missing: int | None
    cells: Cells
    told: CrossedMeans


def _sorted(sums: LevelSums) -> _Sorted:
    missing = sums.levels.is_null().to_numpy(zero_copy_only=False)
    places = np.flatnonzero(~missing)
    present = sums.levels.take(pa.array(places)).to_pylist()
    order = sorted(range(len(present)), key=present.__getitem__)
    places = np.concatenate([places[order], np.flatnonzero(missing)])
    cells = sums.by_fold().take(places, 1)
    return _Sorted([present[k] for k in order], len(order) if missing.any() else None, cells, crossed_means(cells))


def _by_ranges(ordered: _Sorted) -> float:
    """The share of the variance that means of ranges of numbers, with about the same weight each, explain."""
    n = len(ordered.levels)
    weight = ordered.cells.weight.sum(axis=(0, 2))
    middle = np.cumsum(weight[:n]) - weight[:n] / 2
    ranges = np.minimum((middle / weight[:n].sum() * _RANGES).astype(np.intp), _RANGES - 1)
    if ordered.missing is not None:
        ranges = np.append(ranges, _RANGES)
    merged = [ordered.cells.take(np.flatnonzero(ranges == k), 1).over(1) for k in np.unique(ranges)]
    cells = Cells(*(np.stack([getattr(one, name) for one in merged], axis=1) for name in ("weight", "mean", "squares")))
    return explained(cells, crossed_means(cells).crossed)


def _described(cells: Cells, told: NDArray[np.float64]) -> list[Described]:
    """What columns look like that tell each fold and level, of some weight, a value (folds, levels, q)."""
    weight, described = cells.weight[:, :, 0], []
    for place in range(told.shape[2]):
        values = told[:, :, place]
        mean = float(np.average(values, weights=weight))
        there = values[weight > 0]
        squares = float((weight * (values - mean) ** 2).sum())
        described.append((mean, squares, float(there.min()), float(there.max())))
    return described
