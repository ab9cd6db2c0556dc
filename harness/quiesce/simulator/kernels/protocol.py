"""What the runtime in a client asks the compiler, and how it is answered; ``native/kernels/request.c`` has the same.

A connection is that of one process. It tells of a module before it asks about a kernel of it. A module has no answer.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from quiesce.simulator.kernels.translation.program import MEMORY_BASE

_REQUEST: Final = struct.Struct("<IIQQQQ")
_ANSWER: Final = struct.Struct("<IIQ")
_CONTENT_MAX: Final = 1 << 30
_PIECE_BYTES: Final = 1 << 20


class Asked(IntEnum):
    """What a request is about."""

    MODULE = 1
    """The content is the module's."""
    KERNEL = 2
    """The content is a kernel's name; the answer is its object. For that of a variable it is a kernel that gives the
    variable its first value."""
    DECLARATIONS = 3
    """The answer is the text of the module without bodies of functions."""
    TOOLKIT = 4
    """The answer is where NVIDIA's compiler and headers are for the client:
    :mod:`quiesce.simulator.kernels.toolkits`."""
    ONE_BY_ONE_KERNEL = 5
    """As KERNEL; each thread of a block runs by itself, so that the runtime may choose their order."""
    CHECKED_KERNEL = 6
    """As KERNEL; the object asks the runtime before an access that it does not know to be right."""
    ONE_BY_ONE_CHECKED_KERNEL = 7
    """Both."""
    BACKWARDS_KERNEL = 8
    """As KERNEL; the threads of a block run from the last to the first."""
    BACKWARDS_CHECKED_KERNEL = 9
    """As CHECKED_KERNEL; the threads of a block run from the last to the first."""
    TRACED_KERNEL = 10
    """As CHECKED_KERNEL; the object tells the runtime of each round of a loop."""
    ROWS_KERNEL = 11
    """As KERNEL, for rows of threads however long it takes."""
    ROWS_CHECKED_KERNEL = 12
    """As CHECKED_KERNEL, for rows of threads however long it takes."""


class Packing(IntEnum):
    """How the text of a module is packed."""

    PLAIN = 0
    LZ4 = 1
    ZSTD = 2


@dataclass(frozen=True, slots=True)
class Request:
    """One request. ``plain_bytes`` is how long a packed text is when it is unpacked.

    ``memory_base`` is where memory of devices begins in the client.
    """

    asked: Asked
    module: int
    content: bytes
    packing: Packing = Packing.PLAIN
    plain_bytes: int = 0
    memory_base: int = MEMORY_BASE

    def encode(self) -> bytes:
        """Return the request as a client sends it."""
        head = _REQUEST.pack(
            self.asked, self.packing, self.module, len(self.content), self.plain_bytes, self.memory_base
        )
        return head + self.content


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer. The content of a refusal is a sentence that says why."""

    is_refused: bool
    content: bytes

    def encode(self) -> bytes:
        """Return the answer as it is sent."""
        return _ANSWER.pack(self.is_refused, 0, len(self.content)) + self.content


def read_request(connection: socket.socket) -> Request | None:
    """Return the next request, or None where the client has ended. Raises ValueError for one of another protocol."""
    head = _read(connection, _REQUEST.size)
    if head is None:
        return None
    asked, packing, module, length, plain_bytes, memory_base = _REQUEST.unpack(head)
    content = _read(connection, length)
    if content is None:
        return None
    return Request(Asked(asked), module, content, Packing(packing), plain_bytes, memory_base)


def read_answer(connection: socket.socket) -> Answer | None:
    """Return the next answer, or None where the compiler has ended."""
    head = _read(connection, _ANSWER.size)
    if head is None:
        return None
    is_refused, _, length = _ANSWER.unpack(head)
    content = _read(connection, length)
    return None if content is None else Answer(bool(is_refused), content)


def _read(connection: socket.socket, length: int) -> bytes | None:
    if length > _CONTENT_MAX:
        raise ValueError(f"a content of {length:,} bytes")
    content = bytearray()  # it grows with what comes: a length alone may cost nothing
    while len(content) < length:
        try:
            piece = connection.recv(min(length - len(content), _PIECE_BYTES))
        except ConnectionResetError:
            return None
        if not piece:
            return None
        content += piece
    return bytes(content)
