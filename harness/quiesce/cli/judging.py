"""Judges what each process of a program left behind, and says on standard error what is no finding.

What a program says of itself by how it ended is said here, too.
"""

from __future__ import annotations

import argparse
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

from quiesce.cli.console import Console
from quiesce.cli.exec_conditions import conditions_of, environment_of, reproduce_command, simulated_by
from quiesce.model import wording
from quiesce.model.findings import Finding
from quiesce.model.results import Result, Verdict
from quiesce.model.wording import counted
from quiesce.reporting.pytest_handover import Session
from quiesce.reporting.text import clean, clean_line
from quiesce.simulator.judge.failed_calls import ApiErrors, Failures, failures_of, last_refusal, needless, unsurvived
from quiesce.simulator.judge.judgement import Judgement, judge
from quiesce.simulator.judge.memory_use import MemoryRecorder, lines_of
from quiesce.simulator.judge.pools_in_use import pools_of
from quiesce.simulator.judge.program import describe_program, nothing_observed
from quiesce.simulator.judge.unchecked import (
    kernels_uncomputed,
    kernels_unfinished,
    leaks_unchecked,
    left_out_for_room,
    met_in,
    never_happened,
    outlived,
)
from quiesce.simulator.judge.verdicts import (
    Process,
    Use,
    causes_of,
    names_of,
    never_called,
    results_of,
    untested,
    untested_beside,
    use_of,
)
from quiesce.simulator.runtime.device_code import DeviceCode
from quiesce.simulator.runtime.failed_calls import (
    FailureLog,
    LoggedFailure,
    Refusal,
    RefusalKind,
    read_failures,
    read_refusals,
)
from quiesce.simulator.runtime.kernel_logs import read_accesses, read_uncomputed, touched_beside
from quiesce.simulator.runtime.launch import Ended, process_of
from quiesce.simulator.runtime.ledger import Ledger, open_ledger
from quiesce.simulator.runtime.loads import Loaded
from quiesce.simulator.runtime.stacks import CallStacks, open_stacks

if TYPE_CHECKING:
    from quiesce.simulator.judge.known_errors import KnownError


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


def judge_processes(
    ended: Ended,
    arguments: argparse.Namespace,
    defaults: argparse.Namespace,
    end: str,
    console: Console,
    known: Sequence[KnownError] = (),
) -> list[Result]:
    """Return a result for each process that called the runtime; where none did, one for the program.

    ``defaults`` are the command's options where none is given. ``end`` is what the program says of itself by its exit
    status, empty where all is well. ``known`` are errors of calls that the user expects.
    """
    simulated = simulated_by(arguments)
    command = wording.join(arguments.words)
    refusals = _refusals_without_ledger(ended)
    names = names_of(command, len(ended.ledgers) + len(refusals))
    logs = {path: read_failures(path) for path in ended.ledgers}
    crashed = _crashed(ended, logs, arguments)
    processes: list[Process] = []
    needed: frozenset[KnownError] = frozenset()
    for path, name in zip(ended.ledgers, names, strict=False):
        with open_stacks(path) as stacks:
            failures = failures_of(logs[path], stacks, known)
            crash = unsurvived(crashed[1], stacks, crash_of(ended.status)) if crashed and crashed[0] == path else None
        needed |= failures.known
        processes.append(_judged(path, name, ended, arguments, console, failures, crash, failed=bool(end)))
    for note in needless(known, needed):
        console.complain(note)
    unobserved = nothing_observed(conditions_of(arguments)) if arguments.report else None
    refused = [untested(Use(each), simulated, failed=bool(end)) for each in refusals]
    processes += [Process((), 0, why, unobserved) for why in refused]
    if not processes:
        if not end:
            console.complain("the program never called the simulated runtime: nothing was judged")
        why = never_called(ended.loads, simulated, outlived=bool(ended.running), failed=bool(end))
        processes = [Process((), 0, why, unobserved)]
    end = "; ".join(filter(None, (end, *_failures_missed(ended, arguments), _outlived(ended, console))))
    results = results_of(processes, simulated, command, end, reproduce_command(arguments, defaults))
    for result in results:
        if result.verdict is Verdict.INCONCLUSIVE and not result.must_conclude:
            console.complain(f"{clean_line(result.case)}: {clean_line(result.reason)}")
    return results


def _refusals_without_ledger(ended: Ended) -> list[tuple[Refusal, ...]]:
    """Return what processes were refused that got no device at all.

    One that only looked for a function or a compiler in vain counts where no process got a device: that may be why.
    """
    in_vain = {RefusalKind.MISSING, RefusalKind.NOT_INSTALLED}
    found = [read_refusals(path) for path in ended.refused]
    told = [each for each in found if any(refusal.kind not in in_vain for refusal in each)]
    return told if ended.ledgers else found


def _outlived(ended: Ended, console: Console) -> str:
    """Return which processes that can use a GPU went on after the program, and tell of the others."""
    program = next((load.path for load in ended.loads if load.kind is Loaded.STARTED), None)
    told = outlived(ended.survivors, {*map(process_of, ended.ledgers)} & ended.running, program)
    for each in ended.survivors:
        if not each.has_runtime and each.program != program:
            console.complain(f"{clean_line(each.name)} was still running when the program had ended")
    return told


def kernels_were_left_out(ended: Ended, arguments: argparse.Namespace) -> bool:
    """Say whether a process launched CUDA kernels that did not compute."""
    for path in ended.ledgers:
        with open_ledger(path) as ledger:
            is_cuda = str(simulated_by(arguments, ledger)).startswith("cuda")
            if is_cuda and ledger.launches > ledger.computed:
                return True
    return False


def _crashed(
    ended: Ended, logs: Mapping[Path, FailureLog], arguments: argparse.Namespace
) -> tuple[Path, LoggedFailure] | None:
    """Return the process that crashed after a call that the run let fail, and the call; None where none did."""
    if not crash_of(ended.status):
        return None
    is_small = arguments.capacity is not None
    refused = [(path, call) for path, log in logs.items() if (call := last_refusal(log, is_small=is_small))]
    return next((each for each in refused if not _has_exited(each[0])), None)


def _has_exited(path: Path) -> bool:
    with open_ledger(path) as ledger:
        return ledger.exited


def _failures_missed(ended: Ended, arguments: argparse.Namespace) -> Iterator[str]:
    with ExitStack() as opened:
        processes = [met_in(opened.enter_context(open_ledger(path))) for path in ended.ledgers]
    return never_happened(arguments.fail, processes) if processes else iter(())


def _judged(
    path: Path,
    name: str,
    ended: Ended,
    arguments: argparse.Namespace,
    console: Console,
    failures: Failures,
    crash: Finding | None,
    *,
    failed: bool,
) -> Process:
    with open_ledger(path) as ledger, open_stacks(path) as stacks:
        simulated = simulated_by(arguments, ledger)
        memory = MemoryRecorder(ledger.lost, ledger.observations) if arguments.report else None
        accesses = partial(read_accesses, path)
        judgement = judge(ledger, arguments.at_exit, stacks, memory, accesses, touched_beside(path), DeviceCode(path))
        unnoticed = failures.findings() if arguments.api_errors == ApiErrors.FINDING else ()
        judgement = replace(judgement, findings=(*judgement.findings, *unnoticed, *([crash] if crash else [])))
        use = use_of(ledger, path, ended.loads)
        why = untested(use, simulated, failed=failed)
        beside = untested_beside(use, simulated) if why is None else (why.reason,) if judgement.findings else ()
        room = left_out_for_room(ledger, path.parent.parent)
        missing = [room] if room and judgement.findings else []
        judgement = replace(judgement, notes=(*judgement.notes, *beside, *missing))
        passes = why is None and not judgement.findings
        if passes or not arguments.pools:
            judgement = _with_pools(judgement, ledger, stacks, arguments, passes=passes)
        console.complain(f"{clean_line(name)}: {counted(ledger.observations, 'call')} recorded on {simulated}")
        for note in (*judgement.notes, *failures.lines(), *judgement.held):
            console.complain(f"  {clean_line(note)}")
        for line in lines_of(judgement.out_of_memory) if judgement.out_of_memory else ():
            console.complain(f"  {clean(line)}")
        program, conditions = None, conditions_of(arguments, ledger)
        if memory is not None:
            program = describe_program(ledger, stacks, judgement, memory, conditions, failures.told, accesses)
        leaks = leaks_unchecked(ledger, arguments.at_exit, is_running=ledger.process in ended.running)
        kernels = read_uncomputed(path)
        of_kernels = (kernels_uncomputed(kernels), kernels_unfinished(kernels))
        errors = failures.unchecked() if arguments.api_errors == ApiErrors.INCONCLUSIVE else ""
        unchecked = (room, leaks, *judgement.unjudged, *of_kernels, errors)
        return Process(
            judgement.findings,
            ledger.observations,
            why,
            program,
            "; ".join(filter(None, unchecked)),
            judgement.not_checked,
            simulated,
            causes_of(use, simulated),
        )


def _with_pools(
    judgement: Judgement, ledger: Ledger, stacks: CallStacks | None, arguments: argparse.Namespace, *, passes: bool
) -> Judgement:
    """Add which pools of packages were switched off, and to a pass in which others a use after free is not seen."""
    pools = pools_of(ledger, stacks, environment_of(arguments), arguments.words, kept=arguments.pools)
    off = f"--no-pools: {' and '.join(pools.off)} freed each block at once"
    notes = (*judgement.notes, *((off,) if pools.off and not arguments.pools else ()))
    hidden = pools.in_use if passes else ()
    return replace(judgement, notes=(*notes, *hidden), not_checked=(*judgement.not_checked, *hidden))
