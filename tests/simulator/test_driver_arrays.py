"""Arrays of the CUDA driver, and its textures and surfaces of them."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable

import pytest
from tests.simulator.checked_kernels import Checked
from tests.simulator.test_driver_clients import ARRAY, HOST, Rows, Side
from tests.simulator.test_textures import POINT, fetch, floats

from quiesce.simulator.runtime.kernel_compiler import kernels_can_run

pytestmark = pytest.mark.skipif(not kernels_can_run(), reason="needs what compiles kernels: quiesce[kernels]")

MakeDevice = Callable[..., Checked]
UINT8, INT16, FLOAT = 0x01, 0x09, 0x20
AS_INTEGERS, NORMALIZED = 1, 2
SURFACE = 2


class Shape(ctypes.Structure):
    """A description of an array."""

    _fields_ = (
        *((name, ctypes.c_size_t) for name in ("width", "height", "depth")),
        *((name, ctypes.c_uint) for name in ("format", "channels", "flags")),
    )


def create(given: Checked, *shape: int) -> ctypes.c_void_p:
    made = ctypes.c_void_p()
    assert given.driver.cuArray3DCreate_v2(ctypes.byref(made), ctypes.byref(Shape(*shape))) == 0
    return made


def resource(array: ctypes.c_void_p) -> ctypes.Array[ctypes.c_char]:
    return ctypes.create_string_buffer(struct.pack("<iiQ", 0, 0, array.value or 0), 144)


def texture(given: Checked, array: ctypes.c_void_p, flags: int) -> int:
    made, description = ctypes.c_uint64(), struct.pack("<4iIIi3f4f", 1, 1, 1, 0, flags, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    described = ctypes.create_string_buffer(description, 104)
    assert given.driver.cuTexObjectCreate(ctypes.byref(made), resource(array), described, None) == 0
    return made.value


def test_rows_of_an_array_are_fetched(checked: MakeDevice) -> None:
    given = checked()
    array, content = create(given, 3, 2, 0, FLOAT, 1, 0), struct.pack("<6f", 1.5, 2.5, 3.5, 4.5, 5.5, 6.5)
    held = ctypes.create_string_buffer(content, 24)
    rows = Rows(Side(type=HOST, host=ctypes.addressof(held), pitch=12), width=12, height=2)
    rows.target = Side(type=ARRAY, array=array.value)
    assert given.driver.cuMemcpy2D_v2(ctypes.byref(rows)) == 0
    object_ = texture(given, array, AS_INTEGERS)
    assert floats(fetch(given, object_, POINT))[0] == 6.5
    back = ctypes.create_string_buffer(8)
    size = ctypes.c_size_t
    assert given.driver.cuMemcpyAtoH_v2(back, array, size(4), size(8)) == 0
    assert struct.unpack("<2f", back.raw) == (2.5, 3.5)
    assert given.driver.cuMemcpyHtoA_v2(array, size(8), back, size(8)) == 1, "that is more than a row has"
    rows.height = 3
    assert given.driver.cuMemcpy2D_v2(ctypes.byref(rows)) == 1
    assert given.driver.cuTexObjectDestroy(ctypes.c_uint64(object_)) == 0
    assert given.driver.cuArrayDestroy(array) == 0
    assert given.rules() == []


def test_integers_are_numbers_up_to_one_unless_a_flag_says_otherwise(checked: MakeDevice) -> None:
    given = checked()
    array = create(given, 2, 0, 0, UINT8, 4, 0)
    assert given.driver.cuMemcpyHtoA_v2(array, ctypes.c_size_t(0), bytes([0, 51, 255, 0] * 2), ctypes.c_size_t(8)) == 0
    line = "tex.1d.v4.f32.f32 {%r2, %r3, %r4, %r5}, [%rd1, {0f3F400000}];"
    found = floats(fetch(given, texture(given, array, NORMALIZED), line))
    assert found == [0, struct.unpack("<f", struct.pack("<f", 0.2))[0], 1, 0]
    assert fetch(given, texture(given, array, AS_INTEGERS), line.replace("v4.f32", "v4.u32")) == [0, 51, 255, 0]


def test_a_surface_is_written(checked: MakeDevice) -> None:
    given = checked()
    array, made = create(given, 2, 2, 0, INT16, 2, SURFACE), ctypes.c_uint64()
    assert given.driver.cuSurfObjectCreate(ctypes.byref(made), resource(array)) == 0
    fetch(given, made.value, "sust.b.2d.b32.trap [%rd1, {4, 1}], 77;")
    back = ctypes.create_string_buffer(8)
    rows = Rows(Side(type=ARRAY, array=array.value, y=1), width=8, height=1)
    rows.target = Side(type=HOST, host=ctypes.addressof(back))
    assert given.driver.cuMemcpy2D_v2(ctypes.byref(rows)) == 0
    assert struct.unpack("<2I", back.raw)[1] == 77
    assert given.driver.cuSurfObjectDestroy(made) == 0


def test_descriptions(checked: MakeDevice) -> None:
    given = checked()
    array, shape, flat = create(given, 5, 4, 3, INT16, 2, 1), Shape(), (ctypes.c_uint64 * 3)()
    assert given.driver.cuArray3DGetDescriptor_v2(ctypes.byref(shape), array) == 0
    assert bytes(shape) == bytes(Shape(5, 4, 3, INT16, 2, 1))
    assert given.driver.cuArrayGetDescriptor_v2(flat, array) == 0
    assert list(flat) == [5, 4, INT16 | 2 << 32]
    made = ctypes.c_void_p()
    for wrong in ((5, 4, 0, 0x77, 2, 0), (5, 4, 0, FLOAT, 3, 0), (0, 4, 0, FLOAT, 1, 0)):
        assert given.driver.cuArray3DCreate_v2(ctypes.byref(made), ctypes.byref(Shape(*wrong))) == 1
    plain = struct.pack("<QQII", 4, 0, FLOAT, 1)
    assert given.driver.cuArrayCreate_v2(ctypes.byref(made), plain) == 0
    assert given.driver.cuArrayDestroy(made) == 0
    assert given.driver.cuArrayDestroy(None) == 400
