"""Errors in quiesce itself: what was found by then is kept, a command shows them again, and the exit code is 3.

The backend is the reference. It makes the oracle raise an error of its own at an operation that the test chooses.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BROKEN = """
from quiesce.backends.reference import backend as reference
from quiesce.model.operations import Fill
from quiesce.allocators.oracle.oracle import Oracle

judge = Oracle.judge


def broken(self, operation, *rest):
    if isinstance(operation, Fill):
        raise IndexError("no such answer")
    return judge(self, operation, *rest)


def backend():
    Oracle.judge = broken
    return reference()
"""
BACKEND = "python:broken.py:backend"
GOOD, BAD = "a = allocate 1\nfree a\n", "a = allocate 1\nfill a 0\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "broken.py").write_text(BROKEN)
    (tmp_path / "cases").mkdir()
    for name, body in (("first", GOOD), ("second", BAD), ("third", GOOD)):
        (tmp_path / "cases" / f"{name}.case").write_text(f"title: {name}\nkind: control\n\n{body}")
    return tmp_path


def quiesce(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "quiesce.cli.main", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def report(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "out" / "report.json").read_text())
    return document


def told_again(errors: str) -> list[str]:
    """Return the words after 'quiesce' of the command that is said to show the error again."""
    (line,) = (each for each in errors.splitlines() if "this command shows it again: " in each)
    return shlex.split(line.partition("again: ")[2])[1:]


def test_a_run_keeps_its_results_and_names_the_case(folder: Path) -> None:
    done = quiesce(folder, "run", "cases", "--backend", BACKEND, "--report", "out")
    assert done.returncode == 3
    assert "IndexError: no such answer" in done.stderr
    assert "1 case passed" in done.stdout
    assert [each["title"] for each in report(folder)["results"]] == ["first"]
    assert report(folder)["run"]["ended"] == "failed"
    assert told_again(done.stderr) == ["run", "cases/second.case", "--backend", BACKEND]
    assert quiesce(folder, *told_again(done.stderr)).returncode == 3
    assert quiesce(folder, "report", "out").returncode == 2


@pytest.mark.parametrize("jobs", [(), pytest.param(("--jobs", "2"), marks=pytest.mark.long)], ids=["here", "jobs"])
def test_a_search_keeps_what_it_found(folder: Path, jobs: tuple[str, ...]) -> None:
    words = ("explore", "--backend", BACKEND, "--operations", "20000", *jobs)
    done = quiesce(folder, *words, "--report", "out", "--save", "found")
    assert done.returncode == 3
    assert "IndexError: no such answer" in done.stderr
    assert not (folder / "found").exists()  # it is no finding about the backend
    (result,) = report(folder)["results"]
    assert (result["verdict"], report(folder)["run"]["ended"]) == ("inconclusive", "failed")
    again = told_again(done.stderr)
    assert int(again[again.index("--operations") + 1]) == result["operations"] + 1
    assert quiesce(folder, *again).returncode == 3


@pytest.mark.long
def test_an_examination_keeps_its_results(folder: Path) -> None:
    done = quiesce(folder, "conformance", "--backend", BACKEND, "--operations", "50", "--report", "out")
    assert done.returncode == 3
    results = report(folder)["results"]
    assert results
    assert f"{len(results)} results finished; they are in out" in done.stderr
    assert quiesce(folder, *told_again(done.stderr)).returncode == 3


def test_a_command_without_cases_is_itself_what_shows_it_again(folder: Path) -> None:
    done = quiesce(folder, "shrink", "cases/second.case", "--backend", BACKEND)
    assert (done.returncode, told_again(done.stderr)) == (3, ["shrink", "cases/second.case", "--backend", BACKEND])


@pytest.mark.parametrize("workers", [(), pytest.param(("-n", "1"), marks=pytest.mark.long)], ids=["alone", "xdist"])
def test_pytest_goes_on_and_ends_with_its_code_for_internal_errors(folder: Path, workers: tuple[str, ...]) -> None:
    words = [f"--quiesce-backend={BACKEND}", "--quiesce-report=out", "-p", "no:cacheprovider", *workers, "cases"]
    command = [sys.executable, "-m", "pytest", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == pytest.ExitCode.INTERNAL_ERROR, done.stdout
    assert "2 passed" in done.stdout
    assert "reproduce: pytest 'cases/second.case' --quiesce-backend=" in done.stdout
    verdicts = {each["title"]: (each["verdict"], each["reason"]) for each in report(folder)["results"]}
    assert verdicts["second"] == ("inconclusive", "an error in quiesce itself: IndexError: no such answer")
    assert [verdicts[each][0] for each in ("first", "third")] == ["passed", "passed"]
    assert "an error in quiesce itself, not a finding; please report it" in done.stdout


def test_an_error_of_a_hook_of_the_user_is_a_failed_test(folder: Path) -> None:
    (folder / "conftest.py").write_text("def pytest_quiesce_adjust_result(result):\n    raise KeyError(result.case)\n")
    words = ["--quiesce-backend=reference", "-p", "no:cacheprovider", "cases/first.case"]
    done = subprocess.run([sys.executable, "-m", "pytest", *words], cwd=folder, capture_output=True, check=False)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
