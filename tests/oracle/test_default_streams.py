"""Default streams of several devices: what is said of one by its own name is held to it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quiesce.allocators.oracle.oracle import Oracle
from quiesce.backends.reference import backend as reference
from quiesce.model.backend import DeviceProfile, Promise, Reply
from quiesce.model.findings import Finding
from quiesce.model.observations import (
    BackingAllocated,
    DeviceSynchronized,
    EventCompleted,
    EventRecorded,
    EventWaited,
    Observation,
)
from quiesce.model.operations import MemoryKind
from quiesce.model.outcomes import INVALID_VALUE, Allocated, Done, Outcome, Rejected
from quiesce.model.requests import parse_request

Exchange = tuple[str, Outcome, tuple[Observation, ...]]

DESCRIPTION = replace(reference().describe(), promises=frozenset({Promise.TRIMS_TO_ZERO}), gauges={})
BLOCK = Allocated(1 << 20)
DONE = Done()
CHUNK = BackingAllocated(1 << 20, 1 << 20, device=1)

IN_FLIGHT: tuple[Exchange, ...] = (
    ("use device 1", DONE, ()),
    ("a = allocate 1", BLOCK, (CHUNK,)),
    ("s = create stream nonblocking", DONE, ()),
    ("t = create stream nonblocking", DONE, ()),
    ("e = create event", DONE, ()),
    ("stall s", DONE, ()),
    ("record event e on s", DONE, ()),
    ("wait event e", DONE, ()),
    ("launch writes=a", DONE, ()),
)
"""Work on the default stream of device 1 that waits for a stalled stream."""


def findings(*exchanges: Exchange) -> tuple[Finding, ...]:
    """Return what the last exchange is found to have broken; the others break nothing."""
    oracle = Oracle(DESCRIPTION, DeviceProfile(devices=2))
    found: tuple[Finding, ...] = ()
    for request, outcome, observations in exchanges:
        assert found == ()
        found = oracle.judge(parse_request(request), Reply(outcome, observations), {}, {}, request)
    return found


def reuse_behind(recorded_on: str, *seen: Observation) -> tuple[Finding, ...]:
    """Return what is found where memory in flight is freed behind an event on a stream, and used again on another."""
    freed: Exchange = ("free a", DONE, (EventRecorded("internal:1", recorded_on),))
    return findings(*IN_FLIGHT, freed, ("b = allocate 1 on t", BLOCK, seen), ("launch on t writes=b", DONE, ()))


def test_an_event_on_the_default_stream_of_another_device_orders_nothing() -> None:
    assert reuse_behind("device:0", EventCompleted("internal:1"))
    assert reuse_behind("device:0", EventWaited("internal:1", "t"))


def test_an_event_on_the_default_stream_of_the_device_orders_its_work() -> None:
    assert reuse_behind("device:1", EventWaited("internal:1", "t")) == ()
    assert reuse_behind("device:1")


def test_a_default_stream_that_is_not_named_may_be_that_of_any_device() -> None:
    assert reuse_behind("", EventWaited("internal:1", "t")) == ()


def test_memory_behind_a_named_default_stream_goes_back_once_its_device_is_idle() -> None:
    freed: Exchange = ("free a", DONE, (EventRecorded("internal:1", "device:1"),))
    idle: Exchange = ("synchronize device", DONE, ())
    assert findings(*IN_FLIGHT, freed, ("trim", DONE, ())) == ()
    assert findings(*IN_FLIGHT, freed, idle, ("trim", DONE, ()))


def test_a_wait_for_one_device_may_end_a_stall_of_another() -> None:
    waited: tuple[Exchange, ...] = (
        ("t = create stream", DONE, ()),
        ("e = create event", DONE, ()),
        ("stall t", DONE, ()),
        ("record event e on t", DONE, ()),
        ("use device 1", DONE, ()),
        ("s = create stream", DONE, ()),
        ("wait event e on s", DONE, ()),
        ("launch on s", DONE, ()),
    )
    work: tuple[Exchange, ...] = (("launch on t", DONE, ()), ("query stream t", DONE, ()))
    seen = (EventRecorded("internal:1", "s"), EventCompleted("internal:1"))
    assert findings(*waited, ("synchronize device", DONE, seen), *work) == ()
    assert findings(*waited, ("trim", DONE, (*seen, DeviceSynchronized(1))), *work) == ()
    assert findings(*waited, ("trim", DONE, seen), *work)


@pytest.mark.parametrize("request_line", ["a = allocate 1 pool=p", "a = allocate 1 on s", "a = stage h on s"])
def test_a_pool_or_stream_of_another_device_may_be_refused(request_line: str) -> None:
    made: tuple[Exchange, ...] = (
        ("p = create pool", DONE, ()),
        ("s = create stream", DONE, ()),
        ("h = allocate 1 pageable", Allocated(1 << 30), ()),
    )
    refused: Exchange = (request_line, Rejected(INVALID_VALUE), ())
    assert findings(*made, ("use device 1", DONE, ()), refused) == ()
    assert findings(*made, refused)


@pytest.mark.parametrize("kind", [MemoryKind.MANAGED, MemoryKind.PINNED])
def test_a_trim_may_leave_what_is_told_on_another_device_than_the_first(kind: MemoryKind) -> None:
    taken = BackingAllocated(1 << 20, 1 << 20, kind, device=1)
    cached: tuple[Exchange, ...] = (
        ("use device 1", DONE, ()),
        (f"a = allocate 1 {kind}", BLOCK, (taken,)),
        ("free a", DONE, ()),
    )
    trim: Exchange = (f"trim {kind}", DONE, ())
    assert findings(*cached, ("use device 0", DONE, ()), trim) == ()
    assert findings(*cached, trim)
