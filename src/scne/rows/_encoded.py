"""Rows in files as a row source: stripes are read and encoded ahead of whoever uses them."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from queue import Empty, Full, Queue
from typing import TypeVar

import numpy as np

from scne.rows._batches import numbers as as_numbers
from scne.rows._blocks import RowBlock
from scne.rows._data_error import RefusedValue
from scne.rows._encoder import Encoder
from scne.rows._files import FileRows

Item = TypeVar("Item")

_AHEAD = 2
LARGE_STRIPE = 1 << 24
_LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class EncodedFileRows:
    """Rows in files, encoded: a `RowSource`.

    Attributes
    ----------
    files : FileRows
    encoder : Encoder
    n_rows : int
    learned : bool
        Whether the encoder was learned from these rows.
    """

    files: FileRows
    encoder: Encoder
    n_rows: int
    learned: bool = False

    @property
    def n_columns(self) -> int:
        """Number of encoded input columns d."""
        return len(self.encoder.names)

    def stripes(self, rows: int, start: int = 0, stop: int | None = None) -> Iterator[RowBlock]:
        """Yield the rows in order, `rows` at a time: the stripes that `ArrayRows` gives of the same rows.

        One thread reads and encodes up to two stripes ahead, of large ones one; Arrow and NumPy release the interpreter
        lock, so that this overlaps with what is done to the stripes.
        """
        large = 8 * rows * self.n_columns > LARGE_STRIPE
        return read_ahead(lambda: self._stripes(rows, start, stop), 1 if large else _AHEAD)

    def _stripes(self, rows: int, start: int, stop: int | None) -> Iterator[RowBlock]:
        files = self.files
        weight = [] if files.weight_name is None else [files.weight_name]
        columns = dict.fromkeys(
            [*(encoding.column for encoding in self.encoder.encodings), *files.target_names, *weight]
        )
        for batch in files.batches(columns, rows, start, stop):
            try:
                numbers = np.arange(start, start + batch.num_rows) if self.learned else None
                inputs = self.encoder.transform(batch, numbers)
            except RefusedValue as error:
                raise error.at(files.place(start + error.row)) from None
            targets = [as_numbers(batch.column(name)) for name in files.target_names]
            weights = [as_numbers(batch.column(name)) for name in weight]
            yield RowBlock(
                start, inputs, np.column_stack(targets) if targets else None, weights[0] if weights else None
            )
            start += batch.num_rows
            # Neither is held while the next ones are read.
            del inputs, batch


def encoded_rows(files: FileRows, encoder: Encoder, learned: bool = False) -> EncodedFileRows:
    """Rows in files as a row source; CSV files that no pass has read yet are counted first.

    `learned` says that the encoder was learned from these rows.

    Examples
    --------
    >>> import tempfile, pyarrow as pa, pyarrow.parquet as pq
    >>> from scne.rows import EncoderLearner, open_rows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(pa.table({"x": [1.0, 2.0, 3.0], "y": [4.0, 5.0, 6.0]}), f"{folder}/a.parquet")
    ...     files = open_rows(folder, target="y")
    ...     learner = EncoderLearner(files)
    ...     for batch in files.batches():
    ...         learner.update(batch)
    ...     source = encoded_rows(files, learner.finish())
    ...     [(block.start, block.stop) for block in source.stripes(2)]
    [(0, 2), (2, 3)]
    """
    files = files.read_as(encoder)
    return EncodedFileRows(files, encoder, files.count_rows(), learned)


class _Failure:
    """An exception on its way from the thread to the consumer."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class _End:
    """No more items."""


def read_ahead(start: Callable[[], Iterator[Item]], ahead: int = _AHEAD) -> Iterator[Item]:
    """The items of an iterator that runs in a thread of its own, at most `ahead` items before the consumer.

    What it raises is raised here. The thread ends when the consumer stops early and closes this generator.

    Examples
    --------
    >>> list(read_ahead(lambda: iter("abc")))
    ['a', 'b', 'c']
    """
    ready: Queue[Item | _Failure | _End] = Queue(maxsize=ahead)
    stopped = threading.Event()

    def put(item: Item | _Failure | _End) -> bool:
        while not stopped.is_set():
            try:
                ready.put(item, timeout=_LOOK_SECONDS)
            except Full:
                continue
            return True
        return False

    def work() -> None:
        try:
            items = start()
            for item in items:
                if not put(item):
                    break
        except BaseException as error:
            put(_Failure(error))
        else:
            put(_End())

    thread = threading.Thread(target=work, name="scne reader", daemon=True)
    thread.start()
    try:
        while not isinstance(item := ready.get(), _End):
            if isinstance(item, _Failure):
                raise item.error
            yield item
    finally:
        stopped.set()
        # An empty place lets a thread that waits to hand over an item see at once that nobody wants it.
        try:
            while True:
                ready.get_nowait()
        except Empty:
            pass
        thread.join()
