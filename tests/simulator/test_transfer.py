"""Copies and fills of the simulated runtime: the longest legal delays, and what they may touch."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import pytest

from quiesce.model.program_rules import COPIES_DIRECTED
from quiesce.simulator.judge.conditions import AtExit
from quiesce.simulator.judge.judgement import judge
from quiesce.simulator.runtime.ledger import Seen

SIZE = 64
ANY_DIRECTION = 4


class Places:
    """One block of each kind of memory, and a source of ones."""

    def __init__(self, client: Any) -> None:
        self.pageable_buffers = [ctypes.create_string_buffer(SIZE) for _ in range(2)]
        self.addresses = {
            "pageable": [ctypes.addressof(buffer) for buffer in self.pageable_buffers],
            "pinned": [client.make("HostAlloc", SIZE, 0) for _ in range(2)],
            "device": [client.make("Malloc", SIZE) for _ in range(2)],
            "managed": [client.make("MallocManaged", SIZE, 1) for _ in range(2)],
        }

    def pair(self, source: str, target: str) -> tuple[int, int]:
        return self.addresses[target][1], self.addresses[source][0]


# from, to, whether the synchronous and the asynchronous call return when the copy is complete (CUDA)
RETURNS = [
    ("pageable", "device", False, False),
    ("pinned", "device", True, False),
    ("device", "pageable", True, True),
    ("device", "pinned", True, False),
    ("device", "device", False, False),
    ("pageable", "pageable", True, True),
    ("pinned", "pinned", True, True),
    ("pinned", "pageable", True, True),
    ("managed", "device", True, False),
    ("device", "managed", True, False),
]


@pytest.mark.parametrize(("source", "target", "synchronous", "asynchronous"), RETURNS)
@pytest.mark.parametrize("function", ["Memcpy", "MemcpyAsync"])
def test_when_a_copy_returns(
    start: Any, source: str, target: str, synchronous: bool, asynchronous: bool, function: str
) -> None:
    client = start(schedule="lazy")
    places = Places(client)
    to, origin = places.pair(source, target)
    ctypes.memset(origin, 1, SIZE)
    if function == "Memcpy":
        client.ok("Memcpy", to, origin, SIZE, ANY_DIRECTION)
    else:
        client.ok("MemcpyAsync", to, origin, SIZE, ANY_DIRECTION, client.make("StreamCreate"))
    complete = ctypes.string_at(to, SIZE) == b"\1" * SIZE
    assert complete is (synchronous if function == "Memcpy" else asynchronous)
    client.ok("DeviceSynchronize")
    assert ctypes.string_at(to, SIZE) == b"\1" * SIZE


@pytest.mark.parametrize(("source", "survives"), [("pageable", True), ("pinned", False)])
def test_only_a_pageable_source_was_read_when_the_call_returns(start: Any, source: str, survives: bool) -> None:
    client = start(schedule="lazy")
    places = Places(client)
    to, origin = places.pair(source, "device")
    ctypes.memset(origin, 1, SIZE)
    client.ok("MemcpyAsync", to, origin, SIZE, ANY_DIRECTION, client.make("StreamCreate"))
    ctypes.memset(origin, 2, SIZE)
    client.ok("DeviceSynchronize")
    assert (ctypes.string_at(to, 1) == b"\1") is survives


def test_hip_copies_between_device_addresses_wait(start: Any) -> None:
    client = start("hip:7", schedule="lazy")
    places = Places(client)
    to, origin = places.pair("device", "device")
    ctypes.memset(origin, 1, SIZE)
    client.ok("Memcpy", to, origin, SIZE, ANY_DIRECTION)
    assert ctypes.string_at(to, 1) == b"\1"


def test_rows_are_copied_with_their_pitches(start: Any) -> None:
    client = start()
    device, pitch = client.make("Malloc", 1024), 512
    source = ctypes.create_string_buffer(b"abcdef", 6)
    client.ok("Memcpy2D", device, pitch, source, 3, 3, 2, 1)
    assert ctypes.string_at(device, 3) == b"abc"
    assert ctypes.string_at(device + pitch, 3) == b"def"
    assert client.call("Memcpy2D", device, 2, source, 3, 3, 2, 1) == 12, "a row is longer than its pitch"


@pytest.mark.parametrize(
    ("flavour", "answers"),
    [
        ("cuda:12", {("pageable", "pageable"): [0, 1, 1, 1, 0], ("device", "pageable"): [0, 0, 1, 1, 0],
                     ("pageable", "device"): [0, 1, 0, 1, 0], ("device", "device"): [0, 0, 0, 0, 0],
                     ("device", "pinned"): [0, 0, 0, 0, 0], ("pinned", "device"): [0, 0, 0, 0, 0],
                     ("managed", "pinned"): [0, 0, 0, 0, 0]}),
        ("hip:7", {("pageable", "pageable"): [0, 1, 1, 1, 0], ("device", "pageable"): [0, 0, 0, 0, 0],
                   ("pageable", "device"): [0, 0, 0, 0, 0]}),
    ],
)  # fmt: skip
def test_a_direction_that_the_addresses_do_not_have_is_refused(
    start: Any, flavour: str, answers: dict[tuple[str, str], list[int]]
) -> None:
    client = start(flavour)
    places = Places(client)
    for (to, origin), expected in answers.items():
        target, source = places.pair(origin, to)
        answered = [client.call("Memcpy", target, source, SIZE, kind) for kind in range(5)]
        assert answered == expected, (to, origin)


HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE = 1, 2, 3


@pytest.mark.parametrize("flavour", ["cuda:12", "hip:7"])
@pytest.mark.parametrize("strict", [0, 1])
@pytest.mark.parametrize(
    ("to", "origin", "kind", "found", "found_strictly"),
    [
        ("pageable", "device", HOST_TO_DEVICE, True, True),
        ("device", "pageable", DEVICE_TO_HOST, True, True),
        ("device", "pageable", DEVICE_TO_DEVICE, True, True),
        ("device", "device", HOST_TO_DEVICE, False, True),
        ("pinned", "device", HOST_TO_DEVICE, False, True),
        ("pinned", "device", DEVICE_TO_HOST, False, False),
        ("device", "pinned", HOST_TO_DEVICE, False, False),
        ("managed", "pageable", HOST_TO_DEVICE, False, False),
        ("device", "pageable", HOST_TO_DEVICE, False, False),
        ("pageable", "device", ANY_DIRECTION, False, False),
    ],
)
def test_a_copy_in_another_direction_than_it_names(
    start: Any, flavour: str, strict: int, to: str, origin: str, kind: int, found: bool, found_strictly: bool
) -> None:
    client = start(flavour, strict=strict)
    target, source = Places(client).pair(origin, to)
    client.call("MemcpyAsync", target, source, SIZE, kind, None)
    findings = judge(client.machine.ledger, AtExit.NONE).findings
    assert [each.rule for each in findings] == [COPIES_DIRECTED] * (found_strictly if strict else found)
    if findings:
        name = flavour.split(":", maxsplit=1)[0]
        assert (
            f"as {name}Memcpy{('HostToDevice', 'DeviceToHost', 'DeviceToDevice')[kind - 1]}, from"
            in findings[0].observed
        )
        assert f"{name}Memcpy" in findings[0].expected


def test_an_unknown_direction_is_refused(start: Any) -> None:
    client = start()
    places = Places(client)
    to, origin = places.pair("device", "device")
    assert client.call("Memcpy", to, origin, SIZE, 9) == 21


def test_fills_return_at_once_but_for_host_memory(start: Any) -> None:
    client = start(schedule="lazy")
    places = Places(client)
    for kind, complete in (("device", False), ("pinned", True), ("managed", True)):
        address = places.addresses[kind][0]
        client.ok("Memset", address, 7, SIZE)
        assert (ctypes.string_at(address, SIZE) == b"\7" * SIZE) is complete
    assert client.call("Memset", places.addresses["pageable"][0], 7, SIZE) == 1


@pytest.mark.parametrize(("offset", "size", "seen"), [(0, SIZE, None), (1, SIZE, Seen.OUT_OF_BOUNDS), (63, 1, None)])
def test_uses_stay_inside_their_block(start: Any, offset: int, size: int, seen: Seen | None) -> None:
    client = start()
    address = client.make("Malloc", SIZE)
    assert client.call("Memset", address + offset, 0, size) == (0 if seen is None else 1)
    assert [record.seen for record in client.seen(Seen.OUT_OF_BOUNDS)] == ([] if seen is None else [seen])


def test_a_use_of_freed_memory_is_refused_and_seen(start: Any) -> None:
    client = start()
    address = client.make("Malloc", SIZE)
    client.ok("Free", address)
    assert client.call("Memset", address, 0, SIZE) == 1
    assert [record.address for record in client.seen(Seen.USED_AFTER_FREE)] == [address]


def stage(client: Any, original: bytes, copied: bytes, *, ask: bool = True, direct: bool = False) -> int:
    """Copy to the device out of a second pinned block after asking about the first; return how often that was seen."""
    size = len(original)
    first, second, device = (
        client.make("HostAlloc", size, 0),
        client.make("HostAlloc", size, 0),
        client.make("Malloc", size),
    )
    ctypes.memmove(first, original, size)
    ctypes.memmove(second, copied, size)
    if ask:
        client.ok("PointerGetAttributes", (ctypes.c_int * 32)(), first)
    client.ok("MemcpyAsync", device, first if direct else second, size, ANY_DIRECTION, 0)
    return len(client.seen(Seen.STAGED_AGAIN))


def test_a_pinned_source_that_is_staged_again_is_seen(start: Any) -> None:
    assert stage(start("hip:7"), b"abcdef", b"abcdef") == 1


@pytest.mark.parametrize(
    ("original", "copied", "ask", "direct"),
    [
        (b"abcdef", b"abcdeg", True, False),  # other bytes
        (b"aaaaaa", b"aaaaaa", True, False),  # bytes that prove nothing
        (b"abcdef", b"abcdef", False, False),  # equal buffers of a client that never asked
        (b"abcdef", b"abcdef", True, True),  # the source itself
    ],
)
def test_what_only_looks_like_staging_again_is_let_be(
    start: Any, original: bytes, copied: bytes, ask: bool, direct: bool
) -> None:
    assert stage(start("hip:7"), original, copied, ask=ask, direct=direct) == 0


@pytest.mark.parametrize("function", ["Memcpy", "MemcpyAsync"])
def test_a_copy_of_the_default_stream_between_devices_comes_behind_all_work_of_both(start: Any, function: str) -> None:
    client = start(schedule="lazy", devices=2)
    first = client.make("Malloc", SIZE)
    client.ok("Memset", first, 1, SIZE)
    client.ok("SetDevice", 1)
    second = client.make("Malloc", SIZE)
    client.ok("Memset", second, 2, SIZE)
    client.ok(function, second, first, SIZE, ANY_DIRECTION, *([0] if function == "MemcpyAsync" else []))
    assert ctypes.string_at(second, SIZE) == b"\1" * SIZE
    waited = [record.device for record in client.seen(Seen.DEVICE_WAITED_FOR)]
    assert waited == [0, 1]


@pytest.mark.parametrize("unregisters", [True, False])
def test_host_memory_that_is_unmapped_in_flight_is_a_finding_and_no_crash(start: Any, unregisters: bool) -> None:
    client = start(schedule="lazy")
    host = mmap.mmap(-1, 4096)
    address = ctypes.addressof(ctypes.c_char.from_buffer(host))
    device, stream = client.make("Malloc", 4096), client.make("StreamCreate")
    client.ok("HostRegister", address, 4096, 0)
    client.ok("MemcpyAsync", device, address, 4096, 1, stream)
    if unregisters:
        client.ok("HostUnregister", address)
    host.close()
    client.ok("StreamSynchronize", stream)
    (seen,) = client.seen(Seen.USED_AFTER_FREE)
    assert (seen.address, seen.size_bytes) == (address, 4096)
    told = [finding.observed for finding in judge(client.machine.ledger, AtExit.NONE).findings]
    assert f"a copy still has 4,096 bytes (4 KiB) to go at {address:#x}, where no memory is mapped" in "".join(told)
