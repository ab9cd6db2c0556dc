"""The tests that pytest ran in a program, where the plugin found something or has no verdict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from quiesce.reporting.program_page.findings import FindingCard, make_findings
from quiesce.reporting.text import clean_line
from quiesce.results import Result, Verdict

_SHOWN: Final = frozenset({Verdict.FAILED, Verdict.BROKEN_CASE, Verdict.INCONCLUSIVE})


@dataclass(frozen=True, slots=True)
class JudgedTest:
    """One test. ``reproduce`` is the command that runs it alone."""

    anchor: str
    name: str
    verdict: Verdict
    reason: str
    findings: tuple[FindingCard, ...]
    reproduce: str


def make_tests(results: Iterable[Result]) -> tuple[JudgedTest, ...]:
    """Return the tests among ``results`` that a reader has to look at, in their order."""
    shown = [result for result in results if result.program is None and result.verdict in _SHOWN]
    return tuple(
        JudgedTest(
            anchor=f"t{number}",
            name=clean_line(result.case),
            verdict=result.verdict,
            reason=clean_line(result.reason),
            findings=make_findings(result, f"t{number}-"),
            reproduce=clean_line(result.reproduce),
        )
        for number, result in enumerate(shown, 1)
    )
