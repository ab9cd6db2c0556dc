from __future__ import annotations

from pathlib import Path

import pytest

from quiesce.cli.endings import ExitCode
from quiesce.cli.main import main
from quiesce.model.results import Result, Verdict
from quiesce.reporting.journal import Journal
from quiesce.reporting.result_lists import PLANNED, UNREADABLE

PASSED = Result(case="a/b", title="T", path="a/b.case", backend="host", verdict=Verdict.PASSED)


def journal(directory: Path, run: dict[str, str]) -> None:
    with Journal(directory / "results.jsonl", seed=0, run=run) as opened:
        opened.add(PASSED)


def test_a_complete_journal_gives_its_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal(tmp_path, {PLANNED: "1"})
    assert main(["report", str(tmp_path)]) == ExitCode.NOTHING_FOUND
    assert capsys.readouterr().out.endswith("1 case passed on host\n")
    assert (tmp_path / "report.json").exists()
    assert (tmp_path / "junit.xml").exists()


def test_an_incomplete_journal_is_not_green(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal(tmp_path, {PLANNED: "12"})
    assert main(["report", str(tmp_path)]) == ExitCode.COULD_NOT_RUN
    assert capsys.readouterr().err == "quiesce: the run did not complete: the journal holds 1 of 12 results\n"


def test_a_report_that_cannot_be_written_hides_no_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal(tmp_path, {PLANNED: "1"})
    (tmp_path / "report.json").mkdir()
    assert main(["report", str(tmp_path)]) == ExitCode.COULD_NOT_RUN
    captured = capsys.readouterr()
    assert captured.out.endswith("1 case passed on host\n")
    assert captured.err == f"quiesce: the reports are not complete: '{tmp_path / 'report.json'}': Is a directory\n"


def test_unreadable_files_are_not_forgotten(tmp_path: Path) -> None:
    journal(tmp_path, {PLANNED: "1", f"{UNREADABLE}x.case": "why"})
    assert main(["report", str(tmp_path)]) == ExitCode.COULD_NOT_RUN


def test_a_page_that_cannot_be_written_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    journal(tmp_path, {PLANNED: "1"})
    monkeypatch.setattr("quiesce.cli.report.why_unavailable", lambda: "report.html was not written: Jinja2 missing")
    assert main(["report", str(tmp_path)]) == ExitCode.NOTHING_FOUND
    assert capsys.readouterr().err == "quiesce: report.html was not written: Jinja2 missing\n"


def test_a_folder_without_a_journal_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path)]) == ExitCode.COULD_NOT_RUN
    message = f"quiesce: '{tmp_path}' holds no results.jsonl; name a folder that 'quiesce run --report' wrote\n"
    assert capsys.readouterr().err == message
