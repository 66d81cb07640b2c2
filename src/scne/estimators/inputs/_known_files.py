"""Files that come to a fitted model: how their columns become its numbers, which are its targets, and predictions."""

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from scne.disk import without_secrets
from scne.estimators.inputs._files import check_numeric_targets
from scne.fitting import open_engine
from scne.passes import announce, stripe_rows

if TYPE_CHECKING:
    from scne.estimators._class_predictions import ClassPredictions
    from scne.estimators._regressor import FittedRegressor
    from scne.rows import Encoder, FileRows, RemotePath

# What labels are read as where their column's own type does not tell, by the type of the classes.
_LABEL_KINDS = {"O": "category", "U": "category", "b": "flag"}


def file_encoder(model: "FittedRegressor | ClassPredictions") -> "Encoder":
    """How columns of files become the numbers that a fitted model takes.

    That is the encoder of its fit or, where it was fitted on a frame of plain numbers, these columns by their names.
    """
    from scne.rows import number_encoder

    columns = model.fitted_.columns
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        raise ValueError(
            "This model was fitted on an array, whose columns have no names, and cannot find them in files; fit it on "
            "a data frame or on files (scne.open_rows), or pass an array."
        )
    return columns.encoder or number_encoder([str(name) for name in names], columns.means)


def label_kinds(model: "FittedRegressor | ClassPredictions", targets: Sequence[str]) -> dict[str, str]:
    """What columns of labels are read as: as the classes of the model are; no kinds for a regressor."""
    kind = _LABEL_KINDS.get(model.classes_.dtype.kind) if hasattr(model, "classes_") else None
    return {} if kind is None else dict.fromkeys(targets, kind)


def open_known(
    model: "FittedRegressor | ClassPredictions",
    path: "str | os.PathLike[str] | RemotePath",
    targets: Sequence[str] = (),
    keys: Sequence[str] = (),
    drop_missing_target: bool = True,
) -> "FileRows":
    """Open files as those of the fit were: the same columns by their names, read as there."""
    from scne.rows import open_rows

    encoder = file_encoder(model)
    # A key that is an input as well is read anyway.
    return open_rows(
        path,
        target=list(targets) or None,
        keys=[key for key in keys if key not in encoder.kinds],
        kinds=label_kinds(model, targets),
        like=encoder,
        drop_missing_target=drop_missing_target,
    )


def opened(model: "FittedRegressor | ClassPredictions", X: Any, *, with_targets: bool = False) -> Any:
    """The rows of a path, with the targets of the fit if asked for; anything else as it is."""
    if not isinstance(X, str | os.PathLike):
        return X
    check_is_fitted(model)
    # A model of arrays is refused for that, whatever else is missing.
    file_encoder(model)
    data = getattr(model, "data_", None)
    if with_targets and data is None:
        raise ValueError(
            f"X is the path {without_secrets(X)!r}, but this model was fitted in memory and does not know its target's "
            f"name; pass scne.open_rows({without_secrets(X)!r}, target=COLUMN)."
        )
    return open_known(model, X, data["target_names"] if with_targets and data is not None else ())


def check_targets(model: "FittedRegressor", files: "FileRows") -> None:
    """Refuse files that were opened without a target, or with others than those of the fit."""
    if not files.target_names:
        raise ValueError(f"The rows of {files.path} were opened without a target; pass open_rows(..., target=COLUMN).")
    check_numeric_targets(files)
    data, n_outputs = model.fitted_.columns.data, model.fitted_.n_outputs
    fitted_names = None if data is None else list(data["target_names"])
    if fitted_names is not None and list(files.target_names) != fitted_names:
        raise ValueError(
            f"The rows of {files.path} were opened with target {list(files.target_names)}, but this model was fitted "
            f"to {fitted_names}."
        )
    if len(files.target_names) != n_outputs:
        raise ValueError(
            f"The rows of {files.path} were opened with {len(files.target_names)} target(s), but this model was fitted "
            f"to {n_outputs}; they must be equal."
        )


def predict_batches(
    model: "FittedRegressor | ClassPredictions", files: "FileRows", columns: Sequence[str] | None = None
) -> Iterator[tuple[Any, NDArray[np.float64]]]:
    """Record batches of files with a fitted model's outputs (n, q) for them, in the order of the rows.

    They are the predictions of a regressor; those of a classifier become probabilities by `probability_map_`. `columns`
    are those that are read; None is all.
    """
    encoder = file_encoder(model)
    files = files.read_as(encoder)
    total = files.count_rows()
    rows = stripe_rows(total)
    done = 0
    with open_engine(model.device, "float64", model.n_jobs) as engine:
        for batch in files.batches(columns, rows=rows):
            outputs = model.fitted_.outputs(encoder.transform(batch), engine)
            done += batch.num_rows
            announce("predicting", -(-done // rows), -(-total // rows), total)
            yield batch, outputs


def file_outputs(model: "FittedRegressor | ClassPredictions", files: "FileRows") -> Iterator[NDArray[np.float64]]:
    """Outputs (n, q) for all rows of files, batch by batch; targets, which some may lack, are not read."""
    inputs = [encoding.column for encoding in file_encoder(model).encodings]
    return (outputs for _, outputs in predict_batches(model, files, inputs))
