"""The machine that ``quiesce exec`` gave this process, seen from within while it runs.

Nothing here loads the runtime or starts a machine: the program does, often late, with its first import of a client. And
nothing here makes a call of the vendor's: what the program may see stays as it is.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any, Final

from quiesce.simulator.runtime.build import LIBRARY_NAME
from quiesce.simulator.runtime.ledger import Ledger, mapped_ledger
from quiesce.simulator.runtime.stacks import CallStacks, mapped_stacks


def own_ledger(folder: Path) -> Path:
    """Return this process's ledger: the last one, for an exec keeps the number of a process that left one."""
    own = (*folder.glob(f"{os.getpid()}.ledger"), *folder.glob(f"{os.getpid()}-*.ledger"))
    return max(own, key=lambda path: (len(path.stem), path.stem))


class OwnMachine:
    """Finds the runtime in this process once a client has loaded it. ``name`` is that of its library."""

    def __init__(self, name: str = LIBRARY_NAME) -> None:
        self._name: Final = name
        self._open = ctypes.CDLL(None).dlopen
        self._open.argtypes = [ctypes.c_char_p, ctypes.c_int]
        self._open.restype = ctypes.c_void_p
        self._library: ctypes.CDLL | None = None
        self._where: Any = lambda: None
        self._address: int | None = None
        self._ledger: Ledger | None = None

    def ledger(self) -> Ledger | None:
        """Return the ledger, which is read in place; None before the first call, and in a child of ``fork``."""
        library = self._loaded()
        address = self._where()
        if library is not None and address != self._address:
            self._address, self._ledger = address, mapped_ledger(library)
        return self._ledger

    def stacks(self) -> CallStacks | None:
        """Return the log of call stacks; None where none was kept."""
        library = self._loaded()
        return None if library is None else mapped_stacks(library)

    def look(self) -> None:
        """Have the live table say what somebody in this process can still reach."""
        library = self._loaded()
        if library is not None and self.ledger() is not None:
            library.quiesce_look()

    def heap_bytes(self) -> int:
        """Return how much of the C heap the runtime itself uses: what is kept of a client's handles, for example."""
        library = self._loaded()
        return 0 if library is None else int(library.quiesce_own_heap())

    def _loaded(self) -> ctypes.CDLL | None:
        if self._library is None and (handle := self._open(self._name.encode(), os.RTLD_NOLOAD | os.RTLD_LAZY)):
            self._library = ctypes.CDLL(self._name, handle=handle)
            self._library.quiesce_own_heap.restype = ctypes.c_uint64
            self._where = self._library.quiesce_ledger
            self._where.restype = ctypes.c_void_p
        return self._library
