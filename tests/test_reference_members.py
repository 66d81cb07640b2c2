"""Members beside the reference: weights a_m of Eq. (10), costs e_m of Eqs. (15) to (20), Theorem 2 member by member."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from reference import ensemble, scn, theorem2

from scne.ncl import (
    BlockGaussSeidel,
    BlockJacobi,
    Cholesky,
    EnsembleSystem,
    PseudoInverse,
    decompose,
    mean_factors,
    member_costs,
)

WEIGHTS = (0.4, 0.3, 0.1, 0.2)


@pytest.fixture(scope="module")
def layers():
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((120, 4))
    H = [scn.sigmoid(shared @ rng.standard_normal((4, L)) + 0.7 * rng.standard_normal((120, L))) for L in (4, 7, 3, 6)]
    return H, np.column_stack([np.sin(shared[:, 0]), shared[:, 1] * shared[:, 2]])


def weighted_system(H, Y, a):
    whole = EnsembleSystem.from_outputs(H, Y)
    weights = None if a is None else np.array(a)
    return EnsembleSystem(whole.gram, whole.moments, whole.target_square, whole.n_rows, whole.sizes, weights)


def own_weights(system, B, H):
    """The members' own beta_m from the weights B of the mean (1/M) H B."""
    factors = mean_factors(system.member_weights, len(H))
    return [beta / factor for beta, factor in zip(ensemble.split(B, H), factors, strict=True)]


@pytest.mark.parametrize("a", [None, WEIGHTS])
def test_costs_are_those_of_equation_18(layers, a):
    H, Y = layers
    system = weighted_system(H, Y, a)
    B = np.random.default_rng(1).standard_normal((system.n_nodes, 2))
    outputs = ensemble.member_outputs(H, own_weights(system, B, H))
    for lam in (0.0, 0.1, 0.9):
        costs = member_costs(system, B, lam).cost.sum(axis=1)
        assert_allclose(costs, ensemble.member_errors_simplified(outputs, Y, lam, a), rtol=1e-10)
        if a is None:
            assert_allclose(costs, ensemble.member_errors(outputs, Y, lam), rtol=1e-10)


@pytest.mark.parametrize("a", [None, WEIGHTS])
@pytest.mark.parametrize(
    "solver", [PseudoInverse(), Cholesky(), BlockJacobi(step_tol=1e-13), BlockGaussSeidel(step_tol=1e-13)]
)
def test_no_member_can_lower_its_own_cost(layers, a, solver):
    """Eq. 19: the derivative of every member's cost by its own weights is zero."""
    H, Y = layers
    system = weighted_system(H, Y, a)
    betas = own_weights(system, solver.solve(system, 0.4, 0.0).weights, H)
    for slope in ensemble.weighted_gradient(H, betas, Y, 0.4, [0.25] * 4 if a is None else a):
        assert_allclose(slope, 0.0, atol=1e-8)


def test_members_parts_are_those_of_theorem_2():
    rng = np.random.default_rng(2)
    outputs = rng.standard_normal((6, 1, 9)) + 0.5 * rng.standard_normal((6, 4, 9)) + rng.standard_normal((4, 1))
    g = rng.standard_normal(9)
    members = decompose(outputs, g).members
    assert_allclose(members.variance, theorem2.member_variances(outputs).mean(axis=1), rtol=1e-12)
    biases = theorem2.member_biases(outputs, np.tile(g, (4, 1)))
    assert_allclose(members.bias, biases.mean(axis=1), rtol=1e-10, atol=1e-12)
    assert_allclose(members.bias_squared, (biases**2).mean(axis=1), rtol=1e-12)
    for m in range(4):
        others = [theorem2.covariance(outputs, m, q).mean() for q in range(4) if q != m]
        assert_allclose(members.covariance[m], np.mean(others), rtol=1e-10)
    weighted = decompose(outputs, g, member_weights=WEIGHTS)
    expected = np.mean((ensemble.ensemble_output(outputs.transpose(1, 0, 2), WEIGHTS) - g) ** 2)
    assert_allclose((weighted.total, sum(weighted.terms().values())), (expected, expected), rtol=1e-12)
