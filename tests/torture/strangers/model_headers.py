"""Model files with headers that are made to cost much: long, deep, full of tiny values, of escapes or of huge ones.

The cases are few and fixed; each is built in a child process of its own, so what it takes is that of one file, and the
memory that building the file took is not counted.
"""

import json
import os
import warnings

from scne import load
from scne.estimators import describe_model
from scne.models.file._header import MOST_VALUES

from .container import Parts, put_together, taken_apart
from .corpus import examples, folder
from .harness import Escape, main
from .model_use import _predict, _summary

_MB = 1_000_000
# About as many values as a header may hold.
_MANY = MOST_VALUES - 5_000


def _raw(text: str) -> bytes:
    raw = text.encode("utf-8", "surrogatepass")
    return len(raw).to_bytes(8, "little") + raw


def _metadata(text: str) -> bytes:
    return _raw(json.dumps({"__metadata__": {"scne": text}}))


def _signed(**changes) -> bytes:
    """A real ensemble with some entries of its document changed."""
    parts = taken_apart(next(example.data for example in examples() if example.name == "scne groups"))
    return put_together(Parts(parts.document | changes, parts.tensors))


def _classes(labels: list, kind: str) -> bytes:
    parts = taken_apart(next(example.data for example in examples() if example.name == "classes"))
    parts.document["classifier"] |= {"classes": labels, "kind": kind}
    return put_together(parts)


def _tensors(n: int) -> bytes:
    entries = ",".join(f'"t{place}":{{"dtype":"F64","shape":[0],"data_offsets":[0,0]}}' for place in range(n))
    return _raw('{"__metadata__":{"scne":"{}"},' + entries + "}")


def _wide(n: int) -> bytes:
    """A valid model that says it has very many columns with long names."""
    return _signed(n_features_in=n, feature_names=[f"column {place:0100d}" for place in range(n)])


BOMBS = {
    "lists in lists": lambda: _raw("[" * (31 * _MB)),
    "empty lists": lambda: _raw("[" + "[]," * (10 * _MB) + "[]]"),
    "just few enough lists": lambda: _raw("[" + "[]," * (MOST_VALUES // 2 - 10) + "[]]"),
    "just few enough objects": lambda: _raw("[" + '{"a":0},' * (MOST_VALUES // 2 - 10) + "{}]"),
    "99 MB of spaces": lambda: _raw("{}" + " " * (99 * _MB)),
    "99 MB of one text": lambda: _metadata("a" * (99 * _MB)),
    "50 MB of lists": lambda: _metadata("[" + "[]," * (16 * _MB) + "[]]"),
    "31 MB of one text": lambda: _metadata("a" * (31 * _MB)),
    "31 MB of text of four bytes": lambda: _raw('{"__metadata__":{"scne":"' + "\U0001f600" * (7 * _MB) + '"}}'),
    "escaped characters of four bytes": lambda: _raw(
        '{"__metadata__":{"scne":"' + "\\ud83d\\ude00" * (2 * _MB) + '"}}'
    ),
    "escapes": lambda: _raw('{"__metadata__":{"scne":"' + "\\n" * 7_999_990 + '"}}'),
    "more escapes": lambda: _raw('{"__metadata__":{"scne":"' + "\\n" * 15_000_000 + '"}}'),
    "escapes in a document": lambda: _signed(data={"a": "\n" * 3_900_000}),
    "text beyond ASCII": lambda: _signed(data={"a": "\u5317" * 3_900_000}),
    "long text in a document": lambda: _signed(data={"a": "x" * (30 * _MB)}),
    "many tensors": lambda: _tensors(_MANY // 5),
    "too many tensors": lambda: _tensors(MOST_VALUES),
    "a document of lists": lambda: _signed(data={"a": [[]] * (_MANY // 2)}),
    "a document of objects": lambda: _signed(data={"a": [{"b": 0}] * (_MANY // 2)}),
    "a document of objects of kinds": lambda: _signed(
        data={"a": [{"__kind__": "float", "text": "inf"}] * (_MANY // 3)}
    ),
    "a document of sets": lambda: _signed(data={"a": [{"__kind__": "set", "items": [1]}] * (_MANY // 5)}),
    "a document of arrays": lambda: _signed(
        data={"a": [{"__kind__": "array", "dtype": "int64", "items": [1]}] * (_MANY // 6)}
    ),
    "a document of numbers": lambda: _signed(data={"a": [1e-300] * _MANY}),
    "a document of different texts": lambda: _signed(data={"a": [f"{n:x}" for n in range(_MANY)]}),
    "a document of different keys": lambda: _signed(data={f"{n:x}": n for n in range(_MANY)}),
    "one set of many": lambda: _signed(data={"a": {"__kind__": "set", "items": list(range(_MANY))}}),
    "long numbers": lambda: _metadata("[" + ("9" * 4_000 + ",") * 7_000 + "0]"),
    "column_major of many": lambda: _signed(column_major=["ridge"] * _MANY),
    "column_major of many matrices": lambda: _signed(column_major=["members.0.input_weights"] * _MANY),
    "classes of one long text": lambda: _classes(["a" * (20 * _MB), *(f"b{n:06d}" for n in range(100_000))], "text"),
    "classes of many": lambda: _classes([f"b{n:06d}" for n in range(_MANY)], "text"),
    "classes of objects": lambda: _classes([n / 2 for n in range(_MANY)], "objects"),
    "an array of one long text": lambda: _signed(
        data={"a": {"__kind__": "array", "dtype": "str", "items": ["a" * (20 * _MB), *["b"] * _MANY]}}
    ),
    "wide": lambda: _wide(250_000),
    "members of nothing": lambda: _signed(members=[{}] * (_MANY // 2)),
    "groups of nothing": lambda: _signed(column_groups=[""] * _MANY),
}


def _written(name: str):
    path = folder() / "bomb.scne"
    child = os.fork()
    if not child:
        status = 1
        try:
            path.write_bytes(BOMBS[name]())
            status = 0
        finally:
            os._exit(status)
    if os.waitpid(child, 0)[1]:
        raise Escape(f"the file of {name!r} could not be built")
    return path


def case(seed: int, number: int) -> str:
    """Load one of the files, and use it should it load."""
    path = _written(list(BOMBS)[number])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = load(path)
        except (ValueError, OSError) as error:
            if len(str(error)) > 2_000:
                raise Escape(f"a message of {len(str(error))} characters") from error
            return "refused"
        # As `scne inspect` does: one file is read once.
        _predict(None, model, path)
        _summary(None, model, path)
        describe_model(model)
    return "used"


if __name__ == "__main__":
    examples()
    main("model_headers", case, __doc__, len(BOMBS))
