"""Which tests of a suite a process runs: every N-th, from some number on. A shard of a suite is a part of its parts."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest
from tests.suites.suites import Suite


@dataclass(frozen=True, slots=True)
class Choice:
    """Every ``step``-th test of a suite, from the number ``first`` on."""

    first: int
    step: int
    quick: bool
    """Whether those are left out that the suite itself marks as slow."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One of ``count`` equal shares of a suite. The first has the number 1."""

    number: int
    count: int

    def choices(self, suite: Suite) -> list[Choice]:
        """Return the parts of the share, which different processes can run. No share has more than its tests."""
        parts = -(-suite.parts // self.count)
        step = self.count * parts
        return [Choice(first, step, quick=False) for first in range(self.number - 1, step, self.count)]


WHOLE = Shard(1, 1)


def read_shard(text: str) -> Shard:
    """Read ``J/K``; raises :class:`pytest.UsageError` for anything else."""
    if (found := re.fullmatch(r"([1-9][0-9]*)/([1-9][0-9]*)", text)) and int(found[1]) <= int(found[2]):
        return Shard(int(found[1]), int(found[2]))
    raise pytest.UsageError(f"--shard {text}: write J/K, as in 1/8 for the first of eight parts")
