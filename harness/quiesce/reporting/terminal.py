"""The terminal summary: failures first, then a table of what ran where, then one line that says what it means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from quiesce.reporting.counts import BackendCounts, count_by_backend
from quiesce.reporting.ordering import ordered
from quiesce.reporting.palette import PLAIN, Palette
from quiesce.reporting.repetition import told_once
from quiesce.reporting.text import clean_line, plural
from quiesce.results import Result, Verdict

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


def summary_table(counts: Sequence[BackendCounts]) -> list[str]:
    """Return the table of counts, one row for each backend."""
    rows = [["backend", *(title for title, _ in _COLUMNS)]]
    for each in counts:
        numbers = [each.executed if verdict is None else each.by_verdict[verdict] for _, verdict in _COLUMNS]
        rows.append([clean_line(each.backend), *map(str, numbers)])
    return align(rows, right=frozenset(range(1, len(_COLUMNS) + 1)))


def empty_warnings(counts: Sequence[BackendCounts]) -> list[str]:
    """Return one loud line for each backend on which nothing was executed."""
    return [
        f"NOTHING WAS EXECUTED on '{clean_line(each.backend)}': "
        f"{each.by_verdict[Verdict.UNSUPPORTED]} unsupported, {each.by_verdict[Verdict.NOT_PROMISED]} not promised. "
        "This is not a pass."
        for each in counts
        if each.executed == 0
    ]


def closing_line(counts: Sequence[BackendCounts]) -> str:
    """Return the last line: what was executed, and what was found."""
    executed = sum(each.executed for each in counts)
    if executed == 0:
        return "nothing was executed: no verdict"
    failures = sum(each.failures for each in counts)
    unresolved = sum(each.unresolved for each in counts)
    where = plural(sum(each.executed > 0 for each in counts), "backend")
    found = plural(failures, "failure") if failures else f"{unresolved} inconclusive" if unresolved else "no failures"
    return f"{plural(executed, 'result')} from {where}: {found}"


def render_summary(
    results: Iterable[Result],
    *,
    backends: Iterable[str] = (),
    skipped: Mapping[str, str] | None = None,
    palette: Palette = PLAIN,
) -> str:
    """Return failures, table and closing line as text.

    ``backends`` names those that count even where they have no result; ``skipped`` maps those that were left out
    to the reason.
    """
    kept = ordered(results)
    counts = count_by_backend(kept, backends)
    lines: list[str] = []
    for failure in told_once(kept):
        head, _, rest = failure.text().partition("\n")
        lines += [f"{palette.bad}{head}{palette.end}", *([rest] if rest else []), ""]
    lines += summary_table(counts)
    lines += [f"skipped '{clean_line(name)}': {clean_line(why)}" for name, why in sorted((skipped or {}).items())]
    lines += [f"{palette.bad}{line}{palette.end}" for line in empty_warnings(counts)]
    colour = palette.good if _is_green(counts) else palette.bad
    return "\n".join([*lines, f"{palette.strong}{colour}{closing_line(counts)}{palette.end}"]) + "\n"


def _is_green(counts: Sequence[BackendCounts]) -> bool:
    return any(each.executed for each in counts) and not any(each.failures or each.unresolved for each in counts)
