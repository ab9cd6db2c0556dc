"""A project that does not use quiesce pays next to nothing for it and sees nothing of it."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

from .conftest import PLUGIN, Project

PACKAGE: Final = "quiesce.pytest_plugin"
AT_ENTRY: Final = (
    "quiesce",
    "quiesce.doors",
    "quiesce.leaks",
    "quiesce.leaks.start",
    PACKAGE,
    *(f"{PACKAGE}.{module}" for module in ("keys", "options", "plugin")),
)
AT_START: Final = (*AT_ENTRY, *(f"{PACKAGE}.{module}" for module in ("fixtures", "hookspecs", "run_record")))
"""Ten small modules or so: 20 ms of a start that takes 200 without them (benchmarks/pytest_start.py)."""
SHOW_LOADED: Final = """\
import sys

def pytest_unconfigure():
    print("loaded:", *sorted(name for name in sys.modules if name.partition(".")[0] in ("quiesce", "hypothesis")))
"""


def test_the_entry_module_imports_next_to_nothing() -> None:
    code = f"import sys, pytest; before = set(sys.modules); import {PLUGIN}; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == sorted(AT_ENTRY)


def test_a_run_without_cases_imports_no_more_and_says_nothing(project: Project) -> None:
    (project.path / "tox.ini").unlink()
    project.write("plain/conftest.py", SHOW_LOADED)
    project.write("plain/test_it.py", "def test_it(): pass\n")
    result = project.run_apart("plain")
    result.assert_outcomes(passed=1)
    (loaded,) = (line for line in result.outlines if line.startswith("loaded: "))
    assert loaded.split()[1:] == sorted(AT_START)
    plugins = [line for line in result.outlines if line.startswith(("plugins:", "rootdir:", "loaded:"))]
    assert "quiesce" not in "\n".join(line for line in result.outlines if line not in plugins)


def test_a_listing_of_the_options_imports_no_more(project: Project) -> None:
    (project.path / "tox.ini").unlink()
    project.write("conftest.py", SHOW_LOADED)
    result = project.run_apart("--help")
    (loaded,) = (line for line in result.outlines if line.startswith("loaded: "))
    assert set(loaded.split()[1:]) <= set(AT_START)


def test_a_leak_check_loads_nothing_that_judges_gpu_programs(project: Project) -> None:
    (project.path / "tox.ini").unlink()
    project.write("plain/conftest.py", SHOW_LOADED)
    project.write("plain/test_it.py", "def test_it(): pass\n")
    result = project.run_apart("--quiesce-leak", "plain")
    result.assert_outcomes(passed=1)
    (loaded,) = (line for line in result.outlines if line.startswith("loaded: "))
    assert "quiesce.leaks.check" in loaded.split()
    assert not [
        name
        for name in loaded.split()
        if name in ("quiesce.simulator.judge.watching", "quiesce.simulator.judge.judgement")
    ]
