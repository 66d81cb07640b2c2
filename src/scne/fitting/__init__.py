"""From checked rows to a fitted model, step by step."""

from scne.fitting._building import NetworkPlan
from scne.fitting._by_loss import fit_by_loss
from scne.fitting._calibration import MOST_ERRORS, HeldOutOutputs
from scne.fitting._checkpoint import Checkpoint, Form, check_fixed_seed, keeping
from scne.fitting._checkpoint_folder import CheckpointError
from scne.fitting._checks import (
    BASIS_BYTES,
    LARGEST,
    LARGEST_RIDGE,
    LARGEST_SCOPE,
    PRECISIONS,
    check_choice,
    check_gram_fits,
    check_increasing,
    check_integer,
    check_real,
    check_target_sizes,
    check_threads,
    open_engine,
    physical_memory,
    refuse_masks,
    refuse_unfit_arrays,
)
from scne.fitting._class_scores import ClassScores, class_scores
from scne.fitting._columns import Columns
from scne.fitting._drawn import DrawnPlan
from scne.fitting._engines import placed
from scne.fitting._fit import Fit, fit_networks
from scne.fitting._fitted import (
    MOST_LOG_SCALE,
    ErrorScale,
    FittedNetworks,
    HeldOutErrors,
    HeldOutSums,
    NotHeldError,
    RunningErrors,
    split_weights,
)
from scne.fitting._growing import grown
from scne.fitting._identity import fit_identity
from scne.fitting._intervals import NetworksWithScales, PredictionInterval, around, check_bounds, half_widths
from scne.fitting._members import (
    BlockStatistics,
    Member,
    block_statistics,
    combined_statistics,
    statistics_form,
    statistics_hold,
    statistics_to_store,
    stored_statistics,
    summed_output,
)
from scne.fitting._memory_plan import MemoryPlan, plan_memory
from scne.fitting._plan import FitPlan, MemberPlan, ScalingPlan, TrendMode
from scne.fitting._probabilities import (
    LEAST_OUTPUT,
    MOST_OUTPUT,
    OUTPUT_SOFTNESS,
    PROBABILITY_FLOOR,
    ProbabilityMap,
    decisions,
    fit_map,
    probabilities,
)
from scne.fitting._reweighting import WeighedRows, rounds_in_memory
from scne.fitting._training import TrainingData
from scne.fitting._trend import FittedTrend, Trend, learn_line
from scne.fitting._updating import LaterRows, reweighted, updated
from scne.fitting._weights import (
    MATRIX_FREE,
    SCORE_SLACK,
    SOLVER_NAMES,
    SolvedWeights,
    WeightSettings,
    check_weight_settings,
    checked_member_weights,
)

__all__ = [
    "BASIS_BYTES",
    "LARGEST",
    "LARGEST_RIDGE",
    "LARGEST_SCOPE",
    "LEAST_OUTPUT",
    "MATRIX_FREE",
    "MOST_ERRORS",
    "MOST_LOG_SCALE",
    "MOST_OUTPUT",
    "OUTPUT_SOFTNESS",
    "PRECISIONS",
    "PROBABILITY_FLOOR",
    "SCORE_SLACK",
    "SOLVER_NAMES",
    "BlockStatistics",
    "Checkpoint",
    "CheckpointError",
    "ClassScores",
    "Columns",
    "DrawnPlan",
    "ErrorScale",
    "Fit",
    "FitPlan",
    "FittedNetworks",
    "FittedTrend",
    "Form",
    "HeldOutErrors",
    "HeldOutOutputs",
    "HeldOutSums",
    "LaterRows",
    "Member",
    "MemberPlan",
    "MemoryPlan",
    "NetworkPlan",
    "NetworksWithScales",
    "NotHeldError",
    "PredictionInterval",
    "ProbabilityMap",
    "RunningErrors",
    "ScalingPlan",
    "SolvedWeights",
    "TrainingData",
    "Trend",
    "TrendMode",
    "WeighedRows",
    "WeightSettings",
    "around",
    "block_statistics",
    "check_bounds",
    "check_choice",
    "check_fixed_seed",
    "check_gram_fits",
    "check_increasing",
    "check_integer",
    "check_real",
    "check_target_sizes",
    "check_threads",
    "check_weight_settings",
    "checked_member_weights",
    "class_scores",
    "combined_statistics",
    "decisions",
    "fit_by_loss",
    "fit_identity",
    "fit_map",
    "fit_networks",
    "grown",
    "half_widths",
    "keeping",
    "learn_line",
    "open_engine",
    "physical_memory",
    "placed",
    "plan_memory",
    "probabilities",
    "refuse_masks",
    "refuse_unfit_arrays",
    "reweighted",
    "rounds_in_memory",
    "split_weights",
    "statistics_form",
    "statistics_hold",
    "statistics_to_store",
    "stored_statistics",
    "summed_output",
    "updated",
]
