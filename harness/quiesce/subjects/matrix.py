"""The matrix: subject by release by case, what was expected and what was seen, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from quiesce.model.results import Result, Verdict
from quiesce.model.wording import counted
from quiesce.reporting import PLAIN, Palette, align, clean, clean_line, failure_text
from quiesce.subjects.manifest import SubjectKind
from quiesce.subjects.row import Row, RowResult

_COUNTED: Final = (
    ("green", Verdict.PASSED),
    ("red as expected", Verdict.KNOWN_UPSTREAM),
    ("unexpected", Verdict.FAILED),
    ("broken", Verdict.BROKEN_CASE),
    ("unsupported", Verdict.UNSUPPORTED),
    ("not promised", Verdict.NOT_PROMISED),
    ("inconclusive", Verdict.INCONCLUSIVE),
)
_CELLS: Final = {
    Verdict.PASSED: "green",
    Verdict.KNOWN_UPSTREAM: "red",
    Verdict.FAILED: "UNEXPECTED",
    Verdict.BROKEN_CASE: "broken",
    Verdict.INCONCLUSIVE: "unclear",
}
_ABSENT: Final = "-"
_UNLISTED: Final = "finding"
"""What a failure is in a release of which nobody wrote down what to expect."""
_RED: Final = frozenset({Verdict.KNOWN_UPSTREAM, Verdict.FAILED, Verdict.BROKEN_CASE})


@dataclass(frozen=True, slots=True)
class Matrix:
    """Everything that a run came to. ``skipped`` and ``unbuilt`` map the names of rows to the reason."""

    rows: Sequence[RowResult]
    skipped: Mapping[str, str] = field(default_factory=dict)
    unbuilt: Mapping[str, str] = field(default_factory=dict)

    @property
    def results(self) -> tuple[Result, ...]:
        """The results of all rows."""
        return tuple(result for row in self.rows for result in row.results)

    def text(self, palette: Palette = PLAIN) -> str:
        """Return failures, the red cases of each subject beside its releases, counts, and what it means."""
        lines: list[str] = []
        for result in self.results:
            if result.verdict.is_failure:
                head, _, rest = failure_text(result).partition("\n")
                lines += [f"{palette.bad}{head}{palette.end}", *([rest] if rest else []), ""]
        for name, why in self.unbuilt.items():
            lines += [f"{palette.bad}'{clean_line(name)}' did not run: {clean(why)}{palette.end}", ""]
        lines += self._reds(palette)
        lines += self._counts()
        lines += [f"skipped '{clean_line(name)}': {clean_line(why)}" for name, why in self.skipped.items()]
        return "\n".join([*lines, self._meaning(palette)]) + "\n"

    def _reds(self, palette: Palette) -> list[str]:
        lines: list[str] = []
        for rows in _by_series(self.rows):
            first = rows[0].row
            note = " (a model)" if first.subject.kind is SubjectKind.MODEL else ""
            heads = [_head(each.row) for each in rows]
            table = [[f"{first.series}{note}", *heads, "finding", "upstream"], *_red_cases(rows)]
            if len(table) > 1:
                title, *body = align([[clean_line(cell) for cell in row] for row in table])
                lines += [f"{palette.strong}{title}{palette.end}", *body, ""]
        return lines

    def _counts(self) -> list[str]:
        if not self.rows:
            return []
        table = [["subject", "release", *(title for title, _ in _COUNTED)]]
        for each in self.rows:
            counts = Counter(result.verdict for result in each.results)
            numbers = [str(counts[verdict]) for _, verdict in _COUNTED]
            table.append([clean_line(each.row.series), clean_line(_head(each.row)), *numbers])
        return [*align(table, right=frozenset(range(2, len(_COUNTED) + 2))), ""]

    def _meaning(self, palette: Palette) -> str:
        counts = Counter(result.verdict for result in self.results)
        executed = sum(count for verdict, count in counts.items() if verdict.executed)
        failures = sum(count for verdict, count in counts.items() if verdict.is_failure)
        listed = [row for row in self.rows if row.row.release.expectations is not None]
        unexpected = sum(result.verdict.is_failure for row in listed for result in row.results)
        ran = f"{counted(executed, 'result')} from {counted(len(self.rows), 'row')}"
        if not executed:
            text, colour = "nothing was executed: no verdict", palette.bad
        elif failures:
            news = f"{failures - unexpected} failed in releases that no manifest lists"
            told = [f"{unexpected} not as expected"] * bool(unexpected) + [news] * (failures > unexpected)
            text, colour = f"{ran}: {', '.join(told)}", palette.bad
        elif self.unbuilt:
            text, colour = f"{ran} as expected; {counted(len(self.unbuilt), 'row')} did not run", palette.bad
        else:
            text, colour = f"{ran}: all as expected", palette.good
        return f"{palette.strong}{colour}{text}{palette.end}"


def _head(row: Row) -> str:
    label = f" {row.release.label}" if row.release.label else ""
    return f"{row.release.version}{label}"


def _by_series(rows: Iterable[RowResult]) -> list[list[RowResult]]:
    series: dict[str, list[RowResult]] = {}
    for each in rows:
        series.setdefault(each.row.series, []).append(each)
    return list(series.values())


def _red_cases(rows: Sequence[RowResult]) -> list[list[str]]:
    """Return a line for each case that is red in one release at least."""
    by_release = [(each.row, {result.case: result for result in each.results}) for each in rows]
    red = dict.fromkeys(result.case for each in rows for result in each.results if result.verdict in _RED)
    lines = []
    for case in sorted(red):
        seen = [(row, results.get(case)) for row, results in by_release]
        results = [result for _, result in seen if result is not None]
        findings = dict.fromkeys(finding.rule for result in results for finding in result.findings)
        numbers = dict.fromkeys(each.reason for each in results if each.verdict is Verdict.KNOWN_UPSTREAM)
        lines.append([case, *(_cell(row, result) for row, result in seen), ", ".join(findings), "; ".join(numbers)])
    return lines


def _cell(row: Row, result: Result | None) -> str:
    if result is None:
        return _ABSENT
    if result.verdict is Verdict.FAILED and row.release.expectations is None:
        return _UNLISTED
    return _CELLS.get(result.verdict, str(result.verdict))
