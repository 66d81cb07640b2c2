"""Fitted estimators as files, and back."""

import os
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from scne.estimators._checked_parameters import check_class_weight, check_parameters
from scne.estimators._classifier import SCNEClassifier
from scne.estimators._dnne import DNNERegressor
from scne.estimators._rvfl import RVFLRegressor
from scne.estimators._scn import SCNRegressor
from scne.estimators._scne import SCNERegressor
from scne.estimators._stored_parameters import SINGLE_CLASSIFIER, present_ensemble, present_network
from scne.estimators.inputs._monotone import checked_monotone
from scne.fitting import Columns, FittedNetworks
from scne.models import (
    MOST_COLUMNS,
    Content,
    Shelf,
    StoredClassifier,
    Unreadable,
    Unstorable,
    damaged,
    field,
    read_classifier,
    read_content,
    read_encoder,
    read_networks,
    shortened,
    shown,
    store_classifier,
    store_encoder,
    store_networks,
    version_text,
    write_content,
)

# The only classes that a file can name: loading looks a name up here and nowhere else.
NETWORKS: dict[str, Any] = {cls.__name__: cls for cls in (SCNRegressor, RVFLRegressor)}
ENSEMBLES: dict[str, Any] = {cls.__name__: cls for cls in (SCNERegressor, DNNERegressor)}
CLASSIFIERS: dict[str, Any] = {SCNEClassifier.__name__: SCNEClassifier}
ESTIMATORS = ENSEMBLES | NETWORKS | CLASSIFIERS
# Those with a base model among their parameters.
_WITH_BASE = (*ENSEMBLES, SCNEClassifier.__name__)


def save_model(model: Any, path: str | os.PathLike[str], *, with_system: bool = False) -> None:
    """Save a fitted model as one file of plain tensors; `load_model` gives it back with the same predictions.

    The same model gives the same bytes. The file appears whole or not at all.

    Parameters
    ----------
    model : SCNERegressor, DNNERegressor, SCNRegressor, RVFLRegressor or SCNEClassifier
        Fitted. A `random_state` that is a generator, not a number, comes back as None.
    path : str or path-like
        Usually ends in ``.scne``; what was there is replaced.
    with_system : bool, default=False
        Also save the Gram matrix of all L nodes, 8 L^2 bytes, so that the loaded ensemble can be `reweighted`.

    Raises
    ------
    ModelFileError
        When the file cannot be written, or the model holds what a file cannot.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from scne import RVFLRegressor
    >>> from scne.estimators import load_model, save_model
    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> model = RVFLRegressor(20, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, pathlib.Path(folder) / "sine.scne")
    ...     again = load_model(pathlib.Path(folder) / "sine.scne")
    >>> np.array_equal(again.predict(X), model.predict(X))
    True
    """
    write_content(path, lambda: to_content(model, version("scne"), with_system))


def load_model(path: str | os.PathLike[str]) -> Any:
    """Load a model that `save_model` wrote. No code from the file is run, whoever made it.

    Whatever the file holds, loading ends with a model or an error. It takes at most 256 MB more than the file's size,
    and at most two seconds for a file that is not a model. All numbers are checked before they are used.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    SCNERegressor, DNNERegressor, SCNRegressor, RVFLRegressor or SCNEClassifier
        Fitted, with the same predictions to the last bit.

    Raises
    ------
    ModelFileError
        If the file does not exist, is damaged, comes from another program, or has a newer format.
    """
    return read_content(path, from_content)


def to_content(model: Any, scne_version: str, with_system: bool) -> Content:
    """Everything of a fitted model that a file holds."""
    name = _class_name(model, ESTIMATORS)
    check_is_fitted(model)
    if name in CLASSIFIERS:
        inner = to_content(model.regressor_, scne_version, with_system)
        weights = getattr(model, "class_weights_", None) if model.class_weight is not None else None
        document, tensors = store_classifier(
            StoredClassifier(model.classes_, model.probability_map_, weights, model.held_out_scores_)
        )
        return Content(inner.document | {"estimator": _parameters(model, name)} | document, inner.tensors | tensors)
    fitted = model.fitted_
    if fitted.columns.n_columns > MOST_COLUMNS:
        raise Unstorable(f"it has {fitted.columns.n_columns:,} columns, and a model file can hold {MOST_COLUMNS:,}")
    document, tensors = store_networks(fitted, name in ENSEMBLES, with_system)
    head = {"scne": scne_version, "estimator": _parameters(model, name)}
    encoder = fitted.columns.encoder
    record, means = (None, {}) if encoder is None else store_encoder(encoder.to_dict())
    return Content(head | document | {"encoder": record, "data": fitted.columns.data}, tensors | means)


def from_content(content: Content) -> Any:
    """The fitted model that a file holds."""
    document, shelf = content.document, Shelf(content.tensors)
    record = field(document, "estimator", dict)
    named = _unfitted(record, version_text(document.get("scne")))
    classifier = named if isinstance(named, SCNEClassifier) else None
    model = named if classifier is None else classifier._unfitted_regressor()
    check_parameters(model)
    # Older files hold classifiers of one network.
    network: Any = model.estimator if record["class"] == SINGLE_CLASSIFIER else model
    is_ensemble = isinstance(network, SCNERegressor)
    has_groups = is_ensemble and (model.groups is not None or document.get("encoder") is not None)
    fitted = read_networks(
        document,
        shelf,
        is_ensemble=is_ensemble,
        is_searched=isinstance(network, SCNRegressor),
        has_groups=has_groups,
        ridge=0.0 if is_ensemble else float(network.ridge),
    )
    if record["class"] == SINGLE_CLASSIFIER:
        fitted = _as_ensemble(fitted)
    columns = _with_extras(fitted, document, shelf, classifier is not None)
    model.fitted_ = replace(fitted, columns=columns)
    if getattr(model, "monotone", None) is not None:
        try:
            model.fitted_ = model.fitted_.with_directions(model._directions())
        except (TypeError, ValueError) as error:
            raise damaged(f"its parameter monotone does not go with its columns ({shortened(str(error))})") from error
    model.n_features_in_, names = columns.n_columns, columns.names
    if columns.encoder is not None:
        inputs = columns.encoder.inputs
        model.n_features_in_, names = len(inputs), None if columns.encoder.by_position else inputs
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    if classifier is not None:
        check_class_weight(classifier.class_weight)
        stored = read_classifier(document, shelf, fitted.n_outputs)
        classifier.classes_, classifier.probability_map_ = stored.classes, stored.mapping
        classifier.held_out_scores_ = stored.scores
        if stored.class_weights is not None:
            classifier.class_weights_ = stored.class_weights
        elif classifier.class_weight is None:
            classifier.class_weights_ = np.ones(len(stored.classes))
        classifier.regressor_, classifier.n_features_in_ = model, model.n_features_in_
        if names is not None:
            classifier.feature_names_in_ = model.feature_names_in_
    shelf.check_empty()
    return named


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
        if isinstance(base, Mapping):
            record["bases"] = {str(key): _parameters(one, _class_name(one, NETWORKS)) for key, one in base.items()}
            base = None
        record["base"] = None if base is None else _parameters(base, _class_name(base, NETWORKS))
    seed = parameters["random_state"]
    # A generator has moved on since the fit: it names no model that could be fitted again.
    parameters["random_state"] = int(seed) if isinstance(seed, int | np.integer) else None
    # Younger than the format: without them a file is as it was, and older versions read it.
    for younger in ("member_weights", "sources_per_node", "monotone"):
        if parameters.get(younger, ...) is None:
            del parameters[younger]
    if "monotone" in parameters:
        # As pairs: a file knows no mapping from positions.
        signs = checked_monotone(parameters["monotone"])
        parameters["monotone"] = [[key, "increasing" if sign > 0 else "decreasing"] for key, sign in signs.items()]
    return record | {"parameters": parameters}


def _unfitted(record: dict[str, Any], scne_version: str) -> Any:
    name = field(record, "class", str)
    if name not in (*ESTIMATORS, SINGLE_CLASSIFIER):
        raise Unreadable(f"holds a {shown(name)}, and this scne can read only {', '.join(ESTIMATORS)} from a file.")
    stored = field(record, "parameters", dict)
    if name == SINGLE_CLASSIFIER:
        weight: dict[str, Any] = {"class_weight": stored.get("class_weight")}
        network = _network("SCNRegressor", {key: stored[key] for key in stored if key != "class_weight"}, scne_version)
        shared = {key: getattr(network, key) for key in ("device", "n_jobs", "random_state")}
        return SCNEClassifier(network, n_estimators=1, trend="none", ridge=network.ridge, **weight, **shared)
    if name in NETWORKS:
        return _network(name, stored, scne_version)
    base: Any = field(record, "base", dict, type(None))
    base = None if base is None else _base(base, scne_version)
    # One for each group, by its name.
    if "bases" in record:
        bases = field(record, "bases", dict)
        base = {key: _base(field(bases, key, dict), scne_version) for key in bases}
    base, parameters = present_ensemble(name, base, stored)
    return _made(ESTIMATORS[name], {**parameters, "estimator": base}, scne_version)


def _base(record: dict[str, Any], scne_version: str) -> Any:
    name = field(record, "class", str)
    if name not in NETWORKS:
        raise Unreadable(f"holds a {shown(name)}, and this scne can read only {', '.join(NETWORKS)} as a base model.")
    return _network(name, field(record, "parameters", dict), scne_version)


def _network(name: str, stored: dict[str, Any], scne_version: str) -> Any:
    return _made(NETWORKS[name], present_network(name, stored), scne_version)


def _made(cls: Any, parameters: dict[str, Any], scne_version: str) -> Any:
    unknown = sorted(set(map(str, parameters)) - set(cls._get_param_names()))
    if unknown:
        raise Unreadable(
            f"was written by scne {scne_version}, whose {cls.__name__} has a parameter {shown(unknown[0])} that this "
            "scne does not know: upgrade scne to read it."
        )
    if isinstance(parameters.get("monotone"), list):
        pairs = parameters["monotone"]
        if not all(isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str | int) for pair in pairs):
            raise damaged("its parameter monotone is no list of columns with directions")
        parameters = {**parameters, "monotone": dict(pairs)}
    # Parameters that the file lacks are younger than the file, and their defaults leave things as they were.
    return cls(**parameters)


def _as_ensemble(fitted: FittedNetworks) -> FittedNetworks:
    """A single network as an ensemble of one, whose error is that of its search."""
    layer, search = fitted.members[0].layer, fitted.members[0].search
    assert search is not None
    error = search.training_curve[: max(1, layer.n_nodes)][-1:]
    return replace(fitted, solved=replace(fitted.solved, solution=replace(fitted.solved.solution, error_history=error)))


def _with_extras(fitted: FittedNetworks, document: dict[str, Any], shelf: Shelf, has_labels: bool) -> Columns:
    """The columns with their encoder and the names of targets, where a file has them."""
    data = field(document, "data", dict, type(None))
    if data is not None:
        # Several levels of a quantile are outputs of one target.
        _check_target_names(data, 1 if len(fitted.loss.levels) > 1 else fitted.n_outputs)
        if has_labels != isinstance(data.get("label"), str):
            raise damaged(f"'label' in its metadata is {shown(data.get('label'))}, not the column of labels, if any")
    encoder = field(document, "encoder", dict, type(None))
    if encoder is None:
        return replace(fitted.columns, data=data)
    if data is not None and "target_names" not in data:
        raise damaged("it was fitted on files, but holds no names of targets")
    read = _encoder(encoder, shelf)
    if read.names != (fitted.columns.names or ()):
        raise damaged("its encoder makes other columns than those that its networks see")
    return replace(fitted.columns, data=data, encoder=read)


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


def _encoder(record: dict[str, Any], shelf: Shelf) -> Any:
    try:
        # Imported only here: most models have none.
        return import_module("scne.rows._encoder").Encoder.from_dict(read_encoder(record, shelf))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise damaged(f"its encoder cannot be read ({shortened(str(error))})") from error
