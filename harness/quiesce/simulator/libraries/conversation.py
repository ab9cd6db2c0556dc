"""What the process says to a client, and hears from it, while it computes a call: ``native/kernels/hosted.c`` answers.

A message is one packet. The bytes that a call reads and writes lie in memory that both have, which the client made.
"""

from __future__ import annotations

import enum
import mmap
import os
import socket
import struct
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

Array: TypeAlias = NDArray[Any]

NAME_BYTES: Final = 64
SETTINGS: Final = 24
WORDS: Final = 32
FLOATS: Final = 8
KEPT_BYTES: Final = 8192
NAMES_BYTES: Final = 512
OPERANDS: Final = 32

HEAD: Final = struct.Struct(f"<{NAME_BYTES}s3Q{SETTINGS}q")
TAIL: Final = struct.Struct("<QIIQ")
WORDS_AT: Final = HEAD.size
FLOATS_AT: Final = WORDS_AT + 8 * WORDS
TAIL_AT: Final = FLOATS_AT + 8 * FLOATS
KEPT_AT: Final = TAIL_AT + TAIL.size
_SAID: Final = struct.Struct("<I?3x")
_ASKED: Final = struct.Struct("<IIIIQQQqQ")
_PACKET_BYTES: Final = _SAID.size + KEPT_AT + KEPT_BYTES
_WIDEST: Final = 16
"""Larger elements are several accesses, as for a GPU."""
_ALIGNMENT: Final = 64
_FIRST_BYTES: Final = 1 << 20
_HELD_BYTES: Final = 1 << 28
"""So much shared memory stays from call to call."""


class Said(enum.IntEnum):
    """What a client says."""

    BEGIN = 1
    RUN = 2
    GO_ON = 3


class _Asked(enum.IntEnum):
    HOST = 1
    READ = 2
    WRITE = 3
    USE = 4
    RESULT = 5
    DONE = 6
    GATHER = 7
    SCATTER = 8


class Done(enum.IntFlag):
    """What comes of a call that began."""

    RUNS = 1
    """There is something to do on its stream."""
    WAITS = 2
    """The caller waits for that, for the result goes to the host's memory."""
    UNKNOWN = 4
    """Nothing describes such a call: it fails by its name."""


class Ended(Exception):
    """The client has ended, or is none."""


class SharedMemory:
    """The memory that the client has too. Pieces of it are taken for one call."""

    def __init__(self, number: int) -> None:
        self._number, self._size, self._used = number, 0, 0
        self._mapped: mmap.mmap | None = None

    def begin(self) -> None:
        """Take nothing yet."""
        if self._mapped is not None and self._used > _HELD_BYTES:
            self._mapped.madvise(mmap.MADV_REMOVE)
        self._used = 0

    def take(self, dtype: DTypeLike, *shape: int) -> tuple[int, Array]:
        """Return a piece, by its place and as an array, which nobody has cleared."""
        kind = np.dtype(dtype)
        count = int(np.prod(shape, dtype=np.int64))
        place = -(-self._used // _ALIGNMENT) * _ALIGNMENT
        self._used = place + count * kind.itemsize
        if self._used > self._size:
            self._size = max(2 * self._size, _FIRST_BYTES, -(-self._used // mmap.PAGESIZE) * mmap.PAGESIZE)
            os.ftruncate(self._number, self._size)
            self._mapped = mmap.mmap(self._number, self._size)  # arrays keep the one before
        assert self._mapped is not None
        return place, np.frombuffer(self._mapped, kind, count, place).reshape(shape)


@dataclass(frozen=True, slots=True)
class Heard:
    """A call that a client made, as ``struct hosted_call`` has it."""

    said: Said
    content: bytes

    @property
    def name(self) -> str:
        """The function."""
        return self.content[:NAME_BYTES].split(b"\0", 1)[0].decode()

    @property
    def settings(self) -> tuple[int, ...]:
        """Those of the library's handle: HEAD has three numbers between the name and them."""
        return HEAD.unpack_from(self.content)[4:]

    @property
    def object(self) -> int:
        """The serial of the library's handle."""
        serial: int = HEAD.unpack_from(self.content)[1]
        return serial

    @property
    def area(self) -> int:
        """Memory of the client's own that the handle was given to work in, or 0."""
        address: int = HEAD.unpack_from(self.content)[3]
        return address

    @property
    def kept(self) -> bytes:
        """What was read of the host's memory when the function was called."""
        return self.content[KEPT_AT:]


class Client:
    """The other side of a connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.was_wrong = False
        """Whether some of the range that was read or written last was not there. It reads as zero."""
        _, numbers, _, _ = socket.recv_fds(connection, 1, 1)
        if not numbers:
            raise Ended
        self.memory = SharedMemory(numbers[0])

    def hear(self) -> Heard:
        """Return the next call. Raises Ended."""
        said, content = self._receive()
        if said not in (Said.BEGIN, Said.RUN) or len(content) < KEPT_AT:
            raise Ended
        return Heard(Said(said), content)

    def read_host(self, operand: int, address: int, size_bytes: int) -> bytes:
        """Return bytes of the host's memory, as they are when the function is called."""
        return self._ask(_Asked.HOST, operand, address=address, count=size_bytes)

    def read(self, operand: int, address: int, dtype: DTypeLike, count: int, rows: int, pitch: int) -> Array:
        """Return rows of elements, ``pitch`` bytes from one to the next, once they were judged."""
        place, made = self.memory.take(dtype, rows, count)
        if made.size:
            self._move(_Asked.READ, operand, address, made.dtype, count, rows, pitch, place)
        return made

    def write(self, operand: int, address: int, place: int, values: Array, pitch: int) -> None:
        """Write rows of elements, which lie at a place of the shared memory."""
        rows, count = values.shape
        if values.size:
            self._move(_Asked.WRITE, operand, address, values.dtype, count, rows, pitch, place)

    def gather(self, operand: int, address: int, dtype: DTypeLike, indices: Array) -> Array:
        """Return elements by their distances from an address, in elements, each once it was judged."""
        place, made = self._scattered(dtype, indices)
        if made.size:
            self._ask(_Asked.GATHER, operand, made.itemsize, address, made.size, place=place)
        return made

    def scatter(self, operand: int, address: int, values: Array, indices: Array) -> None:
        """Write elements by their distances from an address."""
        place, made = self._scattered(values.dtype, indices)
        made[...] = values
        if made.size:
            self._ask(_Asked.SCATTER, operand, made.itemsize, address, made.size, place=place)

    def _scattered(self, dtype: DTypeLike, indices: Array) -> tuple[int, Array]:
        """Return a piece of memory with these distances in it, and the room for elements after them."""
        index_bytes = indices.size * 8
        place, both = self.memory.take(np.uint8, index_bytes + indices.size * np.dtype(dtype).itemsize)
        both[:index_bytes].view(np.int64)[...] = indices
        return place, both[index_bytes:].view(dtype)

    def use(self, operand: int, address: int, size_bytes: int) -> None:
        """Say that bytes are written whose values do not matter."""
        if size_bytes:
            self._move(_Asked.USE, operand, address, np.dtype(np.uint8), size_bytes, 1, 0, 0)

    def give_result(self, operand: int, address: int, value: Array) -> None:
        """Write to the host's memory."""
        place, made = self.memory.take(value.dtype, value.size)
        made[:] = value
        self._ask(_Asked.RESULT, operand, address=address, count=made.nbytes, place=place)

    def end(self, flags: Done, status: int = 0, words: int = 0, kept: bytes = b"", names: bytes = b"") -> None:
        """Answer the call that was heard last."""
        head = _ASKED.pack(_Asked.DONE, 0, 0, status, flags, words, len(kept), 0, len(names))
        self._send(head + kept + names)

    def _move(
        self,
        kind: _Asked,
        operand: int,
        address: int,
        dtype: np.dtype[Any],
        count: int,
        rows: int,
        pitch: int,
        place: int,
    ) -> None:
        element = min(dtype.itemsize, _WIDEST)
        parts = dtype.itemsize // element
        self._ask(kind, operand, element, address, count * parts, rows, pitch, place)

    def _ask(
        self,
        kind: _Asked,
        operand: int,
        element: int = 0,
        address: int = 0,
        count: int = 0,
        rows: int = 0,
        pitch: int = 0,
        place: int = 0,
    ) -> bytes:
        self._send(_ASKED.pack(kind, operand, element, 0, address, count, rows, pitch, place))
        said, content = self._receive()
        if said != Said.GO_ON:
            raise Ended
        return content

    def _send(self, packet: bytes) -> None:
        try:
            self._connection.sendall(packet)
        except OSError:
            raise Ended from None

    def _receive(self) -> tuple[int, bytes]:
        try:
            packet = self._connection.recv(_PACKET_BYTES)
        except OSError:
            raise Ended from None
        if len(packet) < _SAID.size:
            raise Ended
        said, self.was_wrong = _SAID.unpack_from(packet)
        return said, packet[_SAID.size :]
