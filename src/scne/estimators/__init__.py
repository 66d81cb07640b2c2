"""Thin scikit-learn shells: validate, call, store."""

from importlib import import_module
from typing import TYPE_CHECKING

from scne.estimators._classifier import SCNEClassifier
from scne.estimators._dnne import DNNERegressor
from scne.estimators._effort import DEFAULT_EFFORT
from scne.estimators._intervals import refuse_levels, with_scales
from scne.estimators._network import networks_of
from scne.estimators._rvfl import RVFLRegressor
from scne.estimators._scn import SCNRegressor
from scne.estimators._scne import SCNERegressor
from scne.estimators.inputs._complete_files import complete_files
from scne.estimators.inputs._files import check_numeric_targets
from scne.estimators.inputs._frame_predictions import predict_frame
from scne.estimators.inputs._known_files import file_encoder, label_kinds, open_known, predict_batches
from scne.explain import ErrorRises, GroupImportances, PermutationImportances, error_decomposition
from scne.fitting import Checkpoint, CheckpointError, Member, PredictionInterval, half_widths
from scne.passes import ClusterError, ScneConvergenceWarning, ScneWarning, without_password

if TYPE_CHECKING:
    from scne.estimators._model_files import load_model, save_model
    from scne.estimators._model_summary import GroupSummary, ModelSummary, describe_model
    from scne.estimators.inputs._explained_rows import Background, TermSettings, contribution_batches

# A fit needs neither model files nor explanations.
_LATER = {
    "Background": "inputs._explained_rows",
    "GroupSummary": "_model_summary",
    "ModelSummary": "_model_summary",
    "TermSettings": "inputs._explained_rows",
    "contribution_batches": "inputs._explained_rows",
    "describe_model": "_model_summary",
    "load_model": "_model_files",
    "save_model": "_model_files",
}

__all__ = [
    "DEFAULT_EFFORT",
    "Background",
    "Checkpoint",
    "CheckpointError",
    "ClusterError",
    "DNNERegressor",
    "ErrorRises",
    "GroupImportances",
    "GroupSummary",
    "Member",
    "ModelSummary",
    "PermutationImportances",
    "PredictionInterval",
    "RVFLRegressor",
    "SCNEClassifier",
    "SCNERegressor",
    "SCNRegressor",
    "ScneConvergenceWarning",
    "ScneWarning",
    "TermSettings",
    "check_numeric_targets",
    "complete_files",
    "contribution_batches",
    "describe_model",
    "error_decomposition",
    "file_encoder",
    "half_widths",
    "label_kinds",
    "load_model",
    "networks_of",
    "open_known",
    "predict_batches",
    "predict_frame",
    "refuse_levels",
    "save_model",
    "with_scales",
    "without_password",
]


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module 'scne.estimators' has no attribute {name!r}")
    return getattr(import_module(f"scne.estimators.{_LATER[name]}"), name)
