"""Liberties in the order of streams that the contract leaves to those who stage and free, as dialogues."""

from __future__ import annotations

from quiesce.backend import Promise
from quiesce.observations import CopyEnqueued, EventRecorded
from quiesce.outcomes import Allocated

from .test_liberties import BLOCK, CHUNK, DONE, ORDER_UNTOLD, TRIMS, Exchange, findings


def test_whoever_stages_pageable_memory_as_it_is_may_wait_in_the_copy() -> None:
    staged: tuple[Exchange, ...] = (
        ("s = create stream", DONE),
        ("h = allocate 1 pageable", Allocated(1 << 30)),
        ("stall s", DONE),
    )
    asked: Exchange = ("query stream s", DONE)
    directly = (CopyEnqueued(1 << 30, 1 << 20, 1, "s"),)
    through_a_buffer = (CopyEnqueued(1 << 31, 1 << 20, 1, "s"),)
    assert findings(*staged, ("a = stage h on s", BLOCK, directly), asked) == ()
    assert findings(*staged, ("a = stage h on s", BLOCK, ()), asked) == ()
    assert findings(*staged, ("a = stage h on s", BLOCK, through_a_buffer), asked)


USED_AND_FREED: tuple[Exchange, ...] = (
    ("s = create stream nonblocking", DONE),
    ("t = create stream nonblocking", DONE),
    ("a = allocate 1", BLOCK, CHUNK),
    ("launch on s writes=a", DONE),
    ("free a", DONE),
    ("synchronize device", DONE),
    ("launch on s", DONE),
    ("launch on t", DONE),
)


def test_events_for_a_free_may_be_recorded_later_where_the_block_was_used() -> None:
    promises = TRIMS | {Promise.TRACKS_USES}
    recorded: Exchange = ("trim", DONE, (EventRecorded("internal:1", "s"),))
    assert findings(*USED_AND_FREED, recorded, promises=promises) == ()
    assert findings(*USED_AND_FREED, ("trim", DONE), promises=promises)
    assert findings(*USED_AND_FREED, ("trim", DONE, (EventRecorded("internal:1", "t"),)), promises=promises)
    waited: tuple[Exchange, ...] = (recorded, ("synchronize stream s", DONE), ("trim", DONE))
    assert findings(*USED_AND_FREED, *waited, promises=promises)


def test_nobody_tells_where_events_for_a_free_are_recorded_later() -> None:
    promises = TRIMS | {Promise.TRACKS_USES}
    trim: Exchange = ("trim", DONE)
    assert findings(*USED_AND_FREED, trim, promises=promises, description=ORDER_UNTOLD) == ()
    idle: Exchange = ("synchronize device", DONE)
    assert findings(*USED_AND_FREED, trim, idle, trim, promises=promises, description=ORDER_UNTOLD)
