"""Labels of classes in files: the column that holds them is read as indicators of the classes, which are numbers."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from scne.rows._batches import numbers
from scne.rows._data_error import DataError, RefusedValue, listing
from scne.rows._indicators import one_hot
from scne.rows._schemas import is_numeric
from scne.rows._type_changes import converted

Label: TypeAlias = str | bool | int | float


@dataclass(frozen=True, eq=False)
class LabelColumn:
    """How a column of labels, and a column of weights where there is one, become those that a fit reads.

    Attributes
    ----------
    field : pyarrow.Field
        The column of labels as it is read.
    classes : tuple of str, bool, int or float
        In their order.
    indicators : tuple of str
        The columns that stand in its place: one for two classes, else one for each (see `one_hot`).
    class_weights : ndarray of shape (K,) or None
        What a row of each class counts, times its own weight; None is 1.
    weight_name : str or None
        The column of weights; None when every row counts as one.
    stored_weight : bool
        Whether the files hold that column.
    """

    field: pa.Field
    classes: tuple[Label, ...]
    indicators: tuple[str, ...]
    class_weights: NDArray[np.float64] | None
    weight_name: str | None
    stored_weight: bool

    def schema(self, stored: pa.Schema) -> pa.Schema:
        """The columns that are read, of those that the files have."""
        fields = [column for column in stored if column.name not in (self.field.name, self.weight_name)]
        made = self.indicators if self.weight_name is None else (*self.indicators, self.weight_name)
        return pa.schema([*fields, *(pa.field(name, pa.float64()) for name in made)])

    def stored_names(self, names: Sequence[str]) -> list[str]:
        """The columns of the files that these are made of."""
        by_class = self.weight_name in names and self.class_weights is not None
        left = [
            name for name in names if name not in self.indicators and (name != self.weight_name or self.stored_weight)
        ]
        return [*left, self.field.name] if by_class or set(names) & set(self.indicators) else left

    def made(self, batch: pa.RecordBatch, names: Sequence[str], path: object) -> pa.RecordBatch:
        """Columns by their names, of a batch with those that they are made of; labels of no class are refused."""
        codes, columns = np.empty(0, dtype=np.intp), []
        if self.field.name in batch.schema.names:
            codes = self._known_codes(batch.column(self.field.name), path)
        targets = one_hot(codes, len(self.classes)).reshape(len(codes), len(self.indicators))
        for name in names:
            if name in self.indicators:
                columns.append(pa.array(np.ascontiguousarray(targets[:, self.indicators.index(name)])))
            elif name == self.weight_name and self.class_weights is not None:
                counted = numbers(batch.column(name)) if self.stored_weight else 1.0
                columns.append(pa.array(counted * self.class_weights[codes]))
            else:
                columns.append(batch.column(name))
        return pa.RecordBatch.from_arrays(columns, names=list(names))

    def _known_codes(self, column: pa.Array, path: object) -> NDArray[np.intp]:
        codes = class_codes(column, self.classes, self.field.name, path)
        if len(codes) and codes.min() < 0:
            row = int(np.argmin(codes))
            raise RefusedValue(
                f"The target column {self.field.name!r} holds the label {column[row].as_py()!r}",
                f"the classes are {listing(map(str, self.classes))}: leave such rows out, or fit a new model",
                row,
            )
        return codes


def label_column(
    schema: pa.Schema,
    name: str,
    classes: Sequence[Label],
    class_weights: NDArray[np.float64] | None,
    weight_name: str | None,
) -> LabelColumn:
    """The column of labels of files with these columns.

    Examples
    --------
    >>> schema = pa.schema([("x", pa.float64()), ("kind", pa.string())])
    >>> labels = label_column(schema, "kind", ["a", "b", "c"], None, None)
    >>> labels.indicators
    ('kind=a', 'kind=b', 'kind=c')
    >>> labels.made(pa.record_batch({"kind": ["c"]}), ["kind=a", "kind=c"], "x.csv").to_pylist()
    [{'kind=a': 0.0, 'kind=c': 1.0}]
    """
    shown = classes[1:] if len(classes) == 2 else classes
    taken = set(schema.names)
    indicators = []
    for label in shown:
        indicators.append(_free(f"{name}={label}", taken))
        taken.add(indicators[-1])
    stored = weight_name is not None
    if class_weights is not None and not stored:
        weight_name = _free("weight", taken)
    return LabelColumn(schema.field(name), tuple(classes), tuple(indicators), class_weights, weight_name, stored)


def labelled_chunks(
    chunks: Iterable[pa.RecordBatch],
    labels: LabelColumn,
    names: Sequence[str],
    start: int,
    path: object,
    place: Callable[[int], str],
) -> Iterator[pa.RecordBatch]:
    """Columns of chunks of the rows from `start` on; `place` says where a row is, and `path` where all of them are."""
    for chunk in chunks:
        try:
            made = labels.made(chunk, names, path)
        except RefusedValue as error:
            raise error.at(place(start + error.row)) from None
        start += chunk.num_rows
        yield made


def _free(wanted: str, taken: set[str]) -> str:
    while wanted in taken:
        wanted += "'"
    return wanted


def class_codes(column: pa.Array, classes: Sequence[Label], name: str, path: object) -> NDArray[np.intp]:
    """The place of each label among the classes, -1 where it is none of them.

    Numbers in the place of text are compared as text, as those of a CSV file that hold codes are.

    Examples
    --------
    >>> class_codes(pa.array(["b", "a", "x"]), ["a", "b"], "kind", "x.csv")
    array([ 1,  0, -1])
    >>> class_codes(pa.array([1.0, 0.5, 0.0]), [0, 1], "kind", "x.csv")
    array([ 1, -1,  0])
    """
    type_ = _compared_type(column.type, classes)
    values = converted(column, pa.field(name, type_), path)
    if pt.is_floating(type_):
        values = _without_minus_zero(values)
    places = pc.index_in(values, value_set=pa.array(classes, type_))
    return np.asarray(places.fill_null(-1).to_numpy(zero_copy_only=False)).astype(np.intp)


def totals_by_label(batch: pa.RecordBatch) -> dict[Label, float]:
    """What the rows of each label count together: of a batch with a column of labels, and one of weights if any.

    Examples
    --------
    >>> totals_by_label(pa.record_batch({"kind": ["b", "a", "b"], "weight": [1.0, 2.0, 0.5]}))
    {'b': 1.5, 'a': 2.0}
    """
    labels = batch.column(0)
    if is_numeric(labels.type) and not pt.is_integer(labels.type):
        labels = _without_minus_zero(labels.cast(pa.float64()))
    encoded = labels.dictionary_encode()
    weights = numbers(batch.column(1)) if batch.num_columns > 1 else None
    totals = np.bincount(encoded.indices.to_numpy(), weights, len(encoded.dictionary))
    return dict(zip(encoded.dictionary.to_pylist(), totals.astype(np.float64).tolist(), strict=True))


def _without_minus_zero(values: pa.Array) -> pa.Array:
    return pc.add(values, 0.0)


def _compared_type(type_: pa.DataType, classes: Sequence[Label]) -> pa.DataType:
    """The type in which the labels of a column are compared with classes, so that nothing is rounded."""
    if isinstance(classes[0], str):
        return pa.string()
    if isinstance(classes[0], bool):
        return pa.bool_()
    if not pt.is_integer(type_) or not all(isinstance(label, int) for label in classes):
        return pa.float64()
    negative = any(isinstance(label, int) and label < 0 for label in classes)
    return pa.uint64() if pt.is_uint64(type_) and not negative else pa.int64()


def check_label_type(type_: pa.DataType, name: str, path: object) -> None:
    """Refuse a target whose values are no labels.

    Examples
    --------
    >>> check_label_type(pa.date32(), "day", "a.parquet")
    Traceback (most recent call last):
    ...
    scne.rows._data_error.DataError: The target column 'day' of a.parquet holds values of type date32[day], but ...
    """
    if not (pt.is_string(type_) or pt.is_boolean(type_) or is_numeric(type_)):
        raise DataError(
            f"The target column {name!r} of {path} holds values of type {type_}, but labels of classes must be text, "
            f"true or false, or whole numbers; write it as one of them, or read it as text with kinds={{{name!r}: "
            f"'category'}} (--kind {name}=category)."
        )


def class_array(labels: Sequence[Label], type_: pa.DataType, name: str, path: object) -> np.ndarray:
    """Different labels of a column of a type as classes, in their order: objects for text, else of NumPy's own types.

    Whole numbers stay such where their files say so by `type_`, although those of CSV files are read as float64.

    Examples
    --------
    >>> class_array([2.0, 0.0], pa.int64(), "kind", "x.csv"), class_array(["b", "a"], pa.string(), "kind", "x.csv")
    (array([0, 2]), array(['a', 'b'], dtype=object))
    """
    ordered = sorted(labels)
    if pt.is_string(type_):
        return np.array(ordered, dtype=object)
    if pt.is_boolean(type_):
        return np.array(ordered, dtype=np.bool_)
    fraction = next((label for label in ordered if label != int(label)), None)
    if fraction is not None:
        raise DataError(
            f"The target column {name!r} of {path} holds {fraction!r}, but labels of classes must be text, true or "
            "false, or whole numbers; fit such a column by SCNERegressor or, if its numbers are names, read it as text "
            f"with kinds={{{name!r}: 'category'}} (--kind {name}=category)."
        )
    dtype = np.float64 if pt.is_decimal(type_) else type_.to_pandas_dtype()
    return np.array([int(label) for label in ordered] if pt.is_integer(type_) else ordered, dtype=dtype)
