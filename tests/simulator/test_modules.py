"""Modules: loaded, looked up, launched, unloaded; occupancy and attributes of functions whose code is not run."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any, Final

import pytest
from tests.simulator.test_context import Dim3

from quiesce.simulator.runtime.ledger import Seen, Thing

PTX: Final = b".version 8.0\n.target sm_80\n.visible .entry scale(.param .u64 x) { ret; }\n"
NAMES: Final = {"cuda:12": ("cuModule", "cuLaunchKernel"), "hip:7": ("hipModule", "hipModuleLaunchKernel")}


class Modules:
    """A machine's functions for modules, under the names of its flavour."""

    def __init__(self, client: Any, flavour: str) -> None:
        self.library = client.machine.library
        self.prefix, self.launching = NAMES[flavour]

    def make(self, function: str, *arguments: Any) -> tuple[int, int]:
        made = ctypes.c_void_p()
        status = getattr(self.library, self.prefix + function)(ctypes.byref(made), *arguments)
        return status, made.value or 0

    def call(self, function: str, *arguments: Any) -> int:
        return int(getattr(self.library, self.prefix + function)(*arguments))

    def launch(self, function: int, stream: int = 0, threads: int = 32) -> int:
        call = getattr(self.library, self.launching)
        return int(call(ctypes.c_void_p(function), 1, 1, 1, threads, 1, 1, 0, ctypes.c_void_p(stream), None, None))


@pytest.fixture(params=list(NAMES))
def modules(request: pytest.FixtureRequest, start: Any) -> tuple[Any, Modules]:
    client = start(request.param, recycle="never")
    client.ok("Free", None)  # whoever calls the runtime has a context
    return client, Modules(client, request.param)


def test_a_function_is_found_by_name_launched_and_dead_with_its_module(modules: tuple[Any, Modules]) -> None:
    client, given = modules
    status, module = given.make("LoadData", PTX)
    assert status == 0
    status, function = given.make("GetFunction", ctypes.c_void_p(module), b"scale")
    assert status == 0
    assert given.make("GetFunction", ctypes.c_void_p(module), b"scale") == (0, function)
    assert given.make("GetFunction", ctypes.c_void_p(module), b"shift")[0] == 500
    assert given.launch(function) == 0
    assert given.launch(function, threads=0) == 1
    assert given.launch(function, threads=2048) == (1 if given.prefix == "cuModule" else 9)
    assert given.launch(function + 1) == 400
    assert client.machine.ledger.launches == 1
    assert client.machine.ledger.counted(Thing.MODULE)[0] == 1
    assert given.call("Unload", ctypes.c_void_p(module)) == 0
    assert given.launch(function) == 400
    assert given.call("Unload", ctypes.c_void_p(module)) == 400
    assert {record.thing for record in client.seen(Seen.DEAD_HANDLE)} == {Thing.MODULE}
    assert client.machine.ledger.counted(Thing.MODULE)[0] == 0


def test_a_launch_of_a_modules_function_is_ordered_and_captured(modules: tuple[Any, Modules]) -> None:
    client, given = modules
    function = given.make("GetFunction", ctypes.c_void_p(given.make("LoadData", PTX)[1]), b"scale")[1]
    stream, graph, count = client.make("StreamCreate"), ctypes.c_void_p(), ctypes.c_size_t()
    client.ok("StreamBeginCapture", stream, 2)
    assert given.launch(function, stream) == 0
    client.ok("StreamEndCapture", stream, ctypes.byref(graph))
    client.ok("GraphGetNodes", graph, None, ctypes.byref(count))
    assert count.value == 1
    assert client.seen(Seen.LAUNCHED) == []


def test_a_module_is_loaded_from_a_file(modules: tuple[Any, Modules], tmp_path: Path) -> None:
    _, given = modules
    path = tmp_path / "module.ptx"
    path.write_bytes(PTX)
    status, module = given.make("Load", str(path).encode())
    assert status == 0
    assert given.make("GetFunction", ctypes.c_void_p(module), b"scale")[0] == 0
    assert given.make("Load", b"no-such-file")[0] == 301
    path.write_bytes(Path(__file__).read_bytes() and b"\x7fELF\x02" + b"\xff" * 100)
    assert given.make("Load", str(path).encode())[0] == 200, "it says that it is longer than it is"


def test_a_name_in_an_image_that_cannot_be_looked_through_is_believed(modules: tuple[Any, Modules]) -> None:
    _, given = modules
    module = given.make("LoadData", b"CCOB" + b"\0" * 64)[1]
    assert given.make("GetFunction", ctypes.c_void_p(module), b"anything")[0] == 0


@pytest.mark.parametrize(
    ("flavour", "threads", "shared_bytes", "blocks"),
    [
        ("cuda:12", 1024, 0, 2),
        ("cuda:12", 33, 0, 32),
        ("cuda:12", 65, 0, 21),
        ("hip:7", 65, 0, 16),
        ("cuda:12", 128, 16384, 9),
        ("cuda:12", 128, 49153, 0),
        ("cuda:12", 1025, 0, 0),
    ],
)
def test_occupancy_follows_from_threads_and_shared_memory(
    start: Any, flavour: str, threads: int, shared_bytes: int, blocks: int
) -> None:
    client, found = start(flavour), ctypes.c_int()
    function = ctypes.c_void_p(0x1234)
    name = "OccupancyMaxActiveBlocksPerMultiprocessor"
    client.ok(name, ctypes.byref(found), function, threads, ctypes.c_size_t(shared_bytes))
    assert found.value == blocks
    assert client.call(name, ctypes.byref(found), function, 0, ctypes.c_size_t(0)) == 1


def test_attributes_of_functions_have_the_layout_of_the_flavour(start: Any) -> None:
    for flavour, threads_at, size in (("cuda:11", 24, 52), ("cuda:12", 24, 144), ("hip:7", 28, 56)):
        client, content = start(flavour), ctypes.create_string_buffer(b"\xaa" * 256, 256)
        client.ok("FuncGetAttributes", content, ctypes.c_void_p(0x1234))
        assert int.from_bytes(content.raw[threads_at : threads_at + 4], "little") == 1024
        assert content.raw[size:] == b"\xaa" * (256 - size)
        client.ok("FuncSetAttribute", ctypes.c_void_p(0x1234), 8, 1024)
        assert client.call("FuncSetAttribute", ctypes.c_void_p(0x1234), 77, 1024) == 1
        client.machine.close()


def test_a_cooperative_launch_has_to_fit_the_device(start: Any) -> None:
    client, function = start(), ctypes.c_void_p(0x1234)
    assert client.call("LaunchCooperativeKernel", function, Dim3(128, 1, 1), Dim3(1024, 1, 1), None, 0, None) == 0
    assert client.call("LaunchCooperativeKernel", function, Dim3(129, 1, 1), Dim3(1024, 1, 1), None, 0, None) == 720


def test_an_extended_launch_records_its_events(start: Any) -> None:
    client, function = start("hip:7"), ctypes.c_void_p(0x1234)
    first, last = client.make("EventCreate"), client.make("EventCreate")
    arguments = (function, Dim3(1, 1, 1), Dim3(1, 1, 1), None, ctypes.c_size_t(0), None)
    client.ok("ExtLaunchKernel", *arguments, first, last, 0)
    assert [record.seen for record in client.seen(Seen.RECORDED, Seen.LAUNCHED)] == [
        Seen.RECORDED,
        Seen.LAUNCHED,
        Seen.RECORDED,
    ]


def test_driver_libraries_are_modules_by_another_name(start: Any) -> None:
    client = start("cuda:12")
    client.ok("Free", None)
    library = client.machine.library
    made, kernel, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    assert library.cuLibraryLoadData(ctypes.byref(made), PTX, None, None, 0, None, None, 0) == 0
    assert library.cuLibraryGetKernel(ctypes.byref(kernel), made, b"scale") == 0
    assert library.cuKernelGetFunction(ctypes.byref(function), kernel) == 0
    assert function.value == kernel.value
    assert library.cuLibraryUnload(made) == 0
    assert library.cuKernelGetFunction(ctypes.byref(function), kernel) == 400


@pytest.mark.parametrize(("flavour", "status"), [("cuda:11", 900), ("cuda:12", 0), ("hip:7", 900)])
def test_drivers_since_12_3_load_a_module_during_a_capture(flavour: str, status: int, start: Any) -> None:
    client = start(flavour)
    client.ok("Free", None)
    stream, graph = client.make("StreamCreate"), ctypes.c_void_p()
    client.ok("StreamBeginCapture", stream, 0)
    names = "hip:7" if flavour == "hip:7" else "cuda:12"
    assert Modules(client, names).make("LoadData", PTX + b".global .u32 once = 7;\n")[0] == status
    assert (client.call("StreamEndCapture", stream, ctypes.byref(graph)) == 0) == (status == 0)
