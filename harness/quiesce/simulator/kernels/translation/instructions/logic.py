"""Logic, shifts and bit fields. Shifts beyond a register's width give zeros, or copies of the sign."""

from __future__ import annotations

from typing import Final

from quiesce.simulator.kernels.ptx.function import Instruction
from quiesce.simulator.kernels.ptx.operands import PREDICATE, TYPES, Integer, Operand, Pair
from quiesce.simulator.kernels.translation.emitter import Chapter, Emitter
from quiesce.simulator.kernels.translation.instructions.forms import UNTYPED, choose, refuse, require, require_type

LOGIC: Final = Chapter("https://docs.nvidia.com/cuda/parallel-thread-execution/#logic-and-shift-instructions")

_B32 = TYPES["b32"]
_U32 = TYPES["u32"]
_LOGIC = UNTYPED | {"pred"}
_SHIFTED = UNTYPED | {"u16", "u32", "u64", "s16", "s32", "s64"}


@LOGIC.translates("and", "or", "xor")
def logic(e: Emitter, i: Instruction) -> None:
    """Translate ``and``, ``or`` and ``xor``."""
    require(i)
    type_ = require_type(i, _LOGIC)
    first, second = e.read_all(i.operands[1:], type_)
    e.write(i.operands[0], e.define(f"{i.opcode} {type_.integer} {first}, {second}"), type_)


@LOGIC.translates("not")
def invert(e: Emitter, i: Instruction) -> None:
    """Translate ``not``."""
    require(i, operands=2)
    type_ = require_type(i, _LOGIC)
    e.write(i.operands[0], e.define(f"xor {type_.integer} {e.read(i.operands[1], type_)}, -1"), type_)


@LOGIC.translates("cnot")
def logical_not(e: Emitter, i: Instruction) -> None:
    """Translate ``cnot``: one where the source is zero."""
    require(i, operands=2)
    type_ = require_type(i, UNTYPED)
    is_zero = e.define(f"icmp eq {type_.integer} {e.read(i.operands[1], type_)}, 0")
    e.write(i.operands[0], e.cast(is_zero, 1, type_.bits), type_)


@LOGIC.translates("lop3")
def lookup(e: Emitter, i: Instruction) -> None:
    """Translate ``lop3``: each bit of the result is looked up in a table of eight."""
    combines = choose(i, ("and", "or"), "none")
    require(i, ("and", "or"), operands=5 + (combines != "none"))
    type_ = require_type(i, ("b32",))
    table = i.operands[4]
    if not isinstance(table, Integer):
        raise refuse(i, "the table of 'lop3' is no literal")
    sources = e.read_all(i.operands[1:4], type_)
    inverted = [e.define(f"xor i32 {source}, -1") for source in sources]
    result = "0"
    for row in range(8):
        if table.value >> row & 1:
            chosen = [sources[n] if row >> (2 - n) & 1 else inverted[n] for n in range(3)]
            both = e.define(f"and i32 {chosen[0]}, {chosen[1]}")
            result = e.define(f"or i32 {result}, {e.define(f'and i32 {both}, {chosen[2]}')}")
    target: Operand = i.operands[0]
    if combines != "none":  # whether any bit is set, with a predicate
        if not isinstance(target, Pair):
            raise refuse(i, "'lop3' has no predicate as a destination")
        is_set = e.define(f"icmp ne i32 {result}, 0")
        e.write(target.second, e.define(f"{combines} i1 {is_set}, {e.read(i.operands[5], PREDICATE)}"), PREDICATE)
        target = target.first
    e.write(target, result, type_)


@LOGIC.translates("shl", "shr")
def shift(e: Emitter, i: Instruction) -> None:
    """Translate ``shl`` and ``shr``."""
    require(i)
    type_ = require_type(i, _SHIFTED if i.opcode == "shr" else UNTYPED)
    bits = type_.bits
    value, amount = e.read(i.operands[1], type_), e.read(i.operands[2], _U32)
    is_beyond = e.define(f"icmp ugt i32 {amount}, {bits - 1}")
    safe = e.cast(e.select(is_beyond, "i32", str(bits - 1), amount), 32, bits)
    operation = "shl" if i.opcode == "shl" else "ashr" if type_.is_signed else "lshr"
    shifted = e.define(f"{operation} {type_.integer} {value}, {safe}")
    if operation != "ashr":
        shifted = e.select(is_beyond, type_.integer, "0", shifted)
    e.write(i.operands[0], shifted, type_)


@LOGIC.translates("shf")
def funnel_shift(e: Emitter, i: Instruction) -> None:
    """Translate ``shf``: 32 bits out of two registers."""
    require(i, ("l", "r", "wrap", "clamp"), operands=4)
    type_ = require_type(i, ("b32",))
    low, high = e.read_all(i.operands[1:3], type_)
    amount = e.read(i.operands[3], _U32)
    if choose(i, ("wrap", "clamp")) == "wrap":
        amount = e.define(f"and i32 {amount}, 31")
    else:
        amount = e.pure("i32", "llvm.umin.i32", f"i32 {amount}", "i32 32")
    both = e.define(f"or i64 {e.define(f'shl i64 {e.cast(high, 32, 64)}, 32')}, {e.cast(low, 32, 64)}")
    amount = e.cast(amount, 32, 64)
    if choose(i, ("l", "r")) == "l":
        amount = e.define(f"sub i64 32, {amount}")
    e.write(i.operands[0], e.cast(e.define(f"lshr i64 {both}, {amount}"), 64, 32), type_)


def _byte(e: Emitter, i: Instruction, which: int) -> str:
    """Return a place or a length of a bit field: its low eight bits."""
    return e.define(f"and i32 {e.read(i.operands[which], _U32)}, 255")


def _start(e: Emitter, i: Instruction, which: int, bits: int) -> str:
    """Return where a bit field starts. In 64 bits a device looks at the whole number, though the ISA says otherwise."""
    return e.read(i.operands[which], _U32) if bits == 64 else _byte(e, i, which)


def _field_mask(e: Emitter, length: str, bits: int) -> str:
    """Return ones in as many low bits; all where the length is the width or more."""
    is_whole = e.define(f"icmp uge i32 {length}, {bits}")
    safe = e.cast(e.select(is_whole, "i32", "0", length), 32, bits)
    mask = e.define(f"sub i{bits} {e.define(f'shl i{bits} 1, {safe}')}, 1")
    return e.select(is_whole, f"i{bits}", "-1", mask)


@LOGIC.translates("bfe")
def extract_field(e: Emitter, i: Instruction) -> None:
    """Translate ``bfe``. A signed field that reaches beyond the register is filled with the register's sign."""
    require(i, operands=4)
    type_ = require_type(i, ("u32", "s32", "u64", "s64"))
    bits, integer = type_.bits, type_.integer
    value, start, length = e.read(i.operands[1], type_), _start(e, i, 2, bits), _byte(e, i, 3)
    is_beyond = e.define(f"icmp uge i32 {start}, {bits}")
    safe_start = e.cast(e.select(is_beyond, "i32", str(bits - 1), start), 32, bits)
    operation = "ashr" if type_.is_signed else "lshr"
    moved = e.define(f"{operation} {integer} {value}, {safe_start}")
    if not type_.is_signed:
        moved = e.select(is_beyond, integer, "0", moved)
        result = e.define(f"and {integer} {moved}, {_field_mask(e, length, bits)}")
    else:
        is_whole = e.define(f"icmp uge i32 {length}, {bits}")
        is_empty = e.define(f"icmp eq i32 {length}, 0")
        unused = e.define(f"sub i32 {bits}, {length}")
        raised_by = e.cast(e.select(e.define(f"or i1 {is_whole}, {is_empty}"), "i32", "0", unused), 32, bits)
        raised = e.define(f"shl {integer} {moved}, {raised_by}")
        result = e.select(is_empty, integer, "0", e.define(f"ashr {integer} {raised}, {raised_by}"))
    e.write(i.operands[0], result, type_)


@LOGIC.translates("bfi")
def insert_field(e: Emitter, i: Instruction) -> None:
    """Translate ``bfi``."""
    require(i, operands=5)
    type_ = require_type(i, ("b32", "b64"))
    bits, integer = type_.bits, type_.integer
    field, base = e.read_all(i.operands[1:3], type_)
    start, length = _start(e, i, 3, bits), _byte(e, i, 4)
    is_beyond = e.define(f"icmp uge i32 {start}, {bits}")
    safe_start = e.cast(e.select(is_beyond, "i32", "0", start), 32, bits)
    mask = e.define(f"shl {integer} {_field_mask(e, length, bits)}, {safe_start}")
    placed = e.define(f"and {integer} {e.define(f'shl {integer} {field}, {safe_start}')}, {mask}")
    kept = e.define(f"and {integer} {base}, {e.define(f'xor {integer} {mask}, -1')}")
    e.write(i.operands[0], e.select(is_beyond, integer, base, e.define(f"or {integer} {kept}, {placed}")), type_)


@LOGIC.translates("bmsk")
def mask_field(e: Emitter, i: Instruction) -> None:
    """Translate ``bmsk``: ones from a place on."""
    require(i, ("clamp", "wrap"))
    type_ = require_type(i, ("b32",))
    start, length = e.read_all(i.operands[1:], _U32)
    if choose(i, ("clamp", "wrap")) == "wrap":
        start, length = (e.define(f"and i32 {value}, 31") for value in (start, length))
    is_beyond = e.define(f"icmp ugt i32 {start}, 31")
    mask = e.define(f"shl i32 {_field_mask(e, length, 32)}, {e.select(is_beyond, 'i32', '0', start)}")
    e.write(i.operands[0], e.select(is_beyond, "i32", "0", mask), type_)


@LOGIC.translates("szext")
def extend_sign(e: Emitter, i: Instruction) -> None:
    """Translate ``szext``: the low bits of a register, filled up with their sign or with zeros."""
    require(i, ("clamp", "wrap"))
    type_ = require_type(i, ("u32", "s32"))
    value, length = e.read(i.operands[1], type_), e.read(i.operands[2], _U32)
    if choose(i, ("clamp", "wrap")) == "wrap":
        length = e.define(f"and i32 {length}, 31")
    is_whole = e.define(f"icmp ugt i32 {length}, 31")
    is_empty = e.define(f"icmp eq i32 {length}, 0")
    unused = e.define(f"sub i32 32, {length}")
    amount = e.select(e.define(f"or i1 {is_whole}, {is_empty}"), "i32", "0", unused)
    raised = e.define(f"shl i32 {value}, {amount}")
    filled = e.define(f"{'ashr' if type_.is_signed else 'lshr'} i32 {raised}, {amount}")
    e.write(i.operands[0], e.select(is_empty, "i32", "0", filled), type_)


_PERMUTATIONS = {
    "f4e": ((3, 2, 1, 0), (4, 3, 2, 1), (5, 4, 3, 2), (6, 5, 4, 3)),
    "b4e": ((5, 6, 7, 0), (6, 7, 0, 1), (7, 0, 1, 2), (0, 1, 2, 3)),
    "rc8": ((0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)),
    "ecl": ((3, 2, 1, 0), (3, 2, 1, 1), (3, 2, 2, 2), (3, 3, 3, 3)),
    "ecr": ((0, 0, 0, 0), (1, 1, 1, 0), (2, 2, 1, 0), (3, 2, 1, 0)),
    "rc16": ((1, 0, 1, 0), (3, 2, 3, 2), (1, 0, 1, 0), (3, 2, 3, 2)),
}
"""For each mode and selector the bytes of the result, highest first."""


@LOGIC.translates("prmt")
def permute(e: Emitter, i: Instruction) -> None:
    """Translate ``prmt``: four bytes chosen out of two registers."""
    require(i, _PERMUTATIONS, operands=4)
    type_ = require_type(i, ("b32",))
    low, high, selector = e.read_all(i.operands[1:], type_)
    mode = choose(i, _PERMUTATIONS, "index")
    if mode != "index":
        selector = _selector_of_mode(e, mode, selector)
    both = e.define(f"or i64 {e.define(f'shl i64 {e.cast(high, 32, 64)}, 32')}, {e.cast(low, 32, 64)}")
    result = "0"
    for number in range(4):
        nibble = e.define(f"lshr i32 {selector}, {4 * number}")
        place = e.cast(e.define(f"shl i32 {e.define(f'and i32 {nibble}, 7')}, 3"), 32, 64)
        byte = e.cast(e.define(f"lshr i64 {both}, {place}"), 64, 8)
        if mode == "index":  # the nibble's highest bit asks for copies of the byte's sign
            wants_sign = e.cast(e.define(f"lshr i32 {nibble}, 3"), 32, 1)
            byte = e.select(wants_sign, "i8", e.define(f"ashr i8 {byte}, 7"), byte)
        moved = e.define(f"shl i32 {e.cast(byte, 8, 32)}, {8 * number}")
        result = e.define(f"or i32 {result}, {moved}")
    e.write(i.operands[0], result, type_)


def _selector_of_mode(e: Emitter, mode: str, selector: str) -> str:
    table = [sum(byte << 4 * (3 - place) for place, byte in enumerate(row)) for row in _PERMUTATIONS[mode]]
    which = e.define(f"and i32 {selector}, 3")
    result = str(table[3])
    for number in range(3):
        result = e.select(e.define(f"icmp eq i32 {which}, {number}"), "i32", str(table[number]), result)
    return result


@LOGIC.translates("fns")
def find_nth_set(e: Emitter, i: Instruction) -> None:
    """Translate ``fns``: the place of the n-th bit that is set, up or down from a base; or else all ones."""
    require(i, operands=4)
    type_ = require_type(i, ("b32",))
    mask, base, offset = e.read_all(i.operands[1:], _B32)
    place = e.pure("i32", "quiesce_kernel_fns", f"i32 {mask}", f"i32 {base}", f"i32 {offset}")
    e.write(i.operands[0], place, type_)
