"""What every fitted model can say of single predictions."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from scne.estimators.inputs._data import is_dask_collection
from scne.estimators.inputs._known_files import opened
from scne.estimators.inputs._types import RandomState, Table
from scne.fitting import check_integer, check_real

if TYPE_CHECKING:
    from scne.estimators._class_predictions import ClassPredictions
    from scne.estimators._regressor import FittedRegressor
    from scne.explain import Contributions


class Contributing:
    """A fitted model whose predictions are sums of terms of its columns or sources."""

    def contributions(
        self,
        X: Table,
        background: "Table | None" = None,
        *,
        by: str | Mapping[str, object] = "columns",
        interactions: bool = False,
        max_background: int | None = 100,
        tolerance: float = 1e-10,
        random_state: RandomState = 0,
    ) -> "Contributions":
        """What each column or source adds to every prediction, relative to the mean prediction of a background.

        With v(S) the mean output of rows that have the columns of S from the row x that is explained, and the others
        from a row of the background, the term of a player j (a column or a source) is its Shapley value

        ``phi_j(x) = sum over S without j of |S|! (p - 1 - |S|)! / p! (v(S + j) - v(S))``,

        computed from every node's own players and not sampled. Terms add up to the prediction minus the background's
        mean. With `interactions` there is a term for every set T of players,
        ``f_T(x) = sum over S in T of (-1)^(|T| - |S|) v(S)``: the joint effect of T beyond its parts.
        docs/mathematics.md has the proofs.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_columns), Dask array or data frame, rows in files, or a path
            Rows in files are streamed: memory holds their terms alone. Those of a Dask collection are computed where
            its parts lie, once they are asked for.
        background : as X but for Dask collections, default=None
            Rows to compare predictions with, such as the training rows, which a model does not store. None uses X
            itself, which must then have more than one row and not be a Dask collection.
        by : "columns", "sources" or a mapping of names to columns, default="columns"
            How a prediction is split. A text or a date is one column, whatever its encoding; the year, month and
            day of one date, which are read together, are one term. "sources" are the groups of the fit; columns in
            none are "other columns". A mapping takes the columns of each source as `groups` does.
        interactions : bool, default=False
            Terms of sets of players. No node may then read more than 10 of them.
        max_background : int or None, default=100
            Largest number of background rows; a larger background is sampled, None uses all rows. The time grows in
            proportion.
        tolerance : float, default=1e-10
            The largest error of a Shapley value in units of the scaled target, from nodes that read more players than
            are enumerated (7; 11 without compiled kernels). 1e-3 takes a third of the time. The sum of the terms does
            not depend on it.
        random_state : int, RandomState or None, default=0
            Draws the background's rows.

        Returns
        -------
        Contributions
            ``.names``, ``.values`` of shape (n_rows, k) or (n_rows, k, n_outputs), ``.base_value``, and
            ``.to_explanation()`` for the plots of shap. Values are NumPy's, or a Dask array where X is Dask's. Of a
            classifier they are terms of the outputs before these become probabilities: one for each class, about its
            probability, or of two classes one between -1 and +1.

        Examples
        --------
        >>> import numpy as np
        >>> from scne import SCNRegressor
        >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 3))
        >>> model = SCNRegressor(40, random_state=0).fit(X, 3 * X[:, 0] + X[:, 1] * X[:, 2])
        >>> found = model.contributions(X)
        >>> bool(np.allclose(found.predictions, model.predict(X), rtol=0, atol=1e-10))
        True
        >>> sources = model.contributions(X, by={"line": [0], "product": [1, 2]}, interactions=True)
        >>> sources.names
        ('line', 'product', 'line x product')
        >>> bool(np.corrcoef(sources.values[:, 1], X[:, 1] * X[:, 2])[0, 1] > 0.98)
        True
        """
        # Loaded with the first explanation: a fit needs none of it.
        from scne.estimators.inputs._explained_rows import (
            TermSettings,
            background_inputs,
            column_data,
            explained,
            explained_lazily,
            players_of,
            single_row,
        )

        check_is_fitted(self)
        model = cast("FittedRegressor | ClassPredictions", self)
        if max_background is not None:
            check_integer("max_background", max_background, 1)
        tolerance = check_real("tolerance", tolerance, open_left=True, most=1.0)
        settings = TermSettings(by, interactions, tolerance)
        # Whoever shares predictions is refused before rows are read.
        players_of(model.fitted_, by)
        X, lazy = opened(model, X), is_dask_collection(X)
        if background is None and lazy:
            raise ValueError(
                "X is a Dask collection, from which no background is drawn; pass background, such as rows of the fit."
            )
        if background is None and single_row(X):
            raise ValueError(
                "X has one row, and without a background there is nothing to compare it with; pass background, such as "
                "rows of the fit."
            )
        seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
        source, argument = (X, "X") if background is None else (background, "background")
        others = background_inputs(model, source, argument, max_background, seed)
        if lazy:
            return explained_lazily(model, X, others, settings)
        found = explained(model, X, others, settings)
        if by != "columns" or interactions:
            return found
        return replace(found, data=column_data(X, len(found.names)))
