"""All tools, one after another, for a fixed time.

    python tests/torture/run.py --seconds 60

The seed is that of the day unless one is given, so that continuous integration tries other cases every day, and the
same ones when it is run again.
"""

import argparse
import datetime
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Shares of the time, which is what each has found for it so far.
SHARES = {"kills": 5, "checkpoints": 4, "disk": 3, "memory_failures": 3, "commands": 3, "soak": 2}


def arguments_of(tool: str, seconds: float, seed: int) -> list[str]:
    """How a tool is told its time."""
    if tool == "soak":
        return ["--minutes", f"{seconds / 60:.3f}", "--seed", str(seed)]
    if tool == "commands":
        return ["--only", "machine", "--seconds", f"{seconds:.1f}", "--cases", "100000", "--seed", str(seed)]
    if tool == "memory_failures":
        # Not the limits on the address space: what OpenBLAS does there differs between machines.
        return ["--only", "failing", "--seconds", f"{seconds:.1f}", "--cases", "100000", "--seed", str(seed)]
    return ["--seconds", f"{seconds:.1f}", "--cases", "100000", "--seed", str(seed)]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=datetime.date.today().toordinal())
    chosen = parser.parse_args()
    print(f"seed {chosen.seed}", flush=True)
    failed = []
    for tool, share in SHARES.items():
        started = time.monotonic()
        seconds = chosen.seconds * share / sum(SHARES.values())
        command = [sys.executable, str(HERE / f"{tool}.py"), *arguments_of(tool, seconds, chosen.seed)]
        print(f"== {' '.join(command[1:])}", flush=True)
        if subprocess.run(command).returncode:
            failed.append(tool)
        print(f"   {time.monotonic() - started:.0f} s", flush=True)
    print(f"wrong: {', '.join(failed)}" if failed else "nothing wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
