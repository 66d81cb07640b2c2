"""Ensembles as the paper has them, which most tests are about: one network for each group, and no trend."""

from scne import SCNEClassifier, SCNERegressor, SCNRegressor

PLAIN = {"networks": "per group", "trend": "none"}
_OF_THE_ENSEMBLE = ("class_weight", "device", "n_jobs", "random_state")


def plain_ensemble(estimator=None, **settings):
    return SCNERegressor(estimator, **{**PLAIN, **settings})


def plain_classifier(estimator=None, **settings):
    return SCNEClassifier(estimator, **{**PLAIN, **settings})


def single_classifier(max_hidden=100, **settings):
    """One network for classes, which holds out a fifth of the rows."""
    own = {name: settings.pop(name) for name in _OF_THE_ENSEMBLE if name in settings}
    base = SCNRegressor(max_hidden, **{"validation_fraction": 0.2, **settings})
    return plain_classifier(base, n_estimators=1, **own)
