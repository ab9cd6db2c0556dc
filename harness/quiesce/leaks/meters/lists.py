"""Lists that grow in place: one that gets an object which exists anyway takes no block until its room is used up.

So the references that lists and deques hold are counted. Screening only knows where the lists are. To find which one
grows takes a walk over all objects, milliseconds; what was found is held on to while it is watched. What nobody else
refers to any more is let go of after each round: it would be memory that the check itself keeps. Dictionaries and sets
are left aside, of which there are ten times as many: what goes on growing takes new keys, and those are objects of
their own, which are counted as blocks.

Where the lists are is known by address, so that nothing is held on to. A walk over all objects takes as long as many
tests take. So it is done once. What a later check has to add are the lists of the young generations of the garbage
collector, which are few: a check ends with full collections, so what is older was there at its end. Only where a
collection since then has made young objects old, all are walked again.

A list that is gone meanwhile leaves its address. So lengths are copied by Linux's ``process_vm_writev``, to which an
address without memory is an error and no crash, and with each length the reference count and the type of what is there.
It writes from many places to one, which costs a sixth of what ``process_vm_readv`` takes to read from many places: that
looks up the page of each.
"""

from __future__ import annotations

import ctypes
import gc
import struct
import sys
import sysconfig
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, compress, count, filterfalse
from operator import ne, not_
from typing import Any, Final, TypeAlias, cast

from quiesce.leaks.quantities import PYTHON, BaseMeter, Quantity
from quiesce.leaks.system_calls import SystemCalls

Listed: TypeAlias = list[Any] | deque[Any]

POINTER_BYTES: Final = struct.calcsize("P")
WORDS: Final = 3
SPAN_BYTES: Final = WORDS * POINTER_BYTES
"""The reference count, the type and the length, with which such objects begin (PyVarObject in CPython's object.h)."""

BATCH: Final = 1024
"""How many places one call may read: IOV_MAX of Linux."""

LIVES_BY_GENERATIONS: Final = sys.implementation.name == "cpython" and sys.version_info < (3, 14)
"""Python 3.14.0 has a collector that makes objects old in other ways."""

AT_ONCE: Final = 512
"""So many places are compared at a time: a few lists go in most rounds, and the rest needs no look each."""

GONE_MAX: Final = 512
"""When so many are gone, they are no longer worth a look each."""

_NOTHING: Final[Listed] = []
"""Where a list is gone, this one is looked at from then on: so what knows the places stays as large as it is."""


def unbounded(objects: Iterable[Any]) -> tuple[Listed, ...]:
    """Return the lists and deques among objects, but for rings: they have a bound."""
    return tuple(each for each in objects if type(each) is list or (type(each) is deque and each.maxlen is None))


class ListPlaces:
    """Knows the addresses from check to check."""

    def __init__(self) -> None:
        self._known: dict[int, bool] = {}  # of each address whether the list is still looked at
        self._kinds = array("Q")
        self._spans = array("Q")  # of each place the address and the size, as struct iovec has them
        self._words = array("Q")  # of each place the reference count, the type and the length
        self._last_words = array("Q")  # what they were when the lengths were added up: often they are the same
        self._total = 0
        self._to = array("Q", [0, 0])
        self._gone = 0
        self._left_out: dict[int, Listed] = {}  # by address, which no other list can get as long as one is held
        self._collections: tuple[int, ...] = ()
        self._copy_memory = _memory_copier()
        self.can = LIVES_BY_GENERATIONS and self._copy_memory is not None and self._reads_what_is_there()

    def _reads_what_is_there(self) -> bool:
        """Whether this interpreter's objects begin with a reference count, their type and their length."""
        sample: list[Listed] = sorted(([None] * 3, deque([None] * 5)), key=id)
        self._add(sample)
        self._read()
        is_right = self._words[1::WORDS] == self._kinds and list(self._words[2::WORDS]) == list(map(len, sample))
        self._begin_anew()
        return is_right

    def leave_out(self, owners: Iterable[object]) -> None:
        """Never count the lists that are attributes of these: what runs the tests has a few of each test."""
        for owner in owners:
            for each in vars(owner).values():
                if type(each) is list and id(each) not in self._left_out:
                    self._left_out[id(each)] = each

    def knows(self, found: Listed) -> bool:
        """Whether a list is among those that are counted."""
        return self._known.get(id(found), False)

    def find(self) -> None:
        """Learn what is new since :meth:`keep`, or everything."""
        if self._collections and self._collections == _collections_of_old():
            self._add(unbounded(gc.get_objects(generation=0)))
            self._add(unbounded(gc.get_objects(generation=1)))
        else:
            self._begin_anew()
            self._add(unbounded(gc.get_objects()))
        self._collections = ()

    def keep(self, young: Iterable[Listed]) -> None:
        """Have these known as well, which with what was found are all there are: the next check begins with them."""
        self._forget_what_is_gone()
        self._add(young)
        self._collections = _collections_of_old()

    def lose(self) -> None:
        """Know nothing for the next check."""
        self._collections = ()

    def total(self) -> int:
        """Return how many references the lists hold together that are still where they were found."""
        self._read()
        if self._words != self._last_words:
            if self._words[1::WORDS] != self._kinds or not all(self._words[0::WORDS]):
                self._look_away()
            self._total = sum(self._words[2::WORDS])
            self._last_words[:] = self._words
        return self._total

    def _look_away(self) -> None:
        """Look no more where something else is, or what is left of a list that is gone."""
        parts = [slice(start, start + AT_ONCE) for start in range(0, len(self._kinds), AT_ONCE)]
        kinds = self._words[1::WORDS]
        for part in parts:
            if kinds[part] != self._kinds[part]:
                for index in compress(count(part.start), map(ne, kinds[part], self._kinds[part])):
                    self._look_away_from(index)
        references = self._words[0::WORDS]
        for part in parts:
            if not all(references[part]):
                for index in compress(count(part.start), map(not_, references[part])):
                    self._look_away_from(index)

    def _look_away_from(self, index: int) -> None:
        self._known[self._spans[2 * index]] = False
        self._spans[2 * index], self._kinds[index] = id(_NOTHING), id(type(_NOTHING))
        self._words[WORDS * index], self._words[WORDS * index + 2] = 1, 0
        self._gone += 1

    def _forget_what_is_gone(self) -> None:
        if self._gone > GONE_MAX:
            stays = tuple(map(id(_NOTHING).__ne__, self._spans[0::2]))
            addresses = array("Q", compress(self._spans[0::2], stays))
            kinds = array("Q", compress(self._kinds, stays))
            self._begin_anew()
            self._put(addresses, kinds)

    def _begin_anew(self) -> None:
        self._gone = 0
        self._known.clear()
        self._total = 0
        for words in (self._kinds, self._spans, self._words, self._last_words):
            del words[:]

    def _add(self, found: Iterable[Listed]) -> None:
        """Know these as well; in the order of their addresses, which copies what is there twice as fast."""
        new = sorted((each for each in found if not (self.knows(each) or id(each) in self._left_out)), key=id)
        self._put(array("Q", map(id, new)), array("Q", map(id, map(type, new))))

    def _put(self, addresses: array[int], kinds: array[int]) -> None:
        spans = array("Q", [SPAN_BYTES]) * (2 * len(addresses))
        spans[0::2] = addresses
        self._known.update(dict.fromkeys(addresses, True))
        self._kinds.extend(kinds)
        self._spans.extend(spans)
        for words in (self._words, self._last_words):
            words.frombytes(bytes(SPAN_BYTES * len(addresses)))

    def _read(self) -> None:
        """Read what is at each place; where no memory is any more, there is nothing."""
        assert self._copy_memory is not None, "asked only where memory can be read"
        to, _ = self._words.buffer_info()
        spans, _ = self._spans.buffer_info()
        to_all, _ = self._to.buffer_info()
        process, places, done = SystemCalls.process_id(), len(self._kinds), 0
        while done < places:
            batch = min(BATCH, places - done)
            self._to[0], self._to[1] = to + SPAN_BYTES * done, SPAN_BYTES * batch
            copied = max(0, self._copy_memory(process, spans + 2 * POINTER_BYTES * done, batch, to_all, 1, 0))
            done += copied // SPAN_BYTES
            if copied < SPAN_BYTES * batch:  # the next place has no memory
                self._words[WORDS * done] = 0
                done += 1


def _memory_copier() -> Callable[..., int] | None:
    """Return ``process_vm_writev``, if there is one and objects look as they do where references are counted alone."""
    if sys.platform != "linux" or POINTER_BYTES != 8 or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return None
    copier: Any = getattr(ctypes.CDLL(None, use_errno=True), "process_vm_writev", None)
    if copier is None:
        return None
    copier.argtypes = [ctypes.c_int, *[ctypes.c_void_p, ctypes.c_ulong] * 2, ctypes.c_ulong]
    copier.restype = ctypes.c_ssize_t
    return cast("Callable[..., int]", copier)


def _collections_of_old() -> tuple[int, ...]:
    """Return how often objects were made old."""
    return tuple(generation["collections"] for generation in gc.get_stats()[1:])


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


class ListMeter(BaseMeter):
    """Counts the references in lists and deques."""

    family = PYTHON

    def __init__(self, lists: Lists) -> None:
        self._lists = lists

    def absent(self) -> str:
        """Say so on an interpreter whose objects cannot be hidden: there each reading would be a walk over all."""
        return "" if hasattr(gc, "freeze") else f"{sys.implementation.name} cannot leave objects out of a collection"

    def read(self) -> Mapping[Quantity, int]:
        """Count."""
        return {IN_LISTS: self._lists.held_bytes()}

    def rest(self) -> None:
        """Hold on to nothing; idempotent."""
        self._lists.forget()
