"""The two tiers of tests: what a developer runs, and what continuous integration runs beside it."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Final

import pytest
from tests.tox_environments import DEFAULT, ENVIRONMENTS, ROOT, SECTIONS, SHARES, TOX, labelled

yaml = pytest.importorskip("yaml", reason="it comes with the extra 'test'")

WORKFLOWS: Final = ROOT / ".github" / "workflows"
TESTS: Final = ROOT / "tests"
MEASURES: Final = frozenset({"bench", "cuda-samples", "mutants"})
"""Environments that assert nothing."""
MINUTES_MAX: Final = 12

pytestmark = pytest.mark.skipif(not WORKFLOWS.is_dir(), reason="a source distribution without its workflows")


def _run_by(workflow: str) -> set[str]:
    """Return the environments that a workflow runs."""
    found = set()
    for job in yaml.safe_load((WORKFLOWS / f"{workflow}.yml").read_text(encoding="utf-8"))["jobs"].values():
        found |= set(job.get("strategy", {}).get("matrix", {}).get("environment", ()))
        found |= {word for step in job["steps"] for word in re.findall(r"tox -e ([\w.-]*\w)", step.get("run", ""))}
    return found


RUNS: Final = ("ci", "docs", "gpu", "campaigns")


def test_every_environment_is_run_by_a_workflow() -> None:
    run = set().union(*map(_run_by, RUNS))
    assert len(ENVIRONMENTS) > 40
    assert sorted(ENVIRONMENTS - MEASURES - run) == []


def test_every_environment_that_a_test_asks_for_is_run_without_a_gpu() -> None:
    texts = [path.read_text(encoding="utf-8") for path in sorted(TESTS.rglob("*.py"))]
    asked = {name for text in texts for names in re.findall(r"tox -e ([\w.,-]*\w)", text) for name in names.split(",")}
    assert {"torch", "cuda-core-1.1", "leaks-repeat", "soak"} <= asked
    assert sorted(asked - _run_by("ci") - _run_by("docs") - _run_by("campaigns")) == []


def test_everything_is_in_one_tier() -> None:
    tiers = [*DEFAULT, "quick", *labelled("full"), *labelled("weekly")]
    assert sorted({*tiers} - ENVIRONMENTS) == []
    gpu = {name for name in ENVIRONMENTS if name.startswith("gpu-")}
    subset = {"subjects"}  # of subjects-all
    assert sorted(ENVIRONMENTS - MEASURES - gpu - subset - {*tiers}) == []
    assert len(tiers) == len(set(tiers))


def test_the_default_tier_is_on_one_python_and_downloads_no_release() -> None:
    assert DEFAULT == ("lint", "types", "docs", "cases", "py")
    assert "py" not in SECTIONS, "it is the plain [testenv]"
    assert [name for name in DEFAULT if "base_python" in SECTIONS.get(name, {})] == []


def test_a_share_takes_twelve_minutes_at_most_and_is_of_the_full_tier() -> None:
    assert len(SHARES) >= 10
    assert sorted(set(SHARES) - {*labelled("full")}) == []
    assert {name: minutes for name, (minutes, _) in SHARES.items() if not 0 < minutes <= MINUTES_MAX} == {}


@pytest.mark.parametrize(
    ("share", "says", "status", "code", "complaint"),
    [
        ("opencl", "== 12 passed, 3 skipped ==", 0, 0, ""),
        ("opencl", "== 1 failed, 12 passed ==", 1, 1, ""),
        ("opencl", "== 30 skipped ==", 0, 1, "opencl tested nothing"),
        ("opencl", "opencl: SKIP", 0, 1, "opencl tested nothing"),
        ("opencl", "", 0, 1, "opencl tested nothing"),
        ("lint", "", 0, 2, "'lint' is not in .ci/shares.txt"),
    ],
)
def test_a_share_that_tests_nothing_fails(
    tmp_path: Path, share: str, says: str, status: int, code: int, complaint: str
) -> None:
    fake = tmp_path / "tox"
    fake.write_text(f"#!/bin/sh\necho '{says}'\nexit {status}\n", encoding="utf-8")
    fake.chmod(0o755)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", str(ROOT / ".ci" / "run-share"), share],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert complaint in done.stderr
    assert bool(complaint) == bool(done.stderr)


def test_a_soak_has_every_sample_whole() -> None:
    sampling = {
        path.relative_to(ROOT).as_posix()
        for path in TESTS.rglob("test_*.py")
        if re.search(r"from tests\.seeds import .*\bsampled\b", path.read_text(encoding="utf-8"))
    }
    assert len(sampling) > 2
    assert sorted(sampling - {*TOX["testenv:soak"]["commands"].split()}) == []


def test_the_whole_is_each_folder_once() -> None:
    ignored = set(re.findall(r"--ignore=(tests/\w+)", TOX["testenv:whole-core"]["commands"]))
    named = [
        folder
        for part in ("kernels", "simulator", "surfaces", "leaks")
        for folder in re.findall(r"(?<=\s)tests/\w+", TOX[f"testenv:whole-{part}"]["commands"])
    ]
    assert set(named) == ignored
    assert all((ROOT / folder).is_dir() for folder in named)
    assert sorted(folder for folder in named if named.count(folder) > 1) == ["tests/pytest_plugin"] * 2
    elsewhere = [TESTS / folder.removeprefix("tests/") for folder in named if folder != "tests/pytest_plugin"]
    apart = [path for folder in elsewhere for path in folder.rglob("test_leak*.py") if folder.name != "leaks"]
    assert apart == [], "whole-surfaces leaves them out"


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
