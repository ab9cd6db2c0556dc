"""What an invariant is: a named function from the model and one change to findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from quiesce.findings import Finding, Grade
from quiesce.oracle.model import Change, Model

Check: TypeAlias = Callable[[Model, Change], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Invariant:
    """One rule: its name, one sentence, and the class of the fault catalogue that it sees."""

    name: str
    sentence: str
    fault_class: str
    check: Check


def found(
    invariant: str, expected: str, observed: str, allocated_by: str = "", grade: Grade = Grade.VIOLATION
) -> Finding:
    """Return a finding; lockstep adds where it happened."""
    return Finding(invariant, expected, observed, allocated_by=allocated_by, grade=grade)
