"""The fits that are frozen: all estimators on all sources, what is done with a fitted model, and the commands."""

import contextlib
import io
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

import scne
from scne.ncl import lambda_path

Given = Iterator[tuple[str, object]]
SCENARIOS: dict[str, Callable[[Path], Given]] = {}


def scenario(function: Callable[[Path], Given]) -> Callable[[Path], Given]:
    """Freeze what a function gives."""
    SCENARIOS[function.__name__] = function
    return function


def rows(n: int = 700, d: int = 6, q: int = 1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Numbers and targets that bend."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.column_stack([np.sin(2 * X[:, k]) + X[:, (k + 1) % d] * X[:, (k + 2) % d] for k in range(q)])
    y += 0.1 * rng.standard_normal(y.shape)
    return X, (y[:, 0] if q == 1 else y)


def table(n: int = 900, seed: int = 0) -> pa.Table:
    """Numbers, a text, a date, a flag, gaps, a weight."""
    X, y = rows(n, 4, seed=seed)
    rng = np.random.default_rng(seed + 1)
    some = np.where(rng.random(n) < 0.1, np.nan, X[:, 3])
    return pa.table(
        {
            "temp_a": X[:, 0],
            "temp_b": X[:, 1],
            "wind_a": X[:, 2],
            "wind_b": pa.array(some, from_pandas=True),
            "place": rng.choice(["north", "south", "east"], n),
            "when": pa.array((np.datetime64("2024-01-01T00", "h") + np.arange(n)).astype("datetime64[s]")),
            "open": rng.random(n) < 0.4,
            "w": rng.integers(1, 4, n).astype(float),
            "y": y,
        }
    )


def of(model: object, X: object, name: str = "") -> Given:
    """What a fitted model says, and the file it makes."""
    verbs = ("predict", "predict_proba", "decision_function", "predict_members")
    for verb in verbs if hasattr(X, "shape") else verbs[:1]:
        if hasattr(model, verb):
            yield f"{name}{verb}", np.asarray(getattr(model, verb)(X))
    scne.save(model, "model.scne")
    yield f"{name}file", Path("model.scne").read_bytes()
    yield f"{name}summary", model.summary()
    yield f"{name}importances", np.asarray(model.feature_importances_)


def small(**settings: object) -> scne.SCNRegressor:
    return scne.SCNRegressor(**{"max_hidden": 15, "n_candidates": 20, **settings})


def classifier(nodes: int) -> scne.SCNEClassifier:
    base = scne.SCNRegressor(nodes, validation_fraction=0.2)
    return scne.SCNEClassifier(base, n_estimators=1, trend="none", solver="naive", ridge=1e-6, random_state=0)


@scenario
def single_networks(folder: Path) -> Given:
    X, y = rows()
    kinds = {
        "scn": small(),
        "paper": small(criterion="paper", scope_search="first", ridge=0.0, batch_size=2),
        "watched": small(validation_fraction=0.2),
        "tanh": small(activation="tanh", scaling="standard"),
        "float64": small(precision="float64", pool="sparse"),
        "tuned": scne.SCNRegressor.tuned(max_hidden=15, tuning_epochs=1.0),
        "rvfl": scne.RVFLRegressor(20),
    }
    for name, network in kinds.items():
        yield from of(network.set_params(random_state=0).fit(X, y), X, f"{name} ")


@scenario
def many_rows(folder: Path) -> Given:
    X, y = rows(6_000)
    yield from of(small(random_state=1).fit(X, y), X[:500])
    yield from of(scne.SCNERegressor(n_estimators=2, random_state=1).fit(X, y), X[:500], "ensemble ")


@scenario
def default_ensemble(folder: Path) -> Given:
    X, y = rows(400)
    model = scne.SCNERegressor(random_state=0).fit(X, y)
    yield from of(model, X)
    yield "lambda, ridge", [model.decorrelation_, np.asarray(model.ridge_).tolist()]
    yield "groups", model.group_importances_
    yield "path", np.asarray(lambda_path(model.system_, model.ridge_).errors)
    yield "admissible", model.admissible_nodes_
    yield "interval", np.asarray(model.predict(X, interval=0.9))


@scenario
def grouped_ensembles(folder: Path) -> Given:
    X, y = rows()
    groups = {"a": [0, 1], "b": [2, 3], "c": [4, 5]}
    for solver in ("naive", "pinv", "jacobi", "gauss-seidel", "cholesky", "cg"):
        choice = {} if solver == "naive" else {"decorrelation": 0.4}
        model = scne.SCNERegressor(
            small(),
            groups=groups,
            solver=solver,
            ridge=1e-3,
            random_state=0,
            **choice,
            networks="per group",
            trend="none",
        )
        yield from of(model.fit(X, y), X, f"{solver} ")
    free = scne.SCNERegressor(
        small(),
        groups=groups,
        solver="matrix-free cg",
        decorrelation=0.4,
        ridge=1e-3,
        networks="per group",
        trend="none",
    )
    yield "matrix free", free.set_params(random_state=0).fit(X, y).predict(X)
    yield from of(
        scne.SCNERegressor(small(), groups=groups, random_state=0, networks="per group", trend="none").fit(X, y),
        X,
        "auto ",
    )
    yield from of(scne.SCNERegressor.paper(groups=groups, random_state=0).fit(X, y), X, "paper ")
    yield from of(scne.DNNERegressor(scne.RVFLRegressor(15), groups=groups, random_state=0).fit(X, y), X, "dnne ")


@scenario
def weights_and_outputs(folder: Path) -> Given:
    X, y = rows(500, q=2)
    weight = np.random.default_rng(0).random(500)
    for name, model in {
        "scn": small(),
        "scne": scne.SCNERegressor(small(), n_estimators=3, networks="per group", trend="none"),
    }.items():
        yield from of(model.set_params(random_state=0).fit(X, y), X, f"{name} two outputs ")
        yield from of(model.fit(X, y[:, 0], sample_weight=weight), X, f"{name} weighted ")


@scenario
def classifiers(folder: Path) -> Given:
    X, y = rows(500)
    two, three = y > 0.2, np.digitize(y, [-0.5, 0.5])
    for name, labels in {"two": two, "three": np.array(["low", "mid", "high"])[three]}.items():
        model = scne.SCNEClassifier(
            scne.SCNRegressor.tuned(max_hidden=12, tuning_epochs=1.0),
            n_estimators=2,
            networks="per group",
            trend="none",
        )
        yield from of(model.set_params(random_state=0).fit(X, labels), X, f"scne {name} ")
        yield from of(classifier(12).fit(X, labels), X, f"scn {name} ")


@scenario
def later_rows(folder: Path) -> Given:
    X, y = rows(900)
    for name, model in {
        "scn": small(),
        "scne": scne.SCNERegressor(small(), n_estimators=3, networks="per group", trend="none"),
    }.items():
        model.set_params(random_state=0).fit(X[:500], y[:500])
        yield from of(model.partial_fit(X[500:700], y[500:700]), X, f"{name} after some ")
        yield from of(model.partial_fit(X[700:], y[700:]), X, f"{name} after all ")
        yield from of(model.add_nodes(5, X, y), X, f"{name} grown ")
    tuned = scne.SCNERegressor(
        scne.SCNRegressor.tuned(max_hidden=12, tuning_epochs=1.0), n_estimators=2, networks="per group", trend="none"
    )
    tuned.set_params(random_state=0).fit(X[:500], y[:500])
    yield from of(tuned.partial_fit(X[500:], y[500:]), X, "with a trend ")
    yield "reweighted", tuned.reweighted(decorrelation=0.5, ridge=0.1).predict(X)


@scenario
def exports(folder: Path) -> Given:
    X, y = rows(400)
    models = {
        "scn": small(random_state=0).fit(X, y),
        "scne": scne.SCNERegressor(
            scne.SCNRegressor.tuned(max_hidden=10, tuning_epochs=0.5),
            n_estimators=2,
            networks="per group",
            trend="none",
        ),
        "classes": classifier(10).fit(X, y > 0),
    }
    models["scne"].set_params(random_state=0).fit(X, y)
    for name, model in models.items():
        for form, ending in (("c", "h"), ("python", "py"), ("onnx", "onnx")):
            path = Path(f"out.{ending}")
            model.export(form, path)
            yield f"{name} to_{form}", path.read_bytes()


@scenario
def files(folder: Path) -> Given:
    pq.write_table(table(), "a.parquet", row_group_size=250)
    pa.csv.write_csv(table(), "a.csv")
    Path("parts").mkdir()
    for number in range(3):
        pq.write_table(table(300, seed=number), f"parts/{number}.parquet")
    base = scne.SCNRegressor.tuned(max_hidden=10, tuning_epochs=0.5)
    for name, options in {
        "a.parquet": {"weight": "w"},
        "a.csv": {"ignore": ["w"]},
        "parts": {
            "ignore": ["w", "when"],
            "groups": {"t": ["temp_a", "temp_b"], "rest": ["wind_a", "wind_b", "place"]},
        },
    }.items():
        source = scne.open_rows(name, target="y", **options)
        model = scne.SCNERegressor(base, n_estimators=2, random_state=0, networks="per group", trend="none").fit(source)
        yield from of(model, source, f"{name} ")
        yield f"{name} more", model.partial_fit(scne.open_rows(name, target="y", **options)).predict(source)
    yield from of(
        small(random_state=0).fit(scne.open_rows("parts", target="y", ignore=["w", "when", "open"])), source, "single "
    )
    scne.save(
        scne.SCNERegressor(base, n_estimators=2, random_state=0, networks="per group", trend="none").fit(source),
        "m.scne",
        with_system=True,
    )
    yield "with its system", Path("m.scne").read_bytes()
    yield "loaded", scne.load("m.scne").predict(source)


@scenario
def frames(folder: Path) -> Given:
    pandas = __import__("pandas")
    X, y = rows(300)
    frame = pandas.DataFrame(X, columns=[f"{'ab'[k // 3]}_{k}" for k in range(6)])
    model = scne.SCNERegressor(
        small(),
        groups={"a": ["a_0", "a_1", "a_2"], "b": ["b_3", "b_4", "b_5"]},
        random_state=0,
        networks="per group",
        trend="none",
    )
    yield from of(model.fit(frame, y), frame)


@scenario
def dask_arrays(folder: Path) -> Given:
    import dask
    import dask.array as da

    X, y = rows(2_000)
    with dask.config.set(scheduler="synchronous"):
        model = scne.SCNERegressor(
            small(search_rows=800), groups=[[0, 1, 2], [3, 4, 5]], random_state=0, networks="per group", trend="none"
        )
        model.fit(da.from_array(X, chunks=(600, 6)), da.from_array(y, chunks=600))
        yield from of(model, X)


@scenario
def torch_tensors(folder: Path) -> Given:
    try:
        import torch
    except ImportError:
        return
    X, y = rows(400)
    for name, model in {
        "scn": small(),
        "scne": scne.SCNERegressor(small(), n_estimators=2, networks="per group", trend="none"),
    }.items():
        model.set_params(random_state=0, device="cpu").fit(torch.asarray(X), torch.asarray(y))
        yield f"{name} predict", model.predict(X)


@scenario
def checkpoints(folder: Path) -> Given:
    """Stages that a fit leaves when it is stopped near its end, and what comes of going on."""
    os.environ["SCNE_CHECKPOINT_SECONDS"] = "0"
    pq.write_table(table(), "a.parquet")
    source = scne.open_rows("a.parquet", target="y", ignore=["w"])

    def fit(stop_at: str | None) -> scne.SCNERegressor:
        model = scne.SCNERegressor(
            small(max_hidden=8), n_estimators=2, random_state=0, networks="per group", trend="none"
        )

        def listen(progress: scne.Progress) -> None:
            if stop_at is not None and progress.stage.startswith(stop_at):
                raise KeyboardInterrupt

        with scne.listening(listen):
            return model.fit(source, checkpoint="kept")

    for stop_at in ("building", "summing"):
        with contextlib.suppress(KeyboardInterrupt):
            fit(stop_at)
        for path in sorted(Path("kept").rglob("*")):
            if path.is_file() and path.suffix == ".scne-arrays":
                yield f"{stop_at} {path.name}", path.read_bytes()
        yield f"{stop_at} names", sorted(path.name for path in Path("kept").rglob("*"))
    yield from of(fit(None), source)


@scenario
def commands(folder: Path) -> Given:
    from scne.cli import main

    pq.write_table(table(), "a.parquet")

    def run(*arguments: str) -> str:
        import sys

        before, sys.argv = sys.argv, ["scne", *arguments]
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
            main()
        sys.argv = before
        return out.getvalue()

    quick = ("--networks", "2", "--nodes", "8", "--tuning", "0.5", "--seed", "0")
    for name, options in {"text": (), "weight": ("--weight", "w"), "groups": ("--per-group", "--ignore", "w")}.items():
        told = json.loads(run("fit", "a.parquet", "--target", "y", *quick, *options, "--out", "m.scne", "--json"))
        yield f"fit {name}", {key: value for key, value in told.items() if "seconds" not in key}
        yield f"inspect {name}", run("inspect", "m.scne", "--json")
        yield f"evaluate {name}", run("evaluate", "m.scne", "a.parquet", "--json")
        yield f"predict {name}", run("predict", "m.scne", "a.parquet", "--out", "p.csv", "--json")
        yield f"predictions {name}", Path("p.csv").read_bytes()
