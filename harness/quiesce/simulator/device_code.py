"""What is known of the device code of a process: the names of its variables, and sources that no file holds.

A variable is a block of memory that a module makes when it is loaded, or when it is used first. A log next to the
ledger has their names; ``native/code/variable.c`` writes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quiesce.simulator.kernel_names import readable_kernel_name
from quiesce.simulator.program_sources import ProgramSources

_FIELDS: Final = 3
_SCOPE_OF_A_FILE: Final = re.compile(r"\b_INTERNAL_\w+::")
"""What nvcc puts before the name of what only one file knows."""


@dataclass(frozen=True, slots=True)
class NamedVariable:
    """A variable of device code. ``number`` is that of the record of its allocation."""

    number: int
    address: int
    name: str


class VariableLog:
    """The names of the variables of a process, which may still run and make more; without a ledger there are none."""

    def __init__(self, ledger: Path | None) -> None:
        self._path = ledger.with_suffix(".variables") if ledger is not None else None
        self._read_bytes = 0
        self._by_number: dict[int, str] = {}
        self._by_address: dict[int, list[NamedVariable]] = {}

    def name(self, number: int) -> str:
        """Return the name of the variable that the record of a number allocated, or an empty text."""
        self._read()
        return self._by_number.get(number, "")

    def name_at(self, address: int, number: int) -> str:
        """Return the name of the last variable that began at an address before a record of a number."""
        self._read()
        return next((each.name for each in reversed(self._by_address.get(address, ())) if each.number < number), "")

    def _read(self) -> None:
        if self._path is None:
            return
        try:
            with self._path.open("rb") as stream:
                stream.seek(self._read_bytes)
                whole, ending, _ = stream.read().rpartition(b"\n")  # of a process that was killed the last may be cut
        except FileNotFoundError:
            return
        self._read_bytes += len(whole) + len(ending)
        for each in _parsed(whole.decode("utf-8", "replace")):
            self._by_number[each.number] = each.name
            self._by_address.setdefault(each.address, []).append(each)


class DeviceCode:
    """What is known of the device code of a process, by its ledger; the process may still run."""

    def __init__(self, ledger: Path | None) -> None:
        self.variables = VariableLog(ledger)
        self.sources = ProgramSources(ledger.parent if ledger is not None else None)


NO_CODE: Final = DeviceCode(None)


def _parsed(text: str) -> Iterator[NamedVariable]:
    for line in text.split("\n"):
        words = line.split("\t")
        if len(words) == _FIELDS:
            yield NamedVariable(int(words[0]), int(words[1], 16), name_in_source(words[2]))


def name_in_source(name: str) -> str:
    """Return the name of a variable as its source has it: ``settings::table``."""
    return _SCOPE_OF_A_FILE.sub("", readable_kernel_name(name))
