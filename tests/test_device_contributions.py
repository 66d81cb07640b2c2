"""Contributions to rows of other array libraries are those of the same rows in NumPy."""

import array_api_strict
import numpy as np
import pytest

from scne import SCNERegressor

try:
    import torch
except ImportError:  # .ci/run installs PyTorch and runs these tests with it
    torch = None

LIBRARIES = {"strict": array_api_strict.asarray}
if torch is not None:
    LIBRARIES["torch"] = torch.asarray
library = pytest.mark.parametrize("make", list(LIBRARIES.values()), ids=list(LIBRARIES))
RNG = np.random.default_rng(0)
NUMBERS = RNG.uniform(-1, 1, (300, 4))
Y = np.sin(3 * NUMBERS[:, 0]) + NUMBERS[:, 1] * NUMBERS[:, 2] + 0.1 * RNG.standard_normal(300)


@library
def test_rows_and_background(make):
    fitted = SCNERegressor(effort=1, device="cpu", random_state=0).fit(NUMBERS, Y)
    found = fitted.contributions(make(NUMBERS[:40]), make(NUMBERS[100:130]))
    expected = fitted.contributions(NUMBERS[:40], NUMBERS[100:130])
    np.testing.assert_array_equal(found.values, expected.values)


@library
def test_a_model_that_was_fitted_to_such_rows(make):
    fitted = SCNERegressor(effort=1, random_state=0).fit(make(NUMBERS), make(Y))
    rows = make(NUMBERS[:40])
    found = fitted.contributions(rows, NUMBERS[100:130], by={"pair": [0, 1]})
    predicted = np.asarray(fitted.predict(rows))
    np.testing.assert_allclose(found.predictions, predicted, rtol=0, atol=1e-10)
