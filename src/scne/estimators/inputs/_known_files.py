"""Files that come to a fitted model: how their columns become its numbers, and which of them are its targets."""

import os
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from scne.estimators._regressor import FittedRegressor
    from scne.rows import Encoder, FileRows


def file_encoder(model: "FittedRegressor") -> "Encoder":
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


def opened(model: "FittedRegressor", X: Any, *, with_targets: bool = False) -> Any:
    """The rows of a path, read as those of the fit were, with its targets if asked for; anything else as it is."""
    if not isinstance(X, str | os.PathLike):
        return X
    from scne.rows import open_rows

    check_is_fitted(model)
    encoder, data = file_encoder(model), model.fitted_.columns.data
    if with_targets and data is None:
        raise ValueError(
            f"X is the path {os.fspath(X)!r}, but this model was fitted in memory and does not know its target's "
            f"name; pass scne.open_rows({os.fspath(X)!r}, target=COLUMN)."
        )
    return open_rows(X, target=data["target_names"] if with_targets and data is not None else None, like=encoder)


def check_targets(model: "FittedRegressor", files: "FileRows") -> None:
    """Refuse files that were opened without a target, or with others than those of the fit."""
    if not files.target_names:
        raise ValueError(f"The rows of {files.path} were opened without a target; pass open_rows(..., target=COLUMN).")
    data, n_outputs = model.fitted_.columns.data, model.fitted_.n_outputs
    known = None if data is None else list(data["target_names"])
    if known is not None and list(files.target_names) != known:
        raise ValueError(
            f"The rows of {files.path} were opened with target {list(files.target_names)}, but this model was fitted "
            f"to {known}."
        )
    if len(files.target_names) != n_outputs:
        raise ValueError(
            f"The rows of {files.path} were opened with {len(files.target_names)} target(s), but this model was fitted "
            f"to {n_outputs}; they must be alike."
        )
