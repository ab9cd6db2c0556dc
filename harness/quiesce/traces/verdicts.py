"""From what was found out about each process of a program to the results of its run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from quiesce.findings import Finding
from quiesce.program_run import ProgramRun
from quiesce.results import Result, Verdict
from quiesce.simulator.flavours import Simulated
from quiesce.traces.tested import Untested


@dataclass(frozen=True, slots=True)
class Process:
    """One process that called the runtime. ``untested`` says why nothing of it was tested, None where something was.

    ``unchecked`` says why nobody knows whether it leaked, empty where that is known.
    """

    findings: tuple[Finding, ...]
    calls: int
    untested: Untested | None
    program: ProgramRun | None = None
    """What a report shows of it, where one is asked for."""
    unchecked: str = ""
    not_checked: tuple[str, ...] = ()
    """What a pass of it does not cover."""
    simulated: Simulated | None = None
    """What it ran on; None where that is not known."""
    causes: str = ""
    """What it asked for in vain, which may be why the program failed; empty where there is nothing."""


def names_of(command: str, count: int) -> list[str]:
    """Return the names of the processes, in the order of their numbers, which are not told: they differ."""
    return [command] if count == 1 else [f"{command} (process {number})" for number in range(1, count + 1)]


def results_of(
    processes: Sequence[Process], simulated: Simulated, command: str, end: str, reproduce: str = ""
) -> list[Result]:
    """Return a result for each process, in their order; ``reproduce`` is a command that runs the program again.

    ``end`` says why the whole run has no verdict, empty where it has one: by its exit status the program was cut short,
    or a failure that was asked for never happened. A process that was refused a device leaves the run without a
    verdict, as does one that held something at an end that nobody saw. One that used no device by itself, such as a
    helper, does so only where no other process used one.
    """
    is_tested = any(process.untested is None for process in processes)
    names = names_of(command, len(processes))
    return [
        replace(_result(process, simulated, name, end, is_tested=is_tested), reproduce=reproduce)
        for process, name in zip(processes, names, strict=True)
    ]


def _result(process: Process, simulated: Simulated, name: str, end: str, *, is_tested: bool) -> Result:
    what = "this process tested nothing" if is_tested else "nothing was tested"
    why = "" if process.untested is None else f"{what}: {process.untested.reason}"
    causes = process.causes if end and process.untested is None else ""
    reasons = [*filter(None, (end, causes, why, process.unchecked))]
    verdict = Verdict.FAILED if process.findings else Verdict.INCONCLUSIVE if reasons else Verdict.PASSED
    matters = process.untested is not None and (process.untested.refused or not is_tested)
    return Result(
        case=name,
        title="",
        path="",
        backend=str(process.simulated or simulated),
        verdict=verdict,
        reason="" if process.findings else "; ".join(reasons),
        findings=process.findings,
        operations=process.calls,
        not_checked=process.not_checked,
        program=process.program,
        must_conclude=verdict is Verdict.INCONCLUSIVE and (bool(end) or bool(process.unchecked) or matters),
    )
