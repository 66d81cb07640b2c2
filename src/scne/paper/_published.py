"""The paper's own numbers: Tables 1 to 9, as printed."""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

DATASETS = ("year", "twitter")
# The numbers of the tables that are told apart by data set, and the paper's name of the set.
_KEYS = {
    "year": ("Year", "table3_year_groups", "table5_year_hidden_nodes", "table7_year_rvfl_alpha", "table9_year_results"),
    "twitter": (
        "Twitter",
        "table2_twitter_groups",
        "table4_twitter_hidden_nodes",
        "table6_twitter_rvfl_alpha",
        "table8_twitter_results",
    ),
}


@dataclass(frozen=True)
class PublishedError:
    """One line of Table 8 or 9, in the table's unit: means and standard deviations of ten repeats."""

    ensemble: str
    algorithm: str
    train: float
    train_sd: float
    test: float
    test_sd: float


@dataclass(frozen=True)
class Published:
    """What the paper prints on one data set, M groups of columns.

    Attributes
    ----------
    name : str
        The paper's name of the set.
    samples, features, train, test : int
        Table 1.
    groups : dict of str to tuple of int
        Tables 2 and 3: columns of each group, counted from 0.
    hidden_runs : tuple of tuples of int, shape (10, M)
        Tables 4 and 5.
    hidden_nodes : tuple of int, shape (M,)
        Their medians: nodes of each base model.
    alphas : tuple of float
    alpha_errors : tuple of tuples of float, shape (len(alphas), M)
        Tables 6 and 7: validation errors, in `unit`.
    best_alphas : tuple of float, shape (M,)
    unit : float
        Of all errors, on targets scaled to 0-1.
    decorrelation : float
        lambda.
    max_iter, repeats : int
        k_max, and how often everything was repeated.
    errors : tuple of PublishedError
        Tables 8 and 9.
    """

    name: str
    samples: int
    features: int
    train: int
    test: int
    groups: dict[str, tuple[int, ...]]
    hidden_runs: tuple[tuple[int, ...], ...]
    hidden_nodes: tuple[int, ...]
    alphas: tuple[float, ...]
    alpha_errors: tuple[tuple[float, ...], ...]
    best_alphas: tuple[float, ...]
    unit: float
    decorrelation: float
    max_iter: int
    repeats: int
    errors: tuple[PublishedError, ...]

    def error(self, ensemble: str, algorithm: str) -> PublishedError:
        """The line of one ensemble ("SCNE" or "DNNE") and one algorithm."""
        return next(row for row in self.errors if (row.ensemble, row.algorithm) == (ensemble, algorithm))


@cache
def published_tables() -> dict[str, Any]:
    """All tables as the file holds them; not to be changed."""
    text = files("scne.paper").joinpath("data/published_tables.json").read_text(encoding="utf-8")
    tables: dict[str, Any] = json.loads(text)
    return tables


@cache
def published(dataset: str) -> Published:
    """What the paper prints on "year" or "twitter".

    Examples
    --------
    >>> published("year").hidden_nodes
    (61, 27, 25, 22, 27, 22, 27)
    >>> published("twitter").groups["NA"]
    (56, 57, 58, 59, 60, 61, 62)
    """
    tables = published_tables()
    name, groups, nodes, scopes, results = _KEYS[dataset]
    counts = next(row for row in tables["table1_datasets"] if row["dataset"] == name)
    ranges = zip(tables[groups]["names"], tables[groups]["columns_1_based"], strict=True)
    return Published(
        name=name,
        samples=counts["samples"],
        features=counts["features"],
        train=counts["train"],
        test=counts["test"],
        groups={group: tuple(range(first - 1, last)) for group, (first, last) in ranges},
        hidden_runs=tuple(map(tuple, tables[nodes]["runs"])),
        hidden_nodes=tuple(tables[nodes]["median"]),
        alphas=tuple(tables[scopes]["alpha"]),
        alpha_errors=tuple(map(tuple, tables[scopes]["validation_rmse"])),
        best_alphas=tuple(tables[scopes]["best_alpha"]),
        unit=tables[results]["unit"],
        decorrelation=tables[results]["lambda"],
        max_iter=tables[results]["k_max"],
        repeats=tables[results]["repeats"],
        errors=tuple(PublishedError(**row) for row in tables[results]["rows"]),
    )


def published_memory() -> dict[str, float]:
    """Remark 3: peak memory in GB on Twitter of the pseudo-inverse and of the iterative methods, and the machine's."""
    return dict(published_tables()["memory_twitter_gb"])
