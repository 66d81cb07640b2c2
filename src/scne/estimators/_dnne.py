"""DNNE: the ensemble on RVFL networks."""

from collections.abc import Mapping

from scne.estimators._network import NetworkRegressor
from scne.estimators._rvfl import RVFLRegressor
from scne.estimators._scne import SCNERegressor
from scne.estimators.inputs._types import Groups, MemberWeights, RandomState, Ridge
from scne.fitting import check_integer


class DNNERegressor(SCNERegressor):
    """A decorrelated ensemble of random networks (DNNE): the ensemble of `SCNERegressor` on RVFL networks.

    Parameters and attributes are those of `SCNERegressor`, with the paper's defaults: one network for each group, no
    trend. ``estimator=None`` is an ``RVFLRegressor`` without direct links, and there are 6 networks if there are no
    groups: random nodes have no `effort`. lambda is the SCNE paper's: the public DNNE code of 2014 doubles it,
    so its 0.55 is 1.1 here.

    Examples
    --------
    >>> import numpy as np
    >>> from scne import DNNERegressor, RVFLRegressor
    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> model = DNNERegressor(RVFLRegressor(20, scope=5), n_estimators=3, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> model.score(X, np.sin(X[:, 0])) > 0.999
    True
    """

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
            n_jobs=n_jobs,
            random_state=random_state,
        )

    @staticmethod
    def _paper_estimator(max_hidden: int) -> NetworkRegressor:
        return RVFLRegressor(
            max_hidden,
            direct_link=False,
            ridge=0.0,
            scaling="min-max",
            target_scaling="0-1",
            precision="float64",
        )

    def _template(self) -> NetworkRegressor:
        check_integer("n_estimators", self.n_estimators, 1)
        return super()._template()

    def _bases(self) -> Mapping[str | None, NetworkRegressor]:
        return {None: RVFLRegressor(direct_link=False)} if self.estimator is None else super()._bases()
