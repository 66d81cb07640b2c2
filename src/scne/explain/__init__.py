"""What a fitted model says of itself: contributions, importances, the parts of its error, a paragraph in words."""

from scne.explain._card import model_card
from scne.explain._contributions import Contributions, Explainer, contributions
from scne.explain._decomposition import error_decomposition
from scne.explain._effects import LevelEffect, NumberEffect, Reading, identity, level_effect, number_effect
from scne.explain._group_importances import GroupImportances, group_importances
from scne.explain._paragraph import Described, paragraph
from scne.explain._permutation import ErrorRises, Measure, PermutationImportances, permutation_importances
from scne.explain._players import Players, column_players, source_players
from scne.explain._sensitivity import column_shares

__all__ = [
    "Contributions",
    "Described",
    "ErrorRises",
    "Explainer",
    "GroupImportances",
    "LevelEffect",
    "Measure",
    "NumberEffect",
    "PermutationImportances",
    "Players",
    "Reading",
    "column_players",
    "column_shares",
    "contributions",
    "error_decomposition",
    "group_importances",
    "identity",
    "level_effect",
    "model_card",
    "number_effect",
    "paragraph",
    "permutation_importances",
    "source_players",
]
