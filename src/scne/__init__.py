"""Large-scale regression on data from several sources, with stochastic configuration networks ensembles.

>>> from scne import SCNERegressor
>>> SCNERegressor(groups={"weather": ["TEMP", "PRES"], "gases": ["SO2", "NO2"]}, random_state=0)
SCNERegressor(groups={'gases': ['SO2', 'NO2'], 'weather': ['TEMP', 'PRES']},
              random_state=0)
"""

import logging
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from scne.estimators import (
    DNNERegressor,
    RVFLRegressor,
    SCNClassifier,
    SCNEClassifier,
    SCNERegressor,
    SCNRegressor,
    error_decomposition,
)
from scne.estimators._prediction import PredictingRegressor
from scne.estimators._warnings import ScneConvergenceWarning, ScneWarning
from scne.passes import Progress, listening

if TYPE_CHECKING:
    from scne.models import load_model, save_model
    from scne.report import ConvergenceDisplay as ConvergenceDisplay
    from scne.report import DecorrelationPathDisplay as DecorrelationPathDisplay
    from scne.report import GroupContributionDisplay as GroupContributionDisplay
    from scne.report import MemberCorrelationDisplay as MemberCorrelationDisplay
    from scne.report import NodesDisplay as NodesDisplay
    from scne.report import PredictionIntervalDisplay as PredictionIntervalDisplay
    from scne.rows import open_rows as open_rows

    load, save = load_model, save_model

__version__ = version("scne")

# Who wants to read the log sets a handler and a level; nobody else hears of it.
logging.getLogger("scne").addHandler(logging.NullHandler())


def _find_writers() -> Mapping[str, Callable[..., Any]]:
    from scne.models import WRITERS

    return WRITERS


# Estimators know nothing of files and exports, which lie to their right; the two meet here, when first asked for.
PredictingRegressor._writers = staticmethod(_find_writers)

_DISPLAYS = (
    "ConvergenceDisplay",
    "DecorrelationPathDisplay",
    "GroupContributionDisplay",
    "MemberCorrelationDisplay",
    "NodesDisplay",
    "PredictionIntervalDisplay",
)


# A type checker reads the imports above instead, and finds names that are not there.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        # Files and models bring Arrow along; those who fit arrays need not wait for it.
        if name == "open_rows":
            from scne.rows import open_rows

            return open_rows
        if name in ("load", "save"):
            from scne.models import load_model, save_model

            return {"load": load_model, "save": save_model}[name]
        # Displays bring matplotlib along.
        if name in _DISPLAYS:
            from scne import report

            return getattr(report, name)
        raise AttributeError(f"module 'scne' has no attribute {name!r}")


__all__ = [
    "DNNERegressor",
    "Progress",
    "RVFLRegressor",
    "SCNClassifier",
    "SCNEClassifier",
    "SCNERegressor",
    "SCNRegressor",
    "ScneConvergenceWarning",
    "ScneWarning",
    "__version__",
    "error_decomposition",
    "listening",
]
