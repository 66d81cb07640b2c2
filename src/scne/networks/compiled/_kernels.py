"""The compiled kernels, if they were built when the package was installed, and the structures that they read.

NumPy does the same where nothing was compiled. The kernels see of every node only the weights that are not zero, and
run without the interpreter, so that threads do not wait for each other.
"""

import ctypes
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scne.rows import warn_user

_FOLDER = Path(__file__).parent


class Kernels(NamedTuple):
    """The library, and how many numbers of single precision a vector of this processor has."""

    library: ctypes.CDLL
    width: int


def load_kernels() -> Kernels | None:
    """The kernels; None where there are none, or the variable SCNE_COMPILED is "0".

    They hold the checksum of their sources: after a change of these an editable installation has kernels of before.
    """
    path = _FOLDER / "kernels.so"
    if os.environ.get("SCNE_COMPILED") == "0" or not path.exists():
        return None
    try:
        library = ctypes.CDLL(str(path))
    except OSError:
        # Made for another processor or C library.
        return None
    sources = map(Path.read_bytes, sorted(_FOLDER.glob("*.[ch]")))
    wanted = hashlib.sha256(b"".join(sources)).hexdigest()
    if (ctypes.c_char * 65).in_dll(library, "scne_source").value.decode() != wanted:
        warn_user(
            f"{path.name} was compiled from different sources than those installed and is not used; reinstall scne "
            "(pip install -e .) to compile it."
        )
        return None
    for name, n_arguments in (
        ("width", 0),
        ("space", 6),
        ("search_space", 7),
        ("layer_space", 4),
        ("shapley_space", 1),
        ("table_space", 1),
    ):
        function = getattr(library, f"scne_{name}")
        function.restype, function.argtypes = ctypes.c_int64, [ctypes.c_int64] * n_arguments
    tasks = ("take_steps", "take_double_steps", "add_nodes", "add_double_nodes", "features", "hidden_outputs")
    for name in (*tasks, "shapley_values"):
        function = getattr(library, f"scne_{name}")
        function.restype, function.argtypes = None, [ctypes.c_void_p, ctypes.c_int64]
    library.scne_table_values.restype = ctypes.c_int64
    library.scne_table_values.argtypes = [ctypes.c_void_p, ctypes.c_int64]
    return Kernels(library, int(library.scne_width()))


# Loaded with the package, as any extension module is.
KERNELS = load_kernels()


def _fields(integers: Sequence[str], arrays: Sequence[str], numbers: Sequence[str] = ()) -> list[tuple[str, type[Any]]]:
    """Fields of a structure, in the order of the header: integers, pointers, numbers."""
    kinds = (ctypes.c_int64, integers), (ctypes.c_void_p, arrays), (ctypes.c_double, numbers)
    return [(name, kind) for kind, names in kinds for name in names]


class FeatureBlocksTask(ctypes.Structure):
    """`struct feature_blocks` of blocks.h."""

    _fields_ = _fields(("n_blocks",), ("first_feature", "first_node", "first_weight", "features", "nodes"))


class LookupsTask(ctypes.Structure):
    """`struct lookups` of tuning.h."""

    _fields_ = _fields(
        ("n_columns", "size", "n_rows", "n_groups", "first_height"),
        ("n_ramps", "first_row", "columns", "lanes", "first_group", "groups", "rows"),
    )


class TuningTask(ctypes.Structure):
    """`struct tuning_task` of tuning.h."""

    _fields_ = (
        *_fields(
            ("n_batch", "n_features", "n_nodes", "n_outputs", "n_steps", "logistic", "gathers", "loss"),
            (
                *("inputs", "targets", "root_weights", "places", "weights", "means", "squares"),
                *("moves", "roots", "space", "slopes", "signs"),
            ),
            ("scale", "input_rate", "output_rate", "mean_decay", "square_decay", "no_division_by_zero"),
        ),
        ("blocks", FeatureBlocksTask),
        ("lookups", LookupsTask),
    )


class SearchTask(ctypes.Structure):
    """`struct search_task` of search.h."""

    _fields_ = _fields(
        (
            *("n_padded", "n_features", "n_candidates", "n_outputs", "n_blocks", "n_contractions", "logistic"),
            *("capacity", "size", "node", "most", "n_added", "contraction"),
        ),
        (
            *("inputs", "root_weights", "first_feature", "features", "pool", "contractions", "basis", "residual"),
            *("ridge_rows", "ridge_residual", "factor", "added", "squares", "space", "turns"),
        ),
        ("ridge", "least_square", "dependence", "ties", "project_again_below", "nothing_left"),
    )


class FeaturesTask(ctypes.Structure):
    """`struct features_task` of features.h."""

    _fields_ = _fields(
        ("n_rows", "n_columns", "n_ramps", "stride", "single"),
        ("plain", "raw", "sources", "starts", "half_widths", "features"),
    )


class Layer(ctypes.Structure):
    """`struct layer` of layer.h."""

    _fields_ = (
        *_fields(
            ("n_columns", "n_ramps", "n_nodes", "logistic", "linked", "shares_columns"),
            (
                *("columns", "shift", "scale", "lower", "upper", "full", "sources", "starts", "slopes"),
                *("order", "first", "features", "weights", "biases"),
                *("first_ramps", "sizes", "knots", "first_tables", "tables", "betas"),
            ),
        ),
        ("blocks", FeatureBlocksTask),
    )


class RowsTask(ctypes.Structure):
    """`struct rows_task` of layer.h."""

    _fields_ = _fields(
        ("n_rows", "n_inputs", "n_layers", "n_outputs", "by_nodes"), ("layers", "inputs", "hidden", "outputs", "space")
    )


class ShapleyTask(ctypes.Structure):
    """`struct shapley_task` of shapley.h."""

    _fields_ = _fields(
        ("n_rows", "n_background", "n_padded", "n_players", "n_points"),
        ("rows", "background", "settings", "points", "values", "space"),
    )


class TablesTask(ctypes.Structure):
    """`struct tables_task` of tables.h."""

    _fields_ = _fields(
        ("n_rows", "n_nodes", "n_players", "n_outputs", "logistic"),
        ("parts", "tables", "firsts", "cells", "limits", "biases", "weights", "values", "reach", "space"),
        ("per_cell",),
    )
