"""Choosing lambda and the ridge on held-out rows: the table is that of single solves, whatever runs it."""

import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from scne.ncl import EnsembleSystem, _lapack, choose, decorrelation_limit, lambda_path, system_matrix

SIZES = (4, 3, 5)


def make_systems(n_outputs=1, deficient=False, sizes=SIZES, n_rows=80):
    """One system of the first rows, one of the others."""
    rng = np.random.default_rng(0)
    members = [rng.standard_normal((n_rows, size)) + 0.5 * rng.standard_normal((n_rows, 1)) for size in sizes]
    if deficient:
        members[0][:, 1] = members[0][:, 0]  # twins within a member
        members[1][:, 0] = members[2][:, 0]  # twins between members
        members[2][:, 1] = 0.0  # a dead node
    y = np.hstack(members).sum(axis=1)[:, None] + rng.standard_normal((n_rows, n_outputs))
    parts = slice(0, n_rows // 2), slice(n_rows // 2, n_rows)
    return [EnsembleSystem.from_outputs([H[part] for H in members], y[part]) for part in parts]


CASES = {
    "one output": (1, False, [1e-3, 1.0, 100.0]),
    "several outputs": (3, False, [1e-3, 1.0]),
    "a ridge per member": (2, False, [[0.01, 1.0, 100.0], [1.0, 0.0, 0.1]]),
    "no ridge": (1, False, [0.0]),
    "dependent nodes without a ridge": (2, True, [0.0, 0.1]),
}
every_case = pytest.mark.parametrize(("n_outputs", "deficient", "ridges"), CASES.values(), ids=CASES.keys())


def tables(fitted, judged, ridges, lambdas):
    """Mean squared errors on held-out rows and root mean squared training errors, one solve for each pair."""
    scores, errors = np.empty((2, len(ridges), len(lambdas)))
    for i, ridge in enumerate(ridges):
        for j, decorrelation in enumerate(lambdas):
            A = system_matrix(fitted, decorrelation, ridge)
            weights = np.linalg.pinv(A, rcond=1e-12, hermitian=True) @ fitted.moments
            scores[i, j] = judged.ensemble_error(weights) ** 2
            errors[i, j] = fitted.ensemble_error(weights)
    return scores, errors


@every_case
@pytest.mark.parametrize("chunk_numbers", [None, 100])
def test_the_table_is_that_of_single_solves(monkeypatch, n_outputs, deficient, ridges, chunk_numbers):
    if chunk_numbers is not None:
        monkeypatch.setattr("scne.ncl._path.CHUNK_NUMBERS", chunk_numbers)
    fitted, judged = make_systems(n_outputs, deficient)
    lambdas = np.array([0.0, 0.3, 0.8, 1.2, 1.45])
    choice = choose(fitted, ridges, lambdas, held_out=judged)
    scores, errors = tables(fitted, judged, ridges, lambdas)
    np.testing.assert_allclose(choice.scores, scores, rtol=1e-9)
    np.testing.assert_allclose(choice.errors, errors, rtol=1e-9)
    row, column = np.unravel_index(np.argmin(scores), scores.shape)
    assert choice.decorrelation == lambdas[column]
    np.testing.assert_array_equal(choice.ridge, np.broadcast_to(ridges[row], 3))
    assert choice.criterion == "held-out rows"


def test_memory_does_not_grow_with_the_number_of_lambdas(monkeypatch):
    monkeypatch.setattr("scne.ncl._path.CHUNK_NUMBERS", 1_000)
    fitted, judged = make_systems()
    path = lambda_path(fitted, 0.1, np.linspace(0.0, 1.4, 10_000))
    tracemalloc.start()
    try:
        path.squares(judged)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # The weights of all lambdas at once.
    assert peak < 8 * 12 * 10_000


def test_a_singular_end_of_the_road_among_other_lambdas():
    fitted, judged = make_systems(deficient=True)
    limit = decorrelation_limit(3)
    lambdas = [0.5, limit, 1.0, limit]
    path = lambda_path(fitted, 0.0, lambdas)
    scores = path.squares(judged).held_out
    assert scores[1] == scores[3]
    apart = [lambda_path(fitted, 0.0, [one]).squares(judged).held_out[0] for one in lambdas]
    np.testing.assert_allclose(scores, apart, rtol=1e-9)
    A = system_matrix(fitted, limit, 0.0)
    np.testing.assert_allclose(A @ path.weights_at(limit), fitted.moments, atol=1e-8)


@pytest.mark.parametrize("held_out", [True, False])
@pytest.mark.parametrize("deficient", [False, True])
def test_threads_do_not_change_a_bit(held_out, deficient):
    fitted, judged = make_systems(deficient=deficient, sizes=(40, 30, 50), n_rows=600)
    ridges = [0.0, 1e-3, 0.1, 1.0, 10.0, 100.0]
    judge = judged if held_out else None
    alone = choose(fitted, ridges, held_out=judge)
    for n_threads in (2, 6):
        with ThreadPoolExecutor(n_threads) as pool:
            together = choose(fitted, ridges, held_out=judge, run=pool.map)
        np.testing.assert_array_equal(together.scores, alone.scores)
        np.testing.assert_array_equal(together.errors, alone.errors)


@every_case
def test_wrappers_choose_as_pointers_do(monkeypatch, n_outputs, deficient, ridges):
    fitted, judged = make_systems(n_outputs, deficient)
    by_pointers = choose(fitted, ridges, held_out=judged)
    for name in ("_dsytrd", "_dormtr", "_dpttrf", "_dpttrs", "_dpotrf", "_dstevd", "_dtrsm"):
        monkeypatch.setattr(_lapack, name, None)
    by_wrappers = choose(fitted, ridges, held_out=judged)
    np.testing.assert_allclose(by_wrappers.scores, by_pointers.scores, rtol=1e-12)
    assert by_wrappers.decorrelation == by_pointers.decorrelation
    np.testing.assert_array_equal(by_wrappers.ridge, by_pointers.ridge)


def test_errors_of_a_path_are_computed_with_or_without_held_out_rows():
    fitted, judged = make_systems()
    path = lambda_path(fitted, 0.1)
    squares = path.squares(judged)
    np.testing.assert_array_equal(np.sqrt(squares.training), path.errors)
    assert path.squares().held_out is None


@pytest.mark.parametrize("slack", [0.0, 0.02, 0.2, 1.0, 1e9])
@pytest.mark.parametrize("held_out", [True, False])
def test_within_the_slack_the_pair_nearest_to_a_plain_average_is_taken(slack, held_out):
    """The smallest lambda of all pairs that are good enough, and for it the largest ridge."""
    fitted, judged = make_systems()
    ridges, lambdas = [1.0, 1e-3, 30.0, 0.1], np.array([0.0, 0.3, 0.8, 1.2, 1.45])
    choice = choose(fitted, ridges, lambdas, slack=slack, held_out=judged if held_out else None)
    least = choice.scores.min()
    pairs = [
        (decorrelation, -ridge)
        for i, ridge in enumerate(ridges)
        for j, decorrelation in enumerate(lambdas)
        if choice.scores[i, j] <= (1 + slack) * least
    ]
    decorrelation, ridge = min(pairs)
    assert (choice.decorrelation, choice.ridge.tolist()) == (decorrelation, [-ridge] * 3)


def test_a_limit_must_stay_above_lambda_and_zero_is_always_allowed():
    fitted, judged = make_systems()
    for held_out in (judged, None):
        choice = choose(fitted, [0.1, 1.0], [0.0, 0.3, 0.8], limit=0.3, held_out=held_out)
        assert np.isfinite(choice.scores).tolist() == [[True, False, False]] * 2
        by_ridge = choose(fitted, [0.1, 1.0], [0.0, 0.3], limit=lambda r: r[0], held_out=held_out)
        assert np.isfinite(by_ridge.scores).tolist() == [[True, False], [True, True]]
        assert choose(fitted, [0.1], [0.0, 0.3], limit=-1.0, held_out=held_out).decorrelation == 0.0


def test_fits_that_leave_no_rows_over_are_refused():
    rng = np.random.default_rng(0)
    system = EnsembleSystem.from_outputs([rng.standard_normal((5, 8))], rng.standard_normal(5))
    with pytest.raises(ValueError, match="no pair of the 1 ridges and 1 decorrelations has a finite score"):
        choose(system, [0.0], [0.0])
    assert choose(system, [0.0, 1.0], [0.0]).ridge.tolist() == [1.0]


@pytest.mark.parametrize("member_weights", [None, np.array([0.5, 0.3, 0.2])], ids=["equal", "weighted"])
def test_ends_first_scores_both_ends_of_all_ridges_and_the_best_path(member_weights):
    fitted, judged = (replace(system, member_weights=member_weights) for system in make_systems(2))
    ridges = [1e-3, 0.1, 10.0, 1000.0]
    whole = choose(fitted, ridges, held_out=judged)
    choice = choose(fitted, ridges, held_out=judged, ends_first=True)
    tried = np.isfinite(choice.scores)
    best = int(np.argmin(whole.scores[:, [0, -1]].min(axis=1)))
    assert tried[best].all()
    assert tried[:, [0, -1]].all()
    assert tried.sum() == len(choice.decorrelations) + 2 * (len(ridges) - 1)
    np.testing.assert_array_equal(np.isinf(choice.errors), ~tried)
    np.testing.assert_allclose(choice.scores[tried], whole.scores[tried], rtol=1e-9)
    np.testing.assert_allclose(choice.errors[tried], whole.errors[tried], rtol=1e-9)
    np.testing.assert_array_equal(choice.decorrelations, whole.decorrelations)
    row, column = np.unravel_index(np.argmin(choice.scores), choice.scores.shape)
    assert choice.decorrelation == whole.decorrelations[column]
    np.testing.assert_array_equal(choice.ridge, np.full(3, ridges[row]))


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_of_many_nodes_the_path_is_tried_around_its_best_place(n_outputs, monkeypatch):
    monkeypatch.setattr("scne.ncl._choice.MOST_FOR_PATH", 1)
    fitted, judged = make_systems(n_outputs)
    ridges = [1e-3, 0.1, 10.0, 1000.0]
    whole = choose(fitted, ridges, held_out=judged)
    choice = choose(fitted, ridges, held_out=judged, ends_first=True)
    tried = np.isfinite(choice.scores)
    best = int(np.argmin(whole.scores[:, [0, -1]].min(axis=1)))
    assert 10 < tried[best].sum() < 25
    assert tried.sum() == tried[best].sum() + 2 * (len(ridges) - 1)
    np.testing.assert_array_equal(np.isinf(choice.errors), ~tried)
    np.testing.assert_allclose(choice.scores[tried], whole.scores[tried], rtol=1e-8)
    np.testing.assert_allclose(choice.errors[tried], whole.errors[tried], rtol=1e-8)
    assert choice.scores.min() == pytest.approx(whole.scores[best].min(), rel=1e-4)


def test_ends_first_changes_nothing_where_lambdas_are_given_or_limited():
    fitted, judged = make_systems()
    for settings in ({"decorrelations": [0.2, 0.7]}, {"limit": 1.0}):
        whole = choose(fitted, [0.1, 1.0], held_out=judged, **settings)
        choice = choose(fitted, [0.1, 1.0], held_out=judged, ends_first=True, **settings)
        np.testing.assert_array_equal(choice.scores, whole.scores)
