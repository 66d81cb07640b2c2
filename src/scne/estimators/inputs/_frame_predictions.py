"""Predictions for frames of Spark and datasets of Ray: a further column, computed once it is asked for."""

import pickle
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from scne.estimators.inputs._held_frames import is_ray_dataset, is_spark_frame
from scne.estimators.inputs._lazy import lean
from scne.passes import single_threaded_blas, with_plain_names


def predict_frame(model: Any, X: Any, method: str = "predict", column: str = "prediction") -> Any:
    """A frame or dataset with a column of what a method of a fitted model says of its rows; not computed yet."""
    names = X.columns if is_spark_frame(X) else X.schema().names
    fitted = getattr(model, "feature_names_in_", None)
    if fitted is None:
        raise ValueError(
            "This model was fitted on an array, whose columns have no names, and cannot find them in a frame; fit it "
            "on a data frame or on files (scne.open_rows)."
        )
    for name in fitted:
        if name not in names:
            raise ValueError(f"X has no column {name!r}, which the model was fitted on; its columns are {list(names)}.")
    if column in names:
        raise ValueError(f"X has a column {column!r} already; rename it, or leave it out.")
    packed, inputs = pickle.dumps(lean(model)), list(fitted)
    if is_ray_dataset(X):
        return X.map_batches(_TablePredictions(packed, method, inputs, column), batch_format="pyarrow")
    from pyspark.sql import types

    said = _said_of_nothing(model, method)
    kind: Any = {"f": types.DoubleType, "i": types.LongType, "u": types.LongType, "b": types.BooleanType}.get(
        said.dtype.kind, types.StringType
    )()
    schema = types.StructType(
        [*X.schema.fields, types.StructField(column, kind if said.ndim == 1 else types.ArrayType(kind))]
    )
    names = list(X.columns)
    return with_plain_names(X).mapInArrow(
        lambda batches: _predicted(batches, names, packed, method, inputs, column), schema
    )


def _said_of_nothing(model: Any, method: str) -> np.ndarray:
    """What has the type and the width of that which is said of rows."""
    if method == "predict":
        if hasattr(model, "classes_"):
            return np.asarray(model.classes_[:0])
        return np.empty(0) if model.fitted_.columns.flat_target else np.empty((0, 0))
    return np.empty((0, 0))


def _predicted(
    batches: Iterable[Any], names: list[str], packed: bytes, method: str, inputs: list[str], column: str
) -> Iterator[Any]:
    import pyarrow as pa

    predict = _TablePredictions(packed, method, inputs, column)
    for batch in batches:
        table = predict(pa.Table.from_batches([batch.rename_columns(names)]))
        yield from table.combine_chunks().to_batches()


class _TablePredictions:
    """A function of a table; the model travels as bytes, and is made of them where it is used first."""

    def __init__(self, packed: bytes, method: str, inputs: list[str], column: str) -> None:
        self.packed, self.method, self.inputs, self.column = packed, method, inputs, column
        self._model: Any = None

    def __call__(self, table: Any) -> Any:
        """The table with the column."""
        import pyarrow as pa

        if self._model is None:
            self._model = pickle.loads(self.packed)
        with single_threaded_blas():
            values = getattr(self._model, self.method)(table.select(self.inputs))
        # As Spark was told: whole numbers are long ones.
        values = values.astype(np.int64) if values.dtype.kind in "iu" else values
        return table.append_column(self.column, pa.array(list(values) if values.ndim > 1 else values))
