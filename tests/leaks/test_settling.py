"""Settling."""

from __future__ import annotations

import functools
import gc
from collections import deque

import pytest

from quiesce.leaks.settling import BoundedCaches, OldObjects, collect_garbage
from quiesce.leaks.start import FROZEN_AT_START


class Chained:
    """Garbage whose finaliser makes the next piece of garbage."""

    gone = 0

    def __init__(self, length: int) -> None:
        self.length = length
        self.itself = self

    def __del__(self) -> None:
        Chained.gone += 1
        if self.length:
            Chained(self.length - 1)


def test_garbage_is_collected_until_none_is_left() -> None:
    Chained.gone = 0
    Chained(3)
    collect_garbage()
    assert Chained.gone == 4


def test_old_objects_may_stay() -> None:
    old = OldObjects()
    old.freeze()
    old.stay()
    old.freeze()
    assert not old.are_frozen
    assert gc.get_freeze_count() == 0


def test_old_objects_are_left_out_and_come_back() -> None:
    before = gc.get_freeze_count()
    old = OldObjects()
    old.freeze()
    try:
        frozen = gc.get_freeze_count()
    finally:
        old.thaw()
        old.thaw()
    assert before <= FROZEN_AT_START < frozen
    assert gc.get_freeze_count() == 0


def test_a_program_that_freezes_itself_is_left_alone() -> None:
    gc.freeze()
    try:
        count = gc.get_freeze_count()
        old = OldObjects()
        old.freeze()
        old.thaw()
        assert not old.are_frozen
        assert gc.get_freeze_count() == count
    finally:
        gc.unfreeze()


@pytest.mark.parametrize(("cycles", "hides"), [(9, False), (10, True)])
def test_old_cycles_that_nobody_has_are_found(cycles: int, hides: bool) -> None:
    kept = [Chained(0) for _ in range(cycles)]
    old = OldObjects()
    old.freeze()
    try:
        kept.clear()
        old.collect()
        Chained.gone = 0
        assert old.hides_garbage(10) == hides
        assert Chained.gone == cycles
    finally:
        old.thaw()
        old.lists.forget()


@functools.lru_cache(maxsize=10)
def bounded(number: int) -> int:
    return number


@functools.cache
def unbounded(number: int) -> int:
    return number


def test_only_caches_with_a_bound_that_have_grown_are_emptied() -> None:
    bounded.cache_clear()
    unbounded(1)
    bounded(1)
    caches = BoundedCaches()
    caches.empty_what_has_grown()
    assert bounded.cache_info().currsize == 1
    bounded(2)
    unbounded(2)
    caches.empty_what_has_grown()
    assert bounded.cache_info().currsize == 0
    assert unbounded.cache_info().currsize == 2


def test_rings_fill_and_then_are_full() -> None:
    ring: deque[int] = deque(maxlen=2)
    holder = [ring]  # what only numbers hold the collector does not track
    caches = BoundedCaches()
    ring.append(1)
    assert caches.rings_have_filled()
    ring.append(2)
    assert caches.rings_have_filled()
    ring.append(3)
    assert not caches.rings_have_filled()
    assert holder == [deque([2, 3])]
