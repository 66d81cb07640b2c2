"""A Gram system as content of a file and back: what a model needs to go on learning, or to be solved again."""

from typing import Any

from scne.models._errors import Unstorable
from scne.models._parts import StoredMember, Tensors, prefixed
from scne.models._shelf import Shelf, field
from scne.ncl import EnsembleSystem

_SUMS = ("gram", "moments", "target_square")


def store_system(name: str, system: Any) -> tuple[dict[str, Any], Tensors]:
    """What of a system is not a tensor, and its tensors under a name."""
    if not isinstance(system, EnsembleSystem):
        raise Unstorable(
            "it holds no Gram matrix to save (it was fitted with matrix_free=True, or loaded from a file without one); "
            "save it with with_system=False"
        )
    return {"n_rows": float(system.n_rows)}, prefixed(name, {sums: getattr(system, sums) for sums in _SUMS})


def read_system(name: str, record: dict[str, Any], shelf: Shelf, members: list[StoredMember]) -> EnsembleSystem:
    """The system of some networks from the tensors under a name."""
    sizes = tuple(member.layer.n_outputs for member in members)
    n_outputs = members[0].output_weights.shape[1]
    return EnsembleSystem(
        gram=shelf.take(f"{name}.gram", sum(sizes), sum(sizes)),
        moments=shelf.take(f"{name}.moments", sum(sizes), n_outputs),
        target_square=shelf.take(f"{name}.target_square", n_outputs),
        n_rows=field(record, "n_rows", float),
        sizes=sizes,
    )
