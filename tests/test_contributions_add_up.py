"""Terms add up to predictions: any estimator, trend, encoding of columns, outputs, classes and way to share."""

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from scne import DNNERegressor, RVFLRegressor, SCNEClassifier, SCNERegressor, SCNRegressor

N = 120


@st.composite
def tables(draw):
    """Frames of numbers with gaps, texts of few and of many levels, dates, true and false, and a constant."""
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    frame = pd.DataFrame({"n0": rng.normal(size=N), "n1": rng.uniform(-9, 1e6, N)})
    if draw(st.booleans()):
        frame["gaps"] = np.where(rng.random(N) < 0.2, np.nan, rng.normal(size=N))
    if draw(st.booleans()):
        frame["kind"] = rng.choice(["oak", "ash", "elm"], N)
    if draw(st.booleans()):
        frame["levels"] = rng.choice([f"level {k}" for k in range(20)], N)
    if draw(st.booleans()):
        frame["day"] = pd.Timestamp("2021-03-01") + pd.to_timedelta(rng.integers(900, size=N), "D")
    if draw(st.booleans()):
        frame = frame.assign(yes=rng.random(N) < 0.5, constant=1.0)
    y = frame.n0 * (frame.n1 > 5e5) + frame.n0**2 + 0.1 * rng.normal(size=N)
    return frame, y.to_numpy(), rng


ACTIVATION = st.sampled_from(["tanh", "sigmoid"])
NETWORK = st.one_of(
    st.builds(SCNRegressor, st.integers(1, 12), activation=ACTIVATION, pool=st.sampled_from(["uniform", "sparse"])),
    st.builds(RVFLRegressor, st.integers(1, 12), activation=ACTIVATION, direct_link=st.booleans()),
)
TREND = st.sampled_from(["judged", "linear", "none"])
ENSEMBLES = st.fixed_dictionaries(
    {"networks": st.sampled_from(["across", "per group"]), "trend": TREND, "estimator": NETWORK}
)


@settings(max_examples=40, deadline=None)
@given(
    table=tables(),
    network=NETWORK,
    ensemble=ENSEMBLES,
    kind=st.sampled_from(["network", "ensemble", "tuned", "drawn", "classes", "limited"]),
    outputs=st.integers(1, 3),
    by=st.sampled_from(["columns", "sources", "mapping"]),
    interactions=st.booleans(),
)
def test_terms_add_up_to_predictions(table, network, ensemble, kind, outputs, by, interactions):
    frame, y, rng = table
    half = len(frame.columns) // 2
    groups = {"first": list(frame)[:half], "rest": list(frame)[half:]}
    target = y if outputs == 1 else np.column_stack([y, rng.normal(size=(N, outputs - 1))])
    shared = {"groups": groups, "n_estimators": 2, "random_state": 0}
    if kind == "network":
        model = network.set_params(random_state=0).fit(frame, target)
    elif kind == "ensemble":
        model = SCNERegressor(**ensemble, **shared).fit(frame, target)
    elif kind == "tuned":
        model = SCNERegressor(effort=1, trend=ensemble["trend"], **shared).fit(frame, target)
    elif kind == "drawn":
        model = DNNERegressor(RVFLRegressor(8), trend=ensemble["trend"], **shared).fit(frame, target)
    elif kind == "limited":
        model = SCNERegressor(effort=1, sources_per_node=1, **shared).fit(frame, target)
    else:
        edges = np.quantile(y, np.linspace(0, 1, outputs + 2)[1:-1])
        model = SCNEClassifier(SCNRegressor(8), **shared).fit(frame, np.digitize(y, edges))
    if by == "sources" and kind == "network":
        by = "mapping"
    rows = frame[:7]
    found = model.contributions(
        rows,
        frame[20:33],
        by={"some": [frame.columns[0], frame.columns[-1]]} if by == "mapping" else by,
        interactions=interactions and by != "columns",
    )
    expected = (model.regressor_ if kind == "classes" else model).predict(rows)
    scale = max(1.0, float(np.abs(expected).max()))
    assert found.predictions.shape == expected.shape
    np.testing.assert_allclose(found.predictions, expected, rtol=0, atol=1e-10 * scale)
