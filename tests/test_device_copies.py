"""What travels between the host and a device, seen on PyTorch's tensors (`tests/conftest.py` says where these run)."""

import numpy as np
import pytest
import torch
from ensembles import plain_ensemble
from test_device import rows

from scne import SCNERegressor, SCNRegressor


@pytest.mark.parametrize("weighted", [False, True])
def test_nothing_as_long_as_the_rows_is_brought_here(weighted, monkeypatch):
    """What a fit copies from the device are sums, choices of a few rows, and the weights once, to find their scale."""
    from scne.rows import _arrays

    longest, bring = [], _arrays._from_torch

    def watched(tensor):
        longest.append(max(tensor.shape, default=0))
        return bring(tensor)

    monkeypatch.setattr(_arrays, "_from_torch", watched)
    monkeypatch.setattr("scne.estimators._scn.SPARSE_POOL_ROWS", 900)
    X, y = rows(5_000)
    weights = torch.tensor(np.arange(5_000.0) % 3) if weighted else None
    network = SCNRegressor(6, scaling="ramps", pool="sparse", search_rows=4_000, validation_fraction=0.2)
    plain_ensemble(network, n_estimators=2, trend="judged", random_state=0).fit(
        torch.tensor(X), torch.tensor(y), weights
    )
    if weighted:
        longest.remove(5_000)
    assert 0 < max(longest) <= 1_024


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cls", [SCNRegressor, SCNERegressor])
def test_arrays_are_looked_through_on_the_device(cls, weighted):
    """NumPy's rows for a fit on a device: the sentences are those of the processor, and so is the model."""
    X, y = rows(300)
    weights = np.arange(300.0) if weighted else None
    base = {"max_hidden": 5, "search_rows": 200, "precision": "float64"}
    given = base if cls is SCNRegressor else {"estimator": SCNRegressor(**base), "n_estimators": 2}
    here, there = (cls(device=device, random_state=0, **given) for device in ("cpu", "cpu:0"))
    np.testing.assert_allclose(
        there.fit(X, y, weights).predict(X), here.fit(X, y, weights).predict(X), rtol=1e-7, atol=1e-8
    )
    gappy = X.copy()
    gappy[[7, 9], 3] = np.nan
    np.testing.assert_allclose(
        there.fit(gappy, y, weights).predict(gappy), here.fit(gappy, y, weights).predict(gappy), rtol=1e-7, atol=1e-8
    )
    for infinite in (np.inf, -np.inf):
        bad = X.copy()
        bad[[7, 9], 3] = infinite
        said = [pytest.raises(ValueError, match="2 of its 300 rows, first at row 7") for _ in range(2)]
        for model, refusal in zip((here, there), said, strict=True):
            with refusal as found:
                model.fit(bad, y, weights)
            assert "in column 3" in str(found.value)
