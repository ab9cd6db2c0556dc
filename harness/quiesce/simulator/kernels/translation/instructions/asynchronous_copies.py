"""Asynchronous copies, which are done at once, and the barriers in memory that count them: ``cp.async``, ``mbarrier``.

A barrier in memory is a word that only these instructions look into. From its low end: how many arrivals a phase has
(20 bits), how many are missing (20 bits), how many bytes are missing (23 bits), and the number of the phase (1 bit).
Accesses to it are volatile, so that no two threads are ever run at once between them.
"""

from __future__ import annotations

from typing import Final

from quiesce.simulator.kernels.ptx.function import Instruction
from quiesce.simulator.kernels.ptx.operands import PREDICATE, TYPES, Address, Integer, Operand, Register
from quiesce.simulator.kernels.translation.accesses import Access, AccessKind
from quiesce.simulator.kernels.translation.checks import checked_copy, is_copy_by_groups
from quiesce.simulator.kernels.translation.emitter import Chapter, Emitter
from quiesce.simulator.kernels.translation.instructions.forms import choose, not_executed, refuse, require
from quiesce.simulator.kernels.translation.instructions.memory import HINT, SCOPES, access, place_of

COPIES: Final = Chapter(
    "https://docs.nvidia.com/cuda/parallel-thread-execution/#data-movement-and-conversion-instructions-cp-async"
)
BARRIERS_IN_MEMORY: Final = Chapter(
    "https://docs.nvidia.com/cuda/parallel-thread-execution/#parallel-synchronization-and-communication-instructions"
)

_SIDES: Final[tuple[AccessKind, AccessKind]] = ("store", "load")
_PART_BYTES: Final = 16
"""Of which the length and the addresses of a long copy are multiples."""
_U32: Final = TYPES["u32"]
_U64: Final = TYPES["u64"]
_SHARED: Final = frozenset({"shared", "shared::cta", "shared::cluster"})
_PREFETCH: Final = frozenset({"L2::64B", "L2::128B", "L2::256B"})
_COUNT_MASK: Final = (1 << 20) - 1
_MISSING: Final = 20
_BYTES: Final = 40
_BYTES_MASK: Final = (1 << 23) - 1
_PHASE: Final = 63


def _address(e: Emitter, i: Instruction, operand: Operand, space: str, bytes_: int, kind: AccessKind) -> str:
    if not isinstance(operand, Address):
        raise refuse(i, "there is no address")
    return access(e, i, operand, space, bytes_, kind)


@COPIES.translates("cp")
def copy(e: Emitter, i: Instruction) -> None:
    """Translate ``cp``."""
    if "async" not in i.modifiers or "tensor" in i.modifiers or "reduce" in i.modifiers:
        raise not_executed(i)
    if "commit_group" in i.modifiers or "wait_all" in i.modifiers:
        require(i, ("async", "bulk", "commit_group", "wait_all"), operands=0, types=0)
        _end_group(e, i)
        if "wait_all" in i.modifiers:
            _wait(e, i, "0")
    elif "wait_group" in i.modifiers:
        require(i, ("async", "bulk", "wait_group", "read"), operands=1, types=0)
        _wait(e, i, e.read(i.operands[0], _U32))
    elif "mbarrier" in i.modifiers:
        _arrive_when_copied(e, i)
    elif "bulk" in i.modifiers:
        _copy_bulk(e, i)
    else:
        _copy_little(e, i)


def _end_group(e: Emitter, i: Instruction) -> None:
    if e.program.shared_use.is_judged and is_copy_by_groups(i):
        e.call(
            "void", "quiesce_kernel_copies_commit", "ptr %context", f"i32 {e.shape.linear(e)}", attributes="nounwind"
        )


def _wait(e: Emitter, i: Instruction, groups_left: str) -> None:
    if e.program.shared_use.is_judged and is_copy_by_groups(i):
        numbers = [f"i32 {groups_left}", f"i32 {e.shape.linear(e)}"]
        e.call("void", "quiesce_kernel_copies_wait", "ptr %context", *numbers, attributes="nounwind")


def _copy_little(e: Emitter, i: Instruction) -> None:
    has_hint = HINT in i.modifiers
    require(i, ("async", "ca", "cg", *_SHARED, "global", *_PREFETCH, HINT), (3 + has_hint, 4 + has_hint), types=0)
    choose(i, ("ca", "cg"))
    choose(i, _SHARED)
    target, source, size, *rest = i.operands[: len(i.operands) - has_hint]
    if not isinstance(size, Integer) or size.value not in (4, 8, 16) or "global" not in i.modifiers:
        raise not_executed(i)
    to = _address(e, i, target, "shared", size.value, "copy")
    if not rest:
        from_ = _address(e, i, source, "global", size.value, "load")
        bits = 8 * size.value
        e.store(f"i{bits}", e.load(f"i{bits}", from_, "align 4"), to, "align 4")
        return
    # fewer bytes are read than are written: what is left is zeros
    if isinstance(rest[0], Integer) or (isinstance(rest[0], Register) and rest[0].type.bits == 32):
        wanted = e.pure("i32", "llvm.umin.i32", f"i32 {e.read(rest[0], _U32)}", f"i32 {size.value}")
    else:
        wanted = e.select(e.read(rest[0], PREDICATE), "i32", "0", str(size.value))
    e.call("ptr", "memset", f"ptr {to}", "i32 0", f"i64 {size.value}")
    # loops read ahead of their last round like this: where nothing is read, the address may be anywhere
    whole, other, part, done = (e.new_label() for _ in range(4))
    e.emit(f"br i1 {e.define(f'icmp eq i32 {wanted}, {size.value}')}, label %{whole}, label %{other}")
    e.place(whole)
    from_ = _address(e, i, source, "global", size.value, "load")
    e.call("ptr", "memcpy", f"ptr {to}", f"ptr {from_}", f"i64 {size.value}")
    e.emit(f"br label %{done}")
    e.place(other)
    e.emit(f"br i1 {e.define(f'icmp eq i32 {wanted}, 0')}, label %{done}, label %{part}")
    e.place(part)
    from_ = _address(e, i, source, "global", 1, "load")
    e.call("ptr", "memcpy", f"ptr {to}", f"ptr {from_}", f"i64 {e.cast(wanted, 32, 64)}")
    e.emit(f"br label %{done}")
    e.place(done)


def _copy_bulk(e: Emitter, i: Instruction) -> None:
    """Translate copies of any length. The memory of a cluster is that of the block."""
    known = ("async", "bulk", "global", *_SHARED, "mbarrier::complete_tx::bytes", "bulk_group", HINT)
    counts = "mbarrier::complete_tx::bytes" in i.modifiers
    require(i, known, operands=3 + counts + (HINT in i.modifiers), types=0)
    spaces = [each for each in i.modifiers if each == "global" or each in _SHARED]
    if len(spaces) != 2 or counts == ("bulk_group" in i.modifiers) or "shared::cluster" in spaces[1:]:
        raise not_executed(i)
    size = e.cast(e.read(i.operands[2], _U32), 32, 64)
    to, from_ = (
        _side(e, i, operand, "global" if space == "global" else "shared", kind, size)
        for operand, space, kind in zip(i.operands[:2], spaces, _SIDES, strict=True)
    )
    if e.program.variant.checks:
        e.call("void", "quiesce_kernel_copy", f"ptr {to}", f"ptr {from_}", f"i64 {size}")
    else:
        e.call("ptr", "memmove", f"ptr {to}", f"ptr {from_}", f"i64 {size}")
    if counts:
        word = _address(e, i, i.operands[3], "shared", 8, "store")
        _change(e, word, bytes_=e.define(f"sub i64 0, {size}"))


def _side(e: Emitter, i: Instruction, operand: Operand, space: str, kind: AccessKind, size_bytes: str) -> str:
    if not e.program.variant.checks:
        return _address(e, i, operand, space, _PART_BYTES, kind)
    if not isinstance(operand, Address):
        raise refuse(i, "there is no address")
    return checked_copy(e, i, place_of(e, i, operand, space), Access(space, _PART_BYTES, kind), size_bytes)


def _arrive_when_copied(e: Emitter, i: Instruction) -> None:
    """Translate ``cp.async.mbarrier.arrive``: without ``.noinc`` the arrival is one more than those that were said."""
    require(i, ("async", "mbarrier", "arrive", "noinc", *_SHARED), operands=1)
    if "noinc" in i.modifiers:
        _change(e, _address(e, i, i.operands[0], "shared", 8, "store"), arrivals="1")


# -- barriers in memory ------------------------------------------------------------------------------------------------


def _change(e: Emitter, pointer: str, arrivals: str = "0", bytes_: str = "0", leaving: str = "0") -> str:
    """Count arrivals and bytes; the phase ends when none is missing. Return the word as it was."""
    before = e.load("volatile i64", pointer, "align 8")
    word = e.define(f"sub i64 {before}, {e.define(f'shl i64 {arrivals}, {_MISSING}')}")
    word = e.define(f"sub i64 {word}, {leaving}")
    missing = e.define(f"add i64 {e.define(f'lshr i64 {before}, {_BYTES}')}, {bytes_}")
    field = e.define(f"shl i64 {e.define(f'and i64 {missing}, {_BYTES_MASK}')}, {_BYTES}")
    word = e.define(f"or i64 {e.define(f'and i64 {word}, {~(_BYTES_MASK << _BYTES)}')}, {field}")
    left = e.define(f"and i64 {word}, {(_COUNT_MASK << _MISSING) | (_BYTES_MASK << _BYTES)}")
    count = e.define(f"and i64 {word}, {_COUNT_MASK}")
    phase = e.define(f"and i64 {e.define(f'xor i64 {word}, {-(1 << _PHASE)}')}, {-(1 << _PHASE)}")
    fresh = e.define(f"or i64 {_initial(e, count)}, {phase}")
    e.store("volatile i64", e.select(e.define(f"icmp eq i64 {left}, 0"), "i64", fresh, word), pointer, "align 8")
    return before


def _initial(e: Emitter, count: str) -> str:
    return e.define(f"or i64 {count}, {e.define(f'shl i64 {count}, {_MISSING}')}")


def _word(e: Emitter, i: Instruction, operand: Operand) -> str:
    space = "shared" if not _SHARED.isdisjoint(i.modifiers) else "generic"
    return _address(e, i, operand, space, 8, "store")


@BARRIERS_IN_MEMORY.translates("mbarrier")
def barrier_in_memory(e: Emitter, i: Instruction) -> None:
    """Translate ``mbarrier``."""
    for name, translate in _BARRIERS.items():
        if name in i.modifiers:
            translate(e, i)
            return
    raise not_executed(i)


_ORDER: Final = ("relaxed", "acquire", "release", *SCOPES)


def _initialise(e: Emitter, i: Instruction) -> None:
    require(i, ("init", *_SHARED), operands=2)
    pointer = _word(e, i, i.operands[0])
    count = e.cast(e.read(i.operands[1], _U32), 32, 64)
    count = e.define(f"and i64 {count}, {_COUNT_MASK}")
    e.store("volatile i64", _initial(e, count), pointer, "align 8")


def _invalidate(e: Emitter, i: Instruction) -> None:
    require(i, ("inval", *_SHARED), operands=1)
    e.store("volatile i64", "0", _word(e, i, i.operands[0]), "align 8")


def _arrive(e: Emitter, i: Instruction) -> None:
    known = ("arrive", "arrive_drop", "expect_tx", "noComplete", *_SHARED, *_ORDER)
    require(i, known, operands=(1, 2, 3))
    state = None if isinstance(i.operands[0], Address) else i.operands[0]
    address, *count = i.operands if state is None else i.operands[1:] or i.operands
    number = e.cast(e.read(count[0], _U32), 32, 64) if count else "1"
    expects = "expect_tx" in i.modifiers
    arrivals = "1" if expects else number
    before = _change(
        e,
        _word(e, i, address),
        arrivals=arrivals,
        bytes_=number if expects else "0",
        leaving=arrivals if "arrive_drop" in i.modifiers else "0",
    )
    if state is not None:
        e.write(state, before, TYPES["b64"])


def _expect(e: Emitter, i: Instruction) -> None:
    require(i, ("expect_tx", "complete_tx", *_SHARED, *_ORDER), operands=2)
    number = e.cast(e.read(i.operands[1], _U32), 32, 64)
    if "complete_tx" in i.modifiers:
        number = e.define(f"sub i64 0, {number}")
    _change(e, _word(e, i, i.operands[0]), bytes_=number)


def _test(e: Emitter, i: Instruction) -> None:
    """Say whether a phase has ended: the one of a state, or the one of a parity."""
    has_parity = "parity" in i.modifiers
    require(i, ("test_wait", "try_wait", "parity", *_SHARED, *_ORDER), operands=(3, 4))
    target, address, asked, *_ = i.operands
    now = e.define(f"lshr i64 {e.load('volatile i64', _word(e, i, address), 'align 8')}, {_PHASE}")
    if has_parity:
        phase = e.define(f"and i64 {e.cast(e.read(asked, _U32), 32, 64)}, 1")
    else:
        phase = e.define(f"lshr i64 {e.read(asked, _U64)}, {_PHASE}")
    e.write(target, e.define(f"icmp ne i64 {now}, {phase}"), PREDICATE)
    if e.program.variant.checks:  # what threads did before they arrived is over for who finds the phase ended
        e.call("void", "quiesce_kernel_barrier", "ptr %context", attributes="nounwind")


def _count_pending(e: Emitter, i: Instruction) -> None:
    require(i, ("pending_count",), operands=2)
    moved = e.define(f"lshr i64 {e.read(i.operands[1], _U64)}, {_MISSING}")
    e.write(i.operands[0], e.cast(e.define(f"and i64 {moved}, {_COUNT_MASK}"), 64, 32), _U32)


_BARRIERS: Final = {
    "init": _initialise,
    "inval": _invalidate,
    "arrive": _arrive,
    "arrive_drop": _arrive,
    "expect_tx": _expect,
    "complete_tx": _expect,
    "test_wait": _test,
    "try_wait": _test,
    "pending_count": _count_pending,
}
