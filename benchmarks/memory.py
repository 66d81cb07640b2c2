"""Whether `scne fit --memory X` keeps to X: the peak of the whole process on files of eight shapes.

    python benchmarks/memory.py                        # all shapes at 300 MB and at 1 GB
    python benchmarks/memory.py --shapes wide tiny-groups --budgets 300MB

Every fit is a process of its own. Its peak is what the system counted (the resident set), and from it is taken the peak
of a process that only imports what a fit imports. A budget is held when the rest is at most 1.1 times the budget. A fit
that is refused before a row is read holds it too, if the number that the refusal names is enough: it is run again with
that number, which must then be held, and be at most 1.5 times what was needed.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

ALLOWED, NOT_ABSURD = 1.1, 1.5
SHORT = ("--tuning", "0.2", "--networks", "2", "--nodes", "50")
_BLOCK = 250_000


def columns(rng: np.random.Generator, n_rows: int, n_columns: int) -> dict[str, np.ndarray]:
    """Numbers, and a target that depends on three of them."""
    X = rng.standard_normal((n_columns, n_rows))
    y = X[0] * X[1] + np.sin(X[2]) + 0.1 * rng.standard_normal(n_rows)
    return {**{f"x{j}": values for j, values in enumerate(X)}, "y": y}


def write_numbers(path: Path, n_rows: int, n_columns: int, group_rows: int) -> None:
    """A Parquet file in row groups of one length."""
    rng, writer = np.random.default_rng(0), None
    for start in range(0, n_rows, max(group_rows, _BLOCK)):
        table = pa.table(columns(rng, min(max(group_rows, _BLOCK), n_rows - start), n_columns))
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table, row_group_size=group_rows)
    assert writer is not None
    writer.close()


def write_wide(path: Path) -> None:
    """20,000 x 5,000 in row groups of 2,500."""
    rng, writer = np.random.default_rng(0), None
    for _ in range(8):
        table = pa.table(columns(rng, 2_500, 5_000))
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def write_texts(path: Path) -> None:
    """300,000 rows with texts of 10, 100, 1,000, 10,000 and 90,000 levels."""
    rng, n = np.random.default_rng(0), 300_000
    table = pa.table(columns(rng, n, 5))
    for levels in (10, 100, 1_000, 10_000, 90_000):
        texts = [f"customer-{level:08d}-of-the-shop" for level in rng.integers(0, levels, n)]
        table = table.append_column(f"text{levels}", pa.array(texts))
    pq.write_table(table, path)


def write_keys(path: Path) -> None:
    """1,000,000 rows with five texts, one of which is another in every row."""
    rng, n = np.random.default_rng(0), 1_000_000
    table = pa.table(columns(rng, n, 3))
    for levels in (10, 100, 1_000, 10_000):
        table = table.append_column(f"text{levels}", pa.array(rng.integers(0, levels, n)).cast(pa.string()))
    table = table.append_column("key", pa.array([f"customer-{row:08d}-of-the-shop" for row in range(n)]))
    pq.write_table(table, path)


def write_csv(path: Path) -> None:
    """1,000,000 x 20 as text."""
    pa.csv.write_csv(pa.table(columns(np.random.default_rng(0), 1_000_000, 20)), path)


def write_folder(path: Path) -> None:
    """300 files of 1,000 rows with 20 columns of long texts."""
    rng = np.random.default_rng(0)
    path.mkdir()
    for number in range(300):
        table = pa.table(columns(rng, 1_000, 5))
        for column in range(20):
            texts = [
                f"a long text with many letters {level:06d} " + "z" * 60 for level in rng.integers(0, 2_000, 1_000)
            ]
            table = table.append_column(f"text{column}", pa.array(texts))
        pq.write_table(table, path / f"part-{number:03d}.parquet")


@dataclass(frozen=True)
class Shape:
    """A file or folder and how it is fitted; `refused` is what a fit must say that can never be."""

    name: str
    write: Callable[[Path], None]
    options: tuple[str, ...] = ()
    refused: str | None = None


# Three shapes are fitted as users do, with all defaults.
SHAPES = {
    "tall.parquet": Shape("4,000,000 x 20", lambda path: write_numbers(path, 4_000_000, 20, 1_000_000), SHORT),
    "mid.parquet": Shape("150,000 x 300", lambda path: write_numbers(path, 150_000, 300, 50_000), SHORT),
    "wide.parquet": Shape("20,000 x 5,000", write_wide, SHORT),
    "tiny-groups.parquet": Shape("200,000 x 20, groups of 10", lambda path: write_numbers(path, 200_000, 20, 10)),
    "texts.parquet": Shape("300,000 with 5 texts", write_texts),
    "keys.parquet": Shape("1,000,000 with a key", write_keys, SHORT, "different texts"),
    "lines.csv": Shape("CSV 1,000,000 x 20", write_csv),
    "one-group.parquet": Shape(
        "2,000,000 x 20, one group", lambda p: write_numbers(p, 2_000_000, 20, 2_000_000), SHORT
    ),
    "folder": Shape("300 files of long texts", write_folder, SHORT),
}


@dataclass(frozen=True)
class Run:
    """What became of a process.

    Attributes
    ----------
    peak : float
        Bytes.
    seconds : float
    code : int
    said : str
        Its standard error.
    """

    peak: float
    seconds: float
    code: int
    said: str


# The process tells its own peak: what the system says of a child also counts the process that started it.
LAUNCHER = """
import atexit, pathlib, sys
told = pathlib.Path(sys.argv.pop(1))
def tell():
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    told.write_text(next(line.split()[1] for line in lines if line.startswith("VmHWM")))
atexit.register(tell)
"""


def run(code: str, arguments: list[str], folder: Path) -> Run:
    """Run code in a process of its own, to its end."""
    started, told = time.perf_counter(), folder / "peak.txt"
    command = [sys.executable, "-c", LAUNCHER + code, str(told), *arguments]
    process = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return Run(1024.0 * float(told.read_text()), time.perf_counter() - started, process.returncode, process.stderr)


def imports_peak(folder: Path) -> float:
    """Peak of a process that only imports what a fit imports."""
    modules = "scne.cli._app, scne.cli._dask, scne.cli._progress, scne.cli._tables, pyarrow.dataset, pyarrow.csv"
    modules += ", pyarrow.parquet, pyarrow.compute, scipy.linalg, sklearn.utils.validation, sklearn.base"
    modules += ", threadpoolctl, rich.progress"
    return run(f"from scne.estimators import describe_model\nimport {modules}", [], folder).peak


def fit(path: Path, memory: str, options: tuple[str, ...], folder: Path) -> Run:
    """`scne fit` in a process of its own."""
    arguments = ["fit", str(path), "--target", "y", "--memory", memory, "--out", str(folder / "model.scne")]
    return run("from scne.cli import main\nmain()", [*arguments, *options], folder)


def n_bytes(memory: str) -> float:
    """Bytes of a budget such as 300MB."""
    return float(memory[:-2]) * {"MB": 1e6, "GB": 1e9}[memory[-2:]]


def judged(shape: Shape, path: Path, memory: str, imports: float, folder: Path) -> dict[str, object]:
    """One line of the table: a fit, and when it was refused another with the number that was named."""
    first = fit(path, memory, shape.options, folder)
    beyond = first.peak - imports
    line: dict[str, object] = {
        "shape": shape.name,
        "budget": memory,
        "beyond_imports_mb": round(beyond / 1e6),
        "share": round(beyond / n_bytes(memory), 2),
        "seconds": round(first.seconds, 1),
        "outcome": "fitted" if first.code == 0 else first.said.strip().splitlines()[-1][:200],
    }
    held = beyond <= ALLOWED * n_bytes(memory)
    named = re.search(r"needs (\d+MB)", " ".join(first.said.split()))
    if first.code and named and held:
        again = fit(path, named[1], shape.options, folder)
        share = (again.peak - imports) / n_bytes(named[1])
        held = again.code == 0 and share <= ALLOWED and share * NOT_ABSURD >= 1
        line |= {"outcome": f"refused, needs {named[1]}", "then_share": round(share, 2)}
        line["seconds"] = round(first.seconds + again.seconds, 1)
    elif first.code:
        held = held and shape.refused is not None and shape.refused in " ".join(first.said.split())
    return {**line, "held": held}


def main() -> None:
    """Write the files, fit them, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="*", help="Beginnings of " + ", ".join(SHAPES))
    parser.add_argument("--budgets", nargs="*", default=["300MB", "1GB"])
    parser.add_argument("--json", type=Path, help="Also write the lines there.")
    asked = parser.parse_args()
    chosen = [name for name in SHAPES if not asked.shapes or name.startswith(tuple(asked.shapes))]
    lines = []
    with tempfile.TemporaryDirectory() as held:
        folder = Path(held)
        imports = imports_peak(folder)
        print(f"imports {imports / 1e6:.0f} MB")
        for name in chosen:
            path = folder / name
            SHAPES[name].write(path)
            for memory in asked.budgets:
                lines.append(judged(SHAPES[name], path, memory, imports, folder))
                print(*(f"{key}={value}" for key, value in lines[-1].items()), flush=True)
            subprocess.run(["rm", "-r", str(path)], check=True)
    if asked.json:
        asked.json.write_text(json.dumps({"imports_mb": round(imports / 1e6), "lines": lines}, indent=1))
    missed = [line for line in lines if not line["held"]]
    print(f"{len(lines) - len(missed)} of {len(lines)} held")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
