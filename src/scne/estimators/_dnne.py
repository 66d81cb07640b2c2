"""DNNE: the ensemble on RVFL networks."""

from functools import partial

from scne.estimators._network import NetworkRegressor
from scne.estimators._rvfl import RVFLRegressor
from scne.estimators._scne import SCNERegressor
from scne.estimators.inputs._types import Groups, MemberWeights, RandomState, Ridge


class DNNERegressor(SCNERegressor):
    """A decorrelated ensemble of random networks (DNNE): the ensemble of `SCNERegressor` on RVFL networks.

    Parameters and attributes are those of `SCNERegressor`, with the paper's defaults: one network for each group, no
    trend. ``estimator=None`` is an ``RVFLRegressor`` without direct links. lambda is the SCNE paper's: the public DNNE
    code of 2014 doubles it, so its 0.55 is 1.1 here.

    Examples
    --------
    >>> import numpy as np
    >>> from scne import DNNERegressor, RVFLRegressor
    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> model = DNNERegressor(RVFLRegressor(20, scope=5), n_estimators=3, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> model.score(X, np.sin(X[:, 0])) > 0.999
    True
    """

    _default_estimator = partial(RVFLRegressor, direct_link=False)

    def __init__(
        self,
        estimator: NetworkRegressor | None = None,
        *,
        groups: Groups = None,
        n_estimators: int = 6,
        networks: str = "per group",
        trend: str = "none",
        solver: str = "auto",
        decorrelation: float | str = "auto",
        ridge: Ridge = "auto",
        member_weights: MemberWeights = None,
        max_iter: int = 100,
        tol: float = 0.0,
        device: str | None = None,
        precision: str = "auto",
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(
            estimator,
            groups=groups,
            n_estimators=n_estimators,
            networks=networks,
            trend=trend,
            solver=solver,
            decorrelation=decorrelation,
            ridge=ridge,
            member_weights=member_weights,
            max_iter=max_iter,
            tol=tol,
            device=device,
            precision=precision,
            n_jobs=n_jobs,
            random_state=random_state,
        )

    @staticmethod
    def _paper_estimator(max_hidden: int) -> NetworkRegressor:
        return RVFLRegressor(max_hidden, direct_link=False, ridge=0.0, scaling="min-max", target_scaling="0-1")
