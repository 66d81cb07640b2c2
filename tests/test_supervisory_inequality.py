"""Which candidates become nodes: Eq. (7) of the paper, and the exact error reduction (Proposition 8)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scne.networks import pool_generator, required_share, select_candidates, uniform_pool
from scne.passes import PoolSums

seeds = st.integers(0, 2**32 - 1)
N_ROWS = 25
CONTRACTIONS = (0.3, 0.7, 0.9, 0.99)


def make_pool(seed, n_outputs, n_nodes, n_candidates=12):
    """Present nodes H, candidates h and targets that some candidates explain and others do not."""
    rng = np.random.default_rng(seed)
    H = rng.standard_normal((N_ROWS, n_nodes))
    h = rng.standard_normal((N_ROWS, n_candidates)) + H @ rng.standard_normal((n_nodes, n_candidates))
    mix = rng.standard_normal((n_candidates, n_outputs)) * (rng.random((n_candidates, 1)) < 0.3)
    return H, h, h @ mix + rng.standard_normal((N_ROWS, n_outputs))


def residual(H, y):
    return y - H @ np.linalg.lstsq(H, y, rcond=None)[0] if H.shape[1] else y


def sums_of(H, h, e):
    Q = np.linalg.qr(H)[0] if H.shape[1] else H
    return PoolSums(e.T @ h, (h * h).sum(axis=0), Q.T @ h, h.T @ h)


def select(H, h, y, node, criterion, batch_size=1, contractions=CONTRACTIONS):
    e = residual(H, y)
    squares = (e * e).sum(axis=0)
    return select_candidates(sums_of(H, h, e), squares, node, contractions, batch_size, criterion, 1e-10, 1e-12)


def by_equation_7(h, e, node, batch_size):
    """The paper's rule, a candidate at a time."""
    for r in CONTRACTIONS:
        mu = (1 - r) / (node + 1)
        admissible = {}
        for t in range(h.shape[1]):
            xi = [
                (e[:, q] @ h[:, t]) ** 2 / (h[:, t] @ h[:, t]) - (1 - r - mu) * (e[:, q] @ e[:, q])
                for q in range(e.shape[1])
            ]
            if min(xi) > 0:
                admissible[t] = sum(xi)
        if admissible:
            return sorted(admissible, key=admissible.get, reverse=True)[:batch_size], r
    return None


def by_refitting(H, h, y, node, batch_size):
    """The orthogonal rule, each candidate measured by a least-squares fit with and without it."""
    picked, first = [], None
    for offset in range(batch_size):
        e = residual(H, y)
        left = [t for t in range(h.shape[1]) if t not in picked]
        gains = {t: (e**2).sum(axis=0) - (residual(np.column_stack([H, h[:, t]]), y) ** 2).sum(axis=0) for t in left}
        for r in CONTRACTIONS:
            mu = (1 - r) / (node + offset + 1)
            xi = {t: gain - (1 - r - mu) * (e**2).sum(axis=0) for t, gain in gains.items()}
            admissible = {t: value.sum() for t, value in xi.items() if value.min() > 0}
            if admissible:
                break
        if not admissible:
            break
        first = first or r
        picked.append(max(admissible, key=admissible.get))
        H = np.column_stack([H, h[:, picked[-1]]])
    return (picked, first) if picked else None


def as_pair(selection):
    return None if selection is None else (selection.candidates, selection.contraction)


@given(st.floats(0.01, 0.999999), st.integers(1, 10_000))
def test_the_required_share_is_one_less_r_less_mu(r, node):
    mu = (1 - r) / (node + 1)
    assert required_share(r, node) == pytest.approx(1 - r - mu, rel=1e-9, abs=1e-15)


@given(seeds, st.integers(1, 3), st.integers(0, 4), st.integers(1, 30), st.integers(1, 15))
def test_the_paper_criterion_is_equation_7(seed, n_outputs, n_nodes, node, batch_size):
    H, h, y = make_pool(seed, n_outputs, n_nodes)
    expected = by_equation_7(h, residual(H, y), node, batch_size)
    assert as_pair(select(H, h, y, node, "paper", batch_size)) == expected


@given(seeds, st.integers(1, 3), st.integers(0, 4), st.integers(1, 30))
def test_the_orthogonal_criterion_measures_by_refitting(seed, n_outputs, n_nodes, node):
    H, h, y = make_pool(seed, n_outputs, n_nodes)
    assert as_pair(select(H, h, y, node, "orthogonal")) == by_refitting(H, h, y, node, 1)


@given(seeds, st.integers(1, 2), st.integers(0, 4), st.integers(2, 6))
def test_a_deflated_batch_is_nodes_added_one_by_one(seed, n_outputs, n_nodes, batch_size):
    H, h, y = make_pool(seed, n_outputs, n_nodes)
    assert as_pair(select(H, h, y, 1, "orthogonal", batch_size)) == by_refitting(H, h, y, 1, batch_size)


@given(seeds, st.integers(1, 3), st.integers(0, 6))
def test_the_orthogonal_gain_is_the_exact_error_reduction(seed, n_outputs, n_nodes):
    """Identity 5: (e'h)^2 / |h - P h|^2 against two fits from scratch."""
    H, h, y = make_pool(seed, n_outputs, n_nodes)
    e = residual(H, y)
    sums = sums_of(H, h, e)
    gains = sums.moments**2 / (sums.squares - (sums.projections**2).sum(axis=0))
    for t in range(h.shape[1]):
        after = residual(np.column_stack([H, h[:, t]]), y)
        np.testing.assert_allclose(gains[:, t], (e**2).sum(axis=0) - (after**2).sum(axis=0), rtol=1e-7, atol=1e-9)


@given(seeds, st.integers(1, 3), st.integers(0, 6))
def test_the_gain_of_the_paper_is_a_lower_bound(seed, n_outputs, n_nodes):
    H, h, y = make_pool(seed, n_outputs, n_nodes)
    e = residual(H, y)
    for t in range(h.shape[1]):
        after = residual(np.column_stack([H, h[:, t]]), y)
        reduction = (e**2).sum(axis=0) - (after**2).sum(axis=0)
        assert np.all((e.T @ h[:, t]) ** 2 / (h[:, t] @ h[:, t]) <= reduction + 1e-9)


@given(seeds, st.integers(1, 15), st.sampled_from(["paper", "orthogonal"]))
def test_no_candidate_is_picked_twice(seed, batch_size, criterion):
    H, h, y = make_pool(seed, 1, 2)
    selection = select(H, h, y, 1, criterion, batch_size)
    if selection is not None:
        assert len(set(selection.candidates)) == len(selection.candidates) <= batch_size


@given(seeds, st.integers(2, 15))
def test_copies_of_a_candidate_are_never_both_picked(seed, batch_size):
    """Their sum would leave the network where one of them leaves it."""
    H, h, y = make_pool(seed, 1, 2, n_candidates=6)
    selection = select(H, np.hstack([h, h, -2 * h]), y, 1, "orthogonal", batch_size)
    if selection is not None:
        originals = [t % 6 for t in selection.candidates]
        assert len(set(originals)) == len(originals)


E1, E2, E3 = np.eye(N_ROWS)[:3]
NOTHING = np.zeros((N_ROWS, 0))
both = pytest.mark.parametrize("criterion", ["paper", "orthogonal"])


@both
def test_a_candidate_must_help_every_output(criterion):
    """The first explains one output wholly and the other not at all; the second a quarter of each."""
    y = np.column_stack([2 * E1, E2])
    h = np.column_stack([E1, E1 + E2 + np.sqrt(2) * E3])
    assert as_pair(select(NOTHING, h, y, 1, criterion, contractions=(0.6,))) == ([1], 0.6)


@both
def test_among_admissible_candidates_the_largest_sum_wins(criterion):
    """Gains (0.5, 0.3) of squared errors (1, 1) against (0.4, 0.35): the sum decides, not the least of the two."""
    y = np.column_stack([E1, E2])

    def candidate(a, b):
        return np.sqrt(a) * E1 + np.sqrt(b) * E2 + np.sqrt(1 - a - b) * E3

    h = np.column_stack([candidate(0.4, 0.35), candidate(0.5, 0.3)])
    assert as_pair(select(NOTHING, h, y, 1, criterion, contractions=(0.5,))) == ([1], 0.5)


@both
def test_r_is_relaxed_no_further_than_needed(criterion):
    """A candidate that removes 30 % is admitted where (1 - r) L / (L + 1) is less: r = 0.5 for the first node."""
    h = (np.sqrt(0.3) * E1 + np.sqrt(0.7) * E2)[:, None]
    chosen = select(NOTHING, h, E1[:, None], 1, criterion, contractions=(0.1, 0.3, 0.5, 0.9))
    assert as_pair(chosen) == ([0], 0.5)


@both
def test_the_same_candidate_needs_a_laxer_r_later(criterion):
    h = (np.sqrt(0.3) * E1 + np.sqrt(0.7) * E2)[:, None]
    chosen = select(NOTHING, h, E1[:, None], 9, criterion, contractions=(0.1, 0.3, 0.5, 0.9))
    assert as_pair(chosen) == ([0], 0.9)


@both
def test_equality_is_not_enough(criterion):
    """xi must be positive: half of the error removed where half is required (r = 0, L = 1), without any rounding."""
    h = (E1 + E2)[:, None]
    y = E1[:, None]
    assert select(NOTHING, h, y, 1, criterion, contractions=(-1e-9,)) is None
    assert select(NOTHING, h, y, 1, criterion, contractions=(0.0,)) is None
    assert select(NOTHING, h, y, 1, criterion, contractions=(1e-9,)) is not None


@both
def test_nothing_admissible_gives_nothing(criterion):
    h = np.column_stack([E2, E3, np.zeros(N_ROWS)])
    assert select(NOTHING, h, E1[:, None], 1, criterion) is None


@both
def test_an_output_that_is_fitted_already_has_no_veto_and_nothing_to_give(criterion):
    y = np.column_stack([E1, np.zeros(N_ROWS)])
    assert as_pair(select(NOTHING, E1[:, None], y, 1, criterion)) == ([0], CONTRACTIONS[0])
    assert select(NOTHING, np.column_stack([E1, E2]), np.zeros((N_ROWS, 2)), 1, criterion) is None


def test_a_batch_takes_admissible_candidates_only():
    h = np.column_stack([E2, E1 + E2, E3, E1 + E3])
    assert select(NOTHING, h, E1[:, None], 1, "paper", batch_size=4, contractions=(0.5,)).candidates == [1, 3]


def test_a_deflated_batch_judges_what_its_first_picks_leave_over():
    """E2 explains nothing of E1, and with E1 + E2 all of it."""
    h = np.column_stack([E2, E1 + E2])
    assert select(NOTHING, h, E1[:, None], 1, "orthogonal", batch_size=2, contractions=(0.5,)).candidates == [1, 0]


def test_a_batch_by_the_paper_ranks_once():
    """Nearly equal candidates come together by the paper's rule, and one by one by the other."""
    h = np.column_stack([E1 + 0.1 * E2, E1 + 0.11 * E2, E1 - E2])
    y = (E1 + 0.2 * E2)[:, None]
    assert select(NOTHING, h, y, 1, "paper", 2).candidates == [1, 0]
    assert select(NOTHING, h, y, 1, "orthogonal", 2).candidates[0] == 1


def test_a_candidate_in_the_span_of_the_nodes_is_passed_over():
    H = np.column_stack([E1, E2])
    h = np.column_stack([E1 - 3 * E2, E1 + E3])
    assert as_pair(select(H, h, (E1 + E3)[:, None], 3, "orthogonal")) == ([1], CONTRACTIONS[0])


@both
def test_ties_go_to_the_first_of_the_pool(criterion):
    """The first gain is less by 1e-14, which is rounding and not a better node."""
    h = np.column_stack([E2, E1 + 1e-7 * E2, -E1, 3 * E1])
    assert select(NOTHING, h, E1[:, None], 1, criterion).candidates == [1]


@both
@given(scale=st.floats(1e-6, 1e6), seed=seeds)
def test_the_scale_of_a_candidate_does_not_matter(criterion, scale, seed):
    H, h, y = make_pool(seed, 1, 2)
    scales = np.where(np.arange(12) % 2, scale, -1.0)
    assert as_pair(select(H, h * scales, y, 2, criterion)) == as_pair(select(H, h, y, 2, criterion))


# --- pools


@given(seeds, st.integers(1, 5), st.integers(1, 40), st.lists(st.floats(0.1, 200), min_size=1, max_size=5))
def test_candidates_take_turns_through_the_scopes_and_stay_inside(seed, n_columns, n_candidates, scopes):
    pool = uniform_pool(pool_generator(seed, 0), n_columns, n_candidates, scopes)
    assert pool.shape == (n_columns + 1, n_candidates)
    for t in range(n_candidates):
        assert np.abs(pool[:, t]).max() <= scopes[t % len(scopes)]


def test_weights_and_biases_fill_their_interval_evenly():
    pool = uniform_pool(pool_generator(0, 0), 3, 20_000, [2.0])
    for row in pool:
        shares, _ = np.histogram(row, bins=8, range=(-2, 2))
        assert np.all(np.abs(shares / 2500 - 1) < 0.1)


def test_a_pool_is_named_by_its_numbers_alone():
    first = uniform_pool(pool_generator(7, 1, 4, 0), 3, 10, [1.0])
    for name in [(7, 1, 4, 1), (7, 1, 5, 0), (7, 2, 4, 0), (8, 1, 4, 0)]:
        assert not np.array_equal(uniform_pool(pool_generator(*name), 3, 10, [1.0]), first)
    assert np.array_equal(uniform_pool(pool_generator(7, 1, 4, 0), 3, 10, [1.0]), first)


@pytest.mark.parametrize("criterion", ["paper", "orthogonal"])
@pytest.mark.parametrize("left", [0.0, 1e-28])
def test_an_output_with_nothing_left_has_no_say(criterion, left):
    """The second output is fitted up to rounding; a candidate that does nothing for it is judged by the first alone."""
    sums = PoolSums(np.array([[0.9], [0.0]]), np.ones(1), np.zeros((0, 1)), np.ones((1, 1)))
    selection = select_candidates(sums, np.array([1.0, left]), 1, CONTRACTIONS, 1, criterion, 1e-10, 1e-12)
    assert (selection.candidates, selection.contraction) == ([0], 0.3)
