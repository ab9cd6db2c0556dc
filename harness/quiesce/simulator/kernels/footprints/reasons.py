"""Why the blocks of a kernel run one after another, as far as its text says it."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from quiesce.simulator.kernels.footprints.walk import CHANGES
from quiesce.simulator.kernels.ptx.function import Function, Instruction
from quiesce.simulator.kernels.ptx.operands import Address, Register, Special, Texel
from quiesce.simulator.kernels.translation.data_flow import effects_of
from quiesce.simulator.kernels.translation.inlining import reached
from quiesce.simulator.kernels.translation.program import Program, callee_of
from quiesce.simulator.kernels.translation.spin_loops import spinning_branches


class Reason(IntEnum):
    """What keeps blocks from running at the same time; ``native/kernels/footprints.h`` has the same numbers."""

    NONE = 0
    NOT_UNDERSTOOD = 1
    WAITS_FOR_MEMORY = 2
    ORDERS_MEMORY = 3
    READS_CHANGED = 4
    CHANGES_FLOATS = 5
    CALLS = 6
    USES_TEXTURES = 7
    COPIES = 8
    READS_PLACE = 9
    PLACE_UNKNOWN = 10


_ORDERED: Final = frozenset({"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio", "cv", "sc"})
_STRONG: Final = frozenset({"acquire", "release", "acq_rel", "sc"})
_OWN: Final = frozenset({"shared", "shared::cta", "local", "param", "const"})
_PLACES: Final = ("%clock", "%globaltimer", "%smid", "%nsmid", "%gridid", "%warpid", "%nwarpid", "%cluster")
_WITHOUT_USE: Final = frozenset({"prefetch", "prefetchu", "applypriority"})
_MATRICES: Final = frozenset({"mma", "wmma", "ldmatrix", "stmatrix"})
_ENDS: Final = frozenset({"trap", "brkpt"})


def reason_of(program: Program, function: Function) -> Reason:
    """Return what in a kernel or in the functions that it calls keeps its blocks from running at the same time."""
    if spinning_branches(function):
        return Reason.WAITS_FOR_MEMORY
    read = {register for i in function.instructions() for register in effects_of(i)[0]}
    for i in function.instructions():
        reason = _reason(i, read)
        if reason:
            return reason
    for each in reached(program, function):
        calls = [i for i in each.instructions() if i.opcode == "call"]
        if any(not _is_known(program, i) for i in calls):
            return Reason.CALLS
        if each is not function and any(_uses_memory(i) or _reason(i, read) for i in each.instructions()):
            return Reason.CALLS
    return Reason.NONE


def _is_known(program: Program, call: Instruction) -> bool:
    text = program.module.functions.get(callee_of(call) or "")
    return text is not None and text.body is not None


def _uses_memory(i: Instruction) -> bool:
    return any(isinstance(each, Address) for each in i.operands) and _OWN.isdisjoint(i.modifiers)


def _reason(i: Instruction, read: set[Register]) -> Reason:
    if any(isinstance(each, Texel) for each in i.operands) or i.opcode in ("tex", "tld4", "suld", "sust", "txq", "suq"):
        return Reason.USES_TEXTURES
    if i.opcode in _MATRICES:
        return Reason.NOT_UNDERSTOOD
    if i.opcode in _ENDS:
        return Reason.CALLS
    if any(isinstance(each, Special) and each.name.startswith(_PLACES) for each in i.operands):
        return Reason.READS_PLACE
    if i.opcode in ("membar", "fence"):
        return Reason.NONE if "cta" in i.modifiers else Reason.ORDERS_MEMORY
    if i.opcode in ("cp", "mbarrier", "st.async", "red.async"):
        return Reason.COPIES
    if not _uses_memory(i) or i.opcode in _WITHOUT_USE:
        return Reason.NONE
    if i.opcode in ("ld", "ldu", "st"):
        return Reason.NONE if _ORDERED.isdisjoint(i.modifiers) else Reason.ORDERS_MEMORY
    if i.opcode in ("atom", "red"):
        return _reason_of_change(i, read)
    return Reason.NOT_UNDERSTOOD


def _reason_of_change(i: Instruction, read: set[Register]) -> Reason:
    if not _STRONG.isdisjoint(i.modifiers):
        return Reason.ORDERS_MEMORY
    if i.opcode == "atom" and not read.isdisjoint(effects_of(i)[1]):
        return Reason.READS_CHANGED
    if i.types[-1].is_float or i.types[-1].lanes > 1:
        return Reason.CHANGES_FLOATS
    return Reason.NONE if CHANGES.intersection(i.modifiers) else Reason.READS_CHANGED
