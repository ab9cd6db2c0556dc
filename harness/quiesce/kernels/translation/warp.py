"""Operations that threads take part in together: barriers, votes, shuffles, matches and reductions."""

from __future__ import annotations

from typing import Final

from quiesce.kernels.ptx.function import Instruction
from quiesce.kernels.ptx.operands import Operand, Pair, Sink
from quiesce.kernels.ptx.types import PREDICATE, TYPES, Type
from quiesce.kernels.translation.emitter import Emitter, Suspension, WarpOperands
from quiesce.kernels.translation.forms import choose, refuse, require, require_type
from quiesce.kernels.translation.spinning import STEP

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


def match(e: Emitter, i: Instruction) -> None:
    """Translate ``match``."""
    require(i, (*MATCH, "sync"))
    type_ = require_type(i, ("b32", "b64"))
    target, source, mask = i.operands
    operands = WarpOperands(mask=e.read(mask, _B32), value=e.cast(e.read(source, type_), type_.bits, 64))
    _write_with_predicate(e, _wait(e, MATCH[choose(i, MATCH)], operands, (target,)), target, _B32)


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


def sleep(e: Emitter, i: Instruction) -> None:
    """Translate ``nanosleep``: the other threads have their turn, and no time passes."""
    require(i, operands=1)
    e.read(i.operands[0], require_type(i, ("u32",)))
    _wait(e, YIELD, WarpOperands())


def step(e: Emitter, _: Instruction) -> None:
    """Translate a step: the threads of the warp that are still before it have their turn."""
    _wait(e, STEPPING, WarpOperands())


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


HANDLERS = {
    "bar": barrier,
    "barrier": barrier,
    "shfl": shuffle,
    "vote": vote,
    "match": match,
    "redux": reduce,
    "nanosleep": sleep,
    "activemask": active_mask,
    "elect": elect,
    STEP: step,
}
