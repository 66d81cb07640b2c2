"""The tools of this folder on a few cases each: that they run, and that these cases hold."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        sys.platform != "linux" or shutil.which("cc") is None, reason="the tools need Linux and a C compiler"
    ),
]

FEW = {
    "kills.py": ["--seconds", "4", "--cases", "8"],
    "disk.py": ["--seconds", "3"],
    "memory_failures.py": ["--only", "failing", "--seconds", "3"],
    "checkpoints.py": ["--seconds", "3"],
    "commands.py": ["--only", "machine", "--seconds", "3"],
    "soak.py": ["--minutes", "0.05"],
}


def run_tool(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "SCIPY_ARRAY_API"}
    command = [sys.executable, str(HERE / name), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


@pytest.mark.parametrize("name", FEW)
def test_a_few_cases_of_each_tool_hold(name):
    done = run_tool(name, "--seed", "0", *FEW[name])
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_option_changed_between_kill_and_resume_is_refused_or_right():
    done = run_tool("commands.py", "--only", "table")
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_array_changed_between_kill_and_resume_is_refused_or_right():
    done = run_tool("array_fits.py")
    assert done.returncode == 0, done.stdout + done.stderr


def test_two_fits_on_one_checkpoint_folder():
    done = run_tool("checkpoints.py", "--only", "pairs")
    assert done.returncode == 0, done.stdout + done.stderr
