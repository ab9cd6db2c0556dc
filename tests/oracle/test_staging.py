"""Buffers of a library's own between the host's data and the device, as dialogues: who may fill one again, and when."""

from __future__ import annotations

import pytest

from quiesce.model.observations import (
    BackingAllocated,
    BackingFreed,
    CopyEnqueued,
    EventCompleted,
    EventRecorded,
    EventWaited,
    Observation,
)
from quiesce.model.operations import MemoryKind
from quiesce.model.outcomes import Allocated

from .test_liberties import DONE, ORDER_UNTOLD, Exchange, findings

BUFFER = 1 << 20
PINNED, PAGEABLE = MemoryKind.PINNED, MemoryKind.PAGEABLE
HOST: tuple[Exchange, ...] = (
    ("s = create stream", DONE),
    ("h = allocate 256 pageable", Allocated(1 << 30)),
    ("k = allocate 256 pageable", Allocated(2 << 30)),
)
RECORDED = EventRecorded("internal:1", "s")
COMPLETED = EventCompleted("internal:1")


def held(kind: MemoryKind) -> BackingAllocated:
    return BackingAllocated(BUFFER, 4096, kind)


def staged(slot: str, source: str, *before: Observation, at: int = BUFFER, to: int = 0) -> Exchange:
    """Return how a block is staged through the buffer, with an event recorded behind the copy."""
    made = (3 if slot == "a" else 4) << 30
    return f"{slot} = stage {source} on s", Allocated(made), (*before, CopyEnqueued(at, made + to, 256, "s"), RECORDED)


def test_a_buffer_is_filled_again_when_the_copy_out_of_it_is_done() -> None:
    first = staged("a", "h", held(PINNED))
    (finding,) = findings(*HOST, first, staged("b", "k"))
    assert finding.rule == "memory_is_reused_only_after_its_last_use"
    assert "'the staging buffer of k' ordered after the work on 'the staging buffer of h'" in finding.expected
    assert findings(*HOST, first, staged("b", "k", COMPLETED)) == ()
    assert findings(*HOST, first, ("synchronize stream s", DONE), staged("b", "k")) == ()
    assert findings(*HOST, first, staged("b", "k", at=BUFFER + 256)) == ()


@pytest.mark.parametrize(
    "exchange",
    [
        ("p = allocate 256 pinned", Allocated(BUFFER)),
        ("q = create pool", DONE, (BackingFreed(BUFFER, 4096, PINNED),)),
    ],
)
def test_a_buffer_is_handed_out_or_goes_back_when_the_copy_out_of_it_is_done(exchange: Exchange) -> None:
    first = staged("a", "h", held(PINNED))
    assert findings(*HOST, first, exchange)
    assert findings(*HOST, first, ("synchronize device", DONE), exchange) == ()


def test_a_buffer_keeps_what_is_staged_again() -> None:
    twice = (staged("a", "h", held(PINNED)), staged("b", "h"))
    assert findings(*HOST, *twice) == ()
    assert findings(*HOST, *twice, ("free b", DONE), staged("b", "k"))


def test_a_block_is_staged_piece_by_piece_out_of_buffers_that_take_turns() -> None:
    pieces = (
        held(PINNED),
        CopyEnqueued(BUFFER, 3 << 30, 128, "s"),
        RECORDED,
        CopyEnqueued(BUFFER + 256, (3 << 30) + 128, 128, "s"),
        EventRecorded("internal:2", "s"),
    )
    first: Exchange = ("a = stage h on s", Allocated(3 << 30), pieces)
    waited = EventWaited("internal:1", None)
    assert findings(*HOST, first, staged("b", "k", waited)) == ()
    assert findings(*HOST, first, staged("b", "k", EventCompleted("internal:2"))) == ()
    assert findings(*HOST, first, staged("b", "k"))
    assert findings(*HOST, first, staged("b", "k", waited, at=BUFFER + 256))
    early = (pieces[0], RECORDED, *pieces[1:2], *pieces[3:])
    assert findings(*HOST, ("a = stage h on s", Allocated(3 << 30), early), staged("b", "k", waited))


def test_a_block_is_staged_over_the_stream_and_one_of_the_librarys_own() -> None:
    own = CopyEnqueued(BUFFER + 256, (3 << 30) + 128, 128, "internal:c")
    waited = EventWaited("internal:2", "s")
    behind = (own, EventRecorded("internal:2", "internal:c"), waited)
    first = (held(PINNED), CopyEnqueued(BUFFER, 3 << 30, 128, "s"), RECORDED, *behind)
    made: Exchange = ("a = stage h on s", Allocated(3 << 30), first)
    assert findings(*HOST, made, staged("b", "k", EventWaited("internal:1", None))) == ()
    assert findings(*HOST, made, staged("b", "k"))


def test_of_a_pageable_buffer_all_was_read_when_the_copy_returned() -> None:
    for seen in ((), (held(PAGEABLE),)):
        assert findings(*HOST, staged("a", "h", *seen), staged("b", "k")) == ()


def test_padding_is_nobodys_content() -> None:
    assert findings(*HOST, staged("a", "h", held(PINNED), to=256), staged("b", "k", to=256)) == ()


def test_where_no_order_is_told_nobody_knows_what_was_waited_for() -> None:
    exchanges = (*HOST, staged("a", "h", held(PINNED)), staged("b", "k"))
    assert findings(*exchanges, description=ORDER_UNTOLD) == ()


def test_a_copy_on_a_stream_of_the_librarys_own_waits_for_earlier_work() -> None:
    device = BackingAllocated(3 << 30, 4096)
    freed: tuple[Exchange, ...] = (
        *HOST,
        ("a = allocate 256 on s", Allocated(3 << 30), (device,)),
        ("launch on s writes=a", DONE),
        ("free a", DONE),
    )
    copied = CopyEnqueued(BUFFER, 3 << 30, 256, "internal:copy")
    waited = (EventRecorded("internal:2", "s"), EventWaited("internal:2", "internal:copy"))
    (finding,) = findings(*freed, ("b = stage h on s", Allocated(3 << 30), (copied,)))
    assert finding.rule == "memory_is_reused_only_after_its_last_use"
    assert findings(*freed, ("b = stage h on s", Allocated(3 << 30), (*waited, copied))) == ()


def copied_on_its_own(*behind: Observation, source: str = "h", at: int = BUFFER) -> Exchange:
    """Return how a block is staged by a copy on a stream of the library's own."""
    seen = (EventRecorded("internal:3", "s"), CopyEnqueued(at, 3 << 30, 256, "internal:copy"), *behind)
    return f"a = stage {source} on s", Allocated(3 << 30), seen


JOINED = (EventRecorded("internal:2", "internal:copy"), EventWaited("internal:2", "s"))


def test_work_on_a_block_comes_behind_the_librarys_own_copy_to_it() -> None:
    used: Exchange = ("launch on s writes=a", DONE)
    (finding,) = findings(*HOST, copied_on_its_own(), used)
    assert finding.rule == "memory_is_reused_only_after_its_last_use"
    assert "'the copy that made a'" in finding.expected
    assert findings(*HOST, copied_on_its_own(*JOINED), used) == ()
    assert findings(*HOST, copied_on_its_own(), ("synchronize device", DONE), used) == ()
    too_early = (JOINED[0], CopyEnqueued(BUFFER, 3 << 30, 256, "internal:copy"), JOINED[1])
    assert findings(*HOST, copied_on_its_own(*too_early), used)


def test_copies_on_two_streams_of_the_librarys_own_do_not_wait_for_each_other() -> None:
    other = CopyEnqueued(BUFFER + 256, (3 << 30) + 128, 128, "internal:other")
    joined = (other, EventRecorded("internal:4", "internal:other"), EventWaited("internal:4", "s"), *JOINED)
    assert findings(*HOST, copied_on_its_own(*joined), ("launch on s writes=a", DONE)) == ()


def test_a_copy_straight_from_ordinary_memory_may_be_waited_for_by_itself() -> None:
    assert findings(*HOST, copied_on_its_own(at=1 << 30), ("launch on s writes=a", DONE)) == ()


def test_a_pinned_source_is_in_use_until_the_librarys_own_copy_has_read_it() -> None:
    pinned: tuple[Exchange, ...] = (
        *HOST,
        ("p = allocate 256 pinned", Allocated(BUFFER)),
        copied_on_its_own(*JOINED, source="p"),
        ("free p", DONE),
    )
    again = ("q = allocate 256 pinned", Allocated(BUFFER))
    asked_before, asked_behind = EventCompleted("internal:3"), EventCompleted("internal:2")
    assert findings(*pinned, (*again, (asked_behind,))) == ()
    assert findings(*pinned, (*again, (asked_before,)))
    assert findings(*pinned, again)
