"""Findings by cause, in a number that a reader can take in: one mistake in a loop is one finding.

It says how often it was seen.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from quiesce.model.findings import Finding
from quiesce.model.wording import counted
from quiesce.simulator.judge.kernel_accesses import needs_more
from quiesce.simulator.judge.origins import Origins

CAUSES_MAX: Final = 1_000
"""So many causes of one rule are told apart; each finding beyond, of a cause that is not among them, counts as one."""


@dataclass(slots=True)
class _Cause:
    """The first finding of a cause, or of what needs more to be fixed, and how many there were."""

    first: Finding
    seen: int = 0
    tests: dict[str, None] = field(default_factory=dict)

    def add(self, finding: Finding) -> None:
        """Enter a finding of this cause."""
        if needs_more(finding, self.first):
            self.first = finding
        self.seen += finding.seen
        self.tests.update(dict.fromkeys(finding.tests))

    def finding(self) -> Finding:
        """Return the first finding, with how often it was seen and by which tests."""
        return replace(self.first, seen=self.seen, tests=tuple(self.tests))


class Causes:
    """Takes findings in order, however many, and keeps the first of each cause.

    Two findings of records have one cause if they break one rule by calls from the same places. Those that name a test
    need not have the same places: the finding of a cause names all tests. What is found at the end is grouped by place
    when it is found: each such finding is a cause.
    """

    def __init__(self, origins: Origins) -> None:
        self._origins = origins
        self._causes: dict[Hashable, _Cause] = {}
        self._kept: Counter[str] = Counter()
        self.beyond: Counter[str] = Counter()
        """By rule, how many findings were not kept."""

    def add(self, findings: Iterable[Finding]) -> None:
        """Enter findings."""
        for finding in findings:
            key = self._key(finding)
            cause = self._causes.get(key)
            if cause is None:
                if self._kept[finding.rule] == CAUSES_MAX:
                    self.beyond[finding.rule] += 1
                    continue
                self._kept[finding.rule] += 1
                cause = self._causes[key] = _Cause(finding)
            cause.add(finding)

    def findings(self) -> list[Finding]:
        """Return the first finding of each cause, with how often it was seen.

        Different stacks may be of one place, which is only known when the names in them are looked up: here, for all
        of them at once.
        """
        sites = [site for cause in self._causes.values() for site in cause.first.call_sites]
        places = iter(self._origins.site_places(sites))
        joined: dict[Hashable, _Cause] = {}
        for key, cause in self._causes.items():
            where = tuple(next(places) for _ in cause.first.call_sites)
            by_key = cause.first.operation_index is None or cause.first.tests
            whole = key if by_key else (*_what(cause.first), where)
            joined.setdefault(whole, _Cause(cause.first)).add(cause.finding())
        return [cause.finding() for cause in joined.values()]

    def _key(self, finding: Finding) -> Hashable:
        if finding.operation_index is None:
            return len(self._causes)
        if finding.tests:
            return _what(finding)
        return (*_what(finding), self._origins.site_keys(finding.call_sites))


def _what(finding: Finding) -> tuple[str, ...]:
    return finding.rule, finding.kind, finding.request


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
