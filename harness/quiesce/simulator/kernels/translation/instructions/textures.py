"""Textures and surfaces: what is read or written where goes to the runtime, which knows the objects and their memory.

``native/kernels/texture.h`` has the same numbers. A thread's area has the coordinates first (the layer is the fourth
of them), then offsets in texels, then what is read or written.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from quiesce.simulator.kernels.ptx.function import Instruction
from quiesce.simulator.kernels.ptx.operands import (
    PREDICATE,
    TYPES,
    Address,
    Operand,
    Register,
    Symbol,
    Texel,
    Type,
    Vector,
)
from quiesce.simulator.kernels.translation.emitter import U64, Chapter, Emitter
from quiesce.simulator.kernels.translation.instructions.forms import choose, not_executed, refuse

TEXTURES: Final = Chapter("https://docs.nvidia.com/cuda/parallel-thread-execution/#texture-instructions")
SURFACES: Final = Chapter("https://docs.nvidia.com/cuda/parallel-thread-execution/#surface-instructions")

_U32: Final = TYPES["u32"]
_S32: Final = TYPES["s32"]
_LAYER, _OFFSETS, _CONTENT = 12, 16, 32
_AREA_BITS: Final = 512
_CUBE: Final = 4
_GEOMETRIES: Final = {"1d": 1, "2d": 2, "3d": 3, "cube": _CUBE}
_LAYERED: Final = 1 << 3
"""A geometry is its dimensions, or a cube, and whether there are layers of it."""
_TEXTURES: Final = {
    **_GEOMETRIES,
    **{f"a{name}": number | _LAYERED for name, number in _GEOMETRIES.items() if name != "3d"},
}
_SURFACES: Final = {name: number for name, number in _TEXTURES.items() if number & 7 != _CUBE}
_FLOATS, _HALVES, _GATHERS = 1 << 4, 1 << 5, 6
_MODES: Final = {"trap": 0, "clamp": 1, "zero": 2}
_ACTIONS: Final = {"suld": 0, "sust": 1, "add": 2, "min": 3, "max": 4, "and": 5, "or": 6}
_IS_FORMATTED, _IS_SIGNED = 1 << 15, 1 << 16
_VECTORS: Final = {"v2": 2, "v4": 4}
_CACHES: Final = frozenset({"ca", "cg", "cs", "cv", "wb", "wt"})


# -- operands ----------------------------------------------------------------------------------------------------------


def _words(i: Instruction, *known: Container[str]) -> None:
    """Raise RefusedKernel where an instruction has a word that none of these collections has."""
    for word in i.modifiers:
        if not any(word in each for each in known):
            raise not_executed(i)


def _handle(e: Emitter, i: Instruction, reference: Operand) -> str:
    """Return the number of a texture or surface; a reference of the module is a variable that has it."""
    if isinstance(reference, Register):
        return e.read(reference, U64)
    if isinstance(reference, Symbol) and not reference.offset:
        variable = e.program.module.variables.get(reference.name)
        pointer = e.pointer_to(reference) if variable and variable.is_opaque else None
        if pointer is not None:
            return e.load("i64", pointer, "align 8")
    raise refuse(i, "there is no texture or surface")


def _elements(operand: Operand) -> tuple[Operand, ...]:
    return operand.elements if isinstance(operand, Vector) else (operand,)


def _put_coordinates(e: Emitter, i: Instruction, area: str, texel: Texel, geometry: int, type_: Type) -> None:
    """Write coordinates to the area. Vectors of three are written as four, the last of which means nothing."""
    coordinates = list(texel.coordinates)
    if geometry & _LAYERED:
        e.store("i32", e.read(coordinates.pop(0), _U32), e.byte_offset(area, _LAYER), "align 4")
    count = min(3, geometry & 7)
    written = len(texel.coordinates)
    if len(coordinates) < count or (len(coordinates) > count and written != 4):
        raise refuse(i, f"'{i.opcode}' has {written} coordinates")
    for number, coordinate in enumerate(coordinates[:count]):
        e.store("i32", e.read(coordinate, type_), e.byte_offset(area, 4 * number), "align 4")


def _put_offsets(e: Emitter, i: Instruction, area: str, geometry: int, rest: tuple[Operand, ...]) -> None:
    """Write the offsets of the texels: zeros where there are none."""
    if len(rest) > 1 or (rest and (not isinstance(rest[0], Vector) or geometry & 7 == _CUBE)):
        raise not_executed(i)  # what else there may be is a depth to compare with
    offsets = _elements(rest[0]) if rest else ()
    if rest and len(offsets) < geometry & 7:
        raise refuse(i, f"'{i.opcode}' has {len(offsets)} offsets")
    for number in range(3):
        value = e.read(offsets[number], _S32) if number < min(len(offsets), geometry & 7) else "0"
        e.store("i32", value, e.byte_offset(area, _OFFSETS + 4 * number), "align 4")


def _call(e: Emitter, i: Instruction, name: str, handle: str, *arguments: str) -> None:
    """Call the runtime, which may end the kernel there."""
    place = (f"i32 {e.program.add_site(i)}", f"i32 {e.shape.linear(e)}")
    e.call("void", f"quiesce_kernel_{name}", "ptr %context", f"i64 {handle}", *arguments, *place)


# -- textures ----------------------------------------------------------------------------------------------------------


@TEXTURES.translates("tex")
def fetch(e: Emitter, i: Instruction) -> None:
    """Translate ``tex``. Arrays have one level, so that the level and the gradients choose nothing."""
    _words(i, _TEXTURES, ("v2", "v4", "base", "level", "grad"))
    geometry = _TEXTURES[choose(i, _TEXTURES)]
    more = {"base": 0, "level": 1, "grad": 2, "none": 0}[choose(i, ("base", "level", "grad"), "none")]
    if len(i.types) != 2 or i.types[1].name not in ("s32", "f32") or len(i.operands) < 2 + more:
        raise not_executed(i)
    coordinate = i.types[1]
    for operand in i.operands[2 : 2 + more]:
        for each in _elements(operand):
            e.read(each, coordinate)
    _sample(e, i, geometry, 0, coordinate, i.operands[2 + more :])


@TEXTURES.translates("tld4")
def gather(e: Emitter, i: Instruction) -> None:
    """Translate ``tld4``: one component of the four texels between which a fetch would interpolate."""
    components = {"r": 1, "g": 2, "b": 3, "a": 4}
    geometries = {name: number for name, number in _TEXTURES.items() if name not in ("1d", "3d", "a1d")}
    _words(i, geometries, components, ("v4",))
    component = components[choose(i, components)]
    if len(i.types) != 2 or i.types[1].name != "f32" or len(i.operands) < 2:
        raise not_executed(i)
    _sample(e, i, geometries[choose(i, geometries)], component, i.types[1], i.operands[2:])


def _sample(
    e: Emitter, i: Instruction, geometry: int, component: int, coordinate: Type, rest: tuple[Operand, ...]
) -> None:
    result, texel = i.types[0], i.operands[1]
    targets = _elements(i.operands[0])
    packed = result.name == "f16x2"
    if not isinstance(texel, Texel) or result.name not in ("u32", "s32", "f32", "f16", "f16x2"):
        raise not_executed(i)
    if choose(i, ("v2", "v4")) != ("v2" if packed else "v4") or len(targets) != (2 if packed else 4):
        raise not_executed(i)
    area = e.scratch(_AREA_BITS)
    _put_coordinates(e, i, area, texel, geometry, coordinate)
    _put_offsets(e, i, area, geometry, rest)
    halves = result.name.startswith("f16")
    word = geometry | (_FLOATS if coordinate.is_float else 0) | (_HALVES if halves else 0) | component << _GATHERS
    _call(e, i, "texture", _handle(e, i, texel.reference), f"ptr {area}", f"i32 {word}")
    for number, target in enumerate(targets):
        place = e.byte_offset(area, _CONTENT + (2 if halves else 4) * number * result.lanes)
        type_ = TYPES["b16"] if result.name == "f16" else TYPES["b32"]
        e.write(target, e.load(f"i{type_.bits}", place, "align 2"), type_)


# -- surfaces ----------------------------------------------------------------------------------------------------------


def _surface(e: Emitter, i: Instruction, area: str, word: int, count: int, type_: Type) -> None:
    """Translate what loads, stores and reductions have in common."""
    texel = i.operands[1 if i.opcode == "suld" else 0]
    if not isinstance(texel, Texel):
        raise refuse(i, "there are no coordinates")
    geometry = _SURFACES[choose(i, _SURFACES)]
    _put_coordinates(e, i, area, texel, geometry, _S32)
    word |= geometry | _MODES[choose(i, _MODES)] << 4 | type_.bytes << 6 | count << 20
    word |= _IS_FORMATTED if "p" in i.modifiers else 0
    word |= _IS_SIGNED if type_.is_signed else 0
    _call(e, i, "surface", _handle(e, i, texel.reference), f"ptr {area}", f"i32 {word}")


@SURFACES.translates("suld")
def load(e: Emitter, i: Instruction) -> None:
    """Translate ``suld``."""
    type_, count, elements = _content(i, 0)
    if "b" not in i.modifiers:
        raise not_executed(i)
    area = e.scratch(_AREA_BITS)
    _surface(e, i, area, _ACTIONS["suld"] << 11, count, type_)
    for number, element in enumerate(elements):
        place = e.byte_offset(area, _CONTENT + type_.bytes * number)
        value = e.load(type_.integer, place, f"align {type_.bytes}")
        e.write(element, value, type_, wider=True)


@SURFACES.translates("sust")
def store(e: Emitter, i: Instruction) -> None:
    """Translate ``sust``."""
    type_, count, elements = _content(i, 1)
    if "p" in i.modifiers and type_.bits != 32:
        raise not_executed(i)
    area = e.scratch(_AREA_BITS)
    for number, element in enumerate(elements):
        place = e.byte_offset(area, _CONTENT + type_.bytes * number)
        e.store(type_.integer, e.read(element, type_, wider=True), place, f"align {type_.bytes}")
    _surface(e, i, area, _ACTIONS["sust"] << 11, count, type_)


def _content(i: Instruction, which: int) -> tuple[Type, int, tuple[Operand, ...]]:
    """Return the type of what is loaded or stored, how many there are, and where they are."""
    _words(i, _SURFACES, _MODES, _VECTORS, _CACHES, ("b", "p"))
    choose(i, ("b", "p"))
    choose(i, _CACHES, "none")
    if len(i.types) != 1 or i.types[0].name not in ("b8", "b16", "b32", "b64") or len(i.operands) != 2:
        raise not_executed(i)
    count = _VECTORS.get(choose(i, _VECTORS, "none"), 1)
    elements = _elements(i.operands[which])
    if len(elements) != count:
        raise refuse(i, f"'{i.opcode}' names {len(elements)} registers")
    return i.types[0], count, elements


_REDUCED: Final = {"add": "u32 u64 s32", "min": "s32 u32 s64 u64", "max": "s32 u32 s64 u64", "and": "b32", "or": "b32"}


@SURFACES.translates("sured")
def reduce(e: Emitter, i: Instruction) -> None:
    """Translate ``sured``: with ``.p`` the numbers are those of the surface's format."""
    _words(i, _SURFACES, _MODES, _REDUCED, ("b", "p"))
    action = choose(i, _REDUCED)
    allowed = "b32 b64" if choose(i, ("b", "p")) == "p" else _REDUCED[action]
    if len(i.types) != 1 or i.types[0].name not in allowed.split() or len(i.operands) != 2:
        raise not_executed(i)
    type_ = i.types[0]
    area = e.scratch(_AREA_BITS)
    value = e.read(i.operands[1], type_)
    e.store(type_.integer, value, e.byte_offset(area, _CONTENT), f"align {type_.bytes}")
    _surface(e, i, area, _ACTIONS[action] << 11, 1, type_)


# -- questions ---------------------------------------------------------------------------------------------------------

_QUERIES: Final = {
    name: number
    for number, name in enumerate(
        (
            *("width", "height", "depth", "channel_data_type", "channel_order", "array_size", "normalized_coords"),
            *("force_unnormalized_coords", "filter_mode", "addr_mode_0", "addr_mode_1", "addr_mode_2"),
            *("num_mipmap_levels", "num_samples", "memory_layout"),
        )
    )
}
_OF_SURFACES: Final = ("width", "height", "depth", "channel_data_type", "channel_order", "array_size", "memory_layout")


@TEXTURES.translates("txq")
@SURFACES.translates("suq")
def query(e: Emitter, i: Instruction) -> None:
    """Translate ``txq`` and ``suq``."""
    asked = tuple(_QUERIES) if i.opcode == "txq" else _OF_SURFACES
    levels = ("level",) if i.opcode == "txq" else ()
    _words(i, asked, levels)
    number = _QUERIES[choose(i, asked)]
    if [each.name for each in i.types] != ["b32"] or len(i.operands) != 2 + ("level" in i.modifiers):
        raise not_executed(i)
    if "level" in i.modifiers:
        e.read(i.operands[2], _U32)
    address = i.operands[1]
    if not isinstance(address, Address) or address.offset or not isinstance(address.base, Register | Symbol):
        raise refuse(i, "there is no texture or surface")
    area = e.scratch(32)
    _call(e, i, "texture_query", _handle(e, i, address.base), f"ptr {area}", f"i32 {number}")
    e.write(i.operands[0], e.load("i32", area), _U32)


@TEXTURES.translates("istypep")
def is_type(e: Emitter, i: Instruction) -> None:
    """Translate ``istypep``. A sampler is part of its texture, so that there is none by itself."""
    kinds = {"texref": 1, "surfref": 2, "samplerref": 3}
    _words(i, kinds)
    if i.types or len(i.operands) != 2:
        raise not_executed(i)
    kind = e.call("i32", "quiesce_kernel_texture_kind", f"i64 {_handle(e, i, i.operands[1])}")
    e.write(i.operands[0], e.define(f"icmp eq i32 {kind}, {kinds[choose(i, kinds)]}"), PREDICATE)
