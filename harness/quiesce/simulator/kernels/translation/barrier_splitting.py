"""Kernels whose threads wait, split at their barriers: one thread by itself, and all threads of a block.

Loops may stop at each round as well, so that all threads of a block do a round before any does the next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from quiesce.simulator.kernels.ptx.function import Function, Instruction, total_bytes
from quiesce.simulator.kernels.translation.control_flow import Flow, branch_labels, flow_of
from quiesce.simulator.kernels.translation.coroutine_frames import (
    LINEAR,
    NEXT,
    Frames,
    Recomputed,
    ThreadSuspension,
    Waiting,
)
from quiesce.simulator.kernels.translation.data_flow import liveness_of, uniform_registers
from quiesce.simulator.kernels.translation.function_body import (
    ATTRIBUTES,
    clear,
    prepare,
    reserve_memory,
    translate_blocks,
)
from quiesce.simulator.kernels.translation.inlining import inline_waiting_functions
from quiesce.simulator.kernels.translation.llvm_code import (
    BLOCK,
    FRAMES,
    INDEX,
    INVARIANT,
    LANE,
    PARAMETERS,
    STATE,
    WARP,
    StateShape,
)
from quiesce.simulator.kernels.translation.program import Program
from quiesce.simulator.kernels.translation.spin_loops import SUSPENDING, waits_for_some
from quiesce.simulator.kernels.translation.stride_specialisation import Guesses, guess_strides
from quiesce.simulator.kernels.translation.work_group_vectorisation import DONE, Together, TogetherShape

_STOPPING: Final = frozenset({*SUSPENDING, "call", "atom", "red", "brx", "trap", "mma", "wmma"})
_ORDERED: Final = frozenset({"volatile", "relaxed", "acquire", "release", "mmio"})
_LOOP_INSTRUCTIONS_MAX: Final = 200


def shared_loops(function: Function, flow: Flow) -> dict[tuple[int, int], int]:
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


USUAL: Final = "quiesce_kernel_usual"
"""The function for a block in which a stride is not what was guessed."""
_INSTRUCTIONS_MAX: Final = 2_000
"""A longer kernel is not compiled for all threads together: that would take seconds."""
Loops = dict[tuple[int, int], int]


@dataclass(frozen=True, slots=True)
class Translated:
    """The functions of a kernel, and what the runtime has to know of them."""

    lines: list[str]
    frame_bytes: int = 0
    """How much memory each thread has to itself."""
    array_bytes: int = 0
    """How much memory the registers of a block's threads need while they wait."""
    states: list[Waiting] = field(default_factory=list)


def translate_waiting(program: Program, function: Function, tuned: bool) -> Translated:
    """Translate a kernel whose threads wait for each other; ``tuned``: also for all threads of a block together."""
    function, kept = inline_waiting_functions(program, function)
    flow, frames = flow_of(function, waits_for_some), _frames(function)
    tuned = tuned and len(function.items) <= _INSTRUCTIONS_MAX
    is_plain = tuned and not kept and not _has_own_memory(function)
    loops = shared_loops(function, flow) if is_plain else {}
    lines, frame_bytes = _thread(program, function, frames, loops, kept, tuned)
    together = _together(program, function, frames, loops, {}) if is_plain and frames.is_plain else []
    return Translated([*lines, *together], frame_bytes, frames.bytes, frames.states)


def translate_rounds(program: Program, function: Function, usual: Callable[[], list[str]]) -> Translated | None:
    """Translate a kernel whose threads never wait, but should do rounds of a loop together; None: there is none."""
    flow = flow_of(function, waits_for_some)
    is_long = len(function.items) > _INSTRUCTIONS_MAX
    loops = {} if is_long or _has_own_memory(function) else shared_loops(function, flow)
    if not loops:
        return None
    frames, guesses = _frames(function), guess_strides(function)
    lines, _ = _thread(program, function, frames, loops, frozenset(), True)
    together = _together(program, function, frames, loops, guesses)
    if not together:
        return None
    others = usual() if guesses else []
    return Translated([*lines, *together, *others, *_block(guesses)], 0, frames.bytes, frames.states)


def _has_own_memory(function: Function) -> bool:
    return any(variable.space == "local" for variable in function.variables.values())


def _frames(function: Function) -> Frames:
    parameters = frozenset(each.name for each in function.parameters)
    return Frames(Recomputed(function), uniform_registers(flow_of(function, waits_for_some), parameters))


def _thread(
    program: Program, function: Function, frames: Frames, loops: Loops, kept: frozenset[str], tuned: bool
) -> tuple[list[str], int]:
    """Return a function that runs one thread until it waits, and how much memory of its own that has."""
    e = prepare(program, function, StateShape())
    flow = flow_of(function, waits_for_some)
    liveness = liveness_of(flow)
    e.suspension = suspension = ThreadSuspension(frames, flow, liveness)
    memory = reserve_memory(e, function, suspension, kept)
    e.place("start")
    clear(e, liveness)
    e.emit(f"br label %{e.block_label(0)}")
    translate_blocks(e, flow)
    for number, block in enumerate(flow.blocks):
        if tuned and block.instructions and waits_for_some(block.instructions[0]):
            suspension.enter_block(e, number)
    for position in list(loops):
        if position in frames.places:
            del loops[position]
        elif loops[position] not in frames.entered:
            suspension.enter_block(e, loops[position])
    return [
        f"define i32 @quiesce_kernel_thread(ptr noalias nocapture readonly %context, ptr %thread) {ATTRIBUTES} {{",
        "entry:",
        *memory,
        *e.stack_lines(),
        *_THREAD_BEGINS,
        f"switch i32 %state, label %start [{suspension.cases()}]",
        *e.lines,
        "}",
    ], suspension.frame_bytes


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


def _together(program: Program, function: Function, frames: Frames, loops: Loops, guesses: Guesses) -> list[str]:
    """Return a function that runs all threads of a block; nothing where that is not worth it."""
    e = prepare(program, function, TogetherShape(total_bytes(function.parameters), guesses))
    memory = reserve_memory(e, function, None)
    flow = flow_of(function, waits_for_some)
    together = Together(e, flow, frames, loops, liveness_of(flow).at_entry())
    if not together.write():
        return []
    return [
        "define i32 @quiesce_kernel_together"
        f"(ptr noalias nocapture readonly %context, ptr noalias %frames, i32 %from) {ATTRIBUTES} {{",
        "entry:",
        *together.lines(memory),
        "}",
    ]


def _block(guesses: Guesses) -> list[str]:
    """Return a function that runs the threads of a block together, and then those that are left one after another."""
    lines = list(_BLOCK_BEGINS)
    for number, ((offset, bits), value) in enumerate(guesses.items()):
        lines += [
            f"%guess{number}.place = getelementptr i8, ptr %parameters, i64 {offset}",
            f"%guess{number}.value = load i{bits}, ptr %guess{number}.place, align 1",
            f"%guess{number}.holds = icmp eq i{bits} %guess{number}.value, {value}",
            f"br i1 %guess{number}.holds, label %guessed{number}, label %begin",
            f"guessed{number}:",
        ]
    others = ["begin:", f"%others = call i32 @{USUAL}(ptr %context)", "ret i32 %others"] if guesses else []
    return [*lines, *_BLOCK_ENDS[:-1], *others, "}"]


_BLOCK_BEGINS: Final = f"""define i32 @quiesce_kernel_block(ptr noalias nocapture readonly %context) {ATTRIBUTES} {{
entry:
%thread = alloca [64 x i8], align 16
%frames.place = getelementptr i8, ptr %context, i64 {FRAMES}
%frames = load ptr, ptr %frames.place, {INVARIANT}
%nexts = getelementptr i8, ptr %frames, i64 {NEXT}
%parameters.place = getelementptr i8, ptr %context, i64 {PARAMETERS}
%parameters = load ptr, ptr %parameters.place, {INVARIANT}
%block.x.place = getelementptr i8, ptr %context, i64 {BLOCK}
%block.x = load i32, ptr %block.x.place, {INVARIANT}, !range !1
%block.y.place = getelementptr i8, ptr %context, i64 {BLOCK + 4}
%block.y = load i32, ptr %block.y.place, {INVARIANT}, !range !1
%block.z.place = getelementptr i8, ptr %context, i64 {BLOCK + 8}
%block.z = load i32, ptr %block.z.place, {INVARIANT}, !range !1
%block.row = mul i32 %block.x, %block.y
%threads = mul i32 %block.row, %block.z""".split("\n")
_BLOCK_ENDS: Final = f"""%together = call i32 @quiesce_kernel_together(ptr %context, ptr %frames, i32 0)
%is.apart = icmp sgt i32 %together, 0
br i1 %is.apart, label %apart, label %whole
whole:
ret i32 %together
apart:
br label %one
one:
%number = phi i32 [0, %apart], [%number.next, %following]
%next.place = getelementptr i32, ptr %nexts, i32 %number
%state = load i32, ptr %next.place
%has.ended = icmp eq i32 %state, {DONE}
br i1 %has.ended, label %following, label %run
run:
%state.place = getelementptr i8, ptr %thread, i64 {STATE}
store i32 %state, ptr %state.place
%x = urem i32 %number, %block.x
%row = udiv i32 %number, %block.x
%y = urem i32 %row, %block.y
%z = udiv i32 %row, %block.y
%x.place = getelementptr i8, ptr %thread, i64 {INDEX}
store i32 %x, ptr %x.place
%y.place = getelementptr i8, ptr %thread, i64 {INDEX + 4}
store i32 %y, ptr %y.place
%z.place = getelementptr i8, ptr %thread, i64 {INDEX + 8}
store i32 %z, ptr %z.place
%lane = and i32 %number, 31
%lane.place = getelementptr i8, ptr %thread, i64 {LANE}
store i32 %lane, ptr %lane.place
%warp = lshr i32 %number, 5
%warp.place = getelementptr i8, ptr %thread, i64 {WARP}
store i32 %warp, ptr %warp.place
%end = call i32 @quiesce_kernel_thread(ptr %context, ptr %thread)
%has.failed = icmp slt i32 %end, 0
br i1 %has.failed, label %failed, label %following
failed:
ret i32 %end
following:
%number.next = add nuw nsw i32 %number, 1
%is.last = icmp eq i32 %number.next, %threads
br i1 %is.last, label %all, label %one
all:
ret i32 0
}}""".split("\n")
