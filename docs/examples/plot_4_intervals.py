"""
Intervals that hold what they promise
=====================================

Intervals come from rows that the fit held out, by split conformal prediction. They are right for any noise, as long as
new rows come from where those rows came from.
"""

# %%
# Noise with heavy tails: two rows in a hundred are far off.
import matplotlib.pyplot as plt
import numpy as np

from scne import PredictionIntervalDisplay, SCNRegressor

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, (8_000, 2))
y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_t(2.5, 8_000)
train, test = slice(0, 4_000), slice(4_000, None)

model = SCNRegressor(60, validation_fraction=0.25, random_state=0).fit(
    X[train], y[train]
)
prediction, lower, upper = model.predict(X[test], interval=0.9)
print(
    f"{np.mean((lower <= y[test]) & (y[test] <= upper)):.1%} of new rows lie in the interval of 90 %"
)

# %%
# Predicted against true values. A true value lies in its interval when its point lies in the band.
PredictionIntervalDisplay.from_estimator(model, X[test], y[test], interval=0.9)

# %%
# All levels at once: promised against found.
levels = np.linspace(0.05, 0.95, 19)
found = []
for level in levels:
    _, low, high = model.predict(X[test], interval=level)
    found.append(np.mean((low <= y[test]) & (y[test] <= high)))
_, ax = plt.subplots(layout="constrained")
ax.plot([0, 1], [0, 1], color="0.7", label="promised")
ax.plot(levels, found, "o", label="found")
ax.set(
    xlabel="promised share", ylabel="share of new rows in the interval", aspect="equal"
)
ax.legend()
