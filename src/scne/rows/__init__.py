"""Where rows live and how columns become numbers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from scne.rows._arrays import (
    MOST,
    Array,
    all_finite,
    ascending,
    cast,
    content_keys,
    device_of,
    is_foreign,
    is_frame,
    is_lazy,
    is_numpy,
    keys_in_numpy,
    like,
    namespace_of,
    to_numpy,
)
from scne.rows._blocks import (
    ArrayRows,
    ChangedRows,
    FeatureGroup,
    RowBlock,
    RowsOf,
    RowSource,
    SampledRows,
    all_columns,
    other_places,
    stacked,
)
from scne.rows._data_error import DataError, RemoteError, counted, listed, listing
from scne.rows._dates import (
    DateColumns,
    DatedScaling,
    find_dates,
    learn_dated_scaling,
    plausible_dates,
    whole_dates,
    with_dates,
)
from scne.rows._groups import matching, resolve_groups
from scne.rows._groups_file import read_groups
from scne.rows._identity import identity_of_files
from scne.rows._indicators import codes_of_targets, one_hot
from scne.rows._paths import irregular
from scne.rows._release import release_memory
from scne.rows._row_weights import (
    UNIT_SCALE,
    WeightFacts,
    WeightScale,
    check_weight_size,
    learn_weight_scale,
    weight_facts,
)
from scne.rows._scaling import (
    FULL_DEVIATIONS,
    INPUT_SCALINGS,
    SCALINGS,
    ColumnScaling,
    RampScaling,
    same_map,
)
from scne.rows._scaling_learner import (
    ColumnStatistics,
    column_statistics,
    learn_ramps,
    learn_scaling,
)
from scne.rows._warnings import ScneWarning, users_stacklevel, warn_user

if TYPE_CHECKING:
    from scne.rows._batches import numbers
    from scne.rows._encoded import EncodedFileRows, encoded_rows
    from scne.rows._encoder import Encoder, number_encoder
    from scne.rows._encoder_learner import EncoderLearner
    from scne.rows._file_parts import FileFacts
    from scne.rows._files import FileRows
    from scne.rows._frames import (
        array_table,
        check_frame,
        frame_pieces,
        frame_table,
        has_numbers_or_nothing,
        has_only_numbers,
        number_columns,
    )
    from scne.rows._held_rows import FIRST_ROWS
    from scne.rows._kept_rows import has_targets
    from scne.rows._labels import Label, check_label_type, class_array, class_codes, totals_by_label
    from scne.rows._opening import open_rows
    from scne.rows._opening_frames import frame_rows
    from scne.rows._reading_cost import reading_cost
    from scne.rows._readings import ColumnReading, column_readings
    from scne.rows._remote_paths import Location, RemotePath, location
    from scne.rows._sample import RowSample, SampleDrawer, row_keys, sample_positions
    from scne.rows._schemas import is_numeric, plain_type
    from scne.rows._tables import RawRows, TableRows

# Loading pyarrow's readers takes half a second, and whoever fits arrays does not need them.
_WITH_ARROW = {
    "EncodedFileRows": "_encoded",
    "Encoder": "_encoder",
    "EncoderLearner": "_encoder_learner",
    "FileFacts": "_file_parts",
    "FileRows": "_files",
    "Label": "_labels",
    "Location": "_remote_paths",
    "RawRows": "_tables",
    "RemotePath": "_remote_paths",
    "RowSample": "_sample",
    "SampleDrawer": "_sample",
    "TableRows": "_tables",
    "array_table": "_frames",
    "check_label_type": "_labels",
    "class_array": "_labels",
    "class_codes": "_labels",
    "encoded_rows": "_encoded",
    "check_frame": "_frames",
    "FIRST_ROWS": "_held_rows",
    "frame_pieces": "_frames",
    "frame_rows": "_opening_frames",
    "frame_table": "_frames",
    "has_numbers_or_nothing": "_frames",
    "has_only_numbers": "_frames",
    "has_targets": "_kept_rows",
    "number_columns": "_frames",
    "is_numeric": "_schemas",
    "location": "_remote_paths",
    "plain_type": "_schemas",
    "number_encoder": "_encoder",
    "numbers": "_batches",
    "open_rows": "_opening",
    "reading_cost": "_reading_cost",
    "ColumnReading": "_readings",
    "column_readings": "_readings",
    "row_keys": "_sample",
    "sample_positions": "_sample",
    "totals_by_label": "_labels",
}

# How the inputs of a network are scaled.
InputScaling = ColumnScaling | RampScaling | DatedScaling

__all__ = [
    "FIRST_ROWS",
    "FULL_DEVIATIONS",
    "INPUT_SCALINGS",
    "MOST",
    "SCALINGS",
    "UNIT_SCALE",
    "Array",
    "ArrayRows",
    "ChangedRows",
    "ColumnReading",
    "ColumnScaling",
    "ColumnStatistics",
    "DataError",
    "DateColumns",
    "DatedScaling",
    "EncodedFileRows",
    "Encoder",
    "EncoderLearner",
    "FeatureGroup",
    "FileFacts",
    "FileRows",
    "InputScaling",
    "Label",
    "Location",
    "RampScaling",
    "RawRows",
    "RemoteError",
    "RemotePath",
    "RowBlock",
    "RowSample",
    "RowSource",
    "RowsOf",
    "SampleDrawer",
    "SampledRows",
    "ScneWarning",
    "TableRows",
    "WeightFacts",
    "WeightScale",
    "all_columns",
    "all_finite",
    "array_table",
    "ascending",
    "cast",
    "check_frame",
    "check_label_type",
    "check_weight_size",
    "class_array",
    "class_codes",
    "codes_of_targets",
    "column_readings",
    "column_statistics",
    "content_keys",
    "counted",
    "device_of",
    "encoded_rows",
    "find_dates",
    "frame_pieces",
    "frame_rows",
    "frame_table",
    "has_numbers_or_nothing",
    "has_only_numbers",
    "has_targets",
    "identity_of_files",
    "irregular",
    "is_foreign",
    "is_frame",
    "is_lazy",
    "is_numeric",
    "is_numpy",
    "keys_in_numpy",
    "learn_dated_scaling",
    "learn_ramps",
    "learn_scaling",
    "learn_weight_scale",
    "like",
    "listed",
    "listing",
    "location",
    "matching",
    "namespace_of",
    "number_columns",
    "number_encoder",
    "numbers",
    "one_hot",
    "open_rows",
    "other_places",
    "plain_type",
    "plausible_dates",
    "read_groups",
    "reading_cost",
    "release_memory",
    "resolve_groups",
    "row_keys",
    "same_map",
    "sample_positions",
    "stacked",
    "to_numpy",
    "totals_by_label",
    "users_stacklevel",
    "warn_user",
    "weight_facts",
    "whole_dates",
    "with_dates",
]


def __getattr__(name: str) -> Any:
    if name not in _WITH_ARROW:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WITH_ARROW[name]}"), name)
