"""The readings of one quantity, in room that is taken in advance: what watches for growth must not grow itself."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Final

ROOM: Final = 256
"""Readings for which room is taken at a time."""


class Series:
    """Readings, one for each round."""

    def __init__(self) -> None:
        self._room = array("q", bytes(8 * ROOM))
        self._length = 0

    def add(self, value: int) -> None:
        """Add a reading."""
        if self._length == len(self._room):
            self._room.frombytes(bytes(8 * ROOM))
        self._room[self._length] = value
        self._length += 1

    def forget(self) -> None:
        """Start over, in the same room."""
        self._length = 0

    @property
    def values(self) -> Sequence[int]:
        """The readings so far."""
        return self._room[: self._length]
