"""The search, the Gram system and the default fit on a GPU, beside what the machine can do at most.

    python benchmarks/gpu.py              # needs an NVIDIA GPU, PyTorch and Triton
    python benchmarks/gpu.py --profile    # also says where the time of a search goes
    python benchmarks/gpu.py --check      # only compares recorded kernels with plain ones, and both with the processor

Every figure is a median after warm-up, with two floors beside it: the bytes that must be moved over the measured copy
bandwidth, and the operations over the measured rate of float32 products.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.base import clone

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from scne import SCNERegressor, SCNRegressor  # noqa: E402
from scne.fitting import _building  # noqa: E402
from scne.fitting._engines import StreamedRows  # noqa: E402
from scne.fitting._members import ensemble_system  # noqa: E402
from scne.networks import HiddenLayer  # noqa: E402
from scne.networks.gpu import _basis  # noqa: E402
from scne.passes import DeviceEngine  # noqa: E402
from scne.rows import ArrayRows, ColumnScaling, RowBlock  # noqa: E402

ROWS, COLUMNS, CANDIDATES = 463_715, 90, 100
# Table 3 of the paper: the averages, and six parts of the covariances.
GROUPS = [list(range(12)), *(list(range(start, start + 13)) for start in range(12, 90, 13))]
# Seven networks of 31 nodes: the paper's medians come to 211.
NODES_EACH = 31
PLAIN = {"networks": "per group", "trend": "none"}
_STRIPE = 1 << 17


def median_seconds(work: Callable[[], Any], repeats: int = 5) -> float:
    """Median time of some work on the device, after one run to warm up."""
    work()
    torch.cuda.synchronize()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def ceilings() -> dict[str, float]:
    """Bytes a second of a copy, and operations a second of float32, tf32 and float64 products."""
    source = torch.randn(1 << 29, device="cuda")
    target = torch.empty_like(source)
    found = {"bandwidth": 2 * source.nbytes / median_seconds(lambda: target.copy_(source))}
    a, b = (torch.randn(8192, 8192, device="cuda") for _ in range(2))
    operations = 2 * 8192**3
    torch.backends.cuda.matmul.allow_tf32 = False
    found["float32"] = operations / median_seconds(lambda: a @ b)
    torch.backends.cuda.matmul.allow_tf32 = True
    found["tf32"] = operations / median_seconds(lambda: a @ b)
    torch.backends.cuda.matmul.allow_tf32 = False
    c, d = a[:4096, :4096].double(), b[:4096, :4096].double()
    found["float64"] = 2 * 4096**3 / median_seconds(lambda: c @ d)
    found["tanh"] = a.numel() / median_seconds(lambda: torch.tanh_(a))
    return found


def year_like() -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of the shape of YearPredictionMSD, with something to find in them."""
    generator = torch.Generator("cuda").manual_seed(0)
    X = torch.randn(ROWS, COLUMNS, device="cuda", generator=generator)
    y = torch.sin(X[:, 0]) + X[:, 12] * X[:, 13] + 0.3 * X[:, 30:50].sum(axis=1)
    return X, y + 0.5 * torch.randn(ROWS, device="cuda", generator=generator)


def search_floor(rates: dict[str, float], n_pools: int) -> dict[str, float]:
    """Seconds that a search must take: what it reads and writes, and what it multiplies and activates.

    A pool reads its columns and the residual. A new node reads its columns, Q twice, the residual and its own vector,
    and writes the last two and a column of Q.
    """
    width = 14
    moved = n_pools * ROWS * (4 * width + 8)
    operations = n_pools * ROWS * CANDIDATES * 2 * (width + 2)
    for node in range(NODES_EACH):
        moved += len(GROUPS) * ROWS * (4 * width + 2 * 4 * node + 2 * 8 + 3 * 4)
        operations += len(GROUPS) * ROWS * 2 * (width + 2 * 2 * node)
    activations = n_pools * ROWS * CANDIDATES / rates["tanh_free"]
    return {"bytes": moved / rates["bandwidth"], "operations": operations / rates["float32"] + activations}


def counted_pools(model: SCNERegressor) -> int:
    """Pools that a fit scored: of every node all scopes up to the one that had an admissible candidate."""
    scopes = list(model.estimator.scopes)
    return sum(1 + scopes.index(scope) for member in model.members_ for scope in member.search.scopes)


def search_seconds(fit: Callable[[], Any], repeats: int) -> float:
    """Median time that the searches of a fit take, after one run to warm up."""
    plain, spent = _building.build_network, 0.0

    def timed(*arguments: Any) -> Any:
        nonlocal spent
        torch.cuda.synchronize()
        start = time.perf_counter()
        found = plain(*arguments)
        spent += time.perf_counter() - start
        return found

    times = []
    _building.build_network = timed
    try:
        for _ in range(repeats + 1):
            spent = 0.0
            fit()
            times.append(spent)
    finally:
        _building.build_network = plain
    return statistics.median(times[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--beijing", type=Path, default=None, help="an .npz with X, y and fold, or the Parquet file")
    options = parser.parse_args()
    if options.check:
        check()
        return
    results: dict[str, Any] = {"device": torch.cuda.get_device_name(), "ceilings": ceilings()}
    rates = results["ceilings"]
    # A tanh in registers costs no memory; sixteen a clock and multiprocessor is what the hardware gives.
    chip = torch.cuda.get_device_properties(0)
    rates["tanh_free"] = 16 * chip.multi_processor_count * getattr(chip, "clock_rate", 1.98e6) * 1e3
    print({name: f"{rate:.3g}" for name, rate in rates.items()})
    X, y = year_like()
    for criterion in ("paper", "orthogonal"):

        def fit(criterion: str = criterion) -> SCNERegressor:
            base = SCNERegressor._paper_estimator(NODES_EACH).set_params(criterion=criterion, precision="float32")
            return SCNERegressor.paper(GROUPS, estimator=base, random_state=0).fit(X, y)

        model = fit()
        n_pools = counted_pools(model)
        seconds, search, floor = median_seconds(fit, 9), search_seconds(fit, 9), search_floor(rates, n_pools)
        results[f"year, {criterion}"] = {
            "fit": seconds,
            "search": search,
            "nodes": sum(model.n_hidden_),
            "pools": n_pools,
            "floor": floor,
            "search over the floor": search / max(floor.values()),
        }
        print(criterion, results[f"year, {criterion}"], flush=True)
    if options.profile:
        from torch.profiler import ProfilerActivity, profile

        base = SCNERegressor._paper_estimator(NODES_EACH).set_params(precision="float32")
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
            SCNERegressor.paper(GROUPS, estimator=base, random_state=0).fit(X, y)
        print(seen.key_averages().table(sort_by="cuda_time_total", row_limit=18, max_name_column_width=50))
    results["gram"] = gram_system(X, y, rates)
    print(json.dumps(results["gram"]), flush=True)
    results["streaming"] = streaming()
    print(json.dumps(results["streaming"]), flush=True)
    if options.beijing is not None:
        results["beijing"] = beijing(options.beijing)
        print(json.dumps(results["beijing"]))
    print(json.dumps(results))


def check() -> None:
    """Fail unless recorded and plain kernels, and the GPU and the processor, agree on fresh rows."""
    seed = int(time.time())
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (50_000, 6))
    y = (
        np.sin(3 * X[:, 0]) * X[:, 1]
        + X[:, 2] ** 2
        + X[:, 3] * np.cos(2 * X[:, 4])
        + 0.05 * rng.standard_normal(len(X))
    )
    weights = rng.integers(0, 3, len(X)).astype(float)
    groups = [[0, 1, 2], [3, 4, 5]]
    variants = {
        "paper": SCNERegressor.paper(groups, estimator=SCNERegressor._paper_estimator(20)),
        "validation": SCNERegressor(
            SCNRegressor(20, criterion="paper", validation_fraction=0.2), groups=groups, **PLAIN
        ),
        "orthogonal": SCNERegressor(SCNRegressor(15), groups=groups, ridge=1e-3, **PLAIN),
        "batches": SCNERegressor(SCNRegressor(15, batch_size=3), groups=groups, ridge=1e-3, **PLAIN),
        "tuned": SCNERegressor(SCNRegressor.tuned(max_hidden=20), n_estimators=3, ridge=1e-3, **PLAIN),
    }
    for name, model in variants.items():
        for weight in (None, weights):
            model.set_params(random_state=seed % 1000, estimator__precision="auto")
            recorded = clone(model).set_params(device="cuda").fit(X, y, weight)
            with plain_kernels():
                plain = clone(model).set_params(device="cuda").fit(X, y, weight)
            host = clone(model).set_params(device="cpu", estimator__precision="float32").fit(X, y, weight)
            same = [same_nodes(recorded, plain), same_nodes(plain, host)]
            errors = [float(np.sqrt(np.mean((fit.predict(X) - y) ** 2))) for fit in (recorded, plain, host)]
            weighted = "weighted" if weight is not None else ""
            print(f"{name:11} {weighted:8} nodes found alike {same}, errors {np.round(errors, 5)}", flush=True)
            # Single precision cannot tell some candidates apart, and from there on searches go different ways.
            whole = name == "tuned" or min(same) == sum(plain.n_hidden_)
            assert max(errors) < (1.01 if whole else 1.3) * min(errors), (name, errors)
    check_tensors(X, y)
    check_small_memory()
    print(f"all agree (seed {seed})")


def same_nodes(left: SCNERegressor, right: SCNERegressor) -> int:
    """Nodes that two fits found alike, in each network up to the first that differs; their errors so far must agree."""
    total = 0
    for mine, other in zip(left.members_, right.members_, strict=True):
        a, b = mine.layer.weights, other.layer.weights
        shared = min(a.shape[1], b.shape[1])
        differ = np.append((a[:, :shared] != b[:, :shared]).any(axis=0), True)
        alike = int(differ.argmax())
        curves = [one.search.training_curve[:alike] for one in (mine, other)]
        np.testing.assert_allclose(*curves, rtol=1e-4)
        total += alike
    return total


@contextmanager
def plain_kernels() -> Iterator[None]:
    """Nothing is recorded inside the block."""
    before = _basis.fused_search, _building.tunes_on_device
    _basis.fused_search, _building.tunes_on_device = (lambda *_: None), (lambda _: False)
    try:
        yield
    finally:
        _basis.fused_search, _building.tunes_on_device = before


def gram_system(X: torch.Tensor, y: torch.Tensor, rates: dict[str, float]) -> dict[str, Any]:
    """G of 4,096 nodes over all rows, in float32 and tf32, beside the rate of a plain product."""
    rng = np.random.default_rng(0)
    scaling = ColumnScaling(np.zeros(COLUMNS), np.ones(COLUMNS))
    layer = HiddenLayer(
        np.arange(COLUMNS), scaling, 0.2 * rng.standard_normal((COLUMNS, 4096)), rng.standard_normal(4096), "tanh"
    )
    rows = ArrayRows(X, y[:, None].double())
    identity = ColumnScaling(np.zeros(1), np.ones(1))
    operations = 2.0 * ROWS * 4096**2
    found: dict[str, Any] = {}
    systems = {}
    for precision in ("float32", "tf32", "float64"):

        def sums(precision: str = precision) -> Any:
            with DeviceEngine(X, precision) as engine:
                return ensemble_system(rows, [layer], identity, engine)

        seconds = median_seconds(sums, 3)
        systems[precision] = sums()
        found[precision] = {
            "seconds": seconds,
            "rate": operations / seconds,
            "share": operations / seconds / rates[precision],
        }
    exact = systems["float64"].gram
    for precision in ("float32", "tf32"):
        found[precision]["error"] = float(np.linalg.norm(systems[precision].gram - exact) / np.linalg.norm(exact))
    return found


def beijing(path: Path) -> dict[str, Any]:
    """The default configuration on two cores and on the GPU, in one run: medians after one fit to warm up."""
    stored = np.load(path)
    X, y, tested = stored["X"].astype(float), stored["y"].astype(float), stored["fold"] == 0
    train, wanted = X[~tested], y[~tested]
    found: dict[str, Any] = {}
    for name, device, jobs, repeats in (("gpu", "cuda", None, 9), ("two cores", "cpu", 2, 3)):
        models = []

        def fit(device: str = device, jobs: int | None = jobs, models: list[Any] = models) -> None:
            models[:] = [SCNERegressor(random_state=0, device=device, n_jobs=jobs).fit(train, wanted)]

        with cores(jobs):
            seconds = median_seconds(fit, repeats)
        error = float(np.sqrt(np.mean((models[0].predict(X[tested]) - y[tested]) ** 2)))
        found[name] = {"seconds": seconds, "rmse": error}
    found["times as fast"] = found["two cores"]["seconds"] / found["gpu"]["seconds"]
    return found


@contextmanager
def cores(count: int | None) -> Iterator[None]:
    """So many of the machine's cores and no more; None leaves all."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


class _InStripes(NamedTuple):
    """Rows on the device, handed out in stripes as short as those of streamed ones."""

    rows: ArrayRows

    @property
    def n_rows(self) -> int:
        return self.rows.n_rows

    @property
    def n_columns(self) -> int:
        return self.rows.n_columns

    def stripes(self, rows: int) -> Iterator[RowBlock]:
        return self.rows.stripes(rows)


def streaming() -> dict[str, float]:
    """Sums over rows of the host's memory, beside their copies alone and the same sums over rows that are there."""
    rng = np.random.default_rng(0)
    rows = ArrayRows(rng.standard_normal((4_000_000, COLUMNS)), rng.standard_normal((4_000_000, 1)))
    weights, scaling = 0.2 * rng.standard_normal((COLUMNS, 1024)), ColumnScaling(np.zeros(COLUMNS), np.ones(COLUMNS))
    layer = HiddenLayer(np.arange(COLUMNS), scaling, weights, rng.standard_normal(1024), "tanh")
    identity = ColumnScaling(np.zeros(1), np.ones(1))
    engine = DeviceEngine(torch.empty(0, dtype=torch.float64, device="cuda"))
    streamed, resident = StreamedRows(rows, engine), engine.placed(rows)
    found = {
        "copies alone": median_seconds(lambda: [None for _ in streamed.stripes(_STRIPE)], 5),
        "sums alone": median_seconds(lambda: ensemble_system(_InStripes(resident), [layer], identity, engine), 5),
        "both": median_seconds(lambda: ensemble_system(streamed, [layer], identity, engine), 5),
    }
    found["bytes a second"] = rows.inputs.nbytes / found["copies alone"]
    return found


def check_tensors(X: np.ndarray, y: np.ndarray) -> None:
    """Fail unless tensors and, where it is installed, CuPy's arrays give what NumPy's give, and stay where they are."""
    model = SCNERegressor(SCNRegressor(15), groups=[[0, 1, 2], [3, 4, 5]], random_state=0, **PLAIN)
    wanted = clone(model).set_params(device="cuda").fit(X, y).predict(X)
    libraries: dict[str, Callable[[np.ndarray], Any]] = {"PyTorch": lambda values: torch.tensor(values, device="cuda")}
    try:
        import cupy

        libraries["CuPy"] = cupy.asarray
    except ImportError:
        print("CuPy is not installed")
    for name, make in libraries.items():
        given, aims = make(X), make(y)
        fitted = clone(model).fit(given, aims)
        found = fitted.predict(given)
        assert type(found) is type(given), (name, type(found))
        found = found.get() if hasattr(found, "get") else found.cpu().numpy()
        print(
            f"{name}: predictions differ by {np.abs(found - wanted).max():.1e}, score {fitted.score(given, aims):.6f}"
        )
        assert np.abs(found - wanted).max() < 1e-2 * np.abs(wanted).max()


def check_small_memory() -> None:
    """Fail unless a fit on a GPU that is nearly full gives what it gives on an empty one, and says what would fit."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2_000_000, 60))
    y = np.sin(3 * X[:, 0]) * X[:, 1] + X[:, 31] ** 2
    groups = [list(range(30)), list(range(30, 60))]
    model = SCNERegressor(SCNRegressor(20, search_rows=20_000), groups=groups, random_state=0, device="cuda", **PLAIN)
    roomy = clone(model).fit(X, y).predict(X[:10_000])
    torch.cuda.empty_cache()
    taken = torch.empty(torch.cuda.mem_get_info()[0] - (1200 << 20), dtype=torch.uint8, device="cuda")
    narrow = clone(model).fit(X, y).predict(X[:10_000])
    print(f"nearly full: predictions differ by {np.abs(narrow - roomy).max():.1e} of {np.abs(roomy).max():.2f}")
    assert np.abs(narrow - roomy).max() < 1e-3
    try:
        clone(model).set_params(estimator__search_rows=None).fit(X, y)
    except ValueError as error:
        print(f"nearly full, all rows searched: {error}", flush=True)
    else:
        raise AssertionError("rows that cannot fit were not refused")
    del taken


if __name__ == "__main__":
    main()
