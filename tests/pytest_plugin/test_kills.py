"""A kill at any moment leaves every result that was finished, and 'quiesce report' makes every report of them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import GOOD, Project

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="SIGKILL")

KILLS = """\
import os, signal, pytest

class Killer:
    left = {count}

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report):
        if hasattr(report, "quiesce_result"):
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Killer())
"""
KILLS_IN_REPORT = """\
import os, signal
import quiesce.reporting.folder as folder

def write_junit(report, path):
    path.with_name(".junit.xml.1.part").write_text("<half")
    os.kill(os.getpid(), signal.SIGKILL)

folder.write_junit = write_junit
"""
CASES = 6


@pytest.fixture
def several(project: Project) -> Project:
    """A project with several good cases."""
    (project.path / "cases/pool/good.case").unlink()
    for number in range(CASES):
        project.write(f"cases/pool/case_{number}.case", GOOD)
    return project


def finished(project: Project) -> list[str]:
    """The cases whose results reached the disk, in that order; each line is whole."""
    lines = (project.path / "out/results.jsonl").read_text(encoding="utf-8").splitlines()
    return [record["case"] for record in map(json.loads, lines[1:]) if "case" in record]


def rebuilt(project: Project) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Run 'quiesce report' on the folder."""
    code = "import sys; from quiesce.cli.main import main; sys.exit(main(['report', 'out']))"
    done = subprocess.run([sys.executable, "-c", code], cwd=project.path, capture_output=True, text=True, check=False)
    report: dict[str, Any] = json.loads((project.path / "out/report.json").read_text(encoding="utf-8"))
    return done, report


@pytest.mark.parametrize("workers", ["0", "2"])
@pytest.mark.parametrize("count", [1, 4])
def test_a_kill_after_any_result_keeps_it(count: int, workers: str, several: Project) -> None:
    several.write("conftest.py", KILLS.format(count=count))
    several.write("out/report.json", "an older report")
    result = several.run_apart("-n", workers, "--quiesce-report=out", "--quiesce-backend=host")
    assert result.ret == -signal.SIGKILL
    assert not (several.path / "out/report.json").exists()
    kept = finished(several)
    assert len(kept) == count
    done, report = rebuilt(several)
    assert done.returncode == 2
    assert "the run did not complete" in done.stderr
    assert sorted(each["case"] for each in report["results"]) == sorted(kept)
    assert report["run"]["ended"] == "killed"
    assert (several.path / "out/junit.xml").read_text(encoding="utf-8").count("<testcase ") == count
    page = several.path / "out/report.html"
    if not Path(page).exists():
        pytest.skip("the extra 'report' is not installed")
    assert f"THE RUN IS INCOMPLETE (it ended: killed): this page holds {count} results." in page.read_text("utf-8")


def test_a_kill_while_reports_are_written_loses_nothing(several: Project) -> None:
    several.write("conftest.py", KILLS_IN_REPORT)
    result = several.run_apart("--quiesce-report=out", "--quiesce-backend=host")
    assert result.ret == -signal.SIGKILL
    assert not (several.path / "out/junit.xml").exists()
    done, report = rebuilt(several)
    assert (done.returncode, done.stderr) == (0, "")
    assert (len(report["results"]), report["run"]["ended"]) == (CASES, "completed")
    assert (several.path / "out/junit.xml").read_text(encoding="utf-8").count("<testcase ") == CASES


@pytest.mark.long
def test_a_killed_worker_costs_its_case_alone(several: Project) -> None:
    several.write(
        "site/lent.py", (several.path / "site/lent.py").read_text().replace("os._exit(7)", "os.kill(os.getpid(), 9)")
    )
    several.write("cases/wave/ends.case", GOOD)
    several.run_apart(
        "-n", "2", "--quiesce-report=out", "--quiesce-backend=host", "--quiesce-backend=dying", "-k", "host or ends"
    ).assert_outcomes(passed=CASES + 1, failed=1)
    assert sorted(finished(several)) == sorted([*(f"pool/case_{n}" for n in range(CASES)), *["wave/ends"] * 2])


def test_a_killed_command_keeps_what_it_finished(several: Project) -> None:
    several.write(
        "site/lent.py",
        (several.path / "site/lent.py").read_text() + "\n\nclass Tiring:\n"
        "    def __init__(self):\n"
        "        from quiesce.backends.host import backend\n"
        "        self.inner, self.left = backend(), 4\n"
        "    def describe(self): return self.inner.describe()\n"
        "    def open(self, profile):\n"
        "        self.left -= 1\n"
        "        if self.left == 0: os.kill(os.getpid(), 9)\n"
        "        return self.inner.open(profile)\n\n"
        "def bare(): return Tiring()\n",
    )
    code = (
        "import sys; from quiesce.cli.main import main\n"
        "sys.exit(main(['run', 'cases', '--backend', 'bare', '--report', 'out']))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=several.path, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert finished(several) == [f"pool/case_{number}" for number in range(3)]
    again, report = rebuilt(several)
    assert again.returncode == 2
    assert f"the journal holds 3 of {CASES} results" in again.stderr
    assert report["run"]["ended"] == "killed"
