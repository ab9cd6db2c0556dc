"""A user's project with 200 tests that use CuPy: true results in two workers, and true results of its leak checks."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import pytest

_PROJECT: Final = Path(__file__).resolve().parent / "project"
_WHEELS: Final = ("cupy-cuda12x", "nvidia-cuda-nvrtc-cu12", "nvidia-cuda-runtime-cu12")


def _are_installed() -> bool:
    try:
        return all(importlib.metadata.version(name) for name in _WHEELS)
    except importlib.metadata.PackageNotFoundError:
        return False


pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not _are_installed(), reason=f"needs {', '.join(_WHEELS)}: tox -e cupy-kernels"),
]


def run_tests(folder: Path, *options: str) -> dict[str, list[str]]:
    """Run the project's tests as its author would; return their names by what came of them."""
    shutil.copytree(_PROJECT, folder / "project", ignore=shutil.ignore_patterns("__pycache__"))
    python = [sys.executable, "-m"]
    command = [*python, "quiesce.cli.main", "exec", "--report", "report", "--", *python, "pytest", *options]
    command += ["-p", "no:cacheprovider", "--junitxml=junit.xml"]
    environment = {**os.environ, "PYTEST_ADDOPTS": "", "CUPY_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(command, cwd=folder / "project", env=environment, capture_output=True, text=True, check=False)
    outcomes: dict[str, list[str]] = {"passed": [], "failed": [], "output": [done.stdout + done.stderr]}
    for case in ElementTree.parse(folder / "project" / "junit.xml").iter("testcase"):
        failed = {child.tag for child in case} & {"failure", "error"}
        outcomes["failed" if failed else "passed"].append(case.get("name", ""))
    return outcomes


def test_two_hundred_tests_in_two_workers(tmp_path: Path) -> None:
    outcomes = run_tests(tmp_path, "-n", "2")
    assert sorted(outcomes["failed"]) == ["test_a_wrong_expectation", "test_everything_is_kept"], outcomes["output"][0]
    assert len(outcomes["passed"]) == 198
    results = json.loads((tmp_path / "project" / "report" / "report.json").read_text(encoding="utf-8"))["results"]
    rules = [finding["rule"] for result in results for finding in result["findings"]]
    assert rules == ["a_repeated_test_leaves_nothing_behind"]


def test_leak_checks_of_tests_that_use_kernels(tmp_path: Path) -> None:
    outcomes = run_tests(tmp_path, "-m", "leak")
    assert outcomes["failed"] == ["test_everything_is_kept"], outcomes["output"][0]
    assert len(outcomes["passed"]) == 5
    assert "memory in use of CuPy's pools grows by 800,256 bytes" in outcomes["output"][0]
