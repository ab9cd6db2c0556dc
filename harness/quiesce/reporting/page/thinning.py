"""Fewer points for a plot, and no peak lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

BUCKETS_MAX: Final = 150
"""A longer series is divided into this many parts; of each part, the lowest and the highest value are kept."""


def extremes(values: Sequence[int | None]) -> Iterator[int]:
    """Yield the positions to keep, some twice and in no order.

    A part in which nobody read anything, which is None, stays a part in which nobody did.
    """
    width = -(-len(values) // BUCKETS_MAX)
    for start in range(0, len(values), width):
        bucket = range(start, min(start + width, len(values)))
        read = [(value, position) for position in bucket if (value := values[position]) is not None]
        yield from (min(read)[1], max(read)[1]) if read else (start,)
