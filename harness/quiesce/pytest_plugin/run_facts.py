"""What may differ between two equal runs: time, machine, versions, and what was left out."""

from __future__ import annotations

import importlib.metadata
import platform
from datetime import UTC, datetime

import pytest

from quiesce.pytest_plugin.keys import SETTINGS
from quiesce.pytest_plugin.selection import chosen
from quiesce.reporting.result_lists import NAMED, SKIPPED
from quiesce.reporting.text import clean_line


def run_facts(config: pytest.Config) -> dict[str, str]:
    """Return the ``run`` object of a report, made when the run starts."""
    selection, settings = chosen(config), config.stash[SETTINGS]
    return {
        "machine": f"{platform.system()} {platform.machine()}",
        "pytest": pytest.__version__,
        "python": platform.python_version(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "version of quiesce": _version(),
        **{f"version of {name}": backend.describe().version for name, backend in selection.backends.items()},
        **{f"{NAMED}{name}": settings.backends_from for name in settings.backends or ()},
        **{f"{SKIPPED}{name}": clean_line(each.explanation) for name, each in selection.unavailable.items()},
    }


def _version() -> str:
    try:
        return importlib.metadata.version("quiesce")
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"
