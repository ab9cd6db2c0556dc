"""Backing memory that is held, in words: how much, in how many allocations, and whose blocks were in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from quiesce.amounts import bytes_in_words, counted
from quiesce.oracle.memory import BackingRange

_NAMED_MAX: Final = 2


def held_in_words(ranges: Sequence[BackingRange]) -> str:
    """Return the sum of backing allocations, and which block was the last in each; the ranges are not empty."""
    size = bytes_in_words(sum(held.size_bytes for held in ranges))
    names = list(dict.fromkeys(held.last_block for held in ranges if held.last_block))
    where = "one backing allocation" if len(ranges) == 1 else f"{len(ranges):,} backing allocations"
    if not names:
        return f"{size} in {where}, in which no block was"
    shown = " and ".join(f"'{name}'" for name in names[:_NAMED_MAX])
    more = len(names) - _NAMED_MAX
    also = f" and {counted(more, 'other block')}" if more > 0 else ""
    return f"{size} in {where}, in which {shown}{also} {'was' if len(names) == 1 else 'were'} last"
