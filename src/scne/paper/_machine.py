"""What a result was measured with."""

import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

from scne.passes import available_threads


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that numbers depend on."""
    names = ("scne", "numpy", "scipy", "scikit-learn")
    return {**{name: version(name) for name in names}, "python": platform.python_version()}


def machine() -> dict[str, Any]:
    """The machine in words, its cores for this process and its memory."""
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cores": available_threads(),
        "memory_gb": round(_memory_bytes() / 2**30),
    }


def _processor() -> str:
    facts = Path("/proc/cpuinfo")
    if facts.exists():
        for line in facts.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 0
