"""Functions, files and lines of native code, by a tool of the machine: ``llvm-symbolizer``, else ``addr2line``.

Both read debug information, also where it lies in a file of its own, tell inlined functions apart and demangle the
names of C++ and Rust; they are asked once for all addresses of a file, when a report is made. Where neither is
installed, the files' own symbols give the names.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from quiesce.findings import Frame
from quiesce.simulator.symbols import Symbols

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
