"""`scne paper run` as a user runs it: real processes, killed, stopped and started again."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from commands import SCNE, seen_on_terminal
from headless_chromium import Chromium, find_chromium

from scne.paper import (
    EXPERIMENTS,
    check_result,
    experiment_titles,
    paper_page,
    published,
    read_results,
    run_experiments,
)

# Whole experiments in processes of their own: minutes, not seconds.
pytestmark = pytest.mark.slow

# Kept from one run to the next only where a run was not finished.
TIMES = ("seconds", "finished")


def environment(folder, **more):
    return {**os.environ, "SCNE_DATA": str(folder / "no-data"), **more}


def scne(*arguments, cwd, **more):
    return subprocess.run(
        [*SCNE, *arguments],
        cwd=cwd,
        env=environment(cwd, **more),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def without_times(result):
    return {key: value for key, value in result.items() if key not in TIMES}


@pytest.fixture(autouse=True)
def nothing_at_hand(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    monkeypatch.setenv("SCNE_DATA", str(tmp_path / "no-data"))
    monkeypatch.chdir(tmp_path / "work")


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """Every experiment in its quick form, by the command."""
    folder = tmp_path_factory.mktemp("all") / "work"
    folder.mkdir()
    finished = scne("paper", "run", "all", "--quick", cwd=folder)
    assert finished.returncode == 0, finished.stderr
    return folder, finished


@pytest.fixture(scope="module")
def results(quick):
    return {path.stem: json.loads(path.read_text()) for path in sorted((quick[0] / "scne-paper").glob("*.json"))}


def test_units_are_counted_on_a_terminal(tmp_path):
    command = [*SCNE, "paper", "run", "data-plots", "--quick"]
    seen = seen_on_terminal(command, tmp_path, SCNE_DATA=str(tmp_path / "no-data"))
    assert b"data-plots" in seen
    # How many are seen on the way depends on how fast they are; the last count is drawn before the line goes.
    assert b" 2/2 parts, 1 of 1" in seen


def test_every_experiment_leaves_a_valid_result_and_nothing_else(quick, results):
    folder, finished = quick
    assert sorted(results) == sorted(EXPERIMENTS)
    assert [path.name for path in (folder / "scne-paper").iterdir() if path.suffix != ".json"] == []
    for name, result in results.items():
        check_result(result, name)
        assert result["name"] == name
        assert result["quick"]
        assert result["tables"] or result["figures"]
    assert finished.stderr == ""


def test_the_terminal_shows_a_list_with_the_findings_under_each_experiment(quick, results):
    entries = []
    for line in quick[1].stdout.splitlines():
        if line and line[0] != " " and "experiments in" not in line:
            entries.append((line.split()[0], []))
        elif line.startswith("  - "):
            entries[-1][1].append(line[4:])
    assert [name for name, _ in entries] == list(EXPERIMENTS)
    for name, findings in entries:
        assert findings == [
            f"{one['verdict']}: {one['text']}" if one["verdict"] else one["text"] for one in results[name]["findings"]
        ]
    assert quick[1].stdout.endswith("14 experiments in scne-paper; `scne paper report` makes a page of them.\n")


def test_nothing_is_judged_on_quick_runs_and_their_texts_have_their_own_numbers(results):
    for result in results.values():
        assert {one["verdict"] for one in result["findings"]} <= {None, "not judged"}
        text = json.dumps(result, ensure_ascii=False)
        assert "MATLAB" not in text
        assert "Correlation of b" not in text
        assert "Ten networks" not in text
        assert "4,000" not in text
        assert "70,000" not in result["about"]
    assert "4 networks on the same 800 rows" in results["demonstration"]["about"]
    assert "grows to 15 nodes on at most 600 training rows" in results["hidden-nodes-year"]["about"]
    # The paper's curve is of the third repeat, and two repeats have no third.
    drawn = results["hidden-nodes-year"]["figures"][0]
    assert "repeat 2" in drawn["panels"][0]["title"]
    assert "The paper shows repeat 3 of the same group" in drawn["caption"]


def test_figures_carry_the_numbers_that_are_printed(results):
    printed = {"demonstration": ["2"], "data-plots": ["3", "4"]}
    printed |= {f"hidden-nodes-{one}": ["6"] for one in ("year", "twitter")}
    printed |= {f"robustness-{one}": ["7"] for one in ("year", "twitter")}
    for name, result in results.items():
        numbers = [one["title"].split(". ")[0][7:] for one in result["figures"] if one["title"].startswith("Figure ")]
        assert numbers == printed.get(name, [])
        identifiers = [one["id"] for one in result["figures"] if one["id"].startswith("figure-")]
        assert [one.split("-")[1] for one in identifiers] == numbers
        shown = [part[7:] for part in EXPERIMENTS[name].shows if part.startswith("figure-")]
        assert shown == numbers
        assert all(f"Figure {number}" in result["title"] for number in numbers if name != "data-plots")


def test_the_page_of_all_of_them_is_short_enough_to_be_read(quick, tmp_path, tmp_path_factory):
    program = find_chromium()
    if program is None:
        pytest.skip("Chromium is not installed")
    paper_page(read_results(quick[0] / "scne-paper"), experiment_titles()).write(tmp_path / "page.html")
    with Chromium(program, tmp_path_factory.mktemp("profile")) as browser:
        browser.open((tmp_path / "page.html").as_uri(), width=1280, height=900)
        assert browser.run("document.documentElement.scrollHeight") < 12_000
        assert browser.run("document.querySelector('.banner').getBoundingClientRect().bottom") < 300
        assert browser.run("document.querySelector('.overview').getBoundingClientRect().bottom") < 900
        browser.open((tmp_path / "page.html").as_uri(), width=390, height=844)
        assert browser.run("document.documentElement.scrollWidth") <= 390


def test_the_page_can_read_every_result(quick):
    read = read_results(quick[0] / "scne-paper")
    assert [result.name for result in read] == list(experiment_titles())


def test_quick_is_quick(results):
    assert sum(result["seconds"] for result in results.values()) < 60


def test_results_say_what_data_they_ran_on(results):
    for result in results.values():
        data = result["data"]
        if result["name"] == "demonstration":
            assert data["name"] == "synthetic"
        else:
            assert data["substitute"]
            assert "generator" in data["note"]


@pytest.mark.parametrize(("dataset", "number"), [("year", 9), ("twitter", 8)])
def test_ensemble_tables_stand_beside_the_papers_numbers(results, dataset, number):
    table = next(one for one in results[f"ensembles-{dataset}"]["tables"] if one["id"] == f"table-{number}")
    assert table["unit"] == f"{published(dataset).unit:g}"
    rows = {tuple(row["labels"]): row["cells"] for row in table["rows"]}
    assert len(rows) == 8
    for row in published(dataset).errors:
        cells = rows[row.ensemble, row.algorithm]
        assert (cells["train"]["paper"], cells["train"]["paper_spread"]) == (row.train, row.train_sd)
        assert (cells["test"]["paper"], cells["test"]["paper_spread"]) == (row.test, row.test_sd)
        assert cells["test"]["ours"] > 0
        # r = 0.1 stands beside it, and nothing of the paper's beside that.
        assert set(cells) == {"train", "test", "train-r0.1", "test-r0.1"}
        assert set(cells["test-r0.1"]) == {"ours", "spread"}
    labels = [column["label"].replace("\u00a0", " ") for column in table["columns"]]
    assert labels == [f"{part} RMSE, r = {ridge}" for ridge in ("0", "0.1") for part in ("training", "test")]
    assert "The paper names no r for this table" in table["note"]


def test_the_three_algorithms_agree_and_the_naive_average_is_worse(results):
    findings = results["ensembles-year"]["findings"]
    agree = [one for one in findings if "agree to four digits" in one["text"]]
    naive = [one for one in findings if "lower errors than the naive average" in one["text"]]
    below = [one for one in findings if "below DNNE" in one["text"]]
    assert [len(part) for part in (agree, naive, below)] == [2, 2, 4]
    assert all(one["verdict"] == "not judged" for one in (*agree, *naive))
    cells = {tuple(row["labels"]): row["cells"] for row in results["ensembles-year"]["tables"][0]["rows"]}
    rows = {labels: cell["test-r0.1"]["ours"] for labels, cell in cells.items()}
    for ensemble in ("SCNE", "DNNE"):
        solved = [rows[ensemble, way] for way in ("pseudo-inverse", "block Jacobi", "block Gauss-Seidel")]
        assert max(solved) - min(solved) < 5e-5 * min(solved)
        assert rows[ensemble, "naive"] > max(solved)
    assert ["r = 0:" in one["text"] for one in below] == [True, True, False, False]


def test_tables_and_figures_have_the_papers_form(results):
    def table(name, identifier):
        return next(one for one in results[name]["tables"] if one["id"] == identifier)

    nodes = table("hidden-nodes-twitter", "table-4")
    assert [column["key"] for column in nodes["columns"]] == list(published("twitter").groups)
    medians = nodes["rows"][-1]
    assert medians["labels"] == ["median"]
    assert [cell["paper"] for cell in medians["cells"].values()] == list(published("twitter").hidden_nodes)
    scopes = table("scope-year", "table-7-best")["rows"][0]["cells"]
    assert [cell["paper"] for cell in scopes.values()] == list(published("year").best_alphas)
    boxes = results["robustness-year"]["figures"][0]["panels"][0]["boxes"]
    assert [box["label"] for box in boxes] == ["0.08", "0.09", "0.10", "0.11", "0.12"]
    assert len(results["demonstration"]["figures"][0]["panels"]) == 4
    radius = results["spectral-radius"]["figures"][0]["panels"]
    assert len(radius) == 4
    assert {line["axis"] for line in radius[0]["lines"]} == {"x", "y"}
    assert len([line for line in radius[0]["lines"] if line["axis"] == "x"]) == 4
    peaks = [row["cells"]["peak"]["ours"] for row in results["cost"]["tables"][0]["rows"]]
    assert len(peaks) == 4
    assert min(peaks) > 0.01
    path = table("lambda-path-year", "lambda-path-year")
    assert [row["labels"][0] for row in path["rows"]] == ["SCNE"] * 4 + ["DNNE"] * 4 + ["SCNERegressor()"]


def test_what_is_there_is_not_run_again_unless_asked(quick, results, tmp_path):
    folder, _ = quick
    path = folder / "scne-paper" / "scope-year.json"
    before = path.read_bytes()
    assert "there already" in scne("paper", "run", "scope-year", "--quick", cwd=folder).stdout
    assert path.read_bytes() == before

    def run(**settings):
        [outcome] = run_experiments([EXPERIMENTS["scope-year"]], tmp_path, quick=True, **settings)
        assert json.loads(outcome.path.read_text()) == outcome.result
        return outcome

    other = run(seed=1)
    assert other.ran == 2
    assert other.result["tables"] != results["scope-year"]["tables"]
    assert other.result["seeds"] != results["scope-year"]["seeds"]
    # Another seed in the same folder takes the result's place.
    assert (run().ran, run().ran, run(again=True).ran) == (2, 0, 2)
    assert without_times(run().result) == without_times(results["scope-year"])
    assert run(repeats=3).ran == 3


def test_list_names_all_and_says_what_is_there(quick):
    folder, _ = quick
    listed = scne("paper", "list", "--quick", cwd=folder, COLUMNS="200")
    assert listed.returncode == 0, listed.stderr
    lines = {line.split()[0]: line for line in listed.stdout.splitlines() if line.split()[:1]}
    for name in EXPERIMENTS:
        assert lines[name].rstrip().endswith("yes")
    assert "make_year_like (1,000)" in lines["ensembles-year"]


@pytest.mark.parametrize("name", ["ensembles-twitter", "hidden-nodes-year"])
def test_same_seed_same_numbers_with_one_job_and_two(results, name, tmp_path):
    [outcome] = run_experiments([EXPERIMENTS[name]], tmp_path / "two", quick=True, jobs=2)
    assert outcome.ran > 1
    assert without_times(outcome.result) == without_times(results[name])


def test_more_repeats_leave_the_first_as_they_were(results, tmp_path):
    [outcome] = run_experiments([EXPERIMENTS["hidden-nodes-year"]], tmp_path, quick=True, repeats=3)
    ours, first = (
        [[cell["ours"] for cell in row["cells"].values()] for row in result["tables"][0]["rows"][:2]]
        for result in (outcome.result, results["hidden-nodes-year"])
    )
    assert ours == first


def started(folder, *arguments):
    """A run in a group of processes of its own, and the mark that all of them carry."""
    mark = uuid.uuid4().hex
    process = subprocess.Popen(
        [*SCNE, "paper", "run", *arguments],
        cwd=folder,
        env=environment(folder, SCNE_TEST_MARK=mark),
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return process, mark


def wait_for(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came to pass"
        time.sleep(0.02)


def marked_processes(mark):
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            content = path.read_bytes()
        except OSError:
            continue
        if f"SCNE_TEST_MARK={mark}".encode() in content:
            found.append(path.parent.name)
    return found


def units(folder):
    return sorted((folder / "scne-paper" / "ensembles-year.partial").glob("[!.]*.json"))


REPEATS = 15


@pytest.fixture
def uninterrupted(tmp_path):
    [outcome] = run_experiments([EXPERIMENTS["ensembles-year"]], tmp_path / "whole", quick=True, repeats=REPEATS)
    return outcome.result


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_run_goes_on_where_it_was_and_ends_the_same(uninterrupted, tmp_path, jobs):
    arguments = ("ensembles-year", "--quick", "--repeats", str(REPEATS), "--jobs", str(jobs))
    process, mark = started(tmp_path, *arguments)
    wait_for(lambda: len(units(tmp_path)) >= 3)
    process.kill()
    process.communicate()
    # Nobody goes on working for a run that is no more.
    wait_for(lambda: not marked_processes(mark), 20)
    kept = units(tmp_path)
    assert 3 <= len(kept) < REPEATS
    assert not (tmp_path / "scne-paper" / "ensembles-year.json").exists()
    listed = scne("paper", "list", "--quick", "--repeats", str(REPEATS), cwd=tmp_path, COLUMNS="200").stdout
    assert f"{len(kept)} of {REPEATS} parts" in listed
    assert listed.count(" no") >= len(EXPERIMENTS) - 1
    # As if the machine itself had gone down while a file was written.
    kept[1].write_bytes(kept[1].read_bytes()[:20])
    finished = scne("paper", "run", *arguments, cwd=tmp_path)
    assert finished.returncode == 0, finished.stderr
    assert f"{REPEATS - len(kept) + 1} of {REPEATS} parts were run now, the others were kept" in finished.stdout
    resumed = json.loads((tmp_path / "scne-paper" / "ensembles-year.json").read_text())
    assert without_times(resumed) == without_times(uninterrupted)
    assert [path.name for path in (tmp_path / "scne-paper").iterdir()] == ["ensembles-year.json"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_ends_with_one_sentence_and_keeps_what_is_finished(tmp_path, jobs):
    process, mark = started(tmp_path, "ensembles-year", "--quick", "--repeats", str(REPEATS), "--jobs", str(jobs))
    wait_for(lambda: len(units(tmp_path)) >= 2)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.count("\n") == 2, errors
    assert "Every part that was finished is kept in scne-paper" in errors
    assert len(units(tmp_path)) >= 2
    wait_for(lambda: not marked_processes(mark), 20)


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["run", "ensemble-year"], 1, "no experiment 'ensemble-year'"),
        (["run", "ensembles-year", "--data", "nowhere"], 1, "nowhere"),
        (["run", "ensembles-year", "--quick", "--out", "file"], 1, "that is a file"),
        (["run", "ensembles-year", "--repeats", "0"], 2, "repeats"),
        (["run", "ensembles-year", "--jobs", "0"], 2, "jobs"),
        (["run", "ensembles-year", "--seed", "-1"], 2, "seed"),
        (["run"], 2, "NAME"),
    ],
)
def test_mistakes_end_in_a_sentence(arguments, status, words, tmp_path):
    (tmp_path / "file").write_text("")
    finished = scne("paper", *arguments, cwd=tmp_path)
    assert finished.returncode == status
    assert words in finished.stderr
    assert "Traceback" not in finished.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "work"]


def test_hidden_outputs_in_memory_take_more_than_rows_in_blocks(tmp_path):
    import numpy as np

    rng = np.random.default_rng(0)
    np.save(tmp_path / "inputs.npy", rng.uniform(size=(100_000, 21)))
    np.save(tmp_path / "target.npy", rng.uniform(size=100_000))
    task = {
        "inputs": str(tmp_path / "inputs.npy"),
        "target": str(tmp_path / "target.npy"),
        "groups": {"a": list(range(7)), "b": list(range(7, 14)), "c": list(range(14, 21))},
        "sizes": [100, 100, 100],
        "alphas": [1.0, 1.0, 1.0],
        "seed": 0,
        "lambda": 0.1,
        "k_max": 10,
        "ridge": 0.1,
    }
    found = {}
    for form, solver in [("data", ""), ("held", "pinv"), ("held", "jacobi"), ("blocks", "pinv"), ("blocks", "jacobi")]:
        child = subprocess.run(
            [sys.executable, "-m", "scne.paper._cost_child", json.dumps({**task, "form": form, "solver": solver})],
            capture_output=True,
            text=True,
            check=True,
        )
        found[form, solver] = json.loads(child.stdout)
    hidden = 100_000 * 300 * 8
    alone = found["data", ""]["peak"]
    # H twice for Algorithm 1, which holds the H_m and H; once for Algorithm 2; never in blocks.
    assert found["held", "pinv"]["peak"] - alone > 1.9 * hidden
    assert 0.9 * hidden < found["held", "jacobi"]["peak"] - alone < 1.6 * hidden
    assert found["blocks", "pinv"]["peak"] - alone < 0.5 * hidden
    # The two forms draw their nodes apart; within a form the algorithms solve the same system.
    for form in ("held", "blocks"):
        assert found[form, "pinv"]["error"] == pytest.approx(found[form, "jacobi"]["error"], rel=1e-8)
