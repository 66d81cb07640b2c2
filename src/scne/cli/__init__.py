"""The command line: parse, call, print."""

import sys

from scne.cli._signals import Stopped, stopping_cleanly

__all__ = ["main"]


def main() -> None:
    """Run the command; a user's mistake ends in a sentence and exit status 1, not in a traceback.

    After Ctrl-C and SIGTERM it reports what was kept, and ends with exit status 130 and 143.
    """
    try:
        with stopping_cleanly():
            # Imported here: loading it takes a moment, in which the command can be stopped too.
            from scne.cli._app import run

            run()
    except Stopped as stopped:
        notes = getattr(stopped, "__notes__", None) or ["Output files appear complete or not at all."]
        print("\n".join([str(stopped), *notes]), file=sys.stderr)  # noqa: T201
        sys.exit(stopped.status)
