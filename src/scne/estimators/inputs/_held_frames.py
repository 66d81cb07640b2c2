"""Frames of Spark and datasets of Ray at the door: rows that a cluster holds, as if they were rows in files."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from scne.estimators.inputs._data import GivenRows
from scne.rows import counted, listed, warn_user

if TYPE_CHECKING:
    import pyarrow as pa

    from scne.passes import HeldFrame


def is_spark_frame(X: object) -> bool:
    """Whether X is a Spark data frame; asked without loading Spark for those who do not use it."""
    pyspark = sys.modules.get("pyspark.sql")
    return pyspark is not None and isinstance(X, pyspark.DataFrame)


def is_ray_dataset(X: object) -> bool:
    """Whether X is a dataset of Ray; asked without loading Ray for those who do not use it."""
    ray = sys.modules.get("ray.data")
    return ray is not None and isinstance(X, ray.Dataset)


def is_cluster_frame(X: object) -> bool:
    """Whether a cluster of Spark or Ray holds X."""
    return is_spark_frame(X) or is_ray_dataset(X)


@contextmanager
def held_frames(estimator: Any, given: GivenRows, checkpoint: object) -> Iterator[GivenRows]:
    """Rows of a frame as rows in files, held by its cluster until the fit has ended; all others as they are."""
    if not is_cluster_frame(given.X):
        yield given
        return
    name = "Spark frame" if is_spark_frame(given.X) else "Ray dataset"
    if checkpoint is not None:
        raise ValueError(
            f"checkpoint was passed beside a {name}, whose contents cannot be fingerprinted without reading them; keep "
            "those of fits on files (scne.open_rows)."
        )
    targets, weight = _columns(name, "y", given.y), _columns(name, "sample_weight", given.sample_weight)
    if not targets:
        raise ValueError(f"y is None, but beside a {name} it must be the name of the column to predict.")
    if len(weight) > 1:
        raise ValueError(f"sample_weight names {len(weight)} columns, but rows have one weight.")
    for argument in ("X_val", "y_val", "client"):
        if getattr(given, argument) is not None:
            raise ValueError(
                f"{argument} was passed beside a {name}; the cluster is that of the frame, and validation rows are "
                "held out with validation_fraction."
            )
    groups = _groups(name, getattr(estimator, "groups", None))
    held = _held(given.X, targets)
    try:
        yield replace(
            given,
            X=_as_files(name, held, _first_rows(given.X, held.schema), targets, groups, weight),
            y=None,
            sample_weight=None,
            client=held.cluster,
        )
    finally:
        held.cluster.close()


def _columns(name: str, argument: str, columns: Any) -> list[str]:
    if columns is None or isinstance(columns, str):
        return [] if columns is None else [columns]
    if isinstance(columns, Sequence) and all(isinstance(column, str) for column in columns):
        return list(columns)
    raise TypeError(
        f"{argument} is a {type(columns).__name__}, but beside a {name} it must be the name of one of its columns."
    )


def _groups(name: str, groups: Any) -> dict[str, list[str]] | None:
    if groups is None:
        return None
    if isinstance(groups, Mapping):
        by_name = {
            str(group): [columns] if isinstance(columns, str) else list(columns) for group, columns in groups.items()
        }
        if all(isinstance(column, str) for columns in by_name.values() for column in columns):
            return by_name
    raise TypeError(f"groups is {groups!r}, but for a {name} it must map names of groups to names of columns.")


def _held(X: Any, targets: Sequence[str]) -> "HeldFrame":
    from scne.rows import DataError

    names = X.columns if is_spark_frame(X) else X.schema().names
    for target in targets:
        if target not in names:
            raise DataError(f"y is {target!r}, but the columns are {listed(map(repr, names))}.")
    if is_ray_dataset(X):
        from scne.passes import held_ray_dataset

        return held_ray_dataset(X, targets)
    if type(X).__module__.startswith("pyspark.sql.connect"):
        raise TypeError(
            "X is a frame of Spark Connect, which predictions take, but a fit runs jobs of its own on the cluster; fit "
            "in a session of the cluster itself (SparkSession.builder.master(...)), or write the frame to Parquet."
        )
    from scne.passes import held_spark_frame

    return held_spark_frame(X, targets)


def _first_rows(X: Any, schema: "pa.Schema") -> list[Any]:
    """Some rows that tell how long texts are; none where there are no texts."""
    from pyarrow import types

    from scne.rows import FIRST_ROWS, plain_type

    if not any(types.is_string(plain_type(field.type)) for field in schema):
        return []
    if is_spark_frame(X):
        batches: list[Any] = X.limit(FIRST_ROWS).toArrow().to_batches()
        return batches
    tables = X.limit(FIRST_ROWS).iter_batches(batch_size=None, batch_format="pyarrow")
    return [batch for table in tables for batch in table.to_batches()]


def _as_files(
    name: str,
    held: "HeldFrame",
    first: list[Any],
    targets: list[str],
    groups: dict[str, list[str]] | None,
    weight: list[str],
) -> Any:
    from scne.rows import frame_rows

    path = f"the {name}"
    if held.n_dropped:
        total = held.n_rows + held.n_dropped
        warn_user(
            f"{held.n_dropped:,} of {counted(total, 'row')} ({held.n_dropped / total:.2%}) of {path} have no value in "
            f"the target {listed(map(repr, targets))} and are left out."
        )
    return frame_rows(path, held.schema, held.n_rows, first, targets, groups, weight[0] if weight else None)
