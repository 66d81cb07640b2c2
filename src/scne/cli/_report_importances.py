"""The importances on a report's page: columns, groups and networks."""

import numpy as np
from numpy.typing import NDArray

from scne.cli._report import Report
from scne.cli._report_parts import SHOWN_OUTPUTS, Missing, in_columns, scratch_axes
from scne.explain import ErrorRises
from scne.report import GroupContributionDisplay, Page, bars_height
from scne.rows import counted

MOST_COLUMNS = 40
MOST_BARS = 20


def add_importances(page: Page, report: Report) -> Missing | None:
    """Error increase when columns, and groups of them, are shuffled."""
    importances = report.permutation
    page.section(
        "What columns and groups contribute",
        "Error increase when a column, or a group of columns, is shuffled among the rows, so that it carries no "
        f"information (on {counted(importances.n_rows, 'row')}, five times each). Columns that carry the same "
        "information may each seem unimportant; shuffled together, as a group, they matter.",
    )
    several = len(report.targets) > 1
    of = f" of {report.targets[0]}" if several else ""
    kinds = ["groups", "columns"] if importances.groups.names else ["columns"]
    for kind in kinds:
        rises = getattr(importances, kind)
        display = GroupContributionDisplay.from_importances(
            importances, kind=kind, largest=MOST_BARS, ax=scratch_axes()
        )
        named = ", ".join(
            f"{name} {rise:+.3g}" for name, rise in zip(display.names[:8], display.rises[:8], strict=True)
        )
        page.figure(
            display.plot,
            caption=f"Increase of the {importances.measure}{of} for each {kind[:-1]}, with the deviation over five "
            "shuffles.",
            alt=f"Bar chart of the error increase for each {kind[:-1]}: {named}"
            + (" and others." if len(rises.names) > 8 else "."),
            height=bars_height(len(display.names)),
        )
    _add_importance_table(page, report)
    return None


def _add_importance_table(page: Page, report: Report) -> None:
    """All columns and groups with their rises, and of columns the share in what moves the output."""
    importances, targets = report.permutation, report.targets[:SHOWN_OUTPUTS]
    shares = _shares(report)
    heads = [f"{report.permutation.measure} increase", "±"] if len(report.targets) == 1 else []
    for name in targets if not heads else ():
        heads += [f"{name}: {report.permutation.measure} increase", "±"]
    rows: list[list[str | float | None]] = []
    for group, cells in zip(importances.groups.names, _rise_cells(importances.groups), strict=True):
        rows.append([f"group {group}", None, *cells])
    order = np.argsort(-in_columns(importances.columns.mean)[:, 0], kind="stable")[:MOST_COLUMNS]
    columns = _rise_cells(importances.columns)
    for place in order:
        rows.append([_named(importances.columns.names[place]), f"{100 * shares[place]:.1f} %", *columns[place]])
    left = len(importances.columns.names) - len(order)
    page.table(
        ["column", "share of the effect", *heads],
        rows,
        caption="Share of the effect: the column's part in the variance of the model's output (total effects)."
        + (f" {counted(left, 'column')} with smaller increases are left out." if left else ""),
        align="l" + "r" * (1 + len(heads)),
    )


def add_networks(page: Page, report: Report) -> Missing | None:
    """Error increase when a network is left out."""
    if len(report.summary.groups) < 2 or report.summary.classes is not None:
        return None
    if report.networks is None:
        return Missing("Contribution of each network", _no_networks(report))
    networks = report.networks
    display = GroupContributionDisplay.from_importances(networks, largest=MOST_BARS, ax=scratch_axes())
    page.subsection(
        "Networks",
        "Here a network is left out and the output weights of all others are solved again, exactly, from the sums "
        f"that the file holds. The errors are those on {networks.rows}.",
    )
    named = ", ".join(f"{name} {rise:+.3g}" for name, rise in zip(display.names, display.rises, strict=True))
    page.figure(
        display.plot,
        caption=f"Increase of the RMSE on {networks.rows} without each network.",
        alt=f"Bar chart of the error increase without each network: {named}.",
        height=bars_height(len(display.names)),
    )
    return None


def _no_networks(report: Report) -> str:
    if hasattr(report.model, "system_"):
        return (
            f"To solve {report.summary.n_nodes:,} nodes again without each network takes minutes; in Python it is "
            "`model.group_importances_`."
        )
    return (
        "That comes from the sums of the fit (the Gram matrix), which this file does not hold. Save the fitted model "
        "with `scne.save(model, path, with_system=True)`; `scne fit` leaves them out."
    )


def _shares(report: Report) -> NDArray[np.float64]:
    """The share of each column of the input in what moves the output."""
    return report.model.feature_importances_


def _rise_cells(rises: ErrorRises) -> list[list[float]]:
    """Mean and deviation of each output that is shown, side by side, for each column or group."""
    mean, std = in_columns(rises.mean)[:, :SHOWN_OUTPUTS], in_columns(rises.std)[:, :SHOWN_OUTPUTS]
    cells: list[list[float]] = np.stack([mean, std], axis=2).reshape(len(mean), 2 * mean.shape[1]).tolist()
    return cells


def _named(column: str | int) -> str:
    return f"column {column}" if isinstance(column, int) else column
