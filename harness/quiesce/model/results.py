"""Results: what came of running one case, sequence or test; the values that reports are written from."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Final

from quiesce.model.findings import Finding
from quiesce.model.program_run import ProgramRun

FOUND_BY: Final = "found by "
"""What the origin of a generated case begins with: that is a command, and no number of a report."""
LEAK_CHECK: Final = "leak-check"
"""The backend that results of leak checks name: they are about a test, and not about an allocator."""


class Verdict(enum.StrEnum):
    """What came of it. *Unsupported* and *not promised* are neither pass nor failure."""

    PASSED = "passed"
    FAILED = "failed"
    BROKEN_CASE = "broken case"
    UNSUPPORTED = "unsupported"
    NOT_PROMISED = "not promised"
    KNOWN_UPSTREAM = "known upstream"
    INCONCLUSIVE = "inconclusive"

    @property
    def executed(self) -> bool:
        """Whether operations ran, so that the result says something about the backend."""
        return self not in (Verdict.UNSUPPORTED, Verdict.NOT_PROMISED)

    @property
    def is_failure(self) -> bool:
        """Whether the result makes the run fail."""
        return self in (Verdict.FAILED, Verdict.BROKEN_CASE)


@dataclass(frozen=True, slots=True)
class Sample:
    """The gauges behind one operation, for a timeline; a gauge that nobody reads is None. Bytes."""

    operation_index: int
    request: str
    outcome: str
    line: int | None
    live_bytes: int | None
    reserved_bytes: int | None
    pinned_bytes: int | None


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one case on one backend.

    ``reason`` says why it is unsupported, not promised, broken or inconclusive. ``operations`` counts those
    performed and ``skipped`` those left out because their slot was never made. ``reproduce`` is a command line.
    ``attempt`` counts from 1: a test that failed may have been run again. ``must_conclude`` says that the run has no
    verdict where this result is inconclusive; others may be so without harm. ``caught`` names the fault that the case
    found on the reference in the same run. ``rounds`` is how often a leak check repeated its test. ``not_checked``
    says what a pass does not cover. ``program`` is what is known beyond that of a process on the simulated runtime.
    """

    case: str
    title: str
    path: str
    backend: str
    verdict: Verdict
    reason: str = ""
    findings: tuple[Finding, ...] = ()
    operations: int = 0
    skipped: int = 0
    upstream: tuple[str, ...] = ()
    reproduce: str = ""
    attempt: int = 1
    must_conclude: bool = False
    caught: str = ""
    rounds: int = 0
    not_checked: tuple[str, ...] = ()
    timeline: tuple[Sample, ...] = field(default=(), repr=False)
    program: ProgramRun | None = field(default=None, repr=False)

    @property
    def is_leak_check(self) -> bool:
        """Whether it is the leak check of a test, and not a case on a backend."""
        return self.backend == LEAK_CHECK

    @property
    def is_unresolved(self) -> bool:
        """Whether the result leaves its run without a verdict."""
        return self.must_conclude and self.verdict is Verdict.INCONCLUSIVE


@dataclass(frozen=True, slots=True)
class Report:
    """All results of one run, ordered by backend and case. ``run`` holds what may differ between two equal runs."""

    seed: int
    results: tuple[Result, ...]
    run: dict[str, str] = field(default_factory=dict)
