"""What a broad set of fits gives, frozen as checksums, so that a change of the code's form is seen to change nothing.

    python tests/golden/frozen.py write golden.json       # with the code as it is
    python tests/golden/frozen.py compare golden.json     # with the code as it has become

Predictions, model files, checkpoints, exports and the `--json` outputs of commands are compared bit for bit. Last bits
depend on the processor and on its BLAS, so both files belong to one machine.
"""

import argparse
import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
from fits import SCENARIOS


def checksum(value: object) -> str:
    """Of an array, of bytes, or of what JSON can hold."""
    if isinstance(value, bytes):
        content = value
    elif isinstance(value, (np.ndarray, np.generic)):
        array = np.ascontiguousarray(value)
        content = f"{array.dtype.str} {array.shape}".encode() + array.tobytes()
    else:
        content = json.dumps(value, sort_keys=True, default=str).encode()
    return hashlib.sha256(content).hexdigest()[:24]


def frozen(scenarios: dict[str, Callable[[Path], Iterator[tuple[str, object]]]]) -> dict[str, str]:
    """The checksum of everything that the scenarios give."""
    sums: dict[str, str] = {}
    for name, scenario in scenarios.items():
        started = time.perf_counter()
        # The same folder always: error messages and checkpoints name files.
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            for part, value in scenario(Path(folder)):
                sums[f"{name}: {part}"] = checksum(value)
            os.chdir("/")
        sys.stderr.write(f"{name} {time.perf_counter() - started:.1f} s\n")
    return sums


def differences(before: dict[str, str], now: dict[str, str]) -> list[str]:
    """Names of what differs, is gone or is new."""
    return [
        f"{name}: {'is gone' if name not in now else 'is new' if name not in before else 'differs'}"
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    ]


def main() -> int:
    """Write or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["write", "compare"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="", help="scenarios whose names contain this text")
    asked = parser.parse_args()
    file = asked.file.resolve()
    now = frozen({name: scenario for name, scenario in SCENARIOS.items() if asked.only in name})
    if asked.action == "write":
        file.write_text(json.dumps(now, indent=1))
        return 0
    before = {name: value for name, value in json.loads(file.read_text()).items() if asked.only in name}
    wrong = differences(before, now)
    sys.stdout.write("\n".join([*wrong, f"{len(before) - len(wrong)} of {len(before)} alike"]) + "\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
