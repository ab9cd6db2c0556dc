"""The folder in which the pages' commands find the example plugin, as a user installs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.documentation.pages import ROOT

collect_ignore = ["stand_ins"]


@pytest.fixture(scope="session")
def example_plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the example plugin into a folder; nothing is fetched."""
    pytest.importorskip("hatchling", reason="it comes with the extra 'test'")
    folder = tmp_path_factory.mktemp("installed")
    offline = ("--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check")
    plugin = ROOT / "fixtures" / "example_plugin"
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", *offline, "--target", str(folder), str(plugin)],
        capture_output=True,
        text=True,
        check=False,
    )
    if "No module named pip" in done.stderr:
        pytest.skip("there is no pip in this environment")
    assert done.returncode == 0, done.stderr
    return folder
