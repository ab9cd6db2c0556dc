"""A worker that dies is a failed result of what it ran, case or checked test, and nothing else is lost."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from .conftest import GOOD, Project

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="SIGKILL")

DIES = """\
import os, signal, pytest

DIED = "died.txt"

@pytest.mark.leak
def test_before(): pass

@pytest.mark.leak
@pytest.mark.parametrize("how", ["a/b::c"])
def test_dies(how):
    os.kill(os.getpid(), signal.SIGKILL)

@pytest.mark.leak
@pytest.mark.parametrize("number", range(6))
def test_after(number): pass

def test_unchecked(): pass
"""


def report_of(project: Project) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((project.path / "out/report.json").read_text(encoding="utf-8"))
    return report


def verdicts(project: Project) -> dict[str, str]:
    return {each["case"]: each["verdict"] for each in report_of(project)["results"]}


@pytest.mark.long
def test_a_checked_test_that_kills_its_worker_is_named(project: Project) -> None:
    project.write("unit/test_it.py", DIES)
    result = project.run_apart("-n", "2", "--quiesce-report=out", "--quiesce-leak-rounds=4", "unit")
    result.assert_outcomes(failed=1, passed=8)
    result.stdout.fnmatch_lines(
        [
            "unit/test_it.py:8: leak check",
            "  rule:      process_survives_every_request",
            "  expected:  the process lives until every round of the test has run",
            "  observed:  worker 'gw[01]' crashed while running 'unit/test_it.py::test_dies[[]a/b::c[]]'",
            "  kind:      crash",
            "  reproduce: pytest 'unit/test_it.py::test_dies[[]a/b::c[]]'",
        ],
        consecutive=True,
    )
    finished = {f"unit/test_it.py::test_after[{number}]": "passed" for number in range(6)}
    assert verdicts(project) == {
        "unit/test_it.py::test_before": "passed",
        "unit/test_it.py::test_dies[a/b::c]": "failed",
        **finished,
    }
    (dead,) = [each for each in report_of(project)["results"] if each["verdict"] == "failed"]
    assert dead["title"] == "test_dies[a/b::c] is checked for leaks"
    assert report_of(project)["run"]["ended"] == "completed"


def test_a_test_that_nobody_checks_is_left_to_pytest(project: Project) -> None:
    project.write("test_it.py", DIES.replace("@pytest.mark.leak\n", ""))
    result = project.run_apart("-n", "2", "test_it.py")
    result.assert_outcomes(failed=1, passed=8)
    assert "quiesce" not in "\n".join(line for line in result.outlines if not line.startswith(("plugins:", "rootdir:")))


@pytest.mark.long
def test_without_a_replacement_what_was_finished_stays(project: Project) -> None:
    for number in range(30):
        project.write(f"cases/pool/more_{number:02}.case", GOOD)
    project.write("cases/pool/ends.case", GOOD.replace("comes and goes", "ends its worker"))
    result = project.run_apart(
        "-n",
        "2",
        "--max-worker-restart=0",
        "--quiesce-report=out",
        "--quiesce-backend=host",
        "--quiesce-backend=dying",
        "-k",
        "host or ends",
    )
    outcomes = result.parseoutcomes()
    assert outcomes["failed"] == 1
    assert len(report_of(project)["results"]) == outcomes["failed"] + outcomes["passed"]
    (dead,) = [each for each in report_of(project)["results"] if each["backend"] == "dying"]
    assert (dead["case"], dead["verdict"]) == ("pool/ends", "failed")
    assert report_of(project)["run"]["ended"] == "interrupted"
    page = (project.path / "out/report.html").read_text(encoding="utf-8")
    assert "THE RUN IS INCOMPLETE (it ended: interrupted)" in page


@pytest.mark.long
def test_workers_do_not_change_the_report_of_checked_tests(project: Project) -> None:
    project.write("test_it.py", "import pytest\n@pytest.mark.leak\ndef test_it(): pass\ndef test_other(): pass\n")
    reports = []
    for workers in ("0", "2"):
        result = project.run_apart(
            "-n", workers, "--quiesce-report=out", "--quiesce-backend=host", "test_it.py", "cases"
        )
        result.assert_outcomes(passed=3)
        report = report_of(project)
        for each in report["results"]:
            each.pop("rounds", None)  # another process may need one more to come to rest
        reports.append({**report, "run": None})
    assert reports[0] == reports[1]
