"""Devices of the simulated runtime: which is current, what is said of each, access between them."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import pytest
from tests.simulator.test_context import Dim3

INVALID_VALUE, INVALID_DEVICE, INVALID_HANDLE = 1, 101, 400


def value_of(client: Any, attribute: int, device: int = 0) -> int | None:
    value = ctypes.c_int()
    status = client.call("DeviceGetAttribute", ctypes.byref(value), attribute, device)
    return None if status else value.value


def current(client: Any) -> int:
    device = ctypes.c_int()
    client.ok("GetDevice", ctypes.byref(device))
    return device.value


def test_each_thread_has_its_own_current_device(start: Any) -> None:
    client, seen = start(devices=3), []
    client.ok("SetDevice", 2)
    thread = threading.Thread(target=lambda: seen.append(current(client)))
    thread.start()
    thread.join()
    assert (current(client), seen) == (2, [0])
    assert client.call("SetDevice", 3) == client.call("SetDevice", -1) == INVALID_DEVICE


def test_each_device_has_its_own_memory_and_streams(start: Any) -> None:
    client = start(devices=2, capacity=1024)
    client.make("Malloc", 1024)
    client.ok("SetDevice", 1)
    client.make("Malloc", 1024)
    stream = client.make("StreamCreate")
    client.ok("SetDevice", 0)
    assert client.call("EventRecord", client.make("EventCreate"), stream) == 400, "an event of another device"


@pytest.mark.parametrize(
    ("flavour", "answer"), [("cuda:11", INVALID_HANDLE), ("cuda:13", INVALID_HANDLE), ("hip:7", 0)]
)
def test_a_launch_into_a_stream_of_another_device(start: Any, flavour: str, answer: int) -> None:
    """CUDA's programming guide, "Stream and Event Behavior": "A kernel launch will fail"; a copy will succeed."""
    client, one, none = start(flavour, devices=2), Dim3(1, 1, 1), ctypes.c_void_p()
    function = ctypes.c_void_p(id(client))
    stream, block = client.make("StreamCreate"), client.make("Malloc", 64)
    for device, expected in ((0, 0), (1, answer), (0, 0)):
        client.ok("SetDevice", device)
        launched = client.call("LaunchKernel", function, one, one, none, ctypes.c_size_t(0), ctypes.c_void_p(stream))
        assert launched == expected
        client.ok("MemsetAsync", block, 0, 64, stream)


@pytest.mark.parametrize(
    ("flavour", "warp", "threads", "ecc"), [("cuda:12", (10, 32), (1, 1024), 32), ("hip:7", (87, 64), (56, 1024), 0)]
)
def test_attributes_have_the_numbers_of_the_flavour(
    start: Any, flavour: str, warp: tuple[int, int], threads: tuple[int, int], ecc: int
) -> None:
    client = start(flavour)
    assert value_of(client, warp[0]) == warp[1]
    assert value_of(client, threads[0]) == threads[1]
    assert value_of(client, ecc) == 0
    assert value_of(client, 9_999) is None
    assert value_of(client, warp[0], device=1) is None


def test_bus_identifiers_lead_back_to_their_device(start: Any) -> None:
    client = start(devices=2)
    text, device = ctypes.create_string_buffer(16), ctypes.c_int()
    client.ok("DeviceGetPCIBusId", text, 16, 1)
    client.ok("DeviceGetByPCIBusId", ctypes.byref(device), text)
    assert device.value == 1
    assert client.call("DeviceGetByPCIBusId", ctypes.byref(device), b"0000:7f:00.0") == INVALID_DEVICE


def test_access_between_devices_is_enabled_once_in_each_direction(start: Any) -> None:
    client, can = start(devices=2), ctypes.c_int()
    client.ok("DeviceCanAccessPeer", ctypes.byref(can), 0, 1)
    assert can.value == 1
    client.ok("DeviceEnablePeerAccess", 1, 0)
    assert client.call("DeviceEnablePeerAccess", 1, 0) == 704
    client.ok("SetDevice", 1)
    assert client.call("DeviceDisablePeerAccess", 0) == 705
    client.ok("SetDevice", 0)
    client.ok("DeviceDisablePeerAccess", 1)
    assert client.call("DeviceEnablePeerAccess", 0, 0) == INVALID_DEVICE


def test_limits_are_kept(start: Any) -> None:
    client, limit = start(), ctypes.c_size_t()
    client.ok("DeviceSetLimit", 2, ctypes.c_size_t(1 << 25))
    client.ok("DeviceGetLimit", ctypes.byref(limit), 2)
    assert limit.value == 1 << 25
    assert client.call("DeviceGetLimit", ctypes.byref(limit), 3) == 215


READ_MOSTLY, PREFERRED_LOCATION, HOST, NO_STREAM = 1, 3, -1, 12345


@pytest.mark.parametrize(("function", "rest"), [("MemAdvise", (READ_MOSTLY, 0)), ("MemPrefetchAsync", (0, 0))])
def test_hints_are_for_live_managed_memory(start: Any, function: str, rest: tuple[int, int]) -> None:
    client = start()
    managed, device = client.make("MallocManaged", 64, 1), client.make("Malloc", 64)
    client.ok(function, managed, 64, *rest)
    assert client.call(function, device, 64, *rest) == INVALID_VALUE
    assert client.call(function, managed, 65, *rest) == INVALID_VALUE
    client.ok("Free", managed)
    assert client.call(function, managed, 64, *rest) == INVALID_VALUE


@pytest.mark.parametrize("flavour", ["cuda:12", "hip:7"])
def test_hints_name_an_advice_a_place_and_a_stream(start: Any, flavour: str) -> None:
    client = start(flavour)
    managed = client.make("MallocManaged", 64, 1)
    client.ok("MemAdvise", managed, 64, PREFERRED_LOCATION, HOST)
    client.ok("MemAdvise", managed, 64, READ_MOSTLY, 7)  # its device is ignored
    assert client.call("MemAdvise", managed, 64, PREFERRED_LOCATION, 7) == INVALID_DEVICE
    assert client.call("MemAdvise", managed, 64, 0, 0) == INVALID_VALUE
    assert client.call("MemAdvise", managed, 64, 100, 0) == (0 if flavour == "hip:7" else INVALID_VALUE)
    client.ok("MemPrefetchAsync", managed, 64, HOST, 0)
    assert client.call("MemPrefetchAsync", managed, 64, 7, 0) == INVALID_DEVICE
    assert client.call("MemPrefetchAsync", managed, 64, 0, NO_STREAM) == INVALID_HANDLE


def test_places_are_structures_since_cuda_13(start: Any) -> None:
    client = start("cuda:13")
    managed, on_a_device, on_the_host = client.make("MallocManaged", 64, 1), 1, ctypes.c_uint64(2)
    client.ok("MemPrefetchAsync", managed, 64, on_a_device, 0, 0)
    client.ok("MemPrefetchAsync", managed, 64, on_the_host, 0, 0)
    second_device = ctypes.c_uint64(on_a_device | 1 << 32)
    assert client.call("MemPrefetchAsync", managed, 64, second_device, 0, 0) == INVALID_DEVICE
    assert client.call("MemPrefetchAsync", managed, 64, 0, 0, 0) == INVALID_VALUE
    assert client.call("MemPrefetchAsync", managed, 64, on_a_device, 0, NO_STREAM) == INVALID_HANDLE


@pytest.mark.parametrize(
    ("flavour", "runtime"),
    [("cuda:12", 12090), ("hip:6", 60000000)],
)
def test_versions_are_the_flavours(start: Any, flavour: str, runtime: int) -> None:
    client, version = start(flavour), ctypes.c_int()
    client.ok("RuntimeGetVersion", ctypes.byref(version))
    assert version.value == runtime
