"""Plots and the HTML page: results in, pictures and words out. Nothing here fits anything."""

from scne.report._bars import bars_height, draw_comparison, draw_contributions
from scne.report._curves import BuildingCurve, draw_building, draw_convergence
from scne.report._effects import draw_level_effect, draw_number_effect
from scne.report._figures import NARROW, WIDE, Drawing, render_figure, render_svg
from scne.report._labels import KEY_SIZE, line_colors, literal, shorten, text_width
from scne.report._lambda_path import draw_lambda_path
from scne.report._page import POLICY, Page, inline, read_part, unbroken
from scne.report._predicted import draw_predicted
from scne.report._residuals import draw_distribution, draw_residuals
from scne.report._tables import MISSING, format_cells, format_column, format_duration, format_number
from scne.report._theme import DARK, LIGHT, Theme, themed
from scne.report.displays._contribution_series import ContributionSeriesDisplay
from scne.report.displays._contributions import BeeswarmDisplay, WaterfallDisplay
from scne.report.displays._convergence import ConvergenceDisplay
from scne.report.displays._decorrelation import DecorrelationPathDisplay
from scne.report.displays._groups import GroupContributionDisplay
from scne.report.displays._intervals import PredictionIntervalDisplay
from scne.report.displays._members import MemberCorrelationDisplay
from scne.report.displays._nodes import NodesDisplay
from scne.report.displays._term_effect import TermEffectDisplay
from scne.report.displays._term_pairs import TermPairsDisplay

__all__ = [
    "DARK",
    "KEY_SIZE",
    "LIGHT",
    "MISSING",
    "NARROW",
    "POLICY",
    "WIDE",
    "BeeswarmDisplay",
    "BuildingCurve",
    "ContributionSeriesDisplay",
    "ConvergenceDisplay",
    "DecorrelationPathDisplay",
    "Drawing",
    "GroupContributionDisplay",
    "MemberCorrelationDisplay",
    "NodesDisplay",
    "Page",
    "PredictionIntervalDisplay",
    "TermEffectDisplay",
    "TermPairsDisplay",
    "Theme",
    "WaterfallDisplay",
    "bars_height",
    "draw_building",
    "draw_comparison",
    "draw_contributions",
    "draw_convergence",
    "draw_distribution",
    "draw_lambda_path",
    "draw_level_effect",
    "draw_number_effect",
    "draw_predicted",
    "draw_residuals",
    "format_cells",
    "format_column",
    "format_duration",
    "format_number",
    "inline",
    "line_colors",
    "literal",
    "read_part",
    "render_figure",
    "render_svg",
    "shorten",
    "text_width",
    "themed",
    "unbroken",
]
