"""The mutants that no test can notice are mutants of the code as it is."""

from pathlib import Path

import pytest
from equivalent_mutants import EQUIVALENT
from mutation_points import mutation_points

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "scne"


@pytest.mark.parametrize("file", sorted({file for file, _, _ in EQUIVALENT}))
def test_every_mutant_with_a_reason_exists(file):
    source = (PACKAGE / file).read_bytes()
    changes = {(file, point.line_text(source), point.change) for point in mutation_points(file, source)}
    assert [key for key in EQUIVALENT if key[0] == file and key not in changes] == []
