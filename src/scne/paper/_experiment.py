"""What an experiment is, and what a run of one is asked to do."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scne.paper._data import DataChoice
from scne.paper._results import Finding, ResultFigure, ResultTable

Unit = dict[str, Any]
# The stream of a seed that belongs to no repeat: splits of the rows, which all repeats share.
_SHARED_STREAM = 1 << 31


@dataclass(frozen=True)
class Plan:
    """One run of an experiment, down to the last number that it depends on.

    Attributes
    ----------
    name : str
    quick : bool
    repeats, seed : int
    settings : dict
        Plain values, the experiment's own.
    data : dict of str to DataChoice
        For each data set that it uses.
    scratch : Path or None
        A folder for large files that units share; it goes when the experiment has ended. No number depends on it.
    """

    name: str
    quick: bool
    repeats: int
    seed: int
    settings: Mapping[str, Any]
    data: Mapping[str, DataChoice]
    scratch: Path | None = None

    @property
    def dataset(self) -> str:
        """The data set of an experiment on a single one."""
        (dataset,) = self.data
        return dataset

    def unit_seed(self, index: int, *parts: int) -> int:
        """The random_state of unit `index`, or of a part of it; depends on them and the seed alone.

        >>> plan = Plan("demonstration", True, 1, 7, {}, {})
        >>> plan.unit_seed(3) == plan.unit_seed(3) != plan.unit_seed(4)
        True
        """
        return _derived(self.seed, index, *parts)

    @property
    def comparable(self) -> bool:
        """Whether this is the paper's experiment at full size on its own rows, so that its claims can be judged."""
        return not self.quick and not any(choice.substitute for choice in self.data.values())

    @property
    def shared_seed(self) -> int:
        """The seed of what all units share, such as the split of the rows."""
        return _derived(self.seed, _SHARED_STREAM)


def _derived(*streams: int) -> int:
    return int(np.random.SeedSequence(streams).generate_state(1)[0] >> 1)


@dataclass(frozen=True)
class Parts:
    """What an experiment's units come to."""

    tables: list[ResultTable]
    figures: list[ResultFigure]
    findings: list[Finding]


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper, or one that it could have had.

    Attributes
    ----------
    name, title, section : str
    about : callable (plan) -> str
        What is done, in the numbers of the plan.
    order : int
        Position on the page.
    shows : tuple of str
        Its tables and figures of the paper by their printed numbers, such as "table-8"; also names for the command.
    datasets : tuple of str
        Of "year" and "twitter".
    settings : callable (quick) -> dict
        All that the numbers depend on beside data, seed and repeats; plain values.
    unit : callable (plan, index) -> dict
        One part of the work, as plain values.
    assemble : callable (plan, units) -> Parts
    repeats : tuple of int
        In full, and in quick form.
    count : callable (plan) -> int
        Units of a plan; the repeats where None.
    once : bool
        There is nothing to repeat.
    alone : bool
        Its units measure time or memory: they run one after the other, with the machine to themselves.
    generated : bool
        It runs on the generators at full size even where real rows are at hand.
    """

    name: str
    title: str
    section: str
    order: int
    about: Callable[[Plan], str]
    datasets: tuple[str, ...]
    settings: Callable[[bool], dict[str, Any]]
    unit: Callable[[Plan, int], Unit]
    assemble: Callable[[Plan, list[Unit]], Parts]
    shows: tuple[str, ...] = ()
    repeats: tuple[int, int] = (10, 2)
    count: Callable[[Plan], int] | None = None
    once: bool = False
    alone: bool = False
    generated: bool = False

    def n_units(self, plan: Plan) -> int:
        """How many parts the work has."""
        return plan.repeats if self.count is None else self.count(plan)
