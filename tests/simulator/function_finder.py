"""A program that finds the functions of a linked runtime as the loader's module does, in a file that nobody runs."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quiesce.simulator.runtime.build import AUDIT_SOURCES, find_compiler

_SOURCE: Final = Path(__file__).with_name("find_functions.c")
_PROGRAMS: Final = frozenset({"audit.c", "redirect.c"})


@dataclass(frozen=True)
class Found:
    """Functions by name, with their addresses; the runtime's version; and what is wrong with them."""

    functions: Mapping[str, str]
    version: int
    wrong: str = ""


class Finder:
    """The program, compiled into a folder."""

    def __init__(self, folder: Path) -> None:
        self._program = folder / "find_functions"
        sources = [str(path) for path in sorted(AUDIT_SOURCES.glob("*.c")) if path.name not in _PROGRAMS]
        flags = ("-O2", "-w", "-D_GNU_SOURCE", f"-I{AUDIT_SOURCES}", "-o", str(self._program))
        subprocess.run([*find_compiler(), *flags, str(_SOURCE), *sources], check=True)

    def find(self, how: str, path: Path) -> Found:
        """Find them by ``symbols`` or by ``names``."""
        done = subprocess.run([self._program, how, path], capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines()
        assert done.returncode in (0, 1), done
        if done.returncode:
            return Found({}, 0, lines[0])
        pairs = (line.split() for line in lines[:-1])
        return Found({name: address for address, name in pairs}, int(lines[-1]))
