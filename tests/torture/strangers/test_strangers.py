"""A few seconds of each tool with a fixed seed: no file from a stranger escapes."""

import sys
import time

import pytest

from . import harness, inputs, model_bytes, model_headers, model_structure
from .corpus import examples, remove_folder
from .harness import run

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="children are forked and measured by Linux"
)
SEED = 13


@pytest.fixture(scope="module", autouse=True)
def whole_examples():
    examples()
    yield
    remove_folder()


@pytest.mark.parametrize(
    ("tool", "n_cases", "seconds"),
    [(model_bytes, 3_000, 5), (model_structure, 1_000, 8), (inputs, 300, 8)],
    ids=["model_bytes", "model_structure", "inputs"],
)
def test_nothing_escapes(tool, n_cases, seconds):
    report = run(tool.__name__, tool.case, n_cases, SEED, seconds)
    assert not report.escapes, report.line()
    assert report.n_cases > 0
    # Some files are refused and some are not, or the tool would test nothing.
    assert len(report.outcomes) > 1 or report.n_cases < 100, report.line()


@pytest.mark.slow
def test_headers_that_are_made_to_cost_much_do_not():
    report = run("model_headers", model_headers.case, len(model_headers.BOMBS), SEED)
    assert not report.escapes, report.line()
    assert report.n_cases == len(model_headers.BOMBS)


@pytest.mark.parametrize("name", ["50 MB of lists", "just few enough objects", "classes of one long text"])
def test_a_header_that_is_made_to_cost_much_does_not(name):
    report = run("model_headers", model_headers.case, 1, SEED, first=list(model_headers.BOMBS).index(name))
    assert not report.escapes, report.line()


def _slow(seed, number):
    while True:
        pass


def _greedy(seed, number):
    return str(len(b"x" * 400_000_000))


def _crashing(seed, number):
    import os
    import signal

    os.kill(os.getpid(), signal.SIGKILL)
    return ""


def _raising(seed, number):
    raise TypeError("not for users")


@pytest.mark.parametrize("case", [_slow, _greedy, _crashing, _raising])
def test_the_harness_sees_what_escapes(case, capsys, monkeypatch):
    monkeypatch.setattr(harness, "MOST_SECONDS", 0.3)  # A case that never ends is stopped four times.
    report = run("a", case, 1, SEED)
    assert len(report.escapes) == 1
    assert "--seed 13 --case 0" in capsys.readouterr().out


def _sometimes_slow(seed, number):
    """Slow at first, as on a core that somebody else uses too."""
    started = time.process_time()
    while len(_CALLS) < 2 and time.process_time() - started < 0.5:
        pass
    _CALLS.append(number)
    return "used"


_CALLS: list[int] = []


def test_the_harness_tries_slow_cases_again(monkeypatch):
    monkeypatch.setattr(harness, "MOST_SECONDS", 0.3)
    report = run("a", _sometimes_slow, 1, SEED)
    assert not report.escapes, report.line()
    assert report.outcomes == {"used": 1}
