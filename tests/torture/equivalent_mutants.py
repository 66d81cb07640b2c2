"""Mutants that no test can notice here, each with the reason: the report counts them apart."""

_WORKSPACE = "a workspace or an array whose end is never read may be longer than it must be"
_AT_A_TIME = "how much is done at a time: no value depends on it"
_LIBRARY = "needs PyTorch or CuPy: tests/test_device.py runs it where they are installed"

# The file below src/scne, the line, and the change.
EQUIVALENT: dict[tuple[str, str, str], str] = {
    ("ncl/_lapack.py", "_BLOCK = 64", "64 -> 65"): _AT_A_TIME,
    (
        "ncl/_lapack.py",
        "diagonal, off_diagonal, scales = np.empty(size), np.empty(size - 1), np.empty(size - 1)",
        "- -> +",
    ): _WORKSPACE,
    (
        "ncl/_lapack.py",
        "work, integers = np.empty(1 + 4 * size + size**2), np.empty(3 + 5 * size, dtype=np.intc)",
        "2 -> 3",
    ): _WORKSPACE,
    (
        "ncl/_tridiagonal.py",
        "return Tridiagonal(np.diagonal(matrix).copy(), np.zeros(0), np.zeros((0, 0)), np.zeros(0))",
        "0 -> 1",
    ): _WORKSPACE,
    (
        "ncl/_lapack.py",
        "work = np.empty(max(1, n_vectors) * _BLOCK + _BLOCK * (_BLOCK + 1))",
        "1 -> 2",
    ): _WORKSPACE,
    (
        "ncl/_tridiagonal.py",
        "least_pivot = p * EPS * diagonal.max(axis=1, initial=0.0)",
        "0.0 -> 1.0",
    ): "what counts as singular too early is solved by its eigenvectors, with the same result",
    (
        "networks/_basis.py",
        "sums = np.zeros((2, self._n_targets))",
        "2 -> 3",
    ): _WORKSPACE,
    (
        "networks/_criteria.py",
        "return np.full(gains.shape[1], -np.inf)",
        "- -> nothing",
    ): "any number that is not finite says that no candidate is admissible",
    (
        "networks/_layer.py",
        "if len(columns) == inputs.shape[1] and (columns == np.arange(len(columns))).all():",
        "== -> !=",
    ): "all columns in their order, copied or not, are the same columns",
    (
        "networks/_pools.py",
        'if settings.pool == "sparse" and rows.n_rows <= _MOST_IN_MEMORY:',
        "and -> or",
    ): "where a copy of the rows lies decides on speed alone",
    (
        "rows/_arrays.py",
        'if library in ("torch", "cupy"):',
        'library in ("torch", "cupy") -> False',
    ): _LIBRARY,
    (
        "rows/_arrays.py",
        "if isinstance(array, np.ndarray):",
        "isinstance(array, np.ndarray) -> False",
    ): "NumPy has the standard's functions too, and they do the same",
    (
        "rows/_parquet_format.py",
        "return pq.ParquetFile(path, buffer_size=_BUFFER_BYTES, pre_buffer=False, page_checksum_verification=True)",
        "False -> True",
    ): "whether pages are read ahead decides on memory and speed alone",
    (
        "rows/_ramps.py",
        "if size.max(initial=0.0) <= FULL_DEVIATIONS:",
        "0.0 -> 1.0",
    ): "1 is within three deviations as 0 is",
    (
        "rows/_ramps.py",
        "_FEW_RAMPS, _MANY_RAMPS, _MANY_ROWS, _MOST_IN_ALL = 8, 12, 12_000, 256",
        "256 -> 257",
    ): "no number of columns from 2 to 128 divides 257, a prime, and with others the limits of a column decide",
}

# Where a basis has recorded kernels, which takes a GPU.
for _line, _changes in {
    "self._fused.ask_for(0, self.size + 1, weights)": (
        "0 -> 1",
        "+ -> -",
        "1 -> 2",
        "self._fused.ask_for(0, self.size + 1, weights) -> pass",
    ),
    "return self.counts(self.answers(0)[0])": ("0 -> 1",),
}.items():
    EQUIVALENT.update({("networks/_basis.py", _line, _change): _LIBRARY for _change in _changes})


def reason_for(file: str, line: str, change: str) -> str:
    """Why a mutant makes no difference; nothing if it makes one."""
    return EQUIVALENT.get((file, line, change), "")
