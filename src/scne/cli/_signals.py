"""Ctrl-C and SIGTERM: the command ends as if by an error, cleans up behind itself, and says what it kept."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

# What the operating system asks a command to stop with, and how that is called.
_NAMES = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}


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

    try:
        for number in answered:
            signal.signal(number, stop)
        yield
    finally:
        by_default()
