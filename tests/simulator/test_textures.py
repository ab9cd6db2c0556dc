"""Textures and surfaces that kernels use: objects of every kind, and each wrong use next to a right one."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable

import pytest
from tests.simulator.checked_kernels import Checked
from tests.simulator.kernel_programs import TO_DEVICE
from tests.simulator.test_arrays import Format
from tests.simulator.textures import (
    ARRAY,
    LINEAR,
    PITCHED,
    WORDS,
    array,
    layered,
    resource,
    rows_of,
    surface,
    texture,
    view,
)

from quiesce.model.program_rules import (
    KERNELS_INSIDE_SURFACES,
    KERNELS_NOT_FREED,
    KERNELS_READ_WRITTEN,
    KERNELS_TEXTURES,
    ORDERED,
)
from quiesce.simulator.runtime.kernel_compiler import kernels_can_run

pytestmark = pytest.mark.skipif(not kernels_can_run(), reason="needs what compiles kernels: quiesce[kernels]")

MakeDevice = Callable[..., Checked]
ILLEGAL_ADDRESS, LAUNCH_FAILURE = 700, 719
ROWS = [[1.5, 2.5, 3.5], [4.5, 5.5, 6.5]]
BYTES = Format((8, 8, 8, 8), 1)
SHORTS = Format((16, 16, 0, 0), 0)
HALVES = Format((16, 16, 0, 0), 2)


def fetch(given: Checked, object_: int, line: str, *, answer: int = 0) -> list[int]:
    """Run an instruction with the object in ``%rd1``; return the words in ``%r2`` to ``%r5``."""
    found = given.words(0, 0, 0, 0)
    clear = "".join(f"mov.b32 %r{number}, 0;\n" for number in range(2, 6))
    given.work(f"{clear}{line}\nst.global.v4.b32 [%rd2], {{%r2, %r3, %r4, %r5}};", object_, found, answer=answer)
    return given.read(found, 4) if not answer else []


def floats(words: list[int]) -> list[float]:
    """Return the floats that words stand for."""
    return list(struct.unpack("<4f", struct.pack("<4I", *words)))


POINT = "tex.2d.v4.f32.f32 {%r2, %r3, %r4, %r5}, [%rd1, {0f40200000, 0f3FC00000}];"  # (2.5, 1.5)
FIRST = "tex.1d.v4.u32.s32 {%r2, %r3, %r4, %r5}, [%rd1, {0}];"


# -- objects -----------------------------------------------------------------------------------------------------------


def test_arrays_and_memory_in_one_and_two_dimensions(checked: MakeDevice) -> None:
    given = checked()
    made = array(given, ROWS)
    assert floats(fetch(given, texture(given, resource(ARRAY, made)), POINT))[0] == 6.5
    words = given.words(7, 8, 9)
    assert fetch(given, texture(given, resource(LINEAR, words, WORDS, (12, 0, 0))), FIRST) == [7, 0, 0, 1]
    pitched = given.words(*range(256))
    object_ = texture(given, resource(PITCHED, pitched, WORDS, (3, 2, 512)))
    assert fetch(given, object_, POINT)[0] == 130
    assert given.rules() == []


def test_what_an_object_says_of_how_it_is_read(checked: MakeDevice) -> None:
    given = checked()
    made = array(given, [[0x01FF0000, 0xFF000000]], BYTES)
    normalized = texture(given, resource(ARRAY, made), address=0, filters=1, read=1, normalized=1)
    line = "tex.1d.v4.f32.f32 {%r2, %r3, %r4, %r5}, [%rd1, {0f40100000}];"  # 2.25 is the first texel again
    assert floats(fetch(given, normalized, line)) == [0.0, 0.0, 1.0, struct.unpack("<f", struct.pack("<f", 1 / 255))[0]]
    asked = "".join(
        f"txq.{word}.b32 %r{number}, [%rd1];\n"
        for number, word in enumerate(("width", "channel_data_type", "normalized_coords", "filter_mode"), start=2)
    )
    assert fetch(given, normalized, asked) == [2, 0x10D2, 1, 1]
    plain = texture(given, resource(ARRAY, made), address=3)
    outside = "tex.1d.v4.u32.s32 {%r2, %r3, %r4, %r5}, [%rd1, {2}];"
    assert fetch(given, plain, outside) == [0, 0, 0, 0]
    assert fetch(given, plain, FIRST) == [0, 0, 255, 1]


def test_layers_and_cubes(checked: MakeDevice) -> None:
    given = checked()
    flat, cube = layered(given, [10, 20, 30], 1), layered(given, [0, 1, 2, 3, 4, 5], 4)
    line = "tex.a2d.v4.f32.f32 {%r2, %r3, %r4, %r5}, [%rd1, {1, 0f00000000, 0f00000000, %r1}];"
    assert floats(fetch(given, texture(given, resource(ARRAY, flat)), line))[0] == 20
    down = "tex.cube.v4.f32.f32 {%r2, %r3, %r4, %r5}, [%rd1, {0f00000000, 0f00000000, 0fBF800000, %r1}];"
    assert floats(fetch(given, texture(given, resource(ARRAY, cube)), down))[0] == 5
    size = "suq.array_size.b32 %r2, [%rd1]; suq.depth.b32 %r3, [%rd1]; suq.channel_order.b32 %r4, [%rd1];"
    assert fetch(given, surface(given, flat), size)[:3] == [3, 1, 0x10B0]


def test_texels_in_the_format_of_a_view(checked: MakeDevice) -> None:
    given = checked()
    made = array(given, [[0x80FF, 0]], WORDS)
    bytes_ = texture(given, resource(ARRAY, made), seen=view(6))  # four signed bytes
    line = "tex.1d.v4.s32.s32 {%r2, %r3, %r4, %r5}, [%rd1, {0}];"
    assert fetch(given, bytes_, line) == [0xFFFFFFFF, 0xFFFFFF80, 0, 0]
    layers = layered(given, [10, 20, 30], 1)
    line = "tex.a2d.v4.f32.f32 {%r2, %r3, %r4, %r5}, [%rd1, {0, 0f00000000, 0f00000000, %r1}];"
    assert floats(fetch(given, texture(given, resource(ARRAY, layers), seen=view(0, 1, 2)), line))[0] == 20
    out, description = ctypes.c_uint64(), ctypes.create_string_buffer(72)
    for named, wrong in ((made, view(4)), (made, view(30)), (layers, view(0, 2, 3))):
        arguments = (ctypes.byref(out), resource(ARRAY, named), description, wrong)
        assert given.client.call("CreateTextureObject", *arguments) == 1


def test_a_reference_of_a_module_is_a_variable_with_an_object(checked: MakeDevice) -> None:
    given = checked()
    object_ = texture(given, resource(ARRAY, array(given, ROWS)))
    text = """
.global .texref picture;
.visible .entry look(.param .u64 to)
{ .reg .b32 %r<9>; .reg .b64 %rd<3>; .reg .f32 %f<5>;
ld.param.u64 %rd1, [to];
tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [picture, {0f40200000, 0f3FC00000}]; st.global.f32 [%rd1], %f1;
mov.u64 %rd2, picture;
tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd2, {0f00000000, 0f00000000}]; st.global.f32 [%rd1+4], %f1;
ret; }
"""
    module = given.module(text)
    address, size = ctypes.c_uint64(), ctypes.c_size_t()
    assert not given.driver.cuModuleGetGlobal_v2(ctypes.byref(address), ctypes.byref(size), module, b"picture")
    given.client.ok("Memcpy", address, struct.pack("<Q", object_), 8, TO_DEVICE)
    found = given.words(0, 0, 0, 0)
    given.ok(given.function(module, "look"), 1, 1, found)
    assert floats(given.read(found, 4))[:2] == [6.5, 1.5]
    assert given.rules() == []


@pytest.mark.parametrize("kind", [3, 4])
def test_formats_without_texels_are_refused(checked: MakeDevice, kind: int) -> None:
    given = checked()
    made = given.client.make("MallocArray", ctypes.byref(Format((32, 0, 0, 0), kind)), *[ctypes.c_size_t(4)] * 2, 0)
    description, out = ctypes.create_string_buffer(72), ctypes.c_uint64()
    arguments = (ctypes.byref(out), resource(ARRAY, made), description, None)
    assert given.client.call("CreateTextureObject", *arguments) == 1


# -- surfaces ----------------------------------------------------------------------------------------------------------


def test_bytes_of_surfaces_are_read_and_written(checked: MakeDevice) -> None:
    given = checked()
    made = array(given, [[1, 2, 3, 4], [5, 6, 7, 8]], WORDS)
    object_ = surface(given, made)
    assert fetch(given, object_, "suld.b.2d.v2.b32.trap {%r2, %r3}, [%rd1, {8, 1}];")[:2] == [7, 8]
    assert fetch(given, object_, "suld.b.2d.b32.clamp %r2, [%rd1, {99, -7}];")[0] == 4
    assert fetch(given, object_, "mov.b32 %r2, 9; suld.b.2d.b32.zero %r2, [%rd1, {16, 0}];")[0] == 0
    assert fetch(given, object_, "suld.b.2d.v4.b32.clamp {%r2, %r3, %r4, %r5}, [%rd1, {4, 9}];") == [5, 6, 7, 8]
    fetch(given, object_, "sust.b.2d.b32.trap [%rd1, {4, 1}], 60; sust.b.2d.b32.zero [%rd1, {-4, 1}], 61;")
    fetch(given, object_, "sust.b.2d.b32.clamp [%rd1, {99, 99}], 80;\n.reg .b16 %h; mov.b16 %h, 513;\n"
                          "sust.b.2d.b16.trap [%rd1, {2, 0}], %h;")  # fmt: skip
    assert rows_of(given, made, 4, 2) == [(1 | 513 << 16, 2, 3, 4), (5, 60, 7, 80)]
    assert given.rules() == []


def test_numbers_are_written_in_the_format_of_a_surface(checked: MakeDevice) -> None:
    given = checked()
    bytes_, shorts, halves = (array(given, [[0, 0]], each) for each in (BYTES, SHORTS, HALVES))
    line = "sust.p.1d.v4.b32.trap [%rd1, {{1}}], {{{}, {}, {}, {}}};"
    fetch(given, surface(given, bytes_), line.format(1, 255, 256, 70000))
    fetch(given, surface(given, shorts), line.format(-5, -70000, 0, 0))
    fetch(given, surface(given, halves), line.format("0f3F800000", "0fC0000000", "0f00000000", "0f00000000"))
    assert rows_of(given, bytes_, 2, 1) == [(0, 0xFFFFFF01)]
    assert rows_of(given, shorts, 2, 1) == [(0, 0x8000FFFB)]
    assert rows_of(given, halves, 2, 1) == [(0, 0xC0003C00)]


def test_reductions(checked: MakeDevice) -> None:
    given = checked()
    made = array(given, [[10, 10, 10, 10], [0xFFFFFFFF, 0xFFFFFFFF, 3, 1]], WORDS)
    object_ = surface(given, made)
    lines = [
        "sured.b.add.2d.u32.trap [%rd1, {0, 0}], 5;",
        "sured.b.min.2d.u32.trap [%rd1, {4, 0}], 5;",
        "sured.b.max.2d.u32.trap [%rd1, {8, 0}], 50;",
        "sured.b.and.2d.b32.trap [%rd1, {12, 0}], 3;",
        "sured.b.max.2d.s32.trap [%rd1, {0, 1}], 5;",
        "sured.p.max.2d.b32.trap [%rd1, {1, 1}], 5;",
        "sured.p.or.2d.b32.clamp [%rd1, {2, 9}], 12;",
        "sured.b.add.2d.u32.zero [%rd1, {16, 0}], 5;",
    ]
    given.work("\n".join(lines), object_, block=2)
    assert rows_of(given, made, 4, 2) == [(20, 5, 50, 2), (5, 0xFFFFFFFF, 15, 1)]
    assert given.rules() == []


# -- wrong uses, and right ones next to them ---------------------------------------------------------------------------


@pytest.mark.parametrize("stop", [0, 1])
def test_an_object_that_was_destroyed(checked: MakeDevice, stop: int) -> None:
    given = checked(recycle="never", stop=stop)
    made = array(given, ROWS)
    object_, other = texture(given, resource(ARRAY, made)), surface(given, made)
    fetch(given, object_, POINT)
    assert given.rules() == []
    given.client.ok("DestroyTextureObject", object_)
    found = fetch(given, object_, POINT, answer=ILLEGAL_ADDRESS if stop else 0)
    assert not any(found)
    (finding,) = given.findings()
    assert finding.rule == KERNELS_TEXTURES
    assert f"{object_:#x}, which is no texture or surface that exists, in thread (0, 0, 0)" in finding.observed
    assert "tex.2d.v4.f32.f32" in finding.observed
    if not stop:
        for wrong in (other, 0, 12345):
            fetch(given, wrong, POINT)
        fetch(given, texture(given, resource(ARRAY, made)), "suld.b.2d.b32.trap %r2, [%rd1, {0, 0}];")
        assert set(given.rules()) == {KERNELS_TEXTURES}


def test_without_checks_an_object_that_does_not_exist_is_an_error(checked: MakeDevice) -> None:
    fetch(checked(checks=0), 0, POINT, answer=ILLEGAL_ADDRESS)


@pytest.mark.parametrize("again", [False, True], ids=["freed", "used again"])
def test_an_array_that_was_freed(checked: MakeDevice, again: bool) -> None:
    given = checked(recycle="eager" if again else "never")
    made = array(given, ROWS)
    object_ = texture(given, resource(ARRAY, made))
    fetch(given, object_, POINT)
    given.client.ok("FreeArray", made)
    if again:
        assert array(given, ROWS) == made
    assert given.rules() == []
    fetch(given, object_, POINT)
    assert given.rules() == [KERNELS_NOT_FREED]


def test_memory_that_was_freed_or_never_written(checked: MakeDevice) -> None:
    given = checked(recycle="never")
    words = given.words(7, 8)
    object_ = texture(given, resource(LINEAR, words, WORDS, (8, 0, 0)))
    fetch(given, object_, FIRST)
    assert given.rules() == []
    given.client.ok("Free", words)
    fetch(given, object_, FIRST)
    assert given.rules() == [KERNELS_NOT_FREED]
    unwritten = given.client.make("Malloc", 8)
    fetch(given, texture(given, resource(LINEAR, unwritten, WORDS, (8, 0, 0))), FIRST)
    assert given.rules() == [KERNELS_NOT_FREED, KERNELS_READ_WRITTEN]


def test_a_surface_that_was_never_written(checked: MakeDevice) -> None:
    given = checked()
    made = given.client.make("MallocArray", ctypes.byref(WORDS), *[ctypes.c_size_t(4)] * 2, 2)
    object_ = surface(given, made)
    fetch(given, object_, "sust.b.2d.b32.trap [%rd1, {4, 1}], 60; suld.b.2d.b32.trap %r2, [%rd1, {4, 1}];")
    assert given.rules() == []
    fetch(given, object_, "suld.b.2d.b32.trap %r2, [%rd1, {8, 1}];")
    assert given.rules() == [KERNELS_READ_WRITTEN]


@pytest.mark.parametrize("ordered", [False, True])
def test_one_stream_writes_what_another_reads(checked: MakeDevice, ordered: bool) -> None:
    given = checked()
    made = array(given, [[1, 2], [3, 4]], WORDS)
    writer, reader = surface(given, made), texture(given, resource(ARRAY, made))
    first, second = (given.client.make("StreamCreateWithFlags", 1) for _ in range(2))
    given.client.ok("DeviceSynchronize")
    given.work("sust.b.2d.b32.trap [%rd1, {4, 1}], 60;", writer, stream=first)
    if ordered:
        event = given.client.make("EventCreate")
        given.client.ok("EventRecord", event, first)
        given.client.ok("StreamWaitEvent", second, event, 0)
    given.work("tex.2d.v4.u32.s32 {%r2, %r3, %r4, %r5}, [%rd1, {1, 1}];", reader, stream=second)
    given.client.ok("DeviceSynchronize")
    assert given.rules() == ([] if ordered else [ORDERED])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("suld.b.2d.b32.trap %r2, [%rd1, {12, 1}];", "reads 4 bytes at byte 12 of row 1 of a surface"),
        ("suld.b.2d.b32.trap %r2, [%rd1, {-4, 0}];", "reads 4 bytes at byte -4 of row 0 of a surface"),
        ("sust.b.2d.v2.b32.trap [%rd1, {8, 1}], {1, 2};", "writes 8 bytes at byte 8 of row 1 of a surface"),
        ("sust.p.2d.b32.trap [%rd1, {1, 2}], 1;", "writes 4 bytes at byte 4 of row 2 of a surface"),
        ("sured.b.add.2d.u32.trap [%rd1, {0, -1}], 1;", "writes 4 bytes at byte 0 of row -1 of a surface"),
    ],
)
def test_outside_of_a_surface(checked: MakeDevice, line: str, said: str) -> None:
    given = checked()
    object_ = surface(given, array(given, [[1, 2, 3], [4, 5, 6]], WORDS))
    fetch(given, object_, line.replace(".trap", ".clamp"))
    fetch(given, object_, line.replace(".trap", ".zero"))
    assert given.rules() == []
    fetch(given, object_, line, answer=LAUNCH_FAILURE)
    (finding,) = given.findings()
    assert finding.rule == KERNELS_INSIDE_SURFACES
    assert f"{said}, whose rows have 12 bytes" in finding.observed
