"""The reader of a log of records, which only grows; ``native/ledger/record_log.h`` has its layout.

Two logs of a run are such: that of call stacks, and that of the bytes that launches touched. A record's number says
where it is, in units of 8 bytes.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from quiesce.model.errors import QuiesceError
from quiesce.simulator.runtime.ledger import was_begun
from quiesce.simulator.runtime.run_folder import DamagedFile, refusing_damage

HEADER: Final = struct.Struct("<QIIQQ")
RECORD: Final = struct.Struct("<II")
LOG_BYTES: Final = 1 << 30
"""Of address space; only what was written costs anything."""


class RecordLog:
    """A log of ``contents`` in ``data``, with the magic number and the layout of ``form``.

    Raises :class:`QuiesceError` for data that is none.
    """

    content_bytes_max = LOG_BYTES

    def __init__(self, data: mmap.mmap | memoryview, form: tuple[int, int], contents: str, name: str = "") -> None:
        self._data = data
        self._name = name or f"the log of {contents}"
        if len(data) < HEADER.size or HEADER.unpack_from(data)[:2] != form:
            raise QuiesceError(
                f"{self._name}: this is no log of {contents} of layout {form[1]}; "
                "read it with the quiesce that wrote it"
            )
        self._read_bytes = HEADER.size
        self._texts = {0: ""}

    @property
    def lost(self) -> int:
        """How many records found no room."""
        return int(HEADER.unpack_from(self._data)[4])

    def news(self) -> Iterator[tuple[int, int]]:
        """Yield the kind and the number of each record that was added since the last time."""
        while self._read_bytes < self._used:
            kind, length = self._head(self._read_bytes)
            if not kind:  # nothing was written there
                raise DamagedFile(self._name)
            yield kind, self._read_bytes // 8
            self._read_bytes += (RECORD.size + length + 7) // 8 * 8

    def record(self, number: int) -> tuple[int, bytes]:
        """Return the kind and the content of the record with a number."""
        start = 8 * number
        kind, length = self._head(start)
        if length > min(self.content_bytes_max, min(self._used, len(self._data)) - start - RECORD.size):
            raise DamagedFile(self._name)
        return kind, bytes(self._data[start + RECORD.size : start + RECORD.size + length])

    def text(self, number: int) -> str:
        """Return the record with a number, which is a text; 0 stands for an empty one."""
        if number not in self._texts:
            self._texts[number] = self.record(number)[1].decode("utf-8", "replace")
        return self._texts[number]

    @property
    def _used(self) -> int:
        return int(HEADER.unpack_from(self._data)[3])

    def _head(self, start: int) -> tuple[int, int]:
        with refusing_damage(self._name):
            kind, length = RECORD.unpack_from(self._data, start)
        return kind, length


def log_in_process(library: ctypes.CDLL, function: str) -> memoryview | None:
    """Return the log of the machine that runs in this process, which lives as long as the machine; None without one.

    ``function``, of the simulated runtime, says where the log is.
    """
    ask = getattr(library, function)
    ask.restype = ctypes.c_void_p
    address = ask()
    return memoryview((ctypes.c_char * LOG_BYTES).from_address(address)).cast("B") if address else None


def log_in_file(path: Path) -> mmap.mmap | None:
    """Map the log in a file; None where none was begun."""
    try:
        if not was_begun(path):
            return None
        with path.open("rb") as opened, refusing_damage(path):  # it may be empty
            return mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError:
        return None
