"""
A changing process
==================

Rows arrive in batches. `partial_fit` adds their sums to the Gram system and solves again; with `forgetting`, older rows
fade, and the model follows a changing process.
"""

# %%
# The response of a sensor drifts: the phase of a wave moves slightly with every batch, and jumps after the fifteenth.
import matplotlib.pyplot as plt
import numpy as np

from scne import SCNRegressor

rng = np.random.default_rng(0)


def batch(number):
    """300 rows of one day."""
    X = rng.uniform(-3, 3, (300, 1))
    phase = 0.02 * number + (1.5 if number >= 15 else 0.0)
    return X, np.sin(2 * X[:, 0] + phase) + 0.05 * rng.standard_normal(300)


# %%
# Every batch is predicted before the model is updated with it, so these are errors on unseen rows.
factors = (1.0, 0.7, 0.2)
models = {factor: SCNRegressor(40, random_state=0) for factor in factors}
errors = {factor: [] for factor in factors}
for number in range(30):
    X, y = batch(number)
    for factor, model in models.items():
        if number:
            errors[factor].append(np.sqrt(np.mean((model.predict(X) - y) ** 2)))
        model.partial_fit(X, y, forgetting=factor)

_, ax = plt.subplots(layout="constrained")
for factor, values in errors.items():
    ax.plot(range(1, 30), values, label=f"forgetting {factor:g}")
ax.axhline(0.05, color="0.7", linestyle=":", label="noise")
ax.set(xlabel="batch", ylabel="RMSE before the update", yscale="log")
ax.legend()

# %%
# Without forgetting, the model is an average over its history. The shorter the memory, the faster the model follows a
# change, and the more it follows noise.
for factor, values in errors.items():
    print(
        f"forgetting {factor:g}: {values[12]:.3f} before the jump, {values[-1]:.3f} at the end"
    )

# %%
# A network can grow when more detail is needed than the first batch showed.
model = models[0.2]
X, y = batch(30)
before = model.n_hidden_
model.add_nodes(10, X, y)
print(f"{before} nodes, then {model.n_hidden_}")
