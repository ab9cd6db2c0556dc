"""The last line of a run: what its results show. Cases and leak checks of tests are told apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from quiesce.amounts import counted
from quiesce.reporting.counts import BackendCounts, count_by_backend
from quiesce.reporting.leak_checks import checks_in_short
from quiesce.reporting.text import clean_line
from quiesce.results import Result, Verdict

CASE_SUFFIX: Final = ".case"


def conclusions(results: Iterable[Result]) -> tuple[str, ...]:
    """Return a line for cases and one for leak checks, each where there is one; one of them in any case."""
    kept = tuple(results)
    checks = [each for each in kept if each.is_leak_check]
    others = [each for each in kept if not each.is_leak_check]
    lines = [] if checks and not others else [_of_cases(others)]
    return (*lines, *([checks_in_short(checks)] if checks else []))


def _of_cases(results: Sequence[Result]) -> str:
    executed = [each for each in results if each.verdict.executed]
    are_cases = all(each.path.endswith(CASE_SUFFIX) and not each.must_conclude for each in results)
    if not executed or not are_cases:
        return closing_line(count_by_backend(results))
    by_verdict = {verdict: [each for each in executed if each.verdict is verdict] for verdict in Verdict}
    cases = _distinct(executed)
    said = [_failing(by_verdict[Verdict.FAILED], cases), _broken(by_verdict[Verdict.BROKEN_CASE], cases)]
    if not any(said):
        said = [_passing(by_verdict[Verdict.PASSED])]
    if known := by_verdict[Verdict.KNOWN_UPSTREAM]:
        said.append(f"{counted(len(known), 'failure')} known upstream on {_where(known)}")
    if inconclusive := by_verdict[Verdict.INCONCLUSIVE]:
        said.append(f"{len(inconclusive)} inconclusive on {_where(inconclusive)}")
    if faults := len({each.caught for each in executed} - {""}):
        were = "was" if faults == 1 else "were each"
        said.append(f"{counted(faults, 'historic bug')}, switched on in the reference, {were} caught")
    return "; ".join(filter(None, said))


def closing_line(counts: Sequence[BackendCounts]) -> str:
    """Return what was executed and what was found, of results of any kind."""
    executed = sum(each.executed for each in counts)
    if executed == 0:
        return "nothing was executed: no verdict"
    failures = sum(each.failures for each in counts)
    unresolved = sum(each.unresolved for each in counts)
    where = counted(sum(each.executed > 0 for each in counts), "backend")
    found = counted(failures, "failure") if failures else f"{unresolved} inconclusive" if unresolved else "no failures"
    return f"{counted(executed, 'result')} from {where}: {found}"


def _distinct(results: Iterable[Result]) -> int:
    return len({(each.path, each.case) for each in results})


def _failing(failed: Sequence[Result], cases: int) -> str:
    """Return ``2 of 103 cases failed on opencl``, or how many on each of several backends."""
    if not failed:
        return ""
    count = _distinct(failed)
    head = f"{count} of {counted(cases, 'case')} failed"
    backends = Counter(clean_line(each.backend) for each in failed)
    if len(backends) == 1:
        return f"{head} on {next(iter(backends))}"
    return f"{head}: {', '.join(f'{number} on {name}' for name, number in sorted(backends.items()))}"


def _broken(broken: Sequence[Result], cases: int) -> str:
    count = _distinct(broken)
    return f"{count} of {counted(cases, 'case')} {_be(count)} broken" if count else ""


def _passing(passed: Sequence[Result]) -> str:
    if not passed:
        return ""
    return f"{counted(_distinct(passed), 'case')} passed on {_where(passed)}"


def _where(results: Iterable[Result]) -> str:
    """Return the one backend's name, or how many there are."""
    names = {each.backend for each in results}
    return clean_line(names.pop()) if len(names) == 1 else counted(len(names), "backend")


def _be(count: int) -> str:
    return "is" if count == 1 else "are"
