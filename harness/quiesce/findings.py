"""Findings: what an invariant says was broken, with its evidence."""

from __future__ import annotations

import enum
from dataclasses import dataclass


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
class Finding:
    """One broken rule.

    ``operation_index`` counts the requests performed so far, from 0 (None: at closing); ``line`` is the case
    file's line (None for generated sequences); ``request`` is the request as text; ``allocated_by`` says where
    the block or handle concerned came from (``operation 3 (line 12): a = allocate 64``).
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
