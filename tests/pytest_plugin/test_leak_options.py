"""Options of the leak checks and arguments of their marker, of which each bad one is one line; what a kill leaves."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from .conftest import Project
from .test_options import error_of

ADDED_TO_ALL = """
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.leak)
"""
TEST = "import pytest\n\n{marker}\ndef test_it():\n    pass\n"


@pytest.mark.parametrize(
    ("argument", "line"),
    [
        ("--quiesce-leak-rounds=abc", "*--quiesce-leak-rounds: rounds is 'abc'; write a whole number from 3 to *"),
        ("--quiesce-leak-rounds=-1", "*rounds is '-1'; write a whole number from 3 to 100000, or 0 for no checks"),
        ("--quiesce-leak-rounds=2", "*--quiesce-leak-rounds: rounds is 2; write a whole number from 3 to *"),
        ("--quiesce-leak-rounds=", "*--quiesce-leak-rounds: rounds is ''; write a whole number from 3 to *"),
        ("--quiesce-leak-limit-bytes=-1", "*--quiesce-leak-limit-bytes: limit_bytes is '-1'; write a whole number *"),
        ("--quiesce-leak-limit=2kb", "*--quiesce-leak-limit: limit is '2kb'; write 2 KiB"),
        ("--quiesce-leak-limit-peak=", "*--quiesce-leak-limit-peak: limit_peak is ''; write a number with *"),
        (
            "--quiesce-leak-gauges=heap",
            "*--quiesce-leak-gauges: there is no gauge 'heap'; did you mean 'c-heap'? Write some of contexts, *",
        ),
        ("--quiesce-leak-gauges=", "*--quiesce-leak-gauges: gauges is '', so nothing would be looked at; *"),
        ("--override-ini=quiesce_leak_rounds=many", "*ini key quiesce_leak_rounds: rounds is 'many'; write a whole *"),
        ("--quiesce-leak-seconds=0", "*--quiesce-leak-seconds: seconds is '0'; write a number above 0, such as 10"),
        ("--override-ini=quiesce_leak=some", "*ini key quiesce_leak: 'some' is not a choice; write marked or all"),
        ("--override-ini=quiesce_leak_gauges=x", "*ini key quiesce_leak_gauges: there is no gauge 'x'; *"),
    ],
)
def test_a_bad_option_is_one_line(project: Project, argument: str, line: str) -> None:
    project.write("test_it.py", TEST.format(marker="@pytest.mark.leak"))
    pytest.LineMatcher([error_of(project.run("test_it.py", argument))]).fnmatch_lines([line])


@pytest.mark.parametrize(
    ("marker", "line"),
    [
        ("@pytest.mark.leak(5)", "*test_it.py::test_it: the marker 'leak' takes keywords only, not (5); write *"),
        (
            "@pytest.mark.leak(round=5)",
            "*the marker 'leak': there is no 'round'; did you mean rounds=? options: *, skip=",
        ),
        (
            "@pytest.mark.leak(rounds=0)",
            "*the marker 'leak': rounds is 0; write *, or skip=* to leave the test unchecked",
        ),
        ("@pytest.mark.leak(skip=True)", "*the marker 'leak': skip is True; write the reason as a text"),
        (
            "@pytest.mark.leak(skip='slow', rounds=8)",
            "*the marker 'leak': a test with skip= is not checked; remove skip= or rounds=",
        ),
        ("@pytest.mark.leak(rounds=True)", "*the marker 'leak': rounds is True; write a whole number *"),
        ("@pytest.mark.leak(limit='2 KB')", "*the marker 'leak': limit is '2 KB'; write 2 KiB"),
        ("@pytest.mark.leak(limit_bytes=-5)", "*the marker 'leak': limit_bytes is -5; write a whole number *"),
        ("@pytest.mark.leak(gauges=[])", "*the marker 'leak': gauges is *, so nothing would be looked at; *"),
        ("@pytest.mark.leak(gauges='x')", "*the marker 'leak': there is no gauge 'x'; write some of *"),
        (
            "@pytest.mark.leak(rounds=5)\n@pytest.mark.leak(rounds=9)",
            "*two markers 'leak' stand at one place; remove one",
        ),
    ],
)
def test_a_bad_marker_is_an_error_of_its_test(project: Project, marker: str, line: str) -> None:
    project.write("test_it.py", TEST.format(marker=marker) + "def test_other(): pass\n")
    result = project.run("test_it.py")
    result.assert_outcomes(errors=1, passed=1)
    result.stdout.fnmatch_lines([line.replace("[", "[[]")])


@pytest.mark.long
def test_a_bad_marker_ends_the_run_with_one_line_where_workers_run_the_tests(project: Project) -> None:
    pytest.importorskip("xdist")
    marker = "@pytest.mark.simulated_device('hip:4')"
    project.write("test_it.py", TEST.format(marker=marker) + "def test_other(): pass\n")
    result = project.run_apart("test_it.py", "-n", "2")
    result.assert_outcomes()
    pytest.LineMatcher([error_of(result)]).fnmatch_lines(["ERROR: test_it.py::test_it: *; write *"])
    result.stdout.no_fnmatch_line("INTERNALERROR*")


@pytest.mark.long
def test_a_marker_that_says_nothing_more_takes_nothing_from_one_that_does(project: Project) -> None:
    project.write("conftest.py", ADDED_TO_ALL)
    text = "import pytest\nKEPT = []\n@pytest.mark.leak(limit_bytes=4096)\ndef test_it(): KEPT.append(bytes(99))\n"
    project.write("test_it.py", text + "def test_other(): KEPT.append(bytes(99))\n")
    project.run("test_it.py", "--quiesce-leak-rounds=12").assert_outcomes(passed=1, failed=1)


def test_rounds_of_zero_switch_the_checks_off(project: Project) -> None:
    project.write("test_it.py", "import pytest\nKEPT = []\n@pytest.mark.leak\ndef test_it(): KEPT.append(bytes(99))\n")
    result = project.run("test_it.py", "--quiesce-leak-rounds=0")
    result.assert_outcomes(passed=1)
    assert "quiesce" not in result.stdout.str().partition("collected")[2]


@pytest.mark.long
def test_a_worker_that_dies_in_a_round_is_a_finding_that_names_the_test(project: Project) -> None:
    text = "import os, pytest\npytestmark = pytest.mark.leak\ndef test_a(): pass\ndef test_b(): os._exit(3)\n"
    project.write("test_it.py", text + "def test_c(): pass\n")
    result = project.run_apart("test_it.py", "-n", "1", "--quiesce-report=out")
    result.assert_outcomes(passed=2, failed=1)
    report = json.loads((project.path / "out" / "report.json").read_text(encoding="utf-8"))
    findings = {each["case"]: [finding["rule"] for finding in each["findings"]] for each in report["results"]}
    assert findings == {
        "test_it.py::test_a": [],
        "test_it.py::test_b": ["process_survives_every_request"],
        "test_it.py::test_c": [],
    }


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_kill_in_a_round_leaves_what_was_finished(project: Project) -> None:
    text = "import os, signal, pytest\npytestmark = pytest.mark.leak\nKEPT = []\ndef test_a(): KEPT.append(bytes(50))\n"
    project.write("test_it.py", text + "def test_b(): os.kill(os.getpid(), signal.SIGKILL)\n")
    result = project.run_apart("test_it.py", "--quiesce-report=out", "--quiesce-leak-rounds=12")
    assert result.ret == -signal.SIGKILL
    command = [sys.executable, "-c", "from quiesce.cli.main import main; main()", "report", "out"]
    done = subprocess.run(command, cwd=project.path, capture_output=True, text=True, check=False)
    report = json.loads((project.path / "out" / "report.json").read_text(encoding="utf-8"))
    assert [(each["case"], each["verdict"]) for each in report["results"]] == [("test_it.py::test_a", "failed")], done
