"""What code was compiled for is what its image says: PTX text, cubins, fatbins; CUB and Thrust choose by it."""

from __future__ import annotations

import ctypes
import struct
from typing import Final

import pytest
from tests.simulator.conftest import Client, MakeImage, Start

PTX_VERSION, BINARY_VERSION = 5, 6
PTX, CUBIN = 1, 2
OLD_ABI, NEW_ABI = (0x33, 7), (0x41, 8)
KERNEL: Final = ".visible .entry work() { ret; }\n"


def ptx(architecture: str) -> bytes:
    return f"// a .target of nobody\n.version 8.0\n.target {architecture}\n.address_size 64\n{KERNEL}".encode()


def fatbin(*entries: tuple[int, int, bytes]) -> bytes:
    """Return a fatbin of entries, each a kind, an architecture and content; that of PTX is compressed, as nvcc does."""
    body = b""
    for kind, architecture, content in entries:
        padded = content + bytes(-len(content) % 8)
        compressed, flags = (len(content), 0x8011) if kind == PTX else (0, 0x11)
        body += struct.pack("<HHIQIIHHI", kind, 0x101, 64, len(padded), compressed, 0, 8, 1, architecture)
        body += struct.pack("<IIQQQ", 0, 0, flags, 0, 0) + padded
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def cubin(image: bytes, abi: tuple[int, int], flags: int) -> bytes:
    content = bytearray(image)
    content[7], content[8] = abi
    struct.pack_into("<I", content, 48, flags)
    return bytes(content)


@pytest.fixture
def client(start: Start) -> Client:
    made = start("cuda:13")
    made.ok("SetDevice", 0)
    return made


def asked(client: Client, image: bytes) -> tuple[int, int]:
    """Load a module and ask a function of it for both versions."""
    module, function, value = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
    library = client.machine.library
    assert library.cuModuleLoadData(ctypes.byref(module), image) == 0
    assert library.cuModuleGetFunction(ctypes.byref(function), module, b"work") == 0
    found = []
    for attribute in (PTX_VERSION, BINARY_VERSION):
        assert library.cuFuncGetAttribute(ctypes.byref(value), attribute, function) == 0
        found.append(value.value)
    return found[0], found[1]


@pytest.mark.parametrize(
    ("target", "versions"),
    [("sm_75", (75, 80)), ("sm_80, debug", (80, 80)), ("sm_90a", (90, 80)), ("sm_100f", (100, 80))],
)
def test_text_is_compiled_for_the_device(client: Client, target: str, versions: tuple[int, int]) -> None:
    assert asked(client, ptx(target)) == versions


@pytest.mark.parametrize("space", ["\t", "\r\n", " \n\t"])
def test_text_may_begin_with_white_space(client: Client, space: str) -> None:
    assert asked(client, space.encode() + ptx("sm_75")) == (75, 80)


@pytest.mark.parametrize(
    ("entries", "versions"),
    [
        (((CUBIN, 75), (PTX, 75)), (75, 80)),  # nvcc 13's default
        (((CUBIN, 70), (CUBIN, 75), (CUBIN, 80), (CUBIN, 86), (PTX, 86)), (80, 80)),
        (((PTX, 75), (CUBIN, 80)), (80, 80)),  # a binary is better than PTX
        (((PTX, 52), (PTX, 70), (PTX, 90), (CUBIN, 75)), (70, 80)),  # the highest that a device can take
        (((PTX, 90), (CUBIN, 90)), (90, 80)),  # none fits: the lowest counts, of equal ones the first
        (((CUBIN, 90), (CUBIN, 86)), (86, 86)),
    ],
)
def test_the_best_of_several_is_loaded(
    client: Client, entries: tuple[tuple[int, int], ...], versions: tuple[int, int]
) -> None:
    content = b"compressed"
    assert asked(client, fatbin(*((kind, number, content) for kind, number in entries))) == versions


def test_what_is_behind_an_entry_of_another_kind_or_a_damaged_one(client: Client) -> None:
    index, good = (0x40, 80, b"an index"), (CUBIN, 75, b"x")
    assert asked(client, fatbin(index, good)) == (75, 75)
    damaged = bytearray(fatbin(good, (CUBIN, 80, b"x")))
    struct.pack_into("<Q", damaged, 16 + 64 + 8 + 8, 1 << 60)  # the second one's size
    assert asked(client, bytes(damaged)) == (75, 75)
    assert asked(client, fatbin()) == (80, 80), "where nothing is told, it is the device's"


@pytest.mark.parametrize(
    ("abi", "flags", "versions"),
    [
        (OLD_ABI, 0x4B0556, (75, 86)),
        (OLD_ABI, 0x500550, (80, 80)),
        (NEW_ABI, 0x6005A04, (90, 90)),
        (NEW_ABI, 0, (80, 80)),
    ],
)
def test_a_cubin_says_it_in_its_flags(
    client: Client, image: MakeImage, abi: tuple[int, int], flags: int, versions: tuple[int, int]
) -> None:
    made = cubin(image("cubin").replace(b"scale", b"work\0"), abi, flags)
    assert asked(client, made) == versions
    assert asked(client, fatbin((CUBIN, versions[1], made))) == versions, "it is looked into where it is not compressed"


def test_what_was_linked_is_for_the_device_and_of_its_first_input(client: Client) -> None:
    linker, module = ctypes.c_void_p(), ctypes.c_void_p()
    library, content, made, value = client.machine.library, ptx("sm_70"), ctypes.c_void_p(), ctypes.c_int()
    assert library.cuLinkCreate_v2(0, None, None, ctypes.byref(linker)) == 0
    size = ctypes.c_size_t(len(content) + 1)
    assert library.cuLinkAddData_v2(linker, 1, content, size, None, 0, None, None) == 0
    assert library.cuLinkComplete(linker, ctypes.byref(made), None) == 0
    assert library.cuModuleLoadData(ctypes.byref(module), made) == 0
    assert library.cuModuleGetFunction(ctypes.byref(made), module, b"work") == 0
    assert library.cuFuncGetAttribute(ctypes.byref(value), PTX_VERSION, made) == 0
    assert value.value == 70


class Wrapper(ctypes.Structure):
    _fields_ = (
        ("magic", ctypes.c_uint),
        ("version", ctypes.c_uint),
        ("fatbin", ctypes.c_char_p),
        ("more", ctypes.c_void_p),
    )


def runtime_versions(client: Client, function: int) -> tuple[int, int]:
    attributes = ctypes.create_string_buffer(256)
    client.ok("FuncGetAttributes", attributes, ctypes.c_void_p(function))
    found: tuple[int, int] = struct.unpack_from("<ii", attributes, 32)
    return found


def test_a_kernel_of_the_clients_own_is_what_its_fatbin_says(client: Client) -> None:
    text = fatbin((CUBIN, 75, b"x"), (PTX, 75, b"x"))
    library, kernels = client.machine.library, [0x1000, 0x2000]
    library.__cudaRegisterFatBinary.restype = ctypes.c_void_p
    wrappers = [Wrapper(0x466243B1, 1, content, None) for content in (text, fatbin((CUBIN, 80, b"x")))]
    handles = [ctypes.c_void_p(library.__cudaRegisterFatBinary(ctypes.byref(each))) for each in wrappers]
    for _ in range(300):  # more than one piece of the list
        for handle, kernel in zip(handles, kernels, strict=True):
            library.__cudaRegisterFunction(handle, ctypes.c_void_p(kernel), b"k", b"k", -1, *[None] * 5)
    assert [runtime_versions(client, kernel) for kernel in kernels] == [(75, 80), (80, 80)]
    assert runtime_versions(client, 0x3000) == (80, 80), "nobody registered it"
    library.__cudaUnregisterFatBinary(handles[0])
    assert runtime_versions(client, kernels[0]) == (80, 80)
    again = ctypes.c_void_p(library.__cudaRegisterFatBinary(ctypes.byref(wrappers[0])))
    library.__cudaRegisterFunction(again, ctypes.c_void_p(kernels[1]), b"k", b"k", -1, *[None] * 5)
    assert runtime_versions(client, kernels[1]) == (75, 80), "another library lies there now"


def test_a_kernel_of_the_clients_own_has_a_handle_for_the_driver(client: Client) -> None:
    """As XLA asks for its own kernels, cudaGetFuncBySymbol."""
    library, text = client.machine.library, fatbin((PTX, 75, b"x"))
    library.__cudaRegisterFatBinary.restype = ctypes.c_void_p
    wrapper = Wrapper(0x466243B1, 1, text, None)
    binary = ctypes.c_void_p(library.__cudaRegisterFatBinary(ctypes.byref(wrapper)))
    for kernel in (0x5000, 0x6000):
        library.__cudaRegisterFunction(binary, ctypes.c_void_p(kernel), b"k", b"k", -1, *[None] * 5)
    functions = [ctypes.c_void_p() for _ in range(3)]
    for function, kernel in zip(functions, (0x5000, 0x6000, 0x5000), strict=True):
        client.ok("GetFuncBySymbol", ctypes.byref(function), ctypes.c_void_p(kernel))
    assert functions[0].value == functions[2].value != functions[1].value
    value = ctypes.c_int()
    assert library.cuFuncGetAttribute(ctypes.byref(value), 5, functions[0]) == 0  # CU_FUNC_ATTRIBUTE_PTX_VERSION
    assert value.value == 75
    assert library.cuLaunchKernel(functions[0], *[1] * 6, 0, None, None, None) == 0
    assert client.call("GetFuncBySymbol", ctypes.byref(functions[0]), ctypes.c_void_p(0x7000)) == 98
    library.__cudaUnregisterFatBinary(binary)
    assert library.cuLaunchKernel(functions[0], *[1] * 6, 0, None, None, None) == 400


def test_hips_binaries_are_the_devices(start: Start) -> None:
    client, attributes = start("hip:7"), ctypes.create_string_buffer(256)
    client.ok("FuncGetAttributes", attributes, ctypes.c_void_p(0x1000))
    assert struct.unpack_from("<i", attributes)[0] == 90
