"""``.ftz`` of every operation against the same operation between flushes that are written out in PTX."""

from __future__ import annotations

import random
from typing import Final

import pytest
from tests.kernels.programs import HEADER, evaluate_all

from quiesce.simulator.kernels.ptx.module import Module
from quiesce.simulator.kernels.translation.program import Program, Variant
from quiesce.simulator.kernels.translation.subnormals import flushed_registers

_COUNT: Final = 1_500
_SIGN: Final = 0x80000000
_INFINITY: Final = 0x7F800000
_SPECIAL: Final = (0, 1, 0x400000, 0x7FFFFF, 0x800000, 0x800001, 0xFFFFFF, 0x1000000, 0x3F800000, 0x3F7FFFFF, _INFINITY)
_NANS: Final = (0x7FC00000, 0x7F800001, 0x7FFFFFFF)
_SOURCES: Final = ("%a", "%b", "%c")
_FLUSHED: Final = ("%r1", "%r2", "%r3")
_OPERATIONS: Final = {
    **{name: f"{name}FTZ.f32 D, A, B;" for name in ("add", "sub", "mul", "add.rz", "mul.rp", "add.sat", "min", "max")},
    **{name: f"{name}FTZ.f32 D, A, B;" for name in ("min.NaN", "div.rn", "div.rz", "div.full", "max.xorsign.abs")},
    **{name: f"{name}FTZ.f32 D, A, B, C;" for name in ("fma.rn", "fma.rm", "fma.rn.sat")},
    **{name: f"{name}FTZ.f32 D, A;" for name in ("neg", "abs", "rcp.rn", "rcp.rm", "sqrt.rn", "sqrt.rp")},
    **{name: f"{name}FTZ.f32 D, A;" for name in ("rcp.approx", "sqrt.approx", "rsqrt.approx")},
    **{name: f"{name}FTZ.f32 D, A;" for name in ("sin.approx", "cos.approx", "ex2.approx", "lg2.approx")},
    "min of three": "minFTZ.f32 D, A, B, C;",
    "setp.lt": "setp.ltFTZ.f32 %p1, A, B;\nselp.f32 D, 0f3F800000, 0f00000000, %p1;",
    "setp.equ": "setp.equFTZ.f32 %p1, A, B;\nselp.f32 D, 0f3F800000, 0f00000000, %p1;",
    "setp with a constant": "setp.neFTZ.f32 %p1, A, 0f00000000;\nselp.f32 D, 0f3F800000, 0f00000000, %p1;",
    "set": "set.gtFTZ.f32.f32 D, A, B;",
    "slct": "slctFTZ.f32.f32 D, 0f3F800000, 0f00000000, A;",
    "cvt.rpi to integer": "cvt.rpiFTZ.s32.f32 %r7, A;\ncvt.rn.f32.s32 D, %r7;",
    "cvt.rmi": "cvt.rmiFTZ.f32.f32 D, A;",
    "cvt.sat": "cvt.satFTZ.f32.f32 D, A;",
    "cvt to double": "cvtFTZ.f64.f32 %rd7, A;\ncvt.rn.f32.f64 D, %rd7;",
}


def _numbers(seed: int, count: int) -> list[int]:
    """Return bits of floats: every kind of them, with most near the least normal number."""
    generator = random.Random(seed)
    special = [*_SPECIAL, *(each | _SIGN for each in _SPECIAL), *_NANS]
    found = []
    for _ in range(count):
        exponent = generator.choice((0, 0, 1, 2, 20, 63, 64, 107, 126, 127, 128, 190, 253, 254))
        ordinary = generator.getrandbits(1) << 31 | exponent << 23 | generator.getrandbits(23)
        found.append(generator.choice(special) if generator.random() < 0.3 else ordinary)
    return found


def _flushed(target: str, source: str) -> str:
    """Return instructions that flush the float in a register, as whole numbers."""
    return (
        f"and.b32 %r6, {source}, {_INFINITY};\nsetp.eq.u32 %p0, %r6, 0;\n"
        f"and.b32 %r6, {source}, {_SIGN};\nselp.b32 {target}, %r6, {source}, %p0;\n"
    )


def _filled(operation: str, target: str, sources: str, ftz: bool) -> str:
    filled = operation.replace("FTZ", ".ftz" if ftz else "")
    for name, register in zip("ABCD", (*sources.split(), target), strict=True):
        filled = filled.replace(f" {name},", f" {register},").replace(f" {name};", f" {register};")
    return f"{filled}\n"


def _is_nan(bits: int) -> bool:
    return bits & ~_SIGN > _INFINITY


@pytest.mark.parametrize("name", _OPERATIONS)
def test_flushes_that_are_left_out_change_nothing(name: str) -> None:
    """Each operation works on numbers from memory, and on numbers that were flushed before."""
    operation = _OPERATIONS[name]
    sources = [("u32", _numbers(seed, _COUNT)) for seed in range(3)]
    written_out = "".join(map(_flushed, _FLUSHED, _SOURCES))
    expected, expected_again = evaluate_all(
        f"{written_out}{_filled(operation, '%r4', '%r1 %r2 %r3', ftz=False)}{_flushed('%x', '%r4')}"
        f"{_flushed('%r1', '%x')}{_filled(operation, '%r4', '%r1 %r2 %r3', ftz=False)}{_flushed('%y', '%r4')}",
        sources,
        ["u32", "u32"],
    )
    known = "".join(
        f"mul.ftz.f32 {target}, {source}, 0f3F800000;\n" for target, source in zip(_FLUSHED, _SOURCES, strict=True)
    )
    found, found_again, found_known = evaluate_all(
        f"{_filled(operation, '%x', '%a %b %c', ftz=True)}{_filled(operation, '%y', '%x %b %c', ftz=True)}"
        f"{known}{_filled(operation, '%z', '%r1 %r2 %r3', ftz=True)}",
        sources,
        ["u32"] * 3,
    )
    assert len(expected) == _COUNT
    for of, wanted in ((found, expected), (found_again, expected_again), (found_known, expected)):
        pairs = zip(of, wanted, strict=True)
        assert [each for each in pairs if each[0] != each[1] and not all(map(_is_nan, each))] == []


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("ld.global.f32 %f0, [%rd0];\nadd.ftz.f32 %f1, %f0, %f0;", "%f1"),
        ("ld.global.f32 %f0, [%rd0];\nadd.f32 %f1, %f0, %f0;\nadd.ftz.f32 %f2, %f1, %f1;", "%f2"),
        ("add.ftz.f32 %f0, %f1, %f2;\nadd.f32 %f0, %f1, %f2;", ""),
        ("add.ftz.f32 %f0, %f1, %f2;\nmov.f32 %f3, %f0;\nmov.f32 %f4, %f5;", "%f0 %f3"),
        ("add.ftz.f32 %f0, %f1, %f2;\nmov.f32 %f3, 0f00000001;\nmov.f32 %f4, 0f80000000;", "%f0 %f4"),
        ("add.ftz.f32 %f0, %f1, %f2;\nmov.f32 %f0, %f3;\nmov.f32 %f3, %f0;\nmov.f32 %f3, 0f00000001;", ""),
        ("add.ftz.f32 %f0, %f1, %f2;\nmov.f32 %f0, %f3;\nmov.f32 %f3, %f0;", "%f0 %f3"),
        ("add.ftz.f32 %f0, %f1, %f2;\nselp.f32 %f3, %f0, 0f3F800000, %p0;\nselp.f32 %f4, %f0, %f1, %p0;", "%f0 %f3"),
        ("add.ftz.f32 %f0, %f1, %f2;\ncvt.rn.f32.u32 %f3, %r0;\ncvt.rn.f32.f64 %f4, %rd0;", "%f0 %f3"),
        ("add.ftz.f32 %f0, %f1, %f2;\nmov.b64 {%f0, %f3}, %rd0;", ""),
        ("cvt.rn.f32.u32 %f3, %r0;\nadd.f32 %f0, %f3, %f3;", ""),
    ],
)
def test_registers_that_never_hold_a_subnormal(lines: str, expected: str) -> None:
    declared = ".reg .f32 %f<6>;\n.reg .b32 %r<2>;\n.reg .b64 %rd<2>;\n.reg .pred %p<2>;\n"
    text = f"{HEADER}.visible .entry k(.param .u64 p)\n{{\n{declared}{lines}\nret;\n}}\n"
    function = Program(Module(text), Variant()).parse("k")
    assert sorted(register.name for register in flushed_registers(function)) == expected.split()


def test_what_a_function_is_passed_may_be_subnormal() -> None:
    text = (
        f"{HEADER}.func (.reg .f32 %r) f(.reg .f32 %a) {{\nadd.ftz.f32 %r, %a, %a;\nadd.ftz.f32 %a, %r, %r;\nret;\n}}\n"
    )
    function = Program(Module(text), Variant()).parse("f")
    assert [register.name for register in flushed_registers(function)] == ["%r"]
