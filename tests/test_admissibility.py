"""The supervisory inequality of every node, checked on the Gram system and on the rows themselves."""

import numpy as np
import pytest
from ensembles import plain_ensemble
from older_networks import OlderModel

from scne import SCNRegressor
from scne.networks import admissible_nodes, required_share


@pytest.mark.parametrize("criterion", ["orthogonal", "paper"])
@pytest.mark.parametrize("direct_link", [False, True])
def test_the_system_tells_what_the_rows_tell(criterion, direct_link):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(600, 3))
    y = np.column_stack([np.sin(5 * X[:, 1]) + 0.3 * rng.standard_normal(600), X.prod(axis=1)])
    base = SCNRegressor(12, criterion=criterion, n_candidates=20, search_rows=150, contraction=(0.9, 0.999))
    ensemble = plain_ensemble(base, groups=[[0, 1], [1, 2]], random_state=0, ridge=1e-3, decorrelation=0.5)
    model = OlderModel(ensemble, linked=direct_link).fit(X, y)
    target = (y - y.mean(axis=0)) / y.std(axis=0)
    for member, held in zip(model.members_, model.admissible_nodes_.values(), strict=True):
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
    answers = np.concatenate(list(model.admissible_nodes_.values()))
    assert answers.any()
    assert not answers.all()


def test_nodes_searched_on_all_rows_are_admissible_on_them():
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(400, 2))
    y = np.sin(6 * X[:, 0]) + X[:, 1]
    model = plain_ensemble(SCNRegressor(10, n_candidates=30), groups=[[0], [1]], random_state=0).fit(X, y)
    assert all(held.all() for held in model.admissible_nodes_.values())


def admitted(H, y, contractions, criterion="orthogonal", ridge=0.0, **options):
    return admissible_nodes(H.T @ H, H.T @ y, (y**2).sum(axis=0), contractions, criterion, ridge, **options).tolist()


@pytest.mark.parametrize("criterion", ["orthogonal", "paper"])
def test_equality_is_not_enough(criterion):
    """Of y = (1, 1) the first node removes half; r = 0 asks for half of the first node, and 2/3 of what is left."""
    y = np.array([[1.0], [1.0]])
    assert admitted(np.eye(2), y, [0.0, 0.0], criterion) == [False, True]
    assert admitted(np.eye(2), y, [1e-9, 0.0], criterion) == [True, True]


def test_every_output_must_be_helped():
    y = np.array([[1.0, 1.0], [0.0, 1.0]])
    assert admitted(np.eye(2)[:, :1], y, [0.1]) == [True]
    assert admitted(np.eye(2)[:, :1], y, [0.0]) == [False]
    assert admitted(np.eye(2)[:, 1:], y, [0.9]) == [False]


def test_a_node_counts_from_one_and_needs_more_the_later_it_comes():
    """Three nodes that remove half of what is left each: 1 - r = 0.6 asks for 0.3, 0.4 and 0.45 of it."""
    y = np.sqrt([[4.0], [2.0], [1.0], [1.0]])
    H = np.eye(4)[:, :3]
    assert admitted(H, y, [0.4, 0.4, 0.4]) == [True, True, True]
    # 0.4 / 0.6 / 0.675 for 1 - r = 0.8, 0.9 and 0.9; half is enough for the first alone.
    assert admitted(H, y, [0.2, 0.1, 0.1]) == [True, False, False]


def test_dependent_nodes_leave_the_first_one_its_digits():
    """The last of 100 nodes is the one before it again; the first removes 1e-7 more than it must, or less."""
    H = np.eye(100)[:, [*range(99), 98]]
    for excess, held in ((1e-7, True), (-1e-7, False)):
        share = 0.25 * (1.0 + excess)
        y = np.sqrt([[share], *[[0.0]] * 98, [1.0 - share]])
        assert admitted(H, y, [0.5] * 100)[0] is held


def test_direct_links_come_before_the_nodes_and_are_not_judged():
    """The link, the last column, removes 8 of 10; of the other 2 the nodes remove 1 and 1."""
    y = np.array([[1.0], [1.0], [np.sqrt(8.0)]])
    assert admitted(np.eye(3), y, [0.1, 0.1], n_direct=1) == [True, True]
    assert admitted(np.eye(3)[:, :2], y, [0.1, 0.1]) == [False, False]


def test_a_ridge_shortens_what_a_node_removes():
    """(e'h)^2 / (h'h + r): 1 / 2 of 1 with r = 1, of which 1 - r_L = 1 asks for half, and less for half."""
    y = np.array([[1.0], [0.0]])
    H = np.eye(2)[:, :1]
    assert admitted(H, y, [0.0], ridge=0.999) == [True]
    assert admitted(H, y, [0.0], ridge=1.001) == [False]
    assert admitted(H, y, [0.0], "paper", ridge=0.999) == [True]
    assert admitted(H, y, [0.0], "paper", ridge=1.001) == [False]


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_dependent_nodes_are_judged_up_to_the_first_that_adds_nothing(scale):
    """The Gram matrix of the second and third is exactly singular; the third adds nothing to the second."""
    H = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0], [0.0, 0.0, 0.0]]) * scale
    y = np.array([[1.0], [1.0], [1.0], [0.5]])
    assert admitted(H, y, [0.9, 0.9, 0.9]) == [True, True, False]
