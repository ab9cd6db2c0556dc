"""Repetition: an error in the wire protocol is one fault of a driver, in however many cases it shows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from quiesce.amounts import counted
from quiesce.contract import IN_PROTOCOL
from quiesce.reporting.text import clean_line, failure_text
from quiesce.results import Result

NAMES_MAX: Final = 5
"""How many of the others are named; the report holds all of them."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failing result that is shown, and those of the same backend that would say the same again."""

    result: Result
    alike: tuple[Result, ...] = ()

    def text(self) -> str:
        """Return the result's failure, with a line that counts the others."""
        text = failure_text(self.result)
        if not self.alike:
            return text
        names = ", ".join(clean_line(each.case) for each in self.alike[:NAMES_MAX])
        more = f" and {len(self.alike) - NAMES_MAX} more" if len(self.alike) > NAMES_MAX else ""
        also = f"  also in:   {counted(len(self.alike), 'other case')} of this driver program: {names}{more}"
        return f"{text}\n{also}"


def told_once(results: Iterable[Result]) -> tuple[Failure, ...]:
    """Return what failed or is unresolved in its order, errors in the protocol once for each backend."""
    shown: dict[str, list[Result]] = {}
    failing = [result for result in results if result.verdict.is_failure or result.is_unresolved]
    for result in failing:
        if is_in_protocol(result):
            shown.setdefault(result.backend, []).append(result)
    return tuple(
        Failure(result, tuple(shown[result.backend][1:]) if is_in_protocol(result) else ())
        for result in failing
        if not is_in_protocol(result) or result is shown[result.backend][0]
    )


def is_in_protocol(result: Result) -> bool:
    """Whether a driver broke the wire protocol, rather than what it drives a rule."""
    return any(finding.rule == IN_PROTOCOL for finding in result.findings)
