"""``quiesce exec`` is killed: its program ends with it, and what it left can be judged and removed."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.simulator.programs import compile_client

from quiesce.cli.console import Console
from quiesce.cli.endings import ExitCode
from quiesce.cli.killed_run import tell_left_folders
from quiesce.cli.main import main
from quiesce.simulator.runtime.run_folder import OWNER, FolderOwner

KILLED = """
import os, sys
import {module} as module
module.{name} = lambda *words, **named: os.kill(os.getpid(), 9)
from quiesce.cli.main import main
main(sys.argv[1:])
"""
KILLS = """
    int kill(int, int), pause(void), setsid(void);
    void *p;
    int quiesce = getppid();
    cudaMalloc(&p, 8);
    cudaFree(p);
    cudaFree(p);
    if (!fork()) { setsid(); if (fork()) _exit(0); for (;;) pause(); }
    kill(quiesce, 9);
    for (;;) pause();
"""
ENDS = "void *p; cudaMalloc(&p, 8); cudaFree(p); cudaFree(p); return 0;"


def quiesce(temporary: Path, *words: str, script: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command, until nobody who inherited its output is left."""
    start = ["-c", script] if script else ["-m", "quiesce"]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    command = [sys.executable, *start, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.long
@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    ("body", "killed", "said", "finds"),
    [
        (ENDS, ("quiesce.simulator.runtime.launch", "write_lookalikes"), "killed before the program ended", False),
        (KILLS, (), "killed before the program ended", True),
        (ENDS, ("quiesce.cli.judging", "judge_processes"), "killed before it had judged the program", True),
    ],
    ids=["starting", "running", "judging"],
)
def test_what_a_killed_run_left(body: str, killed: tuple[str, ...], said: str, finds: bool, tmp_path: Path) -> None:
    program, temporary = compile_client(tmp_path, body), tmp_path / "temporary"
    temporary.mkdir()
    script = KILLED.format(module=killed[0], name=killed[1]) if killed else ""
    ended = quiesce(temporary, "exec", "--capacity", "1GiB", "--", str(program), script=script)
    assert ended.returncode == -9
    (folder,) = temporary.glob("quiesce-*")

    judged = quiesce(temporary, "report", str(folder))
    assert judged.returncode == ExitCode.COULD_NOT_RUN
    assert f"quiesce: quiesce exec was {said}" in judged.stderr
    assert ("call 2 on 'cuda:12': cudaFree" in judged.stdout) is finds
    assert f"reproduce: quiesce exec --capacity 1073741824 -- {program}" in judged.stdout
    assert stat.S_IMODE((folder / OWNER).stat().st_mode) == 0o600


def test_left_folders_are_named_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left, owned, other = (tmp_path / f"quiesce-{name}" for name in ("leftleft", "ownedown", "someelse"))
    for folder in (left, owned, other):
        folder.mkdir()
    (tmp_path / "quiesce-linklink").symlink_to(left)
    owner = FolderOwner(owned, ["./mine"], [])
    FolderOwner(left, ["./program", "a b"], ["--no-pools"]).close()
    tell_left_folders(Console(sys.stdout, sys.stderr, {}), clean=False)
    told = capsys.readouterr()
    assert told.out.splitlines() == [
        f"{left}: left by a killed run",
        "  size:         4,096 bytes (4 KiB)",
        "  command:      ./program 'a b'",
        f"  to judge it:  quiesce report {left}",
    ]
    assert "quiesce doctor --clean" in told.err
    assert main(["doctor", "--clean"]) == ExitCode.NOTHING_FOUND
    owner.close()
    assert capsys.readouterr().out == f"{left}: removed (4,096 bytes (4 KiB))\n"
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["quiesce-ownedown", "quiesce-someelse"]


@pytest.mark.parametrize("option", ["--help", "--no-such-option"])
def test_options_that_a_run_can_not_have_had_are_damage(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    FolderOwner(tmp_path, ["./program"], [option]).close()
    assert main(["report", str(tmp_path)]) == ExitCode.COULD_NOT_RUN
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    assert f"{tmp_path / OWNER}: this file of the run is damaged" in told.err


def test_a_folder_that_others_can_change_is_not_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    FolderOwner(tmp_path, ["./program"], []).close()
    tmp_path.chmod(0o777)
    assert main(["report", str(tmp_path)]) == ExitCode.COULD_NOT_RUN
    assert "is not judged, because others may write to it" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["status", "1.ledger", "loads"])
@pytest.mark.parametrize("is_pipe", [True, False], ids=["pipe", "link"])
def test_nothing_outside_of_a_folder_is_read_and_no_pipe_is_waited_for(
    name: str, is_pipe: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    FolderOwner(tmp_path, ["./program"], []).close()
    if is_pipe:
        os.mkfifo(tmp_path / name)
    else:
        (tmp_path / name).symlink_to("/dev/zero")
    assert main(["report", str(tmp_path)]) == ExitCode.COULD_NOT_RUN
    assert f"{tmp_path / name}: this file of the run is damaged" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.usefixtures("library")
def test_a_program_that_leaves_a_pipe_in_place_of_its_record_is_not_waited_for(tmp_path: Path) -> None:
    body = (
        'void *p; cudaMalloc(&p, 8); system("unset LD_AUDIT LD_LIBRARY_PATH QUIESCE_SIMULATOR; '
        'for each in $TMPDIR/quiesce-????????/*.ledger; do rm $each; mkfifo $each; done"); return 0;'
    )
    program, temporary = compile_client(tmp_path, body), tmp_path / "temporary"
    temporary.mkdir()
    ended = quiesce(temporary, "exec", "--", str(program))
    assert ended.returncode == ExitCode.COULD_NOT_RUN
    assert ".ledger: this file of the run is damaged" in ended.stderr
    assert list(temporary.iterdir()) == []


@pytest.mark.long
@pytest.mark.usefixtures("library")
def test_a_run_that_goes_on_is_nobody_elses(tmp_path: Path) -> None:
    body = (
        'system("unset LD_AUDIT LD_LIBRARY_PATH QUIESCE_SIMULATOR; for each in $TMPDIR/quiesce-????????; do '
        '$PYTHON -m quiesce report $each; $PYTHON -m quiesce doctor --clean; done"); return 0;'
    )
    program, temporary = compile_client(tmp_path, body), tmp_path / "temporary"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary), "PYTHON": sys.executable}
    command = [sys.executable, "-m", "quiesce", "exec", "--", str(program)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert "is still going on; wait until quiesce exec has judged it" in ended.stderr
    assert "removed" not in ended.stdout
