"""What all tests share."""

import os
from importlib.util import find_spec

# Before anything imports SciPy: scikit-learn's array API checks are skipped without it.
os.environ["SCIPY_ARRAY_API"] = "1"

import pytest
from hypothesis import settings

settings.register_profile("scne", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("scne")

# Writes the stored model files; no tests in it.
collect_ignore = ["stored_models"]
# Kernels are tested where PyTorch and Triton are; .ci/run installs both, and says so in SCNE_TORCH.
if "SCNE_TORCH" not in os.environ and any(find_spec(name) is None for name in ("torch", "triton")):
    collect_ignore += ["test_device_copies.py", "test_recorded_search.py", "test_tuning_kernels.py"]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In continuous integration everything is installed, so a test that was skipped is a test that is missing."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    if os.environ.get("CI") and skipped and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        reporter.write_line(
            f"{len(skipped)} test(s) were skipped, which continuous integration does not accept", red=True
        )
