"""``quiesce exec`` is killed: its program ends with it, and what it left can be judged and removed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.simulator.programs import compile_client

from quiesce.cli.exit_codes import ExitCode

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


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    ("body", "killed", "said", "finds"),
    [
        (ENDS, ("quiesce.simulator.launch", "write_lookalikes"), "killed before the program ended", False),
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
    assert (f"reproduce: quiesce exec --capacity 1073741824 -- {program}" in judged.stdout) is True

    told = quiesce(temporary, "doctor")
    assert f"{folder}: left by a killed run\n" in told.stdout
    assert f"  command:      {program}\n" in told.stdout
    removed = quiesce(temporary, "doctor", "--clean")
    assert removed.stdout.startswith(f"{folder}: removed (")
    assert not list(temporary.glob("quiesce-*"))


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
