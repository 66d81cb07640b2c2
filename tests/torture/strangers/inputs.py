"""Files that users give: Parquet, CSV and Arrow tables, TOML files of groups, results of `scne paper` in JSON.

Random bytes are changed in real ones, and tables, groups and results are built from odd parts. Reading one ends with a
result, a ValueError or an OSError.
"""

import contextlib
import datetime
import decimal
import io
import json
import random
import warnings
from functools import cache

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet as pq

from scne import RVFLRegressor, open_rows
from scne.paper import read_results
from scne.paper._results import Finding, Panel, ResultFigure, cell, series, table, to_json
from scne.rows import read_groups

from .byte_mutations import mutated
from .corpus import file_table, folder
from .harness import main
from .json_mutations import copied, mutate

_TABLES = {".parquet": 0.3, ".csv": 0.3, ".arrow": 0.2, ".toml": 0.1, ".json": 0.1}
_FIELDS = (
    "",
    "1",
    "-0",
    "1e999",
    "nan",
    "inf",
    "?",
    "NA",
    '"',
    '""',
    '"a',
    "a,b",
    "\0",
    "é",
    "\ufeff",
    "1;2",
    "2024-02-30",
)
_FIELDS += ("true", "9" * 400, "x" * 3_000, "0x10", "1_000", " 3 ", "\x1b[2J", "'", "=1+1", "2024-01-01T00:00:00+99:00")
_SEPARATORS = (",", ",", ",", ";", "\t", "|", ", ")
_TOML = (
    'weather = ["TEMP", "PRES"]\n[groups]\na = ["x*"]',
    '[groups]\n"" = [""]\n"a\\u0000" = ["[", "*", "**", "[!"]',
    "groups = 3",
    "groups = {a = [1]}",
    "a = " + "[" * 3_000,
    "a = " + "{b=" * 2_000,
    "a." * 2_000 + "b = 1",
    "a = 1979-05-27T07:32:00Z\nb = inf\nc = 0xff",
    'a = ["x"]\na = ["y"]',
    "[[groups]]\na = 1",
    "a = [" + '"x",' * 20_000 + "]",
    "\ufeffa = ['x']",
    "",
)


def _column(rng: random.Random, n: int) -> pa.Array:
    """A column of some type, some of which no model takes."""
    moment = datetime.datetime(2024, 1, 1)
    makers = (
        lambda: pa.array(
            [rng.choice((0.0, -1.5, 1e308, float("nan"), float("inf"), None)) for _ in range(n)], pa.float64()
        ),
        lambda: pa.array([rng.randrange(-(2**63), 2**63) for _ in range(n)], pa.int64()),
        lambda: pa.array([rng.randrange(2**64) for _ in range(n)], pa.uint64()),
        lambda: pa.array([rng.choice((True, False, None)) for _ in range(n)], pa.bool_()),
        lambda: pa.array([rng.choice(("", "a", "é", "\0", "x" * 500, None)) for _ in range(n)], pa.string()),
        lambda: pa.array([rng.choice(("a", "b", None)) for _ in range(n)]).dictionary_encode(),
        lambda: pa.array([None] * n, pa.null()),
        lambda: pa.array([rng.choice((moment, None)) for _ in range(n)], pa.timestamp("us", rng.choice((None, "UTC")))),
        lambda: pa.array([rng.randrange(-(2**62), 2**62) for _ in range(n)], pa.timestamp(rng.choice(("s", "ns")))),
        lambda: pa.array([rng.randrange(-(2**31), 2**31) for _ in range(n)], pa.date32()),
        lambda: pa.array([rng.randrange(86_400) for _ in range(n)], pa.time32("s")),
        lambda: pa.array([rng.randrange(2**40) for _ in range(n)], pa.duration("ms")),
        lambda: pa.array([decimal.Decimal(rng.randrange(10**9)) for _ in range(n)], pa.decimal128(20, 2)),
        lambda: pa.array([[1, 2]] * n, pa.list_(pa.int64())),
        lambda: pa.array([{"a": 1}] * n, pa.struct([("a", pa.int64())])),
        lambda: pa.array([b"\xff\0"] * n, pa.binary()),
        lambda: pa.array([1.0] * n, pa.float16()),
    )
    return rng.choice(makers)()


def _odd_table(rng: random.Random) -> pa.Table:
    n = rng.choice((0, 1, 2, 5, 30))
    names = [rng.choice(("a", "b", "", "x y", "year", "month", "day", "\0", "é", "y")) for _ in range(rng.randrange(5))]
    if rng.random() < 0.8:
        names = [*dict.fromkeys(name for name in names if name != "y"), "y"]
    columns = [_column(rng, n) for _ in names]
    if names and names[-1] == "y" and rng.random() < 0.7:
        columns[-1] = pa.array([float(k) for k in range(n)])
    return pa.Table.from_arrays(columns, names=names)


def _table_bytes(rng: random.Random, rows: pa.Table, suffix: str) -> bytes:
    out = io.BytesIO()
    if suffix == ".parquet":
        pq.write_table(
            rows, out, row_group_size=rng.choice((1, 7, 1_000)), compression=rng.choice(("none", "snappy", "zstd"))
        )
    elif suffix == ".csv":
        pyarrow.csv.write_csv(rows, out)
    elif rng.random() < 0.5:
        pyarrow.feather.write_feather(rows, out, compression=rng.choice(("uncompressed", "lz4")))
    else:
        kind = rng.choice((pa.ipc.new_file, pa.ipc.new_stream))
        with kind(out, rows.schema) as writer:
            writer.write_table(rows)
    return out.getvalue()


def _odd_csv(rng: random.Random) -> bytes:
    """Text that is nearly a table."""
    separator, n = rng.choice(_SEPARATORS), rng.randrange(1, 5)
    lines = [separator.join([*(f"c{k}" for k in range(n)), "y"])]
    for _ in range(rng.choice((0, 1, 5, 40))):
        width = n + 1 if rng.random() < 0.95 else rng.randrange(n + 4)
        lines.append(
            separator.join(rng.choice(_FIELDS) if rng.random() < 0.2 else str(rng.random()) for _ in range(width))
        )
    text = rng.choice(("\n", "\r\n", "\r")).join(lines) + rng.choice(("", "\n", "\n\n"))
    return text.encode(rng.choice(("utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-32")))


@cache
def _examples() -> dict[str, list[bytes]]:
    rng, rows = random.Random(0), file_table()
    found = {suffix: [_table_bytes(rng, rows, suffix) for _ in range(4)] for suffix in (".parquet", ".csv", ".arrow")}
    return {**found, ".toml": [text.encode() for text in _TOML], ".json": [json.dumps(_result()).encode()]}


def _result() -> dict:
    """A result of `scne paper` with a table, a figure and a finding."""
    return {
        "format": 2,
        "name": "a",
        "title": "A",
        "section": "4.4",
        "order": 1,
        "about": "",
        "data": {"name": "year", "rows": 3, "train": 2, "test": 1, "substitute": True, "note": ""},
        "quick": True,
        "repeats": 2,
        "seeds": [1, 2],
        "settings": {"lambda": 0.1},
        "seconds": 0.5,
        "finished": "2026-11-15T13:00:00Z",
        "versions": {"scne": "0"},
        "machine": {"cores": 2},
        "command": "scne paper run a",
        "tables": to_json([table("t", "T", {"x": "x"}, [(("row",), {"x": cell(1.0)})], ("name",))]),
        "figures": to_json([ResultFigure("f", "F", "lines", (Panel(series=(series("s", [1, 2], [3, None]),)),))]),
        "findings": to_json([Finding("So it is.", "not judged")]),
    }


def _content(rng: random.Random, suffix: str) -> bytes:
    odd = rng.random() < 0.5
    if odd and suffix == ".csv" and rng.random() < 0.7:
        return _odd_csv(rng)
    if odd and suffix in (".parquet", ".csv", ".arrow"):
        # Some types have no form in some formats.
        with contextlib.suppress(pa.ArrowException, ValueError, NotImplementedError):
            data = _table_bytes(rng, _odd_table(rng), suffix)
            return data if rng.random() < 0.7 else mutated(rng, data, _examples()[suffix])
    if odd and suffix == ".json":
        result = copied(_result())
        for _ in range(rng.choice((1, 1, 2))):
            mutate(rng, result, _result())
        return json.dumps(result).encode("utf-8", "surrogatepass")
    data = rng.choice(_examples()[suffix])
    if odd and suffix == ".toml":
        return data
    return mutated(rng, data, _examples()[suffix])


def case(seed: int, number: int) -> str:
    """Read one file as the commands do."""
    rng = random.Random(f"{seed}/{number}")
    suffix = rng.choices(list(_TABLES), list(_TABLES.values()))[0]
    inputs = folder() / "inputs"
    inputs.mkdir(exist_ok=True)
    path = inputs / f"a{suffix}"
    path.write_bytes(_content(rng, suffix))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if suffix == ".toml":
                read_groups(path)
            elif suffix == ".json":
                read_results(inputs)
            else:
                model = RVFLRegressor(2, random_state=0).fit(open_rows(path, target="y"))
                model.predict(open_rows(path, target=None, like=model.encoder_))
    except (ValueError, OSError):
        return f"{suffix} refused"
    finally:
        path.unlink()
    return f"{suffix} read"


if __name__ == "__main__":
    _examples()
    main("inputs", case, __doc__, 50_000)
