"""The reader of a log of call stacks, which a run leaves beside its ledger where it was asked for (``--stacks``).

The layout is that of ``native/ledger/stack_log.h``; a test compares the two. Native code is named when it is read: the
log has addresses, and says which file was mapped there.
"""

from __future__ import annotations

import ctypes
import mmap
import re
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import Final

from quiesce.errors import QuiesceError
from quiesce.findings import Frame
from quiesce.simulator.build import LIBRARY_NAME
from quiesce.simulator.code_places import CodePlaces
from quiesce.simulator.damage import DamagedFile, refusing_damage
from quiesce.simulator.ledger import was_begun

MAGIC: Final = 0x31534B4353455551
LAYOUT: Final = 2
HEADER: Final = struct.Struct("<QIIQQ")
RECORD: Final = struct.Struct("<II")
MAPPING: Final = struct.Struct("<3Q")
PARTS: Final = struct.Struct("<II")
LOG_BYTES: Final = 1 << 30
"""Of address space; only what was written costs anything."""
PYTHON_FRAME: Final = struct.Struct("<4I")
INTERPRETER: Final = re.compile(r"(?:lib)?python\d?[\d.]*t?(?:\.so[\d.]*)?$")
"""The file that an interpreter's own code is in."""
_MAPPING_KIND, _STACK_KIND = 1, 5
_CONTENT_BYTES_MAX: Final = 1 << 20
"""No record is longer: the longest are paths, and stacks of 48 frames."""


class CallStack:
    """Where a call came from, from the innermost frame outwards."""

    def __init__(self, python: tuple[Frame, ...], code: tuple[tuple[str, int], ...], places: CodePlaces) -> None:
        self.python = python
        self._whole = code
        outside = dropwhile(lambda place: Path(place[0]).name == LIBRARY_NAME, code)
        inner = takewhile(lambda place: not INTERPRETER.match(Path(place[0]).name), outside)
        self.code = tuple(inner if python else outside)
        """Its native code but for the simulated runtime's own: files that were mapped and offsets into them.

        Where there are Python frames it ends where the interpreter begins.
        """
        self._places = places

    def is_in(self, file: re.Pattern[str]) -> bool:
        """Whether it goes through code of a file that matches, also below the interpreter. No name is looked up."""
        files = {*(frame.file for frame in self.python), *(name for name, _ in self._whole)}
        return any(map(file.search, files))

    def functions_in(self, file: re.Pattern[str]) -> Iterator[str]:
        """Yield the functions of the files that match, also of those that the interpreter was called by."""
        places = [(name, offset) for name, offset in self._whole if file.search(name)]
        self._places.find(places)
        for name, offset in places:
            yield from (frame.function for frame in self._places.at(name, offset))

    @cached_property
    def native(self) -> tuple[Frame, ...]:
        """The frames of its native code. Finding their names takes a while."""
        return tuple(frame for file, offset in self.code for frame in self._places.at(file, offset))


@dataclass(frozen=True, slots=True)
class _Mapping:
    start: int
    end: int
    offset: int
    file: str


class CallStacks:
    """A log in ``data``. Raises :class:`quiesce.errors.QuiesceError` for data that is none."""

    def __init__(self, data: mmap.mmap | memoryview, name: str = "the log of call stacks") -> None:
        self._data = data
        self._file = name
        if len(data) < HEADER.size or HEADER.unpack_from(data)[:2] != (MAGIC, LAYOUT):
            raise QuiesceError(f"{name}: this is no log of call stacks of layout {LAYOUT}")
        self._read_bytes = HEADER.size
        self._mappings: list[_Mapping] = []
        self._places = CodePlaces()
        self._found: dict[int, CallStack] = {}

    @property
    def lost(self) -> int:
        """How many stacks found no room."""
        return int(HEADER.unpack_from(self._data)[4])

    def stack(self, number: int) -> CallStack | None:
        """Return the stack with a number, which the ledger gives, or None for 0: none was kept."""
        if not number:
            return None
        if number not in self._found:
            self._read_mappings()
            self._found[number] = self._read_stack(number)
        return self._found[number]

    def find(self, numbers: Iterable[int]) -> None:
        """Find the names in some stacks all at once, which is faster than one by one."""
        stacks = filter(None, map(self.stack, numbers))
        self._places.find(place for stack in stacks for place in stack.code)

    def note(self) -> str:
        """Return what to do so that findings say more of where calls came from, or an empty text."""
        lost = f"{self.lost} call stacks found no room in {LOG_BYTES >> 20} MiB" if self.lost else ""
        return "; ".join(filter(None, [lost, self._places.note()]))

    def _content(self, start: int) -> tuple[int, bytes]:
        with refusing_damage(self._file):
            kind, length = RECORD.unpack_from(self._data, start)
        if length > min(_CONTENT_BYTES_MAX, len(self._data) - start - RECORD.size):
            raise DamagedFile(self._file)
        return kind, bytes(self._data[start + RECORD.size : start + RECORD.size + length])

    def _read_mappings(self) -> None:
        used = HEADER.unpack_from(self._data)[3]
        while self._read_bytes < used:
            kind, content = self._content(self._read_bytes)
            if kind == _MAPPING_KIND:
                with refusing_damage(self._file):
                    start, end, offset = MAPPING.unpack_from(content)
                name = content[MAPPING.size :].decode("utf-8", "surrogateescape")
                self._mappings.append(_Mapping(start, end, offset, name))
            elif not kind:  # nothing was written there
                raise DamagedFile(self._file)
            self._read_bytes += (RECORD.size + len(content) + 7) // 8 * 8

    def _read_stack(self, number: int) -> CallStack:
        kind, content = self._content(8 * number)
        if kind != _STACK_KIND:
            raise QuiesceError(f"{self._file}: the log of call stacks has no stack with the number {number}")
        with refusing_damage(self._file):
            native, python = PARTS.unpack(content)
            addresses = struct.iter_unpack("<Q", self._content(8 * native)[1] if native else b"")
            frames = PYTHON_FRAME.iter_unpack(self._content(8 * python)[1] if python else b"")
        return CallStack(
            tuple(Frame(self._text(name), self._text(file), line) for file, name, line, _ in frames),
            tuple(self._code(address) for (address,) in addresses),
            self._places,
        )

    def _text(self, number: int) -> str:
        return self._content(8 * number)[1].decode("utf-8", "replace") if number else ""

    def _code(self, address: int) -> tuple[str, int]:
        inside = address - 1  # a return address lies after its call, which may be the last of its function
        for mapping in self._mappings:
            if mapping.start <= inside < mapping.end:
                return mapping.file, inside - mapping.start + mapping.offset
        return "", inside


def mapped_stacks(library: ctypes.CDLL) -> CallStacks | None:
    """Return the log of the machine that runs in this process, which lives as long as the machine; None without one."""
    library.quiesce_stacks.restype = ctypes.c_void_p
    address = library.quiesce_stacks()
    if not address:
        return None
    return CallStacks(memoryview((ctypes.c_char * LOG_BYTES).from_address(address)).cast("B"))


@contextmanager
def open_stacks(ledger: Path) -> Iterator[CallStacks | None]:
    """Open the log that lies beside a ledger; None where none was kept."""
    path = ledger.with_suffix(".stacks")
    if not path.exists() or not was_begun(path):
        yield None
        return
    with path.open("rb") as opened:
        with refusing_damage(path):  # it may be empty
            data = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        with data:
            yield CallStacks(data, str(path))
