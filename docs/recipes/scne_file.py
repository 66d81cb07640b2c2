"""A `.scne` file as a model of MLflow: `mlflow_model.py` beside it says how to use it.

MLflow keeps this file as the code of the model and reads the numbers from the `.scne` file, so nothing is pickled.
"""

import mlflow

import scne


class ScneFile(mlflow.pyfunc.PythonModel):
    """Predictions of the model file that is called `model` among the artifacts."""

    def load_context(self, context):
        """Read the file, which runs no code."""
        self.model = scne.load(context.artifacts["model"])

    def predict(self, context, model_input, params=None):
        """Predictions, or an interval with `params={"interval": 0.9}`."""
        level = (params or {}).get("interval", 0.0)
        if not level:
            return self.model.predict(model_input)
        found = self.model.predict(model_input, interval=level)
        return {
            "prediction": found.prediction,
            "lower": found.lower,
            "upper": found.upper,
        }


mlflow.models.set_model(ScneFile())
