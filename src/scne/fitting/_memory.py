"""How much memory a fit on files takes beyond the imports of its process, stage by stage.

Every term is the size of arrays that the code holds at the same time. `docs/large_data.md` has the model in words, and
`benchmarks/memory.py` checks it against what the system counts.
"""

from dataclasses import dataclass

from scne.networks import FEWEST_RAMPS, KERNELS
from scne.passes import stripe_rows

# Rows below which a search is not shortened to fit the memory: with fewer, nodes follow chance.
FEWEST_SEARCH_ROWS = 5_000
_FLOAT32_FROM_ROWS = 5_000
# Numbers that are scaled at a time, with their copies, in bytes; 64 rows at least go together.
_SCALED_BYTES, _SCALED_ROWS = 3 * (8 << 20), 64
_START_ROWS, _BATCH_ROWS = 4_000, 256
_GRAM_BYTES = 1 << 24
_MOST_RAMPS, _FINE_RAMPS, _MOST_FINE_RAMPS = 256, 32, 512
# Interpreter, buffers of threads, and what allocators keep between two requests: shares of all, more of texts, and of
# what was read.
_BASE_BYTES, _KEPT_SHARE, _KEPT_OF_TEXTS, _KEPT_OF_FOOTER, _KEPT_OF_PIECE = 40e6, 0.05, 0.22, 0.2, 0.5


@dataclass(frozen=True)
class FitShape:
    """What the memory of a fit on files depends on.

    Attributes
    ----------
    n_rows : int or None
        None for text files, which are not counted yet.
    n_columns, n_graded : int
        Encoded columns, and those among them that get ramps.
    n_targets : int
    row_bytes : float
        Of a row as it is read, before it is encoded.
    footer_bytes, piece_bytes : float
        What reading takes: the parsed footer of a Parquet file, and what is decoded at a time.
    level_bytes : float
        Texts of which the rows are counted.
    n_networks, n_nodes : int
        n_nodes for each network, direct links among them.
    n_candidates, pool_rows : int, int or None
    ramps : int or None
        Ramps of a column; 0 for scalings without them, None when the rows and columns decide.
    tuned, blended : bool
        Whether nodes are tuned, one network a thread; and whether a trend is judged.
    double : bool
        Whether the search runs in float64 whatever the rows.
    held_out : float
        Share of the rows of the search.
    widest : float or None
        Share of the columns that the largest group has; None where every network looks at all of them.
    stored_basis : bool
        Whether the orthonormal basis of the search is kept.
    tries_kinds : bool
        Whether networks of several kinds are tried, with more ramps and with uncorrelated features.
    """

    n_rows: int | None
    n_columns: int
    n_graded: int
    n_targets: int
    row_bytes: float
    footer_bytes: float
    piece_bytes: float
    level_bytes: float
    n_networks: int
    n_nodes: int
    n_candidates: int
    pool_rows: int | None
    ramps: int | None
    tuned: bool
    blended: bool
    double: bool
    held_out: float
    widest: float | None = None
    stored_basis: bool = True
    tries_kinds: bool = False

    def n_features(self, rows: int) -> int:
        """Columns and ramps."""
        ramps = self.ramps
        if ramps is None:
            ramps = max(2, min(12 if rows >= 12_000 else 8, _MOST_RAMPS // max(1, self.n_graded)))
        return self.n_columns + ramps * self.n_graded

    def most_features(self, rows: int) -> int:
        """The same of the kind of network that sees most."""
        fine = self.n_columns + min(_FINE_RAMPS * self.n_graded, _MOST_FINE_RAMPS)
        return max(self.n_features(rows), fine if self.tries_kinds else 0)

    @property
    def stripe(self) -> int:
        """Rows of a stripe."""
        return stripe_rows(self.n_rows or 1 << 40)

    def search_bytes(self, rows: int) -> float:
        """Of one number in the search."""
        return 8.0 if self.double or rows < _FLOAT32_FROM_ROWS else 4.0


def needed_bytes(shape: FitShape, rows: int, threads: int) -> float:
    """Memory of a fit with so many rows in the search, on so many threads: that of its largest stage."""
    kept = _KEPT_SHARE + (_KEPT_OF_TEXTS if shape.level_bytes else 0.0)
    left_over = _KEPT_OF_FOOTER * shape.footer_bytes + _KEPT_OF_PIECE * shape.piece_bytes + _BASE_BYTES
    return (1 + kept) * max(stage_bytes(shape, rows, threads).values()) + left_over


def stage_bytes(shape: FitShape, rows: int, threads: int) -> dict[str, float]:
    """Memory of each stage, in bytes.

    Examples
    --------
    >>> shape = FitShape(1_000_000, 20, 20, 1, 168.0, 0.0, 5e7, 0.0, 6, 100, 50, 2_000, None, True, True, False, 0.15)
    >>> stages = stage_bytes(shape, 100_000, 2)
    >>> {stage: round(stages[stage] / 1e6) for stage in ("learning columns", "building networks", "judging")}
    {'learning columns': 115, 'building networks': 169, 'judging': 47}
    """
    sample = 8.0 * rows * (shape.n_columns + shape.n_targets)
    return {
        "learning columns": _learning(shape, rows, threads),
        "building networks": sample + _building(shape, rows, threads),
        "summing rows": sample + _summing(shape, threads),
        "judging": sample + _judging(shape, rows),
    }


def _reading(shape: FitShape) -> float:
    """Footer, piece and the batch that is cut from it."""
    return shape.footer_bytes + 1.6 * shape.piece_bytes + 2.0 * shape.stripe * shape.row_bytes


def _scaling(features: int) -> float:
    """Features of some rows, and what they are made of."""
    return max(_SCALED_BYTES, 3 * 8.0 * _SCALED_ROWS * features)


def _in_flight(stripe_bytes: float, threads: int) -> float:
    """Stripes that are being worked on, and with several threads one that waits."""
    return stripe_bytes * (threads + 1 if threads > 1 else 1)


def in_flight_bytes(shape: FitShape, threads: int) -> float:
    """What an engine may hand out at a time, so that every thread has a stripe."""
    return _in_flight(shape.stripe * max(shape.row_bytes, 8.0 * shape.n_columns), threads)


def _learning(shape: FitShape, rows: int, threads: int) -> float:
    drawn = rows * shape.row_bytes
    sample = 8.0 * rows * (shape.n_columns + shape.n_targets)
    passing = _reading(shape) + shape.level_bytes + 1.25 * drawn + _in_flight(shape.stripe * shape.row_bytes, threads)
    # The drawn rows are let go as they are encoded.
    return max(passing, shape.level_bytes + max(drawn, sample) + 0.2 * drawn)


def _members(shape: FitShape, features: int) -> float:
    """Nodes of all networks, as they were found and as they were tuned."""
    return 2 * 8.0 * (shape.n_networks if shape.widest is None else 1) * features * shape.n_nodes


def _building(shape: FitShape, rows: int, threads: int) -> float:
    number, in_all = shape.search_bytes(rows), shape.most_features(rows)
    features = in_all if shape.widest is None else int(in_all * shape.widest)
    at_once = min(threads, shape.n_networks) if shape.tuned else 1
    scaled = number * rows * (features + 1) + 40.0 * rows
    if shape.tries_kinds:
        # The usual features with their uncorrelated twins, and those of many ramps. On one thread they come one after
        # the other, but what was let go is not back in time: a fit of 270 MB by the larger of both took 400.
        scaled += number * 2 * rows * (shape.n_features(rows) + 1)
    if shape.tuned and in_all - shape.n_columns >= FEWEST_RAMPS * shape.n_graded > 0:
        # One number for all ramps of a column, and the columns once more.
        scaled += 4.0 * rows * (shape.n_columns + shape.n_graded + 1)
    pool = min(rows, shape.pool_rows or rows)
    # Rows on which candidates are compared are copied, but for a search on all of them that holds none out.
    compared = 0.0 if pool == rows and not shape.held_out else number * pool * (features + 1)
    basis = number * pool * shape.n_nodes if shape.stored_basis else 0.0
    weights = features * (shape.n_nodes * (3 * 8 + (6 * 4 if shape.tuned else 0)) + 3 * 8 * shape.n_candidates)
    tuning = 12.0 * _START_ROWS * shape.n_nodes + 8.0 * _BATCH_ROWS * (features + 3 * shape.n_nodes)
    network = weights + basis + (tuning if shape.tuned else 0.0)
    if not shape.stored_basis:
        # Nodes are computed again from a stripe in float64.
        network += 2 * 8.0 * min(pool, 4 * stripe_rows(pool)) * (features + 1)
    # Networks on the same columns share their scaled rows.
    shared, own = (scaled + compared, network) if shape.widest is None else (0.0, scaled + compared + network)
    return shared + max(_scaling(features), at_once * own + _members(shape, in_all))


def _summing(shape: FitShape, threads: int) -> float:
    stripe, nodes = shape.stripe, shape.n_networks * shape.n_nodes
    features = shape.most_features(12_000)
    block = 8.0 * stripe * shape.n_columns
    part = min(stripe, max(256, int(_GRAM_BYTES / (8 * nodes)) // 256 * 256))
    # Compiled kernels make features of a few rows at a time, in the cache.
    kernel = (0.0 if KERNELS else _scaling(features)) + 2 * 8.0 * part * nodes
    gram = 8.0 * nodes**2 * (2 * threads + 4)
    ahead = (2 if block > 1 << 24 else 3) * block
    return _members(shape, features) + _reading(shape) + ahead + _in_flight(block, threads) + threads * kernel + gram


def _judging(shape: FitShape, rows: int) -> float:
    held = 2 * 8.0 * shape.held_out * rows * shape.n_columns
    square = 8.0 * shape.n_columns**2
    line = max(8.0 * rows * shape.n_columns + square, 2 * square) + _SCALED_BYTES / 3 if shape.blended else 0.0
    return held + max(line, _SCALED_BYTES / 3) + _members(shape, shape.most_features(rows)) / 2
