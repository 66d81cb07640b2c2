"""Models as files of older versions hold them, which no parameters lead to any more."""

import copy
from dataclasses import dataclass, replace
from unittest.mock import patch

from scne import SCNERegressor, SCNRegressor
from scne.rows import find_dates, plausible_dates


@dataclass
class OlderModel:
    """A model on searched networks that may be linked to the inputs, may not limit them, and read dates in any scaling.

    Attributes
    ----------
    model : SCNRegressor, or SCNERegressor on one
        What it is otherwise, and what `fit` gives back.
    linked, limited, dated : bool
    """

    model: SCNRegressor | SCNERegressor
    linked: bool = False
    limited: bool = True
    dated: bool = False

    def fit(self, X, y):
        model = copy.deepcopy(self.model)
        base = model.estimator if isinstance(model, SCNERegressor) else model
        member_plan, scaling_plan = base._member_plan, base._scaling_plan

        def older_plan(data, groups):
            dates = plausible_dates(find_dates(data.column_names), data.search.inputs) if self.dated else ()
            return replace(scaling_plan(data, groups), clip_inputs=self.limited, dates=dates)

        def linked_plan():
            plan = member_plan()
            return replace(plan, search=replace(plan.search, direct_link=self.linked))

        with patch.object(base, "_member_plan", linked_plan), patch.object(base, "_scaling_plan", older_plan):
            return model.fit(X, y)
