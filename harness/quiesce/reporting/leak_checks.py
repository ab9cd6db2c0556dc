"""What leak checks of tests came to: a line for each test that leaks or has no verdict, and the counts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import Final

from quiesce.model.findings import Finding
from quiesce.model.program_rules import RULES
from quiesce.model.results import Result, Verdict
from quiesce.model.rules import LOST_REFERENCES
from quiesce.model.wording import counted, singular
from quiesce.reporting.text import clean_line

KEEPS_TO_ITS_PEAK: Final = "a_test_keeps_to_its_peak"
"""The rule that a test breaks which uses more memory at a time than its marker allows."""

COMES_TO_A_VERDICT: Final = "a_leak_check_comes_to_a_verdict"
"""The rule of a test that asks for a leak check, and whose check has no verdict. It says nothing about a leak."""

NAMES_MAX: Final = 50
"""How many tests of each kind are named; the report has all of them."""

GROUPED_MIN: Final = 3
"""So many tests without a verdict for one reason are named in a group."""

_GAUGE: Final = re.compile(r"\((.+)\)")
"""Whose memory it is, in a kind such as ``memory leak (Python)``."""

_KEEPER: Final = re.compile(r"(?!no Python object)(.+?)(?: \([^()]*\))?$")
"""The name of what keeps a leak, as ``mylib._CACHE`` of ``mylib._CACHE (dict, 350 entries, +1 a round)``."""

_PLACE: Final = re.compile(r"(.+):(\d+)")

MARKER_SAYS: Final = "its marker says so: "
"""What the reason begins with of a test that its marker leaves out."""

LEAVES: Final = "it leaves "
"""What the reason begins with of a test that passes, but leaves files in the temporary folder."""


def leak_in_short(findings: Sequence[Finding]) -> str:
    """Return what leaks, for the first finding that has an amount.

    It reads ``leaks 8,112 B/round (Python) at mylib/__init__.py:14, kept by mylib._CACHE``.
    """
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
        unit, memory = singular(unit) if count == "1" else unit, ""
    if found.kind == LOST_REFERENCES:
        return f"loses {count} {unit} to None/round"
    place = clean_line(found.allocated)
    kept = _KEEPER.match(clean_line(found.kept.partition("\n")[0]))
    where = (f" at {place}" if place else "") + (f", kept by {kept[1]}" if kept else "")
    return f"leaks {count} {unit}/round{memory}{where}"


def leak_check_lines(results: Iterable[Result]) -> list[str]:
    """Return a line for each test that leaks, the largest leak first, and lines that name those without a verdict.

    Tests that leave files in the temporary folder, and those that their marker leaves out, are named last.
    """
    kept = accused_first(each for each in results if each.is_leak_check)
    leaking = [f"{clean_line(each.case)} {leak_in_short(each.findings)}" for each in kept if _leaks(each)]
    open_ = _open_lines([each for each in kept if each.verdict is Verdict.INCONCLUSIVE])
    files = [
        f"{clean_line(each.case)} {clean_line(each.reason.removeprefix('it '))}"
        for each in kept
        if each.verdict is Verdict.PASSED and each.reason.startswith(LEAVES)
    ]
    left_out = [
        f"{clean_line(each.case)} is not checked: {clean_line(each.reason.removeprefix(MARKER_SAYS))}"
        for each in kept
        if each.reason.startswith(MARKER_SAYS)
    ]
    return [*shortened(leaking), *open_, *shortened(files), *shortened(left_out)]


def _open_lines(results: Iterable[Result]) -> Iterator[str]:
    """Yield a line for each test without a verdict; many that have one reason are named below it, the most first."""
    by_reason: dict[str, list[str]] = {}
    for each in results:
        by_reason.setdefault(clean_line(each.reason), []).append(clean_line(each.case))
    for reason, names in sorted(by_reason.items(), key=lambda item: -len(item[1])):
        if len(names) >= GROUPED_MIN:
            yield f"{len(names):,} tests have no verdict: {reason}"
            yield from (f"  {line}" for line in shortened(names))
    alone = [(name, reason) for reason, names in by_reason.items() if len(names) < GROUPED_MIN for name in names]
    yield from shortened([f"{name} has no verdict: {reason}" for name, reason in sorted(alone)])


def leaked_bytes(result: Result) -> float:
    """Return by how many bytes per round the largest finding of a result grows; 0 for what is no memory."""
    readings = [finding.readings for finding in result.findings if finding.readings is not None]
    return max((each.per_round for each in readings if each.unit == "bytes"), default=0.0)


def accused_first(results: Iterable[Result]) -> list[Result]:
    """Return results with the largest leak first; what leaks no bytes keeps the order of names."""
    return sorted(results, key=lambda result: (not result.findings, -leaked_bytes(result), result.case))


def place_of(result: Result, finding: Finding | None = None) -> tuple[str, int]:
    """Return the file and the line that a reader has to look at: where it was allocated, or else the test.

    A file that is not below the folder of the run is somebody else's, and the test is named.
    """
    found = finding or next(iter(result.findings), None)
    match = _PLACE.fullmatch(clean_line(found.allocated)) if found is not None else None
    if match is not None and not PurePath(match[1]).is_absolute():
        return match[1], int(match[2])
    return clean_line(result.path), (found.line or 0) if found is not None else 0


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
