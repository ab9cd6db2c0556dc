"""ROCm SMI and AMD SMI on the simulated machine: they see its devices, and what the runtime allocates there."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from collections.abc import Iterator
from typing import Any, Final

import pytest
from tests.simulator.conftest import Client, Start

from quiesce.simulator.runtime.flavours import parse_flavour
from quiesce.simulator.runtime.launch import MachineSettings, run_program
from quiesce.simulator.runtime.vendor_libraries import functions_of

SUCCESS, INVALID_ARGUMENT, NOT_SUPPORTED = 0, 1, 2
INIT_ERROR, RSMI_NOT_FOUND, INSUFFICIENT_SIZE = 8, 10, 11
NOT_FOUND, NOT_INITIALIZED = 31, 32
CAPACITY: Final = 8 << 20
DEVICES: Final = 2
OF_DEVICE, OF_HOST = 0, 2


class Process(ctypes.Structure):
    """rsmi_process_info_t."""

    _fields_ = (
        ("number", ctypes.c_uint32),
        ("address_space", ctypes.c_uint32),
        ("used", ctypes.c_uint64),
        ("copied", ctypes.c_uint64),
        ("busy", ctypes.c_uint32),
    )


class Library:
    """A management library beside a client of the runtime."""

    def __init__(self, client: Client, prefix: str) -> None:
        self.client = client
        self._prefix = prefix

    def call(self, function: str, *arguments: Any) -> int:
        status: int = getattr(self.client.machine.library, self._prefix + function)(*arguments)
        return status

    def number(self, function: str, *arguments: Any) -> int:
        place = ctypes.c_uint64()
        assert self.call(function, *arguments, ctypes.byref(place)) == SUCCESS, function
        return place.value

    def in_use(self, function: str) -> tuple[int, int]:
        """Return what the library says of two devices."""
        first, second = (self.number(function, each, OF_DEVICE) for each in self.devices())
        return first, second

    def devices(self) -> list[Any]:
        return [0, 1]


class AmdSmi(Library):
    """AMD SMI, whose devices have handles."""

    def devices(self) -> list[Any]:
        count, sockets = ctypes.c_uint32(DEVICES), (ctypes.c_void_p * DEVICES)()
        assert self.call("get_socket_handles", ctypes.byref(count), sockets) == SUCCESS
        found = []
        for socket in sockets:
            handle, one = ctypes.c_void_p(), ctypes.c_uint32(1)
            arguments = (ctypes.c_void_p(socket), ctypes.byref(one), ctypes.byref(handle))
            assert self.call("get_processor_handles", *arguments) == SUCCESS
            found.append(handle)
        return found


@pytest.fixture
def rsmi(start: Start) -> Iterator[Library]:
    """ROCm SMI of a machine with two devices, initialized."""
    made = Library(start("hip:7", devices=DEVICES, capacity=CAPACITY), "rsmi_")
    assert made.call("init", ctypes.c_uint64(0)) == SUCCESS
    yield made
    made.call("shut_down")


@pytest.fixture(params=["hip:6", "hip:7"])
def amdsmi(start: Start, request: pytest.FixtureRequest) -> Iterator[AmdSmi]:
    """AMD SMI of a machine with two devices, initialized."""
    made = AmdSmi(start(request.param, devices=DEVICES, capacity=CAPACITY), "amdsmi_")
    assert made.call("init", ctypes.c_uint64(2)) == SUCCESS
    yield made
    made.call("shut_down")


def test_rocm_smi_has_no_devices_before_it_is_initialized(start: Start) -> None:
    rsmi = Library(start("hip:7", devices=DEVICES), "rsmi_")
    assert rsmi.number("num_monitor_devices") == 0
    assert rsmi.call("dev_pci_id_get", 0, ctypes.byref(ctypes.c_uint64())) == INVALID_ARGUMENT
    assert rsmi.call("shut_down") == INIT_ERROR
    assert [rsmi.call("init", ctypes.c_uint64(0)) for _ in range(2)] == [SUCCESS] * 2
    assert [rsmi.call("shut_down"), rsmi.number("num_monitor_devices")] == [SUCCESS, DEVICES], "it counts"
    assert [rsmi.call("shut_down"), rsmi.number("num_monitor_devices")] == [SUCCESS, 0]


def test_amd_smi_says_that_it_is_not_initialized(start: Start) -> None:
    amdsmi, count = AmdSmi(start("hip:7"), "amdsmi_"), ctypes.c_uint32()
    assert amdsmi.call("get_socket_handles", ctypes.byref(count), None) == NOT_INITIALIZED
    assert amdsmi.call("init", ctypes.c_uint64(1)) == NOT_SUPPORTED, "processors are not simulated"
    assert amdsmi.call("init", ctypes.c_uint64(2)) == SUCCESS
    assert amdsmi.call("get_socket_handles", ctypes.byref(count), None) == SUCCESS
    assert count.value == 1
    assert amdsmi.call("shut_down") == SUCCESS
    assert amdsmi.call("get_socket_handles", ctypes.byref(count), None) == NOT_INITIALIZED


def test_both_see_what_the_runtime_allocates(rsmi: Library) -> None:
    amdsmi, client = AmdSmi(rsmi.client, "amdsmi_"), rsmi.client
    assert amdsmi.call("init", ctypes.c_uint64(2)) == SUCCESS
    assert rsmi.in_use("dev_memory_total_get") == amdsmi.in_use("get_gpu_memory_total") == (CAPACITY, CAPACITY)
    client.ok("SetDevice", 1)
    block = client.make("Malloc", 2 << 20)
    available, total = ctypes.c_size_t(), ctypes.c_size_t()
    client.ok("MemGetInfo", ctypes.byref(available), ctypes.byref(total))
    used = total.value - available.value
    assert rsmi.in_use("dev_memory_usage_get") == amdsmi.in_use("get_gpu_memory_usage") == (0, used)
    mebibytes = (ctypes.c_uint32 * 4)()
    assert amdsmi.call("get_gpu_vram_usage", amdsmi.devices()[1], mebibytes) == SUCCESS
    assert list(mebibytes[:2]) == [CAPACITY >> 20, used >> 20]
    client.ok("Free", block)
    assert rsmi.in_use("dev_memory_usage_get") == amdsmi.in_use("get_gpu_memory_usage") == (0, 0)
    amdsmi.call("shut_down")


def test_memory_of_the_host_is_not_counted_by_device(rsmi: Library) -> None:
    place = ctypes.byref(ctypes.c_uint64())
    assert rsmi.call("dev_memory_usage_get", 0, OF_HOST, place) == NOT_SUPPORTED
    assert rsmi.call("dev_memory_usage_get", 0, 9, place) == INVALID_ARGUMENT
    assert rsmi.call("dev_memory_usage_get", DEVICES, OF_DEVICE, place) == INVALID_ARGUMENT


def test_names_and_identifiers_are_the_runtimes(amdsmi: AmdSmi) -> None:
    client = amdsmi.client
    properties = ctypes.create_string_buffer(1472)
    client.ok("GetDevicePropertiesR0600", properties, 1)
    name, digits = properties.raw[:256].rstrip(b"\0"), properties.raw[256:272]
    rsmi, text = Library(client, "rsmi_"), ctypes.create_string_buffer(64)
    rsmi.call("init", ctypes.c_uint64(0))
    assert rsmi.call("dev_name_get", 1, text, ctypes.c_size_t(64)) == SUCCESS
    assert text.value == name
    assert rsmi.call("dev_name_get", 1, text, ctypes.c_size_t(8)) == INSUFFICIENT_SIZE
    assert text.value == name[:7]
    assert b"%016x" % rsmi.number("dev_unique_id_get", 1) == digits
    assert rsmi.number("dev_pci_id_get", 1) == amdsmi.number("get_gpu_device_bdf", amdsmi.devices()[1]) == 2 << 8
    info = ctypes.create_string_buffer(1024)
    assert amdsmi.call("get_gpu_asic_info", amdsmi.devices()[1], info) == SUCCESS
    assert info.value == name
    assert digits in info.raw
    rsmi.call("shut_down")


def test_a_device_is_found_by_its_place_on_the_bus(amdsmi: AmdSmi) -> None:
    found = ctypes.c_void_p()
    for index, handle in enumerate(amdsmi.devices()):
        place = ctypes.c_uint64((index + 1) << 8)
        assert amdsmi.call("get_processor_handle_from_bdf", place, ctypes.byref(found)) == SUCCESS
        assert found.value == handle.value
    for wrong in (0, 3 << 8, 1 << 8 | 1, 1 << 16 | 1 << 8):
        assert amdsmi.call("get_processor_handle_from_bdf", ctypes.c_uint64(wrong), ctypes.byref(found)) == NOT_FOUND
    assert amdsmi.call("get_gpu_device_bdf", None, ctypes.byref(ctypes.c_uint64())) == INVALID_ARGUMENT


def test_processes_of_rocm_smi_name_their_devices(rsmi: Library) -> None:
    client, own = rsmi.client, os.getpid()
    client.ok("SetDevice", 1)
    client.make("Malloc", 2 << 20)
    count, processes, devices = ctypes.c_uint32(), (Process * 2)(), (ctypes.c_uint32 * DEVICES)()
    assert rsmi.call("compute_process_info_get", None, ctypes.byref(count)) == SUCCESS
    assert count.value == 1
    count.value = 0
    assert rsmi.call("compute_process_info_get", processes, ctypes.byref(count)) == INSUFFICIENT_SIZE
    count.value = 2
    assert rsmi.call("compute_process_info_get", processes, ctypes.byref(count)) == SUCCESS
    assert (count.value, processes[0].number, processes[0].used) == (1, own, 2 << 20)
    count.value = DEVICES
    assert rsmi.call("compute_process_gpus_get", own, devices, ctypes.byref(count)) == SUCCESS
    assert list(devices[: count.value]) == [1]
    assert rsmi.call("compute_process_info_by_device_get", own, 0, processes) == RSMI_NOT_FOUND
    assert rsmi.call("compute_process_info_by_device_get", own, 1, processes) == SUCCESS
    assert rsmi.call("compute_process_info_by_pid_get", own + 1, processes) == RSMI_NOT_FOUND


@pytest.mark.parametrize(("flavour", "text_bytes", "entry_bytes"), [("hip:6", 32, 248), ("hip:7", 256, 728)])
def test_processes_of_amd_smi_are_laid_out_as_in_the_flavours_header(
    start: Start, flavour: str, text_bytes: int, entry_bytes: int
) -> None:
    amdsmi = AmdSmi(start(flavour, devices=DEVICES, capacity=CAPACITY), "amdsmi_")
    amdsmi.call("init", ctypes.c_uint64(2))
    amdsmi.client.make("Malloc", 2 << 20)
    count, place = ctypes.c_uint32(), ctypes.create_string_buffer(b"\xaa" * 1024, 1024)
    device = amdsmi.devices()[0]
    assert amdsmi.call("get_gpu_process_list", device, ctypes.byref(count), None) == SUCCESS
    assert count.value == 1
    assert amdsmi.call("get_gpu_process_list", device, ctypes.byref(count), place) == SUCCESS
    assert int.from_bytes(place.raw[text_bytes:][:4], "little") == os.getpid()
    assert int.from_bytes(place.raw[text_bytes + 8 :][:8], "little") == 2 << 20
    assert place.raw[entry_bytes:] == b"\xaa" * (1024 - entry_bytes)
    amdsmi.call("shut_down")


@pytest.mark.parametrize("function", ["dev_temp_metric_get", "dev_power_get", "dev_fan_speed_get"])
def test_what_a_device_has_not_is_not_supported(
    rsmi: Library, function: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert rsmi.call(function, 0, 0, 0, ctypes.byref(ctypes.c_uint64())) == NOT_SUPPORTED
    assert rsmi.call(function, DEVICES) == INVALID_ARGUMENT
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("flavour", "name", "prefix", "unsimulated"),
    [
        ("hip:5", "librocm_smi64.so", "rsmi", "rsmi_dev_vbios_version_get"),
        ("hip:7", "librocm_smi64.so.7", "rsmi", "rsmi_dev_vbios_version_get"),
        ("hip:6", "libamd_smi.so", "amdsmi", "amdsmi_get_gpu_board_info"),
        ("hip:7", "libamd_smi.so.25", "amdsmi", "amdsmi_get_gpu_board_info"),
    ],
)
def test_programs_find_them_and_are_told_what_is_not_simulated(
    library: str, capfd: pytest.CaptureFixture[str], flavour: str, name: str, prefix: str, unsimulated: str
) -> None:
    text = (
        f"import ctypes; l = ctypes.CDLL('{name}'); print(l.{prefix}_init(ctypes.c_uint64(2)), l.{unsimulated}(0, 0))"
    )
    with run_program([sys.executable, "-c", text], MachineSettings(parse_flavour(flavour)), os.environ):
        written = capfd.readouterr()
    assert written.out == f"0 {NOT_SUPPORTED}\n", written.err
    assert f"quiesce: {unsimulated} (" in written.err


@pytest.mark.parametrize(("name", "prefix"), [("librocm_smi64.so.7", "rsmi_"), ("libamd_smi.so", "amdsmi_")])
def test_each_name_is_a_function_of_its_library(name: str, prefix: str) -> None:
    functions = functions_of(name)
    assert functions == {function for function in functions if function.startswith(prefix)}
    assert len(functions) > 100


OF_THE_MODULE: Final = """
import ctypes, os, amdsmi
amdsmi.amdsmi_init()
(device,) = amdsmi.amdsmi_get_processor_handles()
block = ctypes.c_void_p()
assert ctypes.CDLL("libamdhip64.so.7").hipMalloc(ctypes.byref(block), ctypes.c_size_t(2 << 20)) == 0
assert amdsmi.amdsmi_get_gpu_vram_usage(device)["vram_used"] == 2
(process,) = amdsmi.amdsmi_get_gpu_process_list(device)
assert (process["pid"], process["memory_usage"]["vram_mem"]) == (os.getpid(), 2 << 20), process
asic = amdsmi.amdsmi_get_gpu_asic_info(device)
assert asic["target_graphics_version"] == "gfx90a" and asic["market_name"] == "quiesce simulated device 0", asic
assert amdsmi.amdsmi_get_gpu_enumeration_info(device)["hip_id"] == 0
assert amdsmi.amdsmi_get_gpu_device_bdf(device) == "0000:01:00.0"
try: amdsmi.amdsmi_get_temp_metric(device, amdsmi.AmdSmiTemperatureType.EDGE, amdsmi.AmdSmiTemperatureMetric.CURRENT)
except amdsmi.AmdSmiLibraryException as error: assert error.get_error_code() == 2
amdsmi.amdsmi_shut_down()
"""


def test_the_vendors_python_module_runs_on_it(library: str) -> None:
    """The package ``amdsmi`` 7, which looks every function up as it is imported."""
    if importlib.util.find_spec("amdsmi") is None:
        pytest.skip("amdsmi is not installed")
    words = [sys.executable, "-c", OF_THE_MODULE]
    with run_program(words, MachineSettings(parse_flavour("hip:7")), os.environ) as ended:
        assert ended.status == 0
