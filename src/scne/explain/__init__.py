"""What a fitted model says of itself: importances, the parts of its error, a paragraph in words."""

from scne.explain._decomposition import error_decomposition
from scne.explain._effects import LevelEffect, NumberEffect, Reading, identity, level_effect, number_effect
from scne.explain._group_importances import GroupImportances, group_importances
from scne.explain._paragraph import Described, paragraph
from scne.explain._permutation import ErrorRises, Measure, PermutationImportances, permutation_importances
from scne.explain._sensitivity import column_shares

__all__ = [
    "Described",
    "ErrorRises",
    "GroupImportances",
    "LevelEffect",
    "Measure",
    "NumberEffect",
    "PermutationImportances",
    "Reading",
    "column_shares",
    "error_decomposition",
    "group_importances",
    "identity",
    "level_effect",
    "number_effect",
    "paragraph",
    "permutation_importances",
]
