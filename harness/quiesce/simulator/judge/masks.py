"""Bytes with gaps, as a kernel touches them, and how many of them two uses share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

_CHUNK_BYTES: Final = 1 << 23
"""So many addresses are compared at once."""


@dataclass(frozen=True, slots=True)
class Mask:
    """Which bytes from ``start`` on are meant: a bit for each, the lowest first. When they end they begin again."""

    start: int
    bits: bytes

    def between(self, low: int, high: int) -> int:
        """Return the bits of a range as a number."""
        period = 8 * len(self.bits)
        first = (low - self.start) % period
        count = high - low
        repeated = self.bits * ((first + count) // period + 1)
        part = repeated[first // 8 : (first + count + 7) // 8]
        return int.from_bytes(part, "little") >> first % 8 & (1 << count) - 1


def shared_bytes(low: int, high: int, *masks: Mask | None) -> tuple[int, int] | None:
    """Return the first byte of ``[low, high)`` that all masks mean, and how many these are; None: there is none.

    None among the masks means every byte.
    """
    exact = [mask for mask in masks if mask is not None]
    if not exact:
        return (low, high - low) if low < high else None
    period = math.lcm(*(8 * len(mask.bits) for mask in exact))
    if high - low > 2 * max(period, _CHUNK_BYTES):  # the masks repeat: a part says what the others are like
        part = _CHUNK_BYTES // period * period or period
        found = shared_bytes(low, low + part, *exact)
        rest = shared_bytes(low, low + (high - low) % part, *exact)
        return None if found is None else (found[0], (high - low) // part * found[1] + (rest[1] if rest else 0))
    first: int | None = None
    total = 0
    for start in range(low, high, _CHUNK_BYTES):
        end = min(high, start + _CHUNK_BYTES)
        both = exact[0].between(start, end)
        for mask in exact[1:]:
            both &= mask.between(start, end)
        if both and first is None:
            first = start + (both & -both).bit_length() - 1
        total += both.bit_count()
    return None if first is None else (first, total)
