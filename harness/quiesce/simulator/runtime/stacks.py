"""The reader of a log of call stacks, which a run leaves next to its ledger where it was asked for (``--stacks``).

The layout is that of ``native/ledger/stack_log.h``; a test compares the two. Native code is named when it is read: the
log has addresses, and says which file was mapped there.

``llvm-symbolizer``, else ``addr2line``, names functions, files and lines. Both read debug information, also where it
lies in a file of its own, tell inlined functions apart and demangle the names of C++ and Rust; they are asked once for
all addresses of a file, when a report is made. Where neither is installed, the files' own symbols give the names.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import shutil
import struct
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quiesce.model.errors import QuiesceError
from quiesce.model.findings import Frame
from quiesce.simulator.runtime.build import LIBRARY_NAME
from quiesce.simulator.runtime.record_log import LOG_BYTES, RecordLog, log_in_file, log_in_process
from quiesce.simulator.runtime.run_folder import refusing_damage

if TYPE_CHECKING:
    from quiesce.simulator.runtime.elf_reading import Symbols

TOOLS: Final = {
    "llvm-symbolizer": ("--output-style=GNU", "-a", "-f", "-i", "-C", "--obj={}"),
    "addr2line": ("-a", "-f", "-i", "-C", "-e", "{}"),
}
"""In order of preference, with the options by which they answer alike; ``{}`` is the file."""
SECONDS_MAX: Final = 60
"""How long a tool may read one file: debug information of a few GiB takes this long."""
_RUST_HASH: Final = re.compile(r"::h[0-9a-f]{16}$")
_CLONE: Final = re.compile(r" (?:\(\.[\w.]+\)|\[clone [^]]*\])$|\.(?:constprop|isra|part|cold)\.\d+$")
"""The ending that a compiler adds to the name of a function when it makes another version of it."""
_DISCRIMINATOR: Final = re.compile(r" \(discriminator \d+\)$")


class CodePlaces:
    """What lies where in native code. A file that changed, went away or was never one has no names."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int], tuple[Frame, ...]] = {}
        self._symbols: dict[str, Symbols] = {}
        self._lacks_tool = False

    def note(self) -> str:
        """Return what to install where lines were wanted and no tool is there, or an empty text."""
        if not self._lacks_tool:
            return ""
        return (
            "native code is shown without lines: neither llvm-symbolizer nor addr2line is installed; "
            "type 'apt install binutils' (or 'llvm') and run again"
        )

    def find(self, wanted: Iterable[tuple[str, int]]) -> None:
        """Find what lies at offsets into files, each file's at once."""
        by_module: dict[str, set[int]] = defaultdict(set)
        for module, offset in wanted:
            if (module, offset) not in self._found:
                by_module[module].add(offset)
        for module, offsets in by_module.items():
            self._find_in(module, sorted(offsets))

    def at(self, module: str, offset: int) -> tuple[Frame, ...]:
        """Return what lies at an offset into a file: one frame, after those that are inlined there."""
        self.find([(module, offset)])
        return self._found[module, offset]

    def _find_in(self, module: str, offsets: list[int]) -> None:
        symbols = self._symbols_of(module)
        addresses = {offset: symbols.address(offset) for offset in offsets}
        told = self._ask(module, sorted({address for address in addresses.values() if address is not None}))
        for offset, address in addresses.items():
            places = told.get(address, []) if address is not None else []
            self._found[module, offset] = tuple(_frames(module, offset, places, symbols.name(offset) or ""))

    def _symbols_of(self, module: str) -> Symbols:
        from quiesce.simulator.runtime.elf_reading import Symbols  # few runs name native code

        if module not in self._symbols:
            self._symbols[module] = Symbols(Path(module))
        return self._symbols[module]

    def _ask(self, module: str, addresses: list[int]) -> dict[int, list[tuple[str, str]]]:
        if not addresses:
            return {}
        tool = next((tool for tool in TOOLS if shutil.which(tool)), None)
        self._lacks_tool |= tool is None
        return ask(tool, module, addresses) if tool else {}


def ask(tool: str, module: str, addresses: list[int]) -> dict[int, list[tuple[str, str]]]:
    """Return the function and ``file:line`` at each address of a file, inlined ones first, as a tool says it."""
    command = [tool, *(option.format(module) for option in TOOLS[tool])]
    environment = {**os.environ, "DEBUGINFOD_URLS": "", "LC_ALL": "C"}  # nothing is asked of the network
    try:
        done = subprocess.run(  # noqa: S603 - a list, no shell
            command,
            input="".join(f"{address:#x}\n" for address in addresses),
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS_MAX,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return dict(_answers(done.stdout.splitlines()))


def _answers(lines: list[str]) -> Iterator[tuple[int, list[tuple[str, str]]]]:
    starts = [number for number, line in enumerate(lines) if line.startswith("0x")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        pairs = [line for line in lines[start + 1 : end] if line]
        yield int(lines[start], 16), list(zip(pairs[::2], pairs[1::2], strict=False))


def _frames(module: str, offset: int, places: list[tuple[str, str]], symbol: str) -> Iterator[Frame]:
    for function, where in places or [("??", "??:0")]:
        file, _, line = _DISCRIMINATOR.sub("", where).rpartition(":")
        number = int(line) if line.isdecimal() and file != "??" else 0
        name = symbol if function == "??" else function
        yield Frame(_plain(name), os.path.normpath(file) if number else "", number, module, offset)


def _plain(function: str) -> str:
    return _RUST_HASH.sub("", _CLONE.sub("", function))


MAGIC: Final = 0x31534B4353455551
LAYOUT: Final = 2
MAPPING: Final = struct.Struct("<3Q")
PARTS: Final = struct.Struct("<II")
PYTHON_FRAME: Final = struct.Struct("<4I")
INTERPRETER: Final = re.compile(r"(?:lib)?python\d?[\d.]*t?(?:\.so[\d.]*)?$")
"""The file that an interpreter's own code is in."""
_MAPPING_KIND, _STACK_KIND = 1, 5


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


class CallStacks(RecordLog):
    """A log in ``data``. Raises :class:`QuiesceError` for data that is none."""

    content_bytes_max = 1 << 20  # the longest are paths, and stacks of 48 frames

    def __init__(self, data: mmap.mmap | memoryview, name: str = "") -> None:
        super().__init__(data, (MAGIC, LAYOUT), "call stacks", name)
        self._mappings: list[_Mapping] = []
        self._places = CodePlaces()
        self._found: dict[int, CallStack] = {}

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

    def _read_mappings(self) -> None:
        for kind, number in self.news():
            if kind == _MAPPING_KIND:
                _, content = self.record(number)
                with refusing_damage(self._name):
                    start, end, offset = MAPPING.unpack_from(content)
                file = content[MAPPING.size :].decode("utf-8", "surrogateescape")
                self._mappings.append(_Mapping(start, end, offset, file))

    def _read_stack(self, number: int) -> CallStack:
        kind, content = self.record(number)
        if kind != _STACK_KIND:
            raise QuiesceError(f"{self._name}: the log of call stacks has no stack with the number {number}")
        with refusing_damage(self._name):
            native, python = PARTS.unpack(content)
            addresses = struct.iter_unpack("<Q", self.record(native)[1] if native else b"")
            frames = PYTHON_FRAME.iter_unpack(self.record(python)[1] if python else b"")
        return CallStack(
            tuple(Frame(self.text(name), self.text(file), line) for file, name, line, _ in frames),
            tuple(self._code(address) for (address,) in addresses),
            self._places,
        )

    def _code(self, address: int) -> tuple[str, int]:
        inside = address - 1  # a return address lies after its call, which may be the last of its function
        for mapping in self._mappings:
            if mapping.start <= inside < mapping.end:
                return mapping.file, inside - mapping.start + mapping.offset
        return "", inside


def mapped_stacks(library: ctypes.CDLL) -> CallStacks | None:
    """Return the log of the machine that runs in this process, which lives as long as the machine; None without one."""
    data = log_in_process(library, "quiesce_stacks")
    return None if data is None else CallStacks(data)


@contextmanager
def open_stacks(ledger: Path) -> Iterator[CallStacks | None]:
    """Open the log that lies beside a ledger; None where none was kept."""
    path = ledger.with_suffix(".stacks")
    data = log_in_file(path)
    if data is None:
        yield None
        return
    with data:
        yield CallStacks(data, str(path))
