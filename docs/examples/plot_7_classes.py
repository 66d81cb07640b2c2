"""
Calibrated class probabilities
==============================

A classifier is a regression on indicators of the classes. Its outputs are calibrated on held-out rows, so that four in
five of the rows with a predicted probability of 0.8 belong to that class.
"""

# %%
# Two moons with a lot of noise.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibrationDisplay
from sklearn.datasets import make_moons
from sklearn.inspection import DecisionBoundaryDisplay

from scne import SCNEClassifier

X, y = make_moons(6_000, noise=0.35, random_state=0)
train, test = slice(0, 2_000), slice(2_000, None)
model = SCNEClassifier(random_state=0).fit(X[train], y[train])
print(f"accuracy on new rows {model.score(X[test], y[test]):.3f}")

# %%
# The probability of the second class.
_, ax = plt.subplots(layout="constrained")
DecisionBoundaryDisplay.from_estimator(
    model,
    X,
    response_method="predict_proba",
    plot_method="pcolormesh",
    cmap="RdBu",
    vmin=0,
    vmax=1,
    alpha=0.6,
    ax=ax,
)
ax.scatter(*X[test][:400].T, c=np.where(y[test][:400] == 1, "tab:blue", "tab:red"), s=8)

# %%
# Predicted probabilities against observed frequencies on 4,000 new rows.
_, ax = plt.subplots(layout="constrained")
CalibrationDisplay.from_estimator(model, X[test], y[test], n_bins=10, ax=ax)
