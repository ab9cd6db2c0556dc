"""Every process of a program is judged, or named: children of ``fork()``, emptied environments, daemons."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.cli.test_exec_verdicts import FORK, HELD, USED, Ran
from tests.simulator.programs import compile_client

from quiesce.cli.endings import ExitCode
from quiesce.model.errors import BackendUnavailable
from quiesce.simulator.runtime.build import build_library


@pytest.fixture(autouse=True)
def _built() -> None:
    try:
        build_library()
    except BackendUnavailable as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("fork", ["fork()", "_Fork()", "syscall(57)"])
def test_a_child_that_may_not_free_leaves_the_run_without_a_verdict(fork: str, tmp_path: Path) -> None:
    """Handlers of ``fork()`` do not run in a child of ``_Fork()``, nor in one of the system call."""
    child = FORK.replace("void *q; cudaMalloc(&q, 8);", "if (cudaFree(p) != 3) abort();").replace("fork()", fork)
    ran = Ran(tmp_path, ["--", str(compile_client(tmp_path, HELD + child + "cudaFree(p); return 0;"))])
    assert (ran.code, sorted(ran.elements)) == (ExitCode.COULD_NOT_RUN, ["error", "green"])
    assert "a child of fork() called cudaFree and was refused a device, as on a GPU" in ran.reasons


@pytest.mark.parametrize(
    ("runtime", "begins", "frees"),
    [("libcudart.so.12", "cudaMalloc", "cudaFree"), ("libamdhip64.so.6", "hipMalloc", "hipFree")],
)
def test_children_that_do_nothing_with_a_device_do_no_harm(
    runtime: str, begins: str, frees: str, tmp_path: Path
) -> None:
    body = f"""
        int wait(int *), cudaGetLastError(void), hipGetLastError(void); void *p; {begins}(&p, 8);
        if (!fork()) {begins[:-6]}GetLastError(), _exit(0);
        if (!fork()) exit(0);
        if (!fork()) {{ if (!fork()) _exit(0); wait(NULL); _exit(0); }}
        if (!vfork()) _exit(0);
        if (!vfork()) execl("/bin/true", "true", NULL);
        while (wait(NULL) > 0) {{}}
        {frees}(p);
        return 0;
    """
    flavour = "cuda:12" if "cudart" in runtime else "hip:6"
    ran = Ran(tmp_path, ["--flavour", flavour, "--", str(compile_client(tmp_path, body, runtime=runtime))])
    assert (ran.code, sorted(ran.elements)) == (ExitCode.NOTHING_FOUND, ["green", "skipped"])


def test_a_program_that_gets_no_environment_is_followed(tmp_path: Path) -> None:
    """By each way in which glibc starts a program; the environment that it gets has nothing else."""
    other = compile_client(
        tmp_path,
        'extern char **environ; for (char **each = environ; *each; each++) if (strncmp(*each, "LD_", 3) && '
        'strncmp(*each, "QUIESCE_", 8) && strncmp(*each, "GLIBC_TUNABLES", 14)) return 3;' + USED + "return 0;",
        name="other",
    )
    body = f"""
        int wait(int *), execvpe(const char *, char **, char **);
        int posix_spawn(int *, const char *, void *, void *, char **, char **);
        char *alone[] = {{"other", NULL}}, *nothing[] = {{NULL}}; int child, status;
        for (int way = 0; way < 5; way++) {{
            if (way == 4) posix_spawn(&child, "{other}", NULL, NULL, alone, nothing);
            else if (!fork()) {{
                if (way == 0) execve("{other}", alone, nothing);
                if (way == 1) execve("{other}", alone, NULL);
                if (way == 2) execle("{other}", "other", NULL, nothing);
                if (way == 3) execvpe("{other}", alone, nothing);
                _exit(9);
            }}
            wait(&status);
            if (status) return way + 1;
        }}
        if (execve("/nonexistent", alone, nothing) != -1) return 9;
        return 0;
    """
    ran = Ran(tmp_path, ["--", str(compile_client(tmp_path, body))])
    assert (ran.code, ran.verdicts) == (ExitCode.NOTHING_FOUND, ["passed"] * 5)
    ran = Ran(tmp_path, ["--", "env", "-i", str(other)])
    assert (ran.code, ran.verdicts) == (ExitCode.NOTHING_FOUND, ["passed"])


def test_a_daemon_that_outlives_its_program_is_named(tmp_path: Path) -> None:
    """Its parent has ended, and it has not called anything yet when the verdict is given."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    body = (
        USED
        + f"""
        int open(const char *, int, ...), setsid(void), wait(int *);
        if (!fork()) {{ if (fork()) _exit(0); setsid(); close(open("{gate}", 0)); {HELD} _exit(0); }}
        wait(NULL);
        return 0;
    """
    )
    try:
        ran = Ran(tmp_path, ["--", str(compile_client(tmp_path, body, name="daemon"))])
    finally:
        gate.open("wb").close()
    assert (ran.code, ran.verdicts) == (ExitCode.COULD_NOT_RUN, ["inconclusive"])
    assert "still running; run it in the foreground (daemon (1 process))" in ran.reasons


def test_a_process_that_outlives_the_program_is_told(tmp_path: Path) -> None:
    """The child waits at a FIFO that opens when all is judged; the program waits until it has called."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    body = f"""
        int ready[2], open(const char *, int, ...); char one = 1;
        pipe(ready);
        if (!fork()) {{ {HELD} write(ready[1], &one, 1); close(open("{gate}", 0)); _exit(0); }}
        return read(ready[0], &one, 1) != 1;
    """
    try:
        ran = Ran(tmp_path, ["--", str(compile_client(tmp_path, body))])
    finally:
        gate.open("wb").close()
    assert (ran.code, ran.verdicts) == (ExitCode.COULD_NOT_RUN, ["inconclusive"])
    assert "a process that was started in the background was still running; run it in the foreground" in ran.reasons
