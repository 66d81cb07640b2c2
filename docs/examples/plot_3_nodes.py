"""
A network grows
===============

Every node is the best of a pool of random candidates. This example follows the error while nodes are added, with the
paper's criterion and with the exact one.
"""

# %%
# A wave of increasing frequency, with noise.
import matplotlib.pyplot as plt
import numpy as np

from scne import NodesDisplay, SCNRegressor

rng = np.random.default_rng(0)
X = rng.uniform(0, 1, (1_500, 1))
y = np.sin(20 * X[:, 0] ** 2) + 0.1 * rng.standard_normal(1_500)

# %%
# The paper scores a candidate h by (e'h)^2 / h'h, a lower bound on the squared error that it removes. The
# orthogonal criterion uses that error itself. Dashed lines are held-out rows; the marker is the number of nodes kept.
models = {
    name: SCNRegressor(60, criterion=name, validation_fraction=0.3, random_state=0).fit(
        X, y
    )
    for name in ("paper", "orthogonal")
}
curves = {
    name: NodesDisplay.from_estimator(model, ax=plt.figure().gca())
    for name, model in models.items()
}
plt.close("all")
together = NodesDisplay(
    curves={name: shown.curves["network"] for name, shown in curves.items()}
)
together.plot()

# %%
# The fitted functions.
_, ax = plt.subplots(layout="constrained")
grid = np.linspace(0, 1, 500)[:, None]
ax.plot(X[::5], y[::5], ".", color="0.7", label="rows")
for name, model in models.items():
    ax.plot(grid, model.predict(grid), label=f"{name}, {model.n_hidden_} nodes")
ax.set(xlabel="x", ylabel="y")
ax.legend()
