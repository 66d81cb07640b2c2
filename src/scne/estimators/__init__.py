"""Thin scikit-learn shells: validate, call, store."""

from scne.estimators._calibration import PredictionInterval, half_widths
from scne.estimators._checkpoint import Checkpoint
from scne.estimators._checkpoint_folder import CheckpointError
from scne.estimators._classifiers import SCNClassifier, SCNEClassifier
from scne.estimators._cluster_results import ClusterError, without_password
from scne.estimators._decomposition import error_decomposition
from scne.estimators._dnne import DNNERegressor
from scne.estimators._files import predict_batches
from scne.estimators._group_importances import GroupImportances
from scne.estimators._members import Member
from scne.estimators._permutation import ErrorRises, PermutationImportances
from scne.estimators._rvfl import RVFLRegressor
from scne.estimators._scn import SCNRegressor
from scne.estimators._scne import SCNERegressor
from scne.estimators._warnings import ScneConvergenceWarning, ScneWarning

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "ClusterError",
    "DNNERegressor",
    "ErrorRises",
    "GroupImportances",
    "Member",
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
