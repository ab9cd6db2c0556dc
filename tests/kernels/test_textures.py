"""Textures and surfaces (PTX ISA, "Texture Instructions", "Surface Instructions").

What a fetch reads is compared with the CUDA C Programming Guide, "Texture Fetching", written down here with fractions.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.kernels import textures
from tests.kernels.programs import plain_kernel
from tests.kernels.textures import BORDER, CLAMP, MIRROR, WRAP, Texture

FLOATS = np.arange(1, 13, dtype="f4").reshape(3, 4, 1) ** 2


def fetch(
    texture: Texture, instruction: str, points: Sequence[Sequence[float]], kind: str = "f4"
) -> np.ndarray[Any, Any]:
    """Return four channels for each point; the instruction has its coordinates in ``%c0`` to ``%c3``."""
    given = np.zeros((len(points), 4), kind)
    given[:, : len(points[0])] = points
    found = np.zeros((len(points), 4), "u4")
    body = f"""
.reg .b32 %t, %c<4>, %v<4>, %z; .reg .b64 %from, %to, %texture; .reg .b16 %h<4>;
mov.u32 %t, %tid.x; mov.u32 %z, 0;
ld.param.u64 %texture, [p0]; ld.param.u64 %from, [p1]; ld.param.u64 %to, [p2];
mad.wide.u32 %from, %t, 16, %from; mad.wide.u32 %to, %t, 16, %to;
ld.global.v4.b32 {{%c0, %c1, %c2, %c3}}, [%from];
{instruction}
st.global.v4.b32 [%to], {{%v0, %v1, %v2, %v3}};
"""
    plain_kernel(body, 3).launch(1, len(points), np.uint64(texture.handle), given, found)
    return found


def tex(geometry: str, coordinates: str, more: str = "", types: str = "f32.f32") -> str:
    """Return a fetch of four channels."""
    return f"tex.{geometry}.v4.{types} {{%v0, %v1, %v2, %v3}}, [%texture, {{{coordinates}}}]{more};"


# -- the document ------------------------------------------------------------------------------------------------------


def index(number: int, size: int, address: int) -> int | None:
    """Return the texel that a number leads to."""
    if 0 <= number < size:
        return number
    if address == BORDER:
        return None
    if address == WRAP:
        return number % size
    if address == MIRROR:
        return number % (2 * size) if number % (2 * size) < size else 2 * size - 1 - number % (2 * size)
    return min(max(number, 0), size - 1)


def place(coordinate: float, size: int, texture: Texture) -> Fraction:
    """Return a coordinate in texels."""
    x = Fraction(coordinate)
    if not texture.normalized:
        return x
    if texture.address == WRAP:
        x -= math.floor(x)
    if texture.address == MIRROR:
        x = x - math.floor(x) if math.floor(x) % 2 == 0 else 1 - (x - math.floor(x))
    return x * size


def texel(texture: Texture, at: Sequence[int]) -> list[Fraction]:
    """Return the channels at a place, by width, height, depth."""
    sizes = texture.content.shape[:-1][::-1]
    found = [index(number, size, texture.address) for number, size in zip(at, sizes, strict=True)]
    inside = [each for each in found if each is not None]
    if len(inside) < len(found):
        return list(map(Fraction, texture.border))
    channels = [Fraction(float(each)) for each in texture.content[tuple(inside[::-1])]]
    return channels + [Fraction(0)] * (3 - len(channels)) + [Fraction(1)] * (len(channels) < 4)


def expected(texture: Texture, point: Sequence[float]) -> list[float]:
    """Return the four channels of a fetch."""
    sizes = texture.content.shape[:-1][::-1]
    places = [place(each, size, texture) for each, size in zip(point, sizes, strict=True)]
    if not texture.filters:
        return [float(each) for each in texel(texture, [math.floor(each) for each in places])]
    firsts = [math.floor(each - Fraction(1, 2)) for each in places]
    shares = [
        Fraction(math.floor((each - Fraction(1, 2) - first) * 256 + Fraction(1, 2)), 256)
        for each, first in zip(places, firsts, strict=True)
    ]
    sums = [Fraction(0)] * 4
    for corner in itertools.product((0, 1), repeat=len(places)):
        weight = math.prod(share if second else 1 - share for share, second in zip(shares, corner, strict=True))
        read = texel(texture, [first + second for first, second in zip(firsts, corner, strict=True)])
        sums = [total + weight * each for total, each in zip(sums, read, strict=True)]
    return [float(np.float32(float(each))) for each in sums]


POINTS = [-3.5, -1.0, -0.26, 0.0, 0.1, 0.25, 0.499, 0.5, 0.501, 0.75, 0.99, 1.0, 1.25, 1.5, 2.0, 2.6, 3.75, 7.3]


@pytest.mark.parametrize("address", [WRAP, CLAMP, MIRROR, BORDER])
@pytest.mark.parametrize("filters", [False, True])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_normalised_coordinates(address: int, filters: bool, axes: int) -> None:
    content = {1: FLOATS[0], 2: FLOATS, 3: np.stack([FLOATS, -FLOATS, FLOATS / 7])}[axes]
    texture = Texture(content, address, filters, normalized=True, border=(5, 6, 7, 8))
    points = [
        point[:axes] for point in itertools.islice(itertools.product(POINTS, POINTS[::3], POINTS[1::5]), 0, None, 3)
    ]
    found = fetch(texture, tex(f"{axes}d", ", ".join(["%c0", "%c1", "%c2", "%z"][: 4 if axes == 3 else axes])), points)
    np.testing.assert_array_equal(found.view("f4"), np.array([expected(texture, point) for point in points], "f4"))


@pytest.mark.parametrize("address", [CLAMP, BORDER])
@pytest.mark.parametrize("filters", [False, True])
def test_coordinates_in_texels(address: int, filters: bool) -> None:
    texture = Texture(FLOATS, address, filters)
    points = list(itertools.product(POINTS, POINTS))
    found = fetch(texture, tex("2d", "%c0, %c1"), points)
    np.testing.assert_array_equal(found.view("f4"), np.array([expected(texture, point) for point in points], "f4"))


@pytest.mark.parametrize("strange", [math.nan, math.inf, -math.inf, 3e38, -3e38])
@pytest.mark.parametrize("address", [WRAP, CLAMP, MIRROR, BORDER])
def test_coordinates_that_lead_nowhere_read_some_texel(strange: float, address: int) -> None:
    texture = Texture(FLOATS, address, filters=True, normalized=True)
    found = fetch(texture, tex("2d", "%c0, %c1"), [(strange, 0.5), (0.5, strange)]).view("f4")
    assert ((found >= 0) & (found <= 144)).all()


# -- formats -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["u1", "i1", "u2", "i2", "u4", "i4", "f2", "f4"])
@pytest.mark.parametrize("channels", [1, 2, 4])
def test_elements_are_read_as_they_are(kind: str, channels: int) -> None:
    content = np.arange(-3, 5, dtype="i8").astype(kind).reshape(-1, channels)
    types = "f32" if kind[0] == "f" else "u32" if kind[0] == "u" else "s32"
    points = [(number,) for number in range(len(content))]
    found = fetch(Texture(content), tex("1d", "%c0", types=f"{types}.s32"), points, "i4")
    wide = content.astype({"f": "f4", "u": "u4", "i": "i4"}[kind[0]])
    np.testing.assert_array_equal(found[:, :channels], wide.view("u4"))
    one = 0x3F800000 if kind[0] == "f" else 1
    assert [list(row[channels:]) for row in found] == [([0, 0, 0, one])[channels:]] * len(points)


@pytest.mark.parametrize(
    ("kind", "values", "wanted"),
    [
        ("u1", [0, 1, 255], [0, 1 / 255, 1]),
        ("i1", [-128, -127, 127, 5], [-1, -1, 1, 5 / 127]),
        ("u2", [0, 65535, 7], [0, 1, 7 / 65535]),
        ("i2", [-32768, 32767, 9], [-1, 1, 9 / 32767]),
    ],
)
def test_integers_as_numbers_up_to_one(kind: str, values: list[int], wanted: list[float]) -> None:
    texture = Texture(np.array(values, kind).reshape(-1, 1), scales=True)
    found = fetch(texture, tex("1d", "%c0", types="f32.s32"), [(number,) for number in range(len(values))], "i4")
    assert found.view("f4")[:, 0].tolist() == np.array(wanted, "f4").tolist()
    halves = Texture(np.array(values, kind).reshape(-1, 1), scales=True, filters=True)
    (first,) = fetch(halves, tex("1d", "%c0"), [(1.0,)]).view("f4")[:, 0].tolist()
    assert first == np.float32((np.float64(np.float32(wanted[0])) + np.float64(np.float32(wanted[1]))) / 2)


def test_bytes_of_srgb() -> None:
    content = np.array([[0, 10, 11, 200], [255, 128, 64, 200]], "u1")
    found = fetch(Texture(content, scales=True, is_srgb=True), tex("1d", "%c0"), [(0.5,), (1.5,)]).view("f4")
    values = content[:, :3] / 255
    wanted = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    np.testing.assert_allclose(found[:, :3], wanted, rtol=1e-7)
    assert (found[:, 3] == np.float32(200 / 255)).all()


def test_results_with_sixteen_bits() -> None:
    texture = Texture(np.array([[1.0, 2.5, -3.0, 1 / 3]], "f4"))
    move = "mov.b32 %v0, {%h0, %h1};\nmov.b32 %v1, {%h2, %h3};\nmov.b32 %v2, 0;\nmov.b32 %v3, 0;"
    four = f"tex.1d.v4.f16.f32 {{%h0, %h1, %h2, %h3}}, [%texture, {{%c0}}];\n{move}"
    two = "tex.1d.v2.f16x2.f32 {%v0, %v1}, [%texture, %c0];\nmov.b32 %v2, 0;\nmov.b32 %v3, 0;"
    for instruction in (four, two):
        (found,) = fetch(texture, instruction, [(0.5,)])
        assert struct.unpack("<4e", found[:2].tobytes()) == (1.0, 2.5, -3.0, float(np.float16(1 / 3)))


# -- geometries --------------------------------------------------------------------------------------------------------


def test_layers_are_chosen_by_number() -> None:
    layers = np.stack([FLOATS, FLOATS + 1000, FLOATS + 2000])
    points = [(0, 1.5, 2.5), (1, 1.5, 2.5), (2, 0.5, 0.5), (9, 0.5, 0.5)]
    given = [(struct.unpack("<f", struct.pack("<I", layer))[0], x, y) for layer, x, y in points]
    found = fetch(Texture(layers, layered=True), tex("a2d", "%c0, %c1, %c2, %z"), given).view("f4")
    assert found[:, 0].tolist() == [float(layers[min(layer, 2), int(y), int(x), 0]) for layer, x, y in points]
    rows = Texture(np.ascontiguousarray(layers[:, :1]), layered=True)
    found = fetch(rows, tex("a1d", "%c0, %c1"), [each[:2] for each in given]).view("f4")
    assert found[:, 0].tolist() == [float(layers[min(layer, 2), 0, int(x), 0]) for layer, x, _ in points]


@pytest.mark.parametrize("cubes", [1, 2])
def test_a_cube_is_read_by_direction(cubes: int) -> None:
    faces = np.arange(24 * cubes, dtype="f4").reshape(6 * cubes, 2, 2, 1)
    # the direction, its face, and where on it by "the face is selected": s and t from 0 to 1
    directions = [
        ((1, 0.5, -0.5), 0, (0.75, 0.25)),
        ((-2, 1, 1), 1, (0.75, 0.25)),
        ((0.5, 1, 0.5), 2, (0.75, 0.75)),
        ((0.5, -1, 0.5), 3, (0.75, 0.25)),
        ((-0.5, 0.5, 1), 4, (0.25, 0.25)),
        ((-0.5, -0.5, -1), 5, (0.75, 0.75)),
    ]
    last = cubes - 1
    layer = struct.unpack("<f", struct.pack("<I", last))[0]
    points = [(layer, *direction) if last else direction for direction, _, _ in directions]
    which = tex("acube", "%c0, %c1, %c2, %c3") if last else tex("cube", "%c0, %c1, %c2, %z")
    found = fetch(Texture(faces, layered=True), which, points).view("f4")
    assert found[:, 0].tolist() == [
        float(faces[6 * last + face, int(2 * t), int(2 * s), 0]) for _, face, (s, t) in directions
    ]


def test_linear_memory_reads_zeros_outside() -> None:
    texture = Texture(np.array([[5, 6], [7, 8]], "u4"), linear=True)
    found = fetch(texture, tex("1d", "%c0", types="u32.s32"), [(-1,), (0,), (1,), (2,)], "i4")
    assert found.tolist() == [[0, 0, 0, 0], [5, 6, 0, 1], [7, 8, 0, 1], [0, 0, 0, 0]]


def test_levels_gradients_offsets_and_samplers() -> None:
    texture = Texture(FLOATS)
    for instruction in (
        tex("2d", "%c0, %c1").replace("tex.", "tex.base."),
        tex("2d", "%c0, %c1", ", %c2").replace("tex.", "tex.level."),
        tex("2d", "%c0, %c1", ", {%c2, %c2}, {%c3, %c3}").replace("tex.", "tex.grad."),
        tex("2d", "%c0, %c1").replace("[%texture, ", "[%texture, %texture, "),
    ):
        assert fetch(texture, instruction, [(1.5, 2.5, 3.0, 0.0)]).view("f4")[0, 0] == FLOATS[2, 1, 0]
    moved = tex("2d", "%c0, %c1", ", {1, -1}")
    assert fetch(texture, moved, [(1.5, 2.5)]).view("f4")[0, 0] == FLOATS[1, 2, 0]


def test_four_texels_are_gathered_counter_clockwise() -> None:
    content = np.stack([FLOATS[..., 0], -FLOATS[..., 0]], -1)
    for component, sign in (("r", 1), ("g", -1)):
        line = f"tld4.{component}.2d.v4.f32.f32 {{%v0, %v1, %v2, %v3}}, [%texture, {{%c0, %c1}}];"
        (found,) = fetch(Texture(content), line, [(2.0, 1.0)]).view("f4").tolist()
        rows = sign * FLOATS[..., 0]
        assert found == [rows[1, 1], rows[1, 2], rows[0, 2], rows[0, 1]]


# -- questions, and how surfaces are called ----------------------------------------------------------------------------


def test_questions_reach_the_runtime() -> None:
    line = (
        "txq.width.b32 %v0, [%texture]; txq.level.height.b32 %v1, [%texture], %z;\n"
        "suq.memory_layout.b32 %v2, [%texture];\n.reg .pred %p, %q; istypep.texref %p, %texture;\n"
        "istypep.surfref %q, %texture; selp.u32 %v3, 1, 0, %p; @%q add.u32 %v3, %v3, 2;"
    )
    assert fetch(Texture(FLOATS), line, [(0.0,)]).tolist() == [[100, 101, 114, 1]]


@pytest.mark.parametrize(
    ("line", "coordinates", "content", "word"),
    [
        ("suld.b.2d.v2.b32.trap {%v0, %v1}, [%texture, {%c0, %c1}]", (1, 2), b"", 2 | 4 << 6 | 2 << 20),
        ("suld.b.1d.b8.clamp %h0, [%texture, {%c0}]", (1,), b"", 1 | 1 << 4 | 1 << 6 | 1 << 20),
        (
            "suld.b.a2d.v4.b16.zero {%h0, %h1, %h2, %h3}, [%texture, {%c3, %c0, %c1, %z}]",
            (1, 2),
            b"",
            10 | 2 << 4 | 2 << 6 | 4 << 20,
        ),
        (
            "sust.b.3d.v2.b64.trap [%texture, {%c0, %c1, %c2, %z}], {%texture, %texture}",
            (1, 2, 3),
            b"handle",
            3 | 8 << 6 | 1 << 11 | 2 << 20,
        ),
        (
            "sust.p.2d.v4.b32.clamp [%texture, {%c0, %c1}], {%c0, %c1, %c2, %c3}",
            (1, 2),
            struct.pack("<4I", 1, 2, 3, 4),
            2 | 1 << 4 | 4 << 6 | 1 << 11 | 1 << 15 | 4 << 20,
        ),
        (
            "sured.b.add.1d.u32.trap [%texture, {%c0}], %c3",
            (1,),
            struct.pack("<I", 4),
            1 | 4 << 6 | 2 << 11 | 1 << 20,
        ),
        (
            "sured.b.min.2d.s32.clamp [%texture, {%c0, %c1}], %c3",
            (1, 2),
            struct.pack("<I", 4),
            2 | 1 << 4 | 4 << 6 | 3 << 11 | 1 << 16 | 1 << 20,
        ),
    ],
)
def test_surfaces_reach_the_runtime(line: str, coordinates: tuple[int, ...], content: bytes, word: int) -> None:
    texture = Texture(FLOATS)
    textures.surface_calls.clear()
    clear = "".join(f"mov.b32 %v{number}, 0;\nmov.b16 %h{number}, 0;\n" for number in range(4))
    store = "cvt.u32.u16 %z, %h0; or.b32 %v0, %v0, %z;"
    ((first, *_),) = fetch(texture, f"{clear}{line};\n{store}", [(1, 2, 3, 4)], "i4").tolist()
    ((handle, area, passed),) = textures.surface_calls
    assert (handle, passed) == (texture.handle, word)
    assert struct.unpack("<3i", area[:12])[: len(coordinates)] == coordinates
    if ".a2d" in line:
        assert struct.unpack("<i", area[12:16]) == (4,)
    wanted = struct.pack("<Q", handle) * 2 if content == b"handle" else content
    assert area[32 : 32 + len(wanted)] == wanted
    if line.startswith("suld"):
        assert first == {"b32": 0x04030201, "b8": 1, "b16": 0x0201}[line.partition(" ")[0].split(".")[-2]]
