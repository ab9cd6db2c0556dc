"""Liberties that the contract leaves to a backend, as dialogues: what may be answered, and what beside it may not.

A dialogue is a list of requests, each with the outcome and what was observed meanwhile.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from quiesce.allocators.oracle.oracle import Oracle
from quiesce.backends.reference import backend as reference
from quiesce.model.backend import Capability, Description, DeviceProfile, Promise, Reply
from quiesce.model.findings import Finding
from quiesce.model.gauges import Gauge, Readings, Source
from quiesce.model.observations import BackingAllocated, EventRecorded, EventWaited, Observation
from quiesce.model.outcomes import (
    BACKING_ERROR,
    CAPTURE_IMPLICIT,
    CAPTURE_INVALIDATED,
    CAPTURE_UNSUPPORTED,
    INVALID_VALUE,
    NOT_READY,
    Allocated,
    Done,
    Outcome,
    OutOfMemory,
    Rejected,
)
from quiesce.model.requests import parse_request

Exchange = tuple[str, Outcome] | tuple[str, Outcome, tuple[Observation, ...]] | tuple[str, Outcome, int]
"""A request, its outcome, and what was observed or how many bytes are reserved by then."""

DESCRIPTION = replace(reference().describe(), promises=frozenset(), gauges={})
ORDER_UNTOLD = replace(DESCRIPTION, capabilities=DESCRIPTION.capabilities - {Capability.ORDER_LEDGER})
BLOCK = Allocated(1 << 20)
DONE = Done()
OUT_OF_MEMORY = OutOfMemory()
UNSUPPORTED = Rejected(CAPTURE_UNSUPPORTED)
INVALIDATED = Rejected(CAPTURE_INVALIDATED)

RELAXED: tuple[Exchange, ...] = (
    ("h = allocate 1 pageable", Allocated(1 << 30)),
    ("a = allocate 1", BLOCK),
    ("s = create stream", DONE),
    ("t = create stream", DONE),
    ("b = allocate 1 on s", Allocated(1 << 21)),
    ("e = create event", DONE),
    ("begin capture on s mode=relaxed", DONE),
)


def findings(
    *exchanges: Exchange,
    promises: frozenset[Promise] = frozenset(),
    description: Description = DESCRIPTION,
    device: DeviceProfile = DeviceProfile(),  # noqa: B008 - frozen
) -> tuple[Finding, ...]:
    """Return what the last exchange is found to have broken; the others break nothing."""
    oracle = Oracle(replace(description, promises=promises), device)
    found: tuple[Finding, ...] = ()
    before: Readings = {}
    for request, outcome, *seen in exchanges:
        assert found == ()
        observations = seen[0] if seen and isinstance(seen[0], tuple) else ()
        after = {(Gauge.RESERVED, Source.LEDGER): seen[0]} if seen and isinstance(seen[0], int) else before
        found = oracle.judge(parse_request(request), Reply(outcome, observations), before, after, request)
        before = after
    return found


@pytest.mark.parametrize(
    "request_line",
    [
        "c = allocate 1",
        "c = allocate 1 on s",
        "c = allocate 1 pinned",
        "c = stage h on t",
        "copy a to h on t",
        "p = create pool",
        "trim",
        "initialize",
    ],
)
def test_what_may_have_to_wait_may_be_refused_beside_a_capture_in_any_mode(request_line: str) -> None:
    assert findings(*RELAXED, (request_line, UNSUPPORTED)) == ()
    assert findings(*RELAXED[:-1], (request_line, UNSUPPORTED))


def test_either_reason_for_a_refusal_may_be_told() -> None:
    host: tuple[Exchange, ...] = (("h = allocate 1 pageable", Allocated(1 << 30)), ("a = allocate 1", BLOCK))
    capturing: tuple[Exchange, ...] = (*host, ("s = create stream", DONE), ("begin capture on s", DONE))
    spoiled: tuple[Exchange, ...] = (*capturing, ("query stream", Rejected(CAPTURE_IMPLICIT)))
    assert findings(*capturing, ("copy a to h", UNSUPPORTED)) == ()
    for asked in ("query stream s", "synchronize stream s"):
        assert findings(*capturing, (asked, INVALIDATED))
        assert findings(*spoiled, (asked, INVALIDATED)) == ()
        assert findings(*spoiled, (asked, UNSUPPORTED)) == ()


def test_who_promises_to_allocate_in_captures_is_held_to_it() -> None:
    promises = frozenset({Promise.ALLOCATES_IN_CAPTURES})
    assert findings(*RELAXED, ("c = allocate 1", UNSUPPORTED), promises=promises)


def test_a_free_goes_in_the_order_of_its_stream_and_may_be_refused_for_that() -> None:
    assert findings(*RELAXED, ("free a", Rejected(CAPTURE_IMPLICIT))) == ()
    assert findings(*RELAXED, ("free b", INVALIDATED))
    assert findings(*RELAXED, ("query stream s", UNSUPPORTED), ("free b", INVALIDATED)) == ()


def test_what_is_staged_may_fail_for_its_block_before_anything_is_put_on_a_stream() -> None:
    host: tuple[Exchange, ...] = (RELAXED[0], *RELAXED[2:])
    request = "a = stage h"
    assert findings(*host, (request, OUT_OF_MEMORY)) == ()
    assert findings(*host, (request, UNSUPPORTED)) == ()
    assert findings(*host, (request, DONE))
    error = Rejected(BACKING_ERROR)
    assert findings(*host, ("fail backing 1 with foreign-error", DONE), (request, error)) == ()
    assert findings(*host, (request, error))


def test_ending_a_capture_where_it_was_joined_is_refused_and_may_spoil_it() -> None:
    joined: tuple[Exchange, ...] = (*RELAXED, ("record event e on s", DONE), ("wait event e on t", DONE))
    assert findings(*joined, ("g = end capture on t", DONE))
    unmatched: Exchange = ("g = end capture on t", Rejected("capture-unmatched"))
    assert findings(*joined, unmatched, ("g = end capture on s", INVALIDATED)) == ()
    assert findings(*joined, unmatched, ("launch on t", INVALIDATED)) == ()
    assert findings(*joined, ("g = end capture on s", INVALIDATED))


@pytest.mark.parametrize("request_line", ["launch on s", "c = allocate 4096"])
def test_what_lacks_memory_may_spoil_a_capture(request_line: str) -> None:
    spoiled: tuple[Exchange, ...] = (*RELAXED, (request_line, OUT_OF_MEMORY))
    assert findings(*spoiled, ("g = end capture on s", INVALIDATED)) == ()
    assert findings(*RELAXED, ("g = end capture on s", INVALIDATED))


@pytest.mark.parametrize(
    "request_line", ["begin capture on s", "record event e on s", "wait event e on s", "stall s", "fill a 0 on s"]
)
def test_what_is_put_on_a_stream_may_lack_memory(request_line: str) -> None:
    before_the_capture = RELAXED[:-1]
    assert findings(*before_the_capture, (request_line, OUT_OF_MEMORY)) == ()
    assert findings(*before_the_capture, (request_line, Rejected(NOT_READY)))


@pytest.mark.parametrize("request_line", ["release s", "synchronize event e", "query stream s", "free a", "trim"])
def test_what_gives_back_waits_or_asks_lacks_no_memory(request_line: str) -> None:
    assert findings(*RELAXED[:-1], (request_line, OUT_OF_MEMORY))


TRIMS = frozenset({Promise.TRIMS_TO_ZERO})
CHUNK = (BackingAllocated(1 << 20, 1 << 20),)


@pytest.mark.parametrize(
    "request_line", ["s = create stream", "e = create event", "launch", "use device 0", "x = create instance"]
)
def test_what_a_library_takes_for_its_own_things_is_no_cache(request_line: str) -> None:
    assert findings((request_line, DONE, CHUNK), ("trim", DONE), promises=TRIMS) == ()
    idle: Exchange = ("synchronize device", DONE)
    block: tuple[Exchange, ...] = (("a = allocate 1", BLOCK), ("free a", DONE), idle, ("trim", DONE))
    assert findings((request_line, DONE, CHUNK), *block, promises=TRIMS)
    untold = replace(DESCRIPTION, capabilities=DESCRIPTION.capabilities - {Capability.BACKING_LEDGER})
    begun: tuple[Exchange, ...] = (("mark m", DONE, 0),)
    assert findings(*begun, (request_line, DONE, 4096), ("trim", DONE), promises=TRIMS, description=untold) == ()
    kept: tuple[Exchange, ...] = (("a = allocate 1", BLOCK, 4096), ("free a", DONE), idle, ("trim", DONE))
    assert findings(*begun, *kept, promises=TRIMS, description=untold)


def test_memory_that_is_not_known_to_be_a_cache_need_not_be_reclaimed() -> None:
    promises = frozenset({Promise.RECLAIMS_BEFORE_OOM, Promise.SHARES_BACKING})
    all_of_it = (BackingAllocated(1 << 20, 1 << 30),)
    request: Exchange = ("a = allocate 1", OUT_OF_MEMORY)
    assert findings(("s = create stream", DONE, all_of_it), request, promises=promises) == ()
    assert findings(("b = allocate 1", OUT_OF_MEMORY, ()), promises=promises)


UNTOLD = replace(DESCRIPTION, capabilities=DESCRIPTION.capabilities - {Capability.BACKING_LEDGER})
HALF = 1 << 29


def test_a_small_block_may_hold_all_that_a_larger_one_left() -> None:
    promises = frozenset({Promise.RECLAIMS_BEFORE_OOM, Promise.SHARES_BACKING})
    idle: Exchange = ("synchronize device", DONE)
    small: Exchange = ("b = allocate 1", BLOCK)
    large: tuple[Exchange, ...] = ((f"a = allocate {2 * HALF}", BLOCK), ("free a", DONE), idle)
    request: Exchange = ("c = allocate 1", OUT_OF_MEMORY)
    assert findings(*large, small, request, promises=promises, description=UNTOLD) == ()
    assert findings(small, request, promises=promises, description=UNTOLD)
    half: tuple[Exchange, ...] = (
        ("p = create pool", DONE),
        (f"a = allocate {HALF >> 1} pool=p", BLOCK),
        ("free a", DONE),
    )
    assert findings(*half, idle, request, promises=promises, description=UNTOLD)
    assert findings(*half, idle, ("b = allocate 1 pool=p", BLOCK), request, promises=promises, description=UNTOLD) == ()
    assert findings(*large, small, ("free b", DONE), idle, request, promises=promises, description=UNTOLD)


def test_who_promises_to_wait_is_held_to_it_though_nobody_tells_what_is_backing() -> None:
    waits = frozenset({Promise.RECLAIMS_BEFORE_OOM, Promise.WAITS_BEFORE_OOM})
    freed: tuple[Exchange, ...] = (
        ("s = create stream", DONE),
        (f"a = allocate {HALF} on s", BLOCK),
        ("stall s", DONE),
        ("launch on s writes=a", DONE),
        ("free a", DONE),
    )
    request: Exchange = (f"b = allocate {2 * HALF}", OUT_OF_MEMORY)
    assert findings(*freed, request, promises=waits, description=UNTOLD)
    assert findings(*freed, request, promises=waits - {Promise.WAITS_BEFORE_OOM}, description=UNTOLD) == ()
    destroyed: tuple[Exchange, ...] = (
        ("p = create pool", DONE),
        freed[0],
        (f"a = allocate {HALF} on s pool=p", BLOCK),
        *freed[2:],
        ("destroy pool p", DONE),
    )
    assert findings(*destroyed, request, promises=waits, description=UNTOLD) == ()


def test_what_was_taken_when_the_context_was_opened_is_told_first() -> None:
    made: Exchange = ("p = create pool", DONE, CHUNK)
    assert findings(made, ("destroy pool p", DONE)) == ()
    assert findings(("mark m", DONE), made, ("destroy pool p", DONE))


@pytest.mark.parametrize("at_once", [False, True])
def test_nodes_may_have_memory_that_is_live(at_once: bool) -> None:
    promises = frozenset({Promise.COLLECTS_AT_ONCE}) if at_once else frozenset()
    oracle = Oracle(replace(DESCRIPTION, promises=promises), DeviceProfile())
    live = {(Gauge.LIVE, Source.CLAIM): 100}

    def judged(request: str) -> tuple[Finding, ...]:
        return oracle.judge(parse_request(request), Reply(DONE), live, live, request)

    assert judged("n = node") == ()
    assert bool(judged("drop n")) is at_once


FREED_BESIDE_A_CAPTURE: tuple[Exchange, ...] = (
    ("s = create stream", DONE),
    ("t = create stream", DONE),
    ("a = allocate 1 on s", BLOCK, CHUNK),
    ("begin capture on t mode=relaxed", DONE),
    ("free a", DONE),
    ("synchronize stream s", DONE),
)
RECORDED_ELSEWHERE = (
    EventRecorded("internal:1", "s"),
    EventWaited("internal:1", "internal:own"),
    EventRecorded("internal:2", "internal:own"),
)


@pytest.mark.parametrize(
    "ended",
    [
        (("g = end capture on t", DONE, RECORDED_ELSEWHERE),),
        (("g = end capture on t", DONE), ("launch on s", DONE), ("p = create pool", DONE, RECORDED_ELSEWHERE)),
    ],
    ids=["at once", "in the first call behind it"],
)
def test_what_was_freed_beside_a_capture_may_be_recorded_when_that_is_over(ended: tuple[Exchange, ...]) -> None:
    seen = (*FREED_BESIDE_A_CAPTURE, *ended, ("synchronize stream s", DONE))
    assert findings(*seen, ("trim", DONE), promises=TRIMS) == ()
    assert findings(*seen, ("trim", DONE, (EventWaited("internal:2", None),)), promises=TRIMS)


def test_what_was_freed_beside_a_capture_may_be_recorded_unseen_when_that_is_over() -> None:
    seen: tuple[Exchange, ...] = (*FREED_BESIDE_A_CAPTURE, ("g = end capture on t", DONE))
    synchronized: Exchange = ("synchronize stream s", DONE)
    assert findings(*seen, ("trim", DONE), promises=TRIMS, description=ORDER_UNTOLD) == ()
    assert findings(*seen, synchronized, ("trim", DONE), promises=TRIMS, description=ORDER_UNTOLD)
    assert findings(*seen, ("trim", DONE), promises=TRIMS)


def test_a_block_of_no_bytes_may_go_back_in_the_order_of_some_stream() -> None:
    freed: tuple[Exchange, ...] = (
        ("s = create stream", DONE),
        ("a = allocate 0 on s", BLOCK, CHUNK),
        ("launch on s", DONE),
        ("free a", DONE),
    )
    assert findings(*freed, ("trim", DONE), promises=TRIMS) == ()
    assert findings(*freed, ("synchronize device", DONE), ("trim", DONE), promises=TRIMS)


def test_a_block_of_no_bytes_may_be_a_header_alone() -> None:
    behind_its_header = Allocated(CHUNK[0].address + CHUNK[0].size_bytes)
    made: tuple[Exchange, ...] = (("mark m", DONE), ("a = allocate 0", behind_its_header, CHUNK))
    assert findings(*made, ("trim", DONE), promises=TRIMS) == ()
    assert findings(*made, ("free a", DONE), ("trim", DONE), promises=TRIMS)


@pytest.mark.parametrize(
    ("made", "ended"),
    [
        ("p = create pool", "destroy pool p"),
        ("s = create stream", "destroy stream s"),
        ("e = create event", "destroy event e"),
        ("x = create instance", "destroy instance x"),
        ("initialize", "finalize"),
    ],
)
def test_what_a_call_below_kept_from_ending_may_be_gone_or_not(made: str, ended: str) -> None:
    begun: tuple[Exchange, ...] = (("initialize", DONE),) if made != "initialize" else ()
    half: tuple[Exchange, ...] = (*begun, (made, DONE), ("fail backing 1", DONE), (ended, OUT_OF_MEMORY))
    gone = Rejected(INVALID_VALUE)
    assert findings(*half, (ended, gone)) == ()
    assert findings(*half, (ended, DONE)) == ()
    assert findings(*half, (ended, DONE), (ended, DONE))
    assert findings(*begun, (made, DONE), (ended, gone))


def test_instances_may_go_with_the_runtime_that_they_are_left_in() -> None:
    up: tuple[Exchange, ...] = (("initialize", DONE), ("x = create instance", DONE))
    down: tuple[Exchange, ...] = (*up, ("finalize", DONE))
    for request in ("launch instance=x", "destroy instance x"):
        assert findings(*down, (request, Rejected(INVALID_VALUE))) == ()
        assert findings(*up, (request, Rejected(INVALID_VALUE)))
    assert findings(*down, ("y = partition instance=x", Rejected(INVALID_VALUE))) == ()
    assert findings(*down, ("y = partition instance=x", DONE))


@pytest.mark.parametrize(("waits", "is_forgotten"), [(True, False), (False, True)])
def test_what_was_freed_on_a_lost_stream_may_wait_for_all_it_was_given(waits: bool, is_forgotten: bool) -> None:
    wait: tuple[Exchange, ...] = (("wait event e on t", DONE),) if waits else ()
    exchanges: tuple[Exchange, ...] = (
        ("s = create stream nonblocking", DONE),
        ("t = create stream nonblocking", DONE),
        ("e = create event", DONE),
        ("a = allocate 1 on t", BLOCK, CHUNK),
        ("free a", DONE),
        ("b = allocate 1 on s", Allocated(1 << 30), (BackingAllocated(1 << 30, 1 << 20),)),
        ("stall s", DONE),
        ("fill b 0 on s", DONE),
        ("record event e on s", DONE),
        *wait,
        ("destroy stream t", DONE),
    )
    assert bool(findings(*exchanges, ("trim", DONE, 1 << 20), promises=TRIMS)) is is_forgotten
    waited: Exchange = ("synchronize device", DONE)
    assert findings(*exchanges, waited, ("trim", DONE, 1 << 20), promises=TRIMS)
