"""Save a model for MLflow without pickling anything, and use what MLflow reads back.

    pip install mlflow-skinny pandas
    python docs/recipes/mlflow_model.py

In a run, `mlflow.pyfunc.log_model(name="air", ...)` takes what `save_model` takes here.
"""

import tempfile
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
from mlflow.models import infer_signature

import scne

CODE = Path(__file__).with_name("scne_file.py")


def main() -> None:
    """Fit, save, read back, compare."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-2, 2, (500, 3)), columns=["a", "b", "c"])
    y = np.sin(X["a"]) + X["b"] * X["c"]
    model = scne.SCNERegressor(effort=1, random_state=0).fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/air.scne")
        mlflow.pyfunc.save_model(
            f"{folder}/served",
            python_model=str(CODE),
            artifacts={"model": f"{folder}/air.scne"},
            signature=infer_signature(X, model.predict(X), params={"interval": 0.0}),
            input_example=X[:5],
            pip_requirements=[f"scne=={scne.__version__}"],
        )
        served = mlflow.pyfunc.load_model(f"{folder}/served")
        assert np.array_equal(served.predict(X), model.predict(X))
        interval = served.predict(X[:3], params={"interval": 0.9})
        assert np.array_equal(
            interval["lower"], model.predict(X[:3], interval=0.9).lower
        )
        assert not list(Path(folder, "served").rglob("*.pkl"))
    print("MLflow predicts what the model predicts, and holds no pickle.")


if __name__ == "__main__":
    main()
