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


def __getattr__(name: str) -> object:
    # Files and models bring Arrow along; those who fit arrays need not wait for it.
    if name == "open_rows":
        from scne.rows import open_rows

        return open_rows
    if name in ("load", "save"):
        from scne.models import load_model, save_model

        return {"load": load_model, "save": save_model}[name]
    raise AttributeError(f"module 'scne' has no attribute {name!r}")


__all__ = [
    "DNNERegressor",
    "RVFLRegressor",
    "SCNERegressor",
    "SCNRegressor",
    "__version__",
    "error_decomposition",
]
