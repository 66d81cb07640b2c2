"""The networks of an ensemble: all of one kind, or of several, among which held-out rows choose.

One table wants fine ramps, another coarse ones. The first networks are of different kinds, the held-out rows tell which
is best by itself, and the others are of that kind. All of them may take part in the ensemble: a joint fit makes use of
networks that differ. An average does not, if some are much worse than the others, so the ensemble is solved without
these too, and the held-out rows choose once more.
"""

from collections.abc import Sequence
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import attrgetter, call, itemgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from scne.fitting._members import Member, ensemble_system, with_signs
from scne.fitting._plan import FitPlan, MemberPlan
from scne.fitting._weights import RELATIVE_RIDGES, SolvedWeights, SplitSystems, WeightSettings, solve_weights
from scne.ncl import EnsembleSystem, choose, subsystem
from scne.passes import ThreadEngine, single_threaded_blas
from scne.rows import FeatureGroup

if TYPE_CHECKING:
    from scne.fitting._fit import BuildingSite

TRIAL_STAGE = "comparing kinds of networks"
# Mean squared errors of networks by themselves, beside the least, above which an average is tried without them.
MOST_ERROR = 1.1


class BuiltMembers(NamedTuple):
    """The networks of an ensemble.

    Attributes
    ----------
    members : tuple of Member
    plans : tuple of MemberPlan
        By which each was built.
    worse : frozenset of int
        Those that are much worse by themselves than the best kind.
    """

    members: tuple[Member, ...]
    plans: tuple[MemberPlan, ...]
    worse: frozenset[int] = frozenset()


class Ensemble(NamedTuple):
    """Solved weights, with the networks that they are of.

    Attributes
    ----------
    places : list of int
        Of the networks among those that were built.
    system : EnsembleSystem
    split : SplitSystems or None
    solved : SolvedWeights
    """

    places: list[int]
    system: EnsembleSystem
    split: SplitSystems | None
    solved: SolvedWeights


def build_members(plan: FitPlan, site: "BuildingSite") -> BuiltMembers:
    """The hidden layers of all groups."""
    networks, groups, kinds = plan.networks, plan.groups, plan.networks[:1]
    if plan.scaling.chosen and networks.count(networks[0]) == len(networks):
        kinds = networks[0].kinds(groups, site)
    if len(kinds) == 1:
        return BuiltMembers(build(networks, groups, range(len(groups)), site), networks)
    members = build(kinds, groups, range(len(kinds)), site)
    errors = [_error_alone(member, site) for member in members]
    further = kinds[int(np.argmin(errors))].further
    if further is not None:
        kinds = (*kinds, further)
        members += build((further,), groups, [len(members)], site)
        errors.append(_error_alone(members[-1], site))
    best, others = kinds[int(np.argmin(errors))], range(len(kinds), len(groups))
    members += build((best,) * len(others), groups, others, site)
    worse = [place for place, error in enumerate(errors) if error > MOST_ERROR * min(errors)]
    return BuiltMembers(members, (*kinds, *(best,) * len(others)), frozenset(worse))


def build(
    networks: Sequence[MemberPlan], groups: Sequence[FeatureGroup], places: Sequence[int], site: "BuildingSite"
) -> tuple[Member, ...]:
    """Networks by their plans, each for the group at its place; all threads for one at a time, or one thread each.

    They are the same either way: the place of a network names its random streams.
    """
    if not all(map(attrgetter("builds_alone"), networks)) or site.engine.on_device:
        # A device works on one kernel at a time, with all of its units.
        members: list[Member] = []
        for network, alike in groupby(zip(networks, places, strict=True), key=itemgetter(0)):
            some = [place for _, place in alike]
            their = [groups[place] for place in some]
            together = network.build_together(their, site, some) if site.engine.on_device else None
            members += together or [network.build(groups[place], place, site) for place in some]
        return tuple(members)
    alone, tasks = replace(site, engine=ThreadEngine(1)), []
    for network, place in zip(networks, places, strict=True):
        # Whoever listens to this thread's progress listens to that of the others too.
        tasks.append(partial(copy_context().run, network.build, groups[place], place, alone))
    return tuple(site.engine.map(call, iter(tasks)))


def _error_alone(member: Member, site: "BuildingSite") -> float:
    """Mean squared error of a network by itself on the held-out rows, with the best of the ridges."""
    system = ensemble_system(site.rows, [member.layer], site.target_scaling, site.engine, stage=TRIAL_STAGE)
    system = with_signs(system, [member.layer], site.directions)
    split = site.split(system, [member.layer])
    assert split is not None
    ridges = float(np.trace(split.fitted.gram)) / split.fitted.n_nodes * RELATIVE_RIDGES
    with single_threaded_blas():
        return float(choose(split.fitted, list(ridges), [0.0], held_out=split.held_out).scores.min())


def solve_with_or_without(worse: frozenset[int], whole: Ensemble, settings: WeightSettings) -> Ensemble:
    """The ensemble, or the same without the networks that are worse, whichever has less error on the held-out rows.

    All of them stay where the user has set weights or ridges of networks.
    """
    places = [place for place in whole.places if place not in worse]
    given = settings.member_weights is not None or not isinstance(settings.ridge, str)
    if len(places) == len(whole.places) or given or whole.split is None:
        return whole
    system = subsystem(whole.system, places)
    split = SplitSystems(subsystem(whole.split.fitted, places), subsystem(whole.split.held_out, places))
    solved = solve_weights(system, settings, split, near=whole.solved.choice)
    assert solved.choice is not None
    assert whole.solved.choice is not None
    if solved.choice.scores.min() > whole.solved.choice.scores.min():
        return whole
    return Ensemble(places, system, split, solved)
