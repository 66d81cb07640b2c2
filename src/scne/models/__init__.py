"""What leaves the process: model files of plain tensors, and what they say of themselves."""

from scne.models._container import FORMAT_VERSION
from scne.models._errors import ModelFileError
from scne.models._files import load_model, save_model
from scne.models._summary import GroupSummary, ModelSummary, describe_model

__all__ = [
    "FORMAT_VERSION",
    "GroupSummary",
    "ModelFileError",
    "ModelSummary",
    "describe_model",
    "load_model",
    "save_model",
]
