"""What glibc keeps of the environment: every text that a variable ever had, for the life of the process.

A test that puts its ``tmp_path`` into a variable leaves a new text each round. That is the C library's doing
(``setenv`` stores each text that it has not seen in a tree: stdlib/setenv.c) and none of the tested code's.
"""

from __future__ import annotations

import os
from typing import Final, TypeAlias

Text: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]

SEEN_BITS: Final = 1 << 20
"""Room to remember which texts were seen. Of a thousand, two share a bit in every other run, and count as one then."""

WORD: Final = 8
CHUNK_MIN: Final = 32
CHUNK_STEP: Final = 16
"""glibc's malloc on 64-bit machines: a word before each chunk, the smallest chunk, and what sizes are a multiple of."""

COMES_AND_GOES: Final = "QUIESCE_COMES_AND_GOES"
TABLE_MIN: Final = 8

NODE_BYTES: Final = 24
"""What a node of the tree asks for: three pointers (misc/tsearch.c)."""


class EnvironmentTexts:
    """Counts the bytes of the C heap that new texts took which Python put into the environment."""

    def __init__(self) -> None:
        self.kept_bytes = 0
        self._seen = bytearray(SEEN_BITS // 8)
        self._put = os.putenv
        self._is_watching = False

    def watch(self) -> None:
        """Begin to count; idempotent."""
        self._is_watching = True
        if os.putenv != self._counting:
            self._put = os.putenv
            os.putenv = self._counting

    def rest(self) -> None:
        """Count no more; idempotent."""
        self._is_watching = False
        if os.putenv == self._counting:
            os.putenv = self._put

    def _counting(self, name: Text, value: Text, /) -> None:
        self._put(name, value)
        if not self._is_watching:
            return  # somebody who took it for the original has put it back
        name, value = os.fsencode(name), os.fsencode(value)
        index, bit = divmod(hash((name, value)) % SEEN_BITS, 8)
        if not self._seen[index] & 1 << bit:
            self._seen[index] |= 1 << bit
            self.kept_bytes += chunk_bytes(len(name) + len(value) + len("=\0")) + chunk_bytes(NODE_BYTES)


def enlarge_table() -> None:
    """Have the table behind ``os.environ`` grow now, as it does once where a variable comes and goes for long enough.

    pytest sets and deletes one in each phase of a test, so the growth would come in the rounds of some test.
    """
    for _ in range(3 * len(os.environ) + TABLE_MIN):
        os.environ[COMES_AND_GOES] = ""
        del os.environ[COMES_AND_GOES]


def chunk_bytes(size_bytes: int) -> int:
    """Return what glibc's malloc takes for a request."""
    return max(CHUNK_MIN, -(-(size_bytes + WORD) // CHUNK_STEP) * CHUNK_STEP)
