"""pytest under ``quiesce exec``: what the plugin finds there is what exec found, in its exit code and its reports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any, Final

import pytest

from quiesce.model.errors import BackendUnavailable
from quiesce.pytest_plugin.keys import EXEC_SETTINGS
from quiesce.simulator.runtime.build import build_library
from quiesce.simulator.runtime.launch import SETTINGS_VARIABLE

BEGIN: Final = """
import ctypes, os, signal, subprocess, sys
import pytest

KEPT = []
CUDA = ctypes.CDLL("libcudart.so.12")

def allocate():
    block = ctypes.c_void_p()
    assert CUDA.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(1 << 20)) == 0
    return block
"""
LEAK: Final = """
@pytest.mark.leak(gauges=["device"])
def test_keeps():
    KEPT.append(allocate())
"""
GOOD: Final = """
@pytest.mark.leak(gauges=["device"])
def test_gives_back():
    CUDA.cudaFree(allocate())
"""
OWN: Final = """
def test_sums():
    assert 1 + 1 == 3

@pytest.mark.leak(gauges=["device"])
def test_sums_again():
    assert 1 + 1 == 3
"""
ITS_OWN: Final = "2 tests failed in the program itself: test_it.py::test_sums, test_it.py::test_sums_again"
KILLED: Final = """
def test_that_is_killed():
    os.kill(os.getpid(), signal.SIGKILL)
"""
LEFT: Final = """
@pytest.mark.simulated_device(left="all")
def test_leaves(simulated_device):
    KEPT.append(allocate())
"""
UNUSED: Final = """
def test_uses_nothing(simulated_device):
    pass
"""
NESTED: Final = """
def test_runs_pytest():
    (path := __import__("pathlib").Path("test_nested.py")).write_text("def test_fails(): assert False")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(path)]
    assert subprocess.run(command).returncode == 1
    assert pytest.main(command[3:]) == 1
"""


@pytest.fixture(autouse=True)
def _built() -> None:
    try:
        build_library()
    except BackendUnavailable as error:
        pytest.skip(str(error))


class Ran:
    """A run of pytest under exec: its exit code, what was printed, and what is in the reports."""

    def __init__(self, folder: Path, *parts: str, options: tuple[str, ...] = ()) -> None:
        (folder / "test_it.py").write_text(BEGIN + "".join(parts), encoding="utf-8")
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--quiesce-leak-rounds=3"]
        command = [sys.executable, "-m", "quiesce.cli.main", "exec", "--report", "out", "--"]
        done = subprocess.run(
            [*command, *words, *options, "test_it.py"],
            cwd=folder,
            env={name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"},
            capture_output=True,
            text=True,
            check=False,
        )
        self.code, self.said = done.returncode, done.stdout + done.stderr
        report = json.loads((folder / "out" / "report.json").read_text(encoding="utf-8"))
        self.results: list[dict[str, Any]] = report["results"]
        root = ET.parse(folder / "out" / "junit.xml").getroot()
        self.failures, self.errors = [[*root.iter(tag)] for tag in ("failure", "error")]

    @property
    def program(self) -> dict[str, Any]:
        """The result of the process."""
        (found,) = (each for each in self.results if "program" in each)
        return found

    @property
    def tests(self) -> dict[str, str]:
        """The verdicts of tests."""
        return {each["case"].rpartition("::")[2]: each["verdict"] for each in self.results if "program" not in each}


@pytest.mark.long
def test_a_leak_of_a_test_is_a_finding_of_the_run(tmp_path: Path) -> None:
    ran = Ran(tmp_path, LEAK, GOOD)
    assert ran.code == 1, ran.said
    assert ran.tests == {"test_keeps": "failed", "test_gives_back": "passed"}
    assert (ran.program["verdict"], ran.program["reason"]) == ("passed", "")
    assert [each.get("message") for each in ran.failures] == ["a_repeated_test_leaves_nothing_behind"]
    assert ran.errors == []
    assert ran.said.count("device memory grows by 1,048,576 bytes (1 MiB) per round") == 1, "pytest has printed it"
    assert "2 tests checked for leaks: 1 clean, 1 leaks; " in ran.said.rpartition("calls recorded")[0]
    assert "ended with status" not in ran.said


def test_tests_that_fail_by_themselves_are_no_findings_and_are_named(tmp_path: Path) -> None:
    ran = Ran(tmp_path, OWN, GOOD)
    assert ran.code == 2, ran.said
    assert ran.tests == {"test_gives_back": "passed", "test_sums_again": "inconclusive"}
    assert ran.program["reason"] == ITS_OWN
    assert [each.get("message") for each in ran.errors] == [ITS_OWN]
    assert ran.failures == []


OPEN: Final = """
from quiesce.leaks import Judgement, LeakChecker, Outcome

def check(self, run_round, plan, own=()):
    run_round()
    return Judgement(Outcome.PASSED, 97, inconclusive="a list may hold 200 entries")

LeakChecker.check = check
"""


def test_a_test_whose_leak_check_has_no_verdict_leaves_the_run_without_one(tmp_path: Path) -> None:
    ran = Ran(tmp_path, OPEN, GOOD)
    assert ran.code == 2, ran.said
    assert ran.tests == {"test_gives_back": "inconclusive"}
    assert (ran.program["verdict"], ran.program["reason"]) == ("passed", "")
    assert [each.get("message") for each in ran.errors] == ["a list may hold 200 entries"]
    assert ran.failures == []
    assert ran.said.count("a_leak_check_comes_to_a_verdict") == 1, "pytest has printed it"


@pytest.mark.long
def test_a_leak_counts_beside_tests_that_fail_by_themselves(tmp_path: Path) -> None:
    ran = Ran(tmp_path, OWN, LEAK)
    assert ran.code == 1, ran.said
    assert ran.tests == {"test_keeps": "failed", "test_sums_again": "inconclusive"}
    assert ran.program["reason"] == ITS_OWN


def test_what_a_killed_process_had_found_is_told(tmp_path: Path) -> None:
    ran = Ran(tmp_path, LEAK, KILLED)
    assert ran.code == 1, ran.said
    assert ran.tests == {"test_keeps": "failed"}
    assert ran.program["reason"].startswith("the program ended with SIGKILL")
    assert ran.said.count("device memory grows by 1,048,576 bytes (1 MiB) per round") == 1, "pytest printed nothing"


@pytest.mark.long
def test_workers_of_xdist_hand_over_what_they_find(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    ran = Ran(tmp_path, OWN, LEAK, GOOD, LEFT, options=("-n", "2"))
    assert ran.code == 1, ran.said
    assert ran.tests == {
        "test_gives_back": "passed",
        "test_keeps": "failed",
        "test_leaves": "failed",
        "test_sums_again": "inconclusive",
    }
    reasons = "\n".join(each["reason"] for each in ran.results)
    assert "2 tests failed in the program itself" in reasons


@pytest.mark.long
def test_what_is_left_on_a_simulated_device_is_a_finding_of_the_run(tmp_path: Path) -> None:
    ran = Ran(tmp_path, LEFT)
    assert (ran.code, ran.tests) == (1, {"test_leaves": "failed"}), ran.said
    assert ran.program["verdict"] == "passed"
    assert [each.get("message") for each in ran.failures] == ["nothing_is_left_at_quiescence"]


@pytest.mark.long
def test_a_test_that_used_no_simulated_device_says_so_and_has_no_verdict(tmp_path: Path) -> None:
    ran = Ran(tmp_path, GOOD, UNUSED)
    assert (ran.code, ran.tests["test_uses_nothing"]) == (2, "inconclusive"), ran.said
    assert ran.program["verdict"] == "passed"
    (error,) = ran.errors
    assert "no memory, stream or kernel of the simulated device was used" in error.get("message", "")


@pytest.mark.long
def test_runs_of_pytest_that_a_test_starts_answer_to_that_test(tmp_path: Path) -> None:
    ran = Ran(tmp_path, GOOD, NESTED)
    assert ran.code == 0, ran.said


def test_a_status_that_no_test_explains_stays_the_reason(tmp_path: Path) -> None:
    hook = "def pytest_sessionfinish(session):\n    session.testsfailed += 1\n    session.exitstatus = 1\n"
    (tmp_path / "conftest.py").write_text(hook, encoding="utf-8")
    ran = Ran(tmp_path, GOOD)
    assert ran.code == 2, ran.said
    assert ran.program["reason"] == "the program ended with status 1"


def test_a_file_that_can_not_be_collected_is_named(tmp_path: Path) -> None:
    ran = Ran(tmp_path, GOOD, "import no_such_module\n")
    assert ran.code == 2, ran.said
    reasons = "\n".join(each["reason"] for each in ran.results)
    assert "the program ended with status 2: pytest could not collect test_it.py" in reasons


@pytest.mark.long
def test_the_page_shows_the_finding_of_a_test(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    Ran(tmp_path, LEAK)
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert '<h2 id="tests"' in page
    assert "device memory grows by 1,048,576 bytes (1 MiB) per round" in page


def test_the_plugin_knows_the_name_of_the_settings() -> None:
    assert EXEC_SETTINGS == SETTINGS_VARIABLE
