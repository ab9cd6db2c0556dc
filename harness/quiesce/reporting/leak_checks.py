"""What leak checks of tests came to: a line for each test that leaks or has no verdict, and the counts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from quiesce.amounts import counted
from quiesce.findings import Finding
from quiesce.program_rules import RULES
from quiesce.reporting.text import clean_line
from quiesce.results import Result, Verdict

KEEPS_TO_ITS_PEAK: Final = "a_test_keeps_to_its_peak"
"""The rule that a test breaks which uses more memory at a time than its marker allows."""

NAMES_MAX: Final = 50
"""How many tests of each kind are named; the report has all of them."""

_GAUGE: Final = re.compile(r"\((.+)\)")
"""Whose memory it is, in a kind such as ``memory leak (Python)``."""


def leak_in_short(findings: Sequence[Finding]) -> str:
    """Return ``leaks 8,112 B/round (Python) at mylib/__init__.py:14`` for the first finding that has an amount."""
    found = next((each for each in findings if each.readings is not None), None)
    if found is None or found.readings is None:
        peak = next((each for each in findings if each.rule == KEEPS_TO_ITS_PEAK), None)
        if peak is not None:
            return clean_line(peak.observed)
        return "has a faulty kernel" if findings and all(each.rule in RULES for each in findings) else "leaks"
    per_round, unit = found.readings.per_round, clean_line(found.readings.unit)
    count = f"{per_round:,.0f}" if per_round >= 1 else f"{per_round:.2f}"
    if unit == "bytes":
        unit, gauge = "B", _GAUGE.search(found.kind)
        memory = f" ({clean_line(gauge[1])})" if gauge else ""
    else:
        unit, memory = unit.removesuffix("s") if count == "1" else unit, ""
    place = clean_line(found.allocated)
    return f"leaks {count} {unit}/round{memory}{f' at {place}' if place else ''}"


def leak_check_lines(results: Iterable[Result]) -> list[str]:
    """Return a line for each test that leaks, and one with its reason for each that has no verdict."""
    kept = [each for each in results if each.is_leak_check]
    leaking = [f"{clean_line(each.case)} {leak_in_short(each.findings)}" for each in kept if _leaks(each)]
    open_ = [
        f"{clean_line(each.case)} has no verdict: {clean_line(each.reason)}"
        for each in kept
        if each.verdict is Verdict.INCONCLUSIVE
    ]
    return [*shortened(leaking), *shortened(open_)]


def _leaks(result: Result) -> bool:
    return result.verdict is Verdict.FAILED and bool(result.findings) and not _is_faulty(result)


def _is_faulty(result: Result) -> bool:
    """Whether the findings are all about wrong accesses of kernels."""
    return all(finding.rule in RULES for finding in result.findings)


def _is_over_limit(result: Result) -> bool:
    """Whether the findings are about what the test uses at a time, and not about leaks."""
    rules = {finding.rule for finding in result.findings}
    return KEEPS_TO_ITS_PEAK in rules and not rules - {KEEPS_TO_ITS_PEAK, *RULES}


def shortened(lines: Sequence[str]) -> Iterator[str]:
    """Yield the first lines, and how many more there are."""
    yield from lines[:NAMES_MAX]
    if len(lines) > NAMES_MAX:
        yield f"and {len(lines) - NAMES_MAX:,} more"


def checks_in_short(checks: Sequence[Result]) -> str:
    """Return ``5 tests checked for leaks: 1 clean, 4 leak``."""
    checked = sum(each.verdict.executed for each in checks)
    accused = [each for each in checks if each.verdict is Verdict.FAILED and each.findings]
    faulty = sum(map(_is_faulty, accused))
    over = sum(map(_is_over_limit, accused))
    leaking = len(accused) - faulty - over
    counts = (
        (sum(each.verdict is Verdict.PASSED for each in checks), "clean", "clean"),
        (leaking, "leaks", "leak"),
        (over, "uses more memory than its limit", "use more memory than their limit"),
        (faulty, "has a faulty kernel", "have a faulty kernel"),
        (sum(each.verdict is Verdict.KNOWN_UPSTREAM for each in checks), "leaks as expected", "leak as expected"),
        (sum(each.verdict.is_failure for each in checks) - len(accused), "fails without a leak", "fail without a leak"),
        (sum(each.verdict is Verdict.INCONCLUSIVE for each in checks), "has no verdict", "have no verdict"),
    )
    said = ", ".join(f"{count:,} {one if count == 1 else many}" for count, one, many in counts if count)
    text = f"{counted(checked, 'test')} checked for leaks" + (f": {said}" if said else "")
    left_out = len(checks) - checked
    return text + (f"; {left_out:,} not checked" if left_out else "")
