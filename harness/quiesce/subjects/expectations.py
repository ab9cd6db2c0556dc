"""Whether what a release showed is what the manifest expects of it, in both directions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from quiesce.execution import KNOWN_STILL_THERE
from quiesce.findings import Finding
from quiesce.kinds import Kind
from quiesce.results import Result, Verdict
from quiesce.subjects.manifest import Expectation

_EXPECT: Final = "the manifest's 'expect' no longer holds: remove or correct it"


def hold_to(expectations: Iterable[Expectation], variant: str, results: Sequence[Result]) -> tuple[Result, ...]:
    """Return the results of one row as the manifest has them.

    A finding that is expected becomes *known upstream*, with its number; one that nobody expects stays a failure; an
    expectation that nothing shows becomes a failure, also where its case did not even run.
    """
    chosen = [each for each in expectations if each.holds_in(variant)]
    judged = [_judge(result, [each for each in chosen if each.covers(result.case)]) for result in results]
    shown = {(each, name) for each in chosen for name in _shown(each, results)}
    missing = [each for each in chosen if (each, each.finds) not in shown]
    for each in missing:
        covered = [index for index, result in enumerate(judged) if each.covers(result.case)]
        if covered:
            index = covered[0]
            judged[index] = _without(each, judged[index])
        else:
            judged.append(_never_ran(each, results[0].backend if results else variant))
    return tuple(judged)


def _shown(expectation: Expectation, results: Iterable[Result]) -> Iterator[str]:
    for result in results:
        if expectation.covers(result.case):
            yield from (finding.rule for finding in result.findings)


def _judge(result: Result, expectations: Sequence[Expectation]) -> Result:
    """Return a result whose every finding is expected as known, any other as it is."""
    expected = {each.finds: each.upstream for each in expectations}
    names = {finding.rule for finding in result.findings}
    if not names or result.verdict is Verdict.BROKEN_CASE:
        return result
    if names <= expected.keys():
        numbers = ", ".join(dict.fromkeys(expected[name] for name in sorted(names)))
        return replace(result, verdict=Verdict.KNOWN_UPSTREAM, reason=numbers)
    if expected:
        wanted = ", ".join(sorted(expected))
        return replace(result, verdict=Verdict.FAILED, reason=f"expected: {wanted}; it found something else")
    return result


def _without(expectation: Expectation, result: Result) -> Result:
    """Return a result as a failure, because what it was expected to show it did not."""
    finding = _missing(
        expectation, f"the result is '{result.verdict}'" + (f": {result.reason}" if result.reason else "")
    )
    return replace(result, verdict=Verdict.FAILED, reason="", findings=(*result.findings, finding))


def _never_ran(expectation: Expectation, backend: str) -> Result:
    finding = _missing(expectation, "nothing ran under that name")
    return Result(expectation.case, "", "", backend, Verdict.FAILED, findings=(finding,))


def _missing(expectation: Expectation, observed: str) -> Finding:
    expected = f"{expectation.finds} ({expectation.upstream})"
    return Finding(KNOWN_STILL_THERE, expected, f"{observed}; {_EXPECT}", kind=Kind.OUTDATED_EXPECTATION)
