"""What leaves the process: model files of plain tensors, ONNX, C and Python source."""

from scne.models._errors import (
    ExportError,
    ModelFileError,
    Unreadable,
    Unstorable,
    damaged,
    shortened,
    shown,
    version_text,
)
from scne.models._skops import SKOPS_TYPES
from scne.models.export._c_header import to_c
from scne.models.export._classes import class_map
from scne.models.export._onnx import to_onnx
from scne.models.export._plan import ExportPlan, export_plan
from scne.models.export._python_source import to_python
from scne.models.file._classifier import StoredClassifier, read_classifier, store_classifier
from scne.models.file._container import FORMAT_VERSION, Content
from scne.models.file._encoder import read_encoder, store_encoder
from scne.models.file._files import read_content, write_content
from scne.models.file._networks import MOST_COLUMNS, read_networks, store_networks
from scne.models.file._shelf import Shelf, field

__all__ = [
    "FORMAT_VERSION",
    "MOST_COLUMNS",
    "SKOPS_TYPES",
    "Content",
    "ExportError",
    "ExportPlan",
    "ModelFileError",
    "Shelf",
    "StoredClassifier",
    "Unreadable",
    "Unstorable",
    "class_map",
    "damaged",
    "export_plan",
    "field",
    "read_classifier",
    "read_content",
    "read_encoder",
    "read_networks",
    "shortened",
    "shown",
    "store_classifier",
    "store_encoder",
    "store_networks",
    "to_c",
    "to_onnx",
    "to_python",
    "version_text",
    "write_content",
]
