"""Arrays, pitched memory, copies in two and three dimensions, textures and surfaces."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from quiesce.simulator.runtime.ledger import Seen, Thing


class Format(ctypes.Structure):
    _fields_ = (("bits", ctypes.c_int * 4), ("kind", ctypes.c_int))


class Extent(ctypes.Structure):
    _fields_ = (("width", ctypes.c_size_t), ("height", ctypes.c_size_t), ("depth", ctypes.c_size_t))


class Pitched(ctypes.Structure):
    _fields_ = (
        ("address", ctypes.c_void_p),
        ("pitch", ctypes.c_size_t),
        ("width", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
    )


class Copy3D(ctypes.Structure):
    _fields_ = (
        ("from_array", ctypes.c_void_p),
        ("from_at", Extent),
        ("source", Pitched),
        ("to_array", ctypes.c_void_p),
        ("to_at", Extent),
        ("target", Pitched),
        ("extent", Extent),
        ("kind", ctypes.c_int),
    )


FLOATS = Format((32, 0, 0, 0), 2)


@pytest.fixture(params=["cuda:12", "hip:7"])
def client(request: pytest.FixtureRequest, start: Any) -> Any:
    return start(request.param, recycle="never")


def test_an_array_is_memory_until_it_is_freed(client: Any) -> None:
    array = client.make("MallocArray", ctypes.byref(FLOATS), ctypes.c_size_t(10), ctypes.c_size_t(4), 0)
    assert client.machine.ledger.counted(Thing.DEVICE) == (1, 160)
    found, extent, flags = Format(), Extent(), ctypes.c_uint(7)
    client.ok("ArrayGetInfo", ctypes.byref(found), ctypes.byref(extent), ctypes.byref(flags), array)
    assert (found.bits[0], extent.width, extent.height, extent.depth, flags.value) == (32, 10, 4, 0, 0)
    assert client.call("Free", array) == 1, "an array is freed by its own function"
    assert client.call("FreeArray", client.make("Malloc", 8)) == 1
    assert len(client.seen(Seen.FREED_FOREIGN)) == 2
    client.ok("FreeArray", array)
    client.ok("FreeArray", 0)
    assert client.call("FreeArray", array) == 1
    assert client.call("GetChannelDesc", ctypes.byref(found), array) == 1


def test_a_format_without_bits_and_an_extent_without_width_are_refused(client: Any) -> None:
    made, none = ctypes.c_void_p(), Format((0, 0, 0, 0), 2)
    size = ctypes.c_size_t
    assert client.call("MallocArray", ctypes.byref(made), ctypes.byref(none), size(1), size(1), 0) == 1
    assert client.call("MallocArray", ctypes.byref(made), ctypes.byref(FLOATS), size(0), size(1), 0) == 1
    assert client.call("MallocArray", ctypes.byref(made), ctypes.byref(FLOATS), size(1 << 31), size(1 << 31), 0) == 2


def test_rows_go_into_an_array_and_come_back(client: Any) -> None:
    size = ctypes.c_size_t
    array = client.make("MallocArray", ctypes.byref(FLOATS), size(4), size(3), 0)
    rows = bytes(range(32))
    client.ok("Memcpy2DToArray", array, size(4), size(1), rows, size(16), size(12), size(2), 1)
    back = ctypes.create_string_buffer(48)
    client.ok("Memcpy2DFromArray", back, size(16), array, size(0), size(0), size(16), size(3), 2)
    assert back.raw[20:32] == rows[:12]
    assert back.raw[36:48] == rows[16:28]
    assert client.call("Memcpy2DToArray", array, size(8), size(1), rows, size(16), size(12), size(2), 1) == 1
    assert client.call("Memcpy2DToArray", array, size(0), size(2), rows, size(16), size(12), size(2), 1) == 1
    assert client.call("Memcpy2DToArray", 64, size(0), size(2), rows, size(16), size(12), size(2), 1) == 400


@pytest.mark.parametrize("stream", [False, True], ids=["waits", "on a stream"])
def test_bytes_go_row_after_row(start: Any, *, stream: bool) -> None:
    client, size = start("cuda:12", recycle="never"), ctypes.c_size_t
    end, last = ("Async", (client.make("StreamCreate"),)) if stream else ("", ())
    array, other = (client.make("MallocArray", ctypes.byref(FLOATS), size(2), size(3), 0) for _ in range(2))
    client.ok(f"MemcpyToArray{end}", array, size(0), size(0), bytes(24), size(24), 1, *last)
    client.ok(f"MemcpyToArray{end}", array, size(4), size(1), b"over two", size(8), 1, *last)
    back = ctypes.create_string_buffer(12)
    client.ok(f"MemcpyFromArray{end}", back, array, size(4), size(1), size(12), 2, *last)
    client.ok("DeviceSynchronize")
    assert back.raw == b"over two" + bytes(4)
    client.ok("MemcpyArrayToArray", other, size(0), size(0), array, size(4), size(1), size(12), 3)
    client.ok("Memcpy2DArrayToArray", other, size(4), size(1), array, size(4), size(1), size(4), size(2), 3)
    client.ok("MemcpyFromArray", back, other, size(0), size(1), size(12), 2)
    assert back.raw == b"\0\0\0\0over\0\0\0\0", "the second copy has two rows of one element"
    for at, count in (((0, 0), 25), ((4, 2), 5), ((9, 0), 1), ((0, 4), 0)):
        assert client.call("MemcpyToArray", array, size(at[0]), size(at[1]), bytes(25), size(count), 1) == 1
    assert client.call("MemcpyToArray", 64, size(0), size(0), bytes(8), size(8), 1) == 400


def test_copies_in_three_dimensions(client: Any) -> None:
    array = client.make("Malloc3DArray", ctypes.byref(FLOATS), Extent(2, 2, 2), 0)
    source, back = bytes(range(32)), ctypes.create_string_buffer(32)
    held = ctypes.create_string_buffer(source, 32)
    pitched = Pitched(ctypes.cast(held, ctypes.c_void_p), 8, 8, 2)
    to = Copy3D(source=pitched, to_array=array, extent=Extent(2, 2, 2), kind=1)
    client.ok("Memcpy3D", ctypes.byref(to))
    backwards = Pitched(ctypes.cast(back, ctypes.c_void_p), 8, 8, 2)
    part = Copy3D(from_array=array, from_at=Extent(1, 1, 1), target=backwards, extent=Extent(1, 1, 1), kind=2)
    client.ok("Memcpy3D", ctypes.byref(part))
    assert back.raw[:4] == source[28:32]
    part.from_at = Extent(1, 1, 2)
    assert client.call("Memcpy3D", ctypes.byref(part)) == 1
    stream = client.make("StreamCreate")
    part.from_at = Extent(0, 0, 1)
    client.ok("Memcpy3DAsync", ctypes.byref(part), stream)
    assert back.raw[:4] == source[16:20]


def test_pitched_memory_is_filled_inside_its_extent(client: Any) -> None:
    made = Pitched()
    client.ok("Malloc3D", ctypes.byref(made), Extent(100, 3, 2))
    assert (made.pitch, made.width, made.height) == (512, 100, 3)
    assert client.machine.ledger.counted(Thing.DEVICE) == (1, 512 * 6)
    client.ok("Memset3D", made, 7, Extent(100, 3, 2))
    content = ctypes.string_at(made.address or 0, 512 * 6)
    assert content.count(b"\x07") == 600
    assert client.call("Memset3D", made, 7, Extent(513, 1, 1)) == 1
    assert client.call("Memset3D", made, 7, Extent(100, 3, 3)) == 1, "it is not as deep"


def test_textures_and_surfaces_name_live_arrays_and_are_handles(client: Any) -> None:
    array = client.make("MallocArray", ctypes.byref(FLOATS), ctypes.c_size_t(4), ctypes.c_size_t(4), 0)
    resource = ctypes.create_string_buffer((0).to_bytes(8, "little") + array.to_bytes(8, "little"), 64)
    texture = client.make("CreateTextureObject", resource, ctypes.create_string_buffer(b"described", 72), None)
    surface = client.make("CreateSurfaceObject", resource)
    assert client.machine.ledger.counted(Thing.TEXTURE)[0] == 2
    back = ctypes.create_string_buffer(64)
    client.ok("GetTextureObjectResourceDesc", back, texture)
    assert back.raw == resource.raw
    client.ok("DestroySurfaceObject", surface)
    client.ok("DestroyTextureObject", texture)
    assert client.call("DestroyTextureObject", texture) == 1
    client.ok("FreeArray", array)
    made = ctypes.c_uint64()
    assert client.call("CreateSurfaceObject", ctypes.byref(made), resource) == 400
    assert [record.thing for record in client.seen(Seen.DEAD_HANDLE)] == [Thing.TEXTURE]
