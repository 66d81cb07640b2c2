"""Classification: an ensemble on indicators of classes, and calibrated probabilities."""

import os
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from scne.estimators._class_predictions import ClassPredictions
from scne.estimators._effort import DEFAULT_EFFORT
from scne.estimators._learning_on import sums_are_kept
from scne.estimators._network import NetworkRegressor
from scne.estimators._scne import SCNERegressor
from scne.estimators.inputs._data import GivenRows, all_or_nothing
from scne.estimators.inputs._held_frames import held_frames
from scne.estimators.inputs._known_files import opened
from scne.estimators.inputs._labelled import KnownClasses, labelled_rows, later_labelled_rows
from scne.estimators.inputs._labels import class_weighting, in_proportion, stated_classes
from scne.estimators.inputs._later_rows import later_rows
from scne.estimators.inputs._types import ClassWeight, Groups, MemberWeights, RandomState, Ridge, Table
from scne.explain import model_card
from scne.fitting import NotHeldError, ProbabilityMap, check_real, class_scores, fit_map, probabilities
from scne.rows import UNIT_SCALE, WeightScale, codes_of_targets, to_numpy

if TYPE_CHECKING:
    from scne.fitting import Checkpoint
    from scne.models import ExportPlan

# Rows of the fit whose outputs are looked at when none were held out.
_MOST_SEEN_ROWS = 10_000


class SCNEClassifier(ClassPredictions):
    """An ensemble of networks that are decorrelated by negative correlation learning, for classes.

    An `SCNERegressor` is fitted to an indicator of each class, 0 or 1, or for two classes to one output of -1 and +1.
    Its outputs f become probabilities by ``softmax_k(a f_k + c log s(f_k) + b_k)``, s being a smooth max(f, 0). a, c
    and b are fitted to outputs for rows that the fit held out, of output weights that have not seen them: vector
    scaling, for two classes Platt scaling with his smoothed targets, with a term for outputs that are good
    probabilities already.

    Parameters
    ----------
    estimator : SCNRegressor or RVFLRegressor, default=None
        The base model; None is ``SCNRegressor.tuned(effort)``, which holds out 15 % of the rows. If it holds out no
        rows (or fewer than 40 different ones), probabilities are calibrated on the training rows, on which the model is
        overconfident: they are then shrunk towards a map of moderate slope, and are less reliable. Pass X_val, or a
        `validation_fraction`. Its targets are the indicators: target_scaling="standard" lets rare classes count as much
        as others when nodes are searched.
    effort, groups, n_estimators, networks, sources_per_node, trend, solver, decorrelation, ridge : see `SCNERegressor`
        lambda and the ridge are chosen by squared error, as there. A single network is n_estimators=1. With a
        matrix-free solver no row is evaluated with weights that have not seen it (see `estimator`), unless X_val is
        given.
    member_weights, max_iter, tol : see `SCNERegressor`
    class_weight : dict, "balanced" or None, default=None
        The weight of a row by its label, multiplied by its sample weight; "balanced" gives all classes the same total
        weight. Class weights set proportions: the sum of all weights stays what it is without them. Probabilities are
        then those of rows that come in these proportions.
    device : str or None, default=None
        Where computations run, as for `SCNERegressor`: "cuda", "auto", "cpu", or None, which follows X. The map to
        probabilities is fitted on the CPU, and applied where the outputs are.
    n_jobs : int or None, default=None
        Threads; None is every core. The model does not depend on it.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    regressor_ : SCNERegressor
        Fitted to the indicators of the classes.
    probability_map_ : ProbabilityMap
        `slopes` a and c, `biases` b, and `n_rows`, the held-out rows that they come from (None: rows of the fit).
    held_out_scores_ : ClassScores or None
        Accuracy and log loss on held-out rows; None without such rows, and once later rows or nodes have come.
    feature_importances_ : ndarray of shape (n_features_in_,)
    class_weights_ : ndarray of shape (n_classes,)
        The weight of a row of each class, times its sample weight.

    Notes
    -----
    docs/classification.md compares accuracy and log loss with other classifiers, and shows how reliable the
    probabilities are.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from scne import SCNEClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SCNEClassifier(random_state=0).fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.93
    True
    >>> model.predict_proba(X[1::2]).shape
    (75, 3)
    """

    def __init__(
        self,
        estimator: NetworkRegressor | None = None,
        *,
        effort: int = DEFAULT_EFFORT,
        groups: Groups = None,
        n_estimators: int | None = None,
        networks: str = "across",
        sources_per_node: int | None = None,
        trend: str = "judged",
        solver: str = "auto",
        decorrelation: float | str = "auto",
        ridge: Ridge = "auto",
        member_weights: MemberWeights = None,
        max_iter: int = 100,
        tol: float = 0.0,
        class_weight: ClassWeight = None,
        device: str | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.effort = effort
        self.groups = groups
        self.n_estimators = n_estimators
        self.networks = networks
        self.sources_per_node = sources_per_node
        self.trend = trend
        self.solver = solver
        self.decorrelation = decorrelation
        self.ridge = ridge
        self.member_weights = member_weights
        self.max_iter = max_iter
        self.tol = tol
        self.class_weight = class_weight
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state

    @property
    def n_iter_(self) -> int:
        """Iterations of the solver."""
        return self.regressor_.n_iter_

    def _unfitted_regressor(self) -> SCNERegressor:
        parameters = self.get_params(deep=False)
        del parameters["class_weight"]
        return SCNERegressor(**parameters)

    def _export_plan(self, interval: float | None) -> "ExportPlan":
        from scne.models import class_map, export_plan

        if interval is not None:
            raise ValueError(
                f"interval is {interval!r}, but a {type(self).__name__} gives probabilities and no intervals."
            )
        classes = class_map(self.classes_, self.probability_map_)
        return export_plan(self.regressor_.fitted_, type(self).__name__, None, classes)

    def fit(
        self,
        X: Table,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        checkpoint: "str | os.PathLike[str] | Checkpoint | None" = None,
        client: Any = None,
    ) -> Self:
        """Fit a regressor to indicators of the classes, then calibrate probabilities on held-out rows.

        Parameters
        ----------
        X : array-like, data frame or tensor of shape (n_rows, n_columns), Dask array or data frame, or rows in files
            Rows from `scne.open_rows` are streamed, and include the target: a column of text, of true and
            false, or of whole numbers, with up to 1,000 different labels. One pass over that column counts them.
        y : array-like of shape (n_rows,)
            Labels: numbers or text, of two classes or more. Tensors of labels and weights are copied to this process;
            a Dask collection stays where it is.
        sample_weight : array-like of shape (n_rows,), optional
            Only their ratios matter; see `SCNERegressor.fit`.
        X_val, y_val : array-like, optional
            Your own validation rows, as in `SCNERegressor.fit`; probabilities are calibrated on them too.
        checkpoint : path, optional
            Folder that keeps the fit's progress; see `SCNERegressor.fit`.
        client : distributed.Client, pyspark.sql.SparkSession or the module ray, optional
            The cluster to fit on; see `SCNERegressor.fit`.

        Returns
        -------
        self
        """
        with held_frames(self, GivenRows(X, y, sample_weight, X_val, y_val, client), checkpoint) as given:
            return self._first_fit(given, checkpoint)

    @all_or_nothing
    def _first_fit(
        self,
        given: GivenRows,
        checkpoint: "str | os.PathLike[str] | Checkpoint | None" = None,
        classes: ArrayLike | None = None,
    ) -> Self:
        rows = labelled_rows(self, given, partial(class_weighting, self.class_weight), classes)
        regressor = self._unfitted_regressor()
        held_out = regressor._fit(rows.given, checkpoint, widens=False)
        self.regressor_, self.classes_ = regressor, rows.classes
        self.class_weights_ = np.ones(len(rows.classes)) if rows.by_class is None else rows.by_class
        self.n_features_in_ = regressor.n_features_in_
        if hasattr(regressor, "feature_names_in_"):
            self.feature_names_in_ = regressor.feature_names_in_
        self.held_out_scores_ = None
        if held_out is None:
            self.probability_map_ = self._map_of_seen(rows.given)
            return self
        assert held_out.rows.targets is not None
        assert rows.totals is not None
        codes = codes_of_targets(to_numpy(held_out.rows.targets))
        if given.X_val is not None:
            weights = self.class_weights_[codes]
        else:
            counted = held_out.rows.weights
            weights = in_proportion(codes, None if counted is None else to_numpy(counted), rows.totals)
        outputs = to_numpy(held_out.outputs)
        self.probability_map_ = fit_map(outputs, codes, weights)
        shares = probabilities(self.probability_map_.scores(outputs))
        self.held_out_scores_ = class_scores(shares, codes, weights)
        return self

    @available_if(sums_are_kept)
    def partial_fit(
        self,
        X: Table,
        y: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        forgetting: float = 1.0,
    ) -> Self:
        """Update the model with more rows, without the training rows.

        The first call on an unfitted model is a `fit`. Later ones leave the hidden layers, the weights of the classes
        and the map to probabilities as they are, and solve the output weights on the sums of all rows so far; see
        `SCNERegressor.partial_fit`. Where the proportions of the classes move, or the outputs become much better than
        those of the first call, its probabilities are no longer calibrated: fit anew on a store of recent rows.

        Parameters
        ----------
        X : array-like, data frame or tensor of shape (n_rows, n_columns), Dask array or data frame, or rows in files
            With the columns of the first call. Files can follow a first call on files.
        y : array-like of shape (n_rows,)
            Labels, of the classes of the first call.
        classes : array-like of shape (n_classes,), optional
            For the first call: all classes that any call may bring. None takes those of the first call's rows.
        sample_weight : array-like of shape (n_rows,), optional
            On the scale of the first call; see `SCNERegressor.partial_fit`.
        forgetting : float in (0, 1], default=1.0
            The weight of every older row is multiplied by it, before the new rows count in full.

        Returns
        -------
        self

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from scne import RVFLRegressor, SCNEClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = SCNEClassifier(RVFLRegressor(20), n_estimators=2, random_state=0)
        >>> for part in range(3):
        ...     model = model.partial_fit(X[part::3], y[part::3])
        >>> model.regressor_.n_rows_, model.score(X, y) > 0.95
        (150, True)
        """
        forgetting = check_real("forgetting", forgetting, open_left=True, most=1.0)
        if not hasattr(self, "probability_map_"):
            return self._first_fit(GivenRows(X, y, sample_weight), classes=classes)
        if classes is not None and not np.array_equal(stated_classes(classes), self.classes_):
            raise ValueError(
                f"classes is {np.asarray(classes).tolist()!r:.200}, but the first call had "
                f"{self.classes_.tolist()!r:.200}; later calls cannot change them."
            )
        known_classes = self._known_classes(self.fitted_.weight_scale or UNIT_SCALE)
        later = later_labelled_rows(GivenRows(opened(self, X, with_targets=True), y, sample_weight), known_classes)
        self.regressor_.partial_fit(later.X, later.y, later.sample_weight, forgetting=forgetting)
        self.held_out_scores_ = None
        return self

    def add_nodes(self, n: int, X: Table, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Grow every network by up to n hidden nodes, then solve the output weights on the given rows.

        The map to probabilities does not change; see `SCNERegressor.add_nodes` for everything else.

        Parameters
        ----------
        n : int
            Nodes for each network.
        X : array-like, data frame or tensor of shape (n_rows, n_columns), Dask array or data frame, or rows in files
            All rows for the updated model.
        y : array-like of shape (n_rows,)
            Labels, of the classes of the fit.
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        self
        """
        check_is_fitted(self)
        given = GivenRows(opened(self, X, with_targets=True), y, sample_weight)
        later = later_labelled_rows(given, self._known_classes(None))
        self.regressor_.add_nodes(n, later.X, later.y, later.sample_weight)
        self.held_out_scores_ = None
        return self

    def _known_classes(self, scale: WeightScale | None) -> KnownClasses:
        """What later rows are to be: the weights of classes are those of the first call."""
        if not hasattr(self, "class_weights_"):
            raise NotHeldError(
                f"This {type(self).__name__} was loaded from a file of an older scne, which does not hold the weights "
                "of its classes; fit it again to add rows or nodes."
            )
        by_class = None if self.class_weight is None else self.class_weights_
        return KnownClasses(self.classes_, by_class, scale, self._label_column())

    def _map_of_seen(self, given: GivenRows) -> ProbabilityMap:
        """The map from the training rows, where none were held out."""
        rows = later_rows(self.regressor_, given, _MOST_SEEN_ROWS, 0, UNIT_SCALE).sample()
        outputs = to_numpy(self._outputs(rows.inputs))
        if not np.isfinite(outputs).all():
            raise ValueError(
                "The outputs of the fit are not finite, because its iteration diverged; use solver='cholesky', or a "
                "smaller decorrelation."
            )
        assert rows.targets is not None
        return fit_map(outputs, codes_of_targets(rows.targets), rows.weights, seen=True)

    def summary(self) -> str:
        """Describe the classifier, and what the fit of its regressor chose and why, in one paragraph.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from scne import SCNEClassifier
        >>> SCNEClassifier(random_state=0).fit(*load_iris(return_X_y=True)).summary()[:108]
        'This SCNEClassifier distinguishes 3 classes; its probabilities are calibrated on 22 rows that were held out.'
        """
        check_is_fitted(self)
        n_rows = self.probability_map_.n_rows
        rest = "the training rows, because none were" if n_rows is None else f"{n_rows:,} rows that were"
        return (
            f"This {type(self).__name__} distinguishes {len(self.classes_):,} classes; its probabilities are "
            f"calibrated on {rest} held out. {self.regressor_.summary()}"
        )

    def _html_repr(self) -> str:
        """Scikit-learn's diagram, and below it a card on what was fitted."""
        diagram: str = super()._html_repr()
        if not hasattr(self, "probability_map_"):
            return diagram
        scores = [("classes", f"{len(self.classes_):,}")]
        if self.held_out_scores_ is not None:
            held_out = self.held_out_scores_
            frequent = f"most frequent class {held_out.most_frequent:.3f}"
            scores.append(("accuracy on held-out rows", f"{held_out.accuracy:.3f} ({frequent})"))
            scores.append(("log loss", f"{held_out.log_loss:.3f} (class shares {held_out.share_loss:.3f})"))
        return f"{diagram}{model_card(self.regressor_.fitted_, self.regressor_._described(), scores)}"
