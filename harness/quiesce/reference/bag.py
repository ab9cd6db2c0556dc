"""A bag: things whose order does not matter, added, found and removed in constant time.

A dictionary would do, but finding its first entry takes as long as there are entries that were removed before it.
"""

from __future__ import annotations

from typing import Generic, TypeVar

_Thing = TypeVar("_Thing")


class Bag(Generic[_Thing]):
    """Things, each at most once; ``things`` holds them, the newest last as long as none was removed."""

    __slots__ = ("_positions", "things")

    def __init__(self) -> None:
        self.things: list[_Thing] = []
        self._positions: dict[_Thing, int] = {}

    def add(self, thing: _Thing) -> None:
        """Add a thing."""
        self._positions[thing] = len(self.things)
        self.things.append(thing)

    def remove(self, thing: _Thing) -> None:
        """Remove a thing; the last one takes its place. Raises :class:`KeyError` where it is not there."""
        position = self._positions.pop(thing)
        last = self.things.pop()
        if position < len(self.things):
            self.things[position] = last
            self._positions[last] = position
