"""The host backend keeps its contract on the real C heap, and its ledger sees what its claims hide."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest

from quiesce.backends.c_heap import CHeap, HeapFunctions, c_library
from quiesce.backends.host import EDGE_BYTES, Heap, HeapContext, backend
from quiesce.model.backend import Backend, Capability, Context, DeviceProfile, Promise
from quiesce.model.errors import BackendUnavailable
from quiesce.model.gauges import Gauge, Source
from quiesce.model.observations import BackingAllocated, BackingFreed, BackingRefused
from quiesce.model.operations import Free, MemoryKind
from quiesce.model.outcomes import (
    ILLEGAL_STATE,
    INVALID_VALUE,
    Allocated,
    Done,
    Outcome,
    OutOfMemory,
    Rejected,
    Unsupported,
)
from quiesce.model.requests import SIZE_BYTES_MAX, parse_request

SIZE_EDGES = (0, 1, 7, 8, EDGE_BYTES - 1, EDGE_BYTES, EDGE_BYTES + 1, 2 * EDGE_BYTES + 1, 1032, 1033, 4095, 131_073)


@pytest.fixture
def context() -> Iterator[Context]:
    opened = backend().open(DeviceProfile())
    yield opened
    opened.close()


def ask(context: Context, request: str) -> Outcome:
    return context.perform(parse_request(request)).outcome


def address_of(context: Context, request: str) -> int:
    outcome = ask(context, request)
    assert isinstance(outcome, Allocated)
    return outcome.address


def both(context: Context, gauge: Gauge) -> tuple[int, int]:
    readings = context.readings()
    return readings[gauge, Source.CLAIM], readings[gauge, Source.LEDGER]


def test_backend_keeps_the_contract_and_offers_a_capacity() -> None:
    host = backend()
    assert isinstance(host, Backend)
    description = host.describe()
    assert description.name == "host"
    assert {Capability.MEMORY, Capability.CAPACITY, Capability.BACKING_LEDGER} <= description.capabilities
    assert not {Capability.STREAMS, Capability.POOL, Capability.PINNED} & description.capabilities
    assert Promise.CAPACITY_LIMIT in description.promises
    assert Capability.CAPACITY not in Heap().describe().capabilities


def test_readings_are_exactly_what_the_description_names(context: Context) -> None:
    assert isinstance(context, Context)
    named = {(gauge, source) for gauge, sources in backend().describe().gauges.items() for source in sources}
    assert set(context.readings()) == named


@pytest.mark.parametrize("answer", [None, "musl 1.2.5", ValueError("unrecognized configuration name")])
def test_without_glibc_it_is_unavailable_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch, answer: str | ValueError | None
) -> None:
    def confstr(name: str) -> str | None:
        if isinstance(answer, ValueError):
            raise answer
        return answer

    monkeypatch.setattr(os, "confstr", confstr)
    with pytest.raises(BackendUnavailable, match="run it on Linux with glibc"):
        backend().describe()


@pytest.mark.parametrize(("capacity_bytes", "asked"), [(1 << 60, []), (4096, [4096])])
def test_a_capacity_that_cannot_be_had_is_unavailable(
    monkeypatch: pytest.MonkeyPatch, capacity_bytes: int, asked: list[int]
) -> None:
    seen: list[int] = []

    def refuse(size_bytes: int) -> None:
        seen.append(size_bytes)

    monkeypatch.setattr("quiesce.backends.host.c_library", lambda: HeapFunctions(refuse, lambda *_: None, seen.remove))
    with pytest.raises(BackendUnavailable, match="choose a profile with a smaller capacity"):
        backend().open(DeviceProfile(capacity_bytes=capacity_bytes))
    assert seen == asked, "what is beyond the machine is not even asked for: Linux might promise it"


def test_opening_gives_back_what_it_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []

    def allocate(size_bytes: int) -> int:
        held.append(size_bytes)
        return size_bytes

    monkeypatch.setattr(
        "quiesce.backends.host.c_library", lambda: HeapFunctions(allocate, lambda *_: None, held.remove)
    )
    context = backend().open(DeviceProfile(capacity_bytes=4096))
    assert held == []
    assert context.readings()[Gauge.BACKING_CALLS, Source.LEDGER] == 0


@pytest.mark.parametrize("size_bytes", SIZE_EDGES)
def test_size_edges_come_and_go(context: Context, size_bytes: int) -> None:
    first = address_of(context, f"a = allocate {size_bytes}")
    second = address_of(context, f"b = allocate {size_bytes}")
    assert abs(first - second) >= max(size_bytes, 1)
    assert both(context, Gauge.LIVE) == (2 * size_bytes, 2 * size_bytes)
    assert ask(context, "free a") == ask(context, "free b") == Done()
    assert both(context, Gauge.BLOCKS) == (0, 0)


@pytest.mark.parametrize("alignment", ["", " align=1", " align=256"])
@pytest.mark.parametrize("size_bytes", [1 << 63, *range(SIZE_BYTES_MAX - 510, SIZE_BYTES_MAX + 1, 51), SIZE_BYTES_MAX])
def test_sizes_that_no_heap_has_are_out_of_memory(size_bytes: int, alignment: str) -> None:
    context = Heap().open(DeviceProfile())
    reply = context.perform(parse_request(f"a = allocate {size_bytes}{alignment}"))
    assert reply.outcome == OutOfMemory()
    assert reply.observations == (BackingRefused(size_bytes),)
    assert both(context, Gauge.LIVE) == (0, 0)
    assert ask(context, "free a") == Rejected(INVALID_VALUE)


@pytest.mark.parametrize("alignment_bytes", [1 << power for power in range(21)])
def test_alignment_is_kept(context: Context, alignment_bytes: int) -> None:
    for index, size_bytes in enumerate(SIZE_EDGES):
        assert address_of(context, f"b[{index}] = allocate {size_bytes} align={alignment_bytes}") % alignment_bytes == 0


def test_every_block_has_the_alignment_that_is_described(context: Context) -> None:
    alignment_bytes = backend().describe().alignment_bytes
    assert alignment_bytes >= 8
    for size_bytes in range(200):
        assert address_of(context, f"b[{size_bytes}] = allocate {size_bytes}") % alignment_bytes == 0


def test_observations_name_what_crossed_the_door(context: Context) -> None:
    made = context.perform(parse_request("a = allocate 100 pageable"))
    assert isinstance(made.outcome, Allocated)
    address = made.outcome.address
    assert made.observations == (BackingAllocated(address, 100, MemoryKind.PAGEABLE),)
    assert context.readings()[Gauge.RESERVED, Source.LEDGER] == 0
    assert context.perform(Free("a")).observations == (BackingFreed(address, 100, MemoryKind.PAGEABLE),)


def test_misuse_is_rejected_and_changes_nothing(context: Context) -> None:
    ask(context, "a = allocate 100")
    before = context.readings()
    assert ask(context, "a = allocate 50") == Rejected(INVALID_VALUE)
    for request in ("free b", "fill b 1", "copy a to b", "copy a to a size=101"):
        assert ask(context, request) == Rejected(INVALID_VALUE), request
    assert context.readings() == before
    assert ask(context, "free a") == Done()
    assert ask(context, "free a") == Rejected(INVALID_VALUE)
    assert both(context, Gauge.BLOCKS) == (0, 0)


@pytest.mark.parametrize("request_line", ["use device 0", "synchronize device", "mark m"])
def test_what_a_synchronous_heap_has_always_done_is_done(context: Context, request_line: str) -> None:
    assert ask(context, request_line) == Done()


@pytest.mark.parametrize(
    "request_line",
    [
        "a = allocate 1 pinned",
        "a = allocate 1 managed",
        "a = allocate 1 on s",
        "a = allocate 1 pool=p",
        "free b on s",
        "fill b 1 on s",
        "copy b to b on s",
        "trim",
        "s = create stream",
        "synchronize stream",
        "use device 1",
        "a = stage b",
        "launch reads=b",
        "initialize",
        "n = node",
        "fail backing 1",
    ],
)
def test_what_a_heap_lacks_is_unsupported(context: Context, request_line: str) -> None:
    ask(context, "b = allocate 8")
    before = context.readings()
    outcome = ask(context, request_line)
    assert isinstance(outcome, Unsupported)
    assert "C heap" in outcome.reason
    assert context.readings() == before


def test_close_frees_everything_once(context: Context) -> None:
    first = address_of(context, "a = allocate 10")
    second = address_of(context, "b = allocate 20")
    closing = context.close()
    assert closing.observations == (BackingFreed(first, 10), BackingFreed(second, 20))
    assert closing.readings[Gauge.RETAINED, Source.LEDGER] == closing.readings[Gauge.LIVE, Source.CLAIM] == 0
    assert context.close().observations == ()
    assert context.close().readings == closing.readings
    assert ask(context, "c = allocate 1") == Rejected(ILLEGAL_STATE)


class Forgetful(CHeap):
    """A canary: it forgets to give every third block back."""

    frees = 0

    def free(self, address: int) -> None:
        self.frees += 1
        if self.frees % 3:
            super().free(address)
        else:
            self.forgotten = address


def test_ledger_sees_the_block_that_the_claim_forgot() -> None:
    heap = Forgetful(c_library())
    context = HeapContext(heap)
    for index in range(3):
        ask(context, f"b[{index}] = allocate {100 + index}")
    for index in range(3):
        assert ask(context, f"free b[{index}]") == Done()
    closing = context.close()
    assert closing.readings[Gauge.LIVE, Source.CLAIM] == closing.readings[Gauge.BLOCKS, Source.CLAIM] == 0
    assert closing.readings[Gauge.LIVE, Source.LEDGER] == closing.readings[Gauge.RESERVED, Source.LEDGER] == 102
    assert closing.readings[Gauge.BLOCKS, Source.LEDGER] == closing.readings[Gauge.RETAINED, Source.LEDGER] == 1
    CHeap.free(heap, heap.forgotten)


def test_claim_and_ledger_agree_over_a_long_random_life(context: Context) -> None:
    draw = random.Random(7)
    live: dict[str, int] = {}
    for step in range(4000):
        if live and draw.random() < 0.49:
            slot = draw.choice(list(live))
            assert ask(context, f"free {slot}") == Done()
            del live[slot]
        else:
            slot, size_bytes = f"b[{step}]", draw.choice(SIZE_EDGES)
            alignment = draw.choice(["", " align=64", " align=4096"])
            assert isinstance(ask(context, f"{slot} = allocate {size_bytes}{alignment}"), Allocated)
            live[slot] = size_bytes
        assert both(context, Gauge.LIVE) == (sum(live.values()),) * 2
        assert both(context, Gauge.BLOCKS) == (len(live),) * 2
    assert len(live) > 50


@pytest.mark.parametrize("live_blocks", [0, 3000])
def test_an_operation_is_one_call_however_many_blocks_live(context: Context, live_blocks: int) -> None:
    for index in range(live_blocks):
        ask(context, f"b[{index}] = allocate 100")
    for index in range(0, live_blocks, 2):
        ask(context, f"free b[{index}]")
    calls = Gauge.BACKING_CALLS, Source.LEDGER
    before = context.readings()[calls]
    ask(context, "a = allocate 500")
    ask(context, "free a")
    assert context.readings()[calls] == before + 2
