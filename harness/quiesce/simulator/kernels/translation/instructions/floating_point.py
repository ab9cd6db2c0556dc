"""Arithmetic of floats and doubles: rounded as the instruction says, nothing contracted, subnormals kept or flushed."""

from __future__ import annotations

from typing import Final

from quiesce.simulator.kernels.ptx.function import Instruction
from quiesce.simulator.kernels.ptx.operands import TYPES, Operand, Type
from quiesce.simulator.kernels.translation.emitter import Chapter, Emitter
from quiesce.simulator.kernels.translation.instructions.forms import choose, refuse, require, require_type
from quiesce.simulator.kernels.translation.subnormals import never_subnormal

FLOATING_POINT: Final = Chapter("https://docs.nvidia.com/cuda/parallel-thread-execution/#floating-point-instructions")

NEAREST: Final = "rn"
DIRECTED: Final = ("rz", "rm", "rp")
MODES: Final = {"rn": 0, "rz": 1, "rm": 2, "rp": 3, "rna": 4}
"""As ``enum kernel_rounding`` in ``simulator/native/kernels/formats.h`` numbers them."""
TO_INTEGER: Final = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
"""Rounding to whole numbers, by LLVM's names."""


_ROUNDINGS = (NEAREST, *DIRECTED)
_FLOATS = ("f32", "f64")
_EXPONENT: Final = 0x7F800000
_SIGN: Final = 0x80000000


def flush(e: Emitter, i: Instruction, value: str, type_: Type) -> str:
    """Return a zero of the same sign for a subnormal float, if the instruction says ``.ftz``."""
    if "ftz" not in i.modifiers or type_.name != "f32":
        return value
    bits = e.define(f"bitcast float {value} to i32")
    is_small = e.define(f"icmp eq i32 {e.define(f'and i32 {bits}, {_EXPONENT}')}, 0")
    zero = e.define(f"and i32 {bits}, {_SIGN}")
    return e.as_float(e.select(is_small, "i32", zero, bits), type_)


def flush_source(e: Emitter, i: Instruction, operand: Operand, value: str, type_: Type) -> str:
    """Return the number in an operand, flushed if the instruction says ``.ftz`` and the number may be subnormal."""
    return value if never_subnormal(operand, e.flushed) else flush(e, i, value, type_)


def saturate(e: Emitter, i: Instruction, value: str, floating: str) -> str:
    """Return a number between 0 and 1, 0 for NaN, if the instruction says ``.sat``."""
    if "sat" not in i.modifiers:
        return value
    positive = e.select(e.define(f"fcmp ogt {floating} {value}, 0.0"), floating, value, "0.0")
    return e.select(e.define(f"fcmp olt {floating} {positive}, 1.0"), floating, positive, "1.0")


def _sources(e: Emitter, i: Instruction, type_: Type) -> list[str]:
    return [flush_source(e, i, operand, e.read_float(operand, type_), type_) for operand in i.operands[1:]]


def _finish(e: Emitter, i: Instruction, value: str, type_: Type) -> None:
    value = saturate(e, i, flush(e, i, value, type_), type_.floating)
    e.write_float(i.operands[0], value, type_)


def _float_type(i: Instruction) -> Type:
    type_ = require_type(i, _FLOATS)
    if type_.bits == 64 and ("sat" in i.modifiers or ("ftz" in i.modifiers and "approx" not in i.modifiers)):
        raise refuse(i, f"'{i.name}' has no such form for doubles")
    return type_


@FLOATING_POINT.translates("add", "sub", "mul")
def basic(e: Emitter, i: Instruction) -> None:
    """Translate ``add``, ``sub`` and ``mul``."""
    require(i, (*_ROUNDINGS, "ftz", "sat"))
    type_ = _float_type(i)
    first, second = _sources(e, i, type_)
    rounding = choose(i, _ROUNDINGS, NEAREST)
    floating = type_.floating
    if rounding == NEAREST:
        value = e.define(f"f{i.opcode} {floating} {first}, {second}")
    else:
        name = f"quiesce_kernel_{i.opcode}_{rounding}_{type_.name}"
        value = e.pure(floating, name, f"{floating} {first}", f"{floating} {second}")
    _finish(e, i, value, type_)


@FLOATING_POINT.translates("div")
def divide(e: Emitter, i: Instruction) -> None:
    """Translate ``div``. The approximate forms are exact here."""
    require(i, (*_ROUNDINGS, "approx", "full", "ftz"))
    type_ = _float_type(i)
    first, second = _sources(e, i, type_)
    rounding = choose(i, (*_ROUNDINGS, "approx", "full"), NEAREST)
    floating = type_.floating
    if rounding in DIRECTED:
        name = f"quiesce_kernel_div_{rounding}_{type_.name}"
        value = e.pure(floating, name, f"{floating} {first}", f"{floating} {second}")
    else:
        value = e.define(f"fdiv {floating} {first}, {second}")
    _finish(e, i, value, type_)


@FLOATING_POINT.translates("fma", "mad")
def fused_multiply_add(e: Emitter, i: Instruction) -> None:
    """Translate ``fma``, and ``mad``, which is the same on every device of today."""
    require(i, (*_ROUNDINGS, "ftz", "sat"), operands=4)
    type_ = _float_type(i)
    floating = type_.floating
    sources = [f"{floating} {value}" for value in _sources(e, i, type_)]
    rounding = choose(i, _ROUNDINGS, NEAREST)
    if rounding == NEAREST:
        value = e.pure(floating, f"llvm.fma.{type_.name}", *sources)
    else:
        value = e.pure(floating, f"quiesce_kernel_fma_{rounding}_{type_.name}", *sources)
    _finish(e, i, value, type_)


@FLOATING_POINT.translates("neg")
def negate(e: Emitter, i: Instruction) -> None:
    """Translate ``neg``."""
    require(i, ("ftz",), operands=2)
    type_ = _float_type(i)
    (value,) = _sources(e, i, type_)
    e.write_float(i.operands[0], e.define(f"fneg {type_.floating} {value}"), type_)


@FLOATING_POINT.translates("abs")
def absolute(e: Emitter, i: Instruction) -> None:
    """Translate ``abs``."""
    require(i, ("ftz",), operands=2)
    type_ = _float_type(i)
    floating = type_.floating
    (value,) = _sources(e, i, type_)
    e.write_float(i.operands[0], e.pure(floating, f"llvm.fabs.{type_.name}", f"{floating} {value}"), type_)


@FLOATING_POINT.translates("min", "max")
def least_or_greatest(e: Emitter, i: Instruction) -> None:
    """Translate ``min`` and ``max``: NaN gives way to a number unless ``.NaN`` is asked for; -0 is below 0."""
    require(i, ("ftz", "NaN", "xorsign", "abs"), operands=(3, 4))
    type_ = _float_type(i)
    if type_.bits == 64 and (i.modifiers or len(i.operands) == 4):
        raise refuse(i, f"'{i.name}' is not executed: doubles have no such form")
    floating = type_.floating
    sources = _sources(e, i, type_)
    if "abs" in i.modifiers:
        signs = [e.define(f"bitcast {floating} {value} to {type_.integer}") for value in sources]
        sources = [e.pure(floating, f"llvm.fabs.{type_.name}", f"{floating} {value}") for value in sources]
    name = {"min": "minimum", "max": "maximum"}[i.opcode] + ("" if "NaN" in i.modifiers else "num")
    value = sources[0]
    for other in sources[1:]:
        value = e.pure(floating, f"llvm.{name}.{type_.name}", f"{floating} {value}", f"{floating} {other}")
    if "xorsign" in i.modifiers:
        if "abs" not in i.modifiers or len(sources) != 2:
            raise refuse(i, "'.xorsign' stands without '.abs'")
        sign = e.as_float(e.define(f"xor {type_.integer} {signs[0]}, {signs[1]}"), type_)
        value = e.pure(floating, f"llvm.copysign.{type_.name}", f"{floating} {value}", f"{floating} {sign}")
    e.write_float(i.operands[0], value, type_)


@FLOATING_POINT.translates("rcp")
def reciprocal(e: Emitter, i: Instruction) -> None:
    """Translate ``rcp``. The approximate form for floats is exact here."""
    require(i, (*_ROUNDINGS, "approx", "ftz"), operands=2)
    type_ = _float_type(i)
    rounding = choose(i, (*_ROUNDINGS, "approx"))
    floating = type_.floating
    (value,) = _sources(e, i, type_)
    if rounding in DIRECTED:
        result = e.pure(floating, f"quiesce_kernel_rcp_{rounding}_{type_.name}", f"{floating} {value}")
    else:
        result = e.define(f"fdiv {floating} 1.0, {value}")
    if type_.bits == 64 and rounding == "approx":
        result = _high_word(e, result)
    _finish(e, i, result, type_)


def _high_word(e: Emitter, value: str) -> str:
    """Return a double whose low 32 bits are zero, as the approximate forms for doubles give it."""
    bits = e.define(f"bitcast double {value} to i64")
    return e.as_float(e.define(f"and i64 {bits}, {0xFFFFFFFF00000000}"), TYPES["f64"])


@FLOATING_POINT.translates("sqrt")
def square_root(e: Emitter, i: Instruction) -> None:
    """Translate ``sqrt``. The approximate form is exact here."""
    require(i, (*_ROUNDINGS, "approx", "ftz"), operands=2)
    type_ = _float_type(i)
    rounding = choose(i, (*_ROUNDINGS, "approx"))
    floating = type_.floating
    (value,) = _sources(e, i, type_)
    if rounding in DIRECTED:
        result = e.pure(floating, f"quiesce_kernel_sqrt_{rounding}_{type_.name}", f"{floating} {value}")
    else:
        result = e.pure(floating, f"llvm.sqrt.{type_.name}", f"{floating} {value}")
    e.write_float(i.operands[0], result, type_)


@FLOATING_POINT.translates("rsqrt")
def reciprocal_square_root(e: Emitter, i: Instruction) -> None:
    """Translate ``rsqrt``: one over the root, computed in doubles."""
    require(i, ("approx", "ftz"), operands=2)
    type_ = _float_type(i)
    (value,) = _sources(e, i, type_)
    wide = e.define(f"fpext float {value} to double") if type_.bits == 32 else value
    root = e.pure("double", "llvm.sqrt.f64", f"double {wide}")
    result = e.define(f"fdiv double 1.0, {root}")
    if type_.bits == 32:
        result = e.define(f"fptrunc double {result} to float")
    elif "ftz" in i.modifiers:
        result = _high_word(e, result)
    e.write_float(i.operands[0], result, type_)


_FUNCTIONS = {"sin": "sinf", "cos": "cosf", "ex2": "exp2f", "lg2": "log2f", "tanh": "tanhf"}


@FLOATING_POINT.translates(*_FUNCTIONS)
def approximate(e: Emitter, i: Instruction) -> None:
    """Translate ``sin``, ``cos``, ``ex2``, ``lg2`` and ``tanh``: the C library's results, closer than a device's."""
    require(i, ("approx", "ftz"), operands=2)
    type_ = require_type(i, ("f32",))
    (value,) = _sources(e, i, type_)
    _finish(e, i, e.pure("float", _FUNCTIONS[i.opcode], f"float {value}"), type_)


@FLOATING_POINT.translates("copysign")
def copy_sign(e: Emitter, i: Instruction) -> None:
    """Translate ``copysign``: the sign of the first source, the rest of the second."""
    require(i)
    type_ = require_type(i, _FLOATS)
    floating = type_.floating
    sign, size = (e.read_float(operand, type_) for operand in i.operands[1:])
    value = e.pure(floating, f"llvm.copysign.{type_.name}", f"{floating} {size}", f"{floating} {sign}")
    e.write_float(i.operands[0], value, type_)


_CLASSES = {"notanumber": 3, "infinite": 0x204, "finite": 0x1F8, "number": 0x3FC, "normal": 0x168, "subnormal": 0x90}
"""What is asked for, by LLVM's numbers for classes of floating-point numbers."""


@FLOATING_POINT.translates("testp")
def test_property(e: Emitter, i: Instruction) -> None:
    """Translate ``testp``."""
    require(i, _CLASSES, operands=2)
    type_ = require_type(i, _FLOATS)
    value = e.read_float(i.operands[1], type_)
    name = f"llvm.is.fpclass.{type_.name}"
    e.program.declare(f"declare i1 @{name}({type_.floating}, i32 immarg)")
    wanted = _CLASSES[choose(i, _CLASSES)]
    result = e.define(f"call i1 @{name}({type_.floating} {value}, i32 {wanted})")
    e.write(i.operands[0], result, TYPES["pred"])
