"""Liberties that the contract leaves to pools: their chunks, a limit, a graph with memory of theirs, as dialogues."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from quiesce.model.backend import Description, Promise
from quiesce.model.observations import BackingAllocated, BackingFreed, BackingRefused, EventRecorded, Observation
from quiesce.model.operations import MemoryKind
from quiesce.model.outcomes import (
    BACKING_ERROR,
    ILLEGAL_STATE,
    INVALID_VALUE,
    NOT_READY,
    Allocated,
    Outcome,
    OutOfMemory,
    Rejected,
)

from .test_liberties import BLOCK, CHUNK, DESCRIPTION, DONE, OUT_OF_MEMORY, TRIMS, UNTOLD, Exchange, findings

ILLEGAL = Rejected(ILLEGAL_STATE)

OF_A_GRAPH: tuple[Exchange, ...] = (
    ("p = create pool", DONE),
    ("s = create stream", DONE),
    ("begin capture on s", DONE),
    ("a = allocate 1 on s pool=p", BLOCK),
    ("free a", DONE),
)
CAPTURED: tuple[Exchange, ...] = (*OF_A_GRAPH, ("g = end capture on s", DONE))


def test_a_pool_may_refuse_to_go_while_a_graph_has_memory_of_it() -> None:
    assert findings(*OF_A_GRAPH, ("destroy pool p", ILLEGAL)) == ()
    assert findings(*CAPTURED, ("destroy pool p", ILLEGAL)) == ()
    assert findings(*CAPTURED, ("destroy pool p", DONE)) == ()


def test_a_pool_may_have_made_a_place_for_what_a_graph_did_not_get() -> None:
    captured = (*OF_A_GRAPH[:3], ("a = allocate 1GiB on s pool=p", OutOfMemory()), ("g = end capture on s", DONE))
    assert findings(*captured, ("destroy pool p", ILLEGAL)) == ()
    assert findings(*captured, ("destroy graph g", DONE), ("destroy pool p", ILLEGAL))


@pytest.mark.parametrize("description", [DESCRIPTION, UNTOLD])
def test_what_a_failed_request_took_in_a_capture_may_stay_for_the_graph(description: Description) -> None:
    taken: Exchange = ("a = allocate 1GiB on s", OutOfMemory(), (BackingAllocated(1 << 30, 1 << 20),))
    if description is UNTOLD:
        taken = ("a = allocate 1GiB on s", OutOfMemory(), 1 << 20)
    captured = (("mark m", DONE, 0), *OF_A_GRAPH[1:3], taken, ("g = end capture on s", DONE))
    trim = partial(findings, *captured, promises=TRIMS, description=description)
    assert trim(("trim", DONE)) == ()
    assert trim(("destroy graph g", DONE), ("trim", DONE))
    assert findings(
        *captured[:3], taken, ("destroy stream s", DONE), ("trim", DONE), promises=TRIMS, description=description
    )


@pytest.mark.parametrize("request_line", ["a = allocate 1GiB on s", "a = stage h on s"])
@pytest.mark.parametrize("description", [DESCRIPTION, UNTOLD])
def test_what_a_failed_request_had_may_go_back_in_the_order_of_its_stream(
    description: Description, request_line: str
) -> None:
    stalled: tuple[Exchange, ...] = (("s = create stream", DONE), ("stall s", DONE))
    host: Exchange = ("h = allocate 1 pageable", Allocated(1 << 32), 0)
    taken: Exchange = (request_line, OUT_OF_MEMORY, (BackingAllocated(1 << 30, 1 << 20),))
    failed = (host, *stalled, (request_line, OUT_OF_MEMORY, 1 << 20) if description is UNTOLD else taken)
    judged = partial(findings, *failed, promises=TRIMS, description=description)
    assert judged(("trim", DONE)) == ()
    assert judged(("synchronize device", DONE), ("trim", DONE))


@pytest.mark.parametrize(
    "opened",
    [
        ("trim", DONE, CHUNK),
        ("s = create stream", DONE, CHUNK),
        ("a = allocate 1", Allocated(1 << 30), (*CHUNK, BackingAllocated(1 << 30, 1 << 20))),
    ],
)
def test_what_the_first_answer_tells_of_may_be_the_librarys_own(opened: Exchange) -> None:
    assert findings(opened, ("trim", DONE), promises=TRIMS) == ()
    used: tuple[Exchange, ...] = (("b = allocate 1", BLOCK), ("free b", DONE))
    assert findings(opened, *used, ("trim", DONE), promises=TRIMS)


def test_what_was_cached_before_a_request_failed_goes_back_at_once() -> None:
    block: Exchange = ("b = allocate 1", BLOCK, (BackingAllocated(1 << 20, 1 << 20),))
    cached: tuple[Exchange, ...] = (block, ("free b", DONE), ("s = create stream nonblocking", DONE), ("stall s", DONE))
    failed = (*cached, ("a = allocate 1GiB on s", OUT_OF_MEMORY))
    assert findings(*failed, ("trim", DONE), promises=TRIMS)


HELD: tuple[Exchange, ...] = (("a = allocate 1", BLOCK, (BackingAllocated(1 << 20, 1 << 20),)), ("free a", DONE))
STREAMS: tuple[Exchange, ...] = (
    ("s = create stream nonblocking", DONE),
    ("t = create stream nonblocking", DONE),
)


@pytest.mark.parametrize(
    ("then", "is_excused"),
    [
        ((("launch on s", DONE),), True),
        ((("stall s", DONE), ("launch on s", OUT_OF_MEMORY)), True),
        ((("stall s", DONE), ("query stream s", Rejected(NOT_READY))), False),
        ((("launch on s", DONE), ("synchronize stream s", DONE)), False),
        ((("launch on s", DONE), ("destroy stream s", DONE)), True),
        ((("launch on s", DONE), ("destroy stream s", DONE), ("synchronize device", DONE)), False),
        ((("launch on s", DONE), ("stall t", DONE), ("synchronize stream s", DONE)), False),
        ((("begin capture on s", DONE), ("launch on s", DONE), ("g = end capture on s", DONE)), False),
    ],
)
def test_a_launch_may_have_scratch_memory_that_goes_back_in_its_order(
    then: tuple[Exchange, ...], *, is_excused: bool
) -> None:
    dialogue = (*HELD, *STREAMS, *then, ("trim", DONE))
    assert bool(findings(*dialogue, promises=TRIMS)) is not is_excused


def test_device_memory_is_nothing_that_a_trim_of_managed_memory_is_about() -> None:
    launched: Exchange = ("launch", DONE, CHUNK)
    held: tuple[Exchange, ...] = (("query stream", DONE, 1 << 20), ("trim managed", DONE, 1 << 20))
    assert findings(launched, *held, promises=TRIMS) == ()
    assert findings(*held, promises=TRIMS)


def test_a_graph_has_scratch_memory_where_it_runs() -> None:
    graph: tuple[Exchange, ...] = (("begin capture on t", DONE), ("launch on t", DONE), ("g = end capture on t", DONE))
    runs = (*HELD, *STREAMS, *graph, ("launch graph g on s", DONE))
    assert findings(*runs, ("trim", DONE), promises=TRIMS) == ()
    assert findings(*runs, ("synchronize stream s", DONE), ("trim", DONE), promises=TRIMS)


def test_scratch_memory_was_there_before_the_launch() -> None:
    launched: tuple[Exchange, ...] = (*STREAMS, ("launch on s", DONE))
    assert findings(*launched, *HELD, ("trim", DONE), promises=TRIMS)
    beside: Exchange = ("launch on s", DONE, (BackingAllocated(1 << 20, 1 << 20),))
    in_it: tuple[Exchange, ...] = (beside, ("a = allocate 1", BLOCK), ("free a", DONE))
    assert findings(*STREAMS, *in_it, ("trim", DONE), promises=TRIMS) == ()


@pytest.mark.parametrize(("stream", "is_excused"), [("s", True), ("t", False)])
def test_scratch_memory_may_wait_for_an_event_recorded_later(stream: str, *, is_excused: bool) -> None:
    marked = EventRecorded("internal:1", stream)
    dialogue = (*HELD, *STREAMS, ("launch on s", DONE), ("synchronize device", DONE))
    late: tuple[Exchange, ...] = ((f"stall {stream}", DONE), ("b = allocate 1", OUT_OF_MEMORY, (marked,)))
    assert bool(findings(*dialogue, *late, ("trim", DONE), promises=TRIMS)) is not is_excused


def test_a_pool_of_which_no_graph_has_memory_goes() -> None:
    assert findings(*CAPTURED, ("q = create pool", DONE), ("destroy pool q", ILLEGAL))
    assert findings(*CAPTURED, ("destroy graph g", DONE), ("destroy pool p", ILLEGAL))


@pytest.mark.parametrize(("seen", "is_judged"), [((BackingRefused(40 << 20),), True), ((), False)])
def test_who_tells_what_backing_refused_tells_all_that_it_gave(seen: tuple[Observation, ...], is_judged: bool) -> None:
    exchanges: tuple[Exchange, ...] = (
        ("p = create pool limit=256MiB", DONE),
        ("fail backing 1 with foreign-error", DONE),
        ("a = allocate 40MiB pool=p", Rejected(BACKING_ERROR), seen),
    )
    again: Exchange = ("b = allocate 40MiB pool=p", OutOfMemory())
    assert bool(findings(*exchanges, again, promises=frozenset({Promise.RECLAIMS_BEFORE_OOM}))) is is_judged


def test_a_smaller_chunk_is_as_small_as_the_pool_likes() -> None:
    usual, smaller = BackingRefused(9 << 20), BackingRefused(6 << 20)
    description, retries = replace(DESCRIPTION, chunk_bytes=9 << 20), frozenset({Promise.RETRIES_SMALLER})
    for refused, is_retried in ((usual, smaller), True), ((usual, usual), False):
        tried: Exchange = ("a = allocate 1", OUT_OF_MEMORY, refused)
        assert bool(findings(tried, promises=retries, description=description)) is not is_retried


@pytest.mark.parametrize(
    ("armed", "asked", "is_usual"),
    [
        ((), (), True),
        ((("fail bookkeeper 3", DONE),), (), False),  # it may be met before anything is asked of the backing allocator
        ((), (BackingRefused(4 << 20),), False),  # so much had no room beside what was held
    ],
)
def test_what_a_pool_takes_after_a_failure_is_not_its_first_chunk(
    armed: tuple[Exchange, ...], asked: tuple[Observation, ...], is_usual: bool
) -> None:
    held, small, large = (1 << 20, 5 << 20), (1 << 30, 4096), (1 << 30, 4 << 20)
    beside: tuple[Exchange, ...] = (
        ("x = allocate 5MiB", Allocated(held[0]), (BackingAllocated(*held),)),
        ("free x", DONE),
        *armed,
    )
    squeezed = (*asked, BackingFreed(*held), BackingAllocated(*small))
    first: tuple[Exchange, ...] = (("a = allocate 4096", Allocated(small[0]), squeezed), ("free a", DONE))
    again: Exchange = ("b = allocate 4096", Allocated(large[0]), (BackingFreed(*small), BackingAllocated(*large)))
    resets = frozenset({Promise.GROWTH_RESETS})
    assert bool(findings(*beside, *first, again, promises=resets)) is is_usual


@pytest.mark.parametrize(("pool", "is_kept"), [("p = create pool limit=12MiB", True), ("p = create pool", False)])
def test_a_limit_may_keep_a_pool_from_its_usual_chunk(pool: str, is_kept: bool) -> None:
    description, retries = replace(DESCRIPTION, chunk_bytes=9 << 20), frozenset({Promise.RETRIES_SMALLER})
    smaller = (BackingRefused(9 << 20), BackingAllocated(1 << 20, 6 << 20))
    made: tuple[Exchange, ...] = ((pool, DONE), ("a = allocate 6MiB pool=p", BLOCK, smaller))
    tried: Exchange = ("b = allocate 1 pool=p", OUT_OF_MEMORY, (BackingRefused(6 << 20),))
    assert bool(findings(*made, tried, promises=retries, description=description)) is not is_kept


def test_a_limit_may_count_more_than_was_asked_for() -> None:
    promises = frozenset({Promise.REUSES_BLOCKS})
    chunk: Exchange = ("a = allocate 1MiB pool=p", BLOCK, (BackingAllocated(1 << 20, 4 << 20),))
    again: Exchange = ("c = allocate 1MiB pool=p", OUT_OF_MEMORY)
    for made, is_judged in (("p = create pool", True), ("p = create pool limit=2MiB", False)):
        exchanges = ((made, DONE), chunk, ("free a", DONE), again)
        assert bool(findings(*exchanges, promises=promises)) is is_judged


@pytest.mark.parametrize(("beside", "behind"), [("free a", "mark m"), ("trim pool=p", "free a"), ("mark m", "free a")])
def test_a_pool_of_which_something_was_asked_beside_a_capture_may_refuse_to_go(beside: str, behind: str) -> None:
    exchanges: tuple[Exchange, ...] = (
        ("p = create pool", DONE),
        ("s = create stream", DONE),
        ("a = allocate 1 pool=p", BLOCK),
        ("begin capture on s mode=relaxed", DONE),
        (beside, DONE),
        ("g = end capture on s", DONE),
        (behind, DONE),
        ("destroy pool p", ILLEGAL),
    )
    assert bool(findings(*exchanges)) is (beside == "mark m")


def test_a_chunk_that_blocks_of_several_pools_were_in_is_anybodys() -> None:
    first: tuple[Exchange, ...] = (
        ("p = create pool", DONE),
        ("a = allocate 1 pool=p", BLOCK, CHUNK),
        ("free a", DONE),
    )
    then: tuple[Exchange, ...] = (("b = allocate 1", BLOCK), ("free b", DONE))
    for request in ("destroy pool p", "trim pool=p"):
        assert findings(*first, *then, (request, DONE), promises=TRIMS) == ()
        assert findings(*first, (request, DONE), promises=TRIMS)
    default: tuple[Exchange, ...] = (("p = create pool", DONE), ("a = allocate 1", BLOCK, CHUNK), ("free a", DONE))
    other: tuple[Exchange, ...] = (("b = allocate 1 pool=p", BLOCK), ("free b", DONE))
    assert findings(*default, *other, ("trim", DONE), promises=TRIMS) == ()
    assert findings(*default, ("trim", DONE), promises=TRIMS)


def test_memory_that_blocks_of_another_kind_were_in_is_anybodys() -> None:
    chunk = (BackingAllocated(1 << 20, 1 << 20, MemoryKind.PINNED),)
    first: tuple[Exchange, ...] = (("a = allocate 1 pinned", BLOCK, chunk), ("free a", DONE))
    then: tuple[Exchange, ...] = (("b = allocate 1 pageable", BLOCK), ("free b", DONE))
    assert findings(*first, *then, ("trim pinned", DONE), promises=TRIMS) == ()
    assert findings(*first, ("trim pinned", DONE), promises=TRIMS)


def test_a_device_block_may_lie_in_managed_memory() -> None:
    seen: Exchange = ("a = allocate 1", BLOCK, CHUNK)
    managed = (BackingAllocated(1 << 30, 1 << 20, MemoryKind.MANAGED),)
    assert findings(seen, ("b = allocate 1", Allocated(1 << 30), managed)) == ()
    pinned = (BackingAllocated(1 << 30, 1 << 20, MemoryKind.PINNED),)
    assert findings(seen, ("b = allocate 1", Allocated(1 << 30), pinned))


@pytest.mark.parametrize("outcome", [DONE, Rejected(INVALID_VALUE)])
def test_a_destroyed_pool_may_stay_until_its_last_block_is_freed(outcome: Outcome) -> None:
    destroyed: tuple[Exchange, ...] = (
        ("p = create pool", DONE),
        ("s = create stream", DONE),
        ("a = allocate 1 pool=p", BLOCK, CHUNK),
        ("b = allocate 1 pool=p", Allocated(BLOCK.address + 512)),
        ("launch on s writes=b", DONE),
        ("destroy pool p", DONE),
        ("trim", DONE),
        ("free a", outcome),
        ("trim", DONE),
    )
    idle: Exchange = ("synchronize stream s", DONE)
    released = (BackingFreed(1 << 20, 1 << 20),)
    assert findings(*destroyed, promises=TRIMS) == ()
    assert findings(*destroyed, idle, ("free b", outcome, released), promises=TRIMS) == ()
    assert [each.rule for each in findings(*destroyed, idle, ("free b", outcome), promises=TRIMS)] == [
        "destroyed_pools_own_nothing"
    ]
    assert findings(*destroyed, ("free b", outcome), ("trim", DONE), promises=TRIMS) == ()  # in flight
    owned = [*destroyed[:-4], ("free a", DONE), idle, ("free b", DONE), destroyed[-4]]
    assert findings(*owned, promises=TRIMS)
