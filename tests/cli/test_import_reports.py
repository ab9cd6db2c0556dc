"""``quiesce import``: reports of native leak checkers in, results, reports and an exit code out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.traces.test_native_reports import REPORTS

from quiesce.cli.endings import ExitCode
from quiesce.cli.main import main

LEAKY = str(REPORTS / "leaky.valgrind.xml")
CLEAN = "<valgrindoutput><protocoltool>memcheck</protocoltool></valgrindoutput>"
DOUBTFUL = (
    "<valgrindoutput><error><kind>Leak_PossiblyLost</kind><xwhat><leakedbytes>8</leakedbytes>"
    "<leakedblocks>1</leakedblocks></xwhat></error></valgrindoutput>"
)


@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        (CLEAN, [], ExitCode.NOTHING_FOUND),
        (DOUBTFUL, [], ExitCode.NOTHING_FOUND),
        ("a log", [], ExitCode.COULD_NOT_RUN),
        ("a log", ["--format", "leak-sanitizer"], ExitCode.NOTHING_FOUND),
        ("a log", ["--format", "msvc-crt"], ExitCode.NOTHING_FOUND),
        ("a log", ["--format", "valgrind"], ExitCode.COULD_NOT_RUN),
    ],
)
def test_exit_codes(text: str, options: list[str], code: ExitCode, tmp_path: Path) -> None:
    path = tmp_path / "report"
    path.write_text(text, encoding="utf-8")
    assert main(["import", *options, str(path)]) == code


def test_findings_are_shown_with_the_line_of_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", LEAKY]) == ExitCode.FINDINGS
    shown = capsys.readouterr()
    assert f"{LEAKY}:42: on 'valgrind'" in shown.out
    assert "allocated: make (leaky.c:14)" in shown.out
    assert f"reproduce: quiesce import {LEAKY}" in shown.out
    assert "held at exit, and no finding: 176 bytes in 1 block" in shown.err


def test_a_file_that_cannot_be_read_leaves_the_others_their_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clean, broken = tmp_path / "clean.xml", tmp_path / "broken.xml"
    clean.write_text(CLEAN, encoding="utf-8")
    broken.write_text(CLEAN[:-3], encoding="utf-8")
    assert main(["import", str(clean), str(broken), str(tmp_path / "none")]) == ExitCode.COULD_NOT_RUN
    shown = capsys.readouterr()
    assert "1 result from 1 backend: no failures" in shown.out
    assert "broken.xml:1: the report ends before </valgrindoutput>" in shown.err
    assert "none' cannot be read (No such file or directory); name a file that a leak checker wrote" in shown.err
    assert main(["import", LEAKY, str(broken)]) == ExitCode.FINDINGS


@pytest.mark.parametrize("name", ["none", "/dev/null", "."])
def test_what_is_no_file_is_one_line_and_no_table(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", name]) == ExitCode.COULD_NOT_RUN
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert shown.err.endswith("; name a file that a leak checker wrote\n")


def test_an_unclear_block_is_inconclusive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "report.xml"
    path.write_text(DOUBTFUL, encoding="utf-8")
    main(["import", "--report", str(tmp_path / "out"), str(path)])
    (result,) = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))["results"]
    assert result["verdict"] == "inconclusive"
    assert "middle" in result["reason"]
    assert capsys.readouterr().out.endswith("1 result from 1 backend: no failures\n")


def test_reports_are_written_and_the_same_twice(tmp_path: Path) -> None:
    texts = []
    for name in ("first", "second"):
        folder = tmp_path / name
        assert main(["import", "--report", str(folder), LEAKY]) == ExitCode.FINDINGS
        assert "rule:      nothing_is_left_at_quiescence" in (folder / "junit.xml").read_text(encoding="utf-8")
        report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
        report.pop("run")
        texts.append(report)
    assert texts[0] == texts[1]
