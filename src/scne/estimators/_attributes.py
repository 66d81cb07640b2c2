"""What users read of a fitted model: views of its one value, `fitted_`."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from scne.explain import GroupImportances, group_importances
from scne.fitting import FittedNetworks, HeldOutSums, Member, MemberPlan, NotHeldError, Trend
from scne.ncl import Choice, EnsembleSystem, MemberCosts, Solution, member_costs
from scne.networks import admissible_nodes
from scne.rows import ColumnScaling

if TYPE_CHECKING:
    from scne.rows import Encoder


class FittedAttributes:
    """Of networks and ensembles."""

    fitted_: FittedNetworks

    @property
    def n_outputs_(self) -> int:
        """Outputs."""
        return self.fitted_.n_outputs

    @property
    def target_scaling_(self) -> ColumnScaling:
        """Of the output."""
        return self.fitted_.target_scaling

    @property
    def system_(self) -> EnsembleSystem:
        """G, H'y and y'y of all rows so far."""
        system = self.fitted_.system
        if system is None:
            raise AttributeError("This model holds no Gram matrix.")
        return system

    @property
    def calibration_(self) -> NDArray[np.float64] | None:
        """Errors on rows that the weights had not seen, ascending, shape (m, n_outputs).

        Absolute, in units of y, and divided by the scale of the row, which is 1 in the mean.
        """
        return None if self.fitted_.calibration is None else self.fitted_.calibration.errors

    @property
    def calibration_rows_(self) -> float:
        """Rows that the errors in `calibration_` stand for."""
        if self.fitted_.calibration is None:
            raise AttributeError("This model knows no errors on held-out rows.")
        return self.fitted_.calibration.n_rows

    @property
    def n_rows_(self) -> int | None:
        """Rows of the fit, and of every `partial_fit` since."""
        return self.fitted_.n_rows

    @property
    def encoder_(self) -> "Encoder":
        """The encoder of columns of files, and of tables that are not plain numbers."""
        if self.fitted_.columns.encoder is None:
            raise AttributeError("This model was fitted on numbers without missing values, which need no encoder.")
        return self.fitted_.columns.encoder

    @property
    def data_(self) -> dict[str, Any]:
        """Of a fit on files: the names of the targets."""
        if self.fitted_.columns.data is None:
            raise AttributeError("This model was fitted on arrays, not on files.")
        return self.fitted_.columns.data

    def _sums(self) -> EnsembleSystem:
        check_is_fitted(self)
        system = self.fitted_.with_sums().system
        assert system is not None
        return system

    @property
    def memory_note_(self) -> str | None:
        """A message if the search used fewer rows to stay within its memory budget."""
        return self.fitted_.memory_note


class EnsembleAttributes(FittedAttributes):
    """Of ensembles."""

    @property
    def members_(self) -> tuple[Member, ...]:
        """Hidden layers and how they were found."""
        return self.fitted_.members

    @property
    def groups_(self) -> dict[str, NDArray[np.intp]]:
        """Column positions of each network."""
        return {member.name: member.layer.columns for member in self.members_}

    @property
    def column_groups_(self) -> dict[str, NDArray[np.intp]]:
        """Column positions of each group that was passed, by name."""
        return self.fitted_.columns.groups

    @property
    def n_hidden_(self) -> list[int]:
        """Hidden nodes of each network."""
        return [member.layer.n_nodes for member in self.members_]

    @property
    def input_weights_(self) -> list[NDArray[np.float64]]:
        """Input weights of each network, shapes (d_m, L_m)."""
        return [member.layer.weights for member in self.members_]

    @property
    def biases_(self) -> list[NDArray[np.float64]]:
        """Biases of each network, shapes (L_m,)."""
        return [member.layer.biases for member in self.members_]

    @property
    def output_weights_(self) -> list[NDArray[np.float64]]:
        """Output weights of each network, b_m of Eq. (10), shapes (L_m, n_outputs)."""
        return [beta[:n] for beta, n in zip(self.fitted_.own_weights, self.n_hidden_, strict=True)]

    @property
    def direct_weights_(self) -> list[NDArray[np.float64]] | None:
        """With direct links, shapes (d_m, n_outputs)."""
        if not any(member.layer.direct_link for member in self.members_):
            return None
        return [beta[n:] for beta, n in zip(self.fitted_.own_weights, self.n_hidden_, strict=True)]

    @property
    def member_weights_(self) -> NDArray[np.float64]:
        """a_m of Eq. (10), the weight of each network in the output, shape (M,)."""
        weights, M = self.fitted_.solved.member_weights, len(self.members_)
        return np.full(M, 1.0 / M) if weights is None else weights

    @property
    def member_errors_(self) -> MemberCosts:
        """The cost e_m of each network (Eqs. (15) to (20)) on all rows so far, from the Gram matrix, without a row.

        ``squared_error`` is sum_n (f_m - y)^2, ``penalty`` sum_n p_m = -sum_n (f_m - fbar)^2 and ``cost`` is
        e_m = (squared error + lambda penalty) / 2; shapes (M, n_outputs), in units of the scaled target. They are those
        of the networks themselves, without a linear trend. Networks without a ridge may have weights too large for
        this, which raises a clear error; use `predict_members` instead.

        Examples
        --------
        >>> import numpy as np
        >>> from scne import SCNERegressor
        >>> X = np.random.default_rng(0).uniform(size=(300, 2))
        >>> model = SCNERegressor.paper([[0], [1]], max_hidden=10, random_state=0).fit(X, X[:, 0] ** 2)
        >>> costs = model.member_errors_
        >>> bool(costs.squared_error[0, 0] < costs.squared_error[1, 0]), bool((costs.cost <= costs.squared_error).all())
        (True, True)
        """
        return member_costs(self._sums(), self.solution_.weights, self.decorrelation_)

    @property
    def decorrelation_(self) -> float:
        """lambda."""
        return self.fitted_.solved.decorrelation

    @property
    def ridge_(self) -> NDArray[np.float64]:
        """r of each network."""
        return self.fitted_.solved.ridge

    @property
    def trend_(self) -> Trend | None:
        """The linear part of the output."""
        return self.fitted_.trend.trend

    @property
    def network_share_(self) -> NDArray[np.float64]:
        """The networks' part of each output."""
        return self.fitted_.trend.share

    @property
    def solution_(self) -> Solution:
        """How the output weights were found."""
        return self.fitted_.solved.solution

    @property
    def choice_(self) -> Choice | None:
        """The table of scores from which "auto" chose."""
        return self.fitted_.solved.choice

    @property
    def loss_curve_(self) -> NDArray[np.float64]:
        """Ensemble training error from the naive start to the solution."""
        return self.solution_.error_history

    @property
    def n_iter_(self) -> int:
        """Iterations of the solver, one at least."""
        return max(1, self.solution_.n_iter)

    @property
    def held_out_(self) -> HeldOutSums | None:
        """Sums over the held-out rows."""
        return self.fitted_.held_out

    @property
    def group_importances_(self) -> GroupImportances:
        """Increase of the root mean squared error, in units of y, when a network is left out of the ensemble.

        All other output weights are solved again, with the same ridges and at the same position between averaging and
        the joint fit (see `decorrelation_`); exact, from the Gram matrix, without reading rows. The errors are those on
        held-out rows, of weights solved without them, or if there are none those on the training rows, which a network
        lowers even when it only fits noise. A group of columns that other networks see as well can be important while
        its own network is not: use `permutation_importances` for that.

        Examples
        --------
        >>> import numpy as np
        >>> from scne import SCNERegressor, SCNRegressor
        >>> X = np.random.default_rng(0).uniform(size=(300, 3))
        >>> y = 3 * X[:, 0] + np.sin(6 * X[:, 1])
        >>> base = SCNRegressor(15, validation_fraction=0.2)
        >>> model = SCNERegressor(base, groups={"a": [0], "b": [1], "c": [2]}, networks="per group", trend="none",
        ...                       random_state=0).fit(X, y)
        >>> rises = model.group_importances_.rises
        >>> rises["a"] > rises["b"] > 0.1 > abs(rises["c"])
        True
        """
        check_is_fitted(self)
        try:
            return group_importances(self.fitted_.with_sums())
        except ValueError as error:
            raise NotHeldError(str(error)) from None

    @property
    def admissible_nodes_(self) -> dict[str, NDArray[np.bool_]]:
        """Whether each node satisfies, on all rows, the inequality with which the search admitted it on its sample.

        By the name of each network that was searched, shapes (L_m,). It follows from the Gram system, so no rows are
        read again. Nodes of `add_nodes` were admitted against the residual of the ensemble; here they are tested for
        the same share of the residual of their own network.
        """
        system = self._sums()
        held = {}
        for m, (member, plan) in enumerate(zip(self.members_, self._member_plans(list(self.groups_)), strict=True)):
            if member.search is not None:
                held[member.name] = admissible_nodes(
                    system.diagonal_block(m),
                    system.moments[system.slices[m]],
                    system.target_square,
                    member.search.contractions,
                    plan.criterion,
                    plan.ridge,
                    n_direct=member.layer.n_outputs - member.layer.n_nodes,
                )
        return held

    @abstractmethod
    def _member_plans(self, names: Sequence[str]) -> Sequence[MemberPlan]:
        """How each of the networks of these names is built."""
