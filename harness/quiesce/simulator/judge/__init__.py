"""Judges the ledgers of programs, and the reports of native leak checkers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quiesce.doors import lazy_names

if TYPE_CHECKING:
    from quiesce.simulator.judge.call_stacks import scripts_of as scripts_of
    from quiesce.simulator.judge.conditions import ApiErrors as ApiErrors
    from quiesce.simulator.judge.conditions import AtExit as AtExit
    from quiesce.simulator.judge.failed_calls import needless as needless
    from quiesce.simulator.judge.known_errors import KnownError as KnownError
    from quiesce.simulator.judge.known_errors import read_known_errors as read_known_errors
    from quiesce.simulator.judge.memory_use import lines_of as lines_of
    from quiesce.simulator.judge.process import JudgeConditions as JudgeConditions
    from quiesce.simulator.judge.process import Process as Process
    from quiesce.simulator.judge.process import judge_process as judge_process
    from quiesce.simulator.judge.process import judge_refused as judge_refused
    from quiesce.simulator.judge.process import judge_silent as judge_silent
    from quiesce.simulator.judge.process import names_of as names_of
    from quiesce.simulator.judge.process import results_of as results_of
    from quiesce.simulator.judge.quoting import with_allocation_quoted as with_allocation_quoted
    from quiesce.simulator.judge.unchecked import never_happened as never_happened
    from quiesce.simulator.judge.unchecked import outlived as outlived
    from quiesce.simulator.judge.watching import Between as Between
    from quiesce.simulator.judge.watching import RemoteWatch as RemoteWatch
    from quiesce.simulator.judge.watching import Watch as Watch
else:  # type checkers refuse a name that is not above
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "call_stacks": "scripts_of",
            "conditions": "ApiErrors AtExit",
            "failed_calls": "needless",
            "known_errors": "KnownError read_known_errors",
            "memory_use": "lines_of",
            "process": "JudgeConditions Process judge_process judge_refused judge_silent names_of results_of",
            "quoting": "with_allocation_quoted",
            "unchecked": "never_happened outlived",
            "watching": "Between RemoteWatch Watch",
        },
    )
