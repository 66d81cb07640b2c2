"""Fitted estimators as content of a file, and back."""

from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from scne.estimators import (
    DNNERegressor,
    NetworkClassifier,
    RVFLRegressor,
    SCNClassifier,
    SCNEClassifier,
    SCNERegressor,
    SCNRegressor,
)
from scne.models._errors import Unreadable, Unstorable, damaged, shortened, shown, version_text
from scne.models.file._checked_parameters import check_class_weight, check_parameters
from scne.models.file._classifier import fill_classifier, store_classifier
from scne.models.file._container import Content
from scne.models.file._ensemble import fill_ensemble, store_ensemble
from scne.models.file._network import fill_network, store_network
from scne.models.file._parts import read_member, read_scaling, scaling_tensors
from scne.models.file._shelf import Shelf, count, count_if_there, field

# The only classes that a file can name: loading looks a name up here and nowhere else.
NETWORKS: dict[str, Any] = {cls.__name__: cls for cls in (SCNRegressor, RVFLRegressor)}
ENSEMBLES: dict[str, Any] = {cls.__name__: cls for cls in (SCNERegressor, DNNERegressor)}
CLASSIFIERS: dict[str, Any] = {cls.__name__: cls for cls in (SCNEClassifier, SCNClassifier)}
ESTIMATORS = ENSEMBLES | NETWORKS | CLASSIFIERS
# Columns of the input, encoded ones included: a model of few numbers could otherwise claim any number of them.
MOST_COLUMNS = 250_000
# Those with a base model among their parameters.
_WITH_BASE = (*ENSEMBLES, SCNEClassifier.__name__)


def to_content(model: Any, scne_version: str, with_system: bool) -> Content:
    """Everything of a fitted model that a file holds."""
    name = _class_name(model, ESTIMATORS)
    check_is_fitted(model)
    if name in CLASSIFIERS:
        inner = to_content(model.regressor_, scne_version, with_system)
        document, tensors = store_classifier(model)
        return Content(inner.document | {"estimator": _parameters(model, name)} | document, inner.tensors | tensors)
    if model.n_features_in_ > MOST_COLUMNS:
        raise Unstorable(f"it has {model.n_features_in_:,} columns, and a model file can hold {MOST_COLUMNS:,}")
    store = store_ensemble if name in ENSEMBLES else store_network
    document, tensors = store(model, with_system)
    names = getattr(model, "feature_names_in_", None)
    head = {
        "scne": scne_version,
        "estimator": _parameters(model, name),
        "n_features_in": int(model.n_features_in_),
        "feature_names": None if names is None else [str(label) for label in names],
        "n_outputs": int(model.n_outputs_),
        "flat_target": bool(model._flat_target),
        "n_rows": model.n_rows_,
        "n_calibration": None if model.calibration_ is None else len(model.calibration_),
    }
    tensors |= {} if model.calibration_ is None else {"calibration": model.calibration_}
    extras = {
        "encoder": model.encoder_.to_dict() if getattr(model, "encoder_", None) is not None else None,
        "data": getattr(model, "data_", None),
    }
    return Content(head | document | extras, tensors | scaling_tensors("target_scaling", model.target_scaling_))


def from_content(content: Content) -> Any:
    """The fitted model that a file holds."""
    document, shelf = content.document, Shelf(content.tensors)
    named = _unfitted(field(document, "estimator", dict), ESTIMATORS, version_text(document.get("scne")))
    classifier = named if isinstance(named, NetworkClassifier) else None
    model = named if classifier is None else classifier._regressor()
    check_parameters(model)
    _read_columns_and_outputs(model, document, shelf)
    members = [
        read_member(record, f"members.{m}", shelf, model.n_features_in_, model.n_outputs_)
        for m, record in enumerate(field(document, "members", list))
    ]
    if not members:
        raise damaged("it holds no network")
    if isinstance(model, SCNERegressor):
        fill_ensemble(model, members, document, shelf)
    else:
        fill_network(model, members, document, shelf)
    if classifier is not None:
        check_class_weight(classifier.class_weight)
        fill_classifier(classifier, model, document, shelf)
    shelf.check_empty()
    _add_extras(model, document, classifier is None)
    return named


def _read_columns_and_outputs(model: Any, document: dict[str, Any], shelf: Shelf) -> None:
    """What goes in and what comes out."""
    model.n_features_in_ = count(document, "n_features_in", MOST_COLUMNS)
    names = field(document, "feature_names", list, type(None))
    if names is not None:
        if len(names) != model.n_features_in_ or not all(isinstance(name, str) for name in names):
            raise damaged(f"its feature names are not {model.n_features_in_} names")
        model.feature_names_in_ = np.array(names, dtype=object)
    model.n_outputs_ = count(document, "n_outputs")
    model._flat_target = field(document, "flat_target", bool)
    if model._flat_target and model.n_outputs_ > 1:
        raise damaged(f"its target is flat, but it has {model.n_outputs_} outputs")
    model.target_scaling_ = read_scaling("target_scaling", shelf, model.n_outputs_)
    model.n_rows_ = count_if_there(document, "n_rows")
    n_errors = count_if_there(document, "n_calibration")
    model.calibration_ = None if n_errors is None else shelf.take("calibration", n_errors, model.n_outputs_)
    if model.calibration_ is not None:
        errors = model.calibration_
        if not ((errors[0] >= 0).all() and (errors[1:] >= errors[:-1]).all()):
            raise damaged("tensor 'calibration' does not hold errors in ascending order")


def _class_name(model: Any, allowed: dict[str, Any]) -> str:
    # A subclass may predict otherwise, and a file could only bring its parent back.
    name = type(model).__name__
    if allowed.get(name) is not type(model):
        raise Unstorable(f"it is a {name}, and a model file can hold only {', '.join(allowed)}")
    return name


def _parameters(model: Any, name: str) -> dict[str, Any]:
    parameters = model.get_params(deep=False)
    record: dict[str, Any] = {"class": name}
    if name in _WITH_BASE:
        base = parameters.pop("estimator")
        record["base"] = None if base is None else _parameters(base, _class_name(base, NETWORKS))
    seed = parameters["random_state"]
    # A generator has moved on since the fit: it names no model that could be fitted again.
    parameters["random_state"] = int(seed) if isinstance(seed, int | np.integer) else None
    return record | {"parameters": parameters}


def _unfitted(record: dict[str, Any], allowed: dict[str, Any], scne_version: str) -> Any:
    name = field(record, "class", str)
    if name not in allowed:
        raise Unreadable(f"holds a {shown(name)}, and this scne can read only {', '.join(allowed)} from a file.")
    parameters = field(record, "parameters", dict)
    unknown = sorted(set(map(str, parameters)) - (set(allowed[name]._get_param_names()) - {"estimator"}))
    if unknown:
        raise Unreadable(
            f"was written by scne {scne_version}, whose {name} has a parameter {shown(unknown[0])} that this scne does "
            "not know: upgrade scne to read it."
        )
    if name in _WITH_BASE:
        base = field(record, "base", dict, type(None))
        parameters = {**parameters, "estimator": None if base is None else _unfitted(base, NETWORKS, scne_version)}
    # Parameters that the file lacks are younger than the file, and their defaults leave things as they were.
    return allowed[name](**parameters)


def _add_extras(model: Any, document: dict[str, Any], may_read_files: bool) -> None:
    data = field(document, "data", dict, type(None))
    if data is not None:
        _check_target_names(data, model.n_outputs_)
        model.data_ = data
    encoder = field(document, "encoder", dict, type(None))
    if encoder is None:
        return
    if not may_read_files or data is None or "target_names" not in data:
        raise damaged("it holds an encoder of files, but no names of targets, or classes")
    model.encoder_ = _encoder(encoder)
    if model.encoder_.names != tuple(getattr(model, "feature_names_in_", ())):
        raise damaged("its encoder makes other columns than those that its networks see")


def _check_target_names(data: dict[str, Any], n_outputs: int) -> None:
    """Names of the targets under any of the keys by which `describe_model` looks for them."""
    for key in ("target_names", "targets", "target"):
        if key not in data:
            continue
        names: Any = data[key]
        if isinstance(names, str) and key != "target_names":
            names = [names]
        listed = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
        if not listed or len(names) != n_outputs or len(set(names)) != n_outputs:
            raise damaged(f"{key!r} in its metadata is {shown(names)}, not {n_outputs} different names")


def _encoder(record: dict[str, Any]) -> Any:
    try:
        # Imported only here: most models have none.
        return import_module("scne.rows._encoder").Encoder.from_dict(record)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise damaged(f"its encoder cannot be read ({shortened(str(error))})") from error
