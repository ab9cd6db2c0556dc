"""The command: its exit codes, its reports, and what one subject breaks the others outlive."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.subjects.conftest import GREEN, MANIFEST, RED

from quiesce.cli.endings import ExitCode
from quiesce.cli.main import main


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder, with a cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QUIESCE_CACHE", str(tmp_path / "cache"))
    return tmp_path


def write(name: str = "example", manifest: str = MANIFEST) -> None:
    folder = Path("fixtures", "host", name)
    folder.mkdir(parents=True)
    (folder / "subject.toml").write_text(manifest, encoding="utf-8")


@pytest.mark.long
def test_all_as_expected_is_success_with_reports(capsys: pytest.CaptureFixture[str]) -> None:
    write()
    assert main(["subjects", "--jobs", "2", "--report", "out"]) == ExitCode.NOTHING_FOUND
    text = capsys.readouterr()
    assert text.out.endswith("4 results from 2 rows: all as expected\n")
    assert f"host/example {RED}: as expected" in text.err
    report = json.loads(Path("out", "report.json").read_text(encoding="utf-8"))
    verdicts = {(each["backend"], each["case"].partition("/")[0]): each["verdict"] for each in report["results"]}
    assert verdicts[f"host/example {RED}", "pool"] == "known upstream"
    assert verdicts[f"host/example {GREEN}", "pool"] == "passed"
    assert {path.name for path in Path("out").iterdir()} >= {"junit.xml", "results.jsonl"}


def test_what_one_subject_lacks_or_breaks_the_others_outlive(capsys: pytest.CaptureFixture[str]) -> None:
    write()
    write("lacking", MANIFEST.replace("[run]", '[needs]\nprograms = { no-such-tool = "install it" }\n[run]'))
    write("failing", MANIFEST.replace("[run]", '[build]\nsteps = [["{python}", "-c", "1/0"]]\n[run]'))
    write("unreadable", "title = 1")
    assert main(["subjects", "--version", GREEN]) == ExitCode.COULD_NOT_RUN
    text = capsys.readouterr()
    assert "skipped 'host/lacking reference': there is no program 'no-such-tool'; install it" in text.out
    assert "'host/failing reference' did not run" in text.out
    assert "ZeroDivisionError" in text.out
    assert "host/unreadable" in text.err
    assert "2 results from 1 row as expected; 1 row did not run" in text.out


@pytest.mark.long
def test_a_finding_that_nobody_expects_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    write("wrong", MANIFEST.replace("request_fits_but_out_of_memory", "another_rule"))
    assert main(["subjects", "wrong"]) == ExitCode.FINDINGS
    text = capsys.readouterr().out
    assert "rule:      request_fits_but_out_of_memory" in text
    assert "another_rule (NVIDIA/cccl#4222)" in text


def test_a_list_says_what_there_is_and_runs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    write()
    assert main(["subjects", "--list"]) == ExitCode.NOTHING_FOUND
    text = capsys.readouterr().out
    assert text.startswith("host/example:\n  title:    The reference, with and without a fault\n")
    assert f"releases: {RED} (before the fix); reference" in text


def test_nothing_to_run_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    write()
    assert main(["subjects", "--case", "zzz/*", "--case", "pool/squeeze"]) == ExitCode.COULD_NOT_RUN
    text = capsys.readouterr()
    assert "nothing was executed: no verdict" in text.out
    assert "quiesce: --case 'zzz/*' names no result; see quiesce list cases\n" in text.err
    near = "'pool/squeeze_before_out_of_memory'"
    assert f"quiesce: --case 'pool/squeeze' names no result; did you mean {near}?\n" in text.err
    assert main(["subjects", "elsewhere"]) == ExitCode.COULD_NOT_RUN
    assert "there is no subject 'elsewhere'" in capsys.readouterr().err
