"""Settling: garbage is collected and pure caches are emptied, so that what is left is kept on purpose."""

from __future__ import annotations

import functools
import gc
import sys
from collections import deque
from collections.abc import Callable
from typing import Final

from quiesce.leaks.contents import is_bounded
from quiesce.leaks.library_caches import LibraryCaches
from quiesce.leaks.list_places import ListPlaces
from quiesce.leaks.lists import Lists
from quiesce.leaks.numba_frees import finish_numbas_frees
from quiesce.leaks.start import FROZEN_AT_START

COLLECTIONS_MAX: Final = 5
"""How often garbage is collected at one point: a finaliser may free what keeps the next piece of garbage."""

REPLACING_ROUNDS: Final = 6
"""How many rounds tell what each of them replaces from what was replaced once."""


_clear_internal_caches: Final[Callable[[], None]] = next(
    (getattr(sys, name) for name in ("_clear_internal_caches", "_clear_type_cache") if hasattr(sys, name)), lambda: None
)


def collect_garbage() -> None:
    """Collect until nothing is found any more.

    CPython's cache of attribute look-ups goes first: it keeps each name alive that was put together at run time. What
    Numba puts off goes last, for it is asked to by objects that are gone.
    """
    _clear_internal_caches()
    for _ in range(COLLECTIONS_MAX):
        if gc.collect() == 0:
            break
    finish_numbas_frees()


def can_freeze() -> bool:
    """Whether what exists may be left out of collections: the interpreter can, and the tested program does not."""
    return hasattr(gc, "freeze") and gc.get_freeze_count() <= FROZEN_AT_START


class OldObjects:
    """Keeps what exists already out of the garbage collections to come, which are then as fast as the round is small.

    Where the tested program does that itself (:func:`gc.freeze`), or the interpreter cannot, nothing is done.
    """

    def __init__(self, places: ListPlaces | None = None) -> None:
        self.lists = Lists(places)
        self._can = can_freeze()
        self.are_frozen = False

    def set_aside(self) -> None:
        """Leave out everything that exists now, and know no more than where its lists are: that is quicker."""
        if self._can:
            self.lists.locate()
            gc.freeze()
            self.are_frozen = True

    def freeze(self) -> None:
        """Leave out everything that exists now, and hold on to its lists."""
        if self._can:
            self.lists.remember()
            gc.freeze()
            self.are_frozen = True

    def collect(self) -> None:
        """Let go of lists that nobody has any more, and collect garbage, but for cycles that are left out."""
        self.lists.let_go()
        collect_garbage()  # behind it: CPython keeps lists that are gone at hand, as blocks in use, until it collects

    def hides_garbage(self, least: int) -> bool:
        """Look at everything again, and say whether so many old objects are found that nobody has any more.

        An old cycle that the code replaces cannot be collected while it is left out, so it would seem to be kept.
        """
        was_frozen = self.are_frozen
        self.thaw()
        return was_frozen and gc.collect() >= least

    def are_replaced(self, rounds: int, run_round: Callable[[], object]) -> bool:
        """Whether each round replaces old cycles, as the last ``rounds`` may have; then nothing is left out any more.

        What was replaced once says nothing, so a few more rounds are run.
        """
        if not self.hides_garbage(rounds):
            return False
        self.freeze()
        for _ in range(REPLACING_ROUNDS):
            run_round()
            self.collect()
        self._can = not self.hides_garbage(REPLACING_ROUNDS)
        return not self._can

    def release(self) -> None:
        """Look at everything again, and hold on to nothing."""
        self.thaw()
        self.lists.forget()

    def thaw(self) -> None:
        """Look at everything again; idempotent."""
        if self.are_frozen:
            self.lists.show()
            gc.unfreeze()
            self.are_frozen = False


class BoundedCaches:
    """What says of itself how much it holds at most: caches of :func:`functools.lru_cache`, and rings."""

    def __init__(self) -> None:
        objects = gc.get_objects()
        self._library = LibraryCaches(objects)
        caches = [each for each in objects if type(each) is functools._lru_cache_wrapper]
        self._others = [each for each in caches if is_bounded(each) and not self._library.holds(each)]
        self._rings = [each for each in objects if type(each) is deque and is_bounded(each)]
        self._cache_sizes = self._sizes_of_caches()
        self._ring_sizes = list(map(len, self._rings))

    def empty_the_librarys(self) -> None:
        """Empty the caches of the standard library, which only save time."""
        self._library.empty()

    def empty_what_has_grown(self) -> None:
        """Empty the other caches that have grown. One that has not may hold what there must be one of only."""
        for cache, before in zip(self._others, self._cache_sizes, strict=True):
            if cache.cache_info().currsize > before:
                cache.cache_clear()

    def rings_have_filled(self) -> bool:
        """Whether a ring has grown since the last call. It has a bound, so its growth will end."""
        before, self._ring_sizes = self._ring_sizes, list(map(len, self._rings))
        return any(last > first for first, last in zip(before, self._ring_sizes, strict=True))

    def _sizes_of_caches(self) -> list[int]:
        return [each.cache_info().currsize for each in self._others]
