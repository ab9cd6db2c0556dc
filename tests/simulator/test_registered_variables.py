"""Variables of a client's own device code: memory of each device, with the values that the registered image states."""

from __future__ import annotations

import ctypes
import random
import struct
from typing import Any, Final

import pytest
from tests.simulator.conftest import Client, MakeImage, Start
from tests.simulator.test_image_architectures import CUBIN, PTX, fatbin
from tests.simulator.test_variables import bundle

from quiesce.simulator.runtime.ledger import Seen, Thing

INVALID_VALUE, INVALID_SYMBOL, NOT_SUPPORTED = 1, 13, 801
TO_DEVICE, TO_HOST = 1, 2
MANAGED: Final = 3
WRAPPERS: Final = {"cuda": 0x466243B1, "hip": 0x48495046}

KEPT: Final[list[Any]] = []
"""What was registered, which the library reads for as long as it is loaded."""


class Attributes(ctypes.Structure):
    """cudaPointerAttributes of CUDA 13."""

    _fields_ = (("kind", ctypes.c_int), ("device", ctypes.c_int), ("more", ctypes.c_void_p * 10))


class Binary:
    """A fatbin that a compiler's code registered, and the variables in it, of 4 bytes each."""

    def __init__(self, client: Client, image: bytes) -> None:
        self.client, self.prefix = client, client.machine.ledger.flavour.value
        content = ctypes.create_string_buffer(image, len(image) + 64)
        wrapper = struct.pack("<IIQQ", WRAPPERS[self.prefix], 1, ctypes.addressof(content), 0)
        KEPT.extend((content, wrapper))
        self.handle = ctypes.c_void_p(self._function("RegisterFatBinary", ctypes.c_void_p)(wrapper))

    def _function(self, name: str, answer: Any = None) -> Any:
        function = self.client.machine.library[f"__{self.prefix}{name}"]
        function.restype = answer
        return function

    def variable(self, name: bytes, size: int = 4) -> int:
        """Register a variable, and return the address of its shadow."""
        shadow = ctypes.create_string_buffer(size)
        KEPT.append((shadow, name))
        self._function("RegisterVar")(self.handle, shadow, name, name, 0, ctypes.c_size_t(size), 0, 0)
        return ctypes.addressof(shadow)

    def managed(self, name: bytes, size: int = 4) -> ctypes.c_void_p:
        """Register a managed variable, and return the pointer that stands for it."""
        pointer = ctypes.c_void_p()
        KEPT.append((pointer, name))
        register = self._function("RegisterManagedVar")
        register(self.handle, ctypes.byref(pointer), name, name, 0, ctypes.c_size_t(size), 0, 0)
        return pointer

    def begin(self) -> int:
        """Do what comes before the first use of a managed variable."""
        return int.from_bytes(self._function("InitModule", ctypes.c_char)(self.handle), "little")

    def unregister(self) -> None:
        self._function("UnregisterFatBinary")(self.handle)


def read(client: Client, shadow: int, size: int = 4) -> bytes:
    content = ctypes.create_string_buffer(size)
    client.ok("MemcpyFromSymbol", ctypes.addressof(content), shadow, size, 0, TO_HOST)
    return content.raw


def write(client: Client, shadow: int, value: int) -> None:
    content = ctypes.create_string_buffer(struct.pack("<I", value), 4)
    client.ok("MemcpyToSymbol", shadow, ctypes.addressof(content), 4, 0, TO_DEVICE)


def number(value: int) -> bytes:
    return struct.pack("<I", value)


def text(value: int, *, more: str = "") -> bytes:
    """Return a fatbin of PTX that is not compressed, with a variable of that value."""
    ptx = f".version 8.0\n.target sm_75\n.address_size 64\n.global .align 4 .u32 counter = {value};\n{more}".encode()
    return entry(PTX, ptx)


def entry(kind: int, content: bytes, *, packing: int = 0, unpacked_bytes: int = 0) -> bytes:
    """Return a fatbin of one entry, which is compressed if it says how."""
    made = bytearray(fatbin((kind, 75, content)))
    struct.pack_into("<I", made, 16 + 16, len(content) if packing else 0)
    struct.pack_into("<QQQ", made, 16 + 40, packing | 0x11, 0, unpacked_bytes)
    return bytes(made)


def lz4(content: bytes) -> bytes:
    """Return a block of LZ4: literals, a copy of the four bytes before, and the literals behind it."""
    at = next(i for i in range(20, len(content)) if content[i - 4 : i] == content[i : i + 4])
    return _literals(content[:at], copied=4) + b"\4\0" + _literals(content[at + 4 :], copied=4)


def _literals(content: bytes, *, copied: int) -> bytes:
    more = len(content) - 15
    assert more >= 0
    return bytes([0xF0 | copied - 4]) + b"\xff" * (more // 255) + bytes([more % 255]) + content


def zstandard(content: bytes) -> bytes:
    """Return a frame of Zstandard with the content as it is."""
    assert 256 <= len(content) < 1 << 16
    header = struct.pack("<IBH", 0xFD2FB528, 0x60, len(content) - 256)
    return header + (1 | len(content) << 3).to_bytes(3, "little") + content


def test_a_variable_holds_what_its_cubin_states(start: Start, image: MakeImage) -> None:
    client = start("cuda:13")
    binary = Binary(client, fatbin((PTX, 75, b"compressed"), (CUBIN, 80, image("cubin"))))
    counter, zeros, table, hidden = (
        binary.variable(name, size) for name, size in ((b"counter", 4), (b"zeros", 400), (b"table", 6), (b"hidden", 4))
    )
    assert read(client, counter) == number(7)
    assert read(client, zeros, 400) == bytes(400)
    assert read(client, table, 6) == struct.pack("<3h", 1, -2, 3)
    assert read(client, hidden) == number(5)
    write(client, counter, 8)
    assert read(client, counter) == number(8)
    assert client.machine.ledger.counted(Thing.DEVICE)[0] == 4
    address = client.make("GetSymbolAddress", counter)
    assert address != counter
    assert ctypes.string_at(counter, 4) == bytes(4), "the shadow on the host is not the variable"
    assert client.call("Free", address) == INVALID_VALUE


PADDING: Final = "// " + "=" * 300 + "\n"
LONG: Final = f".version 8.0\n.target sm_75\n.address_size 64\n{PADDING}.global .align 4 .u32 counter = 9;\n".encode()


def test_a_compressed_image_is_unpacked(start: Start, image: MakeImage) -> None:
    client = start("cuda:12")
    packed = entry(PTX, lz4(LONG), packing=0x2000, unpacked_bytes=len(LONG))
    assert read(client, Binary(client, packed).variable(b"counter")) == number(9)
    code = image("cubin")
    packed = entry(CUBIN, lz4(code), packing=0x2000, unpacked_bytes=len(code))
    assert read(client, Binary(client, packed).variable(b"counter")) == number(7)


def test_an_image_is_unpacked_by_the_systems_library(start: Start) -> None:
    try:
        ctypes.CDLL("libzstd.so.1")
    except OSError:
        pytest.skip("libzstd.so.1 is not on this machine")
    client = start("cuda:13")
    packed = entry(PTX, zstandard(LONG), packing=0x8000, unpacked_bytes=len(LONG))
    assert read(client, Binary(client, packed).variable(b"counter")) == number(9)


def test_damaged_images_do_no_harm(start: Start) -> None:
    client, dice = start("cuda:13"), random.Random(3)
    place = ctypes.create_string_buffer(4)
    for _ in range(200):
        pack, packing = dice.choice(((lz4, 0x2000), (zstandard, 0x8000)))
        content = bytearray(pack(LONG))
        for _ in range(dice.randint(1, 4)):
            content[dice.randrange(len(content))] = dice.randrange(256)
        made = entry(PTX, bytes(content), packing=packing, unpacked_bytes=len(LONG) + dice.choice((-1, 0, 0, 0, 1)))
        shadow = Binary(client, made).variable(b"counter")
        arguments = (ctypes.addressof(place), shadow, 4, 0, TO_HOST)
        assert client.call("MemcpyFromSymbol", *arguments) in (0, NOT_SUPPORTED)


@pytest.mark.parametrize("runtimes", [2, 5, 10])
def test_variables_and_kernels_of_equal_names_are_kept_apart(start: Start, runtimes: int) -> None:
    client = start("cuda:13")
    binaries = [Binary(client, text(value)) for value in range(runtimes)]
    shadows = [binary.variable(b"counter") for binary in binaries]
    managed = [binary.managed(b"counter") for binary in binaries]
    assert [read(client, shadow) for shadow in shadows] == [number(value) for value in range(runtimes)]
    for value, shadow in enumerate(shadows):
        write(client, shadow, 100 + value)
    assert [read(client, shadow) for shadow in shadows] == [number(100 + value) for value in range(runtimes)]
    assert all(binary.begin() for binary in binaries)
    assert [ctypes.string_at(pointer.value or 0, 4) for pointer in managed] == [number(i) for i in range(runtimes)]
    addresses = [client.make("GetSymbolAddress", shadow) for shadow in shadows]
    assert len({*addresses, *(pointer.value for pointer in managed)}) == 2 * runtimes


def test_each_device_has_its_own(start: Start) -> None:
    client = start("cuda:12", devices=2)
    shadow, addresses = Binary(client, text(3)).variable(b"counter"), []
    for device, value in ((0, 10), (1, 11)):
        client.ok("SetDevice", device)
        assert read(client, shadow) == number(3)
        write(client, shadow, value)
        addresses.append(client.make("GetSymbolAddress", shadow))
    client.ok("SetDevice", 0)
    assert read(client, shadow) == number(10)
    assert addresses[0] != addresses[1]


def test_a_reset_device_begins_anew(start: Start) -> None:
    client = start("cuda:12")
    shadow = Binary(client, text(3)).variable(b"counter")
    write(client, shadow, 4)
    client.ok("DeviceReset")
    assert client.machine.ledger.counted(Thing.DEVICE) == (0, 0)
    assert read(client, shadow) == number(3)


def test_a_managed_variable_is_memory_of_the_host_and_the_device(start: Start) -> None:
    client = start("cuda:13")
    binary = Binary(client, text(41))
    pointer = binary.managed(b"counter")
    assert not pointer.value, "nothing is allocated while libraries are loaded"
    assert binary.begin() == 1
    address = pointer.value or 0
    assert ctypes.string_at(address, 4) == number(41)
    attributes = Attributes()
    client.ok("PointerGetAttributes", ctypes.byref(attributes), address)
    assert attributes.kind == MANAGED
    ctypes.memmove(address, number(42), 4)
    assert read(client, address) == number(42), "a compiler passes the variable's own address"
    assert client.make("GetSymbolAddress", address) == address
    client.ok("MemPrefetchAsync", address, 4, 1, 0, 0)
    assert binary.begin() == 1
    assert (pointer.value, ctypes.string_at(address, 4)) == (address, number(42))
    assert client.call("Free", address) == INVALID_VALUE


def test_a_managed_variable_that_finds_no_memory_says_so(start: Start) -> None:
    client = start("cuda:13", capacity=1 << 20)
    binary = Binary(client, text(41))
    pointer = binary.managed(b"large", 1 << 21)
    assert binary.begin() == 0
    assert not pointer.value
    assert client.call("GetLastError") == 2


@pytest.mark.parametrize("content", ["compressed", "an address", "other size"])
def test_what_the_image_does_not_tell_is_refused_until_it_is_written(start: Start, content: str) -> None:
    client = start("cuda:13")
    images = {
        "compressed": fatbin((PTX, 75, b"compressed")),
        "an address": text(1, more=".global .align 8 .u64 unclear = generic(counter);\n"),
        "other size": text(1, more=".global .align 4 .u32 unclear = 5;\n"),
    }
    shadow, place = Binary(client, images[content]).variable(b"unclear", 8), ctypes.create_string_buffer(8)
    back = ("MemcpyFromSymbol", ctypes.addressof(place), shadow, 8, 0, TO_HOST)
    assert client.call(*back) == NOT_SUPPORTED
    assert client.seen(Seen.NOT_SIMULATED)[0].function == "cudaMemcpyFromSymbol"
    client.ok("MemcpyToSymbol", shadow, ctypes.addressof(place), 8, 0, TO_DEVICE)
    client.ok(*back)


def test_the_first_use_may_be_in_a_capture(start: Start) -> None:
    client = start("cuda:13")
    shadow, stream = Binary(client, text(3)).variable(b"counter"), client.make("StreamCreate")
    pinned = client.make("MallocHost", 4)
    client.ok("StreamBeginCapture", stream, 0)
    client.ok("MemcpyFromSymbolAsync", pinned, shadow, 4, 0, TO_HOST, stream)
    graph = ctypes.c_void_p()
    client.ok("StreamEndCapture", stream, ctypes.byref(graph))
    assert client.make("GraphInstantiate", graph, 0)


def test_what_was_unloaded_has_no_variables(start: Start) -> None:
    client = start("cuda:12")
    first, second = Binary(client, text(1)), Binary(client, text(2))
    gone, stays = first.variable(b"counter"), second.variable(b"counter")
    read(client, gone)
    first.unregister()
    assert client.call("GetSymbolAddress", ctypes.byref(ctypes.c_void_p()), gone) == INVALID_SYMBOL
    assert read(client, stays) == number(2)
    assert client.machine.ledger.counted(Thing.DEVICE)[0] == 1


def test_a_bundle_of_hip_states_values(start: Start, image: MakeImage) -> None:
    client = start("hip:7")
    shadow = Binary(client, bundle(image("code object"))).variable(b"counter")
    assert read(client, shadow) == number(7)


def test_a_managed_variable_of_hip_has_memory_at_once(start: Start, image: MakeImage) -> None:
    client, pointer = start("hip:7"), ctypes.c_void_p()
    binary, initial = Binary(client, bundle(image("code object"))), ctypes.create_string_buffer(number(12), 4)
    KEPT.extend((pointer, initial))
    register = client.machine.library["__hipRegisterManagedVar"]
    register.restype = None
    register(binary.handle, ctypes.byref(pointer), initial, b"counter", ctypes.c_size_t(4), 4)
    assert ctypes.string_at(pointer.value or 0, 4) == number(12)
    ctypes.memmove(pointer.value or 0, number(13), 4)
    assert read(client, pointer.value or 0) == number(13)
    assert client.call("Free", pointer) == INVALID_VALUE


def test_what_devices_use_on_the_host_is_accepted(start: Start) -> None:
    client = start("cuda:13")
    binary, shadow = Binary(client, text(1)), ctypes.create_string_buffer(4)
    library = client.machine.library
    library["__cudaRegisterHostVar"](binary.handle, b"counter", shadow, ctypes.c_size_t(4))
    library["__cudaRegisterUnifiedTable"](binary.handle, None, ctypes.c_size_t(0), None, ctypes.c_size_t(0))
    assert client.seen(Seen.NOT_SIMULATED) == []
