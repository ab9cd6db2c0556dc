"""Findings: what an invariant says was broken, with its evidence."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field


class Grade(enum.StrEnum):
    """How sure and how bad a finding is."""

    LIVE_LEAK = "live leak"
    GROWTH = "growth per iteration"
    HELD_BY_TRACEBACK = "held by a traceback"
    CACHED = "cached in a pool"
    FRAGMENTATION = "fragmentation"
    FOREIGN = "foreign"
    VIOLATION = "violation"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class RoundReadings:
    """What a gauge read behind each of the consecutive rounds that decided that it grows.

    ``grown`` says for each round from ``first_round`` on how much more there was than behind the first of them: what a
    process holds besides is another number in every run. ``unit`` is ``bytes`` or the plural of a thing. ``per_round``
    is the growth per round behind round ``measured_from``; what was before may be warm-up.
    """

    gauge: str
    unit: str
    first_round: int
    grown: tuple[int, ...]
    measured_from: int
    per_round: float


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken rule.

    ``operation_index`` counts the requests performed so far, from 0 (None: at closing); ``line`` is the case
    file's line (None for generated sequences); ``request`` is the request as text; ``allocated_by`` says where
    the block or handle concerned came from (``operation 3 (line 12): a = allocate 64``). ``readings`` are those of
    the gauge that a leak check found growing.
    """

    invariant: str
    expected: str
    observed: str
    operation_index: int | None = None
    line: int | None = None
    request: str = ""
    allocated_by: str = ""
    fault_class: str = ""
    grade: Grade = Grade.VIOLATION
    evidence: str = ""
    readings: RoundReadings | None = field(default=None, repr=False)
