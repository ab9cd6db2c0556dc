"""Findings by cause: one mistake in a loop is one finding, which says how often it was seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from quiesce.findings import Finding
from quiesce.traces.kernel_accesses import needs_more
from quiesce.traces.origins import Origins

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
