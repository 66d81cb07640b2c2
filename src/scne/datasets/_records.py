"""What is known of a public data set: its columns, its size and checksum, and the places that have it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa


@dataclass(frozen=True)
class Remote:
    """One file on a public server.

    Examples
    --------
    >>> Remote("https://example.org/static/rows.zip").file_name
    'rows.zip'
    """

    url: str

    @property
    def file_name(self) -> str:
        """The last part of the address: what the file is called on disk."""
        return unquote(urlsplit(self.url).path).rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Place:
    """A place that has the whole data set, in one file or several.

    Attributes
    ----------
    title : str
        What people call the place.
    remotes : tuple of Remote
        Files whose rows, one after the other, are the data set.
    layout : {"text", "svmlight"}
        "text" holds the file that `TextFile` describes, in whatever archive; "svmlight" holds the same rows written
        as ``target 1:value 2:value ...``, for which no checksum is published.
    """

    title: str
    remotes: tuple[Remote, ...]
    layout: Literal["text", "svmlight"] = "text"


@dataclass(frozen=True)
class TextFile:
    """The comma-separated file of a data set as it is once unpacked.

    Attributes
    ----------
    name : str
        What it is called inside an archive.
    n_bytes : int
    algorithm, digest : str
        A name that `hashlib` knows, and the checksum in hexadecimal digits.
    source : str
        Who published size and checksum.
    container : str
        The archive within an archive to look into first.
    """

    name: str
    n_bytes: int
    algorithm: str
    digest: str
    source: str
    container: str = ""


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The columns of a data set of numbers with one target.

    Attributes
    ----------
    columns : tuple of str
        All columns in the file's order, the target among them.
    target : str
    groups : mapping of str to sequence of str
        Its sources, by the names of their columns.
    """

    columns: tuple[str, ...]
    target: str
    groups: Mapping[str, Sequence[str]] = field(repr=False)

    @property
    def features(self) -> list[str]:
        """Columns to predict from."""
        return [name for name in self.columns if name != self.target]


@dataclass(frozen=True, kw_only=True)
class DatasetRecord(Columns):
    """A public data set, whose groups are the sources of the paper.

    Attributes
    ----------
    name : str
        What the command line calls it; the Parquet file is called the same.
    title, description : str
        One line, and the text of ``DESCR``.
    n_rows : int
    text : TextFile
    places : tuple of Place
        Tried in order.
    n_train : int or None
        Rows of the official training block, which come first.
    target_type : str
        Arrow's name of the type that the target is stored as; all other columns are float64, because their digits
        need more than single precision.
    target_range : (float, float) or None
        What the target may be.
    """

    name: str
    title: str
    description: str
    n_rows: int
    text: TextFile
    places: tuple[Place, ...]
    n_train: int | None = None
    target_type: str = "float64"
    target_range: tuple[float, float] | None = None

    @property
    def file_name(self) -> str:
        """The Parquet file in the data folder."""
        return f"{self.name}.parquet"

    @property
    def schema(self) -> pa.Schema:
        """Columns of the Parquet file with their types."""
        kinds = {self.target: pa.type_for_alias(self.target_type)}
        return pa.schema([(name, kinds.get(name, pa.float64())) for name in self.columns])

    def batch(self, inputs: np.ndarray, target: np.ndarray) -> pa.RecordBatch:
        """Rows of the Parquet file from inputs (n, d) and target (n,)."""
        columns = dict(zip(self.features, inputs.T, strict=True)) | {self.target: target}
        arrays = [pa.array(columns[entry.name]).cast(entry.type) for entry in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def named(groups: Mapping[str, range], features: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Groups of columns by the names of their columns."""
    return {name: tuple(features[column] for column in columns) for name, columns in groups.items()}
