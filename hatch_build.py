"""What a wheel has beside its sources: kernels, where there is a C compiler, and a bill of materials (PEP 770).

Without a compiler NumPy does the work of the kernels of `scne.networks.compiled`.
"""

import hashlib
import json
import os
import platform
import re
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
        self.compile(build_data)
        if version == "standard":
            self.folder = tempfile.TemporaryDirectory()
            path = Path(self.folder.name) / "scne.cdx.json"
            bill = bill_of_materials(self.metadata.version, self.metadata.core.dependencies, build_data["pure_python"])
            path.write_text(json.dumps(bill, indent=2) + "\n", encoding="utf-8")
            build_data["sbom_files"].append(str(path))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was needed while the wheel was written."""
        if version == "standard":
            self.folder.cleanup()

    def compile(self, build_data: dict[str, Any]) -> None:
        """Put the kernels among the files of the wheel, if they can be compiled."""
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


def bill_of_materials(version: str, requirements: list[str], pure: bool) -> dict[str, Any]:
    """What is in a wheel and what it needs, as CycloneDX: no times, names of machines or random numbers.

    Requirements are named without a version, because an installer chooses it.
    """
    own = f"pkg:pypi/scne@{version}"
    packages = {re.match(r"[\w.-]+", requirement)[0]: requirement for requirement in sorted(requirements)}
    sample = {
        "type": "data",
        "bom-ref": "beijing_nongzhanguan.parquet",
        "name": "Beijing Multi-Site Air Quality, one station",
        "licenses": [{"license": {"id": "CC-BY-4.0"}}],
        "externalReferences": [{"type": "distribution", "url": "https://doi.org/10.24432/C5RK5G"}],
    }
    kernels = {"type": "library", "bom-ref": "kernels.so", "name": "scne kernels", "version": version}
    needed = [
        {
            "type": "library",
            "bom-ref": f"pkg:pypi/{name}",
            "name": name,
            "purl": f"pkg:pypi/{name}",
            "properties": [{"name": "scne:requirement", "value": requirement}],
        }
        for name, requirement in packages.items()
    ]
    components = [sample, *([] if pure else [kernels]), *needed]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": own,
                "name": "scne",
                "version": version,
                "purl": own,
                "licenses": [{"license": {"id": "BSD-3-Clause"}}],
            }
        },
        "components": components,
        "dependencies": [{"ref": own, "dependsOn": [component["bom-ref"] for component in components]}],
    }


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
