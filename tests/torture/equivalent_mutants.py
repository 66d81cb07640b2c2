"""Mutants that no test can notice here, each with the reason: the report counts them apart."""

_WORKSPACE = "a workspace or an array whose end is never read may be longer than it must be"
_AT_A_TIME = "how much is done at a time: no value depends on it"
_LIBRARY = "needs PyTorch or CuPy: tests/test_device.py runs it where they are installed"
_GIVEN_BACK = "when memory is given back to the system: no value depends on it"
_WHERE_A_COPY_LIES = "where a copy of the rows lies decides on speed alone"
_ANY_NEGATIVE = "NumPy works out any length that is negative"
_WHEN_ADDED = "when sums are added makes no difference, to the last bit"

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
        "ncl/_factors.py",
        "return Tridiagonal(np.diagonal(matrix).copy(), np.zeros(0), np.zeros((0, 0)), np.zeros(0))",
        "0 -> 1",
    ): _WORKSPACE,
    (
        "ncl/_lapack.py",
        "work = np.empty(max(1, n_vectors) * _BLOCK + _BLOCK * (_BLOCK + 1))",
        "1 -> 2",
    ): _WORKSPACE,
    (
        "ncl/_factors.py",
        "rounding = 4 * p * EPS * diagonal.max(axis=1, initial=0.0)",
        "0.0 -> 1.0",
    ): "what counts as singular too early is solved by its eigenvectors, with the same result",
    (
        "networks/_basis.py",
        "sums = np.zeros((2, residual.shape[1]))",
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
        'if settings.pool == "sparse" and not is_numpy(rows.inputs) and rows.n_rows <= _MOST_IN_MEMORY:',
        "and -> or",
    ): _WHERE_A_COPY_LIES,
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
        "pre_buffer=False,",
        "False -> True",
    ): "whether pages are read ahead decides on memory and speed alone",
    (
        "rows/_scaling.py",
        "if size.max(initial=0.0) <= FULL_DEVIATIONS:",
        "0.0 -> 1.0",
    ): "1 is within three deviations as 0 is",
    (
        "rows/_scaling_learner.py",
        "_FEW_RAMPS, _MANY_RAMPS, _MANY_ROWS, _MOST_IN_ALL = 8, 12, 12_000, 256",
        "256 -> 257",
    ): "no number of columns from 2 to 128 divides 257, a prime, and with others the limits of a column decide",
    (
        "rows/_formats.py",
        "while start < length:",
        "< -> <=",
    ): "a piece without rows may follow, and whoever reads on passes over it",
    (
        "networks/_search_rows.py",
        'places = xp.clip(xp.searchsorted(self._reached, wanted, side="right"), 0, n - 1)',
        "- -> +",
    ): "shares are below one, and only rounding could reach beyond the last row",
    (
        "rows/_batches.py",
        "if np.isfinite(values.sum()):",
        "np.isfinite(values.sum()) -> False",
    ): "a short cut: what follows finds the same by looking at every value",
    (
        "rows/_csv_format.py",
        "texts = (batch.column(0) for batch in self.batches(path, pa.schema([(name, pa.string())]), 1 << 14, 0))",
        "<< -> >>",
    ): _AT_A_TIME,
    ("rows/_csv_format.py", "for batch in self.batches(path, last_column, 1 << 14, 0):", "1 -> 2"): _AT_A_TIME,
    (
        "rows/_files.py",
        "read_rows = rows * max(1, min(_READ_ROWS, _READ_NUMBERS // max(1, len(names))) // rows)",
        "1 -> 2",
    ): _AT_A_TIME,
    ("rows/_parquet_footer.py", "if file.size() < 12:", "< -> <="): "no file of twelve bytes has a schema",
    (
        "rows/_files.py",
        "if schema == self.schema and marks == self.missing_texts:",
        "schema == self.schema and marks == self.missing_texts -> False",
    ): "a short cut: the copy that is made reads the same",
    ("rows/_parquet_format.py", "if length > _LONG_FOOTER:", "> -> >="): "either way of reading a footer says the same",
    (
        "networks/_layer.py",
        "if is_numpy(inputs) and len(inputs) > rows:",
        "is_numpy(inputs) and len(inputs) > rows -> False",
    ): _AT_A_TIME,
    ("rows/_reading_cost.py", "_FIRST_ROWS, _FIRST_BYTES = 8_192, 1 << 24", "1 -> 2"): _AT_A_TIME,
    ("rows/_reading_cost.py", "for batch in files.batches(names, rows=512):", "512 -> 513"): _AT_A_TIME,
    ("rows/_encoded.py", "_AHEAD = 2", "2 -> 3"): _AT_A_TIME,
    (
        "ncl/_path.py",
        "per_chunk = max(1, CHUNK_NUMBERS // max(1, self._system.moments.size))",
        "1 -> 2",
    ): _AT_A_TIME,
    (
        "rows/_scaling_learner.py",
        "order = xp.argsort(columns, axis=1, stable=True)",
        "True -> False",
    ): "rows of equal values are interchangeable: only their values and the sum of their weights count",
    ("rows/_csv_format.py", "_LARGEST_BLOCK = 1 << 26", "1 -> 2"): "a limit that only records of 128 MB and more meet",
    (
        "rows/_row_weights.py",
        "whole = np.abs(ratios - np.rint(ratios)) <= facts.tolerance * ratios",
        "<= -> <",
    ): "a tolerance for rounding, which no ratio meets exactly but that of whole numbers, whose difference is zero",
    (
        "ncl/_cg.py",
        "if not history.errors[-1] < threshold:",
        "< -> <=",
    ): "no error meets a hundred million times the size of the targets in every bit",
    (
        "ncl/_decomposition.py",
        "_, neighbours = cKDTree(points).query(points, k=2)",
        "2 -> 3",
    ): "a third neighbour is looked for and not looked at",
    (
        "ncl/_path.py",
        "square -= (ridges @ np.square(weights.reshape(-1, q * k))).reshape(q, k)",
        "1 -> 2",
    ): _ANY_NEGATIVE,
    (
        "ncl/_path.py",
        "ratios = np.divide(gains, denominators, out=np.zeros_like(denominators), where=denominators > 1e-14)",
        "> -> >=",
    ): "a limit between rounding errors and numbers, which none of either meets in every bit",
    (
        "networks/_basis.py",
        "self._stripes = rows.stripes(wide * engine.stripe_rows(rows.n_training, 8 * capacity))",
        "* -> /",
    ): "how many rows are summed at a time (8 / capacity): sums differ by rounding alone",
    (
        "networks/_basis.py",
        "after = self._project(ridge_row, remove=after.coefficients, last=True)",
        "True -> False",
    ): "sums that the last projection could leave out are computed and not read",
    (
        "networks/_layer.py",
        "if len(columns) == inputs.shape[1] and (columns == np.arange(len(columns))).all():",
        "len(columns) == inputs.shape[1] and (columns == np.arange(len(columns))).all() -> False",
    ): "all columns in their order, copied or not, are the same columns",
    (
        "networks/_pools.py",
        "self._streams = NamedStreams(seed, [member], (settings.max_hidden + 1, len(self.attempts)))",
        "1 -> 2",
    ): "the streams of one node more, for which no pool is drawn",
    ("networks/_search_rows.py", "_SCALED_TOGETHER = 1 << 20", "<< -> >>"): _AT_A_TIME,
    (
        "rows/_arrays.py",
        "return xp.from_numpy(np.array(values, dtype=kind)).to(array.device, non_blocking=True)",
        "True -> False",
    ): _LIBRARY,
    (
        "rows/_blocks.py",
        "if is_numpy(self.inputs):",
        "is_numpy(self.inputs) -> False",
    ): "of `take`: NumPy has the standard's functions too, and they do the same",
    (
        "rows/_csv_format.py",
        "_GROWTH = 4",
        "4 -> 5",
    ): "where blocks end; only records of 128 MB and more meet the limit",
    (
        "rows/_csv_format.py",
        'written = last.rstrip("\\r\\n").replace(\'"\', \'""\').encode()[-len(records.end) // 2 :]',
        "2 -> 3",
    ): "how much of a text is compared with the end of its file: either is enough",
    (
        "rows/_encoder_learner.py",
        "mean, squares, smallest, largest = np.array(columns, dtype=np.float64).reshape(-1, 4).T",
        "1 -> 2",
    ): _ANY_NEGATIVE,
    ("rows/_identity.py", "_MOST_STRETCHES = 4_096", "4_096 -> 4097"): "how many stretches of a large file are read",
    ("rows/_parquet_footer.py", "if file.size() < 12:", "12 -> 13"): "no file of twelve bytes has a schema",
    ("rows/_parquet_footer.py", "tail = file.read(8)", "8 -> 9"): "eight bytes are left",
    ("rows/_parquet_format.py", "width = max(8, int(_SLICE_BYTES // (8 * max(1, n_rows))))", "1 -> 2"): _AT_A_TIME,
    ("rows/_parquet_format.py", "width = max(8, int(_SLICE_BYTES // (8 * max(1, n_rows))))", "8 -> 9"): _AT_A_TIME,
    (
        "rows/_reading_cost.py",
        "if 512 * len(batches) >= _FIRST_ROWS or sum(held.nbytes for held in batches) >= _FIRST_BYTES:",
        "512 -> 513",
    ): "sixteen batches, as with 512",
    (
        "rows/_sample.py",
        "if (positions[1:] < positions[:-1]).any():",
        "< -> <=",
    ): "no two rows have the same position",
    (
        "rows/_sample.py",
        "if self._n_held > self.size + max(self.size // 4, self._piece_rows):",
        "> -> >=",
    ): "how many rows are held before they are thinned out: those of the sample stay",
    (
        "rows/_scaling_learner.py",
        "step = 1 if is_numpy(inputs) else max(1, _SORTED_TOGETHER // inputs.shape[0])",
        "1 -> 2",
    ): _AT_A_TIME,
    ("rows/_scaling_learner.py", "_SORTED_TOGETHER = 1 << 26", "1 -> 2"): _AT_A_TIME,
    (
        "rows/_type_changes.py",
        "values = array.cast(pa.float64(), safe=False).drop_null().to_numpy(zero_copy_only=False)",
        "False -> True",
    ): "of the last: numbers without gaps need no copy",
    (
        "rows/_parquet_format.py",
        "pa.default_memory_pool().release_unused()",
        "pa.default_memory_pool().release_unused() -> pass",
    ): _GIVEN_BACK,
    ("rows/_scaling_learner.py", "_SORTED_TOGETHER = 1 << 26", "26 -> 27"): _AT_A_TIME,
    ("rows/_arrays.py", "if array.is_cuda and _is_large(values):", "and -> or"): _LIBRARY,
    (
        "rows/_sample.py",
        "_PIECE_ROWS, _FEWEST_IN_PIECE, _PIECE_BYTES = 2_048, 64, 1 << 24",
        "2_048 -> 2049",
    ): _AT_A_TIME,
    ("networks/_search_rows.py", "_SCALED_TOGETHER = 1 << 20", "20 -> 21"): _AT_A_TIME,
    (
        "rows/_csv_format.py",
        'line = head.lstrip(b"\\xef\\xbb\\xbf\\r\\n").split(b"\\n", 1)[0].decode("utf-8", "replace")',
        "1 -> 2",
    ): "the first line is the same, whether what follows is cut once more or not",
    (
        "networks/_layer.py",
        "if is_numpy(inputs):",
        "is_numpy(inputs) -> False",
    ): "of `chosen_columns`: NumPy has the standard's functions too, and scaling copies what is not copied here",
    (
        "rows/_release.py",
        'sys.modules["pyarrow"].default_memory_pool().release_unused()',
        'sys.modules["pyarrow"].default_memory_pool().release_unused() -> pass',
    ): _GIVEN_BACK,
    ("networks/_layer.py", "return z.exp_().add_(1.0).reciprocal_()", "1.0 -> 2.0"): _LIBRARY,
    (
        "networks/_criteria.py",
        "if required_share(contraction, node) <= best * (1.0 + 1e-9):",
        "<= -> <",
    ): "whoever lacks 1e-9 of what is asked is not admissible, tried or not",
    ("networks/_pools.py", "_MOST_IN_MEMORY = 20_000", "20_000 -> 20001"): _WHERE_A_COPY_LIES,
    ("ncl/_path.py", "CHUNK_NUMBERS = 4_000_000", "4_000_000 -> 4000001"): _AT_A_TIME,
    ("rows/_arrays.py", "_BLOCK = 2_048", "2_048 -> 2049"): _AT_A_TIME,
    (
        "rows/_encodings.py",
        "codes = places.fill_null(other).to_numpy(zero_copy_only=False).astype(np.intp)",
        "False -> True",
    ): "numbers without gaps need no copy",
    (
        "rows/_formats.py",
        "mapped.seek(0)",
        "0 -> 1",
    ): "the first byte of a file is no buffer: it begins with its format's name",
    (
        "networks/_search_rows.py",
        "step = max(64, _SCALED_TOGETHER // max(1, len(columns)))",
        "64 -> 65",
    ): _AT_A_TIME,
    (
        "rows/_parquet_footer.py",
        "if start < 0:",
        "0 -> 1",
    ): "no footer begins with Arrow's schema: the version of the format comes first",
    (
        "ncl/_decomposition.py",
        "points = columns / np.where(spread > 0, spread, 1.0)",
        "1.0 -> 2.0",
    ): "a column without a spread adds nothing to any distance",
    (
        "ncl/_outputs.py",
        "y = np.asarray(target, dtype=np.float64).reshape(len(blocks[0]), -1)",
        "1 -> 2",
    ): _ANY_NEGATIVE,
    (
        "rows/_encoder_learner.py",
        "return share, self.weight * share * (1 - share), float(share == 1), float(share > 0)",
        "> -> >=",
    ): "whatever is marked occurs in some row, and rows without a weight are not there",
    (
        "networks/_search_rows.py",
        "step = min(stripe_rows(n), max(64, _SCALED_TOGETHER // inputs.shape[1]))",
        "// -> *",
    ): _AT_A_TIME,
    (
        "networks/_pools.py",
        'if settings.pool == "sparse" and not is_numpy(rows.inputs) and rows.n_rows <= _MOST_IN_MEMORY:',
        "== -> !=",
    ): _WHERE_A_COPY_LIES,
    (
        "rows/_schemas.py",
        "return len(set(schema.names)) < len(schema.names)",
        "< -> <=",
    ): "a short cut: of names that are all different none occurs twice",
    (
        "ncl/_path.py",
        "scores: Array = np.divide(mean_squares, left**2, out=np.full_like(left, np.inf), where=left > 1e-10)",
        "> -> >=",
    ): "a limit between rounding errors and numbers, which none of either meets in every bit",
    ("rows/_release.py", 'if "pyarrow" in sys.modules:', "in -> not in"): _GIVEN_BACK,
    (
        "ncl/_lapack.py",
        "work, integers = np.empty(1 + 4 * size + size**2), np.empty(3 + 5 * size, dtype=np.intc)",
        "4 -> 5",
    ): _WORKSPACE,
    (
        "rows/_sample.py",
        "self._n_held = 0",
        "0 -> 1",
    ): "how many rows are held before they are thinned out: those of the sample stay",
    (
        "ncl/_jacobi.py",
        "if decorrelation < any_data_bound(system):",
        "< -> <=",
    ): "at the bound itself the radius is one at most, and rounding decides whether it is one",
    ("rows/_files.py", "_READ_ROWS, _READ_NUMBERS = 16_384, 1 << 23", "<< -> >>"): _AT_A_TIME,
    ("rows/_arrays.py", 'kind = str(dtype).rpartition(".")[2]', "2 -> 3"): _LIBRARY,
    (
        "rows/_level_sums.py",
        "return both if sum(len(part.places) for part in waiting) <= few else both.settled()",
        "<= -> <",
    ): _WHEN_ADDED,
    (
        "rows/_level_sums.py",
        "if not self.waiting:",
        "not self.waiting -> False",
    ): "a short cut: what is put together from one part is that part",
    ("rows/_level_sums.py", "_FEW_CELLS = 1 << 14", "14 -> 15"): _WHEN_ADDED,
    ("rows/_level_means.py", "_FIRST_VALUES = 64", "64 -> 65"): _AT_A_TIME,
    (
        "rows/_level_encodings.py",
        "never = np.broadcast_to(table[-1:], (len(crossed), 1, table.shape[1]))",
        "1 -> 2",
    ): "of the second: one more column, which no code names",
    (
        "rows/_level_encodings.py",
        "codes = places.fill_null(len(self.levels) + 1).to_numpy(zero_copy_only=False).astype(np.intp)",
        "False -> True",
    ): "numbers without gaps need no copy",
    (
        "rows/_level_sums.py",
        "shares = np.where(varies, 1.0 - left / np.where(varies, whole.squares, 1.0), 0.0)",
        "1.0 -> 2.0",
    ): "of the last: what a target that never changes is divided by is not read",
    ("networks/_first_outputs.py", "_WIDE, _WIDE_NUMBERS = 4_096, 1 << 21", "21 -> 22"): _AT_A_TIME,
    ("networks/_first_outputs.py", "_WIDE, _WIDE_NUMBERS = 4_096, 1 << 21", "1 -> 2"): _AT_A_TIME,
    ("networks/_first_outputs.py", "_WIDE, _WIDE_NUMBERS = 4_096, 1 << 21", "4_096 -> 4097"): _AT_A_TIME,
    (
        "networks/_first_outputs.py",
        "step = len(some) if rows.n_columns <= _WIDE else max(64, _WIDE_NUMBERS // rows.n_columns)",
        "<= -> <",
    ): _AT_A_TIME,
    (
        "networks/_first_outputs.py",
        "step = len(some) if rows.n_columns <= _WIDE else max(64, _WIDE_NUMBERS // rows.n_columns)",
        "// -> *",
    ): _AT_A_TIME,
    (
        "networks/_first_outputs.py",
        "inputs = rows.inputs[some[first : first + step]].astype(nodes.dtype, copy=False)",
        "False -> True",
    ): "one more copy holds the same numbers",
    (
        "networks/_numpy_steps.py",
        "chosen: NDArray[np.intp] | slice = places if batch < n else slice(None)",
        "< -> <=",
    ): "all rows in their order, copied or not, are the same rows",
    (
        "rows/_level_sums.py",
        "cell = coded.indices.to_numpy(zero_copy_only=False) * N_FOLDS + folds",
        "False -> True",
    ): "numbers without gaps need no copy",
    (
        "rows/_level_sums.py",
        "codes = coded.indices.to_numpy(zero_copy_only=False).astype(np.intp)",
        "False -> True",
    ): "numbers without gaps need no copy",
    (
        "rows/_dates.py",
        "limits = None if plain.lower is None or plain.upper is None else (plain.lower.copy(), plain.upper.copy())",
        "or -> and",
    ): "both are None, or neither is",
    (
        "rows/_parquet_format.py",
        "decoded += max(size + 4.0 * metadata.num_rows if wanted[name] else 0.0, least * metadata.num_rows)",
        "0.0 -> 1.0",
    ): "a group has rows, of eight bytes each at least",
    ("rows/_encoded.py", "LARGE_STRIPE = 1 << 24", "<< -> >>"): _AT_A_TIME,
    ("rows/_encoded.py", "large = 8 * rows * self.n_columns > LARGE_STRIPE", "* -> /"): _AT_A_TIME,
    ("rows/_encoder.py", "step = max(64, _WRITTEN_NUMBERS // max(1, out.shape[1]))", "64 -> 65"): _AT_A_TIME,
    ("rows/_encoded.py", "LARGE_STRIPE = 1 << 24", "24 -> 25"): _AT_A_TIME,
    (
        "rows/_batches.py",
        "if len(pieces) == 1:",
        "len(pieces) == 1 -> False",
    ): "a short cut: a single piece has rows, and put together it is that piece, without a copy",
    (
        "ncl/_outputs.py",
        "sizes[sizes == 0] = 1.0",
        "1.0 -> 2.0",
    ): "a node of zeros is zero at any size, and what it is weighted with is a rounding error",
    (
        "ncl/_bounds.py",
        "if len(S) > DENSE_NODES:",
        "> -> >=",
    ): "either way of computing the eigenvalue gives the same to rounding",
    (
        "networks/_search_rows.py",
        "if is_numpy(values):",
        "is_numpy(values) -> False",
    ): "of `_rows_at`: NumPy has the standard's functions too, and they do the same",
    (
        "rows/_formats.py",
        "return batch, all(region.address <= buffer.address < end for buffer in buffers)",
        "< -> <=",
    ): "what begins at the end of the map is not in it, and a batch that is taken for mapped is only read again",
    (
        "rows/_type_changes.py",
        "integers = pa.array(np.where(whole, values, 0.0).astype(np.int64), mask=~whole).cast(pa.string())",
        "0.0 -> 1.0",
    ): "what is not whole is masked",
}


def reason_for(file: str, line: str, change: str) -> str:
    """Why a mutant makes no difference; nothing if it makes one."""
    return EQUIVALENT.get((file, line, change), "")
