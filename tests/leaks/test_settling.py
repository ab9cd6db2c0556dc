"""Settling."""

from __future__ import annotations

import functools
import gc
from collections import deque

import pytest

from quiesce.leaks.stages.settling import BoundedCaches, OldObjects, collect_garbage
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


def test_cycles_that_a_first_round_left_do_not_grow_old() -> None:
    Chained.gone = 0
    old = OldObjects()
    Chained(0)
    old.set_aside()
    old.thaw()
    assert Chained.gone == 1


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


@pytest.mark.parametrize("looked_at", [False, True], ids=["left out", "shown before"])
@pytest.mark.parametrize(("replaced", "are_replaced"), [(0, False), (10, False), (100, True)])
def test_old_cycles_that_every_round_replaces_are_looked_at(replaced: int, are_replaced: bool, looked_at: bool) -> None:
    """Also those that went when a census was shown everything for a while."""
    ring = deque((Chained(0) for _ in range(100)), maxlen=100)
    left = iter(range(replaced))

    def run_round() -> None:
        if next(left, None) is not None:
            ring.append(Chained(0))

    old = OldObjects()
    old.freeze()
    try:
        for _ in range(10):
            run_round()
            old.collect()
        if looked_at:
            with old.shown():
                gc.collect()
        assert old.are_replaced(10, run_round) == are_replaced
        old.freeze()
        assert old.are_frozen != are_replaced
    finally:
        old.release()


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
