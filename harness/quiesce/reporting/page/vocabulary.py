"""The words of a page: one about cases on backends, or one about tests that were checked for leaks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from quiesce.reporting.counts import BackendCounts
from quiesce.reporting.page.glossary import VERDICTS, rules_in_order
from quiesce.reporting.run_keys import SKIPPED
from quiesce.results import LEAK_CHECK, Result, Verdict


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """``noun`` is what a row of the matrix is, and ``verdicts`` says what each verdict means for it.

    ``of_cases`` says whether the page has all verdicts and rules; the others have those that occur.
    """

    noun: str
    verdicts: Mapping[Verdict, str]
    of_cases: bool

    def backend(self, name: str) -> str:
        """Return a backend's name as the page shows it."""
        return "leak check" if name == LEAK_CHECK else name

    def listed(self, counts: Iterable[BackendCounts], verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
        """Return which of some verdicts the page lists."""
        kept = tuple(counts)
        return tuple(each for each in verdicts if self.of_cases or any(one.by_verdict[each] for one in kept))

    def run(self, facts: Mapping[str, str]) -> list[tuple[str, str]]:
        """Return the facts of a run in order; without the backends that were left out where none was to take part."""
        return [(key, value) for key, value in sorted(facts.items()) if self.of_cases or not key.startswith(SKIPPED)]

    def rules(self, broken: Iterable[str]) -> tuple[tuple[str, str, bool], ...]:
        """Return the rules of the glossary: name, sentence, and whether it was broken."""
        return tuple(each for each in rules_in_order(broken) if self.of_cases or each[2])


OF_CASES: Final = Vocabulary("case", VERDICTS, of_cases=True)
OF_CHECKS: Final = Vocabulary(
    "test",
    {
        Verdict.PASSED: "The test was repeated, and nothing grew from round to round.",
        Verdict.FAILED: "The test leaks, or fails by itself. A finding says what grows and where it comes from.",
        Verdict.BROKEN_CASE: VERDICTS[Verdict.BROKEN_CASE],
        Verdict.UNSUPPORTED: "The test was not checked: it was skipped, is expected to fail, or is marked so.",
        Verdict.NOT_PROMISED: VERDICTS[Verdict.NOT_PROMISED],
        Verdict.KNOWN_UPSTREAM: "The test leaks as expected: it is marked xfail, or its leak is known.",
        Verdict.INCONCLUSIVE: "The leak check came to no verdict; the reason says why.",
    },
    of_cases=False,
)


def vocabulary_of(results: Iterable[Result]) -> Vocabulary:
    """Return the words for a page of some results."""
    kept = tuple(results)
    return OF_CHECKS if kept and all(each.is_leak_check for each in kept) else OF_CASES
