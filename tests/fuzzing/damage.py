"""Bytes that are damaged by chance: the numbers that hurt a reader most, at places where something stands."""

from __future__ import annotations

import random
import struct
from typing import Final

_NUMBERS: Final = tuple(
    struct.pack(form, number)
    for form, bits in (("<B", 8), ("<H", 16), ("<I", 32), ("<Q", 64))
    for number in (0, 1, 7, 1 << (bits // 2), (1 << (bits - 1)) - 1, 1 << (bits - 1), (1 << bits) - 1, (1 << bits) - 8)
)
_BEGIN_BYTES: Final = 512
"""Headers are damaged more often than what follows them."""


def place_in(generator: random.Random, length: int) -> int:
    """Return a place in so many bytes, often in the first ones."""
    end = min(length, _BEGIN_BYTES) if generator.random() < 0.5 else length
    return generator.randrange(max(1, end))


def number_at(generator: random.Random) -> bytes:
    """Return a number that no reader expects, or any byte."""
    return generator.choice((*_NUMBERS, generator.randbytes(1), generator.randbytes(8)))


def damaged(generator: random.Random, content: bytes) -> bytes:
    """Return some bytes with one change or a few: numbers written over them, parts cut off, doubled or taken out."""
    for _ in range(generator.choice((1, 1, 1, 2, 3, 8))):
        place, change = place_in(generator, len(content)), generator.randrange(12)
        length = generator.choice((1, 4, 8, 24, 64, 500))
        if change == 0:
            content = content[:place]
        elif change == 1:
            content = content[:place] + content[place : place + length] + content[place:]
        elif change == 2:
            content = content[:place] + content[place + length :]
        else:
            if change < 8:
                place -= place % 4  # where a field begins
            new = number_at(generator)
            content = content[:place] + new + content[place + len(new) :]
    return content
