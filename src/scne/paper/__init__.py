"""The paper's experiments, one file for each table or figure, and two that it could not show."""

from scne.paper._data import DataChoice, choose_data
from scne.paper._experiment import Experiment, Plan
from scne.paper._published import Published, published, published_tables
from scne.paper._registry import EXPERIMENTS, experiment_titles, find_experiments
from scne.paper._results import check_result
from scne.paper._runner import Outcome, finished_result, kept_units, make_plan, run_experiment, run_experiments
from scne.paper._verdicts import run_kind
from scne.paper.page._page import paper_page, read_results

__all__ = [
    "EXPERIMENTS",
    "DataChoice",
    "Experiment",
    "Outcome",
    "Plan",
    "Published",
    "check_result",
    "choose_data",
    "experiment_titles",
    "find_experiments",
    "finished_result",
    "kept_units",
    "make_plan",
    "paper_page",
    "published",
    "published_tables",
    "read_results",
    "run_experiment",
    "run_experiments",
    "run_kind",
]
