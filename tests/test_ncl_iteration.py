"""The loop that the iterative solvers share: what it records, and the exact places where it stops."""

import numpy as np
import pytest

from scne.ncl import EnsembleSystem, Status
from scne.ncl._iteration import History, Iterate, IterativeSolver, divergence_threshold, product_iterates

# Two members of one node each, two rows: the ensemble is (B_1, B_2) / 2 and the target (2, 2).
SYSTEM = EnsembleSystem.from_outputs([np.array([[1.0], [0.0]]), np.array([[0.0], [1.0]])], np.array([2.0, 2.0]))
START = np.zeros((2, 1))


class Solver(IterativeSolver):
    name = "of a test"


def run(step, *, max_iter=10, tol=0.0, step_tol=0.0, keep=True):
    solver = Solver(max_iter=max_iter, tol=tol, step_tol=step_tol, keep_weights_history=keep)
    return solver.iterate(SYSTEM, product_iterates(SYSTEM, 0.0, START, lambda weights, product: step(weights)))


def test_without_iterations_the_start_is_the_answer():
    solution = run(lambda weights: weights + 1, max_iter=0)
    assert (solution.status, solution.n_iter, solution.solver) == (Status.MAX_ITER, 0, "of a test")
    assert solution.error_history.tolist() == [2.0]
    np.testing.assert_array_equal(solution.weights_history, [START])


def test_every_iterate_is_recorded():
    solution = run(lambda weights: weights + 1, max_iter=3)
    assert (solution.status, solution.n_iter) == (Status.MAX_ITER, 3)
    # The ensemble predicts k / 2 in both rows.
    assert solution.error_history.tolist() == [2.0, 1.5, 1.0, 0.5]
    np.testing.assert_array_equal(solution.weights_history[:, :, 0], [[0, 0], [1, 1], [2, 2], [3, 3]])
    np.testing.assert_array_equal(solution.weights, [[3.0], [3.0]])
    assert run(lambda weights: weights + 1, keep=False).weights_history is None


def test_a_record_does_not_change_with_the_weights():
    history = History(keep_weights=True)
    weights = np.ones((2, 1))
    history.add(weights, 0.5)
    weights[:] = 7.0
    np.testing.assert_array_equal(
        history.solution(weights, Status.MAX_ITER, "jacobi").weights_history, [np.ones((2, 1))]
    )


def test_the_error_must_be_below_the_tolerance():
    assert run(lambda weights: weights + 1, tol=1.5).n_iter == 2
    assert run(lambda weights: weights + 1, tol=np.nextafter(1.5, 2)).n_iter == 1
    assert run(lambda weights: weights + 1, tol=1.5).status is Status.REACHED_TOLERANCE


def test_a_standstill_ends_it_even_with_no_tolerance_for_steps():
    stopped = run(lambda weights: np.minimum(weights + 1, 3.0))
    assert (stopped.status, stopped.n_iter) == (Status.CONVERGED, 4)
    # From 1 to 2 the fit changes by half of itself, from 2 to 3 by a third.
    assert run(lambda weights: weights + 1, step_tol=0.5).n_iter == 2
    assert run(lambda weights: weights + 1, step_tol=0.4).n_iter == 3
    assert run(lambda weights: weights + 1, step_tol=0.5).status is Status.CONVERGED


def test_divergence_is_an_error_of_a_hundred_million_times_the_targets_size():
    assert divergence_threshold(SYSTEM, 0.0) == 2e8
    assert divergence_threshold(SYSTEM, 1.0) == 2e8
    assert divergence_threshold(SYSTEM, 3.0) == 3e8
    two = EnsembleSystem.from_outputs([np.eye(4)], np.column_stack([np.full(4, 3.0), np.full(4, 4.0)]))
    assert divergence_threshold(two, 0.0) == pytest.approx(1e8 * np.sqrt(12.5), rel=1e-15)
    # Errors are |2 - weights / 2|: 2e8 is reached at weights of 2 (2 + 2e8).
    at_threshold = run(lambda weights: np.full_like(weights, 2 * (2 + 2e8)), max_iter=1)
    assert at_threshold.error_history[-1] == 2e8
    assert at_threshold.status is Status.MAX_ITER
    beyond = run(lambda weights: np.full_like(weights, 5e8))
    assert (beyond.status, beyond.n_iter) == (Status.DIVERGED, 1)
    np.testing.assert_array_equal(beyond.weights, [[5e8], [5e8]])


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_a_step_out_of_the_numbers_returns_the_iterate_before_it(broken):
    solution = run(lambda weights: weights + 1 if weights[0] < 2 else weights * [[1.0], [broken]])
    assert (solution.status, solution.n_iter) == (Status.DIVERGED, 2)
    np.testing.assert_array_equal(solution.weights, [[2.0], [2.0]])
    assert np.isfinite(solution.error_history).all()


def iterates_of(H, old, new, ridge=0.0):
    """The start `old`, and `new`, for one member with hidden outputs H."""
    system = EnsembleSystem.from_outputs([H], np.zeros((len(H), old.shape[1])))
    iterates = product_iterates(system, ridge, old, lambda weights, product: new)
    return next(iterates), next(iterates)


def test_the_change_is_that_of_the_fit_relative_to_the_new_one():
    rng = np.random.default_rng(0)
    H = rng.standard_normal((20, 3))
    new, old = rng.standard_normal((2, 3, 2))
    change, size = np.linalg.norm(H @ (new - old), axis=0), np.linalg.norm(H @ new, axis=0)
    _, second = iterates_of(H, old, new)
    np.testing.assert_allclose(second.change, change, rtol=1e-12)
    np.testing.assert_allclose(second.size, size, rtol=1e-12)
    # The output that moves more decides, wherever it stands.
    assert second.relative_change == pytest.approx((change / size).max(), rel=1e-12)
    assert iterates_of(H, old[:, ::-1], new[:, ::-1])[1].relative_change == pytest.approx((change / size).max())


def test_a_step_is_measured_with_the_ridge():
    rng = np.random.default_rng(0)
    H = rng.standard_normal((20, 3))
    new, old = rng.standard_normal((2, 3, 2))
    step = np.linalg.norm(np.vstack([H, np.sqrt(0.5) * np.eye(3)]) @ (new - old))
    assert iterates_of(H, old, new, ridge=0.5)[1].step == pytest.approx(step, rel=1e-12)


def test_an_output_whose_fit_is_zero_does_not_move():
    new, old = np.array([[0.0, 3.0], [0.0, 4.0]]), np.array([[0.0, 3.0], [0.0, 3.0]])
    assert iterates_of(np.eye(2), old, new)[1].relative_change == 0.2
    assert iterates_of(np.eye(2), np.zeros((2, 1)), np.zeros((2, 1)))[1].relative_change == 0.0


def run_steps(lengths, diverges, start=0.0):
    """Steps of given lengths along the first node, then max_iter."""
    places = iter(start + np.cumsum(lengths))
    first = np.array([[start], [0.0]])
    iterates = product_iterates(SYSTEM, 0.0, first, lambda *_: np.array([[next(places)], [0.0]]))
    return Solver(max_iter=len(lengths), step_tol=0.0).iterate(SYSTEM, iterates, diverges).status


def test_at_max_iter_growing_steps_are_a_divergence_where_the_solver_says_so():
    def grows(growth):
        return growth >= 1.0

    assert run_steps([1.0, 2.0, 4.0], grows) is Status.DIVERGED
    assert run_steps([1.0, 2.0, 1.9], grows) is Status.MAX_ITER
    assert run_steps([1.0, 2.0, 4.0], lambda growth: False) is Status.MAX_ITER
    # One step has none before it, and rounding grows and shrinks as it likes.
    for start in (0.0, 1.0):
        assert run_steps([5.0], grows, start) is Status.MAX_ITER
    assert run_steps([1.0, 1e-9, 2e-9], grows) is Status.MAX_ITER


def test_the_relative_change_takes_no_zero_for_a_divisor():
    still = Iterate(START, 0.0, np.zeros(2), np.zeros(2), 0.0)
    assert still.relative_change == 0.0
