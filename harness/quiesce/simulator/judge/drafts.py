"""A finding that the judge still works on: facts that its words tell a reader are fields for the judge itself."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, fields

from quiesce.model.findings import Finding


class Barrier(enum.Enum):
    """The barrier that orders the two accesses of a race inside a block."""

    NONE = enum.auto()
    WARP = enum.auto()
    BLOCK = enum.auto()


@dataclass(frozen=True, slots=True)
class Draft(Finding):
    """A finding with such facts. ``order`` has the pieces of ``expected``; a number is a stream, still to be placed."""

    barrier: Barrier = Barrier.NONE
    order: tuple[str | int, ...] = ()


def order_in_words(order: tuple[str | int, ...], places: Mapping[int, str]) -> str:
    """Return the pieces as a sentence; each stream that has a place is told with it where it is named first."""
    left = dict(places)
    return "".join(piece if isinstance(piece, str) else _stream(piece, left.pop(piece, "")) for piece in order)


def _stream(number: int, place: str) -> str:
    return f"stream {number} (created {place})" if place else f"stream {number}"


def finished(finding: Finding) -> Finding:
    """Return a finding without what only the judge needs."""
    return Finding(**{field.name: getattr(finding, field.name) for field in fields(Finding)})
