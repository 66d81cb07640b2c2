"""LAPACK through SciPy's pointers: right, in place on blocks of larger arrays, and without the interpreter's lock."""

import threading
import time

import numpy as np
import pytest
from scipy.linalg import cython_lapack

from scne.ncl import _lapack
from scne.ncl._factors import tridiagonalise

POINTERS = ("_dsytrd", "_dormtr", "_dpttrf", "_dpttrs", "_dpotrf", "_dstevd", "_dtrsm")


@pytest.fixture(params=["pointers", "wrappers"])
def either_way(request, monkeypatch):
    """Runs a test twice: on the pointers, and as where SciPy publishes none."""
    if request.param == "wrappers":
        for name in POINTERS:
            monkeypatch.setattr(_lapack, name, None)


def symmetric(size, seed=0):
    matrix = np.random.default_rng(seed).standard_normal((size, size))
    return matrix + matrix.T


def block_of_larger(values):
    """The values as a block of a larger array with contiguous columns, and that array."""
    larger = np.full((values.shape[0] + 3, values.shape[1] + 2), 7.0, order="F")
    block = larger[2:-1, 1:-1]
    block[...] = values
    return block, larger


def test_the_installed_scipy_publishes_every_routine():
    assert [name for name in POINTERS if getattr(_lapack, name) is None] == []


def test_a_pointer_with_another_signature_is_not_used():
    assert _lapack._published(cython_lapack, "dsytrd", "cididdddi") is None
    assert _lapack._published(cython_lapack, "dlange", "ciidid") is None  # returns a number
    assert _lapack._published(cython_lapack, "no such routine", "i") is None
    assert _lapack._published(np, "dsytrd", "cididdddii") is None


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("size", [2, 3, 100])
def test_reduction_and_reflectors(size):
    matrix = symmetric(size)
    work, larger = block_of_larger(np.tril(matrix))
    diagonal, off_diagonal, scales = _lapack.reduce_to_tridiagonal(work)
    T = np.diag(diagonal) + np.diag(off_diagonal, 1) + np.diag(off_diagonal, -1)
    Q, around = block_of_larger(np.eye(size))
    _lapack.apply_reflectors(work, scales, Q, transpose=False)
    np.testing.assert_allclose(Q @ T @ Q.T, matrix, atol=1e-12 * size)
    _lapack.apply_reflectors(work, scales, Q, transpose=True)
    np.testing.assert_allclose(Q, np.eye(size), atol=1e-13 * size)
    for outside in (larger, around):
        assert (outside[[0, 1, -1]] == 7).all()
        assert (outside[:, [0, -1]] == 7).all()


@pytest.mark.usefixtures("either_way")
def test_cholesky_factor_and_the_row_where_there_is_none():
    matrix = symmetric(6) @ symmetric(6) + np.eye(6)
    work, larger = block_of_larger(np.tril(matrix) + np.triu(np.full((6, 6), 5.0), 1))
    assert _lapack.factor_cholesky(work) == 0
    np.testing.assert_allclose(np.tril(work), np.linalg.cholesky(matrix), atol=1e-12)
    # What lies above the diagonal is neither read nor written.
    assert (work[np.triu_indices(6, 1)] == 5).all()
    assert (larger[[0, 1, -1]] == 7).all()
    assert _lapack.factor_cholesky(np.asfortranarray(np.diag([1.0, 2.0, -1.0, 3.0]))) == 3


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
def test_triangular_solves_read_the_lower_triangle_only(right, transpose):
    rng = np.random.default_rng(0)
    lower = np.tril(rng.standard_normal((5, 5))) + 5 * np.eye(5)
    filled, _ = block_of_larger(lower + np.triu(np.full((5, 5), np.nan), 1))
    values = rng.standard_normal((3, 5) if right else (5, 3))
    rhs, larger = block_of_larger(values)
    _lapack.solve_triangular(filled, rhs, right=right, transpose=transpose)
    inverse = np.linalg.inv(lower.T if transpose else lower)
    np.testing.assert_allclose(rhs, values @ inverse if right else inverse @ values, atol=1e-14)
    assert (larger[[0, 1, -1]] == 7).all()


@pytest.mark.usefixtures("either_way")
def test_a_triangular_solve_of_one_row_reads_and_writes_that_row_alone():
    around = np.arange(1.0, 13.0)
    _lapack.solve_triangular(np.array([[2.0]], order="F"), around[:6].reshape(1, 6))
    np.testing.assert_array_equal(around, [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, *range(7, 13)])


def dense(reduced):
    return np.diag(reduced.diagonal) + np.diag(reduced.off_diagonal, 1) + np.diag(reduced.off_diagonal, -1)


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_all_shifts_at_once_with_singular_and_indefinite_ones_among_them(n_outputs):
    reduced = tridiagonalise(np.asfortranarray(symmetric(7)))
    T = dense(reduced)
    values = reduced.eigenvalues
    rhs = np.random.default_rng(1).standard_normal((7, n_outputs))
    # Definite, singular at the lowest eigenvalue, indefinite, definite, indefinite twice in a row, definite.
    lowest = -values[0]
    shifts = np.array([2 * lowest, lowest, 0.5 * lowest, 3 * lowest, 0.0, 0.1, 1.0])
    scales = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0])
    found = reduced.solve_shifted(shifts, scales, rhs)
    assert found.shape == (7, n_outputs, 7)
    for i, (shift, scale) in enumerate(zip(shifts, scales, strict=True)):
        expected = np.linalg.pinv(shift * np.eye(7) + scale * T, rcond=1e-13) @ rhs
        np.testing.assert_allclose(found[:, :, i], expected, atol=1e-11 * np.abs(expected).max())
    # One shift alone is what it is in company.
    for i in range(len(shifts)):
        alone = reduced.solve_shifted(shifts[i : i + 1], scales[i : i + 1], rhs)
        np.testing.assert_allclose(alone[:, :, 0], found[:, :, i], rtol=1e-12)


def test_singular_shifts_are_noticed_whatever_their_pivots():
    for seed in range(300):
        rng = np.random.default_rng(seed)
        size = int(rng.integers(2, 40))
        reduced = tridiagonalise(np.asfortranarray(symmetric(size, seed)))
        lowest, rhs = -reduced.eigenvalues[0], rng.standard_normal((size, 1))
        found = reduced.solve_shifted(np.array([lowest]), np.ones(1), rhs)[:, :, 0]
        expected = np.linalg.pinv(lowest * np.eye(size) + dense(reduced), rcond=1e-13) @ rhs
        np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("size", [0, 1])
def test_matrices_without_an_off_diagonal(size):
    reduced = tridiagonalise(np.full((size, size), -3.0, order="F"))
    found = reduced.solve_shifted(np.array([1.0, 5.0, 3.0]), np.ones(3), np.ones((size, 2)))
    np.testing.assert_allclose(found, np.broadcast_to([-0.5, 0.5, 0.0], (size, 2, 3)))


@pytest.mark.usefixtures("either_way")
def test_eigensystem_of_a_tridiagonal_matrix():
    reduced = tridiagonalise(np.asfortranarray(symmetric(60)))
    T, vectors = dense(reduced), reduced.tridiagonal_eigenvectors
    np.testing.assert_allclose(reduced.eigenvalues, np.linalg.eigvalsh(T), atol=1e-12)
    np.testing.assert_allclose(vectors * reduced.eigenvalues @ vectors.T, T, atol=1e-12)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(60), atol=1e-13)
    # What was given is left as it was.
    np.testing.assert_array_equal(dense(reduced), T)


def test_squares_are_those_of_the_tridiagonal_matrix():
    reduced = tridiagonalise(np.asfortranarray(symmetric(6)))
    vectors = np.random.default_rng(0).standard_normal((6, 4))
    expected = np.diag(vectors.T @ (np.eye(6) + dense(reduced)) @ vectors)
    np.testing.assert_allclose(reduced.squares(vectors), expected, rtol=1e-12)


def test_other_threads_run_during_a_reduction():
    matrix = np.asfortranarray(symmetric(1200))
    span = []

    def reduce():
        span.append(time.perf_counter())
        _lapack.reduce_to_tridiagonal(matrix)
        span.append(time.perf_counter())

    worker = threading.Thread(target=reduce)
    ticks = []
    worker.start()
    while worker.is_alive():
        ticks.append(time.perf_counter())
        time.sleep(0.001)
    begin, end = span
    margin = 0.2 * (end - begin)
    assert sum(begin + margin < tick < end - margin for tick in ticks) >= 3


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("unit", [1e-200, 1e-20, 1.0, 1e20])
def test_shifted_systems_do_not_depend_on_units(unit):
    """Definite, indefinite and singular ones: what counts as zero is relative to the matrix."""
    reduced = tridiagonalise(np.asfortranarray(np.diag([4.0, 3.0, 2.0, 1.0]) + np.diag(np.ones(3), -1)))
    T, lowest = dense(reduced), reduced.eigenvalues[0]
    rhs = np.random.default_rng(1).standard_normal((4, 2))
    for shift in (1.0, -2.5, -lowest):
        values, vectors = np.linalg.eigh(shift * np.eye(4) + T)
        inverse = np.where(np.abs(values) < 1e-13, 0.0, 1 / values)
        expected = vectors @ (inverse[:, None] * (vectors.T @ rhs))
        found = reduced.solve_shifted(np.array([shift * unit]), np.array([unit]), rhs)[:, :, 0]
        np.testing.assert_allclose(found * unit, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("size", [1, 2, 3])
def test_eigenvalues_of_the_smallest_matrices(size):
    matrix = symmetric(size)
    reduced = tridiagonalise(matrix.copy(order="F"))
    np.testing.assert_allclose(reduced.eigenvalues, np.linalg.eigvalsh(matrix), rtol=1e-12)
    vectors = reduced.rotate(reduced.tridiagonal_eigenvectors)
    np.testing.assert_allclose(matrix @ vectors, vectors * reduced.eigenvalues, atol=1e-12)


def test_a_factor_is_trusted_above_the_rounding_of_its_size():
    """Diagonal matrices with powers of four, whose factors and conditions are exact."""
    eps = np.finfo(float).eps
    least = np.diag([1.0, 1.0, 1.0, 4 * eps])
    assert _lapack.safe_cholesky(least.copy()) is None
    twice = np.diag([1.0, 1.0, 1.0, 16 * eps])
    np.testing.assert_array_equal(np.tril(_lapack.safe_cholesky(twice.copy())), np.sqrt(twice))
