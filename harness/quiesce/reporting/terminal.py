"""What a terminal shows of a run: what is about to run, then failures, a table of what ran where, and what it means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from quiesce.model.results import LEAK_CHECK, Result, Verdict
from quiesce.model.rules import IN_PROTOCOL
from quiesce.model.wording import counted
from quiesce.reporting.leak_checks import checks_in_short
from quiesce.reporting.result_lists import BackendCounts, count_by_backend, ordered
from quiesce.reporting.text import PLAIN, Palette, clean_line, failure_text

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


REASONS_MAX: Final = 3
"""How many reasons are named why nothing ran on a backend."""
_COLUMNS: Final[tuple[tuple[str, Verdict | None], ...]] = (
    ("executed", None),
    ("passed", Verdict.PASSED),
    ("failed", Verdict.FAILED),
    ("broken", Verdict.BROKEN_CASE),
    ("unsupported", Verdict.UNSUPPORTED),
    ("not promised", Verdict.NOT_PROMISED),
    ("known", Verdict.KNOWN_UPSTREAM),
    ("inconclusive", Verdict.INCONCLUSIVE),
)
_OF_CASES: Final = frozenset({Verdict.BROKEN_CASE, Verdict.UNSUPPORTED, Verdict.NOT_PROMISED, Verdict.KNOWN_UPSTREAM})
"""Verdicts that rest on a line of a case's header."""


def align(rows: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset()) -> list[str]:
    """Return table rows with their columns aligned by two spaces; the columns numbered in ``right`` end together."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def summary_table(counts: Sequence[BackendCounts], *, of_cases: bool = True) -> list[str]:
    """Return the table of counts, one row for each backend.

    Columns of verdicts that only cases have are left out of a table of programs, unless one of them did occur.
    """
    columns = [
        (title, verdict)
        for title, verdict in _COLUMNS
        if of_cases or verdict not in _OF_CASES or any(each.by_verdict[verdict] for each in counts)
    ]
    rows = [["backend", *(title for title, _ in columns)]]
    for each in counts:
        numbers = [each.executed if verdict is None else each.by_verdict[verdict] for _, verdict in columns]
        rows.append([clean_line(each.backend), *map(str, numbers)])
    return align(rows, right=frozenset(range(1, len(columns) + 1)))


def empty_warnings(
    counts: Sequence[BackendCounts], named: Collection[str], results: Iterable[Result] = ()
) -> list[str]:
    """Return one loud line for each backend that was ``named`` and on which nothing ran, with the common reasons.

    One that takes part because it works here may find no case that it can run.
    """
    reasons: dict[str, Counter[str]] = {}
    for result in results:
        reasons.setdefault(result.backend, Counter())[clean_line(result.reason)] += 1
    return [
        f"NOTHING WAS EXECUTED on '{clean_line(each.backend)}': "
        f"{each.by_verdict[Verdict.UNSUPPORTED]} unsupported, {each.by_verdict[Verdict.NOT_PROMISED]} not promised. "
        f"This is not a pass.{_most_common(reasons.get(each.backend, Counter()))}"
        for each in counts
        if each.executed == 0 and each.backend in named
    ]


def _most_common(reasons: Counter[str]) -> str:
    kept = [f"{reason} ({counted(count, 'case')})" for reason, count in reasons.most_common(REASONS_MAX) if reason]
    return f" Most common: {'; '.join(kept)}." if kept else ""


def not_run_lines(results: Iterable[Result]) -> list[str]:
    """Return a line for each case that was asked for by name and that its backend cannot run."""
    return [
        f"not run on '{clean_line(each.backend)}': {clean_line(each.path)}: {each.verdict}: {clean_line(each.reason)}"
        for each in results
        if not each.is_leak_check
    ]


def render_summary(
    results: Iterable[Result],
    *,
    backends: Iterable[str] = (),
    named: Collection[str] = (),
    palette: Palette = PLAIN,
    told: Iterable[Result] = (),
) -> str:
    """Return failures, table and conclusions as text.

    ``backends`` names those that count even where they have no result, and ``named`` those that the user asked for by
    name. Leak checks of tests are not in the table.
    ``told`` are results of which the reader has seen the failures already.
    """
    kept = ordered(results)
    counts = count_by_backend(kept, backends)
    lines: list[str] = []
    seen = set(map(id, told))
    for failure in told_once(each for each in kept if id(each) not in seen):
        head, _, rest = failure.text().partition("\n")
        lines += [f"{palette.bad}{head}{palette.end}", *([rest] if rest else []), ""]
    shown = [each for each in counts if each.backend != LEAK_CHECK]
    lines += summary_table(shown, of_cases=_are_cases(kept)) if shown else []
    lines += [f"{palette.bad}{line}{palette.end}" for line in empty_warnings(counts, named, kept)]
    colour = palette.good if _is_green(counts) else palette.bad
    lines += [f"{palette.strong}{colour}{line}{palette.end}" for line in conclusions(kept)]
    lines += _not_checked(kept) if _is_green(counts) else []
    return "\n".join(lines) + "\n"


def _not_checked(results: Iterable[Result]) -> list[str]:
    """Return what the passes of some results do not cover, each once."""
    return [f"but {clean_line(text)}" for text in dict.fromkeys(text for each in results for text in each.not_checked)]


def _are_cases(results: Sequence[Result]) -> bool:
    """Whether any result is that of a case; where there is none at all, cases were meant to run."""
    return not results or any(each.path.endswith(CASE_SUFFIX) and not each.must_conclude for each in results)


def _is_green(counts: Sequence[BackendCounts]) -> bool:
    return any(each.executed for each in counts) and not any(each.failures or each.unresolved for each in counts)


VERSION_CHARACTERS_MAX: Final = 60


@dataclass(frozen=True, slots=True)
class Chosen:
    """A backend that takes part, and how many of the cases it can run."""

    name: str
    version: str
    cases: int


def opening_lines(cases: int, backends: Iterable[Chosen], seed: int) -> list[str]:
    """Return how many cases there are, and for each backend how many of them it can run."""
    rows = [
        [f"  {clean_line(each.name)}", f"{each.cases} of {cases}", short_version(each.version)] for each in backends
    ]
    return [
        f"{counted(cases, 'case')} on {counted(len(rows), 'backend')}, seed {seed}",
        *(align(rows, right=frozenset({1})) if rows else []),
    ]


def short_version(text: str) -> str:
    """Return what a version says before its details; nothing for a bare number, which says nothing to a reader."""
    shown = clean_line(text).partition(",")[0].partition("  ")[0]
    if shown.isdecimal():
        return ""
    return shown if len(shown) <= VERSION_CHARACTERS_MAX else f"{shown[:VERSION_CHARACTERS_MAX]}…"


def left_out_lines(unavailable: Mapping[str, tuple[str, str]]) -> list[str]:
    """Return a line for backends that are not installed, for others that cannot work here, and the like.

    ``unavailable`` says of each what is the matter in short, and which command says more or helps.
    """
    names_by_matter: dict[tuple[str, str], list[str]] = {}
    for name, matter in sorted(unavailable.items()):
        names_by_matter.setdefault(matter, []).append(clean_line(name))
    return [f"{what}: {', '.join(names)} ({clean_line(advice)})" for (what, advice), names in names_by_matter.items()]
