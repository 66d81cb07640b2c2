"""DNNE: the ensemble on RVFL networks."""

from scne.estimators._network import NetworkRegressor
from scne.estimators._rvfl import RVFLRegressor
from scne.estimators._scne import SCNERegressor
from scne.fitting import TrendMode


class DNNERegressor(SCNERegressor):
    """A decorrelated ensemble of random networks (DNNE): the ensemble of `SCNERegressor` on RVFL networks.

    Parameters and attributes are those of `SCNERegressor`; ``estimator=None`` is an ``RVFLRegressor`` without direct
    links, as in the paper. lambda is the SCNE paper's: the public DNNE code of 2014 doubles it, so its 0.55 is 1.1
    here.

    Examples
    --------
    >>> import numpy as np
    >>> from scne import DNNERegressor, RVFLRegressor
    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> model = DNNERegressor(RVFLRegressor(20, scope=5), n_estimators=3, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> model.score(X, np.sin(X[:, 0])) > 0.999
    True
    """

    @staticmethod
    def _default_estimator() -> NetworkRegressor:
        return RVFLRegressor(direct_link=False)

    def _looks_across(self) -> bool:
        return super()._looks_across() and self.networks == "across"

    def _default_trend(self) -> TrendMode:
        return "none"

    @staticmethod
    def _paper_estimator(max_hidden: int) -> NetworkRegressor:
        return RVFLRegressor(max_hidden, direct_link=False, clip_inputs=False)
