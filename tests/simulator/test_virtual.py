"""Virtual memory management: address space, physical memory, and the mappings between them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from quiesce.simulator.judge.conditions import AtExit
from quiesce.simulator.judge.judgement import judge
from quiesce.simulator.runtime.ledger import Seen, Thing

GRANULE: Final = 2 << 20
OK, INVALID_VALUE, OUT_OF_MEMORY, INVALID_DEVICE, NOT_SUPPORTED = 0, 1, 2, 101, 801


def properties(device: int = 0, *, kind: int = 1, handles: int = 0, place: int = 1) -> Any:
    """Return CUmemAllocationProp, which is hipMemAllocationProp: four numbers, a pointer, eight bytes of flags."""
    return (ctypes.c_int * 8)(kind, handles, place, device)


@dataclass
class Virtual:
    """The functions by their names without the prefix; integers are 64 bits wide."""

    client: Any
    prefix: str
    made: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.client.ok("Free", None)  # whoever calls the runtime has a context

    def call(self, function: str, *arguments: Any) -> int:
        passed = (ctypes.c_uint64(each) if type(each) is int else each for each in arguments)
        status: int = getattr(self.client.machine.library, self.prefix + function)(*passed)
        return status

    def make(self, function: str, *arguments: Any) -> int:
        made = ctypes.c_uint64()
        assert self.call(function, ctypes.byref(made), *arguments) == OK, function
        return made.value

    def create(self, size_bytes: int = GRANULE, device: int = 0) -> int:
        return self.make("MemCreate", size_bytes, properties(device), 0)

    def reserve(self, size_bytes: int) -> int:
        return self.make("MemAddressReserve", size_bytes, 0, 0, 0)

    def allow(self, address: int, size_bytes: int, devices: Sequence[int] = (0,), access: int = 3) -> int:
        numbers = [number for device in devices for number in (1, device, access)]
        return self.call("MemSetAccess", address, size_bytes, (ctypes.c_int * len(numbers))(*numbers), len(devices))

    def mapped(self, granules: int = 1) -> int:
        """Return an address behind which so many mappings lie side by side; their handles are released."""
        address = self.reserve(granules * GRANULE)
        for place in range(address, address + granules * GRANULE, GRANULE):
            handle = self.create()
            assert self.call("MemMap", place, GRANULE, 0, handle, 0) == OK
            assert self.call("MemRelease", handle) == OK
        assert self.allow(address, granules * GRANULE) == OK
        return address

    def used_bytes(self) -> int:
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.client.ok("MemGetInfo", ctypes.byref(free), ctypes.byref(total))
        return total.value - free.value


@pytest.fixture(params=["cuda:12", "hip:7"])
def virtual(request: pytest.FixtureRequest, start: Any) -> Virtual:
    return Virtual(start(request.param, devices=2, capacity=8 * GRANULE), request.param[:2].replace("hi", "hip"))


def test_memory_shows_at_each_address_that_it_is_mapped_to(virtual: Virtual) -> None:
    handle, first, second = virtual.create(), virtual.reserve(GRANULE), virtual.reserve(GRANULE)
    for address in (first, second):
        assert virtual.call("MemMap", address, GRANULE, 0, handle, 0) == OK
        assert virtual.allow(address, GRANULE) == OK
    virtual.client.ok("Memset", first, 7, GRANULE)
    assert ctypes.string_at(second + GRANULE - 1, 1) == b"\7"
    assert virtual.used_bytes() == GRANULE


def test_memory_lives_until_handle_and_mappings_are_gone(virtual: Virtual) -> None:
    address = virtual.mapped()
    assert virtual.used_bytes() == GRANULE
    kept = virtual.make("MemRetainAllocationHandle", address + 5)
    assert virtual.call("MemUnmap", address, GRANULE) == OK
    assert virtual.used_bytes() == GRANULE
    assert virtual.call("MemRelease", kept) == OK
    assert virtual.used_bytes() == 0
    assert virtual.client.machine.ledger.counted(Thing.PHYSICAL) == (0, 0)
    assert virtual.call("MemAddressFree", address, GRANULE) == OK
    assert virtual.client.machine.ledger.counted(Thing.RESERVATION) == (0, 0)


def test_a_released_handle_is_none_any_more_though_its_memory_lives(virtual: Virtual) -> None:
    handle, address = virtual.create(), virtual.reserve(2 * GRANULE)
    assert virtual.call("MemMap", address, GRANULE, 0, handle, 0) == OK
    assert virtual.call("MemRelease", handle) == OK
    assert virtual.call("MemMap", address + GRANULE, GRANULE, 0, handle, 0) == INVALID_VALUE
    assert virtual.call("MemRelease", handle) == INVALID_VALUE
    assert [record.thing for record in virtual.client.seen(Seen.DEAD_HANDLE)] == [Thing.PHYSICAL] * 2


def test_one_copy_may_reach_over_several_mappings_but_not_behind_them(virtual: Virtual) -> None:
    address = virtual.mapped(3)
    virtual.client.ok("Memset", address + GRANULE - 8, 1, GRANULE + 16)
    assert virtual.client.call("Memset", address + 8, 1, 3 * GRANULE) == INVALID_VALUE
    assert [record.other for record in virtual.client.seen(Seen.OUT_OF_BOUNDS)] == [address + 3 * GRANULE]


@pytest.mark.parametrize("state", ["reserved", "mapped without access", "access taken away", "unmapped"])
def test_what_is_not_mapped_and_accessible_is_not_used(virtual: Virtual, state: str) -> None:
    address = virtual.reserve(GRANULE)
    if state != "reserved":
        assert virtual.call("MemMap", address, GRANULE, 0, virtual.create(), 0) == OK
    if state in ("access taken away", "unmapped"):
        assert virtual.allow(address, GRANULE) == OK
        virtual.client.ok("Memset", address, 1, 8)
    if state == "access taken away":
        assert virtual.allow(address, GRANULE, access=0) == OK
    if state == "unmapped":
        assert virtual.call("MemUnmap", address, GRANULE) == OK
    assert virtual.client.call("Memset", address, 1, 8) == INVALID_VALUE
    expected = Seen.USED_AFTER_FREE if state == "unmapped" else Seen.OUT_OF_BOUNDS
    assert [record.seen for record in virtual.client.seen(Seen.USED_AFTER_FREE, Seen.OUT_OF_BOUNDS)] == [expected]


def test_arguments_that_the_documents_forbid_are_refused(virtual: Virtual) -> None:
    made, handle, address = ctypes.c_uint64(), virtual.create(2 * GRANULE), virtual.reserve(4 * GRANULE)
    place = ctypes.byref(made)
    for size_bytes, alignment in ((0, 0), (100, 0), (GRANULE, 3)):
        assert virtual.call("MemAddressReserve", place, size_bytes, alignment, 0, 0) == INVALID_VALUE
    assert virtual.call("MemCreate", place, GRANULE // 2, properties(), 0) == INVALID_VALUE
    assert virtual.call("MemCreate", place, GRANULE, properties(kind=9), 0) == INVALID_VALUE
    assert virtual.call("MemCreate", place, GRANULE, properties(5), 0) == INVALID_DEVICE
    assert virtual.call("MemCreate", place, GRANULE, properties(place=2), 0) == NOT_SUPPORTED
    for where, size_bytes, offset in (
        (address + 4096, GRANULE, 0),
        (address, GRANULE, GRANULE),
        (address, 3 * GRANULE, 0),
        (address + 3 * GRANULE, 2 * GRANULE, 0),
        (address + (1 << 40), GRANULE, 0),
    ):
        assert virtual.call("MemMap", where, size_bytes, offset, handle, 0) == INVALID_VALUE
    assert virtual.call("MemMap", address, 2 * GRANULE, 0, handle, 0) == OK
    assert virtual.call("MemMap", address + GRANULE, GRANULE, 0, handle, 0) == INVALID_VALUE, "it is taken"
    assert virtual.allow(address, 3 * GRANULE) == INVALID_VALUE, "a part is not mapped"
    assert virtual.allow(address, GRANULE, (5,)) == INVALID_DEVICE
    assert virtual.allow(address, GRANULE, access=2) == INVALID_VALUE
    assert virtual.call("MemUnmap", address, GRANULE) == INVALID_VALUE, "a part of a mapping"
    assert virtual.call("MemUnmap", address + GRANULE, GRANULE) == INVALID_VALUE
    assert virtual.call("MemAddressFree", address, 4 * GRANULE) == INVALID_VALUE, "something is mapped there"
    assert virtual.call("MemUnmap", address, 2 * GRANULE) == OK
    assert virtual.call("MemAddressFree", address, GRANULE) == INVALID_VALUE
    assert virtual.call("MemUnmap", address, 2 * GRANULE) == INVALID_VALUE
    assert len(virtual.client.seen(Seen.FREED_TWICE)) == 1


def test_capacity_is_that_of_physical_memory(virtual: Virtual) -> None:
    virtual.reserve(1 << 36)
    made, handles = ctypes.c_uint64(), [virtual.create() for _ in range(8)]
    assert virtual.call("MemCreate", ctypes.byref(made), GRANULE, properties(), 0) == OUT_OF_MEMORY
    assert [record.thing for record in virtual.client.seen(Seen.REFUSED)] == [Thing.PHYSICAL]
    assert virtual.create(device=1)
    assert virtual.call("MemRelease", handles[0]) == OK
    assert virtual.create()


def test_access_is_told_as_it_was_given(virtual: Virtual) -> None:
    address, access = virtual.mapped(), ctypes.c_uint64(9)
    seen = []
    for device in (0, 1):
        location = (ctypes.c_int * 2)(1, device)
        assert virtual.call("MemGetAccess", ctypes.byref(access), location, address) == OK
        seen.append(access.value)
    assert seen == [3, 0]


def test_exporting_fails_by_name(virtual: Virtual, capfd: pytest.CaptureFixture[str]) -> None:
    handle = virtual.make("MemCreate", GRANULE, properties(handles=1), 0)
    assert virtual.call("MemExportToShareableHandle", ctypes.byref(ctypes.c_int()), handle, 1, 0) == NOT_SUPPORTED
    assert f"{virtual.prefix}MemExportToShareableHandle is not simulated" in capfd.readouterr().err


def test_addresses_are_reserved_again_unless_never(start: Any) -> None:
    for recycle, again in (("eager", True), ("never", False)):
        virtual = Virtual(start(recycle=recycle), "cu")
        first = virtual.reserve(GRANULE)
        virtual.reserve(GRANULE)
        assert virtual.call("MemAddressFree", first, GRANULE) == OK
        assert (virtual.reserve(GRANULE) == first) is again
        virtual.client.machine.close()


def test_unmapping_lets_work_end_first(start: Any) -> None:
    virtual = Virtual(start(schedule="lazy"), "cu")
    address, stream = virtual.mapped(), virtual.client.make("StreamCreate")
    virtual.client.ok("MemsetAsync", address, 1, GRANULE, stream)
    assert virtual.call("MemUnmap", address, GRANULE) == OK
    virtual.client.ok("DeviceSynchronize")


def test_a_reset_takes_mappings_and_memory_along(virtual: Virtual) -> None:
    virtual.mapped(2)
    virtual.create()
    virtual.client.ok("DeviceReset")
    assert virtual.used_bytes() == 0
    ledger = virtual.client.machine.ledger
    assert ledger.counted(Thing.PHYSICAL) == ledger.counted(Thing.RESERVATION) == (0, 0)


def judged(virtual: Virtual) -> list[str]:
    return [finding.rule for finding in judge(virtual.client.machine.ledger, AtExit.NONE).findings]


@pytest.mark.parametrize(("waits", "expected"), [(True, []), (False, ["conflicting_uses_are_ordered"])])
def test_uses_race_where_they_meet_in_the_second_of_two_mappings(start: Any, waits: bool, expected: list[str]) -> None:
    virtual = Virtual(start(), "cu")
    address, client = virtual.mapped(2), virtual.client
    first, second = (client.make("StreamCreateWithFlags", 1) for _ in range(2))
    client.ok("MemsetAsync", address + GRANULE - 8, 1, 16, first)
    if waits:
        client.ok("StreamSynchronize", first)
    client.ok("MemsetAsync", address + GRANULE, 2, 8, second)
    assert judged(virtual) == expected


@pytest.mark.parametrize(("waits", "expected"), [(True, []), (False, ["conflicting_uses_are_ordered"])])
def test_unmapping_what_a_stream_still_uses_is_a_race(start: Any, waits: bool, expected: list[str]) -> None:
    virtual = Virtual(start(), "cu")
    address, stream = virtual.mapped(), virtual.client.make("StreamCreateWithFlags", 1)
    virtual.client.ok("MemsetAsync", address, 1, 8, stream)
    if waits:
        virtual.client.ok("StreamSynchronize", stream)
    assert virtual.call("MemUnmap", address, GRANULE) == OK
    assert judged(virtual) == expected


def test_mapped_memory_is_counted_once_where_a_request_is_refused(virtual: Virtual) -> None:
    virtual.mapped(6)
    assert virtual.client.call("Malloc", ctypes.byref(ctypes.c_void_p()), 4 * GRANULE) == OUT_OF_MEMORY
    told = judge(virtual.client.machine.ledger, AtExit.NONE).out_of_memory
    assert told is not None
    assert (told.live_bytes, told.live_count, told.fragmented_bytes) == (6 * GRANULE, 6, 0)
