"""
The lambda path, from averaging to the joint fit
================================================

Lambda, the paper's regularisation factor, leads from a plain average of independent networks (0) to one joint fit of
all their nodes (M/(M-1)). The full lambda path costs one decomposition of the Gram matrix.
"""

# %%
# Friedman's first function, its columns in three groups.
import matplotlib.pyplot as plt
from sklearn.datasets import make_friedman1

from scne import (
    ConvergenceDisplay,
    DecorrelationPathDisplay,
    SCNERegressor,
    SCNRegressor,
)
from scne.ncl import decorrelation_bounds

X, y = make_friedman1(3_000, noise=1.0, random_state=0)
X = X[:, :5]  # the others are noise
groups = {"product": [0, 1], "bend": [2], "lines": [3, 4]}
base = SCNRegressor(30, validation_fraction=0.2)
model = SCNERegressor(
    base, groups=groups, networks="per group", trend="none", random_state=0
).fit(X, y)

# %%
# The error along lambda, on training and on held-out rows, with the paper's lambda = 0.1 marked. None of the groups
# explains the target by itself, so averaging the three is poor, and the best lambda lies near the end.
DecorrelationPathDisplay.from_estimator(model, marks={"the paper's": 0.1})

# %%
# The lambdas for which block Jacobi converges: the paper's bound, the bound for any data, the exact bound on these
# data, and the end of the path.
bounds = decorrelation_bounds(model.system_, model.ridge_)
print(f"the paper's bound (Eq. 41)  {bounds.paper:.4f}")
print(f"on any data                 {bounds.jacobi_any_data:.4f}")
print(f"exact on these data         {bounds.jacobi_exact:.4f}")
print(f"positive definite           {bounds.positive_definite:.4f}")

# %%
# The same networks, solved again at lambda = 1 by the paper's iterations. Dotted lines fall by the spectral radius.
exact = model.reweighted(solver="cholesky", decorrelation=1.0)
solutions = {
    name: exact.reweighted(solver=name, max_iter=300).solution_
    for name in ("jacobi", "gauss-seidel")
}
_, ax = plt.subplots(layout="constrained")
ConvergenceDisplay.from_solutions(
    solutions, reference=exact.solution_.error_history[-1], ax=ax
)
