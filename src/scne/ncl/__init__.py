"""The ensemble's algebra: small dense systems that know nothing of rows.

With H = [H_1 ... H_M] the members' hidden outputs, G = H'H, D its block diagonal, g = H'y and R = diag(r),
negative correlation learning solves A(lambda) B = g with A = c1 (D + R) + c2 (G - D), and the ensemble is
(1/M) H B.

Equation numbers are the printed ones of Wang and Cui: (10) the members' weights, (11)-(14) Theorem 2, (15)-(20) the
members' costs, (23) c1 and c2, (24)-(26) the system and Algorithm 1, (28)-(31) block Jacobi and Gauss-Seidel, (32)-(41)
their convergence (Remark 1), (42)-(45) the ridges (Remark 2).
"""

from scne.ncl._bounds import (
    DecorrelationBounds,
    decorrelation_bounds,
    spectral_radius_gauss_seidel,
    spectral_radius_jacobi,
    theta_zero,
)
from scne.ncl._cg import ConjugateGradient
from scne.ncl._choice import Choice, choose
from scne.ncl._coefficients import (
    Coefficients,
    coefficients,
    decorrelation_limit,
    mean_factors,
    node_ridge,
    system_matrix,
)
from scne.ncl._decomposition import ErrorDecomposition, MemberParts, decompose, noise_variance
from scne.ncl._factors import BlockFactor, factor_block
from scne.ncl._gauss_seidel import BlockGaussSeidel
from scne.ncl._jacobi import BlockJacobi
from scne.ncl._leave_out import MemberErrors, leave_one_out, subsystem
from scne.ncl._member_costs import MemberCosts, member_costs
from scne.ncl._outputs import OrthonormalMembers, OutputRows, solve_outputs
from scne.ncl._path import LambdaPath, default_decorrelations, lambda_path
from scne.ncl._running_total import RunningTotal, TotalSquares
from scne.ncl._signed import signed_weights
from scne.ncl._solution import Solution, Status
from scne.ncl._solvers import SOLVERS, Cholesky, Naive, PseudoInverse, Solver, choose_solver, make_solver
from scne.ncl._system import EnsembleSystem, LinearSystem, MatrixFreeSystem

__all__ = [
    "SOLVERS",
    "BlockFactor",
    "BlockGaussSeidel",
    "BlockJacobi",
    "Choice",
    "Cholesky",
    "Coefficients",
    "ConjugateGradient",
    "DecorrelationBounds",
    "EnsembleSystem",
    "ErrorDecomposition",
    "LambdaPath",
    "LinearSystem",
    "MatrixFreeSystem",
    "MemberCosts",
    "MemberErrors",
    "MemberParts",
    "Naive",
    "OrthonormalMembers",
    "OutputRows",
    "PseudoInverse",
    "RunningTotal",
    "Solution",
    "Solver",
    "Status",
    "TotalSquares",
    "choose",
    "choose_solver",
    "coefficients",
    "decompose",
    "decorrelation_bounds",
    "decorrelation_limit",
    "default_decorrelations",
    "factor_block",
    "lambda_path",
    "leave_one_out",
    "make_solver",
    "mean_factors",
    "member_costs",
    "node_ridge",
    "noise_variance",
    "signed_weights",
    "solve_outputs",
    "spectral_radius_gauss_seidel",
    "spectral_radius_jacobi",
    "subsystem",
    "system_matrix",
    "theta_zero",
]
