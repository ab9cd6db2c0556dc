"""What the command line tells its caller by its exit code."""

from __future__ import annotations

import enum
from collections.abc import Iterable

from quiesce.reporting.counts import executed_count
from quiesce.results import Result


class ExitCode(enum.IntEnum):
    """0 to 3 are quiesce's own; the two above follow the shell's 128 + signal number."""

    NOTHING_FOUND = 0
    FINDINGS = 1
    COULD_NOT_RUN = 2
    OWN_ERROR = 3
    INTERRUPTED = 130
    OUTPUT_CLOSED = 141


def exit_code(results: Iterable[Result], *, incomplete: bool) -> ExitCode:
    """Return 1 for a failure, else 2 where nothing was executed or the results are ``incomplete``, else 0."""
    kept = list(results)
    if any(result.verdict.is_failure for result in kept):
        return ExitCode.FINDINGS
    if incomplete or executed_count(kept) == 0:
        return ExitCode.COULD_NOT_RUN
    return ExitCode.NOTHING_FOUND
