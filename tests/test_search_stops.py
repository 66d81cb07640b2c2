"""Where a search stops, which nodes it keeps, and how many it may add at once."""

from types import SimpleNamespace

import numpy as np
import pytest

from scne import SCNRegressor, listening
from scne.networks import StopReason
from scne.networks._basis import RESOLUTIONS
from scne.networks._builder import Record, _add_nodes, _reason_to_stop
from scne.passes import PoolSums


def record_of(training, validation=()):
    record = Record()
    for place, error in enumerate(training):
        record.weights.append(np.array([place + 1.0, 10.0 + place, 100.0 + place]))
        record.scopes.append(float(place))
        record.contractions.append(0.9)
        record.training.append(error)
    record.validation.extend(validation)
    return record


def reason(training, validation=(), first_error=1.0, **changes):
    settings = SimpleNamespace(**{"tol": 0.1, "max_hidden": 5, **changes})
    return _reason_to_stop(
        record_of(training, validation), SimpleNamespace(training_error=lambda: first_error), settings
    )


def test_an_error_that_reaches_the_tolerance_ends_it():
    assert reason([]) is None
    assert reason([], first_error=0.1) is StopReason.TOLERANCE
    assert reason([0.5, 0.1]) is StopReason.TOLERANCE
    assert reason([0.05, 0.11]) is None
    assert reason([0.5], first_error=0.0) is None


def test_as_many_nodes_as_are_allowed_end_it():
    assert reason([0.5] * 4) is None
    assert reason([0.5] * 5) is StopReason.MAX_HIDDEN
    assert reason([0.5] * 6) is StopReason.MAX_HIDDEN
    assert reason([0.1] * 5) is StopReason.TOLERANCE


def test_the_best_prefix_on_validation_rows_is_kept_and_the_rest_is_known():
    built = record_of([0.5, 0.4, 0.3], [0.3, 0.2, 0.2]).finished(StopReason.MAX_HIDDEN)
    np.testing.assert_array_equal(built.weights, [[1.0, 2.0], [10.0, 11.0]])
    np.testing.assert_array_equal(built.biases, [100.0, 101.0])
    np.testing.assert_array_equal(built.training_curve, [0.5, 0.4, 0.3])
    np.testing.assert_array_equal(built.validation_curve, [0.3, 0.2, 0.2])
    np.testing.assert_array_equal(built.chosen.weights[:, 0], [1.0, 2.0, 3.0])
    whole = record_of([0.5, 0.4, 0.3]).finished(StopReason.MAX_HIDDEN)
    assert whole.weights.shape == (2, 3)
    assert whole.validation_curve is None


@pytest.mark.parametrize(("node", "size"), [(1, 3), (3, 3), (4, 2), (5, 1)])
def test_a_batch_ends_with_the_last_node(node, size):
    rows = SimpleNamespace(directions=None)
    basis = SimpleNamespace(size=0, squares=np.ones((2, 1)), resolution=RESOLUTIONS["float64"], rows=rows)
    basis.score = lambda pool, **_: PoolSums(np.full((1, 4), 0.9), np.ones(4), np.zeros((0, 4)), np.zeros((0, 0)))
    basis.append_node = lambda weights: basis.__dict__.update(size=basis.size + 1) is None
    settings = SimpleNamespace(batch_size=3, max_hidden=5, criterion="paper", contraction=(0.9,))
    pools = SimpleNamespace(attempts=[(1.0,), (2.0,)], at=lambda node, attempt: np.arange(8.0).reshape(2, 4))
    assert len(list(_add_nodes(basis, settings, pools, node))) == size


def test_a_listener_is_told_the_last_errors():
    X = np.random.default_rng(0).standard_normal((200, 2))
    told = []
    with listening(lambda step: told.append((step.error, step.validation_error)) if step.error is not None else None):
        alone = SCNRegressor(3, random_state=0).fit(X, X[:, 0])
        watching = SCNRegressor(3, random_state=0).fit(X, X[:, 0], X_val=X[:50], y_val=X[:50, 0])
    curves = alone.fitted_.members[0].search, watching.fitted_.members[0].search
    assert told[:3] == [(error, None) for error in curves[0].training_curve]
    assert told[3:] == list(zip(curves[1].training_curve, curves[1].validation_curve, strict=True))
