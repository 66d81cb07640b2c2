"""Fitted models with a part exchanged."""

from dataclasses import replace

import numpy as np


def with_columns(model, **changes):
    """The model itself, with other facts about its columns."""
    model.fitted_ = replace(model.fitted_, columns=replace(model.fitted_.columns, **changes))
    return model


def with_weights(model, change):
    """The model itself, its output weights changed by a function."""
    solved = model.fitted_.solved
    solution = replace(solved.solution, weights=change(solved.solution.weights))
    model.fitted_ = replace(model.fitted_, solved=replace(solved, solution=solution))
    return model


def with_share(model, share):
    """The model itself, with another share of its networks beside a trend."""
    trend = replace(model.fitted_.trend, share=np.asarray(share, dtype=float), mode="blended")
    model.fitted_ = replace(model.fitted_, trend=trend)
    return model
