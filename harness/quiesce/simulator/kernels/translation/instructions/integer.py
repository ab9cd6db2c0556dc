"""Integer arithmetic: of one number, of two or four in a register, and with a carry from one instruction to the next.

Nothing here traps, and results that PTX leaves open are the same on every machine.
"""

from __future__ import annotations

from typing import Final

from quiesce.simulator.kernels.ptx.function import Instruction
from quiesce.simulator.kernels.ptx.operands import PREDICATE, TYPES, Type
from quiesce.simulator.kernels.translation.data_flow import CARRY
from quiesce.simulator.kernels.translation.emitter import Chapter, Emitter
from quiesce.simulator.kernels.translation.instructions.forms import (
    INTEGERS,
    SIGNED,
    UNTYPED,
    choose,
    refuse,
    require,
    require_type,
)

INTEGER: Final = Chapter("https://docs.nvidia.com/cuda/parallel-thread-execution/#integer-arithmetic-instructions")
PACKED: Final = Chapter("https://docs.nvidia.com/cuda/parallel-thread-execution/#integer-arithmetic-instructions-add")


@PACKED.translates("add", "min", "max")
def arithmetic(e: Emitter, i: Instruction) -> None:
    """Translate ``add``, ``min`` and ``max`` of both halves."""
    require(i, ("relu",) if i.opcode != "add" else ())
    type_ = require_type(i, ("u16x2", "s16x2"))
    first, second = (e.define(f"bitcast i32 {value} to <2 x i16>") for value in e.read_all(i.operands[1:], type_))
    if i.opcode == "add":
        value = e.define(f"add <2 x i16> {first}, {second}")
    else:
        sign = "s" if type_.is_signed else "u"
        value = _call(e, f"llvm.{sign}{i.opcode}.v2i16", first, second)
    if "relu" in i.modifiers:
        require_type(i, ("s16x2",))
        value = _call(e, "llvm.smax.v2i16", value, "zeroinitializer")
    e.write(i.operands[0], e.define(f"bitcast <2 x i16> {value} to i32"), type_)


def _call(e: Emitter, name: str, first: str, second: str) -> str:
    e.program.declare(f"declare <2 x i16> @{name}(<2 x i16>, <2 x i16>)")
    return e.define(f"call <2 x i16> @{name}(<2 x i16> {first}, <2 x i16> {second})")


_TYPES = ("u32", "s32", "u64", "s64")
_WITH_CARRY = frozenset({"addc", "subc", "madc"})


@INTEGER.translates("addc", "subc")
def add_with_carry(e: Emitter, i: Instruction, product: str | None = None) -> None:
    """Translate ``add.cc``, ``addc``, ``sub.cc``, ``subc``, and with a product ``mad.cc`` and ``madc``."""
    require(i, ("cc",) if product is None else ("cc", "lo", "hi"), operands=3 if product is None else 4)
    type_ = require_type(i, _TYPES)
    bits = type_.bits
    first = e.read(i.operands[1], type_) if product is None else product
    second = e.read(i.operands[-1], type_)
    operation = "sub" if i.opcode.startswith("sub") else "add"
    # One more bit takes what is carried, or borrowed.
    wide = f"i{bits + 1}"
    total = e.define(f"{operation} {wide} {e.cast(first, bits, bits + 1)}, {e.cast(second, bits, bits + 1)}")
    if i.opcode in _WITH_CARRY:
        total = e.define(f"{operation} {wide} {total}, {e.cast(e.read(CARRY, PREDICATE), 1, bits + 1)}")
    if "cc" in i.modifiers:
        e.write(CARRY, e.cast(e.define(f"lshr {wide} {total}, {bits}"), bits + 1, 1), PREDICATE)
    e.write(i.operands[0], e.cast(total, bits + 1, bits), type_)


_U32 = TYPES["u32"]
_S32 = TYPES["s32"]


def _sign(type_: Type) -> str:
    return "s" if type_.is_signed else "u"


@INTEGER.translates("add", "sub")
def add_or_subtract(e: Emitter, i: Instruction) -> None:
    """Translate ``add`` and ``sub``, also those that begin a chain with a carry."""
    if "cc" in i.modifiers:
        add_with_carry(e, i)
        return
    type_ = require_type(i, INTEGERS)
    require(i, ("sat",))
    first, second = e.read_all(i.operands[1:], type_)
    if "sat" in i.modifiers:
        require_type(i, ("s32",))
        value = e.pure("i32", f"llvm.s{i.opcode}.sat.i32", f"i32 {first}", f"i32 {second}")
    else:
        value = e.define(f"{i.opcode} {type_.integer} {first}, {second}")
    e.write(i.operands[0], value, type_)


def product(e: Emitter, i: Instruction) -> tuple[str, Type]:
    """Return the product of the first two sources, and its type: ``.wide`` has twice the bits."""
    if len(i.operands) < 3:
        raise refuse(i, f"'{i.opcode}' has {len(i.operands)} operands")
    type_ = require_type(i, INTEGERS)
    form = choose(i, ("lo", "hi", "wide"))
    first, second = e.read_all(i.operands[1:3], type_)
    if form == "lo":
        return e.define(f"mul {type_.integer} {first}, {second}"), type_
    if form == "wide" and type_.bits == 64:
        raise refuse(i, "a product has more than 64 bits")
    bits = 2 * type_.bits
    factors = [e.cast(value, type_.bits, bits, type_.is_signed) for value in (first, second)]
    whole = e.define(f"mul i{bits} {factors[0]}, {factors[1]}")
    if form == "wide":
        return whole, TYPES[f"{type_.name[0]}{bits}"]
    return e.cast(e.define(f"lshr i{bits} {whole}, {type_.bits}"), bits, type_.bits), type_


@INTEGER.translates("mul")
def multiply(e: Emitter, i: Instruction) -> None:
    """Translate ``mul``."""
    require(i, ("lo", "hi", "wide"))
    value, type_ = product(e, i)
    e.write(i.operands[0], value, type_)


@INTEGER.translates("mad")
def multiply_add(e: Emitter, i: Instruction) -> None:
    """Translate ``mad``, also one that begins a chain with a carry."""
    if "cc" in i.modifiers:
        add_with_carry(e, i, product(e, i)[0])
        return
    require(i, ("lo", "hi", "wide", "sat"), operands=4)
    value, type_ = product(e, i)
    addend = e.read(i.operands[3], type_)
    if "sat" in i.modifiers:
        require_type(i, ("s32",))
        total = e.pure("i32", "llvm.sadd.sat.i32", f"i32 {value}", f"i32 {addend}")
    else:
        total = e.define(f"add {type_.integer} {value}, {addend}")
    e.write(i.operands[0], total, type_)


@INTEGER.translates("madc")
def multiply_add_with_carry(e: Emitter, i: Instruction) -> None:
    """Translate ``madc``."""
    require_type(i, ("u32", "s32", "u64", "s64"))
    add_with_carry(e, i, product(e, i)[0])


@INTEGER.translates("mul24", "mad24")
def multiply_24(e: Emitter, i: Instruction) -> None:
    """Translate ``mul24`` and ``mad24``: the product of 24 bits each."""
    is_sum = i.opcode == "mad24"
    require(i, ("lo", "hi", "sat"), operands=4 if is_sum else 3)
    type_ = require_type(i, ("u32", "s32"))
    shift = "ashr" if type_.is_signed else "lshr"
    factors = [
        e.cast(e.define(f"{shift} i32 {e.define(f'shl i32 {value}, 8')}, 8"), 32, 64, type_.is_signed)
        for value in e.read_all(i.operands[1:3], type_)
    ]
    value = e.define(f"mul i64 {factors[0]}, {factors[1]}")
    if choose(i, ("lo", "hi")) == "hi":
        value = e.define(f"lshr i64 {value}, 16")
    value = e.cast(value, 64, 32)
    if is_sum:
        addend = e.read(i.operands[3], type_)
        if "sat" in i.modifiers:
            value = e.pure("i32", "llvm.sadd.sat.i32", f"i32 {value}", f"i32 {addend}")
        else:
            value = e.define(f"add i32 {value}, {addend}")
    e.write(i.operands[0], value, type_)


@INTEGER.translates("div", "rem")
def divide(e: Emitter, i: Instruction) -> None:
    """Translate ``div`` and ``rem``. x86 traps at a zero and at the least number by -1; a device does not.

    By zero the ISA leaves both open; an H200 answers ones in all bits.
    """
    require(i)
    type_ = require_type(i, INTEGERS)
    integer = type_.integer
    dividend, divisor = e.read_all(i.operands[1:], type_)
    by_zero = e.define(f"icmp eq {integer} {divisor}, 0")
    safe = e.select(by_zero, integer, "1", divisor)
    if type_.is_signed:
        by_minus_one = e.define(f"icmp eq {integer} {divisor}, -1")
        safe = e.select(by_minus_one, integer, "1", safe)
    value = e.define(f"{_sign(type_)}{i.opcode} {integer} {dividend}, {safe}")
    if type_.is_signed:
        opposite = e.define(f"sub {integer} 0, {dividend}") if i.opcode == "div" else "0"
        value = e.select(by_minus_one, integer, opposite, value)
    value = e.select(by_zero, integer, "-1", value)
    e.write(i.operands[0], value, type_)


@INTEGER.translates("neg")
def negate(e: Emitter, i: Instruction) -> None:
    """Translate ``neg``."""
    require(i, operands=2)
    type_ = require_type(i, SIGNED)
    e.write(i.operands[0], e.define(f"sub {type_.integer} 0, {e.read(i.operands[1], type_)}"), type_)


@INTEGER.translates("abs")
def absolute(e: Emitter, i: Instruction) -> None:
    """Translate ``abs``; the least number stays as it is."""
    require(i, operands=2)
    type_ = require_type(i, SIGNED)
    value = e.read(i.operands[1], type_)
    e.write(
        i.operands[0], e.pure(type_.integer, f"llvm.abs.{type_.integer}", f"{type_.integer} {value}", "i1 0"), type_
    )


@INTEGER.translates("min", "max")
def least_or_greatest(e: Emitter, i: Instruction) -> None:
    """Translate ``min`` and ``max``."""
    require(i, ("relu",))
    type_ = require_type(i, INTEGERS)
    integer = type_.integer
    first, second = e.read_all(i.operands[1:], type_)
    value = e.pure(integer, f"llvm.{_sign(type_)}{i.opcode}.{integer}", f"{integer} {first}", f"{integer} {second}")
    if "relu" in i.modifiers:
        require_type(i, ("s32",))
        value = e.pure(integer, f"llvm.smax.{integer}", f"{integer} {value}", f"{integer} 0")
    e.write(i.operands[0], value, type_)


@INTEGER.translates("sad")
def sum_of_difference(e: Emitter, i: Instruction) -> None:
    """Translate ``sad``: the distance of two numbers, and a third one."""
    require(i, operands=4)
    type_ = require_type(i, INTEGERS)
    integer = type_.integer
    first, second, addend = e.read_all(i.operands[1:], type_)
    greater = e.define(f"icmp {_sign(type_)}gt {integer} {first}, {second}")
    forwards = e.define(f"sub {integer} {first}, {second}")
    backwards = e.define(f"sub {integer} {second}, {first}")
    distance = e.select(greater, integer, forwards, backwards)
    e.write(i.operands[0], e.define(f"add {integer} {addend}, {distance}"), type_)


@INTEGER.translates("popc", "clz")
def count(e: Emitter, i: Instruction) -> None:
    """Translate ``popc`` and ``clz``."""
    require(i, operands=2)
    type_ = require_type(i, ("b32", "b64"))
    name, extra = ("ctpop", ()) if i.opcode == "popc" else ("ctlz", ("i1 0",))
    value = e.read(i.operands[1], type_)
    counted = e.pure(type_.integer, f"llvm.{name}.{type_.integer}", f"{type_.integer} {value}", *extra)
    e.write(i.operands[0], e.cast(counted, type_.bits, 32), _U32)


@INTEGER.translates("bfind")
def find_leading(e: Emitter, i: Instruction) -> None:
    """Translate ``bfind``: the highest bit that differs from the sign; all ones where there is none."""
    require(i, ("shiftamt",), operands=2)
    type_ = require_type(i, ("u32", "s32", "u64", "s64"))
    integer = type_.integer
    value = e.read(i.operands[1], type_)
    if type_.is_signed:
        value = e.define(f"xor {integer} {value}, {e.define(f'ashr {integer} {value}, {type_.bits - 1}')}")
    leading = e.cast(e.pure(integer, f"llvm.ctlz.{integer}", f"{integer} {value}", "i1 0"), type_.bits, 32)
    place = leading if "shiftamt" in i.modifiers else e.define(f"sub i32 {type_.bits - 1}, {leading}")
    nothing = e.define(f"icmp eq {integer} {value}, 0")
    e.write(i.operands[0], e.select(nothing, "i32", "-1", place), _U32)


@INTEGER.translates("brev")
def reverse(e: Emitter, i: Instruction) -> None:
    """Translate ``brev``."""
    require(i, operands=2)
    type_ = require_type(i, UNTYPED)
    value = e.pure(type_.integer, f"llvm.bitreverse.{type_.integer}", f"{type_.integer} {e.read(i.operands[1], type_)}")
    e.write(i.operands[0], value, type_)


@INTEGER.translates("dp4a", "dp2a")
def dot_product(e: Emitter, i: Instruction) -> None:
    """Translate ``dp4a`` and ``dp2a``: bytes times bytes, or halves of a word times bytes."""
    count_ = 4 if i.opcode == "dp4a" else 2
    require(i, ("lo", "hi") if count_ == 2 else (), operands=4, types=2)
    first_type, second_type = require_type(i, ("u32", "s32"), 0), require_type(i, ("u32", "s32"), 1)
    first, second, total = e.read_all(i.operands[1:], _S32)
    skipped = 2 if count_ == 2 and choose(i, ("lo", "hi")) == "hi" else 0
    for number in range(count_):
        left = part(e, first, number * 32 // count_, 32 // count_, first_type.is_signed)
        right = part(e, second, 8 * (number + skipped), 8, second_type.is_signed)
        total = e.define(f"add i32 {total}, {e.define(f'mul i32 {left}, {right}')}")
    e.write(i.operands[0], total, _S32)


def part(e: Emitter, value: str, start: int, bits: int, signed: bool) -> str:
    """Return so many bits of a word from one on, as a word with their sign."""
    raised = e.define(f"shl i32 {value}, {32 - start - bits}")
    return e.define(f"{'ashr' if signed else 'lshr'} i32 {raised}, {32 - bits}")
