"""Contributions of what `predict` takes: Dask collections, files as a stream, arrays of other libraries."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from scne import SCNEClassifier, SCNERegressor
from scne.estimators.inputs import _explained_rows
from scne.explain import Explainer

RNG = np.random.default_rng(2)
FRAME = pd.DataFrame(RNG.uniform(-1, 1, (240, 3)), columns=list("abc")).assign(kind=RNG.choice(["x", "y"], 240))
Y = FRAME.a * FRAME.b + np.where(FRAME.kind == "x", FRAME.c, 0.0)
NUMBERS = FRAME[list("abc")].to_numpy()


@pytest.fixture(scope="module")
def model():
    return SCNERegressor(effort=1, groups={"left": ["a", "b"], "right": ["c", "kind"]}, random_state=0).fit(FRAME, Y)


@pytest.mark.parametrize("options", [{}, {"by": "sources", "interactions": True}])
def test_dask_frames_are_explained_lazily(model, options):
    rows = dd.from_pandas(FRAME, npartitions=3)
    found = model.contributions(rows, FRAME[:30], **options)
    assert isinstance(found.values, da.Array)
    expected = model.contributions(FRAME, FRAME[:30], **options)
    assert (found.names, found.base_value) == (expected.names, expected.base_value)
    np.testing.assert_allclose(found.values.compute(), expected.values, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.predictions.compute(), model.predict(FRAME), rtol=0, atol=1e-10)


def test_dask_arrays_of_several_outputs_and_classes():
    targets = np.column_stack([NUMBERS[:, 0] ** 2, NUMBERS[:, 1]])
    for fitted in (
        SCNERegressor(effort=1, random_state=0).fit(NUMBERS, targets),
        SCNEClassifier(effort=1, random_state=0).fit(NUMBERS, np.digitize(NUMBERS[:, 0], [-0.3, 0.3])),
    ):
        rows = da.from_array(NUMBERS, chunks=(100, -1))
        values = fitted.contributions(rows, NUMBERS[:20]).values
        expected = fitted.contributions(NUMBERS, NUMBERS[:20]).values
        assert values.shape == expected.shape
        assert values.chunks[0] == (100, 100, 40)
        np.testing.assert_allclose(values.compute(), expected, rtol=0, atol=1e-12)


def test_of_dask_a_background_is_needed(model):
    with pytest.raises(ValueError, match="no background is drawn; pass background"):
        model.contributions(dd.from_pandas(FRAME, npartitions=2))
    with pytest.raises(TypeError, match="background is a Dask collection"):
        model.contributions(FRAME, dd.from_pandas(FRAME, npartitions=2))


def test_files_are_a_stream(model, monkeypatch, tmp_path):
    FRAME.to_parquet(tmp_path / "rows.parquet")
    most, inner = [], Explainer.of
    monkeypatch.setattr(_explained_rows, "_ROWS_TOGETHER", 50)
    monkeypatch.setattr(
        Explainer, "of", lambda explainer, inputs, engine: most.append(len(inputs)) or inner(explainer, inputs, engine)
    )
    found = model.contributions(tmp_path / "rows.parquet", FRAME[:30])
    assert max(most) == 50
    np.testing.assert_allclose(found.values, model.contributions(FRAME, FRAME[:30]).values, rtol=0, atol=1e-12)


def test_backgrounds_without_rows_and_sources_with_a_taken_name_are_refused(model):
    with pytest.raises(ValueError, match="background has no rows"):
        model.contributions(FRAME, FRAME[:0])
    with pytest.raises(ValueError, match="A source is called 'other columns'"):
        model.contributions(FRAME, FRAME[:9], by={"other columns": ["a"], "more": ["b"]})
