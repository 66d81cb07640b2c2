"""scne as a model of TabArena: the adapter of AutoGluon that its runner asks for. `tabarena_lite.py` runs it."""

import time
from collections.abc import Callable
from typing import Any, ClassVar

import pandas as pd
from autogluon.core.models import AbstractModel

from scne import Progress, SCNEClassifier, SCNERegressor, listening

# Of the time limit: predictions of the validation rows come after the fit.
SHARE = 0.9


class SCNEModel(AbstractModel):
    """Stochastic configuration networks ensembles on the columns as they are: categories and gaps are read by scne.

    Paper: Stochastic Configuration Networks Ensemble for Large-Scale Data Analytics, arXiv:1707.00300.
    License: BSD-3-Clause.
    """

    ag_key = "SCNE"
    ag_name = "SCNE"
    ag_priority = 65
    seed_name = "random_state"
    _supported_problem_types: ClassVar[list[str]] = ["binary", "multiclass", "regression"]
    default_resources_physical_cores_only = True

    def _fit(
        self,
        X: pd.DataFrame,
        y: pd.Series,
        X_val: pd.DataFrame | None = None,
        y_val: pd.Series | None = None,
        time_limit: float | None = None,
        num_cpus: int = 1,
        sample_weight: pd.Series | None = None,
        **_: Any,
    ) -> None:
        """Fit with the rows that were held out, on the given cores, within the given time."""
        until = None if time_limit is None else time.monotonic() + SHARE * time_limit
        X = self.preprocess(X, y=y, is_train=True)
        held_out = {} if X_val is None else {"X_val": self.preprocess(X_val), "y_val": y_val}
        kind = SCNERegressor if self.problem_type == "regression" else SCNEClassifier
        model = kind(n_jobs=max(1, int(num_cpus)), **self._get_model_params())
        with listening(until_late(until)):
            self.model = model.fit(X, y, sample_weight, **held_out)

    def _more_tags(self) -> dict[str, bool]:
        return {"can_refit_full": True}

    @classmethod
    def config_generator(cls) -> Any:
        """The default and the settings that are searched, for the bundles of TabArena."""
        from autogluon.common.space import Categorical, Int
        from tabarena.utils.config_utils import ConfigGenerator

        space = {
            "effort": Int(2, 5, default=3),
            "n_estimators": Int(4, 16, default=10),
            "trend": Categorical("judged", "none"),
        }
        return ConfigGenerator(model_cls=cls, manual_configs=[{}], search_space=space)


def until_late(until: float | None) -> Callable[[Progress], None]:
    """A listener that leaves networks at what they are once a time of `time.monotonic` is over."""

    def listen(step: Progress) -> None:
        if until is not None and time.monotonic() > until:
            raise StopIteration

    return listen
