"""Model files with hostile content under a valid checksum: loading refuses them, or everything works on what is loaded.

Each case changes the JSON document, the tensors or the header of a real model by the types of what is there, signs the
result as scne would, loads it, and then uses the model in all ways. A ValueError or OSError is an answer; anything
else, more than 256 MB or 2 s of processor time is an escape.
"""

import contextlib
import random
import re
import warnings
from functools import cache

import numpy as np

from scne import load

from .container import Parts, put_together, taken_apart
from .corpus import examples, folder
from .harness import main
from .json_mutations import copied, mutate
from .model_use import use

_NUMBERS = (0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e-320, 1e300, -1e308, 1e154, 1e16, 0.5)
_PLACES = (0, 1, 2, 3, -1, 100, 2**31, 2**62, -(2**63))
_OFFSETS = ([], [0], [0, 2**64], ["0", "8"], [0.0, 8.0], None, [-8, 0], [10**30, 10**30])
_TEXTS = ("NaN", "Infinity", "1e999", "-1e999", "1" * 400, "1" * 5_000, "-0", "1.0e0", "null", '"\\ud800"', "[" * 2_000)


def _tensor_changed(rng: random.Random, parts: Parts) -> None:
    name = rng.choice(list(parts.tensors))
    tensor, generator = parts.tensors[name], np.random.default_rng(rng.getrandbits(32))
    action = rng.randrange(12)
    if action <= 3 and tensor.size:
        flat = tensor.reshape(-1)
        for _ in range(rng.choice((1, 1, 3))):
            value = rng.choice(_PLACES if tensor.dtype.kind == "i" else _NUMBERS)
            # A change before this one may have left a type that cannot hold it.
            with np.errstate(all="ignore"), contextlib.suppress(OverflowError, ValueError):
                flat[rng.randrange(len(flat))] = value
    elif action == 4 and tensor.dtype.kind == "f":
        with np.errstate(all="ignore"):
            tensor *= rng.choice((-1.0, 0.0, 1e300, 1e-300, 2.0))
    elif action == 5:
        parts.tensors[name] = np.ascontiguousarray(tensor.T)
    elif action == 6:
        more = np.concatenate([tensor, tensor[:1]]) if tensor.ndim and rng.random() < 0.5 else tensor[:-1]
        parts.tensors[name] = np.ascontiguousarray(more)
    elif action == 7:
        kinds = ("<f8", "<i8", "<f4", "<i4", "|b1", "|u1", "<f2")
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parts.tensors[name] = tensor.astype(rng.choice(kinds))
    elif action == 8:
        other = rng.choice(list(parts.tensors))
        parts.tensors[name], parts.tensors[other] = parts.tensors[other], tensor
    elif action == 9:
        del parts.tensors[name]
    elif action == 10:
        parts.tensors[rng.choice((f"{name}x", "extra", "", "members.9.biases", "é"))] = tensor.copy()
    else:
        generator.shuffle(tensor.reshape(-1))


def _node_removed(rng: random.Random, parts: Parts) -> None:
    """One network with a node less, everywhere but in the sums."""
    members = {name.rsplit(".", 1)[0] for name in parts.tensors if name.endswith(".biases") and "members" in name}
    if not members:
        return
    prefix = rng.choice(sorted(members))
    for name, axis in (("biases", 0), ("input_weights", 1), ("output_weights", 0)):
        whole = parts.tensors.get(f"{prefix}.{name}")
        if whole is not None and whole.ndim > axis and whole.shape[axis]:
            parts.tensors[f"{prefix}.{name}"] = np.ascontiguousarray(np.delete(whole, 0, axis=axis))


def _sums_removed(rng: random.Random, parts: Parts) -> None:
    for name in [name for name in parts.tensors if name.startswith(("system.", "held_out."))]:
        del parts.tensors[name]
    if "column_groups" in parts.document:
        parts.document["system"] = None
    else:
        parts.document.pop("system", None)
    parts.document.pop("held_out", None)


def _more_columns(rng: random.Random, parts: Parts) -> None:
    parts.document["n_features_in"] = rng.choice((4, 5, 100, 10_000, 250_000, 250_001, 10**12))
    parts.document["feature_names"] = None


def _ordered_in_columns(rng: random.Random, parts: Parts) -> None:
    # Vectors among them are refused, and then nothing else is tried.
    names = [name for name, tensor in parts.tensors.items() if tensor.ndim == 2 or rng.random() < 0.02]
    parts.document["column_major"] = rng.sample(names, rng.randrange(len(names) + 1))


def _document_changed(rng: random.Random, parts: Parts) -> None:
    mutate(rng, parts.document, _taken_apart(rng.randrange(len(examples()))).document)


_MUTATIONS = (
    *[_document_changed] * 10,
    *[_tensor_changed] * 8,
    _node_removed,
    _sums_removed,
    _more_columns,
    _ordered_in_columns,
)


def _text_changed(rng: random.Random):
    """A number of the text as no program writes it, or an entry twice."""

    def change(text: str) -> str:
        numbers = [match.span() for match in re.finditer(r"(?<=[:\[,])-?\d[\d.e+-]*(?=[,\]}])", text)]
        if rng.random() < 0.3 or not numbers:
            return '{"format":"scne model",' + text[1:] if rng.random() < 0.5 else text.replace('":', '": ', 1)
        start, stop = rng.choice(numbers)
        return text[:start] + rng.choice(_TEXTS) + text[stop:]

    return change


def _header_changed(rng: random.Random):
    """Announced types, shapes and places that do not fit the bytes."""

    def change(header: dict) -> None:
        record = header[rng.choice([name for name in header if name != "__metadata__"])]
        action = rng.randrange(7)
        if action == 0:
            record["dtype"] = rng.choice(("BF16", "F8_E4M3", "BOOL", "U64", "F32", "I64", "F64", "", None, 3, []))
        elif action == 1:
            record["shape"] = rng.choice(([], [0], [-1], [2**32, 2**32], [2**62], [1, 1, 1], [True], ["2"], None, {}))
        elif action == 2:
            record["shape"] = [*record["shape"], rng.choice((1, 0, 2**40))]
        elif action == 3:
            start, stop = record["data_offsets"]
            shift = rng.choice((1, 8, -8, 2**40, -(2**40)))
            record["data_offsets"] = rng.choice(([start + shift, stop + shift], [start, stop + shift], [stop, start]))
        elif action == 4:
            record["data_offsets"] = rng.choice(
                ([], [0], [0, 2**64], ["0", "8"], [0.0, 8.0], None, [-8, 0], [10**30] * 2)
            )
        elif action == 5:
            record[rng.choice(("dtype", "extra", "shape"))] = rng.choice((None, {}, [], "F64"))
        else:
            header[rng.choice(("__metadata__", "x", "members.0.biases"))] = rng.choice(
                (None, {}, [], record, {"scne": 3})
            )

    return change


@cache
def _taken_apart(place: int) -> Parts:
    return taken_apart(examples()[place].data)


def altered(rng: random.Random) -> bytes:
    """The bytes of a changed and signed model."""
    source = _taken_apart(rng.randrange(len(examples())))
    parts = Parts(copied(source.document), {name: tensor.copy() for name, tensor in source.tensors.items()})
    where = rng.random()
    if where < 0.9:
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            if parts.tensors and parts.document:
                rng.choice(_MUTATIONS)(rng, parts)
    change_text = _text_changed(rng) if where > 0.95 else None
    change_header = _header_changed(rng) if 0.9 <= where <= 0.95 and parts.tensors else None
    return put_together(parts, change_text, change_header)


def case(seed: int, number: int) -> str:
    """Change one example, sign it, load it, and use it."""
    rng = random.Random(f"{seed}/{number}")
    path = folder() / "hostile.scne"
    path.write_bytes(altered(rng))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = load(path)
        except (ValueError, OSError):
            return "refused"
        use(rng, model, path)
    return "used"


if __name__ == "__main__":
    examples()
    main("model_structure", case, __doc__, 200_000)
