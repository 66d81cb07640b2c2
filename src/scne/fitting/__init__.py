"""From checked rows to a fitted model, step by step."""

from scne.fitting._blend import blended
from scne.fitting._building import NetworkPlan, build_member, build_together
from scne.fitting._calibration import (
    MOST_ERRORS,
    HeldOutOutputs,
    PredictionInterval,
    around,
    errors_to_keep,
    half_widths,
    hearing_held_out,
    held_out_outputs,
    kept_errors,
)
from scne.fitting._checkpoint import Checkpoint, Form, check_fixed_seed, keeping
from scne.fitting._checkpoint_folder import CheckpointError
from scne.fitting._device import StreamedRows, placed
from scne.fitting._engines import PRECISIONS, open_engine
from scne.fitting._held_out import HeldOutSums
from scne.fitting._identity import fit_identity
from scne.fitting._limits import LARGEST, LARGEST_RIDGE, LARGEST_SCOPE, check_gram_fits, check_pool_fits
from scne.fitting._members import (
    BlockStatistics,
    Member,
    block_statistics,
    combined_statistics,
    ensemble_system,
    matrix_free_system,
    mean_output,
    member_outputs,
    statistics_form,
    statistics_hold,
    statistics_to_store,
    stored_statistics,
    validation_rows,
)
from scne.fitting._memory_plan import MemoryPlan, plan_memory
from scne.fitting._parameters import (
    as_float,
    check_bytes,
    check_choice,
    check_increasing,
    check_integer,
    check_real,
    check_threads,
)
from scne.fitting._probabilities import (
    FLOOR,
    LEAST,
    MOST,
    SOFTNESS,
    ProbabilityMap,
    decisions,
    fit_map,
    one_hot,
    probabilities,
)
from scne.fitting._running_errors import RunningErrors, joined_errors
from scne.fitting._site import BuildingSite, fitted_places, holds_out, open_site
from scne.fitting._sizes import check_target_sizes, refuse_unfit_arrays
from scne.fitting._training import TrainingData
from scne.fitting._trend import Trend, learn_trend, without_trend
from scne.fitting._weights import (
    SCORE_SLACK,
    SolvedWeights,
    WeightSettings,
    check_weight_settings,
    solve_again,
    solve_weights,
)

__all__ = [
    "BlockStatistics",
    "BuildingSite",
    "Checkpoint",
    "CheckpointError",
    "FLOOR",
    "Form",
    "HeldOutOutputs",
    "HeldOutSums",
    "LARGEST",
    "LARGEST_RIDGE",
    "LARGEST_SCOPE",
    "LEAST",
    "MOST",
    "MOST_ERRORS",
    "Member",
    "MemoryPlan",
    "NetworkPlan",
    "PRECISIONS",
    "PredictionInterval",
    "ProbabilityMap",
    "RunningErrors",
    "SCORE_SLACK",
    "SOFTNESS",
    "SolvedWeights",
    "StreamedRows",
    "TrainingData",
    "Trend",
    "WeightSettings",
    "around",
    "as_float",
    "blended",
    "block_statistics",
    "build_member",
    "build_together",
    "check_bytes",
    "check_choice",
    "check_fixed_seed",
    "check_gram_fits",
    "check_increasing",
    "check_integer",
    "check_pool_fits",
    "check_real",
    "check_target_sizes",
    "check_threads",
    "check_weight_settings",
    "combined_statistics",
    "decisions",
    "ensemble_system",
    "errors_to_keep",
    "fit_identity",
    "fit_map",
    "fitted_places",
    "half_widths",
    "hearing_held_out",
    "held_out_outputs",
    "holds_out",
    "joined_errors",
    "keeping",
    "kept_errors",
    "learn_trend",
    "matrix_free_system",
    "mean_output",
    "member_outputs",
    "one_hot",
    "open_engine",
    "open_site",
    "placed",
    "plan_memory",
    "probabilities",
    "refuse_unfit_arrays",
    "solve_again",
    "solve_weights",
    "statistics_form",
    "statistics_hold",
    "statistics_to_store",
    "stored_statistics",
    "validation_rows",
    "without_trend",
]
