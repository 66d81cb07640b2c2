"""The base models of an ensemble: one for all of its networks, or one for each by its name."""

from collections.abc import Callable, Mapping, Sequence

from scne.estimators._network import NetworkRegressor
from scne.estimators._scn import SCNRegressor
from scne.fitting import MemberPlan

# Parameters of base models that are those of the whole ensemble.
SHARED = ("scaling", "target_scaling", "validation_fraction", "search_rows")


def base_models(
    estimator: NetworkRegressor | Mapping[str, NetworkRegressor] | None, default: Callable[[], NetworkRegressor]
) -> Mapping[str | None, NetworkRegressor]:
    """The base model of each group, by its name, or of all of them under None."""
    if isinstance(estimator, Mapping):
        if not estimator:
            raise ValueError("estimator is an empty mapping, but it must name a base model for every group.")
        return {str(name): base for name, base in estimator.items()}
    return {None: default() if estimator is None else estimator}


def shared_template(bases: Sequence[NetworkRegressor]) -> NetworkRegressor:
    """The base model whose shared parameters are those of the ensemble; all of them are checked."""
    for base in bases:
        if not isinstance(base, NetworkRegressor):
            raise TypeError(f"estimator is {base!r}, but it must be an SCNRegressor, an RVFLRegressor or None.")
        base._for_group(None)._check_parameters()
    # Networks whose nodes are drawn need no rows to search on.
    searched = [base for base in bases if isinstance(base, SCNRegressor)]
    template = searched[0] if searched else bases[0]
    for base in bases:
        for name in SHARED:
            mine, shared = getattr(base, name), getattr(template, name)
            if name in base.get_params(deep=False) and mine != shared:
                raise ValueError(
                    f"The estimators have {name}={shared!r} and {name}={mine!r}, but all networks share one {name}."
                )
    return template


def plans_of(
    bases: Mapping[str | None, NetworkRegressor], names: list[str], *, follows_groups: bool
) -> tuple[MemberPlan, ...]:
    """One plan for each network."""
    if None not in bases and set(bases) != set(names):
        other = "" if follows_groups else '; networks="per group" follows the groups'
        raise ValueError(
            f"estimator names {sorted(map(str, bases))}, but it must name each of the networks {names} once{other}."
        )
    plans = []
    for name in names:
        base = bases[None] if None in bases else bases[name]
        plans.append(base._for_group(name)._member_plan())
    return tuple(plans)
