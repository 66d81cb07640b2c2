"""Every check that scikit-learn has for regressors and classifiers runs, and passes."""

import pytest
from ensembles import plain_classifier, plain_ensemble, single_classifier
from sklearn.base import is_classifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

from scne import DNNERegressor, RVFLRegressor, SCNEClassifier, SCNERegressor, SCNRegressor

SMALL = {
    "rvfl": RVFLRegressor(10),
    "rvfl without direct links": RVFLRegressor(40, direct_link=False, scaling="standard", activation="tanh"),
    "scn": SCNRegressor(10),
    "scn by the paper": SCNRegressor(10, criterion="paper", scope_search="first", batch_size=4),
    "scn in single precision": SCNRegressor(10, precision="float32"),
    "dnne": DNNERegressor(RVFLRegressor(10), n_estimators=3),
    "scne": plain_ensemble(SCNRegressor(10), n_estimators=3),
    "scne by the paper": SCNERegressor.paper(max_hidden=10, n_estimators=3),
    "scne without a matrix": plain_ensemble(
        RVFLRegressor(10), n_estimators=3, decorrelation=0.5, ridge=0.1, solver="matrix-free gauss-seidel"
    ),
    "scn of classes": single_classifier(10),
    "scn of classes that holds out nothing": single_classifier(10, validation_fraction=None),
    "scne of classes": plain_classifier(SCNRegressor(6), n_estimators=2),
}
# With scikit-learn 1.9; other versions have a few more or fewer.
CHECKS_AT_LEAST = 55


def assert_all_checks_pass(estimator):
    results = check_estimator(estimator, on_fail=None, on_skip=None)
    others = {r["check_name"]: (r["status"], r["exception"]) for r in results if r["status"] != "passed"}
    assert not others
    assert len(results) >= CHECKS_AT_LEAST


@pytest.mark.parametrize("estimator", SMALL.values(), ids=SMALL.keys())
def test_all_checks_pass(estimator):
    assert_all_checks_pass(estimator)


def test_all_checks_pass_without_room_for_a_basis(monkeypatch):
    monkeypatch.setattr("scne.estimators._regressor.BASIS_BYTES", 0.0)
    assert_all_checks_pass(SCNRegressor(10))


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator", [SCNERegressor(), DNNERegressor(), SCNEClassifier()], ids=["scne", "dnne", "scne of classes"]
)
def test_all_checks_pass_by_default(estimator):
    assert_all_checks_pass(estimator)


def checks_of(estimator):
    return {check.func.__name__ for _, check in estimator_checks_generator(estimator)}


@pytest.mark.parametrize("estimator", SMALL.values(), ids=SMALL.keys())
def test_no_tag_hides_a_check(estimator):
    """Whatever scikit-learn asks of estimators of its own that take gaps it asks of ours."""
    reference = HistGradientBoostingClassifier() if is_classifier(estimator) else HistGradientBoostingRegressor()
    assert not checks_of(reference) - checks_of(estimator)
