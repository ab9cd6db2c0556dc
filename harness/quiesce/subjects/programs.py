"""Programs of a subject that run to their end, on the simulated runtime or without one, and what they are judged by."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from quiesce.model.findings import Finding
from quiesce.model.results import Result, Verdict
from quiesce.model.rules import Kind
from quiesce.simulator.judge import AtExit, JudgeConditions, judge_process, judge_silent
from quiesce.simulator.runtime import MachineSettings, Prepared, Simulated, prepare
from quiesce.subjects.build import Built
from quiesce.subjects.commands import replace_in_values, replace_words
from quiesce.subjects.manifest import Program

TOPIC: Final = "program"
SUCCEEDS: Final = "program_exits_with_success"
ENDS: Final = "program_ends_in_time"
_EVIDENCE_BYTES: Final = 64 << 10


def run_judged(program: Program, built: Built, *, seed: int, backend: str) -> Result:
    """Run a program and judge what it did; one that crashes, fails or hangs is a finding, its output kept.

    Raises what :func:`quiesce.simulator.runtime.launch.prepare` raises.
    """
    command = replace_words(program.command, built.places)
    environment = {**built.environment, **replace_in_values(program.environment, built.places)}
    result = Result(f"{TOPIC}/{program.name}", "", "", backend, Verdict.PASSED)
    if program.simulated is None:
        result = replace(result, findings=tuple(_run(command, environment, program.watchdog_seconds)))
    else:
        options = {} if program.capacity_bytes is None else {"capacity": program.capacity_bytes}
        settings = MachineSettings(program.simulated, program.schedule, seed, options)
        with prepare(command, program.simulated, environment) as prepared:
            ended = tuple(_run(command, prepared.environment(settings), program.watchdog_seconds))
            result = _judged(result, prepared, program.simulated, program.at_exit)
            result = replace(result, findings=ended + result.findings)
    return replace(result, verdict=Verdict.FAILED) if result.findings else result


def _judged(result: Result, prepared: Prepared, simulated: Simulated, at_exit: AtExit) -> Result:
    """Return the result with what the ledgers of a program's processes say; inconclusive where nothing was tested."""
    conditions = JudgeConditions(at_exit, simulated, prepared.loads())
    processes = [judge_process(path, conditions) for path in prepared.ledgers()]
    notes = [note for each in processes for note in (*each.notes, *each.held)]
    if all(each.untested for each in processes):
        why = (processes or [judge_silent(simulated, conditions)])[0].untested
        notes = [f"nothing was tested: {why.reason if why else ''}", *notes]
        result = replace(result, verdict=Verdict.INCONCLUSIVE)
    findings = tuple(finding for each in processes for finding in each.findings)
    operations = sum(each.calls for each in processes)
    return replace(result, reason="; ".join(notes), findings=findings, operations=operations)


def _run(command: Sequence[str], environment: Mapping[str, str], seconds: float) -> Iterator[Finding]:
    """Run a command; yield what its end broke, with the last of what it wrote."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(  # noqa: S603 - a list, no shell
            list(command),
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=sys.platform != "win32",
        )
        try:
            status: int | None = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            _end(process)
        if status != 0:
            written = _tail(output.fileno())
            if status is None:
                expected = f"an end within {seconds:g} s"
                yield Finding(ENDS, expected, "none; it was killed", kind=Kind.HANG, evidence=written)
            else:
                kind = Kind.FAILED_PROGRAM if status > 0 else Kind.CRASH
                yield Finding(SUCCEEDS, "exit status 0", _ended(status), kind=kind, evidence=written)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the program with what it started, which may outlive it."""
    if sys.platform == "win32":
        process.kill()
    else:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _ended(status: int) -> str:
    return f"exit status {status}" if status > 0 else f"killed by {signal.Signals(-status).name}"


def _tail(descriptor: int) -> str:
    size = os.fstat(descriptor).st_size
    os.lseek(descriptor, max(0, size - _EVIDENCE_BYTES), os.SEEK_SET)
    return os.read(descriptor, _EVIDENCE_BYTES).decode(errors="replace")
