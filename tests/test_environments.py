"""What tox's default list leaves out for the sake of time is run by continuous integration."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from tests.tox_environments import DEFAULT, ENVIRONMENTS, ROOT, SECTIONS

yaml = pytest.importorskip("yaml", reason="it comes with the extra 'test'")

WORKFLOWS: Final = ROOT / ".github" / "workflows"
TESTS: Final = ROOT / "tests"
MEASURES: Final = frozenset({"bench"})
"""Environments that assert nothing."""

pytestmark = pytest.mark.skipif(not WORKFLOWS.is_dir(), reason="a source distribution without its workflows")


def _run_by(workflow: str) -> set[str]:
    """Return the environments that a workflow runs; ``py`` on a version of Python is that version's."""
    found = set()
    for job in yaml.safe_load((WORKFLOWS / f"{workflow}.yml").read_text(encoding="utf-8"))["jobs"].values():
        matrix = job.get("strategy", {}).get("matrix", {})
        found |= set(matrix.get("environment", ()))
        if any("tox -e py " in step.get("run", "") for step in job["steps"]):
            found |= {"py", *(f"py{version.replace('.', '')}" for version in matrix["python"])}
        found |= {step["run"].removeprefix("tox -e ") for step in job["steps"] if "run" in step}
    return found


def test_every_environment_is_run_by_a_workflow() -> None:
    run = _run_by("ci") | _run_by("docs") | _run_by("gpu")
    needed = {name.removesuffix("-short") for name in ENVIRONMENTS} - MEASURES
    assert len(needed) > 20
    assert sorted(needed - run) == []


def test_every_environment_that_a_test_asks_for_is_run_without_a_gpu() -> None:
    texts = [path.read_text(encoding="utf-8") for path in sorted(TESTS.rglob("*.py"))]
    asked = {name for text in texts for names in re.findall(r"tox -e ([\w.,-]*\w)", text) for name in names.split(",")}
    assert {"torch", "cuda-core-1.1", "leaks-repeat", "soak"} <= asked
    assert sorted(asked - _run_by("ci") - _run_by("docs")) == []


def test_the_default_list_has_the_whole_suite_once_on_whatever_runs_tox() -> None:
    assert "py" in DEFAULT
    assert "py" not in SECTIONS, "it is the plain [testenv]"
    others = [name for name in DEFAULT if re.match(r"py3\d+", name)]
    assert others
    assert [name for name in others if not name.endswith("-short")] == []


def test_every_python_of_the_workflow_has_a_short_environment() -> None:
    versions = {name for name in _run_by("ci") if re.fullmatch(r"py3\d+", name)}
    shorts = {name for name in DEFAULT if name.startswith("py3")}
    others = {"py311-short", "py313-short"}  # in .ci/run, the environments of CuPy run on 3.11, and py on 3.13
    assert {f"{name}-short" for name in versions} == shorts | others


def test_a_short_run_has_a_test_of_every_folder() -> None:
    folders = {path.parent for path in TESTS.rglob("test_*.py")}
    assert len(folders) > 10
    bare = [folder for folder in sorted(folders) if not any(map(_has_a_short_test, folder.glob("test_*.py")))]
    assert bare == []


def _has_a_short_test(module: Path) -> bool:
    text = module.read_text(encoding="utf-8")
    return "def test_" in text and "pytest.mark.long" not in text


def test_a_short_run_has_each_function_once_unless_it_is_long(pytester: pytest.Pytester) -> None:
    pytester.makeconftest((TESTS / "conftest.py").read_text(encoding="utf-8"))
    pytester.makeini("[pytest]\nmarkers = long: takes seconds\n")
    pytester.makepyfile(
        """
        import pytest
        first_is_long = [pytest.param(0, marks=pytest.mark.long), 1, 2]

        @pytest.mark.parametrize("number", [0, 1, 2])
        def test_numbers(number): pass
        @pytest.mark.parametrize("number", first_is_long)
        def test_others(number): pass
        @pytest.mark.long
        def test_long(): pass
        class TestOne:
            def test_numbers(self): pass
        """
    )
    arguments = ("-p", "no:hypothesispytest", "-p", "no:xdist", "-p", "no:asyncio", "-v")
    pytester.runpytest_inprocess(*arguments).assert_outcomes(passed=8)
    result = pytester.runpytest_inprocess(*arguments, "--short")
    result.assert_outcomes(passed=3, deselected=5)
    result.stdout.fnmatch_lines(["*::test_numbers?0? PASSED*", "*::test_others?1? PASSED*", "*::TestOne::*PASSED*"])


def test_no_version_in_a_name_is_taken_for_that_of_python() -> None:
    """tox reads the ``2.15`` of ``torch-2.15`` as a Python and refuses another ``base_python``."""
    names = [name for name in ENVIRONMENTS if "base_python" in SECTIONS.get(name, {})]
    assert len(names) > 5
    assert [name for name in names if any(re.fullmatch(r"[23]\.\d+t?d?", part) for part in name.split("-"))] == []
