from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quiesce.allocators.cases.case import Case
from quiesce.cli.endings import ExitCode
from quiesce.cli.main import main
from quiesce.model.backend import Backend
from quiesce.model.findings import Finding
from quiesce.model.results import Result, Verdict

Verdicts = Callable[[str, str], Verdict]


def make_result(case: str, verdict: Verdict, path: str = "", backend: str = "described otherwise") -> Result:
    findings = (Finding("blocks_do_not_overlap", "apart", "overlapping", 1, 7),) if verdict.is_failure else ()
    return Result(case=case, title="T", path=path, backend=backend, verdict=verdict, findings=findings)


def judge(monkeypatch: pytest.MonkeyPatch, verdict: Verdicts) -> None:
    def run(case: Case, backend: Backend) -> Result:
        return make_result(case.identifier, verdict(case.identifier, backend.describe().name), case.path)

    monkeypatch.setattr("quiesce.cli.run.run_and_prove", run)


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_all_cases_run_on_all_backends_that_work(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    judge(monkeypatch, lambda case, backend: Verdict.PASSED)
    monkeypatch.setattr("quiesce.cli.run.version", lambda: "9")
    assert main(["run", "cases"]) == ExitCode.NOTHING_FOUND
    captured = capsys.readouterr()
    assert (
        captured.out
        == """\
quiesce 9: 3 cases on 2 backends, seed 0
  alpha  3 of 3  1.2
  beta   3 of 3  1.2
  cannot work here: cupy (see quiesce doctor)

backend  executed  passed  failed  broken  unsupported  not promised  known  inconclusive
alpha           3       3       0       0            0             0      0             0
beta            3       3       0       0            0             0      0             0
3 cases passed on 2 backends
"""
    )
    assert captured.err == ""


def test_a_failure_is_shown_with_the_command_that_repeats_it(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    judge(monkeypatch, lambda case, backend: Verdict.FAILED)
    words = ["run", "cases/pool/trim.case", "--backend", "command:./driver 'a b'", "--seed", "5"]
    assert main(words) == ExitCode.FINDINGS
    text = capsys.readouterr().out
    assert "cases/pool/trim.case:7: operation 1 on 'command:./driver 'a b''\n" in text
    again = "quiesce run cases/pool/trim.case --backend 'command:./driver '\"'\"'a b'\"'\"'' --seed 5"
    assert f"  reproduce: {again}\n" in text


@pytest.mark.skipif(sys.platform != "linux", reason="names of any bytes")
@pytest.mark.parametrize("name", [b"ca \xfe's;e.case", "turned \u202e round.case".encode(), b"-x.case"])
def test_the_command_that_repeats_it_names_the_file_exactly(
    name: bytes, corpus: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(os.fsdecode(name))
    (corpus / "cases" / "pool" / "trim.case").rename(path)
    judge(monkeypatch, lambda case, backend: Verdict.FAILED)
    assert main(["run", f"./{path}", "--backend", "alpha"]) == ExitCode.FINDINGS
    command = next(line for line in capsys.readouterr().out.splitlines() if "reproduce:" in line)
    assert command.isprintable()
    words = words_of(command.partition("reproduce: ")[2])
    assert words[:2] == ["quiesce", "run"]
    assert main(words[1:]) == ExitCode.FINDINGS


def words_of(command: str) -> list[str]:
    """Return what a shell makes of a command."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("needs bash")
    told = subprocess.run([bash, "-c", f"printf '%s\\0' {command}"], capture_output=True, check=True)
    return [os.fsdecode(word) for word in told.stdout.split(b"\0")[:-1]]


def test_reports_are_equal_apart_from_the_run(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge(monkeypatch, lambda case, backend: Verdict.FAILED if backend == "beta" else Verdict.PASSED)
    assert main(["run", "cases", "--report", "first"]) == ExitCode.FINDINGS
    assert main(["run", "cases", "--report", "second"]) == ExitCode.FINDINGS
    first, second = read(corpus / "first" / "report.json"), read(corpus / "second" / "report.json")
    assert first.pop("run")["skipped cupy"] == "no device; install a driver"
    assert second.pop("run")["ended"] == "completed"
    assert first == second
    assert len(first["results"]) == 6
    assert (corpus / "first" / "junit.xml").read_bytes() == (corpus / "second" / "junit.xml").read_bytes()


@pytest.mark.parametrize(("options", "lines"), [([], 0), (["--report", "out"], 1)])
def test_a_page_that_was_asked_for_and_cannot_be_written_is_one_line(
    options: list[str],
    lines: int,
    corpus: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    judge(monkeypatch, lambda case, backend: Verdict.PASSED)
    monkeypatch.setattr("quiesce.cli.run.why_unavailable", lambda: "report.html was not written: Jinja2 missing")
    assert main(["run", "cases", *options]) == ExitCode.NOTHING_FOUND
    assert capsys.readouterr().err == "quiesce: report.html was not written: Jinja2 missing\n" * lines


@pytest.mark.parametrize("verdict", [Verdict.UNSUPPORTED, Verdict.NOT_PROMISED])
def test_nothing_executed_could_not_run(
    verdict: Verdict, corpus: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    judge(monkeypatch, lambda case, backend: verdict)
    assert main(["run", "cases", "--backend", "alpha"]) == ExitCode.COULD_NOT_RUN
    assert "NOTHING WAS EXECUTED on 'alpha'" in capsys.readouterr().out
    assert main(["run", "cases"]) == ExitCode.COULD_NOT_RUN
    text = capsys.readouterr().out
    assert "NOTHING" not in text, "nobody named a backend"
    assert text.endswith("nothing was executed: no verdict\n")


def test_a_requested_backend_that_cannot_work_is_one_line(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "cases", "--backend", "cupy"]) == ExitCode.COULD_NOT_RUN
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "quiesce: backend 'cupy' cannot work here: no device; install a driver\n"


def test_a_file_that_cannot_be_read_hides_no_other(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (corpus / "cases" / "pool" / "wrong.case").write_text("titel: x\n", encoding="utf-8")
    judge(monkeypatch, lambda case, backend: Verdict.PASSED)
    assert main(["run", "cases", "--report", "out"]) == ExitCode.COULD_NOT_RUN
    captured = capsys.readouterr()
    assert captured.err.startswith("quiesce: cases/pool/wrong.case:1: ")
    assert captured.err.count("\n") == 1
    assert "3 cases passed on 2 backends\n" in captured.out
    assert "unreadable cases/pool/wrong.case" in read(corpus / "out" / "report.json")["run"]


def test_nothing_but_a_file_that_cannot_be_read_is_one_line(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (corpus / "bin.case").write_bytes(b"\x7fELF\xff")
    assert main(["run", "bin.case", "--report", "out"]) == ExitCode.COULD_NOT_RUN
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("quiesce: bin.case:1: ")
    assert captured.err.count("\n") == 1
    assert "unreadable bin.case" in read(corpus / "out" / "report.json")["run"]


def test_an_interrupt_keeps_what_was_finished(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def verdict(case: str, backend: str) -> Verdict:
        if (case, backend) == ("pool/trim", "beta"):
            raise KeyboardInterrupt
        return Verdict.PASSED

    judge(monkeypatch, verdict)
    assert main(["run", "cases", "--report", "out"]) == ExitCode.INTERRUPTED
    captured = capsys.readouterr()
    assert captured.err == "quiesce: interrupted: 4 of 6 results finished; they are in out\n"
    assert "3 cases passed on 2 backends\n" in captured.out
    report = read(corpus / "out" / "report.json")
    assert (len(report["results"]), report["run"]["ended"]) == (4, "interrupted")


def test_a_crash_of_the_harness_is_no_finding_and_keeps_what_was_finished(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def verdict(case: str, backend: str) -> Verdict:
        if backend == "beta":
            raise ZeroDivisionError
        return Verdict.PASSED

    judge(monkeypatch, verdict)
    assert main(["run", "cases", "--report", "out"]) == ExitCode.OWN_ERROR
    output, errors = capsys.readouterr()
    assert "ZeroDivisionError" in errors
    *_, finished, again, last = errors.splitlines()
    assert last.startswith("quiesce: this is an error in quiesce itself, not a finding")
    assert again.startswith("quiesce: this command shows it again: quiesce run cases/")
    assert again.endswith(" --backend beta")
    assert "quiesce: ended by an error in quiesce itself: 3 of 6 results finished; they are in out" in errors
    assert finished.startswith("reproduce: ")
    assert "3 cases passed on alpha" in output
    report = read(corpus / "out" / "report.json")
    assert (len(report["results"]), report["run"]["ended"]) == (3, "failed")


def test_results_are_in_the_journal_before_the_next_case_begins(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def verdict(case: str, backend: str) -> Verdict:
        seen.append((corpus / "out" / "results.jsonl").read_bytes().count(b"\n") - 1)
        return Verdict.PASSED

    judge(monkeypatch, verdict)
    main(["run", "cases", "--report", "out"])
    assert seen == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("name", ["report.json", "report.html", "junit.xml", "results.jsonl"])
@pytest.mark.parametrize(
    "words", [["run", "cases"], ["import", "log"], ["exec", "--", "program"]], ids=lambda each: each[0]
)
def test_a_report_that_is_a_folder_is_refused_before_anything_runs(
    words: list[str], name: str, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (corpus / "out" / name).mkdir(parents=True)
    with pytest.raises(SystemExit) as ended:
        main([words[0], "--report", "out", *words[1:]])
    assert ended.value.code == ExitCode.COULD_NOT_RUN
    captured = capsys.readouterr()
    assert captured.out == ""
    refused = f"argument --report: '{Path('out', name)}' is a folder, so no report can be written; name another; see "
    assert refused in captured.err


@pytest.mark.parametrize(
    ("verdict", "code"), [(Verdict.FAILED, ExitCode.FINDINGS), (Verdict.PASSED, ExitCode.COULD_NOT_RUN)]
)
@pytest.mark.parametrize(("where", "name"), [("Journal.add", "results.jsonl"), ("folder.write_json", "report.json")])
def test_a_full_disk_is_one_line_and_takes_no_finding_away(
    where: str,
    name: str,
    verdict: Verdict,
    code: ExitCode,
    corpus: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def disk_full(*unused: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", f"out/{name}")

    judge(monkeypatch, lambda case, backend: verdict)
    monkeypatch.setattr(f"quiesce.reporting.{where.replace('Journal', 'journal.Journal')}", disk_full)
    assert main(["run", "cases", "--report", "out"]) == code
    captured = capsys.readouterr()
    assert captured.err == f"quiesce: the reports are not complete: 'out/{name}': No space left on device\n"
    assert captured.out.count("  reproduce: ") == (6 if verdict is Verdict.FAILED else 0)
    assert ("3 of 3 cases failed: " if verdict is Verdict.FAILED else "3 cases passed on 2 backends") in captured.out
