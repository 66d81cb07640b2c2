"""The command, run the ways that tests need: in this process, or as a process that talks to a terminal."""

import os
import pty
import select
import subprocess
import sys

import pytest

from scne.cli import main

SCNE = [sys.executable, "-m", "scne"]


def run_here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str):
    """Exit status, standard output and error; starting a process for each case would take most of the time."""
    monkeypatch.setattr(sys, "argv", ["scne", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    return stopped.value.code or 0, *capsys.readouterr()


def seen_on_terminal(command, cwd=None, **environment) -> bytes:
    """What a command that succeeds writes to standard error when that is a terminal."""
    main_end, terminal = pty.openpty()
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", **environment},
        stdout=subprocess.DEVNULL,
        stderr=terminal,
    )
    os.close(terminal)
    seen = b""
    while process.poll() is None or select.select([main_end], [], [], 0)[0]:
        if select.select([main_end], [], [], 0.1)[0]:
            try:
                seen += os.read(main_end, 65536)
            except OSError:
                break
    os.close(main_end)
    assert process.wait() == 0
    return seen
