"""
Intervals that keep their coverage
==================================

Intervals are computed from held-out rows, by split conformal prediction. They are valid for any noise, as long as
new rows have the same distribution as those rows.
"""

# %%
# Noise with heavy tails: two rows in a hundred are far away from the others.
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
    f"{np.mean((lower <= y[test]) & (y[test] <= upper)):.1%} of new rows lie in the 90 % interval"
)

# %%
# Predicted against true values. A true value lies in its interval when its point lies in the band.
PredictionIntervalDisplay.from_estimator(model, X[test], y[test], interval=0.9)

# %%
# All levels at once: nominal against actual coverage.
levels = np.linspace(0.05, 0.95, 19)
actual = []
for level in levels:
    _, low, high = model.predict(X[test], interval=level)
    actual.append(np.mean((low <= y[test]) & (y[test] <= high)))
_, ax = plt.subplots(layout="constrained")
ax.plot([0, 1], [0, 1], color="0.7", label="nominal")
ax.plot(levels, actual, "o", label="actual")
ax.set(
    xlabel="nominal coverage",
    ylabel="share of new rows in the interval",
    aspect="equal",
)
ax.legend()
