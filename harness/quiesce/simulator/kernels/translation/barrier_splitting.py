"""Kernels whose threads wait, split at their barriers: one thread by itself, and all threads of a block.

Loops may stop at each round as well, so that all threads of a block do a round before any does the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from quiesce.simulator.kernels.ptx.function import Function, Instruction
from quiesce.simulator.kernels.ptx.operands import Register
from quiesce.simulator.kernels.translation.control_flow import Flow, branch_labels, flow_of
from quiesce.simulator.kernels.translation.coroutine_frames import (
    LINEAR,
    Frames,
    Recomputed,
    ThreadSuspension,
)
from quiesce.simulator.kernels.translation.data_flow import liveness_of, uniform_registers
from quiesce.simulator.kernels.translation.function_body import (
    ATTRIBUTES,
    clear,
    count_memory,
    prepare,
    reserve_memory,
    translate_blocks,
)
from quiesce.simulator.kernels.translation.llvm_code import (
    FRAMES,
    INVARIANT,
    LANE,
    WARP,
    StateShape,
)
from quiesce.simulator.kernels.translation.program import Program
from quiesce.simulator.kernels.translation.spin_loops import SUSPENDING, spinning_branches, waits_for_some

_STOPPING: Final = frozenset({*SUSPENDING, "call", "atom", "red", "brx", "trap", "mma", "wmma"})
_ORDERED: Final = frozenset({"volatile", "relaxed", "acquire", "release", "mmio"})
_LOOP_INSTRUCTIONS_MAX: Final = 200
Loops = dict[tuple[int, int], int]
"""The branches that go back in loops, by block and place, with the block that each goes back to."""


def shared_loops(function: Function, flow: Flow) -> Loops:
    """Return the branches that go back in such loops, by block and place, with the block that each goes back to."""
    found = {}
    ends = [number for number, block in enumerate(flow.blocks) if _target(function, flow, number) is not None]
    for end in ends:
        start = _target(function, flow, end)
        assert start is not None
        if any(start <= other < end for other in ends):
            continue  # there is a loop in it
        body = [i for block in flow.blocks[start : end + 1] for i in block.instructions]
        if len(body) <= _LOOP_INSTRUCTIONS_MAX and not any(_stops(i) for i in body) and any(_reads(i) for i in body):
            found[end, len(flow.blocks[end].instructions) - 1] = start
    return found


def _target(function: Function, flow: Flow, number: int) -> int | None:
    """Return the block that a block goes back to."""
    instructions = flow.blocks[number].instructions
    if not instructions or instructions[-1].opcode != "bra":
        return None
    target = flow.labels[branch_labels(function, instructions[-1])[0]]
    return target if target <= number else None


def _stops(i: Instruction) -> bool:
    return i.opcode in _STOPPING or not _ORDERED.isdisjoint(i.modifiers)


def _reads(i: Instruction) -> bool:
    return i.opcode == "ld" and {"param", "shared", "local", "const"}.isdisjoint(i.modifiers)


@dataclass(frozen=True, slots=True)
class ThreadFunction:
    """The function that runs one thread until it waits."""

    lines: list[str]
    frame_bytes: int
    """How much memory each thread has to itself."""
    frames: Frames
    """The places at which threads wait or stop, and where their registers are meanwhile."""
    loops: Loops
    """The loops in which threads stop at each round, without those at whose ends they wait anyway."""


Entered = Callable[[Flow, Frames], Iterable[int]]


def not_entered(_: Flow, __: Frames) -> Iterable[int]:
    """Return no block: threads are entered only where they waited."""
    return ()


def entered_before_waits(flow: Flow, _: Frames) -> Iterable[int]:
    """Return the blocks that begin with a wait that is not one for all threads of the block."""
    return [n for n, block in enumerate(flow.blocks) if block.instructions and waits_for_some(block.instructions[0])]


def thread_function(
    program: Program, function: Function, loops: Loops, kept: frozenset[str], entered: Entered = not_entered
) -> ThreadFunction:
    """Return a function that runs one thread until it waits.

    ``kept``: memory that outlasts a wait. ``entered``: the blocks at whose beginnings threads may be entered as well,
    since those of a block that run together may part there.
    """
    flow = flow_of(function, waits_for_some)
    parameters = frozenset(each.name for each in function.parameters)
    # threads that stop in a loop which looks at memory again may be in different rounds of loops around it
    uniform = frozenset[Register]() if spinning_branches(function) else uniform_registers(flow, parameters)
    frames = Frames(Recomputed(function), uniform)
    liveness = liveness_of(flow)
    suspension = ThreadSuspension(frames, flow, liveness)
    e = prepare(program, function, StateShape(), suspension)
    memory = reserve_memory(e, function, suspension, kept)
    count_memory(program, function)
    e.place("start")
    clear(e, liveness.at_entry())
    e.emit(f"br label %{e.block_label(0)}")
    with e.within(replace(e.around, calls_checks=True)):
        translate_blocks(e, flow)
    for number in entered(flow, frames):
        suspension.enter_block(e, number)
    loops = {position: start for position, start in loops.items() if position not in frames.places}
    for start in loops.values():
        if start not in frames.entered:
            suspension.enter_block(e, start)
    lines = [
        f"define i32 @quiesce_kernel_thread(ptr noalias nocapture readonly %context, ptr %thread) {ATTRIBUTES} {{",
        "entry:",
        *memory,
        *e.stack_lines(),
        *_THREAD_BEGINS,
        f"switch i32 %state, label %start [{suspension.cases()}]",
        *e.lines,
        "}",
    ]
    return ThreadFunction(lines, suspension.frame_bytes, frames, loops)


_THREAD_BEGINS: Final = f"""%frames.place = getelementptr i8, ptr %context, i64 {FRAMES}
%frames = load ptr, ptr %frames.place, {INVARIANT}
%own.warp.place = getelementptr i8, ptr %thread, i64 {WARP}
%own.warp = load i32, ptr %own.warp.place
%own.lane.place = getelementptr i8, ptr %thread, i64 {LANE}
%own.lane = load i32, ptr %own.lane.place
%own.first = shl i32 %own.warp, 5
%own.number = or i32 %own.first, %own.lane
{LINEAR} = zext i32 %own.number to i64
%state = load i32, ptr %thread""".split("\n")
