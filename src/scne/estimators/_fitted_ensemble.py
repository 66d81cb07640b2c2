"""What a fitted ensemble can do beyond predicting: its members, its lambda road, its weights solved again."""

import copy
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from scne.estimators._network import NetworkRegressor
from scne.estimators._updating import UpdatingRegressor
from scne.estimators.inputs._data import check_prediction_inputs
from scne.explain import GroupImportances, group_importances
from scne.fitting import (
    HeldOutSums,
    Member,
    SolvedWeights,
    Trend,
    WeightSettings,
    check_threads,
    member_outputs,
    solve_weights,
)
from scne.ncl import DecorrelationBounds, EnsembleSystem, LambdaPath, decorrelation_bounds, lambda_path
from scne.networks import HiddenLayer, admissible_nodes
from scne.passes import Engine


class FittedEnsemble(UpdatingRegressor):
    """Base of the ensembles: everything that needs a finished fit and no rows of it."""

    members_: tuple[Member, ...]
    groups_: dict[str, NDArray[np.intp]]
    system_: EnsembleSystem
    held_out_: HeldOutSums | None
    trend_: Trend | None
    network_share_: NDArray[np.float64]

    @abstractmethod
    def _template(self) -> NetworkRegressor:
        """The base model."""

    @abstractmethod
    def _weight_settings(self, names: list[str]) -> WeightSettings:
        """How the output weights of networks of these names are chosen."""

    def _store(self, solved: SolvedWeights) -> None:
        self.solution_ = solved.solution
        self.decorrelation_ = solved.decorrelation
        self.ridge_ = solved.ridge
        self.choice_ = solved.choice
        self.loss_curve_ = solved.solution.error_history
        self.n_iter_ = max(1, solved.solution.n_iter)
        layers = [member.layer for member in self.members_]
        ends = np.cumsum([layer.n_outputs for layer in layers])[:-1]
        # Row-major, as pickle will restore it: another order would change the last bits of a product.
        weights = np.split(np.ascontiguousarray(solved.solution.weights), ends)
        self.output_weights_ = [beta[: layer.n_nodes] for beta, layer in zip(weights, layers, strict=True)]
        linked = any(layer.direct_link for layer in layers)
        direct = [beta[layer.n_nodes :] for beta, layer in zip(weights, layers, strict=True)]
        self.direct_weights_ = direct if linked else None

    def _store_members(self, members: Sequence[Member]) -> None:
        layers = [member.layer for member in members]
        self.members_ = tuple(members)
        self.n_hidden_ = [layer.n_nodes for layer in layers]
        self.input_weights_ = [layer.weights for layer in layers]
        self.biases_ = [layer.biases for layer in layers]

    def _networks(self) -> tuple[Member, ...]:
        return self.members_

    def _solved(self, system: EnsembleSystem) -> SolvedWeights:
        settings = self._weight_settings(list(self.groups_))
        solved = solve_weights(system, replace(settings, decorrelation=self.decorrelation_, ridge=self.ridge_))
        return replace(solved, choice=self.choice_)

    def _take_weights(self, solved: SolvedWeights) -> None:
        self._store(solved)

    def _take_nodes(self, members: Sequence[Member], solved: SolvedWeights) -> None:
        self._store_members(members)
        self._store(solved)

    def reweighted(self, **settings: Any) -> Self:
        """A copy of this fitted ensemble whose output weights are solved again, on the same networks and rows.

        Parameters
        ----------
        **settings
            Any of solver, decorrelation, ridge, max_iter, tol and step_tol. What is "auto" is chosen by generalised
            cross-validation here, since the rows are gone.

        Returns
        -------
        SCNERegressor
            Fitted; this one is left as it is.

        Examples
        --------
        >>> import numpy as np
        >>> from scne import SCNERegressor, SCNRegressor
        >>> X = np.random.default_rng(0).uniform(size=(200, 2))
        >>> model = SCNERegressor(SCNRegressor(10), groups=[[0], [1]], random_state=0).fit(X, X.sum(axis=1))
        >>> naive = model.reweighted(solver="naive")
        >>> naive.score(X, X.sum(axis=1)) < model.score(X, X.sum(axis=1))
        True
        """
        check_is_fitted(self)
        allowed = ("solver", "decorrelation", "ridge", "max_iter", "tol", "step_tol")
        unknown = sorted(set(settings) - set(allowed))
        if unknown:
            raise TypeError(f"reweighted got {unknown[0]!r}, but it takes only {', '.join(allowed)}.")
        other = copy.copy(self).set_params(**settings)
        other._store(solve_weights(self._system(), other._weight_settings(list(self.groups_))))
        # The rows that were held out are gone, and the errors on them were those of other weights.
        other.calibration_ = None
        return other

    def admissible_nodes(self) -> dict[str, NDArray[np.bool_]]:
        """Whether each node satisfies, on all rows, the inequality with which the search admitted it on its sample.

        Returns
        -------
        dict of str to ndarray of bool, shape (L_m,)
            For each network that was searched; it follows from the Gram system, so no row is read again. Nodes of
            `add_nodes` were admitted against what all networks together left, and are asked for the same share of
            what their own network leaves.
        """
        check_is_fitted(self)
        system = self._system()
        template = self._template()
        held = {}
        for m, member in enumerate(self.members_):
            if member.search is None:
                continue
            held[member.name] = admissible_nodes(
                system.diagonal_block(m),
                system.moments[system.slices[m]],
                system.target_square,
                member.search.contractions,
                getattr(template, "criterion", "paper"),
                template.ridge,
                n_direct=member.layer.n_outputs - member.layer.n_nodes,
            )
        return held

    def group_importances(self) -> GroupImportances:
        """What the root mean squared error rises by, in units of y, when a network is left out of the ensemble.

        All other output weights are solved again, with the same ridges and at the same place between averaging and
        the joint fit (see `decorrelation_`); exact, from the Gram matrix, without a row. The errors are those on the
        rows that the fit held out, of weights solved without them, or without such rows those on the training rows,
        which a network lowers even when it has learned nothing but noise. A group of columns that other networks see
        as well can be important while its own network is not: ask `permutation_importances` for that.

        Returns
        -------
        GroupImportances

        Examples
        --------
        >>> import numpy as np
        >>> from scne import SCNERegressor, SCNRegressor
        >>> X = np.random.default_rng(0).uniform(size=(300, 3))
        >>> y = 3 * X[:, 0] + np.sin(6 * X[:, 1])
        >>> model = SCNERegressor(SCNRegressor(15, validation_fraction=0.2), groups={"a": [0], "b": [1], "c": [2]},
        ...                       random_state=0).fit(X, y)
        >>> rises = model.group_importances().rises
        >>> rises["a"] > rises["b"] > 0.1 > abs(rises["c"])
        True
        """
        check_is_fitted(self)
        return group_importances(
            list(self.groups_),
            self._system(),
            self.held_out_,
            self.decorrelation_,
            self.ridge_,
            self.target_scaling_,
            self._flat_target,
        )

    def decorrelation_path(self, decorrelations: Any = None) -> LambdaPath:
        """Training error, degrees of freedom and GCV score for many lambdas at the fitted ridge."""
        check_is_fitted(self)
        return lambda_path(self._system(), self.ridge_, decorrelations)

    def decorrelation_bounds(self) -> DecorrelationBounds:
        """Bounds of lambda on these rows: the paper's, the two that need no data, and the exact one of block Jacobi."""
        check_is_fitted(self)
        return decorrelation_bounds(self._system(), self.ridge_)

    def predict_members(self, X: Any) -> NDArray[np.float64]:
        """Every network's own output, whose mean over the networks is `predict`.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (M, n_rows) or (M, n_rows, n_outputs), as y was
        """
        check_is_fitted(self)
        inputs = check_prediction_inputs(self, X)
        with Engine(check_threads(self.n_jobs)) as engine:
            scaled = member_outputs(inputs, self._member_layers(), self._member_weights(), engine)
        outputs = self.target_scaling_.undo(scaled)
        if self.trend_ is not None:
            outputs += self.trend_.apply(inputs)
        return outputs[:, :, 0] if self._flat_target else outputs

    def _system(self) -> EnsembleSystem:
        if not hasattr(self, "system_"):
            raise ValueError(
                "This ensemble holds no Gram matrix: it was fitted with matrix_free=True, or loaded from a file "
                "that was saved without it (save with with_system=True)."
            )
        return self.system_

    def _member_layers(self) -> list[HiddenLayer]:
        return [member.layer for member in self.members_]

    def _member_weights(self) -> list[NDArray[np.float64]]:
        weights = self.output_weights_
        if self.direct_weights_ is not None:
            weights = [np.vstack(pair) for pair in zip(weights, self.direct_weights_, strict=True)]
        # A product with one changes no bit, but would cost a copy.
        return weights if (self.network_share_ == 1).all() else [beta * self.network_share_ for beta in weights]

    def _layers(self) -> list[HiddenLayer]:
        """The networks' layers, and after them that of the trend: one more term of the mean."""
        return self._member_layers() + ([] if self.trend_ is None else [self.trend_.layer])

    def _joint_weights(self) -> list[NDArray[np.float64]]:
        weights = self._member_weights()
        if self.trend_ is None:
            return weights
        # A mean of M + 1 terms that comes to the mean of the first M plus the last.
        more = len(weights) + 1
        last = self.trend_.weights * (more / self.target_scaling_.scale)
        return [*(beta * (more / len(weights)) for beta in weights), last]
