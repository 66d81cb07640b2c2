"""What decides a model, as a value that two fits can be compared by: parameters, seed, rows and the version of scne.

Everything is reduced to plain JSON, with the content of arrays as a hash of their type, shape and bytes. Nothing rests
on `repr`, which shortens long arrays and shows addresses of objects.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator

from scne.rows import ArrayRows, identity_of_files, is_foreign, to_numpy

if TYPE_CHECKING:
    from scne.fitting._training import TrainingData

# How many threads work on a fit decides nothing but its time.
_WITHOUT_EFFECT = ("n_jobs",)
_LONGEST_WORDS = 60


def fit_identity(estimator: BaseEstimator, rows: Any) -> dict[str, Any]:
    """All that decides the outcome of a fit, by name.

    Parameters
    ----------
    estimator : estimator
    rows : FileRows or TrainingData
        Files as they were opened, or arrays once they are checked.

    Returns
    -------
    dict of str to JSON value
        Small: long contents are hashes.

    Examples
    --------
    >>> from scne import RVFLRegressor
    >>> from scne.rows import ArrayRows
    >>> X = np.arange(6.0).reshape(3, 2)
    >>> found = [
    ...     array_identity("X", values)["X content"] for values in (X, X + 0, X.reshape(2, 3), X.astype(np.float32))
    ... ]
    >>> found[0] == found[1], len(set(found))
    (True, 3)
    """
    identity = {"version of scne": version("scne"), "estimator": type(estimator).__name__}
    identity |= {name: canonical(name, value) for name, value in _parameters(estimator)}
    identity |= _array_rows(rows) if hasattr(rows, "search") else identity_of_files(rows)
    return {name: _short(value) for name, value in identity.items()}


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What two identities differ in, in words.

    Examples
    --------
    >>> differences({"target": ["y"], "seed": 1}, {"target": ["z"], "seed": 1})
    ["target was ['y'], and is ['z']"]
    >>> differences({"ridge": {"float": "0x1.9999"}}, {"ridge": {"float": "0x1.99g9"}})
    ['ridge differs']
    """
    missing = object()
    changes = []
    for name in dict.fromkeys((*before, *now)):
        old, new = before.get(name, missing), now.get(name, missing)
        if old != new or type(old) is not type(new):
            changes.append(_difference(name, None if old is missing else old, None if new is missing else new))
    return changes


def canonical(name: str, value: object) -> Any:
    """A parameter's value as JSON in which different values are different.

    Examples
    --------
    >>> canonical("ridge", 0.1), canonical("ridge", 1), canonical("columns", slice(0, 3))
    ({'float': '0x1.999999999999ap-4'}, 1, {'slice': [0, 3, None]})
    """
    if value is None or type(value) in (bool, int, str):
        return value
    if isinstance(value, np.generic):
        return canonical(name, value.item())
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, slice):
        return {"slice": canonical(name, [value.start, value.stop, value.step])}
    if isinstance(value, range | list | tuple):
        return [canonical(name, item) for item in value]
    if isinstance(value, set | frozenset):
        return {"set": sorted((canonical(name, item) for item in value), key=json.dumps)}
    if isinstance(value, Mapping):
        # A list, because the order counts: groups become networks in it.
        return {"mapping": [[canonical(name, key), canonical(name, item)] for key, item in value.items()]}
    if isinstance(value, BaseEstimator):
        return {"estimator": type(value).__name__, "parameters": dict(_canonical_parameters(value))}
    if isinstance(value, np.ndarray) or is_foreign(value):
        return _canonical_array(name, value)
    raise ValueError(
        f"{name} is {value!r:.80}, which cannot be distinguished from other values, as a checkpoint requires; "
        "pass plain values, or fit without a checkpoint."
    )


def array_identity(name: str, values: object) -> dict[str, Any]:
    """Shape and content of an array under names for people."""
    if values is None:
        return {f"{name} shape": None, f"{name} content": None}
    array = to_numpy(values)
    digest = hashlib.sha256(f"{array.dtype.str} {array.shape}".encode())
    # By stripes: a copy of the whole array may not fit beside it.
    for start in range(0, len(array), 65_536):
        digest.update(np.ascontiguousarray(array[start : start + 65_536]).view(np.uint8).data)
    return {f"{name} shape": list(array.shape), f"{name} content": digest.hexdigest()}


def _array_rows(data: "TrainingData") -> dict[str, Any]:
    rows = data.rows
    assert isinstance(rows, ArrayRows)
    validation = data.validation
    return {
        "column names": data.column_names,
        "one target": data.flat_target,
        **array_identity("X", rows.inputs),
        **array_identity("y", rows.targets),
        **array_identity("sample_weight", rows.weights),
        **array_identity("X_val", None if validation is None else validation.inputs),
        **array_identity("y_val", None if validation is None else validation.targets),
    }


def _parameters(estimator: BaseEstimator) -> Iterator[tuple[str, Any]]:
    yield from ((k, v) for k, v in estimator.get_params(deep=False).items() if k not in _WITHOUT_EFFECT)


def _canonical_parameters(estimator: BaseEstimator) -> Iterator[tuple[str, Any]]:
    yield from ((name, canonical(name, value)) for name, value in sorted(_parameters(estimator)))


def _canonical_array(name: str, value: object) -> Any:
    array = to_numpy(value)
    if array.dtype.kind in "OUST":
        return {"array": array.dtype.kind, "shape": list(array.shape), "items": canonical(name, array.ravel().tolist())}
    return {"array": array_identity(name, np.atleast_1d(array)), "shape": list(array.shape)}


def _short(value: object) -> Any:
    """A value as it is, or a hash of it where it is long: a manifest is read by people."""
    text = json.dumps(value, sort_keys=True)
    return value if len(text) <= 200 else {"sha256": hashlib.sha256(text.encode()).hexdigest()}


def _difference(name: str, old: Any, new: Any) -> str:
    words = [_words(value) for value in (old, new)]
    if "" in words or words[0] == words[1]:
        return f"{name} {'differ' if name.endswith(('s', 'rows')) else 'differs'}"
    return f"{name} was {words[0]}, and is {words[1]}"


def _words(value: object) -> str:
    """A value as a person would write it; nothing where that is no help."""
    if isinstance(value, dict) and set(value) == {"float"}:
        # A manifest may have been changed by anybody.
        with suppress(TypeError, ValueError, OverflowError):
            value = float.fromhex(value["float"])
    if isinstance(value, dict) or (isinstance(value, str) and len(value) == 64):
        return ""
    text = repr(value)
    return text if len(text) <= _LONGEST_WORDS else ""
