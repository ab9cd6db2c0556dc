"""Lists that grow in place: one that gets an object which exists anyway takes no block until its room is used up.

So the references that lists and deques hold are counted. Screening only knows where the lists are. To find which one
grows takes a walk over all objects, milliseconds; what was found is held on to while it is watched. What nobody else
refers to any more is let go of after each round: it would be memory that the check itself keeps.

Dictionaries and sets are left aside, of which there are ten times as many: what goes on growing takes new keys, and
those are objects of their own, which are counted as blocks.
"""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import chain, compress, count, filterfalse
from typing import Final

from quiesce.leaks.list_places import POINTER_BYTES, Listed, ListPlaces, unbounded
from quiesce.leaks.quantities import PYTHON, Quantity

IN_LISTS: Final = Quantity(PYTHON, "Python's memory in lists")

REFERENCE_BYTES: Final = POINTER_BYTES

_GONE: Final[Listed] = deque()
"""Stands where a list was, so that what holds the others stays as large as it is."""


class _Held(list[Listed]):
    """What holds on to lists, and is none of those that count."""


_ALONE: Final = next(map(sys.getrefcount, _Held([[]])))
"""What :func:`sys.getrefcount` says here of a list that only this module refers to."""


class Lists:
    """All lists and deques of the process, but for rings: they have a bound. ``places`` goes from check to check."""

    def __init__(self, places: ListPlaces | None = None) -> None:
        self._places = ListPlaces() if places is None else places
        self._old = _Held()
        self._lengths: Sequence[int] = ()
        self._is_hidden = False
        self._is_located = False

    def locate(self) -> None:
        """Find where those are that exist now, which may then be hidden from the garbage collector."""
        if self._places.can:
            self._places.find()
            self._is_located = True
        else:
            self.remember()

    def remember(self) -> None:
        """Find what exists now and hold on to it; it may then be hidden from the garbage collector."""
        self._places.lose()
        self._is_located = False
        self._old = _Held(unbounded(gc.get_objects()))
        self._lengths = tuple(map(len, self._old))
        self._is_hidden = True

    def show(self) -> None:
        """Be told that the garbage collector is about to find all of them again.

        What they take of the C heap stays as it is.
        """
        if self._is_located:
            self._places.keep(unbounded(gc.get_objects()))
        self._is_hidden = self._is_located = False

    def forget(self) -> None:
        """Hold on to nothing; idempotent."""
        self._old, self._lengths = _Held(), ()
        self._is_hidden = self._is_located = False

    def let_go(self) -> None:
        """Hold on to nothing that nobody else refers to; a list that goes may be the last to refer to another."""
        while _ALONE in map(sys.getrefcount, self._old):
            for index in compress(count(), map(_ALONE.__eq__, map(sys.getrefcount, self._old))):
                self._old[index] = _GONE

    def held_bytes(self) -> int:
        """Return what the references take: of what is remembered, and of what the garbage collector finds besides."""
        young = unbounded(gc.get_objects())
        if self._is_located:
            return REFERENCE_BYTES * (self._places.total() + sum(map(len, filterfalse(self._places.knows, young))))
        return REFERENCE_BYTES * sum(map(len, chain(self._old if self._is_hidden else (), young)))

    def grown(self) -> tuple[Listed, ...]:
        """Return what of that which is remembered holds more now."""
        return tuple(each for each, before in zip(self._old, self._lengths, strict=True) if len(each) > before)


class ListMeter:
    """Counts the references in lists and deques."""

    family = PYTHON

    def __init__(self, lists: Lists) -> None:
        self._lists = lists

    def absent(self) -> str:
        """Say so on an interpreter whose objects cannot be hidden: there each reading would be a walk over all."""
        return "" if hasattr(gc, "freeze") else f"{sys.implementation.name} cannot leave objects out of a collection"

    def settle(self) -> None:
        """Do nothing: collecting garbage is the check's business."""

    def read(self) -> Mapping[Quantity, int]:
        """Count."""
        return {IN_LISTS: self._lists.held_bytes()}

    def observe(self) -> None:
        """Do nothing: lists are remembered as they are hidden from the garbage collector."""

    def rest(self) -> None:
        """Hold on to nothing; idempotent."""
        self._lists.forget()

    def origin(self, quantity: Quantity) -> str:
        """Know nothing of it: which line makes a list longer takes a look at every line."""
        return ""

    def evidence(self, quantity: Quantity) -> str:
        """Have nothing to add."""
        return ""
