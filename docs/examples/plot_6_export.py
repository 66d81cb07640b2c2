"""
A model for the smallest devices
================================

A model is a few matrices. It can be exported as a C header, as a Python file without dependencies, or as ONNX.
"""

# %%
# A small network on a known function.
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from scne import SCNRegressor

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, (1_000, 2))
model = SCNRegressor(25, random_state=0).fit(X, np.sin(X[:, 0]) * np.cos(X[:, 1]))

# %%
# The C header allocates no memory and only needs ``math.h``.
header = model.export("c", name="wave")
print(header[header.index("static inline void wave_predict") :])

# %%
# The Python file runs on a bare interpreter, here without any site packages, and reads CSV rows.
folder = Path(tempfile.mkdtemp())
model.export("python", folder / "wave.py")
answer = subprocess.run(
    [sys.executable, "-I", "-S", folder / "wave.py"],
    input="0.5,1.0\n-1.0,0.2\n",
    text=True,
    capture_output=True,
)
print(answer.stdout)
print("predict gives", *model.predict([[0.5, 1.0], [-1.0, 0.2]]))

# %%
# All exports agree up to rounding. Their sizes for networks with more nodes:
sizes = {}
for nodes in (5, 10, 20, 40, 80):
    fitted = SCNRegressor(nodes, tol=0, random_state=0).fit(
        X, np.sin(X[:, 0]) * np.cos(X[:, 1])
    )
    fitted.save(folder / "wave.scne")
    sizes[nodes] = (
        len(fitted.export("c")),
        len(fitted.export("python")),
        (folder / "wave.scne").stat().st_size,
    )

_, ax = plt.subplots(layout="constrained")
for form, values in zip(
    ("C header", "Python file", "model file"),
    zip(*sizes.values(), strict=True),
    strict=True,
):
    ax.plot(list(sizes), np.array(values) / 1000, "o-", label=form)
ax.set(xlabel="nodes", ylabel="size, kB", ylim=(0, None))
ax.legend()
