"""The report of benchmarks/accuracy.py: lines of JSON in, one page of markdown out."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from accuracy_models import LADDER, MODELS, OURS, RIVALS, THREADS
from accuracy_tables import FOLDS, NUMERIC, VIEWS

# A table's ratio counts as at least the one and at most the other, so that no easy table decides.
LEAST_RATIO, MOST_RATIO = 0.7, 1.43

Key = tuple[str, int, str]  # set, fold, model
Results = dict[Key, dict[str, Any]]
Folds = Mapping[str, tuple[int, ...]]  # of each set


@dataclass(frozen=True)
class Comparison:
    """`scne` against another model on the sets that both have."""

    ratios: pd.Series  # error of scne over that of the other model, by set
    ours: pd.DataFrame  # summaries by set
    theirs: pd.DataFrame

    @property
    def wins(self) -> int:
        """Sets on which `scne` has less error."""
        return int((self.ratios < 1).sum())

    @property
    def clipped(self) -> float:
        """Geometric mean of the limited ratios."""
        return geometric_mean(self.ratios.clip(LEAST_RATIO, MOST_RATIO))


def geometric_mean(values: pd.Series) -> float:
    return float(np.exp(np.log(values).mean()))


def read_results(path: Path) -> Results:
    """The last line about each fit."""
    lines = map(json.loads, path.read_text().splitlines() if path.exists() else [])
    return {(line["set"], line["fold"], line["model"]): line for line in lines}


def summarise(results: Results, folds: Folds = FOLDS) -> pd.DataFrame:
    """Means of errors and sizes and sums of seconds over some folds, for each set and model that has all of them."""
    results = {key: line for key, line in results.items() if key[1] in folds[key[0]]}
    if not results:
        return pd.DataFrame()
    how = dict.fromkeys(["error", "rmse", "bytes"], "mean") | dict.fromkeys(["fit_seconds", "predict_seconds"], "sum")
    summary = pd.DataFrame(list(results.values())).groupby(["set", "model"]).agg({"fold": "count", **how})
    return summary[summary["fold"] == [len(folds[name]) for name, _ in summary.index]]


def error_columns(summary: pd.DataFrame, models: Iterable[str]) -> pd.DataFrame:
    """Errors, sets by models; empty where not all folds are measured."""
    return summary["error"].unstack("model").reindex(index=list(FOLDS), columns=list(models))


def of_model(summary: pd.DataFrame, model: str) -> pd.DataFrame:
    """The part of a summary that is about one model, by set."""
    return summary[summary.index.get_level_values("model") == model].droplevel("model")


def compare(summary: pd.DataFrame, other: str, sets: Iterable[str]) -> Comparison:
    ours, theirs = of_model(summary, "scne"), of_model(summary, other)
    both = [name for name in sets if name in ours.index and name in theirs.index]
    return Comparison(ours.loc[both, "error"] / theirs.loc[both, "error"], ours.loc[both], theirs.loc[both])


def bound_lines(summary: pd.DataFrame) -> list[str]:
    """What is asked of `scne`, and whether it holds; open while a set is missing that the bound needs."""
    everything, text = VIEWS["all tables"], VIEWS["tables with text or gaps"]
    cat, cat_text = compare(summary, "catboost", everything), compare(summary, "catboost", text)
    tuned, ridge = compare(summary, "lightgbm-tuned", everything), compare(summary, "ridge", everything)
    ours, theirs = cat.ours["fit_seconds"].sum(), cat.theirs["fit_seconds"].sum()
    rmse = summary["rmse"].get(("beijing_air", "scne"), np.nan)
    worst = ridge.ratios.max()
    all_sets, text_sets = len(everything), len(text)
    bounds = [
        (cat, all_sets, cat.wins >= 15, f"less error than catboost on {cat.wins} tables (at least 15)"),
        (cat, all_sets, cat.clipped <= 0.90, f"clipped ratio to catboost {cat.clipped:.3f} (at most 0.90)"),
        (cat_text, text_sets, cat_text.wins >= 3, f"with text or gaps on {cat_text.wins} tables (at least 3)"),
        (cat_text, text_sets, cat_text.clipped <= 0.98, f"and clipped ratio {cat_text.clipped:.3f} (at most 0.98)"),
        (tuned, all_sets, tuned.clipped <= 0.85, f"clipped ratio to lightgbm-tuned {tuned.clipped:.3f} (at most 0.85)"),
        (ridge, all_sets, worst <= 1.02, f"at worst {worst:.3f} times the error of ridge (at most 1.02)"),
        (cat, all_sets, ours <= theirs / 2, f"fits take {ours:.1f} s (at most half of catboost's {theirs:.1f} s)"),
    ]
    lines = []
    for comparison, needed, met, text_of_bound in bounds:
        there = len(comparison.ratios)
        state = f"open, {there} of {needed} tables" if there < needed else "met" if met else "MISSED"
        lines.append(f"- {state}: {text_of_bound}")
    state = "open" if np.isnan(rmse) else "met" if rmse <= 21.5 else "MISSED"
    return [*lines, f"- {state}: RMSE on beijing_air {rmse:.2f} (at most 21.5)"]


def markdown_table(header: list[str], rows: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join("| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in lines)


def error_table(errors: pd.DataFrame) -> str:
    """Sets by models, the least error of each set in bold."""
    best = errors.eq(errors.min(axis=1), axis=0)
    texts = errors.map("{:.4f}".format).where(errors.notna(), "").where(~best, errors.map("**{:.4f}**".format))
    return markdown_table(["set", *errors], [list(line) for line in texts.itertuples(name=None)])


def model_table(errors: pd.DataFrame, summary: pd.DataFrame) -> str:
    """Models by what is said of each over all sets: ranks, seconds and sizes over the sets that all of them have."""
    common, rows = errors.dropna(), []
    ranks = common.rank(axis=1).mean()
    for model in errors:
        mine = summary.loc[[(name, model) for name in common.index]]
        versus = ["", ""]
        if "scne" in errors and model != "scne":
            comparison = compare(summary, model, FOLDS)
            versus = [f"{comparison.wins} of {len(comparison.ratios)}", f"{geometric_mean(comparison.ratios):.3f}"]
        times = [f"{mine[kind].sum():,.2f}" for kind in ("fit_seconds", "predict_seconds")]
        rows.append([model, f"{ranks[model]:.2f}", *versus, *times, f"{mine['bytes'].mean() / 1e3:,.0f}"])
    return markdown_table(["model", "rank", "wins of scne", "ratio of scne", "fit, s", "predict, s", "size, kB"], rows)


def rival_table(summary: pd.DataFrame, sets: tuple[str, ...]) -> str:
    """Rivals by how `scne` compares with each on some of the sets."""
    header = ["rival", "wins of scne", "clipped ratio", "median ratio"]
    header += ["fit, s", "of scne, s", "size, kB", "of scne, kB"]
    rows = []
    for rival in RIVALS:
        comparison = compare(summary, rival, sets)
        if comparison.ratios.empty:
            continue
        tables = (comparison.theirs, comparison.ours)
        seconds = [f"{table['fit_seconds'].sum():,.2f}" for table in tables]
        sizes = [f"{table['bytes'].mean() / 1e3:,.0f}" for table in tables]
        wins = f"{comparison.wins} of {len(comparison.ratios)}"
        rows.append([rival, wins, f"{comparison.clipped:.3f}", f"{comparison.ratios.median():.3f}", *seconds, *sizes])
    return markdown_table(header, rows) if rows else "No rival is complete on any of them yet."


def listed(names: Iterable[str]) -> str:
    """A few names, or the number of many.

    >>> listed(["wine"]), listed("abcdefg")
    ('wine', '7 tables')
    """
    names = list(names)
    return ", ".join(names) if len(names) <= 5 else f"{len(names)} tables"


def states_of_the_source(lines: list[dict[str, Any]]) -> list[str]:
    """A sentence for each state of the source of scne: the fits that came from it."""
    sets: dict[str, dict[str, dict[str, None]]] = {}  # by state and model; dictionaries keep the order of the lines
    for line in lines:
        if line["model"] in (*OURS, *LADDER):
            sets.setdefault(line["versions"]["scne"], {}).setdefault(line["model"], {})[line["set"]] = None
    fits = {
        state: [f"{model} on {', '.join(names)}" for model, names in models.items()] for state, models in sets.items()
    }
    return [f"{state}: {'; '.join(described)}." for state, described in fits.items()]


def notes(results: Results, errors: pd.DataFrame) -> list[str]:
    """What a reader must know before trusting the tables."""
    lines = list(results.values())
    left_out = [f"{model} on {listed(errors.index[gaps])}" for model, gaps in errors.isna().items() if any(gaps)]
    disturbed = sum(line["others_cpu_seconds"] > 0.1 + 0.1 * line["fit_seconds"] for line in lines)
    sources = states_of_the_source(lines)
    # Lines from before frames were taken as they are say nothing of their input.
    older = sorted({line["set"] for line in lines if line["model"] == "scne" and "input" not in line})
    versions = sorted({f"{name} {text}" for line in lines for name, text in line["versions"].items()})
    said = [
        (left_out, f"Left out, not all folds measured yet: {'; '.join(left_out)}."),
        (disturbed, f"Times mislead: others took over 10 % of a core during {disturbed} of {len(lines)} fits."),
        (len(sources) > 1, " ".join([f"Not one comparison: {len(sources)} states of the source of scne.", *sources])),
        (older, f"Older lines, in which scne was given numbers and not the table: {', '.join(older)}."),
        (True, f"Versions: {', '.join(versions)}; {THREADS} threads."),
    ]
    return [sentence for holds, sentence in said if holds]


def effort_report(results: Results, folds: Folds) -> str:
    """Steps of effort and trees against the default, by error and time, as markdown."""
    summary = summarise(results, folds)
    errors = error_columns(summary, ("scne", *LADDER, *RIVALS)).dropna(how="all", axis=1).dropna()
    seconds = summary["fit_seconds"].unstack("model").loc[errors.index].sum()
    ratios = errors.div(errors["scne"], axis=0)
    of_numbers = ratios.index.isin(NUMERIC)
    rows = []
    for model in errors.columns.drop("scne"):
        clipped = geometric_mean(ratios[model].clip(LEAST_RATIO, MOST_RATIO))
        shown = [f"{clipped:.3f}", f"{geometric_mean(ratios.loc[of_numbers, model]):.3f}"]
        rows.append([model, *shown, f"{seconds[model]:,.1f}", f"{seconds[model] / seconds['scne']:.2f}"])
    header = ["model", "error, limited ratios", "error, tables of numbers", "fits, s", "time"]
    words = (
        f"Fold 0 of {len(errors)} tables. Errors and times are relative to the default's; errors are geometric means "
        f"of ratios, first limited to {LEAST_RATIO} to {MOST_RATIO} for each table, then as they are on the "
        f"{of_numbers.sum()} tables without text or gaps."
    )
    return "\n\n".join([words, markdown_table(header, rows), *notes(results, errors)[-1:]])


def report(results: Results) -> str:
    """The whole comparison as markdown."""
    summary = summarise(results)
    if summary.empty:
        return "No set is complete yet for any model."
    errors = error_columns(summary, MODELS)
    shown = errors.dropna(how="all").dropna(how="all", axis=1)
    parts = [
        "RMSE / standard deviation of the training target, mean over the folds:",
        error_table(shown),
        f"Mean ranks, total seconds and mean sizes are over the {len(shown.dropna())} of {len(FOLDS)} tables that all "
        "these models have; wins of scne, and the geometric mean ratio of its errors to the model's, over those that "
        "both have:",
        model_table(shown, summary),
        "Rivals one by one, on the tables that scne and the rival both have. In the clipped ratio, a geometric mean, "
        f"each table's ratio is limited to {LEAST_RATIO} to {MOST_RATIO}. Seconds are totals, sizes means.",
    ]
    for view, sets in VIEWS.items():
        parts += [f"{view[0].upper()}{view[1:]} ({len(sets)}: {', '.join(sets)}):", rival_table(summary, sets)]
    parts += ["\n".join(["Bounds:", "", *bound_lines(summary)]), *notes(results, errors)]
    return "\n\n".join(parts)


def write_page(
    path: Path, text: str, region: str = "results", title: str = "Accuracy against other regressors"
) -> None:
    """Put a report between the markers of a region of a page, which is made if there is none."""
    begin, end = f"<!-- {region}:begin -->", f"<!-- {region}:end -->"
    page = path.read_text() if path.exists() else f"# {title}\n\n{begin}\n{end}\n"
    if page.count(begin) != 1 or page.count(end) != 1:
        raise SystemExit(f"{path} must have one line {begin} and one line {end}; the report goes between them.")
    before, after = page.split(begin)[0], page.split(end)[1]
    path.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")
