"""What a model is made of, in words and numbers, for people who did not fit it."""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from scne.estimators._classifier import SCNEClassifier
from scne.estimators._model_files import load_model, to_content
from scne.estimators._scne import SCNERegressor
from scne.fitting import FittedNetworks, Member
from scne.models import ModelFileError, Unstorable


@dataclass(frozen=True)
class GroupSummary:
    """One network of a model.

    Attributes
    ----------
    name : str
        Of its group of columns.
    columns : tuple of str or of int
        Names where the model knows them, else positions.
    n_nodes : int
    direct_link : bool
    training_error : float or None
        Of this network alone when its nodes were searched, in units of the scaled target; None when they were drawn.
    validation_error : float or None
        The same on the held-out rows.
    stop_reason : str or None
        Why its search ended, as a sentence.
    """

    name: str
    columns: tuple[str, ...] | tuple[int, ...]
    n_nodes: int
    direct_link: bool
    training_error: float | None
    validation_error: float | None
    stop_reason: str | None

    @property
    def n_columns(self) -> int:
        """Number of its columns."""
        return len(self.columns)


@dataclass(frozen=True)
class ModelSummary:
    """Contents of a fitted model. All fields are plain values, so `dataclasses.asdict` gives JSON.

    Attributes
    ----------
    estimator : str
        Name of the class.
    groups : tuple of GroupSummary
    decorrelation : float or None
        lambda; None for a single network.
    ridge : tuple of float
        One per network.
    solver : str or None
        The solver that ran, also if it was chosen by "auto"; None for a single network.
    status : str or None
        How the solve ended.
    n_iter : int or None
    training_error : float or None
        Of the whole model, in units of the scaled target; None for an RVFL network, which keeps no error.
    n_parameters : int
        Input weights, biases and output weights.
    n_bytes : int
        Size of the file; for a model in memory, of the numbers that its file would hold.
    has_system : bool
        Whether it holds the Gram matrix, so that it can be reweighted.
    n_features : int
    feature_names : tuple of str or None
    n_outputs : int
    target_names : tuple of str or None
    encoder : str or None
        Its encoder in a few words.
    target_scale : tuple of float
        One per output: a unit of the scaled target in units of the target.
    classes : tuple or None
        Of a classifier, in their order.
    """

    estimator: str
    groups: tuple[GroupSummary, ...]
    decorrelation: float | None
    ridge: tuple[float, ...]
    solver: str | None
    status: str | None
    n_iter: int | None
    training_error: float | None
    n_parameters: int
    n_bytes: int
    has_system: bool
    n_features: int
    feature_names: tuple[str, ...] | None
    n_outputs: int
    target_names: tuple[str, ...] | None
    encoder: str | None
    target_scale: tuple[float, ...]
    classes: tuple[Any, ...] | None = None

    @property
    def n_nodes(self) -> int:
        """Hidden nodes of all networks."""
        return sum(group.n_nodes for group in self.groups)


def describe_model(source: Any) -> ModelSummary:
    """Describe the contents of a model file, or of a fitted model.

    Parameters
    ----------
    source : str, path-like, or a fitted estimator

    Examples
    --------
    >>> import numpy as np
    >>> from scne import SCNERegressor, SCNRegressor
    >>> from scne.estimators import describe_model
    >>> X = np.random.default_rng(0).uniform(size=(200, 3))
    >>> model = SCNERegressor(SCNRegressor(10), groups={"a": [0], "b": [1, 2]}, networks="per group", random_state=0)
    >>> summary = describe_model(model.fit(X, X.sum(axis=1)))
    >>> [(group.name, group.n_columns, group.n_nodes) for group in summary.groups], summary.solver
    ([('a', 1, 10), ('b', 2, 10)], 'cholesky')
    """
    if isinstance(source, str | os.PathLike):
        model = load_model(source)
        return _summary(model, os.path.getsize(source))
    check_is_fitted(source)
    try:
        tensors = to_content(source, "", with_system=False).tensors
    except Unstorable as error:
        raise ModelFileError(f"This model cannot be described: {error}.") from None
    return _summary(source, sum(tensor.nbytes for tensor in tensors.values()))


def _summary(named: Any, n_bytes: int) -> ModelSummary:
    # A classifier is made of what its regressor is made of.
    model = named.regressor_ if isinstance(named, SCNEClassifier) else named
    fitted: FittedNetworks = model.fitted_
    ensemble, solved = isinstance(model, SCNERegressor), fitted.solved
    groups = tuple(_group(fitted, member) for member in fitted.members)
    encoder, columns = fitted.columns.encoder, fitted.columns
    return ModelSummary(
        estimator=type(named).__name__,
        groups=groups,
        decorrelation=float(solved.decorrelation) if ensemble else None,
        ridge=tuple(float(ridge) for ridge in solved.ridge) if ensemble else (float(getattr(model, "ridge", 0.0)),),
        solver=solved.solution.solver if ensemble else None,
        status=solved.solution.message if ensemble else None,
        n_iter=int(solved.solution.n_iter) if ensemble else None,
        training_error=float(solved.solution.error_history[-1]) if ensemble else groups[0].training_error,
        n_parameters=sum(layer.weights.size + layer.biases.size for layer in fitted.layers)
        + fitted.solved.solution.weights.size,
        n_bytes=n_bytes,
        has_system=fitted.sums is not None,
        n_features=columns.n_columns,
        feature_names=None if columns.names is None else tuple(str(name) for name in columns.names),
        n_outputs=fitted.n_outputs,
        target_names=_target_names(columns.data),
        encoder=None if encoder is None else str(encoder),
        target_scale=tuple(fitted.target_scaling.scale.tolist()),
        classes=tuple(named.classes_.tolist()) if isinstance(named, SCNEClassifier) else None,
    )


def _group(fitted: FittedNetworks, member: Member) -> GroupSummary:
    names, layer, search = fitted.columns.names, member.layer, member.search
    columns = [int(column) for column in layer.columns]

    def last_of(curve: NDArray[np.float64] | None) -> float | None:
        # Curves go on past the nodes that are kept when a prefix was the best.
        return None if curve is None else float(curve[min(layer.n_nodes, len(curve)) - 1])

    return GroupSummary(
        member.name,
        tuple(columns) if names is None else tuple(str(names[column]) for column in columns),
        layer.n_nodes,
        bool(layer.direct_link),
        None if search is None else last_of(search.training_curve),
        None if search is None else last_of(search.validation_curve),
        None if search is None else search.stop_reason.value,
    )


def _target_names(data: dict[str, Any] | None) -> tuple[str, ...] | None:
    """Names under any of the keys by which the description of a model's data may call them."""
    # Of a classifier the targets are indicators, made of one column.
    for key in ("label", "target_names", "targets", "target"):
        names = None if data is None else data.get(key)
        if names is not None:
            return (names,) if isinstance(names, str) else tuple(str(name) for name in names)
    return None
