"""Reading, changing and writing memory at once: ``atom`` and ``red``; and fences, which order accesses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quiesce.kernels.ptx.function import Instruction
from quiesce.kernels.ptx.operands import Address, Operand, Sink, Vector
from quiesce.kernels.ptx.types import Type, lane_of
from quiesce.kernels.translation.emitter import Emitter
from quiesce.kernels.translation.forms import choose, refuse, require
from quiesce.kernels.translation.halves import narrow, widen
from quiesce.kernels.translation.memory import HINT, SCOPES, SPACES, VECTORS, access, space_of, tell_of_fence

_TYPES: Final = {
    "add": ("u32", "s32", "u64", "s64", "f32", "f64", "f16", "bf16", "f16x2", "bf16x2"),
    "exch": ("b32", "b64", "b128", "u32", "s32", "u64", "s64", "f32", "f64"),
    **dict.fromkeys(("min", "max"), ("u32", "s32", "u64", "s64", "f16", "bf16", "f16x2", "bf16x2")),
    **dict.fromkeys(("inc", "dec"), ("u32",)),
    **dict.fromkeys(("and", "or", "xor"), ("b32", "b64", "u32", "s32", "u64", "s64")),
    "cas": ("b16", "b32", "b64", "b128", "u32", "s32", "u64", "s64"),
}
_NAMES: Final = {"exch": "xchg", "inc": "uinc_wrap", "dec": "udec_wrap"}
_ORDERS: Final = {"relaxed": "monotonic", "acquire": "acquire", "release": "release", "acq_rel": "acq_rel"}


def atomic(e: Emitter, i: Instruction) -> None:
    """Translate ``atom``, which gives the old value, and ``red``, which does not."""
    operation = choose(i, _TYPES)
    returns = i.opcode == "atom"
    operands = 1 + returns + (2 if operation == "cas" else 1) + (HINT in i.modifiers)
    require(i, (*_TYPES, *SPACES, *SCOPES, *_ORDERS, "noftz", HINT, *VECTORS), operands=operands)
    type_ = i.types[0]
    if type_.name not in _TYPES[operation]:
        raise refuse(i, f"'{i.name}' is not executed")
    target: Operand = i.operands[0] if returns else Sink()
    address, *sources = i.operands[int(returns) :]
    if not isinstance(address, Address):
        raise refuse(i, "there is no address")
    order = _ORDERS[choose(i, _ORDERS, "relaxed")]
    count = VECTORS.get(choose(i, VECTORS, "one"), 1)
    if e.program.checks and not {"release", "acq_rel"}.isdisjoint(i.modifiers):
        tell_of_fence(e, i)
    pointer = access(e, i, address, space_of(i), type_.bytes * count, "atomic")
    if count == 1:
        values = [e.read(source, type_) for source in sources[: 2 if operation == "cas" else 1]]
        e.write(target, _change(e, operation, pointer, values, type_, order), type_)
        return
    _change_vector(e, i, operation, (target, sources[0]), pointer, count, order)


def _change_vector(
    e: Emitter, i: Instruction, operation: str, operands: tuple[Operand, Operand], pointer: str, count: int, order: str
) -> None:
    """Change each element by itself: a device does not change all of them at once either."""
    target, source = operands
    type_ = i.types[0]
    if not isinstance(source, Vector) or len(source.elements) != count or not type_.is_float:
        raise refuse(i, f"'{i.name}' is not executed")
    targets = target.elements if isinstance(target, Vector) else (Sink(),) * count
    if len(targets) != count:
        raise refuse(i, f"'{i.name}' names {len(targets)} registers")
    olds = []
    for number, element in enumerate(source.elements):
        place = e.byte_offset(pointer, type_.bytes * number)
        olds.append(_change(e, operation, place, [e.read(element, type_)], type_, order))
    for element, old in zip(targets, olds, strict=True):
        e.write(element, old, type_)


def _change(e: Emitter, operation: str, pointer: str, values: list[str], type_: Type, order: str) -> str:
    """Return the old value of what is changed."""
    if operation == "cas":
        return _compare_and_swap(e, pointer, values, type_, order)
    if type_.is_float and (type_.bits == 16 or type_.lanes == 2):
        return _loop(e, pointer, type_, lambda before: _combine_halves(e, operation, type_, before, values[0]))
    return _read_modify_write(e, operation, pointer, values[0], type_, order)


def _compare_and_swap(e: Emitter, pointer: str, values: list[str], type_: Type, order: str) -> str:
    expected, wanted = (f"{type_.integer} {value}" for value in values)
    failed = {"acq_rel": "acquire", "release": "monotonic"}.get(order, order)
    both = e.define(f"cmpxchg ptr {pointer}, {expected}, {wanted} {order} {failed}, align {type_.bytes}")
    return e.define(f"extractvalue {{{type_.integer}, i1}} {both}, 0")


def _read_modify_write(e: Emitter, operation: str, pointer: str, value: str, type_: Type, order: str) -> str:
    name = _NAMES.get(operation, operation)
    if operation in ("min", "max") and not type_.is_signed:
        name = f"u{name}"
    if type_.is_float and operation == "add":
        number = e.as_float(value, type_)
        old = e.define(f"atomicrmw fadd ptr {pointer}, {type_.floating} {number} {order}, align {type_.bytes}")
        return e.define(f"bitcast {type_.floating} {old} to {type_.integer}")
    return e.define(f"atomicrmw {name} ptr {pointer}, {type_.integer} {value} {order}, align {type_.bytes}")


def _loop(e: Emitter, pointer: str, type_: Type, compute: Callable[[str], str]) -> str:
    """Return the old value after a change that no instruction of the processor makes."""
    before, again, done = e.new_label(), e.new_label(), e.new_label()
    first = e.define(f"load atomic {type_.integer}, ptr {pointer} monotonic, align {type_.bytes}")
    e.emit(f"br label %{before}")
    e.place(before)
    e.emit(f"br label %{again}")
    e.place(again)
    old, seen = f"%old.{again}", f"%seen.{again}"
    e.emit(f"{old} = phi {type_.integer} [{first}, %{before}], [{seen}, %{again}]")
    new = compute(old)
    integer = type_.integer
    both = e.define(f"cmpxchg ptr {pointer}, {integer} {old}, {integer} {new} acq_rel acquire, align {type_.bytes}")
    e.emit(f"{seen} = extractvalue {{{integer}, i1}} {both}, 0")
    e.emit(f"br i1 {e.define(f'extractvalue {{{integer}, i1}} {both}, 1')}, label %{done}, label %{again}")
    e.place(done)
    return old


def _combine_halves(e: Emitter, operation: str, type_: Type, before: str, value: str) -> str:
    if type_.lanes == 1:
        first, second = (f"float {widen(e, each, type_)}" for each in (before, value))
        if operation == "add":
            return narrow(e, e.define(f"fadd {first}, {second.removeprefix('float ')}"), type_)
        combined = e.pure("float", f"llvm.{operation}imumnum.f32", first, second)
        return narrow(e, combined, type_)
    lane = lane_of(type_)
    whole = "0"
    for number in range(2):
        parts = [e.cast(e.define(f"lshr i32 {each}, {16 * number}"), 32, 16) for each in (before, value)]
        moved = e.define(f"shl i32 {e.cast(_combine_halves(e, operation, lane, *parts), 16, 32)}, {16 * number}")
        whole = e.define(f"or i32 {whole}, {moved}")
    return whole


_FENCES: Final = {"sc": "seq_cst", "acq_rel": "acq_rel", "acquire": "acquire", "release": "release"}


def fence(e: Emitter, i: Instruction) -> None:
    """Translate ``fence`` and ``membar``. Copies that are asynchronous on a device are done at once here."""
    proxies = ("proxy", "async", "alias", "async.global", "global", "shared::cta", "shared::cluster", "mbarrier_init")
    require(i, (*_FENCES, *SCOPES, "gl", *proxies), operands=0, types=0)
    order = _FENCES[choose(i, _FENCES, "acq_rel" if i.opcode == "fence" else "sc")]
    if e.program.checks:
        tell_of_fence(e, i)
    e.emit(f"fence {order}")


HANDLERS = {"atom": atomic, "red": atomic, "fence": fence, "membar": fence}
