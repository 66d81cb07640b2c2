"""All experiments by name, in the order of the page."""

from scne.paper import (
    _cost,
    _data_plots,
    _demonstration,
    _ensembles,
    _hidden_nodes,
    _lambda_path,
    _robustness,
    _scope,
    _spectral_radius,
)
from scne.paper._experiment import Experiment
from scne.paper._published import DATASETS

_PER_DATASET = (_hidden_nodes, _scope, _ensembles, _robustness, _lambda_path)
_ONCE = (_demonstration, _data_plots, _cost, _spectral_radius)

EXPERIMENTS: dict[str, Experiment] = {
    one.name: one
    for one in sorted(
        [
            *(module.experiment() for module in _ONCE),
            *(module.experiment(dataset) for module in _PER_DATASET for dataset in DATASETS),
        ],
        key=lambda one: one.order,
    )
}


def experiment_titles() -> dict[str, str]:
    """Title of every experiment by its name, in the order of the page.

    Examples
    --------
    >>> experiment_titles()["demonstration"]
    'Time and agreement of the three algorithms (Figure 2)'
    """
    return {name: experiment.title for name, experiment in EXPERIMENTS.items()}


def find_experiments(names: list[str]) -> list[Experiment]:
    """Experiments by name or by what they show of the paper, each once, in the order of the page.

    "all" is all of them, and "table-8" or "figure-2" those that show this table or figure, by its printed number.

    Examples
    --------
    >>> [one.name for one in find_experiments(["cost", "demonstration"])]
    ['demonstration', 'cost']
    >>> [one.name for one in find_experiments(["figure-7"])]
    ['robustness-twitter', 'robustness-year']
    """
    shown = {part for experiment in EXPERIMENTS.values() for part in experiment.shows}
    unknown = [name for name in names if name != "all" and name not in EXPERIMENTS and name not in shown]
    if unknown:
        raise ValueError(
            f"There is no experiment {unknown[0]!r}; choose 'all', one of {', '.join(EXPERIMENTS)}, or what it shows: "
            f"{', '.join(sorted(shown))}."
        )
    wanted = set(names)
    return [
        experiment
        for name, experiment in EXPERIMENTS.items()
        if "all" in wanted or name in wanted or not wanted.isdisjoint(experiment.shows)
    ]
