r"""The leak dump of Microsoft's debug C runtime (``_CrtDumpMemoryLeaks``), anywhere in a program's output.

Its form is described under "Find memory leaks with the CRT library" in Microsoft's documentation::

    Detected memory leaks!
    Dumping objects ->
    C:\src\leaky.cpp(20) : {18} normal block at 0x00780E80, 64 bytes long.
     Data: <                > CD CD CD CD CD CD CD CD CD CD CD CD CD CD CD CD
    Object dump complete.

The file and line are there where the allocation was compiled with ``_CRTDBG_MAP_ALLOC``. Blocks of the types *normal*
and *client* are the program's; the runtime keeps the others for itself. Nothing is printed where nothing leaked, and
nothing says who can still reach a block.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import PureWindowsPath
from typing import Final

from quiesce.model.wording import counted
from quiesce.simulator.judge.leak_checkers.report import (
    RECORDS_MAX,
    Format,
    Frame,
    NativeLeak,
    Note,
    Reach,
    Record,
    UnreadableReport,
    log_lines,
)

TOOL: Final = "msvc-crt"
_BEGIN: Final = "Detected memory leaks!"
_END: Final = "Object dump complete."
_OBJECT: Final = re.compile(
    r"\{\d{1,20}\} (?P<type>normal|client|crt|ignore|free) block at (?:0x)?[0-9A-Fa-f]{1,16}"
    r"(?:, subtype [0-9A-Fa-f]+)?, (?P<size>\d{1,20}) bytes long\."
)
_SOURCE: Final = re.compile(r"(?P<file>.*)\((?P<line>\d{1,9})\) : ")
"""What stands before an object."""
_OWN: Final = ("normal", "client")


class _Dump:
    """One dump. Blocks of one size from one line of source become one leak."""

    def __init__(self, path: str, begun: int) -> None:
        self._path = path
        self.begun = begun
        self._leaks: dict[tuple[str, int], NativeLeak] = {}
        self._runtimes = 0

    def see(self, number: int, match: re.Match[str]) -> None:
        if match["type"] not in _OWN:
            self._runtimes += 1
            return
        source = _SOURCE.fullmatch(match.string[: match.start()])
        place = f"{PureWindowsPath(source['file'].strip()).name}:{source['line']}" if source else ""
        size_bytes = int(match["size"])
        known = self._leaks.get((place, size_bytes))
        if known is not None:
            together = replace(known, size_bytes=known.size_bytes + size_bytes, blocks=known.blocks + 1)
            self._leaks[place, size_bytes] = together
            return
        if len(self._leaks) == RECORDS_MAX:
            raise UnreadableReport(
                self._path, number, f"there are more than {RECORDS_MAX} leaks", "run the program on a smaller input"
            )
        stack = (Frame("", place),) if place else ()
        self._leaks[place, size_bytes] = NativeLeak(Reach.UNKNOWN, size_bytes, 1, number, match.string.strip(), stack)

    def records(self) -> Iterator[Record]:
        yield from self._leaks.values()
        if self._runtimes:
            verb = "is no leak" if self._runtimes == 1 else "are no leaks"
            yield Note(f"{counted(self._runtimes, 'block')} that the C runtime keeps for itself {verb}")


def records(path: str) -> Iterator[Record]:
    """Yield what a log says, dump by dump. Raises as :class:`Format` says."""
    dump: _Dump | None = None
    for number, line in log_lines(path):
        if _BEGIN in line:
            if dump is not None:
                raise _unfinished(path, dump)
            dump = _Dump(path, number)
        elif dump is None:
            continue
        elif _END in line:
            yield from dump.records()
            dump = None
        elif match := _OBJECT.search(line):
            dump.see(number, match)
    if dump is not None:
        raise _unfinished(path, dump)


def _unfinished(path: str, dump: _Dump) -> UnreadableReport:
    return UnreadableReport(
        path, dump.begun, f"the dump that begins here has no '{_END}'", "keep the program's whole output"
    )


FORMAT: Final = Format(TOOL, records, (_BEGIN,))
