"""Large-scale regression on data from several sources, with stochastic configuration networks ensembles.

>>> from scne import SCNERegressor
>>> SCNERegressor(groups={"weather": ["TEMP", "PRES"], "gases": ["SO2", "NO2"]}, random_state=0)
SCNERegressor(groups={'gases': ['SO2', 'NO2'], 'weather': ['TEMP', 'PRES']},
              random_state=0)
"""

from importlib.metadata import version

from scne.estimators import (
    DNNERegressor,
    RVFLRegressor,
    SCNERegressor,
    SCNRegressor,
    error_decomposition,
)

__version__ = version("scne")

__all__ = [
    "DNNERegressor",
    "RVFLRegressor",
    "SCNERegressor",
    "SCNRegressor",
    "__version__",
    "error_decomposition",
]
