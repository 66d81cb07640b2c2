"""Changes of a JSON document, made with its types in mind."""

import random
from typing import Any

_INTEGERS = (0, 1, -1, 2, 3, 7, 255, 10**6, 2**31, 2**32 - 1, 2**53, 2**62, 2**63, 2**64 - 1, 2**64, 10**30, 10**400)
_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-300, 5e-324, 1e16, 1e154, 1e300, 1.7e308, -1e308)
_TEXTS = (
    "",
    "x",
    "network 1",
    "auto",
    "none",
    "ramps",
    "sigmoid",
    "\0",
    "a\0b",
    "\ud800",
    "\x1b[31m",
    "é\u202e\U0001f600",
    "{0.__class__}",
    "%s%n",
    "../../x",
    "*/ /*",
    "'''\"\"\"\\",
    "\n",
    "a" * 5_000,
    "SCNERegressor",
    "__import__('os')",
)
_KINDS = (
    {"__kind__": "float", "text": "nan"},
    {"__kind__": "float", "text": "inf"},
    {"__kind__": "float", "text": "1"},
    {"__kind__": "tuple", "items": []},
    {"__kind__": "tuple", "items": [0, 1]},
    {"__kind__": "set", "items": [[1]]},
    {"__kind__": "frozenset", "items": [1, 2]},
    {"__kind__": "slice", "items": [0, None, 0]},
    {"__kind__": "slice", "items": ["a", 2**63, {}]},
    {"__kind__": "range", "items": [0, 2**63, 1]},
    {"__kind__": "range", "items": [0, 5, 1]},
    {"__kind__": "array", "dtype": "int64", "items": [0, 1, 2]},
    {"__kind__": "array", "dtype": "str", "items": ["a" * 3_000, *["b"] * 300]},
    {"__kind__": "array", "dtype": "float64", "items": [[1.0], [2.0, 3.0]]},
    {"__kind__": "array", "dtype": "bool", "items": [True, False]},
    {"__kind__": "array", "dtype": "object", "items": [1]},
    {"__kind__": "mapping", "items": [[1, 2], [[], 3]]},
    {"__kind__": "mapping", "items": [["a", [0]], ["b", [1]]]},
    {"__kind__": "os.system", "items": ["true"]},
)


def any_value(rng: random.Random) -> Any:
    """Some value, likely one that nobody thought of."""
    kind = rng.randrange(9)
    if kind == 0:
        return rng.choice((None, True, False))
    if kind in (1, 2):
        return rng.choice(_INTEGERS)
    if kind in (3, 4):
        return rng.choice(_FLOATS)
    if kind == 5:
        return rng.choice(_TEXTS)
    if kind == 6:
        return copied(rng.choice(_KINDS))
    if kind == 7:
        return [any_value(rng) for _ in range(rng.randrange(4))]
    return {rng.choice(_TEXTS): any_value(rng) for _ in range(rng.randrange(3))}


def copied(node: Any) -> Any:
    if isinstance(node, list):
        return [copied(item) for item in node]
    return {key: copied(item) for key, item in node.items()} if isinstance(node, dict) else node


def places(node: Any, found: list | None = None) -> list[tuple[Any, Any]]:
    """Every list or object with the key of every value in it."""
    found = [] if found is None else found
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, item in inner:
        found.append((node, key))
        places(item, found)
    return found


def nudged(rng: random.Random, value: Any) -> Any:
    """A value of the same type, not far from it or very far."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice((value + 1, value - 1, -value, value * 1_000, value + 2**32, 0))
    if isinstance(value, float):
        return rng.choice((-value, value * 1e300, value * 1e-300, value + 1.0, value / 2, 0.0, float(int(value))))
    if isinstance(value, str):
        return rng.choice((value[:-1], value + "x", value.upper(), value[::-1], value + "\0", rng.choice(_TEXTS)))
    if isinstance(value, list) and value:
        other = list(value)
        action = rng.randrange(4)
        if action == 0:
            other.pop(rng.randrange(len(other)))
        elif action == 1:
            other.append(copied(rng.choice(other)))
        elif action == 2:
            rng.shuffle(other)
        else:
            other = other * rng.choice((2, 50))
        return other
    if isinstance(value, dict) and value:
        key = rng.choice(list(value))
        rest = {name: item for name, item in value.items() if name != key}
        return rest if rng.random() < 0.5 else {**rest, rng.choice(_TEXTS): value[key]}
    return any_value(rng)


def mutate(rng: random.Random, document: Any, other: Any) -> None:
    """Change one place of a document in some way; `other` is a document to take values from."""
    holder, key = rng.choice(places(document))
    action = rng.randrange(8)
    if action <= 2:
        holder[key] = any_value(rng)
    elif action <= 5:
        holder[key] = nudged(rng, holder[key])
    elif action == 6:
        from_holder, from_key = rng.choice(places(other))
        holder[key] = copied(from_holder[from_key])
    else:
        # The same entry of another model.
        same = [(there, name) for there, name in places(other) if name == key and isinstance(key, str)]
        if same:
            there, name = rng.choice(same)
            holder[key] = copied(there[name])
        elif isinstance(holder, dict):
            del holder[key]
        else:
            holder.pop(key)
