"""Liberties in the order of streams that the contract leaves to those who stage and free, as dialogues."""

from __future__ import annotations

import pytest

from quiesce.model.backend import DeviceProfile, Promise
from quiesce.model.observations import BackingAllocated, BackingFreed, CopyEnqueued, EventRecorded, EventWaited
from quiesce.model.outcomes import CAPTURE_UNJOINED, NOT_READY, Allocated, Rejected

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
    ("fill a 0 on s", DONE),  # a launch might have scratch memory beside it
    ("free a", DONE),
    ("synchronize device", DONE),
    ("b = allocate 1", Allocated(1 << 30), (BackingAllocated(1 << 30, 1 << 20),)),
    ("fill b 0 on s", DONE),
    ("fill b 0 on t", DONE),
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


RETURNED = (BackingFreed(1 << 20, 1 << 20),)


@pytest.mark.parametrize(
    "waits", ["synchronize stream s", "synchronize device", "synchronize event e", "query stream s", "query event e"]
)
def test_memory_may_go_back_behind_what_the_request_itself_waited_for(waits: str) -> None:
    freed: tuple[Exchange, ...] = (
        ("s = create stream nonblocking", DONE),
        ("e = create event", DONE),
        ("a = allocate 1 on s", BLOCK, CHUNK),
        ("launch on s writes=a", DONE),
        ("record event e on s", DONE),
        ("free a", DONE),
    )
    assert findings(*freed, (waits, DONE, RETURNED)) == ()
    assert findings(*freed, ("query stream", DONE, RETURNED))


def test_a_record_may_come_behind_the_wait_that_it_is_told_with() -> None:
    behind = (EventRecorded("internal:1", "t"),)
    waited: tuple[Exchange, ...] = (
        ("s = create stream nonblocking", DONE),
        ("t = create stream nonblocking", DONE),
        ("u = create stream nonblocking", DONE),
        ("e = create event", DONE),
        ("a = allocate 1 on s", BLOCK),
        ("launch on s writes=a", DONE),
        ("record event e on s", DONE),
    )
    freed: tuple[Exchange, ...] = (
        ("free a on t", DONE),
        ("b = allocate 1 on u", BLOCK, (EventWaited("internal:1", "u"),)),
        ("launch on u writes=b", DONE),
    )
    assert findings(*waited, ("wait event e on t", DONE, behind), *freed) == ()
    assert findings(*waited, ("mark m", DONE, behind), ("wait event e on t", DONE), *freed)


def test_a_stream_may_be_made_to_wait_before_it_is_handed_out() -> None:
    freed: tuple[Exchange, ...] = (("a = allocate 1", BLOCK), ("launch writes=a", DONE), ("free a", DONE))
    waits = (EventRecorded("internal:1", ""), EventWaited("internal:1", "s"))
    again: tuple[Exchange, ...] = (("b = allocate 1 on s", BLOCK), ("launch on s writes=b", DONE))
    asked: Exchange = ("query stream s", Rejected(NOT_READY))
    assert findings(*freed, ("s = create stream nonblocking", DONE, waits), *again) == ()
    assert findings(*freed, ("s = create stream nonblocking", DONE), *again)
    assert findings(("s = create stream nonblocking", DONE, waits), asked) == ()
    assert findings(("s = create stream nonblocking", DONE), asked)


def test_a_captured_record_may_come_behind_the_work_that_it_is_told_with() -> None:
    promises = frozenset({Promise.KEEPS_GRAPH_MEMORY, Promise.TRACKS_USES})
    begun: tuple[Exchange, ...] = (
        ("s = create stream nonblocking", DONE),
        ("t = create stream nonblocking", DONE),
        ("e = create event", DONE),
        ("begin capture on t", DONE),
        ("record event e on t", DONE),
        ("wait event e on s", DONE),
        ("a = allocate 1 on t", BLOCK),
    )
    record = (EventRecorded("internal:1", "t"),)
    again: tuple[Exchange, ...] = (
        ("free a", DONE),
        ("b = allocate 1 on s", BLOCK, (EventWaited("internal:1", "s"),)),
        ("launch on s writes=b", DONE),
    )
    assert findings(*begun, ("launch on t writes=a", DONE, record), *again, promises=promises) == ()
    early: Exchange = ("mark m", DONE, record)
    assert findings(*begun, early, ("launch on t writes=a", DONE), *again, promises=promises)


def test_where_a_record_came_late_in_a_capture_its_end_may_find_work_unjoined() -> None:
    begun: tuple[Exchange, ...] = (
        ("s = create stream nonblocking", DONE),
        ("t = create stream nonblocking", DONE),
        ("e = create event", DONE),
        ("begin capture on s", DONE),
        ("record event e on s", DONE),
        ("wait event e on t", DONE),
    )
    unjoined: Exchange = ("g = end capture on s", Rejected(CAPTURE_UNJOINED))
    record, wait = EventRecorded("internal:1", "t"), EventWaited("internal:1", "s")
    with_it: tuple[Exchange, ...] = (("launch on t", DONE, (record,)), ("launch on s", DONE, (wait,)))
    behind_it: tuple[Exchange, ...] = (("launch on t", DONE), ("mark m", DONE, (record, wait)))
    for ended in (unjoined, ("g = end capture on s", DONE)):
        assert findings(*begun, *with_it, ended) == ()
    assert findings(*begun, *behind_it, unjoined)
    assert findings(*begun, ("launch on t", DONE), ("g = end capture on s", DONE))


TWO_DEVICES = DeviceProfile(devices=2)
ON_THE_SECOND: tuple[Exchange, ...] = (
    ("a = allocate 1", BLOCK),
    ("m = allocate 1 managed", Allocated(1 << 31)),
    ("h = allocate 1 pinned", Allocated(1 << 32)),
    ("t = create stream", DONE),
    ("use device 1", DONE),
    ("s = create stream", DONE),
)
NO_SUCH_HANDLE = Rejected("invalid-handle")


@pytest.mark.parametrize(
    ("free", "may_be_refused"),
    [
        ("free a on s", True),
        ("free m on s", True),
        ("free h on s", False),  # the host's memory is of no device
        ("free a on t", False),  # its own device is not current, which a stream says by itself
        ("free a", False),
    ],
)
def test_a_free_on_a_stream_of_another_device_is_served_or_refused(free: str, may_be_refused: bool) -> None:
    assert findings(*ON_THE_SECOND, (free, DONE), device=TWO_DEVICES) == ()
    refused = findings(*ON_THE_SECOND, (free, NO_SUCH_HANDLE), device=TWO_DEVICES)
    assert [each.rule for each in refused] == ([] if may_be_refused else ["valid_requests_are_served"])


def test_a_block_whose_free_was_refused_is_still_owned() -> None:
    refused: Exchange = ("free a on s", NO_SUCH_HANDLE)
    again: Exchange = ("b = allocate 1", BLOCK)
    (finding,) = findings(*ON_THE_SECOND, refused, again, device=TWO_DEVICES)
    assert finding.rule == "live_blocks_do_not_overlap"
    assert findings(*ON_THE_SECOND, refused, ("free a", DONE), again, device=TWO_DEVICES) == ()
