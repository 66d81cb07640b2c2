"""The paper's numbers in the package are the paper's."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from scne.datasets import paper_groups
from scne.paper import published, published_tables
from scne.paper._published import published_memory

SHARED = Path(__file__).resolve().parents[2] / "shared" / "paper" / "published_tables.json"
# Of the tables as they were typed from the paper, in JSON with sorted keys.
DIGEST = "b7ed0748c94f009551554f33cb90d1034f6dd77011104959766d165168ec352a"


def test_tables_are_those_that_were_typed_from_the_paper():
    canonical = json.dumps(published_tables(), sort_keys=True).encode()
    assert hashlib.sha256(canonical).hexdigest() == DIGEST
    if SHARED.exists():
        assert published_tables() == json.loads(SHARED.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("dataset", "features", "sizes"), [("year", 90, [12] + [13] * 6), ("twitter", 77, [7] * 11)])
def test_groups_are_the_papers_and_hold_every_column_once(dataset, features, sizes):
    groups = published(dataset).groups
    assert [len(columns) for columns in groups.values()] == sizes
    assert sorted(column for columns in groups.values() for column in columns) == list(range(features))
    assert {name: list(columns) for name, columns in groups.items()} == paper_groups(dataset, indices=True)


@pytest.mark.parametrize("dataset", ["year", "twitter"])
def test_chosen_nodes_and_scopes_follow_from_the_printed_tables(dataset):
    paper = published(dataset)
    assert np.abs(np.median(paper.hidden_runs, axis=0) - paper.hidden_nodes).max() <= 0.5
    errors = np.array(paper.alpha_errors)
    assert errors.shape == (len(paper.alphas), len(paper.groups))
    printed = [paper.alphas.index(alpha) for alpha in paper.best_alphas]
    # Where two scopes have the same least error to the printed digits the paper takes either.
    assert [errors[row, m] for m, row in enumerate(printed)] == errors.min(axis=0).tolist()


def test_errors_are_found_by_ensemble_and_algorithm():
    row = published("year").error("SCNE", "block Jacobi")
    assert (row.train, row.test, row.test_sd) == (1.16042, 1.14690, 0.00114)
    assert published("twitter").error("DNNE", "naive").test == 3.839
    assert len(published("year").errors) == len(published("twitter").errors) == 8
    assert published_memory() == {"pseudo-inverse": 7.9, "iterative": 5.4, "machine_ram": 8}
