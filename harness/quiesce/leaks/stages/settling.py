"""Settling: garbage is collected and pure caches are emptied, so that what is left is kept on purpose.

What the standard library keeps only to save time, up to a bound of its own, is emptied before each round. Numba frees
what a dropped array held with others, ten at a time or once a fifth of the device waits for it, and within
``defer_cleanup`` not at all; ``deallocations.clear()`` is what it calls itself where memory runs out.

Classes that are their own type, as h11's sentinels are, CPython finds in each collection, and never frees. A collection
clears what a class refers to, but not its type, so such a class keeps itself (``type_clear`` in CPython's typeobject.c;
3.11 to 3.13 do so). The memory that a test leaves in this way is not a leak of the tested code.
"""

from __future__ import annotations

import functools
import gc
import re
import sys
import weakref
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from quiesce.leaks.meters.contents import is_bounded
from quiesce.leaks.meters.lists import ListPlaces, Lists
from quiesce.leaks.stages.rounds import Rounds
from quiesce.leaks.start import FROZEN_AT_START


class LibraryCaches:
    """The caches of the standard library, as far as they grow with what passes through them."""

    def __init__(self, objects: Iterable[object]) -> None:
        self._bounded: list[Any] = []
        self._connections: list[object] = []
        connection = getattr(sys.modules.get("sqlite3"), "Connection", None)
        for each in objects:
            kind = type(each)
            if kind is functools._lru_cache_wrapper:
                if is_bounded(each) and _top_package(each) in sys.stdlib_module_names:
                    self._bounded.append(each)
            elif connection is not None and issubclass(kind, connection):
                self._connections.append(each)
        self._by_path = [(cache, frozenset(cache)) for cache in _caches_by_path()]
        self._sources = frozenset(_source_lines())

    def holds(self, cache: object) -> bool:
        """Whether a cache of :func:`functools.lru_cache` is the standard library's."""
        return cache in self._bounded

    def empty(self) -> None:
        """Empty them all."""
        re.purge()
        for cache in self._bounded:
            cache.cache_clear()
        for connection in self._connections:
            _forget_dead_cursors(connection)
        for by_path, known in self._by_path:
            for path in by_path.keys() - known:
                by_path.pop(path, None)
        _forget_source_lines(self._sources)


def _caches_by_path() -> Iterator[dict[str, Any]]:
    """Yield what imports keep of every folder and every archive that was searched (Lib/zipimport.py)."""
    yield sys.path_importer_cache
    archives = getattr(sys.modules.get("zipimport"), "_zip_directory_cache", None)
    if isinstance(archives, dict):
        yield archives


def _source_lines() -> dict[str, Any]:
    """Return what tracebacks keep of every file that they showed lines of (Lib/linecache.py)."""
    lines: dict[str, Any] | None = getattr(sys.modules.get("linecache"), "cache", None)
    return {} if lines is None else lines


def _forget_source_lines(known: frozenset[str]) -> None:
    """Forget the lines of other files than these, but of none that can not be read again.

    Code that is made at run time, as by attrs, puts its lines there without a time of modification.
    """
    lines = _source_lines()
    for name in lines.keys() - known:
        entry = lines.get(name)
        if entry is not None and len(entry) > 1 and entry[1] is not None:
            del lines[name]


def _forget_dead_cursors(connection: object) -> None:
    """Have a connection of :mod:`sqlite3` forget cursors that are gone, as it does itself at each two hundredth.

    It keeps a weak reference to every cursor in a list (Modules/_sqlite/connection.c).
    """
    for each in gc.get_referents(connection):
        if type(each) is list and all(type(item) is weakref.ref for item in each):
            each[:] = [reference for reference in each if reference() is not None]


def _top_package(cache: object) -> str:
    return str(getattr(cache, "__module__", "")).partition(".")[0]


_PACKAGE: Final = "numba.cuda.cudadrv"
"""In Numba itself as in numba-cuda, the package that took its place."""


def finish_numbas_frees() -> None:
    """Have Numba free what it put off, on the devices on which it has a context.

    Its driver knows the devices that it has looked for. To ask its list of devices would make it look for them.
    """
    driver = getattr(sys.modules.get(f"{_PACKAGE}.driver"), "driver", None)
    devices = getattr(sys.modules.get(f"{_PACKAGE}.devices"), "gpus", None)
    if driver is None or devices is None:
        return
    known: dict[int, Any] = vars(driver).get("devices", {})  # any other name it would ask the CUDA driver for
    for number, device in list(known.items()):
        context = device.primary_context
        pending = () if context is None else (context.deallocations, context.memory_manager.deallocations)
        if any(map(len, pending)):
            with devices[number]:
                for each in pending:
                    each.clear()


COLLECTIONS_MAX: Final = 5
"""How often garbage is collected at one point: a finaliser may free what keeps the next piece of garbage."""

REPLACING_ROUNDS: Final = 6
"""How many rounds tell what each of them replaces from what was replaced once."""


YOUNG: Final = 1
"""The generations up to this one hold what one test left. Its cycles would grow old uncollected, and each check would
read their lists: after 1,000 tests that define classes, 10,000."""


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
        self._uncovered = 0
        """Old objects that nobody had any more when all was shown for a while, since they were left out."""

    def set_aside(self) -> None:
        """Leave out everything that exists now, and know no more than where its lists are: that is quicker."""
        if self._can:
            self.lists.locate()  # first, for it asks whether objects have grown old since the last check
            gc.collect(YOUNG)
            gc.freeze()
            self.are_frozen = True

    def freeze(self) -> None:
        """Leave out everything that exists now, and hold on to its lists."""
        if self._can:
            self.lists.remember()
            gc.freeze()
            self.are_frozen = True
            self._uncovered = 0

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
        return was_frozen and self._uncovered + gc.collect() >= least

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

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Look at everything again for a while."""
        if self.are_frozen:
            gc.unfreeze()
            self._uncovered += gc.collect()
        try:
            yield
        finally:
            if self.are_frozen:
                gc.freeze()

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
    """Caches of :func:`functools.lru_cache` that say how much they hold at most."""

    def __init__(self) -> None:
        objects = gc.get_objects()
        self._library = LibraryCaches(objects)
        caches = [each for each in objects if type(each) is functools._lru_cache_wrapper]
        self._others = [each for each in caches if is_bounded(each) and not self._library.holds(each)]
        self._cache_sizes, self._last_sizes = self._sizes_of_caches(), self._sizes_of_caches()

    def empty_the_librarys(self) -> None:
        """Empty the caches of the standard library, which only save time."""
        self._library.empty()

    def empty_what_has_grown(self) -> None:
        """Empty the other caches that have grown. One that has not may hold what there must be one of only."""
        for cache, before in zip(self._others, self._cache_sizes, strict=True):
            if cache.cache_info().currsize > before:
                cache.cache_clear()

    def have_grown(self) -> bool:
        """Whether one of them holds more than at the last call."""
        before, self._last_sizes = self._last_sizes, self._sizes_of_caches()
        return any(now > then for now, then in zip(self._last_sizes, before, strict=True))

    def _sizes_of_caches(self) -> array[int]:
        """Return them as what holds no references, and takes the same room each time: a reading would tell."""
        return array("q", (each.cache_info().currsize for each in self._others))


IMMORTAL_ROUNDS: Final = 3


class ImmortalClasses:
    """Looks for them in one check."""

    def __init__(self, rounds: Rounds, old: OldObjects) -> None:
        self._rounds = rounds
        self._old = old

    def made(self) -> str:
        """Say that each round makes some, or return an empty string. It runs rounds only if garbage cannot be freed."""
        collect_garbage()
        if not gc.collect():
            return ""
        self._old.thaw()
        counts = [immortal_classes()]
        for _ in range(IMMORTAL_ROUNDS):
            self._rounds.repeat()
            collect_garbage()
            counts.append(immortal_classes())
        made = counts[1] - counts[0]
        if made <= 0 or counts != list(range(counts[0], counts[-1] + 1, made)):
            return ""
        classes = "1 class that is its own type" if made == 1 else f"{made:,} classes that are their own type"
        return f"each round makes {classes}, which CPython never frees, so its memory is not judged"


def immortal_classes() -> int:
    """Return how many classes there are that are their own type, besides :class:`type`."""
    return sum(type(each) is each for each in gc.get_objects())
