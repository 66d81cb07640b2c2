"""How the stored models were made: run once for each format version, ``python make_stored_models.py``.

Files of a version are never made again: they stand for those that users have. What is there is left alone, so models
that are younger than their format (the classifiers, in version 3) are made by running it once more.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.base import is_classifier

from scne import DNNERegressor, RVFLRegressor, SCNEClassifier, SCNERegressor, SCNRegressor, open_rows
from scne.estimators import save_model
from scne.models import FORMAT_VERSION

FOLDER = Path(__file__).parent
# Versions 1 and 2 had "TEMP", "PRES", "SO2" and "Ölstand".
NAMES = ["year", "month", "day", "Ölstand"]
MODELS = {
    # Version 1 had a plain network with direct links for each group here, versions up to 4 three ramps to a column.
    "scne": SCNERegressor(
        SCNRegressor.tuned(max_hidden=5),
        groups={"date": slice("year", "day"), "gases": ["Ölstand"]},
        n_estimators=2,
        networks="across",
        # Version 2 had "linear".
        trend="judged",
        random_state=1,
    ),
    "dnne": DNNERegressor(
        RVFLRegressor(4, direct_link=False, scaling="min-max", activation="tanh"),
        groups=[[0, np.int64(1)], (2,), [True, False, False, True]],
        solver="gauss-seidel",
        decorrelation=0.7,
        ridge=[0.1, 0.2, 0.3],
        random_state=2,
    ),
    "scn": SCNRegressor(5, n_candidates=20, batch_size=2, scaling="standard", random_state=3),
    "rvfl": RVFLRegressor(5, scope=2.0, random_state=4),
    # From version 3 on.
    "scne_classes": SCNEClassifier(
        SCNRegressor(5, n_candidates=20, validation_fraction=0.25),
        groups={"date": slice("year", "day"), "Öl": ["Ölstand"]},
        networks="per group",
        trend="judged",
        class_weight={"dry": 1.0, "Nässe": 2.0},
        random_state=5,
    ),
    # Versions 3 and 4 had an SCNClassifier, whose files name it still.
    "scn_classes": SCNEClassifier(
        SCNRegressor(5, n_candidates=20, validation_fraction=0.2),
        n_estimators=1,
        trend="none",
        class_weight="balanced",
        device="cpu",
        random_state=6,
    ),
}


def main() -> None:
    """Fit, save, and write the predictions beside."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(120, 4)).round(3)
    flat = np.sin(inputs[:, 0]) + inputs[:, 2] * inputs[:, 3]
    drawn = inputs
    for name, model in MODELS.items():
        inputs = drawn
        # Version 5 is that of files with means by level, version 6 that of scales of errors.
        path = FOLDER / f"v{min(FORMAT_VERSION, 4)}_{name}.scne"
        if path.exists():
            continue
        targets = np.column_stack([flat, inputs[:, 1] ** 2]) if name in ("dnne", "rvfl") else flat
        if name == "scne":
            days = np.arange(120)
            inputs = np.column_stack([2000 + days // 40, days % 12 + 1, days % 28 + 1, drawn[:, 0]])
            targets = np.sin(inputs[:, 3]) + 0.1 * drawn[:, 1]
        if name == "scne_classes":
            targets = np.where(flat > 0.2, "Nässe", "dry")
        elif name == "scn_classes":
            targets = np.array([40, -7, 11])[np.digitize(flat, [-0.3, 0.5])]
        frame = pd.DataFrame(inputs, columns=NAMES)
        by_name = name in ("scne", "scne_classes")
        model.fit(frame if by_name else inputs, targets)
        save_model(model, path, with_system=name == "dnne")
        rows = inputs[:6] if name == "scne" else 1.5 * inputs[:6]
        seen = pd.DataFrame(rows, columns=NAMES) if by_name else rows
        expected = {"inputs": rows.tolist(), "predictions": model.predict(seen).tolist()}
        if is_classifier(model):
            expected["probabilities"] = model.predict_proba(seen).tolist()
        path.with_suffix(".json").write_text(json.dumps(expected) + "\n")


def from_files() -> None:
    """The same for a model that was fitted on files; from version 3 on."""
    path = FOLDER / f"files_v{min(FORMAT_VERSION, 5)}.scne"
    if path.exists():
        return
    hours = np.datetime64("2024-01-01T00", "us") + np.timedelta64(7, "h") * np.arange(600)
    row = np.arange(600)
    rows = pa.table(
        {
            "TEMP": pa.array([None if place % 17 == 0 else float(place % 23) for place in row]),
            "wd": np.array(["N", "S", "W"])[row % 3],
            "code": 7 + row % 4,
            "rain": row % 5 == 0,
            # From version 5 on: means by level, of texts and of numbers that name things.
            "place": [f"place {11 * place % 13}" for place in row],
            "person": 900 + row % 101,
            "t": pa.array(hours, pa.timestamp("us", "Europe/Berlin")),
            "y": np.sin(row / 9) + row % 3 + 3 * np.sin((row % 101) ** 2),
        }
    )
    # The first rows stay; all are needed only for the fit.
    pq.write_table(rows, path.with_suffix(".parquet"))
    opened = open_rows(path.with_suffix(".parquet"), target="y", kinds={"code": "category"})
    base = SCNRegressor(4, n_candidates=20, random_state=0)
    model = SCNERegressor(base, networks="per group", trend="none", random_state=1).fit(opened)
    save_model(model, path)
    path.with_suffix(".json").write_text(json.dumps(model.predict(opened)[:6].tolist()) + "\n")
    pq.write_table(rows[:6], path.with_suffix(".parquet"))


if __name__ == "__main__":
    main()
    from_files()
