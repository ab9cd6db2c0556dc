"""The host backend writes what it is told to, notices what nobody was told to write, and never frees damage."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest

from quiesce.backends.c_heap import CHeap, c_library
from quiesce.backends.host import EDGE_BYTES, HeapContext, backend
from quiesce.model.backend import BackendFault, Context, DeviceProfile
from quiesce.model.gauges import Gauge, Source
from quiesce.model.observations import BackingFreed, DeviceSynchronized
from quiesce.model.operations import Free, MemoryKind
from quiesce.model.outcomes import Allocated, Done, Outcome
from quiesce.model.requests import parse_request


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


@pytest.mark.parametrize("size_bytes", [0, 1, EDGE_BYTES - 1, EDGE_BYTES, EDGE_BYTES + 1, 2 * EDGE_BYTES + 1, 131_073])
def test_fill_and_copy_reach_every_byte(context: Context, size_bytes: int) -> None:
    source = address_of(context, f"a = allocate {size_bytes}")
    destination = address_of(context, f"b = allocate {size_bytes + 3}")
    assert ask(context, "fill a 171") == ask(context, "fill b 5") == Done()
    assert ctypes.string_at(source, size_bytes) == b"\xab" * size_bytes
    assert ask(context, "copy a to b") == Done()
    assert ctypes.string_at(destination, size_bytes + 3) == b"\xab" * size_bytes + b"\x05" * 3
    assert ask(context, "free a") == ask(context, "free b") == Done()


def test_copy_of_a_part_leaves_the_rest(context: Context) -> None:
    ask(context, "a = allocate 300")
    destination = address_of(context, "b = allocate 300")
    ask(context, "fill a 1")
    ask(context, "fill b 2")
    assert ask(context, "copy a to b size=10") == Done()
    assert ctypes.string_at(destination, 300) == b"\1" * 10 + b"\2" * 290
    assert ask(context, "free b") == Done()


@pytest.mark.parametrize("offset", [0, EDGE_BYTES - 1, -1])
@pytest.mark.parametrize("request_line", ["free a", "fill a 3", "copy a to b", "copy b to a"])
def test_damage_is_found_whoever_uses_the_block_next(request_line: str, offset: int) -> None:
    heap = CHeap(c_library())
    context = HeapContext(heap)
    address = address_of(context, "a = allocate 1000")
    ask(context, "b = allocate 1000")
    damaged = ctypes.c_ubyte.from_address(address + offset % 1000)
    damaged.value ^= 0xFF
    with pytest.raises(BackendFault) as fault:
        ask(context, request_line)
    assert fault.value.rule == "block_contents_survive"
    assert "'a', which has 1,000 bytes" in fault.value.observed
    closing = context.close()
    assert closing.readings[Gauge.BLOCKS, Source.LEDGER] == 1, "a damaged block is not freed, a whole one is"
    assert closing.readings[Gauge.BLOCKS, Source.CLAIM] == 1
    heap.free(address)


def test_a_new_block_carries_a_signature_of_its_own_at_both_ends(context: Context) -> None:
    first, second = address_of(context, "a = allocate 500"), address_of(context, "b = allocate 500")
    for offset in (0, 500 - EDGE_BYTES):
        assert ctypes.string_at(first + offset, EDGE_BYTES) == b"\1\0\0\0\0\0\0\0" * (EDGE_BYTES // 8)
        assert ctypes.string_at(second + offset, EDGE_BYTES) == b"\2\0\0\0\0\0\0\0" * (EDGE_BYTES // 8)


@pytest.mark.parametrize("written", ["fill a 1", "copy a to a"])
def test_what_was_written_is_complete_before_anything_else_happens(context: Context, written: str) -> None:
    address = address_of(context, "a = allocate 8")
    assert context.perform(parse_request(written)).observations == ()
    assert context.perform(Free("a")).observations == (DeviceSynchronized(), BackingFreed(address, 8))
    assert context.perform(parse_request("mark m")).observations == ()
    address_of(context, "b = allocate 8")
    ask(context, "fill b 1")
    assert context.close().observations[0] == DeviceSynchronized()


def test_blocks_that_share_memory_damage_each_other() -> None:
    shared = ctypes.create_string_buffer(200)
    addresses = iter([ctypes.addressof(shared), ctypes.addressof(shared) + 50])

    class Overlapping(CHeap):
        def allocate(self, size_bytes: int, alignment_bytes: int | None, kind: MemoryKind) -> int | None:
            return next(addresses)

    context = HeapContext(Overlapping(c_library()))
    ask(context, "a = allocate 100")
    ask(context, "b = allocate 100")
    with pytest.raises(BackendFault, match="of 'a'"):
        ask(context, "free a")
