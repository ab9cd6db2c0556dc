"""Seeded sequences without Hypothesis, for campaigns of a million operations."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

from quiesce.backend import Description
from quiesce.generation.decoder import HEADER_BYTES, RECORD_BYTES, decode
from quiesce.generation.sequence import GeneratedSequence

RECORDS_MAX: Final = 320


def generate(
    description: Description, seed: int, *, hostile: bool = False, first: int = 0
) -> Iterator[GeneratedSequence]:
    """Yield sequences without end: the n-th depends on nothing but the arguments and n, which begins at ``first``."""
    number = first
    while True:
        yield generate_one(description, seed, number, hostile=hostile)
        number += 1


def generate_one(description: Description, seed: int, number: int, *, hostile: bool = False) -> GeneratedSequence:
    """Return the sequence of that number; most are short, some are long."""
    source = random.Random(f"{seed}/{number}")  # noqa: S311 - reproducible, not secret
    records = 4 + int(source.random() ** 2 * RECORDS_MAX)
    data = source.randbytes(HEADER_BYTES + records * RECORD_BYTES)
    return decode(data, description, hostile=hostile)
