"""From checked rows to a fitted model, step by step."""

from scne.fitting._baselines import HeldOutErrors
from scne.fitting._building import DrawnPlan, NetworkPlan
from scne.fitting._calibration import MOST_ERRORS, HeldOutOutputs, PredictionInterval, around, half_widths
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
from scne.fitting._engines import placed
from scne.fitting._fit import Fit, fit_networks
from scne.fitting._fitted import Columns, FittedNetworks, FittedTrend, split_weights
from scne.fitting._growing import grown
from scne.fitting._held_out import HeldOutSums
from scne.fitting._identity import fit_identity
from scne.fitting._later_rows import LaterRows
from scne.fitting._members import (
    BlockStatistics,
    Member,
    block_statistics,
    combined_statistics,
    mean_output,
    statistics_form,
    statistics_hold,
    statistics_to_store,
    stored_statistics,
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
    one_hot,
    probabilities,
)
from scne.fitting._running_errors import RunningErrors
from scne.fitting._training import TrainingData
from scne.fitting._trend import Trend, learn_line
from scne.fitting._updating import reweighted, updated
from scne.fitting._weights import (
    SCORE_SLACK,
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
    "MOST_ERRORS",
    "MOST_OUTPUT",
    "OUTPUT_SOFTNESS",
    "PRECISIONS",
    "PROBABILITY_FLOOR",
    "SCORE_SLACK",
    "BlockStatistics",
    "Checkpoint",
    "CheckpointError",
    "Columns",
    "DrawnPlan",
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
    "PredictionInterval",
    "ProbabilityMap",
    "RunningErrors",
    "ScalingPlan",
    "SolvedWeights",
    "TrainingData",
    "Trend",
    "TrendMode",
    "WeightSettings",
    "around",
    "block_statistics",
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
    "combined_statistics",
    "decisions",
    "fit_identity",
    "fit_map",
    "fit_networks",
    "grown",
    "half_widths",
    "keeping",
    "learn_line",
    "mean_output",
    "one_hot",
    "open_engine",
    "physical_memory",
    "placed",
    "plan_memory",
    "probabilities",
    "refuse_masks",
    "refuse_unfit_arrays",
    "reweighted",
    "split_weights",
    "statistics_form",
    "statistics_hold",
    "statistics_to_store",
    "stored_statistics",
    "updated",
]
