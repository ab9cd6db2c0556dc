"""What a report shows of a process beyond its findings, made of its ledger when it has been judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quiesce.program_run import Conditions, FailedCalls, Holdings, ProgramRun
from quiesce.simulator.access_log import LoggedAccess
from quiesce.simulator.ledger import Ledger
from quiesce.simulator.stacks import CallStacks
from quiesce.traces.holdings import holdings_of
from quiesce.traces.judgement import Judgement
from quiesce.traces.memory_history import MemoryRecorder
from quiesce.traces.origins import Origins
from quiesce.traces.surroundings import surroundings_of


def describe_program(
    ledger: Ledger,
    stacks: CallStacks | None,
    judgement: Judgement,
    memory: MemoryRecorder,
    conditions: Conditions,
    failed_calls: FailedCalls,
    accesses: Callable[[], Sequence[LoggedAccess]] = tuple,
) -> ProgramRun:
    """Return what one process did. ``memory`` has taken the records that the judgement is about.

    ``accesses`` returns the log of kernels' wrong accesses.
    """
    live = list(ledger.live())
    return ProgramRun(
        conditions=conditions,
        first_call=ledger.lost,
        launches=ledger.launches,
        findings_left_out=judgement.left_out,
        notes=judgement.notes,
        memory=memory.history(live),
        surroundings=surroundings_of(judgement.findings, ledger),
        holdings=holdings_of(live, Origins(stacks, accesses=accesses), at_exit=ledger.exited),
        out_of_memory=judgement.out_of_memory,
        failed_calls=failed_calls,
    )


def nothing_observed(conditions: Conditions) -> ProgramRun:
    """Return what is known of a process that never called the runtime: how it was run."""
    return ProgramRun(
        conditions=conditions,
        first_call=0,
        launches=0,
        findings_left_out=(),
        notes=(),
        memory=MemoryRecorder(0, 0).history(()),
        surroundings=(),
        holdings=Holdings((), 0, 0, at_exit=True),
    )
