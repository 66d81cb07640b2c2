"""Compiles the kernels of `scne.networks.compiled` where there is a C compiler; without one NumPy does their work."""

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("src/scne/networks/compiled")
# No reordering of sums: what a kernel adds up in a fixed order stays in that order.
FLAGS = ["-O3", "-std=gnu11", "-fPIC", "-fno-math-errno", "-fno-trapping-math", "-fvisibility=default"]
WIDTHS = {
    "16": "-mavx512f -mavx512vl -mavx512dq -mavx512bw -mfma -mprefer-vector-width=512",
    "8": "-mavx2 -mfma",
    "4": "",
}


# Sources that are compiled for each width, and the options of those that are compiled for both precisions.
KERNELS = {
    "tuning": ("tuning.c", ""),
    "double_tuning": ("tuning.c", "-DDOUBLE"),
    "search": ("search.c", ""),
    "double_search": ("search.c", "-DDOUBLE"),
    "features": ("features.c", ""),
    "layer": ("layer.c", ""),
    "shapley": ("shapley.c", ""),
    "tables": ("tables.c", ""),
}


class CustomBuildHook(BuildHookInterface):
    """Puts `kernels.so` beside its sources, and names the platform in the wheel's tag."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before the files of a wheel are collected, or those of an editable installation are linked."""
        folder = Path(self.root) / FOLDER
        if os.environ.get("SCNE_COMPILED") == "0" or os.name != "posix":
            return
        try:
            compile_kernels(folder)
        except (OSError, subprocess.CalledProcessError) as error:
            said = getattr(error, "stderr", None) or error
            self.app.display_warning(f"scne: no compiled kernels, NumPy does their work more slowly: {said}")
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
        build_data["artifacts"].append(f"/{FOLDER}/kernels.so")


def compile_kernels(folder: Path) -> None:
    """Compile the sources of a folder into `kernels.so` beside them, unless that is there already.

    It appears whole or not at all, because processes that run may be loading it.
    """
    library = folder / "kernels.so"
    source = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(folder.glob("*.[ch]")))).hexdigest()
    if library.exists() and source.encode() in library.read_bytes():
        return
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    if shutil.which(compiler[0]) is None:
        compiler = ["cc"]
    wide = platform.machine().lower() in ("x86_64", "amd64")
    with tempfile.TemporaryDirectory(dir=folder) as there:
        objects = []
        for width, options in WIDTHS.items():
            for name, (source_file, precision) in KERNELS.items() if wide or width == "4" else ():
                objects.append(f"{there}/{name}{width}.o")
                step = [
                    *FLAGS,
                    *options.split(),
                    *precision.split(),
                    f"-DWIDTH={width}",
                    "-c",
                    str(folder / source_file),
                ]
                run([*compiler, *step, "-o", objects[-1]])
        last = [*FLAGS, f'-DSOURCE="{source}"', "-shared", str(folder / "kernels.c"), *objects, "-lm"]
        run([*compiler, *last, "-o", f"{there}/kernels.so"])
        os.replace(f"{there}/kernels.so", library)


def run(command: list[str]) -> None:
    """Run a command whose output is shown only if it fails."""
    subprocess.run(command, check=True, capture_output=True, text=True)
