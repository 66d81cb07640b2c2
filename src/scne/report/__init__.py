"""Plots and the HTML page: results in, pictures and words out. Nothing here fits anything."""

from scne.report._bars import bars_height, draw_comparison, draw_contributions
from scne.report._curves import BuildingCurve, draw_building, draw_convergence
from scne.report._displays_convergence import ConvergenceDisplay
from scne.report._displays_groups import GroupContributionDisplay
from scne.report._displays_intervals import PredictionIntervalDisplay
from scne.report._displays_lambda import DecorrelationPathDisplay
from scne.report._displays_members import MemberCorrelationDisplay
from scne.report._displays_nodes import NodesDisplay
from scne.report._figures import render_svg
from scne.report._lambda_path import draw_lambda_path
from scne.report._page import Page
from scne.report._paper_page import paper_page
from scne.report._paper_results import read_results
from scne.report._predicted import draw_predicted
from scne.report._tables import MISSING, format_cells, format_column, format_duration, format_number
from scne.report._theme import DARK, LIGHT, Theme, themed

__all__ = [
    "DARK",
    "LIGHT",
    "MISSING",
    "BuildingCurve",
    "ConvergenceDisplay",
    "DecorrelationPathDisplay",
    "GroupContributionDisplay",
    "MemberCorrelationDisplay",
    "NodesDisplay",
    "Page",
    "PredictionIntervalDisplay",
    "Theme",
    "bars_height",
    "draw_building",
    "draw_comparison",
    "draw_contributions",
    "draw_convergence",
    "draw_lambda_path",
    "draw_predicted",
    "format_cells",
    "format_column",
    "format_duration",
    "format_number",
    "paper_page",
    "read_results",
    "render_svg",
    "themed",
]
