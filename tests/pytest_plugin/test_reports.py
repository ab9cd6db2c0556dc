"""Reports: equal runs give equal bytes, and nothing that was finished is lost."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from quiesce.reporting.folder import read_folder, write_reports

from .conftest import BAD, GOOD, MALFORMED, Project

BACKENDS = ("--quiesce-backend=reference", "--quiesce-backend=host", "--quiesce-backend=bare")


def without_run(path: Path) -> str:
    """Return the text of a report with its ``run`` object emptied; that nothing else differs is what equality says."""
    text = path.read_text(encoding="utf-8")
    head, _, rest = text.partition('  "run": {\n')
    run, _, tail = rest.partition("  },\n")
    assert '"started"' in run
    return head + tail


def read(path: Path) -> dict[str, Any]:
    """Return a JSON report."""
    report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return report


def verdicts(report: dict[str, Any]) -> dict[tuple[str, str], str]:
    """Return the verdict of each case and backend."""
    return {(each["case"], each["backend"]): each["verdict"] for each in report["results"]}


@pytest.mark.long
def test_equal_runs_give_equal_reports_with_and_without_workers(project: Project) -> None:
    for number in range(4):
        project.write(f"cases/pool/more_{number}.case", GOOD)
    project.write("cases/pool/refused.case", BAD.replace("needs:    memory", "needs:    pool"))
    project.write("cases/pool/wrong.case", MALFORMED)
    arguments = (*BACKENDS, "--quiesce-seed=11")
    project.run("--quiesce-report=one", *arguments).assert_outcomes(failed=2, passed=10)
    project.run("--quiesce-report=two", *arguments)
    project.run_apart("--quiesce-report=three", "-n", "2", *arguments).assert_outcomes(failed=2, passed=10)
    one, two, three = (without_run(project.path / name / "report.json") for name in ("one", "two", "three"))
    assert one == two
    assert one == three
    assert len(verdicts(read(project.path / "one/report.json"))) == 19


def test_a_malformed_case_is_in_the_report(project: Project) -> None:
    project.write("cases/pool/wrong.case", MALFORMED)
    project.run("--quiesce-backend=host", "--quiesce-report=out")
    report = read(project.path / "out/report.json")
    assert verdicts(report) == {("pool/good", "host"): "passed", ("pool/wrong", "no backend"): "broken case"}


def test_a_killed_run_leaves_what_was_finished(project: Project) -> None:
    project.write("cases/pool/zero.case", GOOD)
    project.write("out/report.json", "an older report")
    result = project.run_apart(
        "--quiesce-report=out",
        "cases/pool/good.case::host",
        "cases/pool/zero.case",
        "--quiesce-backend=host",
        "--quiesce-backend=dying",
    )
    assert result.ret == 7
    journal = (project.path / "out/results.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["case"] for line in journal[1:]] == ["pool/good", "pool/zero"]
    assert not (project.path / "out/report.json").exists()


def test_an_interrupted_run_reports_what_was_finished(project: Project) -> None:
    project.write("cases/pool/zero.case", GOOD)
    result = project.run_apart(
        "--quiesce-report=out",
        "--quiesce-backend=interrupted",
        "--quiesce-backend=host",
        "cases/pool/good.case::host",
        "cases/pool/zero.case::interrupted",
    )
    assert result.ret == pytest.ExitCode.INTERRUPTED
    report = read(project.path / "out/report.json")
    assert verdicts(report) == {("pool/good", "host"): "passed"}
    assert report["run"]["ended"] == "interrupted"


def test_a_run_that_is_interrupted_twice_before_anything_was_collected_is_not_complete(project: Project) -> None:
    project.write(
        "conftest.py",
        "import pytest\n"
        "@pytest.hookimpl(tryfirst=True)\n"
        "def pytest_collection(): raise KeyboardInterrupt\n"
        "@pytest.hookimpl(tryfirst=True)\n"
        "def pytest_keyboard_interrupt(): raise KeyboardInterrupt\n",
    )
    project.run_apart("--quiesce-report=out", "--quiesce-backend=host")
    journal = (project.path / "out/results.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(journal[-1]) == {"ended": "interrupted"}
    assert read(project.path / "out/report.json")["run"]["ended"] == "interrupted"


@pytest.mark.long
def test_a_dead_worker_is_a_failed_result_and_nothing_else_is_lost(project: Project) -> None:
    for number in range(3):
        project.write(f"cases/pool/more_{number}.case", GOOD)
    project.write("cases/wave/ends.case", GOOD.replace("comes and goes", "ends its worker"))
    result = project.run_apart(
        "-n",
        "2",
        "--quiesce-report=out",
        "--quiesce-backend=host",
        "--quiesce-backend=dying",
        "cases/pool",
        "cases/wave",
        "-k",
        "host or ends",
    )
    result.assert_outcomes(failed=1, passed=5)
    result.stdout.fnmatch_lines(
        [
            "cases/wave/ends.case: on 'dying'",
            "  rule:      process_survives_every_request",
            "  expected:  the process lives until the case has run",
            "  observed:  worker 'gw[01]' crashed while running 'cases/wave/ends.case::dying'",
            "  kind:      crash",
            "  reproduce: pytest 'cases/wave/ends.case' --quiesce-backend=dying",
        ],
        consecutive=True,
    )
    report = read(project.path / "out/report.json")
    finished = {(f"pool/{name}", "host"): "passed" for name in ("good", "more_0", "more_1", "more_2")}
    assert verdicts(report) == {**finished, ("wave/ends", "host"): "passed", ("wave/ends", "dying"): "failed"}
    (ends,) = [each for each in report["results"] if each["backend"] == "dying"]
    assert ends["title"] == "A block ends its worker"


@pytest.mark.parametrize(("arguments", "ended"), [((), "completed"), (("-x",), "interrupted")])
def test_the_report_says_how_the_run_ended(project: Project, arguments: tuple[str, ...], ended: str) -> None:
    project.write("cases/aaa/refused.case", BAD)
    project.run("--quiesce-report=out", "--quiesce-backend=host", *arguments)
    assert read(project.path / "out/report.json")["run"]["ended"] == ended


FAILS_AT_FIRST = """\
import dataclasses
from quiesce.model.results import Verdict

SEEN = []

def pytest_quiesce_adjust_result(result):
    if "later" not in result.path or SEEN:
        return None
    SEEN.append(result.path)
    return dataclasses.replace(result, verdict=Verdict.FAILED)
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_of_several_attempts_the_last_one_is_the_result(project: Project, workers: str) -> None:
    pytest.importorskip("pytest_rerunfailures")
    project.write("conftest.py", FAILS_AT_FIRST)
    project.write("cases/pool/later.case", GOOD)
    project.write("cases/pool/refused.case", BAD)
    project.write("test_it.py", "import pytest\n@pytest.mark.leak\ndef test_never(): assert False\n")
    arguments = ("--reruns=2", "--quiesce-report=out", "--quiesce-backend=host", "--quiesce-leak-rounds=3")
    result = project.run_beside("rerunfailures", "-n", workers, *arguments, "test_it.py", "cases")
    result.assert_outcomes(failed=2, passed=2)
    failed = "1 of 3 cases failed on host"
    result.stdout.fnmatch_lines([failed, "1 test checked for leaks: 1 fails without a leak; * s"])
    report = read(project.path / "out/report.json")
    assert {each["case"]: (each["verdict"], each.get("attempt")) for each in report["results"]} == {
        "pool/good": ("passed", None),
        "pool/later": ("passed", 2),
        "pool/refused": ("failed", 3),
        "test_it.py::test_never": ("failed", 3),
    }
    junit = (project.path / "out/junit.xml").read_text(encoding="utf-8")
    assert ElementTree.fromstring(junit).get("tests") == "4"
    assert junit.count('"attempt 3; attempts 1 and 2 failed"') == 2
    assert junit.count('"attempt 2; attempt 1 failed"') == 1
    write_reports(read_folder(project.path / "out"), project.path / "out")
    assert read(project.path / "out/report.json") == report
    assert (project.path / "out/junit.xml").read_text(encoding="utf-8") == junit


def test_the_page_is_written_where_its_libraries_are(project: Project) -> None:
    pytest.importorskip("jinja2")
    result = project.run("--quiesce-report=out", "--quiesce-backend=host")
    assert "pool/</span><wbr>good" in (project.path / "out/report.html").read_text(encoding="utf-8")
    result.stdout.no_fnmatch_line("*report.html was not written*")


def test_a_page_that_was_not_written_says_what_to_install(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quiesce.reporting.html.find_spec", lambda module: None)
    result = project.run("--quiesce-report=out", "--quiesce-backend=host")
    result.stdout.fnmatch_lines(["report.html was not written: Jinja2 missing; pip install *report*"])
    assert not (project.path / "out/report.html").exists()
    assert (project.path / "out/report.json").exists()


HOSTILE = """\
import dataclasses
from quiesce.model.findings import Finding
from quiesce.model.results import Verdict

TEXT = "</script><script>x</script>]]>\\x1b[31m\\x1b]0;title\\x07\\udc80\\u202e\\x00\\x9b31m\\r\\nforged: line"
TEXT += "y" * 70_000

def pytest_quiesce_adjust_result(result):
    finding = Finding(TEXT, TEXT, TEXT, 0, 5, TEXT, TEXT, TEXT, evidence=TEXT)
    verdict = Verdict.FAILED if "good" in result.path else Verdict.INCONCLUSIVE
    return dataclasses.replace(result, verdict=verdict, reason=TEXT, title=TEXT, findings=(finding,), upstream=(TEXT,))
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_hostile_text_reaches_every_report_and_harms_none(workers: str, project: Project) -> None:
    project.write("conftest.py", HOSTILE)
    project.write("cases/pool/other.case", GOOD)
    result = project.run_apart(
        "-n", workers, "--quiesce-report=out", "--quiesce-backend=host", "--junitxml=own.xml", "-rs"
    )
    result.assert_outcomes(failed=1, skipped=1)
    said = "\n".join(result.outlines + result.errlines)
    assert not set("\x00\x1b\x9b\u202e\udc80") & set(said)
    assert not [line for line in said.splitlines() if line.startswith("forged")]
    report = read(project.path / "out/report.json")
    assert [each["reason"].count("\x1b[31m") for each in report["results"]] == [1, 1]
    for name in ("own.xml", "out/junit.xml"):
        assert len(list(ElementTree.parse(project.path / name).iter("testcase"))) == 2
    page = project.path / "out/report.html"
    if page.exists():
        assert "<script>x" not in page.read_text(encoding="utf-8")


def test_collecting_writes_nothing(project: Project) -> None:
    project.write("out/report.json", "an older report")
    project.run("--collect-only", "--quiesce-report=out", "--quiesce-backend=host")
    assert (project.path / "out/report.json").read_text(encoding="utf-8") == "an older report"


IN_THE_WAY = """
import pathlib, shutil

def pytest_runtest_teardown(item):
    out = pathlib.Path("out")
    if out.is_dir():
        shutil.rmtree(out)
        out.write_text("in the way")
"""


def test_a_report_that_cannot_be_written_is_no_success(project: Project) -> None:
    project.write("conftest.py", IN_THE_WAY)
    result = project.run("--quiesce-report=out", "--quiesce-backend=host")
    assert result.ret == pytest.ExitCode.INTERNAL_ERROR
    result.stdout.fnmatch_lines(["THE REPORT COULD NOT BE WRITTEN: *"])


def test_a_report_of_leak_checks_that_cannot_be_written_says_nothing_of_cases(project: Project) -> None:
    project.write("conftest.py", IN_THE_WAY)
    project.write("test_it.py", "def test_it(): pass\n")
    result = project.run_apart("--quiesce-report=out", "--quiesce-leak", "test_it.py")
    result.stdout.fnmatch_lines(["THE REPORT COULD NOT BE WRITTEN: *", "1 test checked for leaks: 1 clean; *"])
    result.stdout.no_fnmatch_line("nothing was executed*")
