"""SCNE as a stage of Spark's own pipelines: `SparkSCNERegressor` is an Estimator of `pyspark.ml`.

>>> from scne.spark import SparkSCNERegressor
>>> stage = SparkSCNERegressor(features_col=["TEMP", "PRES"], label_col="PM2.5", random_state=0)
>>> stage.getOrDefault(stage.labelCol)
'PM2.5'
"""

# PySpark's functions have no types here.
# mypy: allow-untyped-calls

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

try:
    from pyspark.ml import Estimator, Model
    from pyspark.ml.param import Param, Params
    from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReadable, MLReader, MLWritable, MLWriter
except ImportError as error:
    raise ImportError('scne.spark needs PySpark, which is not installed: pip install "scne[spark]".') from error

from scne.estimators import SCNERegressor, load_model, predict_frame, save_model

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["SparkSCNEModel", "SparkSCNERegressor"]


class _Columns(Params):
    """The columns that both stages know."""

    featuresCol: "Param[Any]" = Param(Params._dummy(), "featuresCol", "a column of vectors, or names of columns")
    labelCol: "Param[Any]" = Param(Params._dummy(), "labelCol", "the column to predict")
    weightCol: "Param[Any]" = Param(Params._dummy(), "weightCol", "the column of row weights, or None")
    predictionCol: "Param[Any]" = Param(Params._dummy(), "predictionCol", "the column of predictions")
    settings: "Param[Any]" = Param(Params._dummy(), "settings", "what SCNERegressor is made with")


class SparkSCNERegressor(Estimator, _Columns, MLWritable, MLReadable):
    """An `SCNERegressor` that is fitted to a Spark frame.

    Parameters
    ----------
    features_col : str or sequence of str, default="features"
        A column of vectors, or the names of columns of numbers, text, dates, true and false.
    label_col : str, default="label"
    weight_col : str or None, default=None
    prediction_col : str, default="prediction"
    **settings
        Of `SCNERegressor`, such as ``effort=2`` or ``groups={"gases": ["SO2", "NO2"]}``. A stage that is to be saved
        before it is fitted takes numbers, text, lists and mappings.

    Examples
    --------
    >>> SparkSCNERegressor(label_col="y", effort=2, random_state=0).regressor()
    SCNERegressor(effort=2, random_state=0)
    """

    def __init__(
        self,
        features_col: "str | list[str]" = "features",
        label_col: str = "label",
        weight_col: str | None = None,
        prediction_col: str = "prediction",
        **settings: Any,
    ) -> None:
        super().__init__()
        features = features_col if isinstance(features_col, str) else list(features_col)
        self._set(featuresCol=features, labelCol=label_col, weightCol=weight_col)
        self._set(predictionCol=prediction_col, settings=settings)
        self.regressor()

    def regressor(self) -> SCNERegressor:
        """What is fitted."""
        return SCNERegressor(**self.getOrDefault(self.settings))

    def _fit(self, dataset: "DataFrame") -> "SparkSCNEModel":
        features, label = self.getOrDefault(self.featuresCol), self.getOrDefault(self.labelCol)
        weight = self.getOrDefault(self.weightCol)
        frame, names = _spread(dataset, features, None)
        frame = frame.select(*map(_quoted, dict.fromkeys([*names, label, *([] if weight is None else [weight])])))
        fitted = self.regressor().fit(frame, label, weight)
        model: SparkSCNEModel = self._copyValues(SparkSCNEModel(fitted))
        return model

    def write(self) -> "MLWriter":
        """Spark's writer of this stage, which was not fitted yet."""
        try:
            json.dumps(self.getOrDefault(self.settings))
        except TypeError as error:
            raise TypeError(
                f"A setting of this stage cannot be written before it is fitted ({error}); save the fitted model, or "
                "use settings that are numbers, text, lists and mappings."
            ) from error
        return DefaultParamsWriter(self)

    @classmethod
    def read(cls) -> "MLReader[SparkSCNERegressor]":
        """Spark's reader of such stages."""
        return DefaultParamsReader(cls)


class SparkSCNEModel(Model, _Columns, MLWritable, MLReadable):
    """A fitted `SCNERegressor` that adds a column of predictions to Spark frames, lazily.

    Attributes
    ----------
    model : SCNERegressor
        All that it can do beyond predicting, such as ``model.summary()``.
    """

    def __init__(self, model: Any = None) -> None:
        super().__init__()
        self.model = model

    def _transform(self, dataset: "DataFrame") -> "DataFrame":
        from pyspark.ml.functions import array_to_vector
        from pyspark.sql import functions as F

        arrays, vectors = _vectors_as_arrays(dataset)
        frame, names = _spread(arrays, self.getOrDefault(self.featuresCol), self.model.n_features_in_)
        column = self.getOrDefault(self.predictionCol)
        predicted = predict_frame(self.model, frame, column=column)
        added = set(names) - set(dataset.columns)
        return predicted.select(
            *(
                array_to_vector(F.col(_quoted(name))).alias(name, metadata=dataset.schema[name].metadata)
                if name in vectors
                else F.col(_quoted(name))
                for name in predicted.columns
                if name not in added
            )
        )

    def write(self) -> "MLWriter":
        """Spark's writer: its metadata, and the file of `scne.save` in a table of one row."""
        return _ModelWriter(self)

    @classmethod
    def read(cls) -> "MLReader[SparkSCNEModel]":
        """Spark's reader; it runs no code of the file."""
        return _ModelReader()


class _ModelWriter(MLWriter):
    def __init__(self, stage: SparkSCNEModel) -> None:
        super().__init__()
        self.stage = stage

    def saveImpl(self, path: str) -> None:
        settings = self.stage.getOrDefault(self.stage.settings)
        described = self.stage.copy()
        # The file of the model knows them, those that are no JSON as well.
        described._set(settings={name: value for name, value in settings.items() if _is_json(value)})
        DefaultParamsWriter.saveMetadata(described, path, self.sparkSession)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model.scne"
            save_model(self.stage.model, file)
            rows = [(bytearray(file.read_bytes()),)]
        self.sparkSession.createDataFrame(rows, "model binary").coalesce(1).write.parquet(f"{path}/data")


class _ModelReader(MLReader[SparkSCNEModel]):
    def load(self, path: str) -> SparkSCNEModel:
        metadata = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        row = self.sparkSession.read.parquet(f"{path}/data").head()
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model.scne"
            file.write_bytes(bytes(row[0]))
            stage = SparkSCNEModel(load_model(file))
        stage._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(stage, metadata)
        return stage


def _is_json(value: object) -> bool:
    try:
        json.dumps(value)
    except TypeError:
        return False
    return True


def _quoted(name: str) -> str:
    """A column's name for Spark, which reads points in others as paths."""
    return "`" + name.replace("`", "``") + "`"


def _spread(dataset: "DataFrame", features: "str | list[str]", width: int | None) -> "tuple[DataFrame, list[str]]":
    """A frame with a column for each value of a vector, and their names; columns of values as they are."""
    from pyspark.ml.functions import vector_to_array
    from pyspark.ml.linalg import VectorUDT
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType

    if not isinstance(features, str):
        return dataset, features
    if features not in dataset.columns:
        raise ValueError(f"features_col is {features!r}, but the columns are {dataset.columns}.")
    field = dataset.schema[features]
    if not isinstance(field.dataType, VectorUDT | ArrayType):
        return dataset, [features]
    values = F.col(_quoted(features))
    values = vector_to_array(values) if isinstance(field.dataType, VectorUDT) else values
    width = width or field.metadata.get("ml_attr", {}).get("num_attrs")
    if width is None:
        first = dataset.select(F.size(values)).head()
        if first is None:
            raise ValueError("The frame holds no rows.")
        width = int(first[0])
    names = [f"{features}[{place}]" for place in range(width)]
    return dataset.select("*", *(F.get(values, F.lit(k)).alias(name) for k, name in enumerate(names))), names


def _vectors_as_arrays(dataset: "DataFrame") -> "tuple[DataFrame, list[str]]":
    """Arrow has no type for Spark's vectors: they pass as arrays, and become vectors again."""
    from pyspark.ml.functions import vector_to_array
    from pyspark.ml.linalg import VectorUDT
    from pyspark.sql import functions as F

    vectors = [field.name for field in dataset.schema.fields if isinstance(field.dataType, VectorUDT)]
    columns = [
        vector_to_array(F.col(_quoted(name))).alias(name) if name in vectors else F.col(_quoted(name))
        for name in dataset.columns
    ]
    return dataset.select(*columns), vectors
