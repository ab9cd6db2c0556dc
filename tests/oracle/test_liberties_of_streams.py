"""Liberties in the order of streams that the contract leaves to those who stage and free, as dialogues."""

from __future__ import annotations

from quiesce.observations import CopyEnqueued
from quiesce.outcomes import Allocated

from .test_liberties import BLOCK, DONE, Exchange, findings


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
