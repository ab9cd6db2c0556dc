"""What clients of CUDA's driver alone ask for: cuda.core's pools and forms, Taichi's lookups, planes, devices."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.simulator.conftest import Run, Start
from tests.simulator.test_driver import Driver

from quiesce.simulator.runtime.build import build_library
from quiesce.simulator.runtime.ledger import Seen, Thing
from quiesce.simulator.runtime.stubs import Simulator, write_stubs
from quiesce.simulator.runtime.vendor_libraries import functions_of

OK, INVALID_VALUE, INVALID_DEVICE, INVALID_CONTEXT, NOT_SUPPORTED = 0, 1, 101, 201, 801


@pytest.fixture
def driver(start: Any) -> Driver:
    made = Driver(start(devices=2))
    assert made.call("Init", 0) == OK
    made.make("CtxCreate_v2", 0, 0)
    return made


def used(driver: Driver, pool: int) -> int:
    value = ctypes.c_uint64()
    assert driver.call("MemPoolGetAttribute", pool, ctypes.c_int(7), ctypes.byref(value)) == OK
    return value.value


def place(kind: int, number: int) -> Any:
    return ctypes.byref((ctypes.c_int * 2)(kind, number))


# -- pools -----------------------------------------------------------------------------------------------------------


def test_the_drivers_pools_are_the_runtimes(driver: Driver) -> None:
    pool = driver.make("DeviceGetDefaultMemPool", ctypes.c_int(0))
    assert pool == driver.client.make("DeviceGetDefaultMemPool", 0) == driver.make("DeviceGetMemPool", ctypes.c_int(0))
    stream = driver.make("StreamCreate", ctypes.c_uint(1))
    address = driver.make("MemAllocAsync", 100, stream)
    assert used(driver, pool) == 512, "what 100 bytes are rounded up to"
    assert driver.call("MemFreeAsync", address, stream) == driver.call("StreamSynchronize", stream) == OK
    assert used(driver, pool) == 0


def test_memory_is_allocated_from_a_pool_that_was_made(driver: Driver) -> None:
    properties = (ctypes.c_int * 32)(1, 0, 1, 1)  # pinned, not exported, on device 1
    pool, stream = driver.make("MemPoolCreate", ctypes.byref(properties)), driver.make("StreamCreate", ctypes.c_uint(1))
    address = driver.make("MemAllocFromPoolAsync", 64, pool, stream)
    assert used(driver, pool) == 512
    assert driver.call("MemAllocFromPoolAsync", ctypes.byref(ctypes.c_uint64()), 0, pool, stream) == INVALID_VALUE
    assert driver.call("MemFreeAsync", address, stream) == driver.call("MemPoolDestroy", pool) == OK
    assert driver.call("MemAllocFromPoolAsync", ctypes.byref(ctypes.c_uint64()), 8, pool, stream) == INVALID_VALUE


def test_a_pool_that_is_not_simulated_is_refused_by_name(driver: Driver, capfd: pytest.CaptureFixture[str]) -> None:
    asked = ctypes.byref((ctypes.c_int * 32)(1, 1, 1, 0))  # exported
    assert driver.call("MemPoolCreate", ctypes.byref(ctypes.c_uint64()), asked) == NOT_SUPPORTED
    assert "cuMemPoolCreate is not simulated" in capfd.readouterr().err
    assert [record.function for record in driver.client.seen(Seen.NOT_SIMULATED)] == ["cuMemPoolCreate"]


def test_the_pool_of_a_place_is_the_devices(driver: Driver, capfd: pytest.CaptureFixture[str]) -> None:
    pinned = ctypes.c_int(1)
    pool = driver.make("MemGetDefaultMemPool", place(1, 1), pinned)
    assert pool == driver.make("MemGetMemPool", place(1, 1), pinned)
    assert pool == driver.make("DeviceGetDefaultMemPool", ctypes.c_int(1))
    managed = ctypes.c_int(2)
    assert driver.call("MemGetMemPool", ctypes.byref(ctypes.c_uint64()), place(1, 0), managed) == NOT_SUPPORTED
    assert "cuMemGetMemPool is not simulated; take pools of device memory" in capfd.readouterr().err


# -- forms -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "release", "form"),
    [
        ("cuCtxCreate", 3020, "cuCtxCreate_v2"),
        ("cuCtxCreate", 12040, "cuCtxCreate_v3"),
        ("cuCtxCreate", 13000, "cuCtxCreate_v4"),
        ("cuCtxSynchronize", 12090, "cuCtxSynchronize"),
        ("cuCtxSynchronize", 13000, "cuCtxSynchronize_v2"),
        ("cuGraphExecUpdate", 11000, "cuGraphExecUpdate"),
        ("cuGraphExecUpdate", 12000, "cuGraphExecUpdate_v2"),
        ("cuMemPrefetchAsync", 12000, "cuMemPrefetchAsync"),
        ("cuMemPrefetchAsync", 12020, "cuMemPrefetchAsync_v2"),
        ("cuStreamGetCtx", 12000, "cuStreamGetCtx"),
        ("cuLaunchHostFunc", 13000, "cuLaunchHostFunc"),
        ("cuLaunchHostFunc", 13050, "cuLaunchHostFunc_v2"),
        ("cuMemAlloc", 13000, "cuMemAlloc_v2"),
        ("cuEventQuery", 13000, "cuEventQuery"),
    ],
)
def test_a_client_gets_the_form_of_its_release(name: str, release: int, form: str, start: Start) -> None:
    found, result, library = ctypes.c_void_p(), ctypes.c_int(), start("cuda:13").machine.library
    arguments = (ctypes.byref(found), release, ctypes.c_uint64(0), ctypes.byref(result))
    assert library.cuGetProcAddress_v2(name.encode(), *arguments) == OK
    assert found.value == ctypes.cast(getattr(library, form), ctypes.c_void_p).value


def test_the_last_form_of_creating_a_context_has_its_device_behind_the_flags(driver: Driver) -> None:
    context, device = driver.make("CtxCreate_v4", None, ctypes.c_uint(0), ctypes.c_int(1)), ctypes.c_int(-1)
    assert driver.call("CtxGetDevice_v2", ctypes.byref(device), context) == OK
    assert device.value == 1
    assert driver.call("CtxSynchronize_v2", context) == OK
    assert driver.call("CtxSynchronize_v2", 77) == INVALID_CONTEXT


def test_a_runtime_inside_of_its_client_is_told_so(driver: Driver, capfd: pytest.CaptureFixture[str]) -> None:
    table = ctypes.c_void_p(1)
    assert driver.call("GetExportTable", ctypes.byref(table), b"0123456789abcdef") == NOT_SUPPORTED
    assert table.value is None
    said = capfd.readouterr().err
    assert "cuGetExportTable is not simulated" in said
    assert "linked statically into this client" in said


LOOKS_UP = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
for name in sys.argv[2].split():
    getattr(library, name)
print(library.cuTexRefSetArray(None, None, 0))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the loader is Linux's")
def test_a_lookup_finds_every_function_that_the_vendors_library_has(tmp_path: Path, run_python: Run) -> None:
    write_stubs([], tmp_path, Simulator(build_library(), ("libcuda.so.1",)))
    names = functions_of("libcuda.so.1")
    assert len(names) > 500, "the driver of CUDA 12 has more"
    done = run_python(LOOKS_UP, tmp_path / "libcuda.so.1", " ".join(sorted(names)))
    assert done.stdout.split() == [str(NOT_SUPPORTED)], done.stderr
    assert "cuTexRefSetArray (libcuda.so.1) is not simulated" in done.stderr


def test_old_names_of_functions_with_the_same_arguments_work(driver: Driver) -> None:
    stream, event = driver.make("StreamCreate", ctypes.c_uint(0)), driver.make("EventCreate", ctypes.c_uint(0))
    assert driver.call("EventDestroy", event) == driver.call("StreamDestroy", stream) == OK
    ledger = driver.client.machine.ledger
    assert [ledger.counted(thing)[0] for thing in (Thing.STREAM, Thing.EVENT)] == [0, 0]


# -- graphs ----------------------------------------------------------------------------------------------------------


def test_a_graph_is_instantiated_with_parameters_updated_and_launched(driver: Driver) -> None:
    stream, address = driver.make("StreamCreate", ctypes.c_uint(1)), driver.make("MemAlloc_v2", 8)
    graphs = []
    for value in (3, 4):
        assert driver.call("StreamBeginCapture_v2", stream, ctypes.c_int(0)) == OK
        assert driver.call("MemsetD8Async", address, ctypes.c_ubyte(value), 8, stream) == OK
        graph = ctypes.c_void_p()
        assert driver.call("StreamEndCapture", stream, ctypes.byref(graph)) == OK
        graphs.append(graph.value or 0)
    parameters = (ctypes.c_uint64 * 4)(0, stream, 77, 77)
    executable = driver.make("GraphInstantiateWithParams", graphs[0], ctypes.byref(parameters))
    assert parameters[2] == 0
    assert ctypes.c_int(parameters[3] & 0xFFFFFFFF).value == 0, "it succeeded"
    result = (ctypes.c_int * 6)(99)
    assert driver.call("GraphExecUpdate_v2", executable, graphs[1], ctypes.byref(result)) == OK
    assert result[0] == 0
    assert driver.call("GraphUpload", executable, stream) == driver.call("GraphLaunch", executable, stream) == OK
    assert driver.call("StreamSynchronize", stream) == OK
    assert ctypes.string_at(address, 8) == b"\4" * 8


# -- kernels and copies ----------------------------------------------------------------------------------------------


def test_a_launch_by_its_configuration_is_seen(driver: Driver) -> None:
    image = b".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry work(){ret;}\n"
    library = driver.make("LibraryLoadData", image, None, None, ctypes.c_uint(0), None, None, ctypes.c_uint(0))
    kernel = driver.make("LibraryGetKernel", library, b"work")
    stream = driver.make("StreamCreate", ctypes.c_uint(0))
    configuration = (ctypes.c_uint64 * 7)(1 | 1 << 32, 1 | 32 << 32, 1 | 1 << 32, 0, stream, 0, 0)
    assert driver.call("LaunchKernelEx", ctypes.byref(configuration), kernel, None, None) == OK
    assert len(driver.client.seen(Seen.LAUNCHED)) == 1
    assert driver.make("LibraryGetModule", library) == library
    assert driver.call("LibraryUnload", library) == OK
    assert driver.call("LaunchKernelEx", ctypes.byref(configuration), kernel, None, None) == 400
    assert driver.call("LibraryGetModule", ctypes.byref(ctypes.c_uint64()), library) == 400


class Side(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_size_t) for name in ("x", "y")),
        ("type", ctypes.c_int),
        *((name, ctypes.c_size_t) for name in ("host", "device", "array", "pitch")),
    )


class Rows(ctypes.Structure):
    _fields_ = (("source", Side), ("target", Side), ("width", ctypes.c_size_t), ("height", ctypes.c_size_t))


HOST, DEVICE, ARRAY = 1, 2, 3


def test_rows_are_copied_where_the_structure_says(driver: Driver) -> None:
    device, host = driver.make("MemAlloc_v2", 64), ctypes.create_string_buffer(bytes(range(64)), 64)
    rows = Rows(Side(x=2, y=1, type=HOST, host=ctypes.addressof(host), pitch=8), width=4, height=3)
    rows.target = Side(x=1, type=DEVICE, device=device, pitch=16)
    assert driver.call("MemcpyHtoD_v2", device, bytes(64), 64) == OK
    assert driver.call("Memcpy2D_v2", ctypes.byref(rows)) == driver.call("CtxSynchronize") == OK
    assert ctypes.string_at(device, 64)[1:37] == bytes(
        [10, 11, 12, 13, *bytes(12), 18, 19, 20, 21, *bytes(12), 26, 27, 28, 29]
    )
    rows.height = 30
    assert driver.call("Memcpy2D_v2", ctypes.byref(rows)) == INVALID_VALUE
    assert [record.address for record in driver.client.seen(Seen.OUT_OF_BOUNDS)] == [device + 1]
    rows.height, rows.target.type = 1, HOST
    assert driver.call("Memcpy2D_v2", ctypes.byref(rows)) == INVALID_VALUE, "the host's address was not given"
    rows.target.type = ARRAY
    assert driver.call("Memcpy2D_v2", ctypes.byref(rows)) == INVALID_VALUE, "no array was given"


def test_hints_about_managed_memory_have_to_be_right(driver: Driver) -> None:
    managed = driver.make("MemAllocManaged", 64, ctypes.c_uint(1))
    on_a_device, on_another = ctypes.c_uint64(1), ctypes.c_uint64(1 | 7 << 32)
    assert driver.call("MemPrefetchAsync", managed, 64, ctypes.c_int(-1), None) == OK
    assert driver.call("MemPrefetchAsync", managed, 64, ctypes.c_int(5), None) == INVALID_DEVICE
    assert driver.call("MemPrefetchAsync_v2", managed, 64, on_a_device, ctypes.c_uint(0), None) == OK
    assert driver.call("MemPrefetchAsync_v2", managed, 64, on_another, ctypes.c_uint(0), None) == INVALID_DEVICE
    assert driver.call("MemAdvise_v2", managed, 64, ctypes.c_int(1), on_a_device) == OK
    assert driver.call("MemAdvise", managed + 64, 8, ctypes.c_int(1), ctypes.c_int(0)) == INVALID_VALUE


# -- devices ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("flavour", "release"), [("cuda:11", 11080), ("cuda:12", 12090), ("cuda:13", 13050)])
def test_the_release_is_the_last_one_of_its_version(flavour: str, release: int, start: Any) -> None:
    client, version = start(flavour), ctypes.c_int()
    for function in ("RuntimeGetVersion", "DriverGetVersion"):
        client.ok(function, ctypes.byref(version))
        assert version.value == release


def test_devices_are_told_apart_and_asked_about_each_other(driver: Driver) -> None:
    text, device, value = ctypes.create_string_buffer(16), ctypes.c_int(-1), ctypes.c_int(-1)
    assert driver.call("DeviceGetPCIBusId", text, ctypes.c_int(16), ctypes.c_int(1)) == OK
    assert driver.call("DeviceGetByPCIBusId", ctypes.byref(device), text) == OK
    assert device.value == 1
    access = ctypes.c_int(2)
    assert driver.call("DeviceGetP2PAttribute", ctypes.byref(value), access, ctypes.c_int(0), ctypes.c_int(1)) == OK
    assert value.value == 1
    same = driver.call("DeviceGetP2PAttribute", ctypes.byref(value), access, ctypes.c_int(1), ctypes.c_int(1))
    assert same == INVALID_DEVICE


@pytest.mark.parametrize("flavour", ["cuda:11", "cuda:13", "hip:7"])
def test_what_was_set_of_a_device_is_told(flavour: str, start: Any) -> None:
    client, value = start(flavour), ctypes.c_int(-1)
    for what, wanted, wrong in (("DeviceFlags", 4, 1 << 20), ("CacheConfig", 2, 4), ("SharedMemConfig", 1, 3)):
        prefix = "" if what == "DeviceFlags" else "Device"
        setter, getter = (f"{verb}{what}" if not prefix else f"{prefix}{verb}{what}" for verb in ("Set", "Get"))
        client.ok(setter, wanted)
        assert client.call(setter, wrong) == INVALID_VALUE
        client.ok(getter, ctypes.byref(value))
        assert value.value == wanted, what
