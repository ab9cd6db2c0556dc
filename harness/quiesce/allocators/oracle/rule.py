"""What a rule is: a named function from the model and one change to findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias, get_args

from quiesce.allocators.oracle.change import Change
from quiesce.allocators.oracle.model import Model
from quiesce.model.backend import Promise
from quiesce.model.findings import Finding, Grade
from quiesce.model.operations import Allocate, Operation, QueryEvent, QueryStream, Stage
from quiesce.model.rules import Kind

MAKING_BLOCKS: Final = (Allocate, Stage)
ASKING: Final = (QueryStream, QueryEvent)

Check: TypeAlias = Callable[[Model, Change], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: one sentence, the kind of mistake that breaks it, and its check, a function with the rule's name.

    ``on`` holds the operations on which it has something to say, and ``about`` the fact of a change without which it
    has nothing to say; it is not asked about anything else, nor of a backend that did not make its ``promise``.
    """

    sentence: str
    kind: Kind
    check: Check
    on: tuple[type[Operation], ...] = get_args(Operation)
    about: str = ""
    promise: Promise | None = None

    @property
    def name(self) -> str:
        """What findings and cases call the rule."""
        return self.check.__name__


def found(
    expected: str,
    observed: str,
    allocated_by: object = "",
    grade: Grade = Grade.VIOLATION,
    kind: str = "",
) -> Finding:
    """Return what a check found. The oracle adds the rule's name, and its kind if none is said; lockstep adds where."""
    return Finding("", expected, observed, kind=kind, allocated_by=str(allocated_by), grade=grade)
