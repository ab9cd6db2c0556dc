"""What the report of a native leak checker says about its program, as findings: the words of a ledger's judgement.

Which leak checker wrote a report is told by the report itself, or by the caller.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from quiesce.allocators.oracle import NOTHING_LEFT
from quiesce.model.findings import Finding, Grade
from quiesce.model.rules import Kind
from quiesce.model.wording import bytes_in_words, counted
from quiesce.simulator.judge.causes import bounded
from quiesce.simulator.judge.conditions import AtExit
from quiesce.simulator.judge.judgement import Judgement
from quiesce.simulator.judge.leak_checkers import msvc, sanitizers, valgrind
from quiesce.simulator.judge.leak_checkers.report import (
    Format,
    Frame,
    NativeLeak,
    NativeMisuse,
    Note,
    Reach,
    Record,
    UnreadableReport,
    log_lines,
)

_ALLOCATORS: Final = re.compile(
    r"(?:__interceptor_|__interposer_|wrap_|_?_libc_)?(?:malloc|calloc|realloc|reallocarray|memalign|posix_memalign|"
    r"aligned_alloc|valloc|pvalloc|strdup|strndup)\b|operator new\b"
)
"""Functions whose callers are who allocated, by the beginning of their names."""
_CHECKERS: Final = re.compile(r"(?:in )?(?:lib[alt]san|libclang_rt|vgpreload_)")
"""Where these are without symbols: the checkers' own libraries."""


def judge_report(records: Iterable[Record], at_exit: AtExit) -> Judgement:
    """Judge one report. What the program can still reach accuses nobody unless everything at exit does."""
    notes: list[str] = []
    spared: list[NativeLeak] = []
    findings = tuple(bounded(_findings(records, at_exit, notes, spared)))
    if spared:
        amount = _amount(sum(leak.size_bytes for leak in spared), sum(leak.blocks for leak in spared))
        notes.append(f"held at exit, and no finding: {amount}")
    return Judgement(findings, tuple(notes))


def _findings(
    records: Iterable[Record], at_exit: AtExit, notes: list[str], spared: list[NativeLeak]
) -> Iterator[Finding]:
    """Yield findings, and enter what is none: a report may be longer than what is kept of it."""
    for record in records:
        match record:
            case Note():
                notes.append(record.text)
            case NativeMisuse():
                yield _misuse_finding(record)
            case NativeLeak() if _is_accused(record.reach, at_exit):
                yield _leak_finding(record)
            case NativeLeak():
                spared.append(record)


def _is_accused(reach: Reach, at_exit: AtExit) -> bool:
    if at_exit is AtExit.LOST:
        return reach is not Reach.REACHABLE
    return at_exit is AtExit.ALL


def _leak_finding(leak: NativeLeak) -> Finding:
    return Finding(
        NOTHING_LEFT,
        "everything freed before the program exits",
        f"{_amount(leak.size_bytes, leak.blocks)}, {leak.reach.value}",
        line=leak.line,
        allocated_by=_allocated_by(leak.stack),
        kind=Kind.MEMORY_LEAK,
        grade=Grade.INCONCLUSIVE if leak.reach is Reach.DOUBTFUL else Grade.LIVE_LEAK,
        evidence=_evidence(leak.text, leak.stack),
    )


def _misuse_finding(misuse: NativeMisuse) -> Finding:
    return Finding(
        misuse.rule,
        misuse.expected,
        misuse.text,
        line=misuse.line,
        kind=misuse.kind,
        evidence=_evidence("", misuse.stack),
    )


def _amount(size_bytes: int, blocks: int) -> str:
    return f"{bytes_in_words(size_bytes)} in {counted(blocks, 'block')}"


def _allocated_by(stack: tuple[Frame, ...]) -> str:
    """Return the innermost frame that is no allocator, or the innermost one where all are."""
    caller = next((frame for frame in stack if not _is_allocator(frame)), None)
    return str(caller or stack[0]) if stack else ""


def _is_allocator(frame: Frame) -> bool:
    return bool(_ALLOCATORS.match(frame.function)) or (not frame.function and bool(_CHECKERS.match(frame.place)))


def _evidence(text: str, stack: tuple[Frame, ...]) -> str:
    return "\n".join([*([text] if text else []), *(f"  #{number} {frame}" for number, frame in enumerate(stack))])


FORMATS: Final = {each.tool: each for each in (valgrind.FORMAT, sanitizers.FORMAT, msvc.FORMAT)}
"""The formats by the names of their tools."""


def detect(path: str) -> Format:
    """Return the format of a report: an XML document is Valgrind's, a log is whose words it holds first.

    Raises :class:`quiesce.simulator.judge.leak_checkers.report.UnreadableReport` where it is none, and
    :class:`OSError`.
    """
    begun = False
    for _, line in log_lines(path):
        if not begun and line.strip():
            begun = True
            if line.lstrip().startswith(valgrind.FORMAT.marks):
                return valgrind.FORMAT
        for each in (sanitizers.FORMAT, msvc.FORMAT):
            if any(mark in line for mark in each.marks):
                return each
    names = ", ".join(FORMATS)
    raise UnreadableReport(
        path,
        None,
        "no leak report is in it, of Valgrind (--xml=yes), LeakSanitizer or the MSVC runtime",
        f"write --format NAME ({names}) if a log without a report is that tool's way to say that nothing leaked",
    )
