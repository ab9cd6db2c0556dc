"""What GitHub Actions shows: findings as annotations of lines in a pull request, leaks as a table in the run's summary.

Source: "Workflow commands for GitHub Actions" (docs.github.com/actions/reference/workflow-commands-for-github-actions),
for ``::error``, its escapes and ``GITHUB_STEP_SUMMARY``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Final

from quiesce.model.findings import Finding
from quiesce.model.results import Result, Verdict
from quiesce.reporting.leak_checks import NAMES_MAX, accused_first, checks_in_short, leak_in_short, place_of
from quiesce.reporting.text import ACTIONS, clean_line

WORKSPACE: Final = "GITHUB_WORKSPACE"
SUMMARY_BYTES_MAX: Final = 1 << 20
"""How much GitHub takes of one step's summary; it refuses a longer one."""


def checkout(folder: Path, environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return the folder of the checkout in a step of GitHub Actions, which may not say it; elsewhere None."""
    return Path(environ.get(WORKSPACE, folder)) if environ.get(ACTIONS) == "true" else None


def annotation_lines(checks: Iterable[Result], folders: Sequence[Path], workspace: Path) -> Iterator[str]:
    """Yield a line for each test that leaks, and a warning for each without a verdict, at most :data:`NAMES_MAX` each.

    Paths in results are relative to one of ``folders``; ``workspace`` is that of the checkout.
    """
    kept = accused_first(checks)
    accused = [each for each in kept if each.verdict is Verdict.FAILED and each.findings]
    open_ = [each for each in kept if each.verdict is Verdict.INCONCLUSIVE]
    for result in accused[:NAMES_MAX]:
        place = _shown(place_of(result), folders, workspace)
        yield _command("error", place, result.case, leak_in_short(result.findings))
    for result in open_[:NAMES_MAX]:
        place = _shown(place_of(result), folders, workspace)
        yield _command("warning", place, result.case, f"no leak verdict: {clean_line(result.reason)}")


def finding_lines(results: Iterable[Result], folders: Sequence[Path], workspace: Path) -> Iterator[str]:
    """Yield a line for each finding of a case or of a program, at most :data:`NAMES_MAX`."""
    found = [
        (result, finding)
        for result in results
        if result.verdict.is_failure and not result.is_leak_check
        for finding in result.findings
    ]
    for result, finding in found[:NAMES_MAX]:
        place = _shown(_place_of_finding(result, finding), folders, workspace)
        message = f"{finding.rule}: expected {finding.expected}; observed {finding.observed}"
        yield _command("error", place, f"{finding.kind or finding.rule} in {result.case}", clean_line(message))


def _place_of_finding(result: Result, finding: Finding) -> tuple[str, int]:
    """Return the program's own line that made the call, or the line of the case; an empty name where none is known."""
    sites = sorted(finding.call_sites, key=lambda site: site.number != finding.operation_index)
    frames = (frame for site in sites for frame in site.frames if frame.is_own and frame.file)
    return next(((frame.file, frame.line) for frame in frames), (result.path, finding.line or 0))


def _shown(place: tuple[str, int], folders: Sequence[Path], workspace: Path) -> dict[str, str]:
    """Return the fields that name a place to GitHub, relative to the checkout."""
    path, line = place
    if not path:
        return {}
    absolute = next((folder / path for folder in folders if (folder / path).is_file()), folders[0] / path)
    shown = absolute.relative_to(workspace) if absolute.is_relative_to(workspace) else PurePath(path)
    return {"file": shown.as_posix(), "line": str(line or 1)}


def _command(kind: str, place: Mapping[str, str], title: str, message: str) -> str:
    fields = {**place, "title": clean_line(title)}
    said = ",".join(f"{name}={_escaped(value, is_field=True)}" for name, value in fields.items())
    return f"::{kind} {said}::{_escaped(message)}"


def _escaped(text: str, *, is_field: bool = False) -> str:
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return escaped.replace(":", "%3A").replace(",", "%2C") if is_field else escaped


def summary(checks: Iterable[Result]) -> str:
    """Return the table of leaks as Markdown, the largest first, below how many tests were checked."""
    kept = accused_first(checks)
    lines = ["### Leak checks", "", f"{checks_in_short(kept)}", ""]
    rows = [
        each for each in kept if each.verdict is Verdict.INCONCLUSIVE or (each.verdict.is_failure and each.findings)
    ]
    if rows:
        lines += ["| test | what | where |", "|---|---|---|"]
    for result in rows[:NAMES_MAX]:
        path, line = place_of(result)
        is_open = result.verdict is Verdict.INCONCLUSIVE
        said = f"no verdict: {clean_line(result.reason)}" if is_open else leak_in_short(result.findings)
        lines.append(f"| {_cell(result.case)} | {_cell(said)} | {_cell(f'{path}:{line}' if line else path)} |")
    if len(rows) > NAMES_MAX:
        lines.append(f"\nand {len(rows) - NAMES_MAX:,} more")
    return "\n".join(lines) + "\n\n"


def _cell(text: str) -> str:
    line = clean_line(text).replace("\\", "\\\\").replace("|", "\\|")
    for mark in "`*_<>[]":
        line = line.replace(mark, f"\\{mark}")
    return line
