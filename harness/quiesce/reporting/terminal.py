"""The terminal summary: failures first, then a table of what ran where, then one line that says what it means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from quiesce.amounts import counted
from quiesce.reporting.conclusion import CASE_SUFFIX, conclusions
from quiesce.reporting.counts import BackendCounts, count_by_backend
from quiesce.reporting.ordering import ordered
from quiesce.reporting.palette import PLAIN, Palette
from quiesce.reporting.repetition import told_once
from quiesce.reporting.text import clean_line
from quiesce.results import LEAK_CHECK, Result, Verdict

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
