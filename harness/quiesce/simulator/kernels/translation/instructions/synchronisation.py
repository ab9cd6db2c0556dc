"""Operations that threads take part in together, and those by which they meet in memory.

Barriers, votes, shuffles, matches and reductions of a warp or block; ``atom`` and ``red``; fences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quiesce.simulator.kernels.ptx.function import Instruction
from quiesce.simulator.kernels.ptx.operands import PREDICATE, TYPES, Address, Operand, Pair, Sink, Type, Vector, lane_of
from quiesce.simulator.kernels.translation.emitter import Chapter, Emitter, Suspension, WarpOperands
from quiesce.simulator.kernels.translation.instructions.forms import choose, refuse, require, require_type
from quiesce.simulator.kernels.translation.instructions.half_precision import for_both, narrow, widen
from quiesce.simulator.kernels.translation.instructions.memory import (
    HINT,
    SCOPES,
    SPACES,
    VECTORS,
    access,
    space_of,
    tell_of_fence,
)
from quiesce.simulator.kernels.translation.spin_loops import STEP
from quiesce.simulator.kernels.translation.unlocked_atomics import ORDER

SYNCHRONISATION: Final = Chapter(
    "https://docs.nvidia.com/cuda/parallel-thread-execution/#parallel-synchronization-and-communication-instructions"
)

_B32: Final = TYPES["b32"]
_U32: Final = TYPES["u32"]
BARRIER: Final = {"sync": 1, "arrive": 5}
BARRIER_REDUCTION: Final = {"popc": 2, "and": 3, "or": 4}
SHUFFLE: Final = {"up": 10, "down": 11, "bfly": 12, "idx": 13}
VOTE: Final = {"any": 20, "all": 21, "uni": 22, "ballot": 23}
MATCH: Final = {"any": 30, "all": 31}
REDUCTION: Final = {"add": 40, "min": 41, "max": 42, "and": 43, "or": 44, "xor": 45}
SIGNED_REDUCTION: Final = {"min": 50, "max": 51}
WARP_BARRIER: Final = 60
ACTIVE_MASK: Final = 61
YIELD: Final = 70
STEPPING: Final = 71
"""The numbers of operations, which the runtime knows."""


def _wait(e: Emitter, operation: int, operands: WarpOperands, results: tuple[Operand, ...] = ()) -> Suspension:
    if e.suspension is None:
        raise e.refuse("threads wait for each other in a function that is not part of its caller")
    e.suspension.wait(e, operation, operands, results)
    return e.suspension


def _write_result(e: Emitter, suspension: Suspension, target: Operand, type_: Type) -> None:
    e.write(target, e.cast(suspension.result(e), 64, type_.bits), type_)


@SYNCHRONISATION.translates("bar", "barrier")
def barrier(e: Emitter, i: Instruction) -> None:
    """Translate ``bar`` and ``barrier``."""
    if "warp" in i.modifiers:
        require(i, ("warp", "sync"), operands=1, types=0)
        _wait(e, WARP_BARRIER, WarpOperands(mask=e.read(i.operands[0], _B32)))
        return
    if "red" in i.modifiers:
        _barrier_reduction(e, i)
        return
    require(i, (*BARRIER, "cta", "aligned"), operands=(1, 2), types=0)
    operation = choose(i, BARRIER)
    if operation == "arrive" and len(i.operands) != 2:
        raise refuse(i, "'arrive' does not say for how many threads")
    number = e.read(i.operands[0], _U32)
    threads = e.read(i.operands[1], _U32) if len(i.operands) == 2 else "0"
    _wait(e, BARRIER[operation], WarpOperands(second=number, third=threads))


def _barrier_reduction(e: Emitter, i: Instruction) -> None:
    require(i, (*BARRIER_REDUCTION, "red", "cta", "aligned"), operands=(3, 4))
    operation = choose(i, BARRIER_REDUCTION)
    type_ = require_type(i, ("u32",) if operation == "popc" else ("pred",))
    target, number, *threads, predicate = i.operands
    operands = WarpOperands(
        value=e.cast(e.read(predicate, PREDICATE), 1, 64),
        second=e.read(number, _U32),
        third=e.read(threads[0], _U32) if threads else "0",
    )
    _write_result(e, _wait(e, BARRIER_REDUCTION[operation], operands, (target,)), target, type_)


@SYNCHRONISATION.translates("shfl")
def shuffle(e: Emitter, i: Instruction) -> None:
    """Translate ``shfl``. Without ``.sync`` every thread of the warp that has not ended takes part."""
    synchronises = "sync" in i.modifiers
    require(i, (*SHUFFLE, "sync"), operands=5 if synchronises else 4)
    type_ = require_type(i, ("b32",))
    target, source, lane, clamp, *mask = i.operands
    operands = WarpOperands(
        mask=e.read(mask[0], _B32) if mask else "-1",
        value=e.cast(e.read(source, type_), 32, 64),
        second=e.read(lane, _B32),
        third=e.read(clamp, _B32),
    )
    _write_with_predicate(e, _wait(e, SHUFFLE[choose(i, SHUFFLE)], operands, (target,)), target, type_)


def _write_with_predicate(e: Emitter, suspension: Suspension, target: Operand, type_: Type) -> None:
    first, second = (target.first, target.second) if isinstance(target, Pair) else (target, Sink())
    _write_result(e, suspension, first, type_)
    e.write(second, suspension.predicate(e), PREDICATE)


@SYNCHRONISATION.translates("vote")
def vote(e: Emitter, i: Instruction) -> None:
    """Translate ``vote``."""
    synchronises = "sync" in i.modifiers
    require(i, (*VOTE, "sync"), operands=3 if synchronises else 2)
    operation = choose(i, VOTE)
    type_ = require_type(i, ("b32",) if operation == "ballot" else ("pred",))
    target, predicate, *mask = i.operands
    operands = WarpOperands(
        mask=e.read(mask[0], _B32) if mask else "-1", value=e.cast(e.read(predicate, PREDICATE), 1, 64)
    )
    _write_result(e, _wait(e, VOTE[operation], operands, (target,)), target, type_)


@SYNCHRONISATION.translates("match")
def match(e: Emitter, i: Instruction) -> None:
    """Translate ``match``."""
    require(i, (*MATCH, "sync"))
    type_ = require_type(i, ("b32", "b64"))
    target, source, mask = i.operands
    operands = WarpOperands(mask=e.read(mask, _B32), value=e.cast(e.read(source, type_), type_.bits, 64))
    _write_with_predicate(e, _wait(e, MATCH[choose(i, MATCH)], operands, (target,)), target, _B32)


@SYNCHRONISATION.translates("redux")
def reduce(e: Emitter, i: Instruction) -> None:
    """Translate ``redux``."""
    require(i, (*REDUCTION, "sync"))
    operation = choose(i, REDUCTION)
    bitwise = operation in ("and", "or", "xor")
    type_ = require_type(i, ("b32",) if bitwise else ("u32", "s32"))
    target, source, mask = i.operands
    operands = WarpOperands(mask=e.read(mask, _B32), value=e.cast(e.read(source, type_), 32, 64))
    number = SIGNED_REDUCTION.get(operation) if type_.is_signed else None
    _write_result(e, _wait(e, number or REDUCTION[operation], operands, (target,)), target, type_)


@SYNCHRONISATION.translates("nanosleep")
def sleep(e: Emitter, i: Instruction) -> None:
    """Translate ``nanosleep``: the other threads have their turn, and no time passes."""
    require(i, operands=1)
    e.read(i.operands[0], require_type(i, ("u32",)))
    _wait(e, YIELD, WarpOperands())


@SYNCHRONISATION.translates(STEP)
def step(e: Emitter, _: Instruction) -> None:
    """Translate a step: the threads of the warp that are still before it have their turn."""
    _wait(e, STEPPING, WarpOperands())


@SYNCHRONISATION.translates("activemask")
def active_mask(e: Emitter, i: Instruction) -> None:
    """Translate ``activemask``: the threads of the warp that come to it while the others are elsewhere.

    In a function that is not part of its caller a thread is alone, as it may be on a device.
    """
    require(i, operands=1)
    type_ = require_type(i, ("b32",))
    if e.suspension is not None:
        _write_result(e, _wait(e, ACTIVE_MASK, WarpOperands(), (i.operands[0],)), i.operands[0], type_)
        return
    lane = e.define(f"and i32 {e.shape.linear(e)}, 31")
    e.write(i.operands[0], e.define(f"shl i32 1, {lane}"), type_)


@SYNCHRONISATION.translates("elect")
def elect(e: Emitter, i: Instruction) -> None:
    """Translate ``elect``: the lowest lane of the mask leads."""
    require(i, ("sync",), operands=2, types=0)
    target, mask = i.operands
    if not isinstance(target, Pair):
        raise refuse(i, "'elect' has no predicate")
    leader = e.pure("i32", "llvm.cttz.i32", f"i32 {e.read(mask, _B32)}", "i1 0")
    e.write(target.first, leader, _B32)
    lane = e.define(f"and i32 {e.shape.linear(e)}, 31")
    e.write(target.second, e.define(f"icmp eq i32 {leader}, {lane}"), PREDICATE)


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


@SYNCHRONISATION.translates("atom", "red")
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
    space = space_of(i)
    order = ORDER if space == "shared" else _ORDERS[choose(i, _ORDERS, "relaxed")]
    count = VECTORS.get(choose(i, VECTORS, "one"), 1)
    if e.program.variant.checks and not {"release", "acq_rel"}.isdisjoint(i.modifiers):
        tell_of_fence(e, i)
    pointer = access(e, i, address, space, type_.bytes * count, "atomic")
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
    failed = {"acq_rel": "acquire", "release": "monotonic", ORDER: "monotonic"}.get(order, order)
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
    first = e.load(f"atomic {type_.integer}", f"{pointer} monotonic", f"align {type_.bytes}")
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
    return for_both(e, [before, value], lambda parts: _combine_halves(e, operation, lane_of(type_), *parts))


_FENCES: Final = {"sc": "seq_cst", "acq_rel": "acq_rel", "acquire": "acquire", "release": "release"}


@SYNCHRONISATION.translates("fence", "membar")
def fence(e: Emitter, i: Instruction) -> None:
    """Translate ``fence`` and ``membar``. Copies that are asynchronous on a device are done at once here."""
    proxies = ("proxy", "async", "alias", "async.global", "global", "shared::cta", "shared::cluster", "mbarrier_init")
    require(i, (*_FENCES, *SCOPES, "gl", *proxies), operands=0, types=0)
    order = _FENCES[choose(i, _FENCES, "acq_rel" if i.opcode == "fence" else "sc")]
    if e.program.variant.checks:
        tell_of_fence(e, i)
    e.emit(f"fence {order}")
