"""Large-scale regression on data from several sources, with stochastic configuration networks ensembles.

>>> from scne import SCNERegressor
>>> SCNERegressor(groups={"weather": ["TEMP", "PRES"], "gases": ["SO2", "NO2"]}, random_state=0)
SCNERegressor(groups={'gases': ['SO2', 'NO2'], 'weather': ['TEMP', 'PRES']},
              random_state=0)
"""

import logging
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scne.estimators import (
        DNNERegressor,
        RVFLRegressor,
        SCNEClassifier,
        ScneConvergenceWarning,
        SCNERegressor,
        ScneWarning,
        SCNRegressor,
        error_decomposition,
        load_model,
        save_model,
    )
    from scne.passes import Progress, listening
    from scne.report import (
        BeeswarmDisplay,
        ContributionSeriesDisplay,
        ConvergenceDisplay,
        DecorrelationPathDisplay,
        GroupContributionDisplay,
        MemberCorrelationDisplay,
        NodesDisplay,
        PredictionIntervalDisplay,
        TermEffectDisplay,
        TermPairsDisplay,
        WaterfallDisplay,
    )
    from scne.rows import open_rows

    load, save = load_model, save_model

__version__ = version("scne")

# Who wants to read the log sets a handler and a level; nobody else hears of it.
logging.getLogger("scne").addHandler(logging.NullHandler())

# Where public names come from, other than displays, which are in "report", and all others, in "estimators". Nothing is
# loaded before it is asked for: estimators bring scikit-learn along, files and models Arrow, displays matplotlib, and a
# command that only prints its help needs none of them.
_ROOM_OF = {"Progress": "passes", "listening": "passes", "open_rows": "rows"}
_SHORT = {"load": "load_model", "save": "save_model"}
_MODULES = ("datasets", "estimators", "models", "ncl", "networks", "paper", "passes", "report", "rows")

# A type checker reads the imports above instead, and finds names that are not there.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name in _MODULES:
            return import_module(f"scne.{name}")
        if name not in __all__:
            raise AttributeError(f"module 'scne' has no attribute {name!r}")
        room = _ROOM_OF.get(name, "report" if name.endswith("Display") else "estimators")
        globals()[name] = getattr(import_module(f"scne.{room}"), _SHORT.get(name, name))
        return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "BeeswarmDisplay",
    "ContributionSeriesDisplay",
    "ConvergenceDisplay",
    "DNNERegressor",
    "DecorrelationPathDisplay",
    "GroupContributionDisplay",
    "MemberCorrelationDisplay",
    "NodesDisplay",
    "PredictionIntervalDisplay",
    "Progress",
    "RVFLRegressor",
    "SCNEClassifier",
    "SCNERegressor",
    "SCNRegressor",
    "ScneConvergenceWarning",
    "ScneWarning",
    "TermEffectDisplay",
    "TermPairsDisplay",
    "WaterfallDisplay",
    "__version__",
    "error_decomposition",
    "listening",
    "load",
    "open_rows",
    "save",
]
