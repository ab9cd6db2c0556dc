"""What a fault is: one historic bug, as one part of the reference replaced."""

from __future__ import annotations

from dataclasses import dataclass

from quiesce.reference.parts import Parts


@dataclass(frozen=True, slots=True)
class Fault:
    """A switchable historic bug. ``upstream`` numbers it; ``mechanism`` says in a sentence what goes wrong."""

    name: str
    upstream: str
    mechanism: str
    parts: Parts
