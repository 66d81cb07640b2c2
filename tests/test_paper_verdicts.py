"""Claims are judged by the standard error of paired differences, and on the paper's own rows at full size only."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ttest_rel

from scne.paper import EXPERIMENTS, find_experiments, make_plan, run_experiments
from scne.paper._data import DataChoice
from scne.paper._ensembles import _assemble, _key
from scne.paper._experiment import Plan
from scne.paper._networks import ALGORITHMS, ENSEMBLES
from scne.paper._verdicts import ERROR_RATE, paired


@pytest.mark.parametrize("n_repeats", [2, 3, 10])
@pytest.mark.parametrize("shift", [-1.0, -0.1, 0.0, 0.1, 1.0])
def test_the_verdict_is_that_of_a_paired_t_test(n_repeats, shift):
    rng = np.random.default_rng([n_repeats, int(10 * shift) + 100])
    for _ in range(50):
        first = rng.normal(0, 1, n_repeats)
        second = first + rng.normal(0, 0.3, n_repeats) - shift
        p_value = ttest_rel(first, second).pvalue
        expected = "undecided" if p_value >= ERROR_RATE else "holds" if np.mean(first - second) < 0 else "does not hold"
        assert paired(first, second).lower == expected


def test_what_the_quick_page_once_judged_is_undecided():
    def repeats(mean, standard_error, n):
        values = np.linspace(-1, 1, n)
        return mean + values * standard_error * np.sqrt(n) / values.std(ddof=1)

    for mean, error, n in [(+0.00001, 0.00159, 2), (-0.00008, 0.00006, 10)]:
        apart = paired(repeats(mean, error, n), np.zeros(n))
        assert apart.mean == pytest.approx(mean)
        assert apart.standard_error == pytest.approx(error)
        assert apart.lower == "undecided"
    assert paired([1.0], [2.0]).lower == "undecided"  # one repeat has no standard error
    assert paired([1.0, 1.0], [2.0, 2.0]).lower == "holds"
    assert paired([1.0, 1.0], [1.0, 1.0]).lower == "undecided"


def ensemble_units(gap, noise, n=10):
    """Errors of ten repeats in which SCNE lies `gap` below DNNE on average, by turns `noise` more and less."""
    units = []
    for repeat in range(n):
        unit = {}
        for ensemble, algorithm, ridge in (
            (ensemble, algorithm, ridge) for ensemble in ENSEMBLES for algorithm in ALGORITHMS for ridge in (0.0, 0.1)
        ):
            level = 0.115 + (0.001 if algorithm == "naive" else 0.0)
            level -= gap + noise * (-1) ** repeat if ensemble == "SCNE" else 0.0
            unit[_key(ensemble, algorithm, ridge)] = [level, level]
        units.append(unit)
    return units


def full_plan(name):
    plan = make_plan(EXPERIMENTS[name])
    rows = DataChoice("year", "full", "", 463_715, 51_630, "")
    return replace(plan, data={"year": rows})


@pytest.mark.parametrize(
    ("gap", "noise", "verdict"),
    [(1e-3, 1e-5, "holds"), (-1e-3, 1e-5, "does not hold"), (1e-6, 1e-3, "undecided")],
)
def test_scne_below_dnne_has_three_verdicts(gap, noise, verdict):
    plan = full_plan("ensembles-year")
    assert plan.comparable
    findings = _assemble(plan, ensemble_units(gap, noise)).findings
    below = [one for one in findings if "below DNNE" in one.text]
    assert [one.verdict for one in below] == [verdict] * 4
    assert all("± 0.00" in one.text for one in below)


@pytest.mark.parametrize("kind", ["generator", "sample"])
def test_a_full_run_on_other_rows_is_not_judged(kind):
    plan = full_plan("ensembles-year")
    assert not replace(plan, data={"year": replace(plan.data["year"], kind=kind)}).comparable
    assert not replace(plan, quick=True).comparable
    assert Plan("demonstration", False, 1, 0, {}, {}).comparable


def test_a_run_that_is_not_comparable_writes_no_verdict(tmp_path):
    [outcome] = run_experiments([EXPERIMENTS["robustness-year"]], tmp_path, quick=True)
    assert [one["verdict"] for one in outcome.result["findings"]] == ["not judged"]
    assert json.loads(outcome.path.read_text())["findings"] == outcome.result["findings"]


def test_experiments_are_found_by_the_printed_numbers():
    shown = {part for one in EXPERIMENTS.values() for part in one.shows}
    assert shown == {*(f"table-{n}" for n in range(4, 10)), *(f"figure-{n}" for n in (2, 3, 4, 6, 7))}
    assert [one.name for one in find_experiments(["figure-2", "table-9"])] == ["demonstration", "ensembles-year"]
    with pytest.raises(ValueError, match=r"no experiment 'figure-8'.*figure-7"):
        find_experiments(["figure-8"])
