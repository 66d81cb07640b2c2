"""The parts of a report's page that only ensembles have: the lambda path, the members, the iterations."""

import numpy as np
from numpy.typing import NDArray

from scne.cli._report import Report
from scne.cli._report_parts import Missing, scratch_axes
from scne.cli._report_rows import has_small_system, is_ensemble
from scne.ncl import decorrelation_bounds, lambda_path
from scne.report import ConvergenceDisplay, DecorrelationPathDisplay, MemberCorrelationDisplay, Page


def add_path(page: Page, report: Report) -> Missing | None:
    """The errors along lambda; why they are missing, where they are."""
    model = report.model
    if not is_ensemble(model):
        return None
    bounds = decorrelation_bounds(model.system_, model.ridge_) if has_small_system(model) else None
    marks = {} if bounds is None else {"Jacobi converges below": bounds.jacobi_exact}
    try:
        display = DecorrelationPathDisplay.from_estimator(model, marks=marks, ax=scratch_axes())
    except ValueError as error:
        return Missing("The errors along λ", str(error))
    limit = len(model.members_) / (len(model.members_) - 1)
    text = (
        "λ decides how much the networks divide the work among themselves: at 0 each explains what it can alone, at "
        f"M/(M-1) = {limit:.4g} they are one joint regression. λ = {model.decorrelation_:.5g} here."
    )
    if bounds is not None:
        text += (
            f" On the rows of the fit block Jacobi converges below {bounds.jacobi_exact:.4g}, on any rows below "
            f"{bounds.jacobi_any_data:.4g}; the paper's bound gives {bounds.paper:.4g}."
        )
    page.section("From averaging to joint fitting", text)
    held_out = display.scores_name == "held-out rows"
    score = "on held-out rows" if held_out else "by generalised cross-validation"
    ends = f"{display.training[0]:.3g} to {display.training[-1]:.3g}"
    page.figure(
        display.plot,
        caption=f"Errors of the networks along λ: on the rows of the fit, and {score}.",
        alt=f"Line chart of the errors along lambda. The training error goes from {ends}; "
        f"the lambda that was taken is {model.decorrelation_:.5g}.",
    )
    return None


def add_members(page: Page, report: Report) -> Missing | None:
    """The correlation of the members' outputs on the sample."""
    model = report.model
    if not is_ensemble(model):
        return None
    if len(report.evaluated.truth) < 2:
        return Missing("How similar the networks are", "A correlation needs at least two rows.")
    if model.fitted_.loss.is_log:
        return Missing("How similar the networks are", "Networks add up to the logarithm of a mean.")
    display = MemberCorrelationDisplay.from_estimator(model, report.evaluated.sample, ax=scratch_axes())
    apart = display.correlation[~np.eye(len(display.names), dtype=bool)]
    defined = apart[np.isfinite(apart)]
    span = f" from {defined.min():.2f} to {defined.max():.2f}" if defined.size else ""
    classes = report.summary.classes
    several = classes is not None and len(classes) > 2
    first = f"class {classes[0]}" if several and classes is not None else report.targets[0]
    of = f" ({first})" if several or len(report.targets) > 1 else ""
    page.section(
        "How similar the networks are",
        "The correlation between the outputs of the networks on these rows. Networks that repeat each other have "
        f"correlations near 1; networks that complement each other have low or negative ones.{_alike(defined)}",
    )
    size = float(np.clip(2.6 + 0.2 * len(display.names), 3.0, 6.0))
    page.figure(
        display.plot,
        caption=f"Correlation of the networks' outputs{of} on {len(report.evaluated.truth):,} of these rows.",
        alt=f"Table of colours: the correlation between the outputs of two networks goes{span}.",
        width=size + 1.2,
        height=size,
    )
    return None


def _alike(correlations: NDArray[np.float64]) -> str:
    """What the correlations come to.

    >>> _alike(np.array([0.95, 0.99]))
    ' Here they lie between 0.95 and 0.99: the networks largely agree, and averaging cancels their differences.'
    """
    if not correlations.size:
        return ""
    low, high = correlations.min(), correlations.max()
    if low > 0.8:
        verdict = "the networks largely agree, and averaging cancels their differences"
    elif high < 0.5:
        verdict = "the networks divide the work among themselves"
    else:
        verdict = "some agree, others complement each other"
    return f" Here they lie between {low:.2f} and {high:.2f}: {verdict}."


def add_convergence(page: Page, report: Report) -> Missing | None:
    """The iterations that gave the output weights."""
    model = report.model
    if not is_ensemble(model):
        return None
    solution = model.solution_
    if not solution.n_iter:
        return Missing(
            "The convergence of iterations",
            f"The output weights were solved directly, by solver {solution.solver!r}. In Python a model that holds its "
            "Gram matrix is solved by iterations with `model.reweighted(solver='gauss-seidel')`.",
        )
    reference = None
    if has_small_system(model):
        reference = float(lambda_path(model.system_, model.ridge_, [model.decorrelation_]).errors[0])
    display = ConvergenceDisplay.from_estimator(model, reference=reference, ax=scratch_axes())
    page.section("Convergence of the iterations", solution.message)
    limit = "that of the exact solution" if reference is not None else "its last value"
    radius = " Dotted: the spectral radius to the power of the iteration." if display.spectral_radii else ""
    first, last = solution.error_history[0], solution.error_history[-1]
    page.figure(
        display.plot,
        caption=f"Relative distance of the ensemble's training error from {limit}.{radius}",
        alt=f"Line chart: in {solution.n_iter} iterations the training error goes from {first:.4g} to {last:.4g} of "
        "the target's scale.",
    )
    return None
