"""What a driver tells in its reply to ``open`` is judged like all that it tells."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from quiesce.allocators.cases.expansion import PerformStep
from quiesce.allocators.cases.parser import parse_text
from quiesce.allocators.execution import run_case
from quiesce.allocators.lockstep import Lockstep
from quiesce.backends.command import CommandBackend
from quiesce.backends.reference import backend as reference
from quiesce.backends.serving import serve
from quiesce.model.backend import Closing, Context, DeviceProfile, Reply
from quiesce.model.gauges import Readings
from quiesce.model.observations import BackingAllocated, BackingFreed, BackingRefused, Observation
from quiesce.model.operations import Allocate, Launch, Mark, Operation
from quiesce.model.outcomes import Allocated, Done, OutOfMemory, Unsupported
from quiesce.model.results import Verdict

DRIVERS = Path(__file__).parent / "drivers"
PROFILE = DeviceProfile()
TAKEN: tuple[Observation, ...] = (BackingRefused(9), BackingAllocated(0x100000, 8))
RETURNED = (BackingFreed(0x100000, 8),)
CASE = """\
title:    A block lies in the arena
kind:     found
finds:    blocks_lie_within_backing_memory
needs:    memory

a = allocate 4112
free a
"""


def arena(size: int) -> CommandBackend:
    hello = json.dumps({"gauges": {}, "promises": []})
    return CommandBackend([sys.executable, "-S", "-E", str(DRIVERS / "arena.py"), str(size), hello])


def test_it_is_told_with_the_first_answer_and_once() -> None:
    context = arena(8).open(PROFILE)
    assert context.perform(Allocate("a", 64)) == Reply(Allocated(0x100000), TAKEN)
    assert context.perform(Allocate("b", 64)) == Reply(Allocated(0x100000))
    assert context.close() == Closing(RETURNED)


def test_a_mark_is_an_answer_too() -> None:
    context = arena(8).open(PROFILE)
    assert context.perform(Mark("opened")) == Reply(Done(), TAKEN)
    assert context.perform(Mark("opened")) == Reply(Done())
    context.close()


def test_a_request_that_is_never_sent_is_an_answer_too() -> None:
    context = arena(8).open(PROFILE)
    reply = context.perform(Launch(reads=("block",) * 20_000))
    assert isinstance(reply.outcome, Unsupported)
    assert reply.observations == TAKEN
    context.close()


def test_where_nothing_was_asked_closing_tells_it() -> None:
    assert arena(8).open(PROFILE).close() == Closing((*TAKEN, *RETURNED))


@pytest.mark.parametrize(("size", "found"), [(8, ["blocks_lie_within_backing_memory"]), (4112, [])])
def test_a_block_has_to_lie_in_an_arena_that_was_told_at_the_opening(size: int, found: list[str]) -> None:
    result = run_case(parse_text(CASE, "x.case", "topic/x"), arena(size))
    assert [finding.rule for finding in result.findings] == found
    assert result.verdict is (Verdict.FAILED if found else Verdict.PASSED)


class _Arena:
    """A context of the reference that tells of an arena with its first answer, as the contract has it."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._taken = TAKEN[1:]

    def perform(self, operation: Operation) -> Reply:
        reply = self._context.perform(operation)
        taken, self._taken = self._taken, ()
        return replace(reply, observations=(*taken, *reply.observations))

    def readings(self) -> Readings:
        return self._context.readings()

    def close(self) -> Closing:
        return self._context.close()


class Telling:
    """The reference, with an arena."""

    def __init__(self) -> None:
        self.describe = reference().describe

    def open(self, profile: DeviceProfile) -> Context:
        return _Arena(reference().open(profile))


def test_a_served_backend_tells_it_in_the_reply_to_open() -> None:
    written = io.BytesIO()
    opening = (
        "open capacity=1048576 pinned-capacity=1048576 alignment=256 granularity=512 devices=1 flavour=cuda "
        "initialization=once"
    )
    serve(Telling(), [f"{line}\n".encode() for line in (opening, "a = allocate 0", "close")], written)
    opened, allocated, _ = map(json.loads, written.getvalue().splitlines())
    told = [{"seen": "backing-allocated", "address": "0x100000", "size": 8, "kind": "device", "device": 0}]
    assert opened == {"outcome": "done", "observations": told}
    assert "observations" not in allocated


class _Refusing(_Arena):
    """It gives up after one attempt of its usual chunk, and tells so."""

    def perform(self, operation: Operation) -> Reply:
        told = super().perform(Mark("the arena")).observations
        if isinstance(operation, Allocate):
            return Reply(OutOfMemory(), (*told, BackingRefused(32 << 20)))
        return replace(super().perform(operation), observations=told)


class Refusing(Telling):
    """A library that never tries a smaller chunk, with an arena."""

    def open(self, profile: DeviceProfile) -> Context:
        return _Refusing(reference().open(profile))


def test_the_opening_is_not_judged_as_part_of_the_first_request() -> None:
    """Whoever gives up after one refusal is found out, although the arena was not refused."""
    trial = Lockstep(Refusing(), DeviceProfile(capacity_bytes=64 << 10)).run(
        [PerformStep(Allocate("a", 63 << 10), None, 0)]
    )
    assert [finding.rule for finding in trial.findings] == ["pool_falls_back_to_a_smaller_chunk"]
