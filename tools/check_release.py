"""Whether a version can be released: its number, its date, its changelog and its addresses agree.

python tools/check_release.py
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ADDRESSES = ("Source", "Documentation", "Issues", "Changelog")


def obstacles(root: Path) -> Iterator[str]:
    """What stands in the way of a release, one sentence each, with the way out."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = project["version"]
    if re.fullmatch(r"\d+\.\d+\.\d+(rc\d+)?", version) is None:
        yield f"pyproject.toml has version {version!r}; a release is like 0.2.0 or 0.2.0rc1."
    citation = (root / "CITATION.cff").read_text(encoding="utf-8")
    if f"\nversion: {version}\n" not in citation:
        yield f"CITATION.cff does not have 'version: {version}'."
    if not re.search(r"^date-released: ['\"]?\d{4}-\d\d-\d\d", citation, re.MULTILINE):
        yield "CITATION.cff has no date-released, such as 2026-12-01."
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", changelog, re.MULTILINE):
        yield f"CHANGELOG.md has no heading '## {version} (date)'; towncrier build makes it."
    for fragment in sorted((root / "changes").glob("*.md")):
        if fragment.name != "README.md":
            yield f"{fragment.relative_to(root).as_posix()} is not in the changelog yet; towncrier build puts it there."
    for name in ADDRESSES:
        if name not in project.get("urls", {}):
            yield f"pyproject.toml has no {name} under [project.urls]."
    recipe = (root / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    if f'version: "{version}"' not in recipe:
        yield f'conda/recipe.yaml does not have version: "{version}".'


def main() -> int:
    """Print what stands in the way, and return 1 if anything does."""
    found = list(obstacles(ROOT))
    for sentence in found:
        print(sentence, file=sys.stderr)  # noqa: T201
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
