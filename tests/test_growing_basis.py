"""The factorisation that grows with the network is the least-squares fit on its nodes, at every step."""

from types import SimpleNamespace

import array_api_strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scne.networks import ACTIVATIONS, GrowingBasis, prepare_search
from scne.networks._builder import _add_nodes
from scne.passes import ThreadEngine
from scne.rows import ArrayRows, ColumnScaling, to_numpy

seeds = st.integers(0, 2**32 - 1)
PRECISIONS = {"float64": (np.float64, 1e-9), "float32": (np.float32, 1e-4)}


class Case:
    """A grown basis beside the whole hidden matrix that it stands for, in float64 and with the row weights in it."""

    def __init__(
        self,
        seed=0,
        n_rows=80,
        n_nodes=5,
        n_outputs=2,
        ridge=0.0,
        weighted=False,
        n_watched=0,
        direct=False,
        stored=True,
        dtype=np.float64,
        activation="sigmoid",
        n_columns=3,
        threads=1,
        library=np.asarray,
    ):
        rng = np.random.default_rng(seed)
        X, y = rng.uniform(-1, 1, (n_rows, n_columns)), rng.standard_normal((n_rows, n_outputs))
        sample_weight = rng.integers(1, 5, n_rows).astype(float) if weighted else None
        watched = rng.permutation(n_rows)[:n_watched]
        identity = ColumnScaling(np.zeros(n_columns), np.ones(n_columns))
        targets = ColumnScaling(np.zeros(n_outputs), np.ones(n_outputs))
        self.nodes = rng.uniform(-5, 5, (n_columns + 1, n_nodes))
        self.ridge = ridge
        with ThreadEngine(threads) as engine:
            rows = prepare_search(
                ArrayRows(library(X), library(y), None if sample_weight is None else library(sample_weight)),
                np.arange(n_columns),
                identity,
                targets,
                engine,
                watched if n_watched else None,
                dtype=dtype,
            )
            budget = np.inf if stored else 0
            self.basis = GrowingBasis(rows, ACTIVATIONS[activation], n_nodes + n_columns, engine, budget, ridge)
            if direct:
                self.basis.append_direct_links()
            for node in self.nodes.T:
                assert self.basis.append_node(node)
            pool = rng.uniform(-5, 5, (n_columns + 1, 6))
            self.pool = pool
            self.scores = self.basis.score(pool, with_projections=True, with_gram=True)
        kept = np.setdiff1d(np.arange(n_rows), watched)
        self.order = np.concatenate([kept, np.sort(watched)]).astype(int)
        self.n_training = len(kept)
        self.root = np.ones(n_rows) if sample_weight is None else np.sqrt(sample_weight)
        self.root = self.root[self.order, None]
        self.inputs = np.column_stack([X, np.ones(n_rows)])[self.order]
        self.activation = activation
        linear = self.inputs[:, :n_columns] * self.root if direct else np.zeros((n_rows, 0))
        self.H = np.hstack([linear, self.outputs(self.nodes)])
        self.y = y[self.order] * self.root

    def outputs(self, nodes):
        z = self.inputs @ nodes
        return self.root * (1 / (1 + np.exp(-z)) if self.activation == "sigmoid" else np.tanh(z))

    @property
    def training(self):
        return slice(0, self.n_training)

    def fit(self, H):
        """Output weights by the normal equations, or lstsq where there is no ridge."""
        H, y = H[self.training], self.y[self.training]
        if not self.ridge:
            return np.linalg.lstsq(H, y, rcond=None)[0]
        return np.linalg.solve(H.T @ H + self.ridge * np.eye(H.shape[1]), H.T @ y)

    def objective(self, H):
        beta = self.fit(H)
        rows = self.y[self.training] - H[self.training] @ beta
        return (rows**2).sum(axis=0) + self.ridge * (beta**2).sum(axis=0)


cases = st.fixed_dictionaries(
    {
        "seed": seeds,
        "n_nodes": st.integers(1, 7),
        "n_outputs": st.integers(1, 3),
        "ridge": st.sampled_from([0.0, 1e-6, 0.1, 10.0]),
        "weighted": st.booleans(),
        "n_watched": st.sampled_from([0, 1, 30]),
        "direct": st.booleans(),
        "stored": st.booleans(),
        "activation": st.sampled_from(["sigmoid", "tanh"]),
    }
)


@given(cases)
def test_the_factor_is_that_of_the_gram_matrix_and_the_ridge(settings):
    """R'R = H'H + r I, R upper triangular."""
    case = Case(**settings)
    R = case.basis.factor[: case.basis.size, : case.basis.size]
    H = case.H[case.training]
    np.testing.assert_allclose(R.T @ R, H.T @ H + case.ridge * np.eye(len(R)), rtol=1e-9, atol=1e-9)
    assert np.array_equal(R, np.triu(R))


@given(cases)
def test_the_residual_is_that_of_the_fit_on_training_and_watched_rows(settings):
    """y - H b with b from the training rows alone, times the root weights."""
    case = Case(**settings)
    np.testing.assert_allclose(case.basis.residual, case.y - case.H @ case.fit(case.H), atol=1e-6)


@given(cases)
def test_errors_are_weighted_root_mean_squares_of_the_residual(settings):
    case = Case(**settings)
    e, w = case.y - case.H @ case.fit(case.H), case.root[:, 0] ** 2
    q, n = e.shape[1], case.n_training
    assert case.basis.training_error() == pytest.approx(np.sqrt((e[:n] ** 2).sum() / (q * w[:n].sum())), rel=1e-6)
    if settings["n_watched"]:
        watched = np.sqrt((e[n:] ** 2).sum() / (q * w[n:].sum()))
        assert case.basis.validation_error() == pytest.approx(watched, rel=1e-6, abs=1e-9)


@given(cases)
def test_the_gain_of_a_candidate_is_what_the_objective_falls_by(settings):
    """Identity 5 with a ridge: the drop of |y - H b|^2 + r |b|^2, from two solutions from scratch."""
    case = Case(**settings)
    scores = case.scores
    gains = scores.moments**2 / (scores.squares - (scores.projections**2).sum(axis=0))
    before, candidates = case.objective(case.H), case.outputs(case.pool)
    for t in range(case.pool.shape[1]):
        drop = before - case.objective(np.column_stack([case.H, candidates[:, t]]))
        np.testing.assert_allclose(gains[:, t], drop, rtol=1e-4, atol=1e-6)


@given(cases)
def test_a_pool_is_scored_on_training_rows_alone(settings):
    case = Case(**settings)
    h, e = case.outputs(case.pool)[case.training], case.basis.residual[case.training]
    np.testing.assert_allclose(case.scores.moments, e.T @ h, atol=1e-9)
    gram = h.T @ h + case.ridge * np.eye(6)
    np.testing.assert_allclose(case.scores.gram, gram, atol=1e-9)
    np.testing.assert_allclose(case.scores.squares, np.diag(gram), atol=1e-9)


def test_a_pool_is_scored_without_a_look_at_the_nodes_where_no_projections_are_wanted(monkeypatch):
    case = Case()
    monkeypatch.setattr(case.basis, "_columns", lambda part: pytest.fail("the columns of the basis were read"))
    plain = case.basis.score(case.pool, with_projections=False, with_gram=False)
    np.testing.assert_allclose(plain.moments, case.scores.moments, rtol=1e-12)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 1e-5)])
@pytest.mark.parametrize("direct", [False, True])
def test_the_stored_basis_is_orthonormal(dtype, tolerance, direct):
    case = Case(n_rows=600, n_nodes=8, dtype=dtype, direct=direct, activation="tanh")
    Q = case.basis._stored[: case.basis.size].astype(np.float64)
    assert np.abs(Q @ Q.T - np.eye(len(Q))).max() < tolerance


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_nearly_dependent_nodes_leave_the_basis_orthonormal(dtype):
    """The second projection is needed: nodes that keep a thousandth of their norm."""
    case = Case(n_rows=600, n_nodes=1, dtype=dtype, n_columns=1)
    rng = np.random.default_rng(0)
    with ThreadEngine(1) as engine:
        basis = GrowingBasis(case.basis.rows, ACTIVATIONS["tanh"], 6, engine, np.inf)
        for scale in (1.0, 1.02, 1.05, 1.1, 1.2, 1.4):
            basis.append_node(scale * np.array([1.0, -0.3]) + 0.01 * rng.standard_normal(2))
    Q = basis._stored[: basis.size].astype(np.float64)
    assert basis.size >= 3
    assert np.abs(Q @ Q.T - np.eye(len(Q))).max() < (1e-10 if dtype == np.float64 else 1e-3)


@pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS.values(), ids=PRECISIONS.keys())
@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_basis_kept_or_computed_again_is_the_same(dtype, tolerance, ridge):
    settings = {"n_rows": 1500, "n_nodes": 6, "ridge": ridge, "weighted": True, "n_watched": 200, "direct": True}
    kept = Case(dtype=dtype, **settings)
    again = Case(dtype=dtype, stored=False, **settings)
    assert again.basis._stored is None
    np.testing.assert_allclose(again.basis.residual, kept.basis.residual, atol=20 * tolerance)
    np.testing.assert_allclose(again.scores.projections, kept.scores.projections, atol=2000 * tolerance)


@pytest.mark.parametrize(("missing", "kept"), [(0, True), (1, False)])
def test_the_basis_is_kept_if_it_fits_into_its_budget_to_the_byte(missing, kept):
    rows = Case(n_rows=80, dtype=np.float32).basis.rows
    with ThreadEngine(1) as engine:
        basis = GrowingBasis(rows, ACTIVATIONS["sigmoid"], 10, engine, 10 * 80 * 4 - missing)
    assert (basis._stored is not None) == kept


def test_threads_grow_the_same_bits():
    settings = {"n_rows": 3000, "n_nodes": 5, "weighted": True, "n_watched": 700, "direct": True, "ridge": 0.1}
    alone, spread = Case(**settings), Case(threads=3, **settings)
    assert np.array_equal(alone.basis.residual, spread.basis.residual)
    assert np.array_equal(alone.basis.factor, spread.basis.factor)


@pytest.mark.parametrize("stored", [True, False], ids=["kept", "computed again"])
def test_a_dependent_node_is_refused_and_changes_nothing(stored):
    case = Case(stored=stored)
    basis = case.basis
    before = basis.residual.copy(), basis.factor.copy(), basis.size, basis.training_error()
    with ThreadEngine(1) as engine:
        basis.engine = engine
        assert not basis.append_node(case.nodes[:, 2])
    assert np.array_equal(basis.residual, before[0])
    assert np.array_equal(basis.factor, before[1])
    assert (basis.size, basis.training_error()) == before[2:]


def test_a_node_after_a_refused_one_is_as_if_there_had_been_none():
    case, other = Case(stored=False), Case(stored=False)
    fresh = np.array([3.0, -2.0, 1.0, 0.5])
    with ThreadEngine(1) as engine:
        case.basis.engine = other.basis.engine = engine
        case.basis.append_node(case.nodes[:, 0])
        case.basis.append_node(fresh)
        other.basis.append_node(fresh)
    assert np.array_equal(case.basis.residual, other.basis.residual)


@pytest.mark.parametrize("stored", [True, False], ids=["kept", "computed again"])
def test_constant_and_repeated_columns_are_not_linked_twice(stored):
    """A column of zeros (what scaling makes of a constant one) and a copy add nothing."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(50, 1))
    X, y = np.hstack([x, np.zeros((50, 1)), 2 * x, rng.uniform(size=(50, 1))]), rng.standard_normal((50, 1))
    with ThreadEngine(1) as engine:
        unit = ColumnScaling(np.zeros(4), np.ones(4))
        rows = prepare_search(ArrayRows(X, y), np.arange(4), unit, ColumnScaling(np.zeros(1), np.ones(1)), engine)
        basis = GrowingBasis(rows, ACTIVATIONS["sigmoid"], 6, engine, np.inf if stored else 0)
        basis.append_direct_links()
        basis.append_node(np.array([1.0, 1, 1, 1, 0]))
    assert basis.size == 3
    H = np.column_stack([X[:, [0, 3]], 1 / (1 + np.exp(-X.sum(axis=1)))])
    np.testing.assert_allclose(basis.residual, y - H @ np.linalg.lstsq(H, y, rcond=None)[0], atol=1e-5)


@given(seeds, st.integers(1, 6))
def test_with_as_many_nodes_as_rows_nothing_is_left(seed, n_rows):
    """The interpolating network; rounding is all that remains."""
    case = Case(seed=seed, n_rows=n_rows, n_nodes=n_rows, n_outputs=1, activation="tanh")
    assert np.abs(case.basis.residual).max() < 1e-6


@pytest.mark.parametrize("stored", [True, False], ids=["kept", "computed again"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_another_library_grows_the_same_basis(stored, weighted, ridge):
    settings = {"n_outputs": 2, "n_watched": 20, "direct": True, "weighted": weighted, "ridge": ridge}
    here, there = Case(**settings), Case(stored=stored, library=array_api_strict.asarray, **settings)
    assert (there.basis._stored is None) != stored
    # What the rows hold is left as it was.
    np.testing.assert_array_equal(to_numpy(there.basis.rows.targets), there.y)
    np.testing.assert_allclose(to_numpy(there.basis.residual), here.basis.residual, atol=1e-9)
    np.testing.assert_allclose(there.basis.factor, here.basis.factor, atol=1e-9)
    for name in ("moments", "squares", "projections", "gram"):
        np.testing.assert_allclose(getattr(there.scores, name), getattr(here.scores, name), atol=1e-8)
    assert there.basis.training_error() == pytest.approx(here.basis.training_error(), rel=1e-9)
    assert there.basis.validation_error() == pytest.approx(here.basis.validation_error(), rel=1e-9)


def test_candidates_that_depend_on_present_nodes_are_not_asked_again():
    """By the paper's gain a copy with a little noise is admissible where r is near one; the basis refuses it."""
    x = np.linspace(-1, 1, 200)[:, None]
    unit = ColumnScaling(np.zeros(1), np.ones(1))
    near, far = np.array([1.001, 0.0]), np.array([3.0, 0.0])
    settings = SimpleNamespace(max_hidden=9, batch_size=1, criterion="paper", contraction=(1 - 1e-9,))
    with ThreadEngine(1) as engine:
        rows = prepare_search(ArrayRows(x, np.tanh(3 * x)), np.arange(1), unit, unit, engine)
        for pool, added in (([near], 0), ([near, near], 0), ([near, far], 1)):
            basis = GrowingBasis(rows, ACTIVATIONS["tanh"], 9, engine, np.inf)
            assert basis.append_node(np.array([1.0, 0.0]))
            weights = np.column_stack(pool)
            pools = SimpleNamespace(attempts=[(7.0,)], at=lambda node, attempt, weights=weights: weights)
            found = list(_add_nodes(basis, settings, pools, 1))
            assert len(found) == added
            assert basis.size == 1 + added
        np.testing.assert_array_equal(found[0].weights, far)
        assert (found[0].scope, found[0].contraction) == (7.0, 1 - 1e-9)
