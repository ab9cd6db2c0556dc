"""Judges what each process of a program left behind, and says on standard error what is no finding.

What a program says of itself by how it ended is said here, too.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

from quiesce.cli.console import Console
from quiesce.cli.exec_options import ExecOptions
from quiesce.model import wording
from quiesce.model.results import Result, Verdict
from quiesce.model.wording import counted
from quiesce.reporting import Session, clean, clean_line
from quiesce.simulator.judge import (
    JudgeConditions,
    Process,
    judge_process,
    judge_refused,
    judge_silent,
    lines_of,
    names_of,
    needless,
    never_happened,
    outlived,
    results_of,
)
from quiesce.simulator.runtime import Ended, Loaded, RefusalKind, process_of, read_refusals

if TYPE_CHECKING:
    from quiesce.simulator.judge import KnownError

NAMES_MAX: Final = 5
"""So many tests that failed by themselves are named; pytest named all of them."""
_PYTEST: Final = frozenset({"pytest", "py.test"})
_TESTS_FAILED: Final = 1
_NO_TESTS_COLLECTED: Final = 5
"""``pytest.ExitCode``."""
_SHELLS: Final = 128
_CRASHES: Final = frozenset(
    {signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV, signal.SIGTRAP}
)
"""Signals that a program brings about itself, rather than somebody outside."""


def end_of(status: int, words: Sequence[str], sessions: Sequence[Session] = ()) -> str:
    """Return what a program says by its exit status, or the signal that ended it; empty where all is well.

    What such a program did may break no rule for having been cut short: that is no verdict on its memory. ``sessions``
    are the runs of pytest in it. Where all their failures are what quiesce found, the status says nothing beyond that.
    """
    if not status:
        return ""
    own = _own_failures(sessions)
    uncollected = _uncollected(sessions)
    if status == _TESTS_FAILED and _is_of_tests(sessions):
        return "; ".join(filter(None, (uncollected, own)))
    if status < 0:
        said = f"the program ended with {signal.Signals(-status).name}"
    else:
        has_no_test = status == _NO_TESTS_COLLECTED and (_is_pytest(words) or bool(sessions))
        said = f"the program ended with status {status}" + ": pytest ran no test" * has_no_test
    return "; ".join(filter(None, (said + f": {uncollected}" * bool(uncollected), own)))


def crash_of(status: int) -> str:
    """Return the signal by which a program crashed, empty where it did not; a shell's status has that of its child."""
    number = -status if status < 0 else status - _SHELLS
    return signal.Signals(number).name if number in _CRASHES else ""


def _is_of_tests(sessions: Iterable[Session]) -> bool:
    """Say whether failures of tests that are all known make up for a program's status 1."""
    kept = list(sessions)
    ends = {session.ended for session in kept}
    are_known = all(session.is_explained for session in kept)
    return are_known and _TESTS_FAILED in ends and ends <= {0, _TESTS_FAILED, _NO_TESTS_COLLECTED}


def _own_failures(sessions: Iterable[Session]) -> str:
    names = [name for session in sessions for name in session.own]
    if not names:
        return ""
    return f"{counted(len(names), 'test')} failed in the program itself: {_listed(names)}"


def _uncollected(sessions: Iterable[Session]) -> str:
    names = [name for session in sessions for name in session.uncollected]
    return f"pytest could not collect {_listed(names)}" if names else ""


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else ""
    return f"{', '.join(names[:NAMES_MAX])}{more}"


def _is_pytest(words: Sequence[str]) -> bool:
    """Say whether a command runs pytest, by itself or as a module of an interpreter."""
    before = zip(("", *words), words, strict=False)
    return any(PurePath(word).name in _PYTEST and (word == words[0] or last == "-m") for last, word in before)


@dataclass(frozen=True, slots=True)
class Judged:
    """What a run was found to have done: a result for each process that called the runtime, or one for the program."""

    results: list[Result]
    left_kernels_out: bool
    """Whether a process launched CUDA kernels that did not compute."""
    not_simulated: frozenset[str]
    """The functions that processes called and that are not simulated."""


def judge_processes(
    ended: Ended, options: ExecOptions, end: str, console: Console, known: Sequence[KnownError] = ()
) -> Judged:
    """Judge each process of a run, and tell what is no finding.

    ``end`` is what the program says of itself by its exit status, empty where all is well. ``known`` are errors of
    calls that the user expects.
    """
    simulated, command = options.simulated, wording.join(options.words)
    conditions = _conditions(ended, options, known, failed=bool(end))
    refused = judge_refused(ended.refused, simulated, conditions, alone=not ended.ledgers)
    processes: list[Process] = []
    for path, name in zip(ended.ledgers, names_of(command, len(ended.ledgers) + len(refused)), strict=False):
        process = judge_process(path, conditions)
        processes.append(process)
        _tell(process, name, console)
        if process.has_crashed:
            conditions = replace(conditions, crash="")  # one signal ends one process
    for note in needless(known, frozenset(entry for each in processes for entry in each.failures.known)):
        console.complain(note)
    met, left_out = [each.met for each in processes], any(each.left_kernels_out for each in processes)
    processes += refused
    if not processes:
        if not end:
            console.complain("the program never called the simulated runtime: nothing was judged")
        processes = [judge_silent(simulated, conditions)]
    missed = never_happened(options.fail, met) if met else ()
    end = "; ".join(filter(None, (end, *missed, _outlived(ended, console))))
    results = results_of(processes, simulated, command, end, options.again)
    for result in results:
        if result.verdict is Verdict.INCONCLUSIVE and not result.must_conclude:
            console.complain(f"{clean_line(result.case)}: {clean_line(result.reason)}")
    return Judged(results, left_out, _not_simulated(ended.ledgers))


def _not_simulated(ledgers: Sequence[Path]) -> frozenset[str]:
    """Return which functions of libraries processes called in vain."""
    refusals = (refusal for path in ledgers for refusal in read_refusals(path))
    return frozenset(refusal.function for refusal in refusals if refusal.kind is RefusalKind.NOT_SIMULATED)


def _conditions(ended: Ended, options: ExecOptions, known: Sequence[KnownError], *, failed: bool) -> JudgeConditions:
    return JudgeConditions(
        at_exit=options.at_exit,
        simulated=options.asked,
        loads=ended.loads,
        running=ended.running,
        failed=failed,
        crash=crash_of(ended.status),
        api_errors=options.api_errors,
        known_errors=known,
        words=options.words,
        environment=options.environment(),
        pools=options.pools,
        is_small=options.capacity is not None,
        report=options.conditions() if options.report else None,
    )


def _tell(process: Process, name: str, console: Console) -> None:
    console.complain(f"{clean_line(name)}: {counted(process.calls, 'call')} recorded on {process.simulated}")
    for note in (*process.notes, *process.beside, *process.failures.lines(), *process.held):
        console.complain(f"  {clean_line(note)}")
    for line in lines_of(process.out_of_memory) if process.out_of_memory else ():
        console.complain(f"  {clean(line)}")


def _outlived(ended: Ended, console: Console) -> str:
    """Return which processes that can use a GPU went on after the program, and tell of the others."""
    program = next((load.path for load in ended.loads if load.kind is Loaded.STARTED), None)
    told = outlived(ended.survivors, {*map(process_of, ended.ledgers)} & ended.running, program)
    for each in ended.survivors:
        if not each.has_runtime and each.program != program:
            console.complain(f"{clean_line(each.name)} was still running when the program had ended")
    return told
