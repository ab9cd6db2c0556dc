"""Memory of the simulated runtime: capacity, addresses, kinds, poison, red zones, what is wrong with a free."""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import pytest

from quiesce.simulator.runtime.ledger import Seen, Thing

DEVICE_BASE = 0x305A_C6E0_0000
INVALID_VALUE, OUT_OF_MEMORY = 1, 2


def test_addresses_are_the_same_in_every_run(start: Any) -> None:
    client = start(devices=2)
    assert client.make("Malloc", 1000) == DEVICE_BASE
    client.ok("SetDevice", 1)
    assert client.make("Malloc", 1000) == DEVICE_BASE + (1 << 40)


@pytest.mark.parametrize("size", [1, 511, 512, 513, 4096, 70_000, (64 << 20) - 64, 64 << 20, (64 << 20) + 1, 300 << 20])
def test_blocks_of_every_size_are_apart_and_hold_what_is_written(start: Any, size: int) -> None:
    client = start(capacity=1 << 40)
    addresses = sorted(client.make("Malloc", ctypes.c_size_t(size)) for _ in range(3))
    assert all(address % 512 == 0 for address in addresses)
    assert all(low + size <= high for low, high in itertools.pairwise(addresses))
    for number, address in enumerate(addresses):
        ctypes.memset(address, number + 1, 1)
        ctypes.memset(address + size - 1, number + 1, 1)
    assert [ctypes.string_at(address + size - 1, 1)[0] for address in addresses] == [1, 2, 3]
    for address in addresses:
        client.ok("Free", address)
    assert not client.seen(Seen.DAMAGED, Seen.FREED_FOREIGN)


def test_the_last_address_freed_is_the_first_reused(start: Any) -> None:
    client = start()
    address = client.make("Malloc", 1000)
    client.ok("Free", address)
    assert client.make("Malloc", 990) == address


def test_addresses_and_handles_are_never_reused_where_that_is_asked_for(start: Any) -> None:
    client = start(recycle="never")
    address, event = client.make("Malloc", 1000), client.make("EventCreate")
    client.ok("Free", address)
    client.ok("EventDestroy", event)
    assert client.make("Malloc", 1000) != address
    assert client.make("EventCreate") != event


def test_capacity_is_counted_in_granules_and_comes_back(start: Any) -> None:
    client = start(capacity=4096, granularity=1024)
    first = client.make("Malloc", 1025)
    client.make("Malloc", 2048)
    assert client.call("Malloc", ctypes.byref(ctypes.c_void_p()), 1) == OUT_OF_MEMORY
    assert [record.size_bytes for record in client.seen(Seen.REFUSED)] == [1]
    client.ok("Free", first)
    client.make("Malloc", 2048)


@pytest.mark.parametrize("size", [(1 << 64) - 1, (1 << 64) - 512, 1 << 63, 1 << 40])
def test_sizes_beyond_everything_are_out_of_memory(start: Any, size: int) -> None:
    client = start()
    assert client.call("Malloc", ctypes.byref(ctypes.c_void_p()), size) == OUT_OF_MEMORY


def test_no_bytes_are_no_block(start: Any) -> None:
    client = start()
    assert client.make("Malloc", 0) == 0
    client.ok("Free", 0)
    assert client.machine.ledger.counted(Thing.DEVICE) == (0, 0)


def test_memory_information_counts_what_is_held(start: Any) -> None:
    client = start(capacity=1 << 20)
    client.make("Malloc", 1000)
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    client.ok("MemGetInfo", ctypes.byref(free), ctypes.byref(total))
    assert (free.value, total.value) == ((1 << 20) - 1024, 1 << 20)


def test_freed_memory_is_poisoned_and_large_blocks_at_their_edges(start: Any) -> None:
    client = start()
    for size in (100, 4 << 20):
        address = client.make("HostAlloc", size, 0)
        ctypes.memset(address, 1, size)
        client.ok("FreeHost", address)
        assert ctypes.string_at(address, 1) == ctypes.string_at(address + size - 1, 1) == b"\xdd"


def test_poison_can_be_left_out(start: Any) -> None:
    client = start(poison=0)
    address = client.make("HostAlloc", 100, 0)
    ctypes.memset(address, 1, 100)
    client.ok("FreeHost", address)
    assert ctypes.string_at(address, 1) == b"\1"


def test_a_write_behind_a_block_is_seen_when_it_is_freed(start: Any) -> None:
    client = start()
    for reach, damaged in ((0, 0), (1, 1)):
        address = client.make("HostAlloc", 100, 0)
        ctypes.memset(address, 7, 100 + reach)
        client.ok("FreeHost", address)
        assert len(client.seen(Seen.DAMAGED)) == damaged
    assert client.seen(Seen.DAMAGED)[0].other == address + 100


def test_double_and_foreign_frees_are_told_apart(start: Any) -> None:
    client = start()
    address, pinned = client.make("Malloc", 5000), client.make("HostAlloc", 100, 0)
    assert client.call("Free", address + 512) == INVALID_VALUE
    assert client.call("Free", pinned) == INVALID_VALUE
    client.ok("Free", address)
    assert client.call("Free", address) == INVALID_VALUE
    here = ctypes.create_string_buffer(8)
    assert client.call("Free", ctypes.addressof(here)) == INVALID_VALUE
    kinds = [record.seen for record in client.seen(Seen.FREED_TWICE, Seen.FREED_FOREIGN)]
    assert kinds == [Seen.FREED_FOREIGN, Seen.FREED_FOREIGN, Seen.FREED_TWICE, Seen.FREED_FOREIGN]


def test_managed_memory_counts_as_the_devices(start: Any) -> None:
    client = start(capacity=4096)
    client.make("MallocManaged", 4096, 1)
    assert client.call("Malloc", ctypes.byref(ctypes.c_void_p()), 1) == OUT_OF_MEMORY


def test_host_memory_is_registered_once_and_without_overlap(start: Any) -> None:
    client = start()
    buffer = ctypes.create_string_buffer(8192)
    address = ctypes.addressof(buffer)
    client.ok("HostRegister", address, 4096, 0)
    assert client.call("HostRegister", address + 4095, 10, 0) == 712
    client.ok("HostRegister", address + 4096, 4096, 0)
    client.ok("HostUnregister", address)
    assert client.call("HostUnregister", address) == 713
    client.ok("HostUnregister", address + 4096)
    assert client.machine.ledger.counted(Thing.REGISTERED) == (0, 0)


@pytest.mark.parametrize(
    ("flavour", "pinned", "device", "managed", "unregistered"),
    [
        ("hip:5", 0, 1, 1, None),
        ("hip:6", 1, 2, 3, 0),
        ("hip:7", 1, 2, 3, 0),
        ("cuda:11", 1, 2, 3, 0),
        ("cuda:13", 1, 2, 3, 0),
    ],
)
def test_what_lies_at_an_address_is_said_in_the_numbers_of_the_version(
    start: Any, flavour: str, pinned: int, device: int, managed: int, unregistered: int | None
) -> None:
    client = start(flavour)

    def kind_of(address: int) -> int | None:
        attributes = (ctypes.c_int * 32)()
        status = client.call("PointerGetAttributes", attributes, address)
        assert status in (0, INVALID_VALUE)
        return None if status else attributes[0]

    here = ctypes.create_string_buffer(8)
    assert kind_of(client.make("HostAlloc", 8, 0)) == pinned
    assert kind_of(client.make("Malloc", 8) + 4) == device
    assert kind_of(client.make("MallocManaged", 8, 1)) == managed
    assert kind_of(ctypes.addressof(here)) == unregistered


def test_many_blocks_live_side_by_side(start: Any) -> None:
    client = start(capacity=1 << 38, ring=1 << 16)
    addresses = [client.make("Malloc", 256) for _ in range(20_000)]
    assert len(set(addresses)) == len(addresses)
    for address in addresses:
        client.ok("Free", address)
    assert client.machine.ledger.counted(Thing.DEVICE) == (0, 0)
    assert client.machine.ledger.observations == 40_000
