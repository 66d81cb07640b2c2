"""A Gram system as content of a file and back: what a model needs to go on learning, or to be solved again."""

from collections.abc import Mapping
from math import inf

import numpy as np

from scne.models._errors import Unstorable, damaged, shown
from scne.models.file._parts import StoredMember, Tensors, prefixed
from scne.models.file._shelf import Shelf, number
from scne.ncl import EnsembleSystem
from scne.rows import WeightScale

_SUMS = ("gram", "moments", "target_square")


def store_system(name: str, system: EnsembleSystem | None) -> tuple[dict[str, object], Tensors]:
    """What of a system is not a tensor, and its tensors under a name."""
    if system is None:
        raise Unstorable(
            "it holds no Gram matrix to save (it was fitted by a matrix-free solver, or loaded from a file without "
            "one); save it with with_system=False"
        )
    return {"n_rows": float(system.n_rows)}, prefixed(name, {sums: getattr(system, sums) for sums in _SUMS})


def read_system(name: str, record: object, shelf: Shelf, members: list[StoredMember]) -> EnsembleSystem:
    """The system of some networks from the tensors under a name."""
    sizes = tuple(member.layer.n_outputs for member in members)
    n_outputs = members[0].output_weights.shape[1]
    gram = shelf.take(f"{name}.gram", sum(sizes), sum(sizes))
    system = EnsembleSystem(
        # LAPACK is handed its rows as they lie in memory. It is symmetric, so its transpose is itself.
        gram=gram if gram.flags.c_contiguous else gram.T,
        moments=shelf.take(f"{name}.moments", sum(sizes), n_outputs),
        target_square=shelf.take(f"{name}.target_square", n_outputs),
        n_rows=number(record, "n_rows"),
        sizes=sizes,
    )
    # Sums of squares, and of weights.
    if not (system.n_rows > 0 and (system.target_square >= 0).all() and (np.diagonal(system.gram) >= 0).all()):
        raise damaged(f"the sums of '{name}' are below zero, which no rows give")
    return system


def store_weight_scale(scale: WeightScale | None) -> dict[str, object]:
    """The scale of the weights of a fit, beside which weights of later rows count; nothing after a fit without."""
    return {} if scale is None else {"weight_scale": [float(scale.reference), float(scale.factor)]}


def read_weight_scale(document: Mapping[str, object]) -> WeightScale | None:
    """The same from a file; None for fits without weights, and in files that are older than scales."""
    stored = document.get("weight_scale")
    if stored is None:
        return None
    numbers = stored if isinstance(stored, list) and len(stored) == 2 else []
    if not numbers or not all(isinstance(number, float) and 0 < number < inf for number in numbers):
        raise damaged(f"its weight_scale is {shown(stored)}, but it must be two positive numbers")
    return WeightScale(*numbers)
