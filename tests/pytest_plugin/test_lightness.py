"""A project that does not use quiesce pays next to nothing for it and sees nothing of it."""

from __future__ import annotations

import subprocess
import sys

from .conftest import PLUGIN, Project

WITHOUT_CASES = "import sys\ndef test_it(): assert not {'quiesce.operations', 'quiesce.results'} & sys.modules.keys()\n"


def test_the_entry_module_imports_next_to_nothing() -> None:
    code = f"import sys, pytest; before = set(sys.modules); import {PLUGIN}; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    package = "quiesce.pytest_plugin"
    light = ("ini_keys", "keys", "leak_options", "options", "plugin")
    own = ("quiesce", "quiesce.leaks", "quiesce.leaks.start", "quiesce.marking", package)
    assert done.stdout.split() == [*own, *(f"{package}.{module}" for module in light)]


def test_a_run_without_cases_imports_no_more_and_says_nothing(project: Project) -> None:
    (project.path / "tox.ini").unlink()
    project.write("plain/test_it.py", WITHOUT_CASES)
    result = project.run_apart("plain")
    result.assert_outcomes(passed=1)
    plugins = [line for line in result.outlines if line.startswith(("plugins:", "rootdir:"))]
    assert "quiesce" not in "\n".join(line for line in result.outlines if line not in plugins)
