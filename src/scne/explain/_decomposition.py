"""Theorem 2 for a fitted kind of ensemble: where its error comes from."""

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state

from scne.fitting import check_integer, check_real
from scne.ncl import ErrorDecomposition, decompose, noise_variance
from scne.passes import announce
from scne.rows import Array


def error_decomposition(
    estimator: BaseEstimator,
    X: Array,
    y: Array,
    X_test: Array,
    y_test: Array,
    *,
    n_repeats: int = 20,
    noise: float | str = "auto",
    random_state: int | np.random.RandomState | None = None,
) -> ErrorDecomposition:
    """Bias, variance, covariance and noise of an ensemble over resampled training sets (Theorem 2).

    The ensemble is fitted `n_repeats` times on bootstrap samples of the training rows, and its networks' predictions
    of the test rows are split as ``error = variance / M + (1 - 1/M) covariance + bias^2 + noise``. The terms add up
    exactly; the split between bias^2 and noise rests on the noise variance, which real data do not reveal. `members` of
    the result has the variance, the covariance with the others and the bias of each network.

    Parameters
    ----------
    estimator : SCNERegressor or DNNERegressor
        Not fitted here: copies are.
    X, y : training rows
        Arrays, or frames that can be indexed by position. One output.
    X_test, y_test : test rows
    n_repeats : int, default=20
    noise : "auto" or float, default="auto"
        sigma^2 of y. "auto" takes half the mean squared difference between each test row's target and that of its
        nearest neighbour, which is too large when the function is steep between neighbours.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    ErrorDecomposition

    Examples
    --------
    >>> import numpy as np
    >>> from scne import DNNERegressor, RVFLRegressor, error_decomposition
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (300, 2))
    >>> y = X[:, 0] ** 2 + 0.1 * rng.standard_normal(300)
    >>> model = DNNERegressor(RVFLRegressor(20), n_estimators=3)
    >>> parts = error_decomposition(model, X[:200], y[:200], X[200:], y[200:], n_repeats=5, noise=0.01, random_state=0)
    >>> abs(sum(parts.terms().values()) - parts.total) < 1e-12
    True
    >>> parts.members.variance.shape, bool(abs(parts.members.variance.mean() - parts.variance) < 1e-12)
    ((3,), True)
    """
    check_integer("n_repeats", n_repeats, 2)
    if noise != "auto":
        check_real("noise", noise)
    generator = check_random_state(random_state)
    y, y_test = np.asarray(y, dtype=float), np.asarray(y_test, dtype=float)
    if y.ndim != 1 or y_test.ndim != 1:
        raise ValueError("error_decomposition takes one output: y and y_test must have one dimension.")
    predictions = []
    for repeat in range(n_repeats):
        drawn = generator.randint(len(y), size=len(y))
        seed = int(generator.randint(np.iinfo(np.int32).max))
        model = clone(estimator).set_params(random_state=seed)
        model.fit(X.iloc[drawn] if hasattr(X, "iloc") else X[drawn], y[drawn])
        predictions.append(model.predict_members(X_test))
        announce("resampling", repeat + 1, n_repeats)
    level = noise_variance(np.asarray(X_test, dtype=float), y_test) if isinstance(noise, str) else noise
    return decompose(np.stack(predictions), y_test, level, model.fitted_.solved.member_weights)
