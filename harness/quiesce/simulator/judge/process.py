"""The door of the judge: what the process that left a ledger did, as findings and as reasons to doubt a pass.

``quiesce exec`` and the programs of subjects come in here with each process that has ended. The fixture
``simulated_device`` asks about one that still runs: :mod:`quiesce.simulator.judge.watching` reads the same logs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from quiesce.model.findings import Finding
from quiesce.model.outcomes import Flavour
from quiesce.model.program_run import Conditions, OutOfMemory, ProgramRun
from quiesce.model.results import Result, Verdict
from quiesce.simulator.judge.conditions import ApiErrors, AtExit
from quiesce.simulator.judge.failed_calls import NO_FAILURES, Failures, failures_of, last_refusal, unsurvived
from quiesce.simulator.judge.judgement import Judgement, judge
from quiesce.simulator.judge.logs import Logs, open_logs
from quiesce.simulator.judge.memory_use import MemoryRecorder
from quiesce.simulator.judge.pools_in_use import pools_of
from quiesce.simulator.judge.program import describe_program, nothing_observed
from quiesce.simulator.judge.sharing import NOT_CHECKED, Sharing, joined_processes
from quiesce.simulator.judge.tested import Untested, Use, causes_of, never_called, untested, untested_beside, use_of
from quiesce.simulator.judge.unchecked import (
    Met,
    kernels_uncomputed,
    kernels_unfinished,
    leaks_unchecked,
    left_out_for_room,
    met_in,
)
from quiesce.simulator.runtime import (
    FailureLog,
    Load,
    RefusalKind,
    Simulated,
    read_failures,
    read_refusals,
    read_uncomputed,
)

if TYPE_CHECKING:
    from quiesce.simulator.judge.known_errors import KnownError


@dataclass(frozen=True, slots=True)
class JudgeConditions:
    """How the processes of a run are judged, and what is known of the run: as little as nothing.

    ``simulated`` is the flavour that the user asked for, None where each process took what it needs. ``loads`` is what
    the dynamic loader did in all processes, ``running`` are those that had not ended when the program had. ``failed``
    says that the program's exit status tells of a failure, ``crash`` names the signal by which it crashed: it may be a
    process that was refused something. ``known_errors`` are errors of calls that the user expects. ``words`` are the
    program with its arguments, ``environment`` is what it began with, and ``pools`` says whether packages could keep
    freed memory in pools of their own. ``is_small`` says that the run chose how much memory its devices have, so that
    lack of it was asked for. ``report`` is how a report says that the program was run, None where there is none.
    """

    at_exit: AtExit = AtExit.LOST
    simulated: Simulated | None = None
    loads: Sequence[Load] = ()
    running: frozenset[int] = frozenset()
    failed: bool = False
    crash: str = ""
    api_errors: ApiErrors = ApiErrors.TELL
    known_errors: Sequence[KnownError] = ()
    words: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    pools: bool = True
    is_small: bool = False
    report: Conditions | None = None


@dataclass(frozen=True, slots=True)
class Process:
    """One process of a run, judged. ``untested`` says why nothing of it was tested, None where something was.

    ``program`` is what a report shows of it. ``unchecked`` says why a pass of it is none, ``not_checked`` what it does
    not cover, and ``causes`` what it asked for in vain, which may be why the program failed. ``notes`` are no findings:
    what was not simulated, what was not judged; those ``beside`` are about other runtimes, pools of packages and a full
    disk. ``held`` is what it held at its end that is no leak. ``met`` counts the calls that ``--fail`` can name.
    ``has_crashed`` says that a signal ended it after a call that the run let fail, and ``left_kernels_out`` that it
    launched CUDA kernels that did not compute.
    """

    findings: tuple[Finding, ...]
    calls: int
    untested: Untested | None
    program: ProgramRun | None = None
    unchecked: str = ""
    not_checked: tuple[str, ...] = ()
    simulated: Simulated | None = None
    causes: str = ""
    notes: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    out_of_memory: OutOfMemory | None = None
    failures: Failures = NO_FAILURES
    met: Met = field(default_factory=dict)
    has_crashed: bool = False
    left_kernels_out: bool = False


def judge_process(path: Path, conditions: JudgeConditions = JudgeConditions()) -> Process:
    """Judge the process that left its ledger at ``path``, and its other logs next to it.

    Raises :class:`DamagedFile` for a log that no process can have written.
    """
    with open_logs(path) as logs, joined_processes(path) as sharing:
        ledger, stacks = logs.ledger, logs.stacks
        simulated = conditions.simulated or Simulated(ledger.flavour, ledger.version)
        memory = MemoryRecorder(ledger.lost, ledger.observations) if conditions.report else None
        judgement = judge(ledger, conditions.at_exit, stacks, memory, logs.accesses, logs.touched, logs.code)
        judgement = judgement if sharing is None else _joined(judgement, sharing)
        log = read_failures(path)
        failures = failures_of(log, stacks, conditions.known_errors)
        crash = _crash(logs, log, conditions)
        unnoticed = failures.findings() if conditions.api_errors is ApiErrors.FINDING else ()
        judgement = replace(judgement, findings=(*judgement.findings, *unnoticed, *crash))
        use = use_of(ledger, path, conditions.loads)
        why = untested(use, simulated, failed=conditions.failed)
        around = untested_beside(use, simulated) if why is None else (why.reason,) if judgement.findings else ()
        room = left_out_for_room(ledger, path.parent.parent)
        passes = why is None and not judgement.findings
        off, hidden = _pools(logs, conditions, passes=passes)
        beside = (*around, *((room,) if room and judgement.findings else ()), *off, *hidden)
        not_checked = (*judgement.not_checked, *hidden)
        program = None
        if conditions.report is not None and memory is not None:
            told = replace(judgement, notes=(*judgement.notes, *beside))
            ran = replace(conditions.report, flavour=str(simulated), devices=ledger.devices)
            ran = replace(ran, capacity_bytes=ledger.capacity_bytes)
            program = describe_program(ledger, stacks, told, memory, ran, failures.told, logs.accesses)
        return Process(
            judgement.findings,
            ledger.observations,
            why,
            program,
            _unchecked(path, logs, judgement, failures, room, conditions),
            not_checked,
            simulated,
            causes_of(use, simulated),
            judgement.notes,
            beside,
            judgement.held,
            judgement.out_of_memory,
            failures,
            met_in(ledger),
            bool(crash),
            simulated.flavour is Flavour.CUDA and ledger.launches > ledger.computed,
        )


def _joined(judgement: Judgement, sharing: Sharing) -> Judgement:
    """Add what follows from the ledgers of the processes that this one shares memory with."""
    races = sharing.races()
    return replace(
        judgement,
        findings=(*sharing.told(judgement.findings), *races),
        not_checked=(*judgement.not_checked, NOT_CHECKED),
        unjudged=(*judgement.unjudged, *filter(None, [sharing.unjudged])),
    )


def _crash(logs: Logs, failures: FailureLog, conditions: JudgeConditions) -> tuple[Finding, ...]:
    """Return the finding about a crash of this process after a call that the run let fail, if there was one."""
    if not conditions.crash or logs.ledger.exited:
        return ()
    refused = last_refusal(failures, is_small=conditions.is_small)
    return () if refused is None else (unsurvived(refused, logs.stacks, conditions.crash),)


def _pools(logs: Logs, conditions: JudgeConditions, *, passes: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return which pools of packages were switched off, and for a pass those in which a use after free is not seen."""
    if conditions.pools and not passes:
        return (), ()
    pools = pools_of(logs.ledger, logs.stacks, conditions.environment, conditions.words, kept=conditions.pools)
    off = f"--no-pools: {' and '.join(pools.off)} freed each block at once"
    return (off,) if pools.off and not conditions.pools else (), pools.in_use if passes else ()


def _unchecked(
    path: Path, logs: Logs, judgement: Judgement, failures: Failures, room: str, conditions: JudgeConditions
) -> str:
    """Return why a process without findings has no verdict, empty where it has one."""
    ledger, kernels = logs.ledger, read_uncomputed(path)
    leaks = leaks_unchecked(ledger, conditions.at_exit, is_running=ledger.process in conditions.running)
    errors = failures.unchecked() if conditions.api_errors is ApiErrors.INCONCLUSIVE else ""
    of_kernels = (kernels_uncomputed(kernels), kernels_unfinished(kernels))
    return "; ".join(filter(None, (room, leaks, *judgement.unjudged, *of_kernels, errors)))


def judge_refused(
    ledgers: Iterable[Path], simulated: Simulated, conditions: JudgeConditions, *, alone: bool
) -> list[Process]:
    """Judge processes that were refused all that they asked for; their ``ledgers`` would lie there.

    One that only looked for a function or a compiler in vain counts where no process got a device (``alone``): that may
    be why.
    """
    in_vain = {RefusalKind.MISSING, RefusalKind.NOT_INSTALLED}
    found = map(read_refusals, ledgers)
    told = [each for each in found if alone or any(refusal.kind not in in_vain for refusal in each)]
    why = [untested(Use(each), simulated, failed=conditions.failed) for each in told]
    return [Process((), 0, each, _unobserved(conditions)) for each in why]


def judge_silent(simulated: Simulated, conditions: JudgeConditions) -> Process:
    """Judge a program that never called the simulated runtime."""
    running = bool(conditions.running)
    why = never_called(conditions.loads, simulated, outlived=running, failed=conditions.failed)
    return Process((), 0, why, _unobserved(conditions))


def _unobserved(conditions: JudgeConditions) -> ProgramRun | None:
    return None if conditions.report is None else nothing_observed(conditions.report)


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
