"""NVML on the simulated machine: what it answers as nvml.h has it, and that it sees what the runtime allocates."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from typing import Any, Final

import pytest
from tests.simulator.conftest import Client, Start

from quiesce.simulator.runtime.vendor_libraries import functions_of

SUCCESS, UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NOT_FOUND, INSUFFICIENT_SIZE = 0, 1, 2, 3, 6, 7
VERSION_MISMATCH: Final = 25
CAPACITY: Final = 1 << 20


class Memory(ctypes.Structure):
    """nvmlMemory_t."""

    _fields_ = tuple((name, ctypes.c_ulonglong) for name in ("total", "free", "used"))


class MemoryWithReserved(ctypes.Structure):
    """nvmlMemory_v2_t."""

    _fields_ = (
        ("version", ctypes.c_uint),
        *((name, ctypes.c_ulonglong) for name in ("total", "reserved", "free", "used")),
    )


class Process(ctypes.Structure):
    """nvmlProcessInfo_t."""

    _fields_ = (
        ("number", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


class Nvml:
    """NVML beside a client of the runtime; ``handle`` is a device's."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._library = client.machine.library

    def call(self, function: str, *arguments: Any) -> int:
        status: int = getattr(self._library, f"nvml{function}")(*arguments)
        return status

    def handle(self, index: int = 0) -> ctypes.c_void_p:
        handle = ctypes.c_void_p()
        assert self.call("DeviceGetHandleByIndex_v2", index, ctypes.byref(handle)) == SUCCESS
        return handle

    def text(self, function: str, *arguments: Any, room_bytes: int = 96) -> str:
        place = ctypes.create_string_buffer(room_bytes)
        assert self.call(function, *arguments, place, room_bytes) == SUCCESS, function
        return place.value.decode()

    def number(self, function: str, *arguments: Any) -> int:
        place = ctypes.c_uint(77)
        assert self.call(function, *arguments, ctypes.byref(place)) == SUCCESS, function
        return place.value

    def memory(self, index: int = 0) -> tuple[int, int, int]:
        place = Memory()
        assert self.call("DeviceGetMemoryInfo", self.handle(index), ctypes.byref(place)) == SUCCESS
        return place.total, place.free, place.used

    def processes(self, index: int = 0) -> list[tuple[int, int]]:
        count, places = ctypes.c_uint(4), (Process * 4)()
        function = "DeviceGetComputeRunningProcesses_v3"
        assert self.call(function, self.handle(index), ctypes.byref(count), places) == SUCCESS
        return [(each.number, each.used) for each in places[: count.value]]


@pytest.fixture
def nvml(start: Start) -> Iterator[Nvml]:
    """NVML of a machine with two devices of one MiB each, initialized."""
    made = Nvml(start(devices=2, capacity=CAPACITY))
    assert made.call("Init_v2") == SUCCESS
    yield made
    made.call("Shutdown")


def test_nothing_is_answered_before_the_first_and_after_the_last_initialization(start: Start) -> None:
    nvml, count = Nvml(start()), ctypes.byref(ctypes.c_uint())
    assert [nvml.call("DeviceGetCount_v2", count), nvml.call("Shutdown")] == [UNINITIALIZED] * 2
    assert [nvml.call("Init_v2"), nvml.call("InitWithFlags", 0), nvml.call("Shutdown")] == [SUCCESS] * 3
    assert nvml.call("DeviceGetCount_v2", count) == SUCCESS, "it was initialized twice"
    assert [nvml.call("Shutdown"), nvml.call("DeviceGetCount_v2", count)] == [SUCCESS, UNINITIALIZED]


def test_errors_have_texts(nvml: Nvml) -> None:
    describe = nvml.client.machine.library.nvmlErrorString
    describe.restype = ctypes.c_char_p
    assert [describe(status) for status in (0, 3, 7, 123)] == [
        b"Success",
        b"Not Supported",
        b"Insufficient Size",
        b"Unknown Error",
    ]


@pytest.mark.parametrize(
    ("flavour", "driver", "cuda"),
    [("cuda:11", "520.61.05", 11080), ("cuda:12", "575.57.08", 12090), ("cuda:13", "615.71.09", 13050)],
)
def test_versions_are_those_of_the_flavours_last_release(start: Start, flavour: str, driver: str, cuda: int) -> None:
    nvml = Nvml(start(flavour))
    assert nvml.number("SystemGetCudaDriverVersion_v2") == cuda, "it needs no initialization"
    nvml.call("Init_v2")
    assert nvml.text("SystemGetDriverVersion") == driver
    assert nvml.text("SystemGetNVMLVersion") == f"{flavour[-2:]}.{driver}"
    nvml.call("Shutdown")


def test_a_device_is_found_by_index_bus_and_identifier(nvml: Nvml) -> None:
    assert nvml.number("DeviceGetCount_v2") == 2
    second, found = nvml.handle(1), ctypes.c_void_p()
    for bus in (b"00000000:02:00.0", b"0000:02:00.0", b"0000:02:00", b"02:00.0"):
        assert nvml.call("DeviceGetHandleByPciBusId_v2", bus, ctypes.byref(found)) == SUCCESS
        assert found.value == second.value
    identifier = nvml.text("DeviceGetUUID", second)
    assert nvml.call("DeviceGetHandleByUUID", identifier.encode(), ctypes.byref(found)) == SUCCESS
    assert (found.value, nvml.number("DeviceGetIndex", found)) == (second.value, 1)


def test_what_names_no_device_is_refused(nvml: Nvml) -> None:
    found = ctypes.byref(ctypes.c_void_p())
    assert nvml.call("DeviceGetHandleByIndex_v2", 2, found) == INVALID_ARGUMENT
    assert nvml.call("DeviceGetHandleByIndex_v2", 0, None) == INVALID_ARGUMENT
    for bus in (b"0000:03:00.0", b"0001:01:00.0", b"0000:01:01.0", b"0000:00:00.0"):
        assert nvml.call("DeviceGetHandleByPciBusId_v2", bus, found) == NOT_FOUND
    for text in (b"", b"first", b"00:00", None):
        assert nvml.call("DeviceGetHandleByPciBusId_v2", text, found) == INVALID_ARGUMENT
    assert nvml.call("DeviceGetHandleByUUID", b"GPU-0", found) == NOT_FOUND
    for handle in (None, ctypes.c_void_p(1), ctypes.c_void_p((nvml.handle(1).value or 0) + 1)):
        assert nvml.call("DeviceGetMemoryInfo", handle, ctypes.byref(Memory())) == INVALID_ARGUMENT


def test_name_and_identifier_are_the_runtimes(nvml: Nvml) -> None:
    properties = ctypes.create_string_buffer(1032)
    nvml.client.ok("GetDeviceProperties_v2", properties, 1)
    assert nvml.text("DeviceGetName", nvml.handle(1)) == properties.raw[:256].rstrip(b"\0").decode()
    digits = properties.raw[256:272].hex()
    parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    assert nvml.text("DeviceGetUUID", nvml.handle(1)) == f"GPU-{'-'.join(parts)}"
    driver = ctypes.create_string_buffer(16)
    assert nvml.client.machine.library.cuDeviceGetUuid_v2(driver, 1) == 0
    assert driver.raw.hex() == digits


def test_a_text_needs_room_for_its_end(nvml: Nvml) -> None:
    name = nvml.text("DeviceGetName", nvml.handle())
    place = ctypes.create_string_buffer(b"\xaa" * 64, 64)
    assert nvml.call("DeviceGetName", nvml.handle(), place, len(name)) == INSUFFICIENT_SIZE
    assert nvml.call("DeviceGetName", nvml.handle(), place, len(name) + 1) == SUCCESS
    assert place.raw[: len(name) + 2] == name.encode() + b"\0\xaa"
    assert nvml.call("DeviceGetName", nvml.handle(), None, 64) == INVALID_ARGUMENT


def test_memory_is_what_the_runtime_says(nvml: Nvml) -> None:
    client, available, total = nvml.client, ctypes.c_size_t(), ctypes.c_size_t()
    assert nvml.memory() == (CAPACITY, CAPACITY, 0)
    client.ok("SetDevice", 1)
    block = client.make("Malloc", 4096)
    client.ok("MemGetInfo", ctypes.byref(available), ctypes.byref(total))
    assert nvml.memory(1) == (total.value, available.value, total.value - available.value)
    assert nvml.memory(0)[2] == 0 < nvml.memory(1)[2]
    client.ok("Free", block)
    assert nvml.memory(1) == (CAPACITY, CAPACITY, 0)


def test_the_later_memory_information_names_its_version(nvml: Nvml) -> None:
    nvml.client.make("Malloc", 4096)
    place = MemoryWithReserved()
    assert nvml.call("DeviceGetMemoryInfo_v2", nvml.handle(), ctypes.byref(place)) == VERSION_MISMATCH
    place.version = ctypes.sizeof(place) | 2 << 24
    assert nvml.call("DeviceGetMemoryInfo_v2", nvml.handle(), ctypes.byref(place)) == SUCCESS
    assert (place.total, place.free, place.used) == nvml.memory()
    assert place.reserved == 0


def test_the_process_is_listed_where_it_uses_a_device(nvml: Nvml) -> None:
    assert (nvml.processes(0), nvml.processes(1)) == ([], [])
    nvml.client.ok("SetDevice", 1)
    block = nvml.client.make("Malloc", 4096)
    assert (nvml.processes(0), nvml.processes(1)) == ([], [(os.getpid(), nvml.memory(1)[2])])
    nvml.client.ok("Free", block)
    assert nvml.processes(1) == [(os.getpid(), 0)], "it still has its context"


def test_a_list_that_is_too_short_says_how_long_it_has_to_be(nvml: Nvml) -> None:
    function, count, places = "DeviceGetComputeRunningProcesses_v3", ctypes.c_uint(), (Process * 1)()
    assert nvml.call(function, nvml.handle(), ctypes.byref(count), None) == SUCCESS, "none is running"
    nvml.client.make("Malloc", 4096)
    assert nvml.call(function, nvml.handle(), ctypes.byref(count), None) == INSUFFICIENT_SIZE
    assert count.value == 1
    assert nvml.call(function, nvml.handle(), ctypes.byref(count), None) == INVALID_ARGUMENT
    assert nvml.call(function, nvml.handle(), None, places) == INVALID_ARGUMENT
    assert nvml.call(function, nvml.handle(), ctypes.byref(count), places) == SUCCESS
    assert (places[0].instance, places[0].compute_instance) == (0xFFFFFFFF, 0xFFFFFFFF)


def test_the_first_form_of_the_list_writes_the_first_form_of_an_entry(nvml: Nvml) -> None:
    nvml.client.make("Malloc", 4096)
    count, places = ctypes.c_uint(1), ctypes.create_string_buffer(b"\xaa" * 24, 24)
    assert nvml.call("DeviceGetComputeRunningProcesses", nvml.handle(), ctypes.byref(count), places) == SUCCESS
    assert places.raw[16:] == b"\xaa" * 8


def test_nobody_draws(nvml: Nvml) -> None:
    nvml.client.make("Malloc", 4096)
    count = ctypes.c_uint(4)
    for kind in ("Graphics", "MPSCompute"):
        function = f"DeviceGet{kind}RunningProcesses_v3"
        assert nvml.call(function, nvml.handle(), ctypes.byref(count), (Process * 4)()) == SUCCESS
        assert count.value == 0
        count.value = 4


def test_a_process_is_named(nvml: Nvml) -> None:
    assert nvml.text("SystemGetProcessName", os.getpid(), room_bytes=4096) != ""
    assert len(nvml.text("SystemGetProcessName", os.getpid(), room_bytes=3)) == 2
    assert nvml.call("SystemGetProcessName", 1 << 30, ctypes.create_string_buffer(9), 9) == NOT_FOUND


def test_figures_are_those_of_the_runtimes_attributes(nvml: Nvml) -> None:
    major, minor, attribute = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    capability = ctypes.byref(major), ctypes.byref(minor)
    assert nvml.call("DeviceGetCudaComputeCapability", nvml.handle(), *capability) == SUCCESS
    assert (major.value, minor.value) == (8, 0)
    for attribute_number, function, arguments in (
        (37, "DeviceGetMemoryBusWidth", ()),
        (13, "DeviceGetClockInfo", (0,)),
        (36, "DeviceGetMaxClockInfo", (2,)),
    ):
        nvml.client.ok("DeviceGetAttribute", ctypes.byref(attribute), attribute_number, 0)
        divisor = 1 if "Bus" in function else 1000
        assert nvml.number(function, nvml.handle(), *arguments) == attribute.value // divisor


@pytest.mark.parametrize(("told", "expected"), [("Generation", 4), ("Width", 16)])
def test_the_bus_is_as_fast_as_it_can_be(nvml: Nvml, told: str, expected: int) -> None:
    for kind in ("Curr", "Max"):
        assert nvml.number(f"DeviceGet{kind}PcieLink{told}", nvml.handle()) == expected


def test_devices_reach_each_other_over_one_host_bridge(nvml: Nvml) -> None:
    first, second = nvml.handle(0), nvml.handle(1)
    read, link, host_bridge = 0, 2, 30
    assert nvml.number("DeviceGetP2PStatus", first, second, read) == 0
    assert nvml.number("DeviceGetP2PStatus", first, second, link) != 0
    assert nvml.number("DeviceGetTopologyCommonAncestor", first, second) == host_bridge
    assert nvml.number("DeviceGetTopologyCommonAncestor", first, first) == 0
    count, near = ctypes.c_uint(), (ctypes.c_void_p * 1)()
    function = "DeviceGetTopologyNearestGpus"
    assert nvml.call(function, first, host_bridge, ctypes.byref(count), None) == SUCCESS
    assert nvml.call(function, first, host_bridge, ctypes.byref(count), near) == SUCCESS
    assert (count.value, near[0]) == (1, second.value)


@pytest.mark.parametrize(
    "function", ["Temperature", "FanSpeed", "PowerUsage", "NvLinkState", "GpuFabricInfoV", "MigMode"]
)
def test_what_a_device_has_not_is_not_supported(nvml: Nvml, function: str, capfd: pytest.CaptureFixture[str]) -> None:
    rest = (0, ctypes.byref(ctypes.c_uint()))
    assert nvml.call(f"DeviceGet{function}", nvml.handle(), *rest) == NOT_SUPPORTED
    assert nvml.call(f"DeviceGet{function}", None, *rest) == INVALID_ARGUMENT
    assert capfd.readouterr().err == "", "a real device lacks it, too: nobody has to be told"


class Field(ctypes.Structure):
    """nvmlFieldValue_t."""

    _fields_ = (
        *((name, ctypes.c_uint) for name in ("number", "scope")),
        *((name, ctypes.c_longlong) for name in ("time", "latency")),
        *((name, ctypes.c_uint) for name in ("type", "status")),
        ("value", ctypes.c_ulonglong),
    )


def test_no_field_of_a_device_is_supported(nvml: Nvml, capfd: pytest.CaptureFixture[str]) -> None:
    fields = (Field * 3)(*(Field(number=number) for number in (1, 90, 160)))
    assert nvml.call("DeviceGetFieldValues", nvml.handle(), 2, fields) == SUCCESS
    assert [field.status for field in fields] == [NOT_SUPPORTED, NOT_SUPPORTED, 0]
    assert nvml.call("DeviceGetFieldValues", nvml.handle(), 2, None) == INVALID_ARGUMENT
    assert nvml.call("DeviceGetFieldValues", None, 2, fields) == INVALID_ARGUMENT
    assert capfd.readouterr().err == ""


def test_the_machine_is_in_no_confidential_environment(nvml: Nvml) -> None:
    state = (ctypes.c_uint * 3)(7, 7, 7)
    assert nvml.call("SystemGetConfComputeState", state) == SUCCESS
    assert list(state) == [0, 0, 0]
    assert nvml.call("SystemGetConfComputeState", None) == INVALID_ARGUMENT


def test_each_name_is_a_function_of_the_library(library: str) -> None:
    assert {name[:4] for name in functions_of("libnvidia-ml.so.1")} == {"nvml"}
