"""Variables of modules: found by name in what an image tells, as device memory that comes and goes with the module."""

from __future__ import annotations

import ctypes
import random
import struct
from pathlib import Path
from typing import Final

import pytest
from tests.simulator.conftest import Client, MakeImage, Start
from tests.simulator.test_symbols import SIZE, registered

from quiesce.simulator.runtime.ledger import Seen, Thing

INVALID_VALUE, OUT_OF_MEMORY, INVALID_SYMBOL, INVALID_HANDLE, NOT_FOUND = 1, 2, 13, 400, 500
NOT_SUPPORTED, CAPTURE_UNSUPPORTED = 801, 900
PTX: Final = b"""//
// a module
.version 8.0
.target sm_80, debug
.address_size 64
.file 1 "scale.cu"
.extern .global .u32 elsewhere;
.visible .global .align 4 .u32 counter = 7; /* .global .u32 commented; */
.visible .global .align 4 .b8 zeros[400];
.const .align 2 .s16 table[3] = {1, -2, 0x3U};
.func (.param .b32 back) helper (.param .b32 given);
.visible .entry scale(.param .u64 x) {
  .shared .align 4 .b8 local[16];
  { .reg .b32 %r; ld.global.u32 %r, [counter]; }
}
.section .debug_str { .b8 0 }
.global .v4 .f32 vector;
.global .f32 ratio = 0f40490FDB, other;
.global .u64 grid[2][2] = {{1, 2}, {3, 4}}, wide = 0xFFFFFFFFFFFFFFFF;
.visible .global .attribute(.managed) .align 1 .b8 text[] = {104, 105, 0};
.global .u64 pointer = generic(counter);
.global .f64 decimal = 0.5;
.global .u64 unbounded[] = {counter};
.global .b32 ragged[2][3] = {{1}, {2}};
.global .texref texture;
"""


class Module:
    """A loaded module, under the names of its flavour."""

    def __init__(self, client: Client, image: bytes) -> None:
        client.ok("Free", None)  # whoever calls the runtime has a context
        self.library, self.hip = client.machine.library, client.machine.ledger.flavour.value == "hip"
        self.handle = ctypes.c_void_p()
        load = self.library.hipModuleLoadData if self.hip else self.library.cuModuleLoadData
        self.status = load(ctypes.byref(self.handle), image)

    def find(self, name: bytes | None) -> tuple[int, int, int]:
        """Return the status, the address and the size."""
        address, size = ctypes.c_void_p(), ctypes.c_size_t()
        function = self.library.hipModuleGetGlobal if self.hip else self.library.cuModuleGetGlobal_v2
        status = function(ctypes.byref(address), ctypes.byref(size), self.handle, name)
        return status, address.value or 0, size.value

    def holds(self, name: bytes) -> bytes:
        status, address, size = self.find(name)
        assert status == 0, name
        return ctypes.string_at(address, size)

    def unload(self) -> int:
        return int((self.library.hipModuleUnload if self.hip else self.library.cuModuleUnload)(self.handle))


def bundle(code: bytes) -> bytes:
    """Return a code object in a bundle, behind the empty part of the host."""
    names = (b"host-x86_64-unknown-linux--", b"hipv4-amdgcn-amd-amdhsa--gfx90a")
    header = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", 2)
    for name, size in zip(names, (0, len(code)), strict=True):
        header += struct.pack("<3Q", 4096, size, len(name)) + name
    return header.ljust(4096, b"\0") + code


@pytest.mark.parametrize(
    ("flavour", "kind"), [("cuda:12", "cubin"), ("cuda:13", "cubin"), ("hip:5", "code object"), ("hip:7", "bundle")]
)
def test_variables_of_an_elf_file_have_their_size_and_content(
    start: Start, image: MakeImage, flavour: str, kind: str
) -> None:
    client = start(flavour)
    module = Module(client, bundle(image("code object")) if kind == "bundle" else image(kind))
    assert module.holds(b"counter") == struct.pack("<I", 7)
    assert module.holds(b"zeros") == bytes(400)
    assert module.holds(b"table") == struct.pack("<3h", 1, -2, 3)
    assert module.find(b"pointer")[0] == NOT_SUPPORTED, "an address that only a loader knows"
    for name in (b"scale", b"absent", b"count", b""):
        assert module.find(name)[0] == NOT_FOUND, name
    assert module.find(b"local")[0] == (NOT_FOUND if kind == "cubin" else 0), "shared memory is no variable"
    assert module.find(b"hidden")[0] == (0 if kind == "cubin" else NOT_FOUND)
    assert module.find(b"scale.kd")[0] == (0 if kind == "cubin" else NOT_FOUND), "what launches a kernel is no variable"


def test_variables_of_a_text_have_their_size_and_content(start: Start) -> None:
    module = Module(start(), PTX)
    expected = {
        b"counter": struct.pack("<I", 7),
        b"zeros": bytes(400),
        b"table": struct.pack("<3h", 1, -2, 3),
        b"vector": bytes(16),
        b"ratio": struct.pack("<I", 0x40490FDB),
        b"other": bytes(4),
        b"grid": struct.pack("<4Q", 1, 2, 3, 4),
        b"wide": b"\xff" * 8,
        b"text": b"hi\0",
        b"texture": bytes(8),  # the number of an object
    }
    assert {name: module.holds(name) for name in expected} == expected
    for name in (b"elsewhere", b"commented", b"local", b"back", b"given", b"scale"):
        assert module.find(name)[0] == NOT_FOUND, name
    for name in (b"pointer", b"decimal", b"unbounded", b"ragged"):
        assert module.find(name)[0] == NOT_SUPPORTED, name


@pytest.mark.parametrize("flavour", ["cuda:12", "hip:7"])
def test_the_memory_is_the_modules(start: Start, image: MakeImage, flavour: str) -> None:
    client = start(flavour, recycle="never")
    module = Module(client, image("cubin" if flavour == "cuda:12" else "code object"))
    _, address, _ = module.find(b"zeros")
    assert module.find(b"zeros")[1] == address
    assert [thing.thing for thing in client.machine.ledger.live()] == [Thing.MODULE], "nobody gives back a part of it"
    assert client.machine.ledger.counted(Thing.DEVICE)[1] >= 410
    client.ok("Memset", address, 1, 400)
    assert module.holds(b"zeros") == b"\1" * 400
    assert client.call("Memset", address, 1, 401) == INVALID_VALUE
    assert client.call("Free", address) == INVALID_VALUE
    assert module.unload() == 0
    assert client.machine.ledger.counted(Thing.DEVICE) == (0, 0)
    assert client.call("Memset", address, 1, 4) == INVALID_VALUE
    wrong = client.seen(Seen.OUT_OF_BOUNDS, Seen.FREED_FOREIGN, Seen.USED_AFTER_FREE)
    assert [record.seen for record in wrong] == [Seen.OUT_OF_BOUNDS, Seen.FREED_FOREIGN, Seen.USED_AFTER_FREE]
    assert module.find(b"zeros")[0] == INVALID_HANDLE


def test_a_reset_takes_it_along(start: Start) -> None:
    client = start()
    module = Module(client, PTX)
    assert module.find(b"zeros")[0] == 0
    client.ok("DeviceReset")
    assert client.machine.ledger.counted(Thing.DEVICE, Thing.MODULE) == (0, 0)
    assert client.seen(Seen.FREED_FOREIGN) == []


def test_a_module_whose_variables_have_no_room_is_not_loaded(start: Start) -> None:
    client = start(capacity=4096, granularity=512)
    module = Module(client, b".global .b8 small[10];\n.global .b8 large[8192];\n")
    assert module.status == OUT_OF_MEMORY
    assert client.machine.ledger.counted(Thing.DEVICE, Thing.MODULE) == (0, 0)


def test_a_capture_is_no_time_to_unload(start: Start) -> None:
    client = start()
    module, other = Module(client, PTX), Module(client, b"// nothing in it")
    stream = client.make("StreamCreate")
    client.ok("StreamBeginCapture", stream, 1)
    assert module.find(b"zeros")[0] == 0
    assert other.unload() == 0
    assert module.unload() == CAPTURE_UNSUPPORTED
    assert client.call("StreamEndCapture", stream, ctypes.byref(ctypes.c_void_p())) == 901
    assert module.unload() == 0


@pytest.mark.parametrize("flavour", ["cuda:12", "hip:7"])
def test_an_image_that_cannot_be_read_fails_by_name(
    start: Start, flavour: str, capfd: pytest.CaptureFixture[str]
) -> None:
    client = start(flavour)
    module = Module(client, b"CCOB" + b"\0" * 64)
    assert module.find(b"table")[0] == NOT_SUPPORTED
    name = "hipModuleGetGlobal" if module.hip else "cuModuleGetGlobal_v2"
    assert f"{name} is not simulated; " in capfd.readouterr().err
    assert [record.function for record in client.seen(Seen.NOT_SIMULATED)] == [name]


def test_either_place_can_be_left_out(start: Start) -> None:
    client, size = start(), ctypes.c_size_t()
    module, library = Module(client, PTX), client.machine.library
    assert library.cuModuleGetGlobal_v2(None, ctypes.byref(size), module.handle, b"zeros") == 0
    assert size.value == 400
    assert library.cuModuleGetGlobal_v2(None, None, module.handle, b"zeros") == INVALID_VALUE
    assert module.find(None)[0] == INVALID_VALUE
    client.machine.close()
    hip = Module(start("hip:7"), PTX)
    assert hip.library.hipModuleGetGlobal(None, None, hip.handle, b"zeros") == 0


def test_a_library_has_its_variables_on_each_device(start: Start) -> None:
    client, handle = start(devices=2), ctypes.c_void_p()
    library = client.machine.library
    client.ok("SetDevice", 0)
    assert library.cuLibraryLoadData(ctypes.byref(handle), PTX, None, None, 0, None, None, 0) == 0
    found = []
    for device in (0, 1, 0):
        client.ok("SetDevice", device)
        address = ctypes.c_void_p()
        assert library.cuLibraryGetGlobal(ctypes.byref(address), None, handle, b"counter") == 0
        found.append(address.value or 0)
        assert ctypes.string_at(address.value or 0, 4) == struct.pack("<I", 7)
    assert found[0] == found[2] != found[1]
    assert library.cuLibraryUnload(handle) == 0
    assert client.machine.ledger.counted(Thing.DEVICE) == (0, 0)


def test_damaged_files_do_no_harm(start: Start, image: MakeImage, tmp_path: Path) -> None:
    client, whole, dice = start("hip:7"), image("code object"), random.Random(5)
    path = tmp_path / "module"
    for _ in range(300):
        content = bytearray(dice.choice((whole, bundle(whole), PTX)))
        for _ in range(dice.randint(1, 8)):
            content[dice.randrange(len(content))] = dice.randrange(256)
        path.write_bytes(content[: dice.choice((len(content), dice.randrange(1, len(content))))])
        handle, size = ctypes.c_void_p(), ctypes.c_size_t()
        library = client.machine.library
        if library.hipModuleLoad(ctypes.byref(handle), str(path).encode()) == 0:
            library.hipModuleGetGlobal(None, ctypes.byref(size), handle, b"zeros")
            assert library.hipModuleUnload(handle) == 0
    assert client.machine.ledger.counted(Thing.DEVICE, Thing.MODULE) == (0, 0)


@pytest.mark.parametrize("flavour", ["cuda:11", "cuda:13", "hip:5", "hip:7"])
def test_a_variable_of_the_clients_own_code_tells_its_place(start: Start, library: str, flavour: str) -> None:
    client = start(flavour)
    shadow = ctypes.addressof(registered(library, flavour.partition(":")[0]))
    size = ctypes.c_size_t()
    address = client.make("GetSymbolAddress", shadow)
    client.ok("GetSymbolSize", ctypes.byref(size), shadow)
    assert size.value == SIZE
    client.ok("Memset", address, 3, SIZE)
    client.ok("DeviceSynchronize")
    back = ctypes.create_string_buffer(SIZE)
    client.ok("MemcpyFromSymbol", ctypes.addressof(back), shadow, SIZE, 0, 2)
    assert back.raw == b"\3" * SIZE
    assert client.call("Memset", address + 1, 3, SIZE) == INVALID_VALUE
    assert client.call("GetSymbolSize", ctypes.byref(size), shadow + 1) == INVALID_SYMBOL
    assert client.call("GetSymbolAddress", ctypes.byref(ctypes.c_void_p()), shadow + 1) == INVALID_SYMBOL
    assert client.call("GetSymbolAddress", None, shadow) == INVALID_VALUE
    assert client.call("Free", address) == INVALID_VALUE
