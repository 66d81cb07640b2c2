"""The comparison with an earlier version: a slower row is named, noise is measured twice, no history is no failure."""

import importlib
from pathlib import Path
from types import SimpleNamespace

import pytest


@pytest.fixture(scope="module")
def regression():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[1] / "benchmarks")
        return importlib.import_module("regression")


class Paced:
    """A version whose measurements are listed; the first of each turn prepares."""

    def __init__(self, *values):
        self.values = list(values)

    def sample(self, row):
        return SimpleNamespace(value=self.values.pop(0))


def test_the_median_of_neighbours_counts(regression):
    assert regression.median_ratio([(1.0, 1.1), (2.0, 2.2), (1.0, 9.0)]) == pytest.approx(1.1)


@pytest.mark.parametrize(("later", "slower"), [(1.0, []), (1.5, ["fit-1000x10"])], ids=["noise", "slower"])
def test_a_slow_row_is_measured_again_before_it_counts(regression, later, slower, capsys):
    before = Paced(*[1.0] * 5)
    now = Paced(9.0, 1.3, 9.0, later, later)
    assert regression.slower_rows(["fit-1000x10"], before, now, 1) == slower
    assert "measured again" in capsys.readouterr().out
    assert now.values == before.values == []


def test_a_fast_row_is_measured_once(regression, capsys):
    assert regression.slower_rows(["fit-1000x10"], Paced(1.0, 1.0), Paced(9.0, 1.1), 1) == []
    assert capsys.readouterr().out == "fit 1,000 x 10: 1.100 of the time of the version before\n"


def test_without_the_commit_nothing_is_compared(regression, capsys):
    assert regression.main(["--against", "0" * 40]) == 0
    assert "is not here" in capsys.readouterr().out


def test_the_baseline_is_a_commit(regression):
    assert len(regression.BASELINE.read_text().split()[0]) == 40
