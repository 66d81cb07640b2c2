"""How the stored models were made: run once for each format version, ``python make_stored_models.py``.

Files of a version are never made again: they stand for those that users have.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from scne import DNNERegressor, RVFLRegressor, SCNERegressor, SCNRegressor
from scne.models import FORMAT_VERSION, save_model

FOLDER = Path(__file__).parent
# Versions 1 and 2 had "TEMP", "PRES", "SO2" and "Ölstand".
NAMES = ["year", "month", "day", "Ölstand"]
MODELS = {
    # Version 1 had a plain SCNRegressor(5, n_candidates=20, direct_link=True, ...) for each group here.
    "scne": SCNERegressor(
        SCNRegressor.tuned(max_hidden=5, n_ramps=3),
        groups={"date": slice("year", "day"), "gases": ["Ölstand"]},
        n_estimators=2,
        networks="across",
        # Version 2 had "linear".
        trend="judged",
        random_state=1,
    ),
    "dnne": DNNERegressor(
        RVFLRegressor(4, direct_link=False, clip_inputs=False, activation="tanh"),
        groups=[[0, np.int64(1)], (2,), [True, False, False, True]],
        solver="gauss-seidel",
        decorrelation=0.7,
        ridge=[0.1, 0.2, 0.3],
        random_state=2,
    ),
    "scn": SCNRegressor(5, n_candidates=20, batch_size=2, scaling="standard", random_state=3),
    "rvfl": RVFLRegressor(5, scope=2.0, random_state=4),
}


def main() -> None:
    """Fit, save, and write the predictions beside."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(120, 4)).round(3)
    flat = np.sin(inputs[:, 0]) + inputs[:, 2] * inputs[:, 3]
    drawn = inputs
    for name, model in MODELS.items():
        inputs = drawn
        path = FOLDER / f"v{FORMAT_VERSION}_{name}.scne"
        if path.exists():
            raise SystemExit(f"{path} exists, and stored models are never made again.")
        targets = np.column_stack([flat, inputs[:, 1] ** 2]) if name in ("dnne", "rvfl") else flat
        if name == "scne":
            days = np.arange(120)
            inputs = np.column_stack([2000 + days // 40, days % 12 + 1, days % 28 + 1, drawn[:, 0]])
            targets = np.sin(inputs[:, 3]) + 0.1 * drawn[:, 1]
        frame = pd.DataFrame(inputs, columns=NAMES)
        model.fit(frame if name == "scne" else inputs, targets)
        save_model(model, path, with_system=name == "dnne")
        rows = inputs[:6] if name == "scne" else 1.5 * inputs[:6]
        seen = pd.DataFrame(rows, columns=NAMES) if name == "scne" else rows
        expected = {"inputs": rows.tolist(), "predictions": model.predict(seen).tolist()}
        path.with_suffix(".json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    main()
