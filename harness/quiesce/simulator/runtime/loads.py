"""What the dynamic loader did in the processes of one run: which program began, and whose runtimes were loaded.

The loader's audit module (``audit/``) writes it into the folder of the run, one record for each thing in each process.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quiesce.simulator.runtime.run_folder import refusing_damage

FILE_NAME: Final = "loads"
_FIELDS: Final = 4


class Loaded(enum.StrEnum):
    """What happened. The text is what the module writes."""

    STARTED = "started"
    """A program began, and its loader listens: no other process finds the simulated runtime (static programs, those of
    another C library than glibc, of another architecture, or whose environment was emptied)."""
    ANSWERED = "answered"
    """A vendor's runtime or driver was asked for, and the simulated one was opened instead."""
    REAL = "real"
    """A vendor's own runtime or driver was loaded: of another version or vendor than the run's flavour."""
    OWN = "own"
    """A library of the run's flavour was loaded."""
    OTHER = "other"
    """A runtime of another version or vendor than the run's flavour was needed, and a stub of that name was loaded.
    What it has in common with the flavour's is simulated, with the layouts and by the rules of the flavour."""
    REDIRECTED = "redirected"
    """A file has a CUDA runtime linked into it. Its public functions were redirected to the simulated one; in place of
    a client stands the runtime's version (12090 for 12.9), empty where that is not known."""
    UNREDIRECTED = "unredirected"
    """A file has a CUDA runtime linked into it, or a part of one, which was left alone; in place of a client stands
    why."""
    COMPILER = "compiler"
    """A vendor's compiler was found at this path, and the run's own one was opened instead, which uses it."""
    UNHEARD = "unheard"
    """A program goes on without the module: a library that it starts with (the client here) needs more static
    thread-local storage than a loader with a module has, as ThreadSanitizer's. Only ``LD_LIBRARY_PATH`` leads to the
    simulated runtime then, in this process and those that it starts."""


_KINDS: Final = frozenset(each.value for each in Loaded)


@dataclass(frozen=True, slots=True)
class Load:
    """One thing that a process did. A program that loads again and again is told once."""

    kind: Loaded
    process: int
    path: Path
    """The program that began; the name or path as it was asked for; or the file that was loaded."""
    client: Path
    """The file that asked: a program, or a library that needs or opens another. Of no meaning for a program's start."""

    @property
    def detail(self) -> str:
        """What stands in place of a client, where the kind says so."""
        return "" if self.client == Path() else str(self.client)


def read_loads(folder: Path) -> tuple[Load, ...]:
    """Return what was written into the folder of a run, in its order; nothing where no loader listened.

    Raises :class:`QuiesceError` for a file that is damaged.
    """
    path = folder / FILE_NAME
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return ()
    with refusing_damage(path):
        return tuple(_loads([os.fsdecode(field) for field in content.split(b"\0")]))


def _loads(fields: list[str]) -> Iterator[Load]:
    """Yield the whole records; one that found no room on the disk is cut, and others follow it."""
    place = 0
    while place + _FIELDS <= len(fields):
        kind, process, path, client = fields[place : place + _FIELDS]
        if kind in _KINDS and process.isdecimal():
            yield Load(Loaded(kind), int(process), Path(path), Path(client))
            place += _FIELDS
        else:
            place += 1
