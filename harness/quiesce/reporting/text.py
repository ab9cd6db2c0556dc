"""Failures as text, and the cleaning of text that nobody vouches for; call stacks in it, and colours for a terminal.

Outcomes, evidence and error messages come from the thing under test, which may answer anything: an escape
sequence that recolours the terminal, a carriage return that hides a line, a byte that no XML document may hold.

Of a call stack the program's own frames are shown, and a note in place of the others. Where no frame is the program's
own, those of packages are shown: they say more than a number of them.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from quiesce.model import wording
from quiesce.model.findings import SHUTDOWN, CallSite, Finding, Frame, Quotation, RoundReadings
from quiesce.model.results import Result
from quiesce.model.wording import counted, shown_path, singular


def shown_frames(frames: Sequence[Frame]) -> Iterator[Frame | str]:
    """Yield the frames that are shown, from the innermost one, and a note for neighbours that are not."""
    has_own = any(frame.is_own for frame in frames)
    for is_shown, neighbours in groupby(frames, key=lambda frame: frame.is_own or not (has_own or frame.folded)):
        group = list(neighbours)
        yield from group if is_shown else [_note(group)]


def _note(frames: list[Frame]) -> str:
    names = dict.fromkeys(frame.owner for frame in frames)
    if SHUTDOWN in names:
        return f"{SHUTDOWN} ({counted(len(frames), 'frame')})"
    return f"{counted(len(frames), 'frame')} in {_listed(list(names))}"


def _listed(names: list[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


EVIDENCE_LINES_MAX: Final = 20
"""How many of the last lines of evidence a failure shows; the JSON report holds all of them."""
LINE_CHARACTERS_MAX: Final = 1000
"""How much of a line of evidence a failure shows; the JSON report holds all of it."""
FRAME_LINES_MAX: Final = 16
"""How many lines of a call stack a failure shows, from the innermost frame; the JSON report holds all of it."""
TESTS_MAX: Final = 10
"""How many of the tests that launched a faulty kernel a failure shows; the JSON report holds all of them."""
HERE: Final = "  <- here"
"""What marks the program's own innermost frame, where others stand before it."""

# ECMA-48: control sequences (CSI), then control strings (OSC and its kin) that are terminated, then two-character ones.
_ESCAPE_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -~]?")
# Bidirectional controls reorder what a reader sees (Unicode Standard Annex 9); U+FFFE and U+FFFF are not characters.
_REORDERING: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_LINE_BREAKS: Final = {"Zl": "\n", "Zp": "\n"}
ACTIONS: Final = "GITHUB_ACTIONS"
"""The variable that is ``true`` in a step of GitHub Actions."""
# What GitHub's runner takes for a command: two colons that begin a line, after white space, and ##[ anywhere in it.
_WORKFLOW_COMMAND: Final = re.compile(r"^(\s*:)(?=:)|(#)(?=#\[)", re.MULTILINE)


def clean(text: str) -> str:
    """Return ``text`` without escape sequences, control characters, reordering marks, lone surrogates and secrets.

    Tabs and line feeds stay; other line breaks become line feeds. In a step of GitHub Actions, a space is put into what
    its runner would take for a command, whoever wrote it.
    """
    text = wording.redacted(text)
    if not (text.isascii() and text.isprintable()):
        text = _ESCAPE_SEQUENCE.sub("", text).replace("\r\n", "\n")
        text = "".join(_clean_character(character) for character in text)
    if os.environ.get(ACTIONS) == "true":
        text = _WORKFLOW_COMMAND.sub(lambda found: f"{found[0]} ", text)
    return text


def _clean_character(character: str) -> str:
    if character in "\n\t":
        return character
    category = unicodedata.category(character)
    if category in _LINE_BREAKS:
        return _LINE_BREAKS[category]
    if category == "Cs":
        return "\N{REPLACEMENT CHARACTER}"
    if category == "Cc" or character in _REORDERING or ord(character) & 0xFFFE == 0xFFFE:
        return ""
    return character


def clean_line(text: str) -> str:
    """Return :func:`clean` text on one line: each run of white space that holds a line break becomes a space."""
    return re.sub(r"[ \t]*\n\s*", " ", clean(text)).strip()


def place(result: Result, finding: Finding | None = None) -> str:
    """Return ``path:line`` of a finding, ``path`` where it has no line, the case's name where there is no file."""
    where = clean_line(result.path or result.case)
    return where if finding is None or finding.line is None else f"{where}:{finding.line}"


def _what_happened(result: Result, finding: Finding) -> str:
    if result.is_leak_check:
        return "leak check"
    index = finding.operation_index
    step = "call" if finding.call_sites else "operation"
    moment = f"{step} {index} " if index is not None else "at the end " if result.operations else ""
    request = clean_line(finding.request)
    return f"{moment}on '{clean_line(result.backend)}'" + (f": {request}" if request else "")


def frame_line(frame: Frame) -> str:
    """Return a frame as ``file:line in function``, which terminals and editors can open."""
    where, function = clean_line(frame.shown_place), clean_line(frame.function)
    return f"{where} in {function}" if where and function else where or function or "code without a file"


def call_site_lines(site: CallSite) -> list[str]:
    """Return what a call has to do with a finding and who made it: a line for each frame, the innermost first."""
    call = f"{clean_line(site.role)} {clean_line(site.call)} (call {site.number})"
    lines: list[str] = []
    is_marked = False
    for each in shown_frames(site.frames):
        if isinstance(each, str):
            lines.append(f"… {clean_line(each)}")
            continue
        here = HERE if each.is_own and lines and not is_marked else ""
        is_marked |= each.is_own
        lines.append(f"{frame_line(each)}{here}")
    if len(lines) > FRAME_LINES_MAX:
        note = f"… {counted(len(lines) - FRAME_LINES_MAX, 'more line')}; the JSON report holds all"
        lines = [*lines[:FRAME_LINES_MAX], note]
    return [call + (":" if lines else ""), *(f"  {line}" for line in lines)]


def unsaid_evidence(finding: Finding) -> list[str]:
    """Return the lines of evidence that say what stands nowhere else: calls are told frame by frame."""
    said = tuple(f"{clean_line(site.role)} {clean_line(site.call)} (call {site.number})" for site in finding.call_sites)
    lines = clean(finding.evidence).strip("\n").split("\n") if finding.evidence.strip() else []
    allocated = clean_line(finding.allocated_by)
    return [line for line in lines if not line.startswith(said) and not (allocated and clean_line(line) == allocated)]


def _evidence(finding: Finding) -> list[str]:
    lines = unsaid_evidence(finding)
    if not lines:
        return []
    shown = lines[-EVIDENCE_LINES_MAX:]
    left_out = len(lines) - len(shown)
    note = f" (last {len(shown)} of {len(lines)} lines; the JSON report holds all)" if left_out else ""
    return [f"  evidence:{note}", *(f"    {_shortened(line)}".rstrip() for line in shown)]


def _shortened(line: str) -> str:
    left_out = len(line) - LINE_CHARACTERS_MAX
    return line if left_out <= 0 else f"{line[:LINE_CHARACTERS_MAX]}… {left_out:,} more characters"


def _tests(finding: Finding) -> list[str]:
    shown = [clean_line(test) for test in finding.tests[:TESTS_MAX]]
    if len(finding.tests) > len(shown):
        shown.append(f"… {len(finding.tests) - len(shown)} more; the JSON report holds all")
    return [f"  {'in test:' if not number else '':<10} {test}" for number, test in enumerate(shown)]


def quoted_lines(quotation: Quotation) -> list[tuple[int, str, bool]]:
    """Return the number and the text of each quoted line, and whether it is the one that is meant."""
    return [
        (number, f"{' ' * (len(line) - len(line.lstrip()))}{clean_line(line)}", number == quotation.line)
        for number, line in enumerate(quotation.lines, quotation.first)
    ]


def _quoted(finding: Finding, quotation: Quotation) -> list[str]:
    """Return the lines around a place, unless the text has said already what is there."""
    if quotation.place == finding.allocated:
        return []
    numbers = quoted_lines(quotation)
    width = max(len(str(number)) for number, _, _ in numbers)
    lines = (f"{'>' if is_it else ' '} {number:>{width}} | {line}".rstrip() for number, line, is_it in numbers)
    place = f"{shown_path(quotation.file)}:{quotation.line}"
    return [f"source:    {clean_line(place)}", *(f"  {line}" for line in lines)]


def finding_text(result: Result, finding: Finding) -> str:
    """Return one finding of ``result`` as lines: where, which request, the rule, expected and observed."""
    lines = [
        f"{place(result, finding)}: {_what_happened(result, finding)}",
        f"  rule:      {clean_line(finding.rule)}" + (f" ({finding.remark})" if finding.remark else ""),
        f"  expected:  {clean_line(finding.expected)}",
        f"  observed:  {clean_line(finding.observed)}",
    ]
    if finding.allocated_by and not finding.call_sites:
        lines.append(f"  allocated: {clean_line(finding.allocated_by)}")
    kept = clean(finding.kept).strip("\n").split("\n") if finding.kept else []
    lines.extend(f"  {'kept by:' if not number else '':<10} {line}" for number, line in enumerate(kept))
    if finding.repetition:
        lines.append(f"  seen:      {finding.repetition}")
    if finding.kind:
        lines.append(f"  kind:      {clean_line(finding.kind)}")
    lines.extend(_tests(finding))
    lines.extend(f"  {line}" for quotation in finding.quoted for line in _quoted(finding, quotation))
    lines.extend(f"  {line}" for site in finding.call_sites for line in call_site_lines(site))
    return "\n".join([*lines, *_evidence(finding)])


def failure_text(result: Result) -> str:
    """Return all that a reader needs of a failing result: every finding, the reason, and how to run it again."""
    blocks = [finding_text(result, finding) for finding in result.findings]
    if result.reason or not blocks:
        reason = clean_line(result.reason) or "no finding and no reason was recorded"
        blocks.insert(0, f"{place(result)}: {result.verdict} on '{clean_line(result.backend)}': {reason}")
    if result.reproduce:
        blocks.append(f"  reproduce: {clean_line(result.reproduce)}")
    return "\n".join(blocks)


def rate(readings: RoundReadings) -> str:
    """Return by how much a gauge grows, as ``1,330 bytes per round`` or ``0.50 descriptors per round``."""
    per_round = readings.per_round
    count = f"{per_round:,.0f}" if per_round >= 1 else f"{per_round:.2f}"
    unit = clean_line(readings.unit)
    return f"{count} {singular(unit) if count == '1' else unit} per round"


@dataclass(frozen=True, slots=True)
class Palette:
    """The escape sequences around text, all empty where colour is off (ECMA-48, Select Graphic Rendition)."""

    good: str = ""
    bad: str = ""
    strong: str = ""
    end: str = ""


PLAIN: Final = Palette()
COLOURED: Final = Palette(good="\x1b[32m", bad="\x1b[31m", strong="\x1b[1m", end="\x1b[0m")
