"""Rows of a data set from each form it is published in, as Arrow batches with the record's columns."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from scne.datasets._errors import DatasetError
from scne.datasets._records import DatasetRecord

BLOCK = 1 << 23
# Lines of svmlight may be two bytes long and become rows of all columns: a larger block could fill the memory.
SVMLIGHT_BLOCK = 1 << 19


def text_batches(stream: BinaryIO, record: DatasetRecord) -> Iterator[pa.RecordBatch]:
    """Batches of a comma-separated text without a header.

    Raises
    ------
    DatasetError
        For a line with more or fewer columns, or with something that is not a number.
    """
    schema = record.schema
    try:
        yield from pyarrow.csv.open_csv(
            stream,
            read_options=pyarrow.csv.ReadOptions(column_names=list(record.columns), block_size=BLOCK),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types={field.name: field.type for field in schema}, null_values=[], strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid as error:
        raise DatasetError(f"{record.text.name} cannot be read as {record.title}: {error}.") from error


def svmlight_batches(stream: BinaryIO, record: DatasetRecord) -> Iterator[pa.RecordBatch]:
    """Batches of a text in svmlight form: the target, then ``number:value`` from 1 on; a column not named is 0."""
    # Here, because scikit-learn's readers take a moment to load and are needed for one place alone.
    from sklearn.datasets import load_svmlight_file

    rest = b""
    while True:
        piece = stream.read(SVMLIGHT_BLOCK)
        if len(rest) > SVMLIGHT_BLOCK:
            raise DatasetError(f"The file cannot be read as {record.title}: a line has more than {len(rest):,} bytes.")
        whole, cut, rest = (rest + piece).rpartition(b"\n") if piece else (rest, b"", b"")
        if whole.strip():
            try:
                inputs, target = load_svmlight_file(
                    io.BytesIO(whole + cut), n_features=len(record.features), dtype=np.float64, zero_based=False
                )
            except ValueError as error:
                raise DatasetError(f"The file cannot be read as {record.title} in svmlight form: {error}.") from error
            try:
                batch = record.batch(inputs.toarray(), target)
            except pa.ArrowInvalid as error:
                raise DatasetError(f"{record.target} is not what {record.title} has there: {error}.") from error
            yield batch
        if not piece:
            return


def parquet_batches(path: Path, record: DatasetRecord) -> Iterator[pa.RecordBatch]:
    """Batches of a Parquet file that has the record's columns, in any order."""
    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            missing = [name for name in record.columns if name not in file.schema_arrow.names]
            if missing:
                raise DatasetError(
                    f"{path} lacks {len(missing)} of the {len(record.columns)} columns of {record.title}, "
                    f"{missing[0]} among them."
                )
            if file.metadata.num_rows != record.n_rows:
                raise DatasetError(
                    f"{path} has {file.metadata.num_rows:,} rows, but {record.title} has {record.n_rows:,}."
                )
            for batch in file.iter_batches(batch_size=8192, columns=list(record.columns)):
                yield batch.select(list(record.columns)).cast(record.schema)
    except pa.ArrowException as error:
        raise DatasetError(f"{path} cannot be read as {record.title}: {error}.") from error
