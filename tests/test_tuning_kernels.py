"""Tuning of several networks at once, on tensors: the steps of PyTorch and of the kernels are those of `tune_nodes`.

The kernels run here without a GPU, in Triton's interpreter, which has to be chosen before Triton is loaded: another
process takes their steps, once for all tests.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from ensembles import plain_ensemble

from scne import listening
from scne.networks import ACTIVATIONS, SearchRows, TuningSettings, tune_nodes
from scne.networks import _tuning as tuning
from scne.networks.gpu import _tuning as device_tuning

# Rows, batch, columns, targets, weighted, linked, activation, nodes of each network, steps.
CASES = {
    "all rows at once": (110, 256, 5, 1, False, False, "tanh", (5, 9), 3),
    "logistic": (150, 40, 3, 1, False, False, "sigmoid", (7, 4), 4),
    "weights, links and two targets": (150, 20, 40, 2, True, True, "sigmoid", (3, 17), 4),
    "links, many orders": (105, 50, 4, 1, True, True, "tanh", (6,), 9),
}


class Few(TuningSettings):
    """So many steps, whatever the rows."""

    def n_steps(self, rows):
        return self.epochs


def search_rows(n, d, q, weighted, library=None):
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, d))
    Y = np.column_stack([np.sin(2 * X[:, 0]) * X[:, 1] + k * X[:, -1] for k in range(q)])
    weights = 0.5 * rng.integers(1, 4, n) if weighted else np.ones(n)
    inputs, roots = np.column_stack([X, np.ones(n)]).astype(np.float32), np.sqrt(weights).astype(np.float32)
    make = (lambda values: values) if library is None else library.from_numpy
    targets = make(Y * np.sqrt(weights)[:, None])
    # Some rows are only watched.
    keys = np.arange(n, dtype=np.uint64)[: n - 3]
    total = float(weights[: n - 3].sum())
    return SearchRows(make(inputs), targets, make(roots) if weighted else None, n - 3, total, 3.0, keys=keys)


def networks(d, sizes):
    rng = np.random.default_rng(sum(sizes))
    return [rng.standard_normal((d + 1, size)) * (rng.uniform(size=(d + 1, size)) < 0.7) for size in sizes]


def tuned_together(case):
    """Nodes after the steps of a case, on tensors."""
    import torch

    n, batch, d, q, weighted, linked, activation, sizes, steps = case
    generators = [np.random.default_rng(m) for m in range(len(sizes))]
    return device_tuning.tune_together(
        search_rows(n, d, q, weighted, torch),
        networks(d, sizes),
        ACTIVATIONS[activation],
        linked,
        Few(steps, batch_rows=batch),
        generators,
    )


def tuned_alone(case):
    n, batch, d, q, weighted, linked, activation, sizes, steps = case
    rows, settings = search_rows(n, d, q, weighted), Few(steps, batch_rows=batch)
    return [
        tune_nodes(rows, nodes, ACTIVATIONS[activation], linked, settings, np.random.default_rng(m))
        for m, nodes in enumerate(networks(d, sizes))
    ]


def assert_same_steps(found, case):
    before, wanted = networks(case[2], case[7]), tuned_alone(case)
    for nodes, own, alone in zip(found, before, wanted, strict=True):
        assert np.abs(alone - own).max() > 0.02
        np.testing.assert_allclose(nodes, alone, rtol=0, atol=1e-5)
        assert np.array_equal(nodes == 0, own == 0)


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory):
    """What the kernels give for each case, and again for one of them."""
    folder = tmp_path_factory.mktemp("interpreted")
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(
        [sys.executable, str(Path(__file__)), str(folder)], env=environment, capture_output=True, text=True, timeout=600
    )
    assert ran.returncode == 0, ran.stderr
    return folder


@pytest.mark.parametrize("name", CASES)
def test_the_kernels_take_the_steps_of_tune_nodes(name, interpreted):
    found = np.load(interpreted / f"{name}.npz")
    assert_same_steps([found[key] for key in found.files], CASES[name])


def test_the_kernels_give_the_same_bits_again(interpreted):
    first, again = (np.load(interpreted / f"{name}.npz") for name in ("links, many orders", "again"))
    assert all(np.array_equal(first[key], again[key]) for key in first.files)


def test_the_kernels_were_chosen(interpreted):
    """And not the steps of PyTorch; weights that padding adds have stayed zero."""
    seen = json.loads((interpreted / "seen.json").read_text())
    assert set(seen["chosen"]) == {"TuningKernels"}
    assert seen["padding moved"] == 0.0


@pytest.mark.parametrize("name", CASES)
def test_the_steps_of_pytorch_are_those_of_tune_nodes(name, monkeypatch):
    monkeypatch.setattr(device_tuning, "_kernels", lambda: None)
    assert_same_steps(tuned_together(CASES[name]), CASES[name])


def test_long_tuning_goes_round_the_places_on_the_device(monkeypatch):
    """More steps than the device holds batches for."""
    monkeypatch.setattr(device_tuning, "_kernels", lambda: None)
    case = (200, 50, 3, 1, False, True, "tanh", (4, 3), 1_100)
    assert case[-1] > 2 * device_tuning._SEGMENT * device_tuning._SEGMENTS
    heard = []
    with listening(heard.append):
        found = tuned_together(case)
    for nodes, alone in zip(found, tuned_alone(case), strict=True):
        # A thousand steps make more of a rounding.
        np.testing.assert_allclose(nodes, alone, rtol=0, atol=5e-3)
    parts = [step.done for step in heard]
    assert parts == sorted(set(parts))
    assert len(parts) > 3
    assert parts[-1] == tuning.ANNOUNCED_PARTS == heard[-1].total


def test_a_listener_can_end_the_tuning(monkeypatch):
    monkeypatch.setattr(device_tuning, "_kernels", lambda: None)
    case = (200, 50, 3, 1, False, True, "tanh", (4, 3), 1_100)
    heard = []

    def enough(step):
        heard.append(step)
        raise StopIteration

    with listening(enough):
        found = tuned_together(case)
    assert len(heard) == 1
    whole = tuned_together(case)
    for nodes, own, ended in zip(found, networks(3, (4, 3)), whole, strict=True):
        assert np.abs(nodes - own).max() > 0.02
        assert not np.array_equal(nodes, ended)


@pytest.mark.parametrize(
    ("n", "batch", "steps"), [(100, 100, 7), (100, 30, 7), (100, 30, 1), (100, 30, 9), (100, 99, 5), (101, 50, 4)]
)
def test_batches_are_random_orders_cut_to_pieces(n, batch, steps):
    places = np.concatenate(list(tuning.batch_blocks(n, batch, steps, np.random.default_rng(3))))
    generator, position, order = np.random.default_rng(3), n, np.arange(n)
    wanted = []
    for _ in range(steps):
        if batch < n and position + batch > n:
            order, position = generator.permutation(n), 0
        wanted.append(order[position : position + batch] if batch < n else order)
        position += batch
    assert np.array_equal(places, wanted)


def interpret(folder):
    """Run in the other process."""
    from scne.networks.gpu import _tuning_launches as launches

    # A recording is made of many steps; here they would be slow and idle.
    launches.TuningKernels.recorded_steps = 1
    chosen, moved = [], []
    plain = device_tuning._steps

    def watched(*arguments):
        steps = plain(*arguments)
        chosen.append((type(steps).__name__, arguments[1], arguments[1].parameters.clone()))
        return steps

    device_tuning._steps = watched
    for name, case in [*CASES.items(), ("again", CASES["links, many orders"])]:
        np.savez(folder / f"{name}.npz", *tuned_together(case))
    for _, laid_out, before in chosen:
        moved.append(float((laid_out.parameters - before)[laid_out.rates == 0.0].abs().max()))
    report = {"chosen": [name for name, *_ in chosen], "padding moved": max(moved)}
    (folder / "seen.json").write_text(json.dumps(report))


if __name__ == "__main__":
    interpret(Path(sys.argv[1]))


@pytest.mark.parametrize(("sums", "tuned"), [(1, 1), (3, 2)], ids=["first", "on all rows"])
def test_a_fit_that_was_cut_after_tuning_does_not_tune_again(sums, tuned, tmp_path, monkeypatch):
    """Networks that are tuned together on a device are kept together; the third sums are of those on all rows."""
    import torch

    from scne import SCNRegressor
    from scne.fitting import _building, _fit

    class Cut(Exception):
        pass

    tunings, calls = [], []
    together, system = _building.tune_together, _fit.ensemble_system

    def cut(*arguments, **named):
        calls.append(arguments)
        if len(calls) == sums:
            raise Cut
        return system(*arguments, **named)

    def counted(*arguments):
        tunings.append(arguments)
        return together(*arguments)

    rng = np.random.default_rng(0)
    X = torch.tensor(rng.uniform(-1, 1, (1_500, 4)))
    y = torch.sin(3 * X[:, 0]) * X[:, 1]
    model = plain_ensemble(SCNRegressor.tuned(max_hidden=6), n_estimators=2, random_state=0)
    # On a processor, with PyTorch's steps.
    monkeypatch.setattr(_building, "tunes_on_device", lambda _: True)
    monkeypatch.setattr(device_tuning, "_kernels", lambda: None)
    monkeypatch.setattr(_building, "tune_together", counted)
    whole = model.fit(X, y).predict(X)
    with monkeypatch.context() as patched:
        patched.setattr(_fit, "ensemble_system", cut)
        with pytest.raises(Cut):
            model.fit(X, y, checkpoint=tmp_path / "kept")
    assert len(tunings) == 2 + tuned
    resumed = model.fit(X, y, checkpoint=tmp_path / "kept").predict(X)
    assert len(tunings) == 4
    assert torch.equal(resumed, whole)
