"""Sums over blocks of rows are the sums over all of them, wherever the cuts fall and whoever does the work."""

import threading
import time
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import OpenBLASController, threadpool_info, threadpool_limits

from scne.fitting._matrix_free import matrix_free_system
from scne.fitting._members import ensemble_system, member_outputs
from scne.ncl import BlockGaussSeidel, BlockJacobi, Status
from scne.ncl._coefficients import balance
from scne.ncl._factors import factor_blocks
from scne.ncl._gauss_seidel import _iterates
from scne.networks import ACTIVATIONS, HiddenLayer, joint_outputs
from scne.passes import PoolBlock, PoolSums, SystemSums, ThreadEngine, added, score_pool, stripe_rows, system_sums
from scne.rows import ArrayRows, ColumnScaling, ColumnStatistics, RowBlock, column_statistics, learn_scaling

seeds = st.integers(0, 2**32 - 1)
# Where 60 rows are cut: no cut, empty-handed neighbours and single rows included.
cuts = st.lists(st.integers(1, 59), max_size=8, unique=True).map(sorted)
weightings = st.sampled_from(["none", "positive", "some zero", "block of zeros"])


def blocks_of(edges, n_rows=60):
    return [slice(a, b) for a, b in zip([0, *edges], [*edges, n_rows], strict=True)]


def make_weights(kind, rng, n_rows=60):
    if kind == "none":
        return None
    weights = rng.uniform(0.1, 3, n_rows)
    if kind == "some zero":
        weights[rng.random(n_rows) < 0.4] = 0.0
    if kind == "block of zeros":
        weights[:20] = 0.0
    return weights


def part_of(values, part):
    return None if values is None else values[part]


def combined_statistics(values, weights, edges):
    total, *others = (column_statistics(values[part], part_of(weights, part)) for part in blocks_of(edges))
    for other in others:
        total = total.combined(other)
    return total


@given(seeds, cuts, weightings, st.sampled_from([0.0, 1.0, -1e4, 1e8]))
def test_column_statistics_of_blocks_are_those_of_all_rows(seed, edges, weighting, offset):
    """Compared with NumPy's two passes over all rows; the offset would ruin sums of squares about zero."""
    rng = np.random.default_rng(seed)
    values = offset + rng.standard_normal((60, 3)) * [1.0, 0.01, 100.0]
    weights = make_weights(weighting, rng)
    total = combined_statistics(values, weights, edges)
    counted = values if weights is None else values[weights > 0]
    share = None if weights is None else weights[weights > 0]
    mean = np.average(counted, axis=0, weights=share)
    variance = np.average((counted - mean) ** 2, axis=0, weights=share)
    np.testing.assert_allclose(total.mean, mean, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(total.squares / total.weight, variance, rtol=1e-5 if offset == 1e8 else 1e-9)
    assert total.weight == pytest.approx(60 if weights is None else weights.sum(), rel=1e-13)


@given(seeds, cuts, weightings)
def test_ranges_of_blocks_are_those_of_all_rows_that_count(seed, edges, weighting):
    rng = np.random.default_rng(seed)
    values, weights = rng.standard_normal((60, 3)), make_weights(weighting, rng)
    total = combined_statistics(values, weights, edges)
    counted = values if weights is None else values[weights > 0]
    assert np.array_equal(total.smallest, counted.min(axis=0))
    assert np.array_equal(total.largest, counted.max(axis=0))


def test_statistics_keep_the_digits_of_a_column_far_from_zero():
    """A spread of 0.01 on a mean of 1e8 is at the last digits of float64, and still right to four figures."""
    values = 1e8 + 0.01 * np.random.default_rng(0).standard_normal((4000, 1))
    parts = [column_statistics(values[start : start + 256]) for start in range(0, 4000, 256)]
    total = parts[0]
    for part in parts[1:]:
        total = total.combined(part)
    np.testing.assert_allclose(np.sqrt(total.squares / total.weight), values.std(axis=0), rtol=1e-4)


@given(seeds, cuts)
def test_weights_count_repetitions_in_statistics(seed, edges):
    rng = np.random.default_rng(seed)
    values, counts = rng.standard_normal((60, 2)), rng.integers(0, 4, 60)
    weighted = combined_statistics(values, counts.astype(float), edges)
    repeated = column_statistics(np.repeat(values, counts, axis=0))
    for mine, theirs in zip(vars(weighted).values(), vars(repeated).values(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("method", ["0-1", "standard", "none"])
def test_scaling_can_be_undone(method):
    values = np.random.default_rng(0).normal(50, 7, (30, 3))
    scaling = learn_scaling(column_statistics(values), method)
    np.testing.assert_allclose(scaling.undo(scaling.apply(values)), values, rtol=1e-12)


def test_scaling_gives_the_range_or_the_deviation_that_it_promises():
    values = np.random.default_rng(0).normal(50, 7, (30, 3))
    unit = learn_scaling(column_statistics(values), "0-1").apply(values)
    standard = learn_scaling(column_statistics(values), "standard").apply(values)
    np.testing.assert_allclose([unit.min(axis=0), unit.max(axis=0)], [[0] * 3, [1] * 3], atol=1e-14)
    np.testing.assert_allclose([standard.mean(axis=0), standard.std(axis=0)], [[0] * 3, [1] * 3], atol=1e-12)


@pytest.mark.parametrize("method", ["0-1", "standard"])
@pytest.mark.parametrize("value", [0.0, 0.1, -1e6])
def test_a_constant_column_becomes_zero(method, value):
    values = np.full((37, 1), value)
    scaled = learn_scaling(column_statistics(values), method).apply(values)
    np.testing.assert_allclose(scaled, 0.0, atol=1e-9)


# --- sums of a pool of candidates


@st.composite
def pool_problems(draw):
    rng = np.random.default_rng(draw(seeds))
    inputs = np.column_stack([rng.uniform(0, 1, (60, 3)), np.ones(60)])
    return {
        "inputs": inputs,
        "residual": rng.standard_normal((60, draw(st.integers(1, 3)))),
        "root_weights": rng.uniform(0, 2, 60) if draw(st.booleans()) else None,
        "basis": np.linalg.qr(rng.standard_normal((60, draw(st.integers(1, 5)))))[0].T if draw(st.booleans()) else None,
        "weights": rng.uniform(-3, 3, (4, draw(st.integers(1, 7)))),
    }


def pool_sums(problem, part, dtype, with_gram):
    def cast(values):
        return None if values is None else values.astype(dtype)

    block = PoolBlock(
        cast(problem["inputs"][part]),
        problem["residual"][part],
        cast(part_of(problem["root_weights"], part)),
        cast(None if problem["basis"] is None else problem["basis"][:, part]),
    )
    return score_pool(block, cast(problem["weights"]), ACTIVATIONS["tanh"].core, with_gram)


def direct_pool_sums(problem, with_gram):
    h = np.tanh(problem["inputs"] @ problem["weights"])
    if problem["root_weights"] is not None:
        h = h * problem["root_weights"][:, None]
    basis = np.zeros((0, 60)) if problem["basis"] is None else problem["basis"]
    gram = h.T @ h if with_gram else np.zeros((0, 0))
    return PoolSums(problem["residual"].T @ h, (h * h).sum(axis=0), basis @ h, gram)


@given(pool_problems(), cuts, st.booleans(), st.sampled_from([(np.float64, 1e-10), (np.float32, 2e-4)]))
def test_pool_sums_of_blocks_are_the_formulas_on_all_rows(problem, edges, with_gram, precision):
    dtype, tolerance = precision
    total, *others = (pool_sums(problem, part, dtype, with_gram) for part in blocks_of(edges))
    for other in others:
        total = added(total, other)
    for mine, direct in zip(total, direct_pool_sums(problem, with_gram), strict=True):
        assert mine.dtype == np.float64
        np.testing.assert_allclose(mine, direct, rtol=tolerance, atol=tolerance)


def test_a_pool_that_does_not_fit_the_cache_is_cut_without_loss():
    """200 candidates in float64 leave room for 1,024 rows at a time."""
    rng = np.random.default_rng(0)
    inputs, residual = np.column_stack([rng.uniform(size=(3001, 2)), np.ones(3001)]), rng.standard_normal((3001, 1))
    weights = rng.uniform(-2, 2, (3, 200))
    sums = score_pool(PoolBlock(inputs, residual, None, None), weights, ACTIVATIONS["tanh"].core)
    h = np.tanh(inputs @ weights)
    np.testing.assert_allclose(sums.moments, residual.T @ h, atol=1e-9)
    np.testing.assert_allclose(sums.squares, (h * h).sum(axis=0), rtol=1e-12)


def test_scoring_leaves_its_block_as_it_was():
    rng = np.random.default_rng(0)
    block = PoolBlock(rng.uniform(size=(20, 3)), rng.standard_normal((20, 1)), np.ones(20), None)
    before = [block.inputs.copy(), block.residual.copy(), block.root_weights.copy()]
    weights = rng.uniform(size=(3, 4))
    score_pool(block, weights, ACTIVATIONS["tanh"].core)
    for now, then in zip([block.inputs, block.residual, block.root_weights], before, strict=True):
        assert np.array_equal(now, then)


# --- sums of the ensemble's system


def make_layers(seed=0, n_columns=4, direct_link=False):
    rng = np.random.default_rng(seed)
    scaling = ColumnScaling(rng.standard_normal(n_columns), rng.uniform(0.5, 2, n_columns))
    groups = [np.array([0, 1]), np.array([1, 2, 3])]
    return tuple(
        HiddenLayer(
            columns,
            scaling.select(columns),
            rng.uniform(-2, 2, (len(columns), size)),
            rng.uniform(-2, 2, size),
            "sigmoid",
            direct_link,
        )
        for columns, size in zip(groups, (3, 4), strict=True)
    )


@given(seeds, cuts, weightings, st.booleans())
def test_system_sums_of_blocks_are_those_of_all_rows(seed, edges, weighting, direct_link):
    rng = np.random.default_rng(seed)
    X, y, weights = rng.standard_normal((60, 4)), rng.normal(5, 3, (60, 2)), make_weights(weighting, rng)
    layers, target_scaling = (
        make_layers(seed, direct_link=direct_link),
        ColumnScaling(np.array([5.0, 4]), np.array([3.0, 2])),
    )

    def sums(part):
        block = RowBlock(part.start, X[part], y[part], part_of(weights, part))
        return system_sums(block, lambda inputs: joint_outputs(layers, inputs), target_scaling)

    total, *others = map(sums, blocks_of(edges))
    for other in others:
        total = added(total, other)
    H, scaled = joint_outputs(layers, X), (y - [5, 4]) / [3, 2]
    W = np.diag(np.ones(60) if weights is None else weights)
    direct = SystemSums(H.T @ W @ H, H.T @ W @ scaled, np.diag(scaled.T @ W @ scaled), W.sum())
    for mine, theirs in zip(total, direct, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_system_of_many_stripes_is_that_of_all_rows(weighted):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((5001, 4)), rng.standard_normal((5001, 1))
    weights = rng.uniform(0, 2, 5001) if weighted else None
    layers = make_layers()
    with ThreadEngine(2) as engine:
        system = ensemble_system(ArrayRows(X, y, weights), layers, ColumnScaling(np.zeros(1), np.ones(1)), engine)
    W = np.ones(5001) if weights is None else weights
    H = joint_outputs(layers, X)
    np.testing.assert_allclose(system.gram, (H.T * W) @ H, rtol=1e-11)
    np.testing.assert_allclose(system.moments, (H.T * W) @ y, rtol=1e-9, atol=1e-9)
    assert system.n_rows == pytest.approx(W.sum())


@pytest.mark.parametrize("weighted", [False, True])
def test_the_system_without_a_matrix_multiplies_as_with_one(weighted):
    """Identity 6: products with G from the rows, with G's off-diagonal blocks never formed."""
    rng = np.random.default_rng(0)
    rows = ArrayRows(
        rng.standard_normal((2001, 4)), rng.standard_normal((2001, 2)), rng.uniform(0, 2, 2001) if weighted else None
    )
    layers, identity = make_layers(direct_link=True), ColumnScaling(np.zeros(2), np.ones(2))
    B = rng.standard_normal((sum(layer.n_outputs for layer in layers), 2))
    with ThreadEngine(2) as engine:
        dense = ensemble_system(rows, layers, identity, engine)
        free = matrix_free_system(rows, layers, identity, engine)
        product, second = free.product_fn(B), free.product_rows_fn(1, B)
    np.testing.assert_allclose(product, dense.gram @ B, rtol=1e-10)
    np.testing.assert_allclose(second, (dense.gram @ B)[layers[0].n_outputs :], rtol=1e-10)
    np.testing.assert_allclose(free.moments, dense.moments, rtol=1e-10)


@pytest.fixture(params=[False, True], ids=["counted once", "weighted"])
def free_problem(request):
    rng = np.random.default_rng(0)
    weights = rng.uniform(0, 2, 2001) if request.param else None
    rows = ArrayRows(rng.standard_normal((2001, 4)), rng.standard_normal((2001, 2)), weights)
    return rows, make_layers(direct_link=True), ColumnScaling(np.full(2, 0.1), np.full(2, 3.0))


def test_gauss_seidel_without_a_matrix_takes_the_steps_that_it_takes_with_one(free_problem):
    """With a running total of the networks' outputs, and where there is no memory for it."""
    rows, layers, scaling = free_problem
    ridge, solver = np.array([0.1, 0.3]), BlockGaussSeidel(max_iter=6, step_tol=0.0)
    with ThreadEngine(2) as engine:
        dense = solver.solve(ensemble_system(rows, layers, scaling, engine), 0.9, ridge)
        for total_bytes in (1e9, 16 * 2001 * 2, 16 * 2001 * 2 - 1):
            system = matrix_free_system(rows, layers, scaling, engine, total_bytes)
            assert (system.running_total is None) == (total_bytes < 16 * 2001 * 2)
            free = solver.solve(system, 0.9, ridge)
            np.testing.assert_allclose(free.weights_history, dense.weights_history, rtol=1e-8, atol=1e-10)
            np.testing.assert_allclose(free.error_history, dense.error_history, rtol=1e-9)
            assert (free.status, free.n_iter) == (dense.status, dense.n_iter)


def test_steps_of_gauss_seidel_are_as_long_with_a_running_total(free_problem):
    rows, layers, scaling = free_problem
    ridge = np.array([1e3, 3e3])
    with ThreadEngine(2) as engine:
        systems = ensemble_system(rows, layers, scaling, engine), matrix_free_system(rows, layers, scaling, engine)
        lengths = []
        for system in systems:
            iterates = _iterates(system, factor_blocks(system, ridge), balance(system, 0.9), ridge)
            lengths.append([iterate.step for iterate in islice(iterates, 5)])
    assert systems[1].running_total is not None
    np.testing.assert_allclose(lengths[1], lengths[0], rtol=1e-6)


def test_gauss_seidel_stops_at_the_same_standstill_with_a_running_total(free_problem):
    rows, layers, scaling = free_problem
    with ThreadEngine(2) as engine:
        dense = BlockGaussSeidel().solve(ensemble_system(rows, layers, scaling, engine), 1.2, 0.1)
        free = BlockGaussSeidel().solve(matrix_free_system(rows, layers, scaling, engine), 1.2, 0.1)
    assert dense.status is free.status is Status.CONVERGED
    assert dense.n_iter == free.n_iter > 3


@pytest.mark.parametrize("n_networks", [2, 5])
@pytest.mark.parametrize(("total_bytes", "times"), [(16 * 600, 2), (1e9, 1)], ids=["total", "total and outputs"])
def test_a_sweep_of_gauss_seidel_computes_no_more_outputs_than_one_of_jacobi(
    n_networks, total_bytes, times, monkeypatch
):
    rng = np.random.default_rng(0)
    rows = ArrayRows(rng.standard_normal((600, 4)), rng.standard_normal((600, 1)))
    layers, identity = make_layers()[:1] * n_networks, ColumnScaling(np.zeros(1), np.ones(1))
    plain, computed = HiddenLayer.outputs, []

    def counted(layer, inputs):
        computed.append(len(inputs))
        return plain(layer, inputs)

    def outputs_of_a_sweep(solver):
        counts = []
        for n_sweeps in (1, 4):
            computed.clear()
            solver(max_iter=n_sweeps, step_tol=0.0).solve(system, 0.3, 0.1)
            counts.append(sum(computed))
        return (counts[1] - counts[0]) / 3

    with ThreadEngine(1) as engine:
        system = matrix_free_system(rows, layers, identity, engine, total_bytes)
        monkeypatch.setattr(HiddenLayer, "outputs", counted)
        jacobi, gauss_seidel = map(outputs_of_a_sweep, (BlockJacobi, BlockGaussSeidel))
    assert jacobi == 2 * n_networks * 600
    assert gauss_seidel == times * n_networks * 600


def test_members_predict_blocks_as_all_rows():
    """Few nodes give blocks of 131,072 rows; the cut after them leaves no seam."""
    rng = np.random.default_rng(0)
    layers = make_layers()
    X = rng.standard_normal((140_000, 4))
    betas = [rng.standard_normal((layer.n_outputs, 1)) for layer in layers]
    with ThreadEngine(2) as engine:
        outputs = member_outputs(X, layers, betas, engine)
    for m, (layer, beta) in enumerate(zip(layers, betas, strict=True)):
        np.testing.assert_allclose(outputs[m], layer.outputs(X) @ beta, atol=1e-12)


# --- stripes and the engine


@given(st.integers(1, 10**9), st.integers(1, 10**9))
def test_larger_sources_have_no_smaller_stripes(n, m):
    assert stripe_rows(min(n, m)) <= stripe_rows(max(n, m))


@given(st.integers(1, 5000), st.integers(1, 700))
def test_stripes_cover_every_row_once_in_order(n_rows, step):
    values = np.arange(float(n_rows))[:, None]
    stripes = list(ArrayRows(values, values, values[:, 0]).stripes(step))
    for name in ("inputs", "targets"):
        assert np.array_equal(np.concatenate([getattr(stripe, name) for stripe in stripes]), values)
    assert all(stripe.inputs[0, 0] == stripe.start for stripe in stripes)
    assert [stripe.stop for stripe in stripes] == [*(stripe.start for stripe in stripes[1:]), n_rows]


def test_stripes_are_views():
    values = np.zeros((10, 2))
    assert all(np.shares_memory(stripe.inputs, values) for stripe in ArrayRows(values).stripes(4))


@pytest.mark.parametrize("as_items", [list, iter], ids=["list", "stream"])
@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_results_come_in_the_order_of_the_items(n_threads, as_items):
    """The first items take longest, so that later ones finish before them."""

    def kernel(item):
        time.sleep(0.0004 * (30 - item))
        return item

    with ThreadEngine(n_threads) as engine:
        assert list(engine.map(kernel, as_items(range(30)))) == list(range(30))


@given(st.integers(0, 100), st.integers(1, 4))
def test_every_item_is_done_once(n_items, n_threads):
    with ThreadEngine(n_threads) as engine:
        assert list(engine.map(abs, list(range(n_items)))) == list(range(n_items))


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_a_reduction_combines_from_the_first_to_the_last(n_threads):
    with ThreadEngine(n_threads) as engine:
        assert engine.reduce(str, range(12), lambda a, b: f"({a}{b})").replace("(", "").replace(")", "") == "".join(
            map(str, range(12))
        )
        assert engine.reduce(str, range(3), lambda a, b: f"({a}{b})") == "((01)2)"


@pytest.mark.parametrize("n_threads", [2, 3, 7])
def test_threads_add_to_the_same_bits_as_one(n_threads):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((9001, 4)), rng.standard_normal((9001, 1))
    layers = make_layers()

    def gram(threads):
        with ThreadEngine(threads) as engine:
            return ensemble_system(ArrayRows(X, y), layers, ColumnScaling(np.zeros(1), np.ones(1)), engine).gram

    assert np.array_equal(gram(n_threads), gram(1))


def fail_at_three(item):
    if item == 3:
        raise RuntimeError("row 3 is broken")
    return item


@pytest.mark.parametrize("as_items", [list, iter], ids=["list", "stream"])
@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_a_kernel_that_fails_is_heard_and_the_engine_works_on(n_threads, as_items):
    with ThreadEngine(n_threads) as engine:
        with pytest.raises(RuntimeError, match="row 3 is broken"):
            engine.run(fail_at_three, as_items(range(50)))
        assert engine.reduce(abs, range(5), lambda a, b: a + b) == 10


def test_a_source_that_fails_is_heard():
    def items():
        yield 1
        raise OSError("the file ends here")

    with ThreadEngine(2) as engine, pytest.raises(OSError, match="ends here"):
        engine.run(abs, items())


def test_few_items_are_read_ahead():
    """A source larger than memory must not be read into the queue."""
    read = []
    with ThreadEngine(2) as engine:
        results = engine.map(abs, (read.append(i) or i for i in range(1000)))
        next(results)
        assert len(read) <= 6
        results.close()


def test_threads_do_the_work():
    both = threading.Barrier(2, timeout=10)
    with ThreadEngine(2) as engine:
        engine.run(lambda _: both.wait(), range(2))


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.fixture
def uncontrolled_blas():
    """Since threadpoolctl 3.8 the first thread that sets a limit keeps OpenBLAS to itself; here no one has begun."""
    release = getattr(OpenBLASController, "clear_controlling_thread", None)
    if release is not None:
        release(force=True)


def test_blas_has_its_threads_back_after_the_engine():
    before = blas_threads()
    with ThreadEngine(2):
        assert set(blas_threads()) == {1}
    assert blas_threads() == before


def test_blas_keeps_to_one_thread_until_the_last_of_overlapping_engines_ends():
    before = blas_threads()
    first, second = ThreadEngine(1), ThreadEngine(1)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert set(blas_threads()) == {1}
    second.__exit__(None, None, None)
    assert blas_threads() == before


def test_an_engine_of_another_thread_that_ends_meanwhile_leaves_blas_alone(uncontrolled_blas):
    before = blas_threads()
    entered, may_end = threading.Event(), threading.Event()

    def other_fit():
        with ThreadEngine(1):
            entered.set()
            may_end.wait(10)

    other = threading.Thread(target=other_fit)
    other.start()
    entered.wait(10)
    with ThreadEngine(1):
        may_end.set()
        other.join()
        assert set(blas_threads()) == {1}
    assert blas_threads() == before


def test_the_engine_has_its_way_while_another_thread_controls_blas(uncontrolled_blas):
    before = blas_threads()
    set_once, may_end = threading.Event(), threading.Event()

    def other_library():
        threadpool_limits(max(before))  # outside a with statement it keeps control of OpenBLAS
        set_once.set()
        may_end.wait(10)

    other = threading.Thread(target=other_library)
    other.start()
    set_once.wait(10)
    with ThreadEngine(1):
        assert set(blas_threads()) == {1}
    assert blas_threads() == before
    may_end.set()
    other.join()


def test_statistics_of_nothing_leave_the_others_as_they_are():
    some = column_statistics(np.array([[1.0], [3.0]]))
    nothing = column_statistics(np.array([[99.0]]), np.zeros(1))
    for pair in (some.combined(nothing), nothing.combined(some)):
        assert isinstance(pair, ColumnStatistics)
        assert (pair.weight, pair.mean[0], pair.squares[0], pair.smallest[0], pair.largest[0]) == (2, 2, 2, 1, 3)


def test_layers_on_few_rows_at_a_time(monkeypatch):
    """Scaled features are held for a part of the rows only; the outputs are those of all rows together."""
    rng = np.random.default_rng(0)
    scaling = ColumnScaling(rng.standard_normal(8), rng.uniform(1, 2, 8))
    layers = [
        HiddenLayer(np.arange(8), scaling, rng.standard_normal((8, width)), rng.standard_normal(width), "tanh", link)
        for width, link in ((5, False), (3, True))
    ]
    X = rng.standard_normal((1_000, 8))
    whole = joint_outputs(layers, X)
    assert whole.shape == (1_000, 16)
    monkeypatch.setattr("scne.networks._layer._SCALED_TOGETHER", 8 * 150)
    np.testing.assert_allclose(joint_outputs(layers, X), whole, rtol=1e-13)
