"""Thin scikit-learn shells: validate, call, store."""

from scne.estimators._class_base import NetworkClassifier
from scne.estimators._classifiers import SCNClassifier, SCNEClassifier
from scne.estimators._dnne import DNNERegressor
from scne.estimators._rvfl import RVFLRegressor
from scne.estimators._scn import SCNRegressor
from scne.estimators._scne import SCNERegressor
from scne.estimators.inputs._files import predict_batches
from scne.explain import ErrorRises, GroupImportances, PermutationImportances, error_decomposition
from scne.fitting import Checkpoint, CheckpointError, Member, PredictionInterval, half_widths
from scne.passes import ClusterError, ScneConvergenceWarning, ScneWarning, without_password

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "ClusterError",
    "DNNERegressor",
    "ErrorRises",
    "GroupImportances",
    "Member",
    "NetworkClassifier",
    "PermutationImportances",
    "PredictionInterval",
    "RVFLRegressor",
    "SCNClassifier",
    "SCNEClassifier",
    "SCNERegressor",
    "SCNRegressor",
    "ScneConvergenceWarning",
    "ScneWarning",
    "error_decomposition",
    "half_widths",
    "predict_batches",
    "without_password",
]
