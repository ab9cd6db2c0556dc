"""Findings in a number that a reader can take in."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from quiesce.amounts import counted
from quiesce.findings import Finding

SHOWN_MAX: Final = 20
"""How many findings of one rule are shown; the last one says how many there were."""
_NO_MORE: Final[Mapping[str, int]] = {}


def left_out(findings: Iterable[Finding], beyond: Mapping[str, int] = _NO_MORE) -> tuple[tuple[str, int], ...]:
    """Return the rules of which :func:`bounded` leaves findings out, each with how many more there are."""
    totals = Counter(finding.rule for finding in findings) + Counter(beyond)
    return tuple((rule, total - SHOWN_MAX) for rule, total in sorted(totals.items()) if total > SHOWN_MAX)


def bounded(findings: Iterable[Finding], beyond: Mapping[str, int] = _NO_MORE) -> Iterator[Finding]:
    """Yield the first findings of each rule, and say on the last one shown how many more there are.

    ``beyond`` has, by rule, how many there are besides.
    """
    totals = Counter(beyond)
    reached: Counter[str] = Counter()
    tests: defaultdict[str, dict[str, None]] = defaultdict(dict)
    kept: list[Finding] = []
    for finding in findings:
        totals[finding.rule] += 1
        reached[finding.rule] += 1
        if reached[finding.rule] <= SHOWN_MAX:
            kept.append(finding)
        else:
            tests[finding.rule].update(dict.fromkeys(finding.tests))
    shown: Counter[str] = Counter()
    for finding in kept:
        shown[finding.rule] += 1
        more = totals[finding.rule] - SHOWN_MAX
        if more > 0 and shown[finding.rule] == SHOWN_MAX:
            verb = "is" if more == 1 else "are"
            where = f"; in test {', '.join(tests[finding.rule])}" if tests[finding.rule] else ""
            note = f"{counted(more, 'more finding')} of this rule {verb} not shown{where}"
            yield replace(finding, evidence=f"{finding.evidence}\n{note}" if finding.evidence else note)
        else:
            yield finding
