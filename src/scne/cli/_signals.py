"""Ctrl-C and SIGTERM: the command ends as if by an error, cleans up behind itself, and says what it kept."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

# What the operating system asks a command to stop with, and how that is called.
_NAMES = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}
# Seconds until a signal that was lost comes again.
_SOON = 0.01


class Stopped(BaseException):
    """The user, or the operating system, asked the command to stop.

    Not a KeyboardInterrupt: libraries catch that and end with words of their own, or with none.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @property
    def status(self) -> int:
        """The exit status that shells expect: 130 after Ctrl-C, 143 after SIGTERM."""
        return 128 + self.number

    def __str__(self) -> str:
        return f"Stopped by {_NAMES.get(signal.Signals(self.number), signal.Signals(self.number).name)}."


@contextmanager
def stopping_cleanly() -> Iterator[None]:
    """Inside, Ctrl-C and SIGTERM raise `Stopped`; a second one ends the process at once.

    Afterwards the signals end the process as they do by default, and no longer with a traceback: what was to be done
    is done, and Python only has to tidy up.
    """
    # Only the main thread may say what happens; and who starts a command in the background with signals ignored (nohup,
    # a shell's &) wants them ignored.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    answered = [number for number in _NAMES if signal.getsignal(number) is not signal.SIG_IGN]

    def by_default() -> None:
        for number in answered:
            signal.signal(number, signal.SIG_DFL)

    def stop(number: int, frame: FrameType | None) -> NoReturn:
        by_default()
        raise Stopped(number)

    def listen() -> None:
        for number in answered:
            signal.signal(number, stop)

    def lost(raised: "UnraisableHookArgs") -> None:
        # A signal can arrive while the interpreter calls back, as when an object dies: what is raised there is printed
        # and goes nowhere.
        if not isinstance(raised.exc_value, Stopped):
            usual(raised)
            return
        listen()
        threading.Timer(_SOON, os.kill, (os.getpid(), raised.exc_value.number)).start()

    usual, sys.unraisablehook = sys.unraisablehook, lost
    try:
        listen()
        yield
    finally:
        by_default()
        sys.unraisablehook = usual
