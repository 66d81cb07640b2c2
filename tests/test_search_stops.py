"""Where a search stops, which nodes it keeps, and how many it may add at once."""

from types import SimpleNamespace

import numpy as np
import pytest

from scne.networks._builder import _batch_size, _reason_to_stop
from scne.networks._built import Record, StopReason


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
    settings = SimpleNamespace(**{"tol": 0.1, "max_hidden": 5, "n_iter_no_change": 2, **changes})
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
    assert reason([0.5] * 4, n_iter_no_change=None) is None
    assert reason([0.5] * 5) is StopReason.MAX_HIDDEN
    assert reason([0.5] * 6) is StopReason.MAX_HIDDEN
    assert reason([0.1] * 5) is StopReason.TOLERANCE


def test_nodes_that_do_not_help_on_validation_rows_end_it():
    assert reason([0.5] * 3, [0.3, 0.4, 0.4]) is StopReason.NO_IMPROVEMENT
    assert reason([0.5] * 3, [0.3, 0.4, 0.4], n_iter_no_change=3) is None
    assert reason([0.5] * 3, [0.3, 0.4, 0.4], n_iter_no_change=None) is None
    assert reason([0.5] * 3, [0.3, 0.2, 0.4]) is None
    assert reason([0.5] * 2, [0.3, 0.3]) is None
    assert reason([0.5] * 3) is None  # nothing is watched


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
    assert _batch_size(node, SimpleNamespace(batch_size=3, max_hidden=5)) == size


def test_a_listener_is_told_the_last_errors():
    assert record_of([0.5, 0.4]).last_errors() == (0.4, None)
    assert record_of([0.5, 0.4], [0.7, 0.6]).last_errors() == (0.4, 0.6)
