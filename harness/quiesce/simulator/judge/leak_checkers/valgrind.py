"""Valgrind's XML (``--xml=yes``), protocol 4 and later: what memcheck says of leaks, and of memory used wrongly.

The document is read as it comes, in pieces; what it nests deeper or writes longer than Valgrind does is refused, and
so is a document type, without which there are no entities to expand. The elements are those of
``docs/internals/xml-output-protocol4.txt`` in Valgrind's sources. With ``--xml=yes`` memcheck always checks for leaks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Final
from xml.parsers import expat

from quiesce.model.program_rules import FREED_ONCE, INSIDE, NOT_USED_FREED, OWN_FREED
from quiesce.model.rules import Kind
from quiesce.simulator.judge.leak_checkers.report import (
    FRAMES_MAX,
    RECORDS_MAX,
    Format,
    Frame,
    NativeLeak,
    NativeMisuse,
    Note,
    Reach,
    Record,
    UnreadableReport,
)

TOOL: Final = "valgrind"
PIECE_BYTES: Final = 1 << 16
DEPTH_MAX: Final = 32
TEXT_CHARACTERS_MAX: Final = 1 << 16

_REACHES: Final = {
    "Leak_DefinitelyLost": Reach.LOST,
    "Leak_IndirectlyLost": Reach.LOST,
    "Leak_PossiblyLost": Reach.DOUBTFUL,
    "Leak_StillReachable": Reach.REACHABLE,
}
_FOREIGN: Final = (OWN_FREED, Kind.INVALID_FREE, "an address that the same family of functions allocated")
_OUTSIDE: Final = (INSIDE, Kind.OUT_OF_BOUNDS, "a use inside of a live block")
_MISUSES: Final = {
    "InvalidFree": _FOREIGN,
    "MismatchedFree": _FOREIGN,
    "InvalidRead": _OUTSIDE,
    "InvalidWrite": _OUTSIDE,
}
_DEAD: Final = {
    "InvalidFree": (FREED_ONCE, Kind.DOUBLE_FREE, "one free of each block"),
    "InvalidRead": (NOT_USED_FREED, Kind.USE_AFTER_FREE, "live memory"),
    "InvalidWrite": (NOT_USED_FREED, Kind.USE_AFTER_FREE, "live memory"),
}
"""What a misuse is where the address lies in a block that was freed before."""
_DIRECT: Final = re.compile(r"[\d,]+ \(([\d,]{1,26}) direct, ")
"""``1,064 (1,024 direct, 40 indirect) bytes``: what only a lost block led to has a record of its own."""
_NOT_IN_A_LINE: Final = re.compile(r"\s+")


class _Reader:
    """Takes the events of the parser; what they complete waits in ``ready``."""

    def __init__(self, path: str) -> None:
        self.ready: list[Record] = []
        self.errors = 0
        self.other_kinds: Counter[str] = Counter()
        self._path = path
        self._names: list[str] = []
        self._text: list[str] = []
        self._text_characters = 0
        self._fields: dict[str, str] = {}
        self._auxiliary: list[str] = []
        self._frame: dict[str, str] = {}
        self._stacks: list[list[Frame]] = []
        self._line = 0
        self._ended = False
        self.parser = expat.ParserCreate()
        self.parser.StartDoctypeDeclHandler = self._refuse_document_type
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._character_data

    def wrong(self, what: str, instead: str) -> UnreadableReport:
        return UnreadableReport(self._path, self.parser.CurrentLineNumber, what, instead)

    def _refuse_document_type(self, *unused: object) -> None:
        raise self.wrong("the document declares a type, and so may define entities", "Valgrind writes none: remove it")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        del attributes
        if not self._names and name != "valgrindoutput":
            raise self.wrong(f"the document is '{name[:80]}' and not 'valgrindoutput'", "name what --xml-file wrote")
        self._names.append(name)
        if len(self._names) > DEPTH_MAX:
            raise self.wrong(f"elements nest deeper than {DEPTH_MAX}", "Valgrind's never do")
        self._text, self._text_characters = [], 0
        if len(self._names) == 2 and name == "error":
            self._fields, self._auxiliary, self._stacks = {}, [], []
            self._line = self.parser.CurrentLineNumber
        elif name == "stack":
            self._stacks.append([])
        elif name == "frame":
            self._frame = {}

    def _character_data(self, text: str) -> None:
        self._text_characters += len(text)
        if self._text_characters > TEXT_CHARACTERS_MAX:
            raise self.wrong(f"a text is longer than {TEXT_CHARACTERS_MAX} characters", "Valgrind's never are")
        self._text.append(text)

    def _end(self, name: str) -> None:
        text = _NOT_IN_A_LINE.sub(" ", "".join(self._text)).strip()
        self._text, self._text_characters = [], 0
        self._names.pop()
        match self._names:
            case ["valgrindoutput"]:
                self._end_part(name, text)
            case ["valgrindoutput", "error"]:
                if name == "auxwhat":
                    self._auxiliary.append(text)
                else:
                    self._fields.setdefault(name, text)
            case ["valgrindoutput", "error", "xwhat"]:
                self._fields.setdefault(name, text)
            case [*_, "frame"]:
                self._frame[name] = text
            case [*_, "stack"] if name == "frame" and self._stacks and len(self._stacks[-1]) < FRAMES_MAX:
                self._stacks[-1].append(_frame(self._frame))
            case _:
                pass

    def _end_part(self, name: str, text: str) -> None:
        if name == "protocoltool" and text != "memcheck":
            raise self.wrong(f"the report is '{text[:80]}''s, which knows no leaks", "run the program under memcheck")
        if name == "fatal_signal":
            self.ready.append(Note("a signal ended the program: what it would have freed is reported as well"))
        if name != "error":
            return
        self.errors += 1
        if self.errors > RECORDS_MAX:
            raise self.wrong(f"there are more than {RECORDS_MAX} errors", "run the program on a smaller input")
        record = self._record()
        if record is not None:
            self.ready.append(record)

    def _record(self) -> Record | None:
        kind = self._fields.get("kind", "")
        stack = tuple(self._stacks[0]) if self._stacks else ()
        if kind in _REACHES:
            size_bytes, blocks = self._number("leakedbytes"), self._number("leakedblocks")
            text = self._fields.get("text", "")
            if direct := _DIRECT.match(text):
                size_bytes = int(direct[1].replace(",", ""))
            return NativeLeak(_REACHES[kind], size_bytes, blocks, self._line, text, stack)
        freed = any(" free'd" in text for text in self._auxiliary)
        rule = (_DEAD.get(kind) if freed else None) or _MISUSES.get(kind)
        if rule is None:
            self.other_kinds[kind or "without a kind"] += 1
            return None
        text = "; ".join([self._fields.get("what", kind), *self._auxiliary])
        return NativeMisuse(*rule, self._line, text, stack)

    def _number(self, name: str) -> int:
        text = self._fields.get(name, "")
        if not (text.isascii() and text.isdigit() and len(text) <= 20):
            raise self.wrong(f"the leak that ends here has no whole number as its '{name}'", "name a file as written")
        return int(text)


def _frame(fields: dict[str, str]) -> Frame:
    file = fields.get("file", "")
    if file:
        place = f"{file}:{fields['line']}" if fields.get("line") else file
    else:
        place = f"in {PurePath(fields['obj']).name}" if fields.get("obj") else ""
    return Frame(fields.get("fn", "") or ("" if place else fields.get("ip", "")), place)


def records(path: str) -> Iterator[Record]:
    """Yield what a report says, as it is read. Raises as :class:`Format` says."""
    reader = _Reader(path)
    with Path(path).open("rb") as stream:
        while True:
            piece = stream.read(PIECE_BYTES)
            try:
                reader.parser.Parse(piece, not piece)
            except expat.ExpatError as error:
                raise _broken(reader, error, ended=not piece) from None
            yield from reader.ready
            reader.ready.clear()
            if not piece:
                break
    for kind, count in sorted(reader.other_kinds.items()):
        yield Note(f"{count} of kind {kind}: not about freeing memory, and so no finding")


def _broken(reader: _Reader, error: expat.ExpatError, *, ended: bool) -> UnreadableReport:
    if ended:
        return reader.wrong("the report ends before </valgrindoutput>", "wait for Valgrind to end, or run it again")
    return reader.wrong(f"not XML as Valgrind writes it: {expat.ErrorString(error.code)}", "name what --xml-file wrote")


FORMAT: Final = Format(TOOL, records, ("<",))
