"""The supervisory inequality of every node, checked on the Gram system and on the rows themselves."""

import numpy as np
import pytest

from scne import SCNERegressor, SCNRegressor
from scne.networks import required_share


@pytest.mark.parametrize("criterion", ["orthogonal", "paper"])
@pytest.mark.parametrize("direct_link", [False, True])
def test_the_system_tells_what_the_rows_tell(criterion, direct_link):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(600, 3))
    y = np.column_stack([np.sin(5 * X[:, 1]) + 0.3 * rng.standard_normal(600), X.prod(axis=1)])
    base = SCNRegressor(
        12, criterion=criterion, direct_link=direct_link, n_candidates=20, search_rows=150, contraction=(0.9, 0.999)
    )
    model = SCNERegressor(base, groups=[[0, 1], [1, 2]], random_state=0, ridge=1e-3, decorrelation=0.5).fit(X, y)
    target = (y - y.mean(axis=0)) / y.std(axis=0)
    for member, held in zip(model.members_, model.admissible_nodes().values(), strict=True):
        H = member.layer.outputs(X)
        n = member.layer.n_nodes
        for node in range(n):
            present = np.hstack([H[:, n:], H[:, :node]])
            gram = present.T @ present + 1e-6 * np.eye(present.shape[1])
            # The ridge objective: its residual has a row for each weight too.
            beta = np.linalg.solve(gram, present.T @ target) if present.shape[1] else np.zeros((0, 2))
            e = target - present @ beta
            h = H[:, node]
            left = (target**2).sum(axis=0) - (present.T @ target * beta).sum(axis=0)
            size = h @ h + 1e-6
            if criterion == "orthogonal" and present.shape[1]:
                size -= (present.T @ h) @ np.linalg.solve(gram, present.T @ h)
            xi = (e.T @ h) ** 2 / size - required_share(member.search.contractions[node], node + 1) * left
            assert held[node] == (xi.min() > 0)
    answers = np.concatenate(list(model.admissible_nodes().values()))
    assert answers.any()
    assert not answers.all()


def test_nodes_searched_on_all_rows_are_admissible_on_them():
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(400, 2))
    y = np.sin(6 * X[:, 0]) + X[:, 1]
    model = SCNERegressor(SCNRegressor(10, n_candidates=30), groups=[[0], [1]], random_state=0).fit(X, y)
    assert all(held.all() for held in model.admissible_nodes().values())
