from __future__ import annotations

import argparse
import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

from quiesce.cli import doctor
from quiesce.cli.console import Console
from quiesce.cli.endings import HINT, ExitCode
from quiesce.cli.main import COMMANDS, main
from quiesce.cli.version import version
from quiesce.model.results import Result, Verdict
from quiesce.reporting.journal import Journal


def test_version_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"quiesce {version()}\n"


def test_a_bare_source_tree_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr("quiesce.cli.version.importlib.metadata.version", missing)
    assert version() == "(not installed)"


def test_help_names_every_command_and_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    listed = {line.split()[0] for line in text.splitlines() if line.startswith("    ") and line[4] != " "}
    assert set(COMMANDS) <= listed
    assert "exit codes: 0 nothing found, 1 findings, 2 could not run" in text


def test_without_a_command_it_shows_its_help_and_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == ExitCode.COULD_NOT_RUN
    captured = capsys.readouterr()
    assert captured.out.startswith("usage: quiesce [-h] [--version] COMMAND ...\n")
    assert "exit codes: 0 nothing found" in captured.out
    assert captured.err == ""


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert f"usage: quiesce {name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["explor"], "quiesce: there is no command 'explor'; write 'explore', or another of run, exec, explore, "),
        (
            ["run", "--no-such-option"],
            "quiesce run: unrecognized arguments: --no-such-option; see 'quiesce run --help'",
        ),
        (["shrink", "a.case", "b.case", "--backend", "alpha"], "quiesce shrink: unrecognized arguments: b.case; see "),
        (
            ["run", "--seed", "x"],
            "quiesce run: argument --seed: 'x' is not a seed; write a whole number from 0 to 18446744073709551615; see",
        ),
        (["explore"], "quiesce explore: the following arguments are required: --backend; see 'quiesce explore --help'"),
        (["prove", "--matrix", "--json"], "quiesce prove: argument --json: not allowed with argument --matrix; see "),
    ],
)
def test_usage_errors_are_one_line_and_could_not_run(
    words: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == ExitCode.COULD_NOT_RUN
    said = capsys.readouterr().err
    assert said.startswith(line)
    assert said.count("\n") == 1


def _interrupted_at(where: str) -> KeyboardInterrupt:
    interruption = KeyboardInterrupt()
    interruption.add_note(where)
    return interruption


@pytest.mark.parametrize(
    ("trouble", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "quiesce: interrupted\n"),
        (
            _interrupted_at("it was at operation 3: free a"),
            130,
            f"quiesce: interrupted; it was at operation 3: free a; {HINT}\n",
        ),
        (OSError(28, "No space left on device"), 2, "quiesce: No space left on device\n"),
        (PermissionError(13, "Permission denied", "out"), 2, "quiesce: 'out': Permission denied\n"),
    ],
)
def test_every_ending_has_its_code_and_one_line(
    trouble: BaseException,
    code: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def command(arguments: argparse.Namespace, console: Console) -> ExitCode:
        raise trouble

    monkeypatch.setattr(doctor, "command", command)
    assert main(["doctor"]) == code
    assert capsys.readouterr().err == message


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX pipes")
def test_a_closed_pipe_ends_the_program_quietly(tmp_path: Path) -> None:
    with Journal(tmp_path / "results.jsonl", seed=0, run={}) as journal:
        journal.add(Result("a/b", "T", "", "host", Verdict.PASSED))
    reader, writer = os.pipe()
    os.close(reader)
    finished = subprocess.run(
        [sys.executable, "-m", "quiesce.cli.main", "report", str(tmp_path)],
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},  # it hides what is left
    )
    os.close(writer)
    assert finished.returncode == ExitCode.OUTPUT_CLOSED
    assert finished.stderr == b""
    assert (tmp_path / "report.json").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX shells")
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_change_no_verdict(closed: str, tmp_path: Path) -> None:
    with Journal(tmp_path / "results.jsonl", seed=0, run={}) as journal:
        journal.add(Result("a/b", "T", "a.case", "host", Verdict.BROKEN_CASE))
    finished = subprocess.run(
        ["sh", "-c", f'"$0" -m quiesce.cli.main report "$1" {closed}', sys.executable, str(tmp_path)],
        capture_output=True,
        check=False,
    )
    assert finished.returncode == ExitCode.FINDINGS
    assert b"Traceback" not in finished.stderr
    assert b"a/b" in (tmp_path / "report.json").read_bytes()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("words", [["run", "nosuch"], ["run", "--nosuch"]], ids=" ".join)
def test_what_cannot_be_complained_of_keeps_its_code(words: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        finished = subprocess.run(
            [sys.executable, "-m", "quiesce.cli.main", *words], stdout=subprocess.PIPE, stderr=full, check=False
        )
    assert finished.returncode == ExitCode.COULD_NOT_RUN


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_output_that_does_not_fit_is_one_line() -> None:
    with Path("/dev/full").open("wb") as full:
        finished = subprocess.run(
            [sys.executable, "-m", "quiesce.cli.main", "doctor", "reference"],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert finished.returncode == ExitCode.COULD_NOT_RUN
    assert finished.stderr == b"quiesce: 'standard output': No space left on device\n"


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX locale")
def test_an_ascii_terminal_does_not_end_the_program(tmp_path: Path) -> None:
    with Journal(tmp_path / "results.jsonl", seed=0, run={}) as journal:
        journal.add(Result("a/b", "T", "größe.case", "host", Verdict.BROKEN_CASE))
    finished = subprocess.run(
        [sys.executable, "-m", "quiesce.cli.main", "report", str(tmp_path)],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert finished.returncode == ExitCode.FINDINGS
    assert finished.stdout.startswith(b"gr\\xf6\\xdfe.case: broken case on 'host'")
