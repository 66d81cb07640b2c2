"""A search with recorded kernels finds what the plain one finds, on the same tensors.

The kernels run here without a GPU, in Triton's interpreter, which has to be chosen before Triton is loaded: another
process searches every case in both ways, once for all tests.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

SETTINGS = {
    "max_hidden": 6,
    "tol": 0.0,
    "n_candidates": 12,
    "batch_size": 1,
    "scopes": (0.5, 1.0, 5.0, 20.0),
    "contraction": (0.9, 0.99, 0.999, 0.9999),
    "scope_search": "first",
    "activation": "sigmoid",
    "criterion": "paper",
    "direct_link": False,
    "ridge": 0.0,
}
ORTHOGONAL = {"criterion": "orthogonal", "scope_search": "together"}
# What is changed of the settings, and of the rows: how many, columns, outputs, weighted, some of them watched.
CASES = {
    "the paper's": ({}, {}),
    "tanh": ({"activation": "tanh"}, {}),
    "orthogonal": (ORTHOGONAL, {}),
    "scopes in turn": ({"criterion": "orthogonal", "ridge": 0.5}, {}),
    "batches": ({**ORTHOGONAL, "batch_size": 3}, {}),
    "a ridge": ({"ridge": 2.0}, {}),
    "two outputs": ({}, {"q": 2}),
    "two outputs, orthogonal": ({**ORTHOGONAL, "ridge": 0.1}, {"q": 2}),
    "weights": ({}, {"weighted": True}),
    "weights, orthogonal": ({**ORTHOGONAL, "batch_size": 2}, {"weighted": True}),
    "watched rows": ({"max_hidden": 12}, {"watched": True}),
    "many columns": ({"max_hidden": 4}, {"d": 70, "n": 130}),
    "many columns, orthogonal": ({**ORTHOGONAL, "max_hidden": 4, "n_candidates": 17}, {"d": 100, "n": 130}),
    "more nodes than a program's": ({**ORTHOGONAL, "max_hidden": 18, "scopes": (1.0, 4.0), "ridge": 0.01}, {}),
    "no candidate is good enough": ({"contraction": (0.5, 0.8)}, {}),
    "good enough soon": ({"tol": 0.5}, {}),
    "a constant target": ({}, {"constant": True}),
}
# Pools in which half of the candidates, or all, are always the same: chosen once, they depend on present nodes.
REPEATED = {
    "half of a pool repeats itself": (0.5, {}),
    "half of a pool, orthogonal": (0.5, ORTHOGONAL),
    "half of a pool, in batches": (0.5, {**ORTHOGONAL, "batch_size": 2}),
    "all pools are the same": (1.0, {"max_hidden": 26}),
}


def prepared(n=100, d=3, q=1, weighted=False, watched=False, constant=False):
    import torch

    from scne.networks import prepare_search
    from scne.passes import DeviceEngine
    from scne.rows import ArrayRows, ColumnScaling

    rng = np.random.default_rng(n + d)
    X = rng.uniform(-1, 1, (n, d))
    y = np.column_stack([np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.05 * rng.standard_normal(n), X[:, 0] ** 2])[:, :q]
    y = np.zeros_like(y) if constant else y
    weights = torch.from_numpy(rng.integers(0, 3, n).astype(float)) if weighted else None
    rows = ArrayRows(torch.from_numpy(X), torch.from_numpy(y.copy()), weights)
    engine = DeviceEngine(rows.inputs, "float32")
    scaling, aim = ColumnScaling(np.zeros(d), np.ones(d)), ColumnScaling(np.zeros(q), np.ones(q))
    held = np.arange(0, n, 5) if watched else None
    return prepare_search(rows, np.arange(d), scaling, aim, engine, held, dtype=np.float32), engine


def described(built):
    found = {name: getattr(built, name) for name in ("weights", "training_curve", "scopes", "contractions")}
    return {**{name: values.tolist() for name, values in found.items()}, "reason": built.stop_reason.name}


def both(changed, shape):
    from scne.networks import SearchSettings, build_network
    from scne.networks.gpu import _basis

    rows, engine = prepared(**shape)
    settings = SearchSettings(**{**SETTINGS, **changed})
    used = []
    fused = _basis.fused_search

    def counted(*arguments):
        used.append(fused(*arguments))
        return used[-1]

    _basis.fused_search = counted
    recorded = build_network(rows, settings, 3, 1, engine, 1e9)
    assert used[-1] is not None, "no kernel was recorded"
    _basis.fused_search = lambda *_: None
    plain = build_network(rows, settings, 3, 1, engine, 1e9)
    _basis.fused_search = fused
    return {"recorded": described(recorded), "plain": described(plain)}


def cut_and_resumed():
    """A search whose first half is given to it, beside one that found it."""
    from scne.networks import SearchSettings, build_network

    rows, engine = prepared(watched=True)
    settings = SearchSettings(**SETTINGS)
    whole = build_network(rows, settings, 3, 1, engine, 1e9)
    half = type(whole.chosen)(*(values[:3] for values in whole.chosen))
    resumed = build_network(rows, settings, 3, 1, engine, 1e9, resume=half)
    return {"recorded": described(whole), "resumed": described(resumed)}


def search_all():
    """All cases, in a process in which Triton interprets its kernels."""
    from scne.networks import _pools
    from scne.networks.gpu import _pool_launches

    # So that a few nodes are enough to be shared out among programs.
    _pool_launches._PROJECTED_NODES = 16
    found = {name: both(changed, shape) for name, (changed, shape) in CASES.items()}
    drawn = _pools.uniform_pool
    for name, (share, changed) in REPEATED.items():

        def repeating(generator, d, n, scopes, *_, share=share):
            pool = drawn(generator, d, n, scopes)
            same = round(share * n)
            pool[:, :same] = drawn(np.random.default_rng(1), d, same, [5.0])
            return pool

        _pools.uniform_pool = repeating
        found[name] = both(changed, {})
    _pools.uniform_pool = drawn
    found["cut"] = cut_and_resumed()
    sys.stdout.write(json.dumps(found))


@pytest.fixture(scope="module")
def searched():
    variables = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, __file__], env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3_000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("case", [*CASES, *REPEATED])
def test_recorded_kernels_find_the_same_network(searched, case):
    recorded, plain = searched[case]["recorded"], searched[case]["plain"]
    assert recorded["reason"] == plain["reason"]
    for name in ("weights", "scopes", "contractions"):
        np.testing.assert_array_equal(recorded[name], plain[name])
    np.testing.assert_allclose(recorded["training_curve"], plain["training_curve"], rtol=2e-5, atol=1e-12)


def test_a_search_that_was_cut_goes_on_as_it_would_have(searched):
    assert searched["cut"]["recorded"] == searched["cut"]["resumed"]


def test_cases_reach_what_they_are_for(searched):
    """Every reason to stop, further scopes, relaxed contractions and dependent candidates occur."""
    found = {case: kinds["recorded"] for case, kinds in searched.items()}
    assert {"MAX_HIDDEN", "NO_CANDIDATE", "TOLERANCE"} <= {one["reason"] for one in found.values()}
    assert max(found["the paper's"]["scopes"]) > min(found["the paper's"]["scopes"])
    assert len(set(found["the paper's"]["contractions"])) > 1
    assert len(found["all pools are the same"]["scopes"]) < 20


if __name__ == "__main__":
    search_all()
