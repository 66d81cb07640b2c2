"""LAPACK routines that work in place and let other threads run meanwhile.

SciPy's wrappers of these routines hold the interpreter's lock while they run (dsytrd, dtrsm and dpttrf of SciPy 1.17
do), so the paths of different ridges would wait for each other whatever the number of threads.  The same routines are
reached here through the pointers that `scipy.linalg.cython_lapack` and `cython_blas` publish, by ctypes, which gives
the lock back for the time of the call.  They also take blocks of larger arrays where the wrappers copy.

A pointer is used only if the signature that SciPy states with it is the one expected here (integers of another size
would have another); else the wrapper does the same work under the lock.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import ModuleType

import numpy as np
from scipy.linalg import blas, cython_blas, cython_lapack, lapack

from scne.ncl._coefficients import Array

EPS = float(np.finfo(np.float64).eps)
# Columns that LAPACK's blocked reflectors treat together; the workspace is for as many.
_BLOCK = 64


def _published(module: ModuleType, name: str, kinds: str) -> Callable[..., None] | None:
    """Return the routine behind SciPy's pointer, or None where it is not there with arguments of these kinds.

    `kinds` has one letter per argument, all of them pointers: c to characters, i to C integers, d to doubles.
    """
    try:
        capsule = vars(module)["__pyx_capi__"][name]
        capsule_name = ctypes.pythonapi.PyCapsule_GetName
        capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    except (AttributeError, KeyError):
        return None
    capsule_name.restype, capsule_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    capsule_pointer.restype, capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    signature = capsule_name(capsule)
    if _kinds(signature.decode()) != kinds:
        return None
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(kinds))(capsule_pointer(capsule, signature))


def _kinds(signature: str) -> str:
    """Return the kinds of a signature's arguments, with "?" for what is none of them.

    Examples
    --------
    >>> _kinds("void (char *, int *, __pyx_t_5scipy_6linalg_13cython_lapack_d *)")
    'cid'
    >>> _kinds("void (long *)")
    '?'
    """
    result, _, arguments = signature.rstrip(")").partition(" (")
    if result != "void":
        return "?"
    letters = {"char *": "c", "int *": "i"}
    return "".join(letters.get(kind, "d" if kind.endswith("_d *") else "?") for kind in arguments.split(", "))


_dsytrd = _published(cython_lapack, "dsytrd", "cididdddii")
_dormtr = _published(cython_lapack, "dormtr", "ccciididdidii")
_dpttrf = _published(cython_lapack, "dpttrf", "iddi")
_dpttrs = _published(cython_lapack, "dpttrs", "iidddii")
_dpotrf = _published(cython_lapack, "dpotrf", "cidii")
_dstevd = _published(cython_lapack, "dstevd", "cidddidiiii")
_dtrsm = _published(cython_blas, "dtrsm", "cccciiddidi")


def _call(routine: Callable[..., None], *arguments: str | float | np.ndarray | ctypes.c_int) -> None:
    """Call a routine of Fortran, which takes all arguments by their addresses.

    Behind every matrix, or block of one, whose columns are contiguous, stand the numbers from one column to the next.
    """
    pointers: list[object] = []
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            pointers.append(argument.ctypes.data)
            if argument.ndim == 2:
                assert argument.dtype == np.float64
                assert argument.shape[0] < 2 or argument.strides[0] == argument.itemsize
                step = argument.strides[1] // argument.itemsize if argument.shape[1] > 1 else 0
                pointers.append(ctypes.byref(ctypes.c_int(max(1, argument.shape[0], step))))
        elif isinstance(argument, str):
            pointers.append(ctypes.c_char_p(argument.encode()))
        elif isinstance(argument, int):
            pointers.append(ctypes.byref(ctypes.c_int(argument)))
        else:
            pointers.append(ctypes.byref(ctypes.c_double(argument) if isinstance(argument, float) else argument))
    routine(*pointers)


def reduce_to_tridiagonal(matrix: Array) -> tuple[Array, Array, Array]:
    """Overwrite a symmetric matrix, given by its lower triangle, with the reflectors of Q: matrix = Q T Q' (dsytrd).

    Returns the diagonal (p,) and off-diagonal (p - 1,) of T and the reflectors' scales (p - 1,); p is at least 2.
    """
    size = len(matrix)
    if _dsytrd is None:
        workspace = int(lapack.dsytrd_lwork(size, lower=1)[0])
        reduced, diagonal, off_diagonal, scales, code = lapack.dsytrd(matrix, lower=1, lwork=workspace, overwrite_a=1)
        assert code == 0
        matrix[...] = reduced
        return diagonal, off_diagonal, scales
    diagonal, off_diagonal, scales = np.empty(size), np.empty(size - 1), np.empty(size - 1)
    info, work = ctypes.c_int(), np.empty(size * _BLOCK)
    _call(_dsytrd, "L", size, matrix, diagonal, off_diagonal, scales, work, len(work), info)
    assert info.value == 0
    return diagonal, off_diagonal, scales


def apply_reflectors(reflectors: Array, scales: Array, vectors: Array, transpose: bool) -> None:
    """Overwrite vectors (p, k) with Q vectors, or Q' vectors, Q as `reduce_to_tridiagonal` left it (dormtr)."""
    size, n_vectors = vectors.shape
    if size < 2:
        return
    transposition = "T" if transpose else "N"
    work = np.empty(max(1, n_vectors) * _BLOCK + _BLOCK * (_BLOCK + 1))
    if _dormtr is None:
        # On all rows but the first dormtr, which SciPy does not wrap, is dormqr.
        inner = np.asfortranarray(reflectors[1:, :-1])
        vectors[1:], _, code = lapack.dormqr("L", transposition, inner, scales, vectors[1:], len(work))
        assert code == 0
        return
    info = ctypes.c_int()
    _call(_dormtr, "L", "L", transposition, size, n_vectors, reflectors, scales, vectors, work, len(work), info)
    assert info.value == 0


def factor_tridiagonal(diagonal: Array, off_diagonal: Array) -> int:
    """Overwrite a positive definite tridiagonal matrix with its factors L D L', D in the diagonal's place (dpttrf).

    `off_diagonal` has p - 1 numbers; more are left alone.  Returns 0, or the number of the first row, counted from 1,
    whose pivot is not positive: what follows it is not factored.
    """
    if _dpttrf is None:
        rest = off_diagonal[: len(diagonal) - 1]
        diagonal[...], rest[...], code = lapack.dpttrf(diagonal, rest)
        return int(code)
    info = ctypes.c_int()
    _call(_dpttrf, len(diagonal), diagonal, off_diagonal, info)
    return info.value


def solve_tridiagonal(diagonal: Array, off_diagonal: Array, rhs: Array) -> None:
    """Overwrite rhs (p, k) with the solution, from the factors of `factor_tridiagonal` (dpttrs)."""
    if _dpttrs is None:
        rhs[...], code = lapack.dpttrs(diagonal, off_diagonal[: len(diagonal) - 1], rhs)
        assert code == 0
        return
    info = ctypes.c_int()
    _call(_dpttrs, len(diagonal), rhs.shape[1], diagonal, off_diagonal, rhs, info)
    assert info.value == 0


def tridiagonal_eigensystem(diagonal: Array, off_diagonal: Array) -> tuple[Array, Array]:
    """Return the eigenvalues (p,), ascending, and eigenvectors (p, p), in columns, of a tridiagonal matrix (dstevd)."""
    size = len(diagonal)
    if _dstevd is None:
        values, vectors, code = lapack.dstevd(diagonal, off_diagonal)
        assert code == 0
        return values, vectors
    # Both are overwritten, the first with the eigenvalues.
    values, rest = diagonal.copy(), off_diagonal.copy()
    vectors = np.empty((size, size), order="F")
    work, integers = np.empty(1 + 4 * size + size**2), np.empty(3 + 5 * size, dtype=np.intc)
    info = ctypes.c_int()
    _call(_dstevd, "V", size, values, rest, vectors, work, len(work), integers, len(integers), info)
    assert info.value == 0
    return values, vectors


def factor_cholesky(matrix: Array) -> int:
    """Overwrite the lower triangle of a positive definite matrix with its Cholesky factor (dpotrf).

    Returns 0, or the number of the first row, counted from 1, whose pivot is not positive.
    """
    if _dpotrf is None:
        matrix[...], code = lapack.dpotrf(matrix, lower=1, clean=0)
        return int(code)
    info = ctypes.c_int()
    _call(_dpotrf, "L", len(matrix), matrix, info)
    return info.value


def safe_cholesky(matrix: Array) -> Array | None:
    """Return the lower Cholesky factor of a symmetric matrix (overwritten); None if it cannot be trusted.

    Rounding lets the Cholesky factorisation of a singular matrix succeed half of the time, with weights of 1e8 as its
    answer; LAPACK's condition estimate (a few triangular solves) tells such a factor from a good one.
    """
    one_norm = lapack.dlange("1", matrix.T) if matrix.size else 0.0
    if one_norm == 0.0:
        return None
    # The transpose of a C-ordered array is what LAPACK can overwrite without a copy.
    factor = matrix.T
    if factor_cholesky(factor) != 0:
        return None
    reciprocal_condition, _ = lapack.dpocon(factor, one_norm, uplo="L")
    return factor if reciprocal_condition > EPS * len(matrix) else None


def solve_triangular(lower: Array, rhs: Array, *, right: bool = False, transpose: bool = False) -> None:
    """Overwrite rhs with C^-1 rhs, or rhs C^-1 from the right, or C transposed in its place (dtrsm).

    Only the lower triangle of `lower`, C, is read.
    """
    if not rhs.size:
        return
    if _dtrsm is None:
        rhs[...] = blas.dtrsm(1.0, lower, rhs, side=int(right), lower=1, trans_a=int(transpose))
        return
    sides = "R" if right else "L", "L", "T" if transpose else "N", "N"
    _call(_dtrsm, *sides, *rhs.shape, 1.0, lower, rhs)
