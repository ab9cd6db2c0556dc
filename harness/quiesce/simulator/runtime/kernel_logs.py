"""The readers of the logs of kernels next to a ledger: wrong accesses, what was not computed, touched bytes.

``native/kernels/access_log.h``, ``uncomputed.h`` and ``touched.h`` write them. The log of touched bytes says which
bytes each launch read and wrote; a test compares its layout with that of ``touched.h``.
"""

from __future__ import annotations

import ctypes
import enum
import mmap
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quiesce.simulator.runtime.device_code import readable_kernel_name, readable_variable_name
from quiesce.simulator.runtime.record_log import RecordLog, log_in_file, log_in_process
from quiesce.simulator.runtime.run_folder import refusing_damage, whole_lines

FIELDS: Final = 21
OPERAND: Final = "its operand "
"""How the place of an access begins that a function of a library makes (``native/kernels/wrong_access.c``)."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an instruction is: ``source`` and ``caller``, which inlines it, are FILE:LINE, or empty if not known."""

    source: str
    caller: str
    ptx_line: int
    instruction: str

    @property
    def operand(self) -> str:
        """The operand that a function of a library uses, which has no code; empty for what a kernel does."""
        return "" if self.source or self.ptx_line else self.instruction


@dataclass(frozen=True, slots=True)
class OtherAccess:
    """The access of another thread that a wrong access meets."""

    block: tuple[int, ...]
    thread: tuple[int, ...]
    writes: bool
    place: Place


@dataclass(frozen=True, slots=True)
class LoggedAccess:
    """A wrong access: the first of its kind of one instruction, in launches from one place by one test.

    ``launch`` is the number of the launch's record. ``test`` is the test of pytest that launched the kernel, or empty.
    ``symbol`` is the kernel's name as its compiler wrote it. ``made`` and ``freed`` are the numbers of the lines that
    say who allocated the block of a device's heap which is missed, and who freed it.
    """

    launch: int
    test: str
    kernel: str
    block: tuple[int, ...]
    thread: tuple[int, ...]
    place: Place
    other: OtherAccess | None
    count: int
    arrays: tuple[str, str] = ("", "")
    """The array of shared memory that it has to stay in, and the one that it uses; empty: none."""
    symbol: str = ""
    made: int | None = None
    freed: int | None = None


def read_accesses(ledger: Path) -> tuple[LoggedAccess, ...]:
    """Return the wrong accesses of a process, in the order of the observations that name them by number.

    Raises :class:`QuiesceError` for a log that is damaged.
    """
    path = ledger.with_suffix(".accesses")
    with refusing_damage(path):
        return tuple(map(_access, whole_lines(path, FIELDS)))


def _access(fields: list[str]) -> LoggedAccess:
    count, launch, test, kernel, block, thread, *places, array, used, made, freed = fields
    other_block, other, writes = places[4:7]
    return LoggedAccess(
        int(launch),
        test,
        readable_kernel_name(kernel),
        _index(block),
        _index(thread),
        _place(places[:4]),
        OtherAccess(_index(other_block), _index(other), writes == "1", _place(places[7:])) if other else None,
        int(count),
        (readable_variable_name(array), readable_variable_name(used)),
        kernel,
        _line(made),
        _line(freed),
    )


def _line(text: str) -> int | None:
    return int(text) if text else None


def _place(fields: list[str]) -> Place:
    source, caller, ptx_line, instruction = fields
    return Place(source, caller, int(ptx_line), instruction)


def _index(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(","))


@dataclass(frozen=True, slots=True)
class Uncomputed:
    """A kernel that was launched and did not compute, and why. ``has_begun``: it computed, but not to its end."""

    kernel: str
    reason: str
    has_begun: bool = False


def read_uncomputed(ledger: Path) -> tuple[Uncomputed, ...]:
    """Return the kernels of one process that did not compute to their end, each once, in the order of the launches."""
    lines = whole_lines(ledger.with_suffix(".uncomputed"), 3)
    kernels = (Uncomputed(readable_kernel_name(name), reason, begun == "1") for name, reason, begun in lines)
    return tuple(dict.fromkeys(kernels))


MAGIC: Final = 0x31454843554F5451
LAYOUT: Final = 1
COUNT: Final = struct.Struct("<Q")
PIECE: Final = struct.Struct("<2Q4I")
LAUNCH: Final = struct.Struct("<Q2I")
_SET_KIND, _LAUNCH_KIND = 2, 3
_NAME: Final = "the log of touched bytes"
_ALL_BITS: Final = (1 << 64) - 1


class Touch(enum.IntEnum):
    """A kind of use."""

    READ = 0
    WRITE = 1
    STRONG_READ = 2
    """Volatile, relaxed or acquire: it may take part in an order of the kernels' own."""
    STRONG_WRITE = 3
    ATOMIC = 4

    @property
    def writes(self) -> bool:
        """Whether the bytes may have other values after it."""
        return self not in (Touch.READ, Touch.STRONG_READ)

    @property
    def is_strong(self) -> bool:
        """Whether two of these at the same bytes are no race."""
        return self >= Touch.STRONG_READ


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of one kind of use. Without a ``mask`` all from ``start`` to ``end`` are touched.

    A mask has a bit for each byte from the start on, the lowest first. One that is shorter than the piece is repeated.
    ``place`` is the line of the first access to a part of it, or its instruction.
    """

    start: int
    end: int
    touch: Touch
    place: str
    mask: bytes


@dataclass(frozen=True, slots=True)
class Touched:
    """What a launch touched."""

    kernel: str
    pieces: tuple[Piece, ...]


class TouchedLog:
    """A log that is written from the first launch on; ``find`` returns it, or None as long as there is none."""

    def __init__(self, find: Callable[[], mmap.mmap | memoryview | None]) -> None:
        self._find = find
        self._log: RecordLog | None = None
        self._launches: dict[int, tuple[int, int]] = {}
        self._sets: dict[int, tuple[Piece, ...]] = {}

    @property
    def lost(self) -> int:
        """Of how many launches it has no set, because there was no room for it."""
        log = self._read_launches()
        return log.lost if log else 0

    def of(self, launch: int) -> Touched | None:
        """Return what a launch touched, by the number of its observation; None where nothing is known of it."""
        log = self._log
        if log is None or launch not in self._launches:
            log = self._read_launches()
        found, kernel = self._launches.get(launch, (0, 0))
        if log is None or not found:
            return None
        if found not in self._sets:
            with refusing_damage(_NAME):
                self._sets[found] = tuple(_pieces(log, found))
        return Touched(readable_kernel_name(log.text(kernel)), self._sets[found])

    def _read_launches(self) -> RecordLog | None:
        if self._log is None and (data := self._find()) is not None:
            self._log = RecordLog(data, (MAGIC, LAYOUT), "touched bytes")
        if self._log is not None:
            for kind, number in self._log.news():
                if kind == _LAUNCH_KIND:
                    with refusing_damage(_NAME):
                        launch, found, kernel = LAUNCH.unpack_from(self._log.record(number)[1])
                    self._launches[launch] = found, kernel
        return self._log


def _pieces(log: RecordLog, number: int) -> Iterator[Piece]:
    _, content = log.record(number)
    (count,) = COUNT.unpack_from(content)
    mask_at = COUNT.size + count * PIECE.size
    for start, end, place, touch, mask_bytes, _ in PIECE.iter_unpack(content[COUNT.size : mask_at]):
        mask = content[mask_at : mask_at + mask_bytes]
        yield Piece(start ^ _ALL_BITS, end ^ _ALL_BITS, Touch(touch), log.text(place), mask)
        mask_at += mask_bytes


def mapped_touched(library: ctypes.CDLL) -> TouchedLog:
    """Return the log of the machine that runs in this process, which lives as long as the machine."""
    return TouchedLog(lambda: log_in_process(library, "quiesce_touched"))


def touched_beside(ledger: Path) -> TouchedLog:
    """Return the log that lies, or will lie, next to a ledger."""
    return TouchedLog(lambda: log_in_file(ledger.with_suffix(".touched")))
