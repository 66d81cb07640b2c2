"""What leaves the process: model files of plain tensors and what they say of themselves, ONNX, C and Python source."""

from collections.abc import Callable, Mapping
from typing import Any

from scne.models._errors import ExportError, ModelFileError
from scne.models.export._c_header import to_c
from scne.models.export._onnx import to_onnx
from scne.models.export._python_source import to_python
from scne.models.file._container import FORMAT_VERSION
from scne.models.file._files import load_model, save_model
from scne.models.file._summary import GroupSummary, ModelSummary, describe_model

# What the methods of the estimators call (see `PredictingRegressor`).
WRITERS: Mapping[str, Callable[..., Any]] = {
    "save": save_model,
    "to_onnx": to_onnx,
    "to_c": to_c,
    "to_python": to_python,
}

__all__ = [
    "FORMAT_VERSION",
    "WRITERS",
    "ExportError",
    "GroupSummary",
    "ModelFileError",
    "ModelSummary",
    "describe_model",
    "load_model",
    "save_model",
    "to_c",
    "to_onnx",
    "to_python",
]
