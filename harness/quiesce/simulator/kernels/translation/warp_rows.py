"""Kernels whose threads wait, as rows of 32 threads: the lanes of a row are a warp.

From one barrier to the next, each warp runs as the lanes of vectors (:mod:`quiesce.simulator.kernels.widening`). Where
all lanes of a mask come to an operation together, it is done with vectors. Otherwise the lanes that came are put into
frames, and each goes on by itself: what it meets there is what it would have met without rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from quiesce.simulator.kernels.ptx.function import Function
from quiesce.simulator.kernels.ptx.operands import Operand, Register
from quiesce.simulator.kernels.translation.barrier_splitting import shared_loops
from quiesce.simulator.kernels.translation.control_flow import START, Flow, flow_of
from quiesce.simulator.kernels.translation.coroutine_frames import DONE, Frames, type_of
from quiesce.simulator.kernels.translation.data_flow import is_certainly_used, liveness_of
from quiesce.simulator.kernels.translation.emitter import Emitter, WarpOperands
from quiesce.simulator.kernels.translation.function_body import ATTRIBUTES, clear, prepare, write_values_before
from quiesce.simulator.kernels.translation.instructions.synchronisation import (
    ACTIVE_MASK,
    MATCH,
    REDUCTION,
    SHUFFLE,
    SIGNED_REDUCTION,
    VOTE,
    WARP_BARRIER,
    YIELD,
)
from quiesce.simulator.kernels.translation.lane_function import LaneShape
from quiesce.simulator.kernels.translation.llvm_code import BLOCK, INVARIANT, Code
from quiesce.simulator.kernels.translation.program import Program
from quiesce.simulator.kernels.translation.spin_loops import SUSPENDING, waits_for_all, waits_for_some
from quiesce.simulator.kernels.translation.states import Position, States
from quiesce.simulator.kernels.translation.whole_warps import Nodes, names_all_lanes, whole_nodes
from quiesce.simulator.kernels.translation.work_group_vectorisation import APART, ENDED

WARP_LANE: Final = "quiesce_kernel_warp_lane"
"""How the functions of one thread begin that are replaced; the number of the state follows."""
WARP_ROW: Final = "quiesce_kernel_warp_row"
"""How the functions of a warp begin, which widening writes."""
WARP_LANES: Final = 32
_MATRICES: Final = frozenset({"ldmatrix", "stmatrix", "mma", "wmma"})


def may_be_rows_of_warps(function: Function) -> bool:
    """Say whether a kernel whose threads wait runs faster by warps, and vectors can do what their lanes do together.

    Those do whose lanes do something together, and those in which each thread goes through loops by itself: all threads
    of a block together would do so one after another.
    """
    if any(i.opcode in _MATRICES for i in function.instructions()):
        return False
    if any(i.opcode in SUSPENDING and not waits_for_all(i) for i in function.instructions()):
        return True
    flow = flow_of(function, waits_for_some)
    together = {end for end, _ in shared_loops(function, flow)}
    loops = ((at, n) for n, block in enumerate(flow.blocks) for at in block.successors if at <= n and n not in together)
    inside = (flow.blocks[first : last + 1] for first, last in loops)
    return any(all(i.opcode not in SUSPENDING for block in each for i in block.instructions) for each in inside)


def parting_blocks(program: Program, function: Function, flow: Flow, frames: Frames) -> list[int]:
    """Return the blocks that begin with an operation to which not all lanes of its mask may come together."""
    states = _WarpStates(prepare(program, function, _WarpShape()), flow, frames)
    return sorted({number for each in states.beginnings.values() for number in states.parting(each)})


def warp_functions(program: Program, function: Function, frames: Frames) -> list[str]:
    """Return the functions of one thread, one for each state, and the function of a block that calls the rows."""
    flow = flow_of(function, waits_for_some)
    first = _WarpStates(prepare(program, function, _WarpShape()), flow, frames)
    lines = []
    for state, position in first.beginnings.items():
        lines += _WarpStates(prepare(program, function, _WarpShape()), flow, frames).write(state, position)
    if program.variant.checks:
        program.declare("declare void @quiesce_kernel_barrier(ptr) nounwind")
    return [*lines, *_block_function(frames, list(first.beginnings), program.variant.checks)]


class _WarpShape(LaneShape):
    """One thread of a block whose threads wait. It notes the state in which it leaves."""

    def finish(self, code: Code, status: int) -> None:
        """End the thread, or the block."""
        if status >= 0:
            note_state(code, DONE)
            code.call("void", "warp.ends", attributes=_CONVERGENT)
        super().finish(code, status)


def note_state(code: Code, state: int) -> None:
    """Note where the thread goes on."""
    code.store("i32", str(state), code.define("getelementptr i32, ptr %frames, i64 %linear.wide"))


_CONVERGENT: Final = "convergent nounwind"
_QUIET: Final = "convergent nounwind willreturn memory(inaccessiblemem: readwrite)"
"""Of what depends on the lanes that come to it, and on no memory."""
_ARGUMENTS: Final = (
    "ptr noalias nocapture readonly %context, ptr noalias %frames, i32 %x, i32 %y, i32 %z, i32 %linear, "
    "i64 %linear.wide, i32 %width, i32 %height"
)


class _WarpStates(States):
    """The function of one thread from a state on."""

    def __init__(self, e: Emitter, flow: Flow, frames: Frames) -> None:
        super().__init__(e, flow, frames, {})
        self.beginnings: dict[int, Position] = {0: (0, -1), **self._beginnings}
        self._result, self._predicate = "0", "false"
        self._parting: frozenset[int] = frozenset()
        """The blocks at whose beginnings lanes may leave; other operations are those of whole warps."""

    def write(self, state: int, position: Position) -> list[str]:
        """Return the function."""
        e, frames = self._e, self._frames
        with e.section() as body, e.within(replace(e.around, suspension=self, calls_checks=True)):
            if state:
                kept = frames.states[state - 1].kept
                shared = {r: e.load(type_of(r), self._shared(r)) for r in frames.kept(kept) if r in frames.uniform}
                self._begin_again(kept, shared, position, "%linear.wide")
            else:
                clear(e, liveness_of(self._flow).at_entry())
                e.emit(f"br label %{e.block_label(0)}")
            reached = self._reached(*position)
            self._parting = self.parting(position)
            for number in reached:
                e.place(e.block_label(number))
                self._translate(number, 0)
        assert isinstance(e.shape, LaneShape)
        with e.section() as before:
            for axis in range(3):
                e.shape.context(e, BLOCK + 4 * axis, "i32")
            write_values_before(e, e.shape)
        return [
            f"define i32 @{WARP_LANE}{state}({_ARGUMENTS}) {ATTRIBUTES} {{",
            *("entry:", *e.stack_lines(), *before, *body, "}"),
            f"declare i32 @{WARP_ROW}{state}(ptr, ptr, i32, i32, i32, i32, i64, i32, i32, i32)",
        ]

    def parting(self, position: Position) -> frozenset[int]:
        """Return the blocks after a place that begin with an operation to which not all lanes may come together."""
        first, place = position
        reached = self._reached(*position)
        ways = {number: tuple(self._ways_on(number, 0)) for number in reached}
        ways[START] = (first,) if place < 0 else tuple(self._ways_on(first, place + 1))
        names_all = names_all_lanes(self._e.function)
        blocks = {number: self._flow.blocks[number].instructions for number in reached}
        of_all = tuple(number for number, listed in blocks.items() if listed and names_all(listed[0]))
        leaving = {number for number in reached if self._may_leave(number, int(number in of_all))}
        if place >= 0 and self._may_leave(first, place + 1):
            leaving.add(START)
        asked = frozenset(n for n in of_all if blocks[n][0].opcode == "shfl" and self._is_judged((n, 0)))
        waiting = {number for number, listed in blocks.items() if listed and waits_for_some(listed[0])}
        return frozenset(waiting - whole_nodes(Nodes(ways, frozenset(leaving), of_all, asked)))

    def _is_judged(self, position: Position) -> bool:
        """Say whether a shuffle from a lane that takes no part would be a mistake: its result is certainly used."""
        return self._e.program.variant.checks and is_certainly_used(self._flow, position)

    def _may_leave(self, number: int, place: int) -> bool:
        """Say whether lanes may leave in a block, from one of its instructions on."""
        instructions = self._flow.blocks[number].instructions
        return any(
            (number, at) in self._frames.places or instructions[at].opcode in ("ret", "exit", "trap")
            for at in range(place, len(instructions))
        )

    def _shared(self, register: Register) -> str:
        return self._e.byte_offset("%frames", self._frames.shared_place_of(register))

    def _leaves(self, position: Position) -> bool:
        return self._frames.states[self._frames.places[position] - 1].barrier is not None

    # -- what a thread meets

    def wait(self, e: Emitter, operation: int, operands: WarpOperands, results: tuple[Operand, ...]) -> None:
        """Take part in an operation, if all lanes of its mask have come; otherwise leave."""
        if self._leaves(e.position) or operation == YIELD:
            self._leave(e, self._frames.places[e.position])
            e.place(e.new_label())  # nothing comes here
            return
        if e.position[0] not in self._parting:
            self._take_part(e, operation, operands)
            return
        before = self._frames.entered[e.position[0]]
        if operation not in _OPERATIONS:
            self._leave(e, before)
            e.place(e.new_label())  # nothing comes here
            return
        do, part = e.new_label(), e.new_label()
        meets = e.call("i1", "warp.meets", f"i32 {operands.mask}", attributes=_CONVERGENT)
        if operation in SHUFFLE.values() and self._is_judged(e.position):
            how = (f"i32 {operation}", f"i32 {operands.second}", f"i32 {operands.third}")
            lacks = _ask(e, "i1", "lacks", *how, f"i32 {operands.mask}")
            meets = e.define(f"and i1 {meets}, {e.define(f'xor i1 {lacks}, true')}")
        e.emit(f"br i1 {meets}, label %{do}, label %{part}")
        e.place(part)
        self._leave(e, before)
        e.place(do)
        self._take_part(e, operation, operands)

    def _take_part(self, e: Emitter, operation: int, operands: WarpOperands) -> None:
        """Do an operation; with checks, its lanes have met."""
        if e.program.variant.checks and operation != ACTIVE_MASK:
            warp = e.define("lshr i32 %linear, 5")
            is_barrier = str(int(operation == WARP_BARRIER))
            numbers = (f"i32 {warp}", f"i32 {operands.mask}", f"i1 {is_barrier}")
            e.call("void", "warp.met", "ptr %context", *numbers, attributes=_CONVERGENT)
        self._result, self._predicate = _OPERATIONS[operation](e, operation, operands)

    def _leave(self, e: Emitter, state: int) -> None:
        for register in self._frames.kept(self._frames.states[state - 1].kept):
            self._frames.save(e, register, "%linear.wide")
        note_state(e, state)
        e.emit("ret i32 0")

    def result(self, e: Emitter) -> str:
        """Return the result of the operation, with 64 bits."""
        return self._result

    def predicate(self, e: Emitter) -> str:
        """Return the predicate that came with the result."""
        return self._predicate


# -- operations: each gives a result of 64 bits, and a predicate


def _ask(e: Emitter, type_: str, name: str, *arguments: str) -> str:
    return e.call(type_, f"warp.{name}", *arguments, attributes=_QUIET)


def _shuffle(e: Emitter, operation: int, operands: WarpOperands) -> tuple[str, str]:
    how = (f"i32 {operation}", f"i32 {operands.second}", f"i32 {operands.third}")
    value = _ask(e, "i32", "shuffle", f"i32 {e.cast(operands.value, 64, 32)}", *how, f"i32 {operands.mask}")
    return e.cast(value, 32, 64), _ask(e, "i1", "within", *how)


def _here(e: Emitter, operands: WarpOperands) -> str:
    return e.define(f"and i32 {_ask(e, 'i32', 'active')}, {operands.mask}")


def _vote(e: Emitter, operation: int, operands: WarpOperands) -> tuple[str, str]:
    here = _here(e, operands)
    ballot = _ask(e, "i32", "ballot", f"i1 {e.define(f'icmp ne i64 {operands.value}, 0')}")
    voted = e.define(f"and i32 {ballot}, {operands.mask}")
    if operation == VOTE["ballot"]:
        return e.cast(voted, 32, 64), "false"
    any_, all_ = e.define(f"icmp ne i32 {voted}, 0"), e.define(f"icmp eq i32 {voted}, {here}")
    none = e.define(f"xor i1 {any_}, true")
    found = {VOTE["any"]: any_, VOTE["all"]: all_, VOTE["uni"]: e.define(f"or i1 {none}, {all_}")}
    return e.cast(found[operation], 1, 64), "false"


def _match(e: Emitter, operation: int, operands: WarpOperands) -> tuple[str, str]:
    same = e.define(f"and i32 {_ask(e, 'i32', 'matches', f'i64 {operands.value}')}, {operands.mask}")
    if operation == MATCH["any"]:
        return e.cast(same, 32, 64), "false"
    agree = e.define(f"icmp eq i32 {same}, {_here(e, operands)}")
    return e.cast(e.select(agree, "i32", same, "0"), 32, 64), agree


def _reduce(e: Emitter, operation: int, operands: WarpOperands) -> tuple[str, str]:
    value = f"i32 {e.cast(operands.value, 64, 32)}"
    return e.cast(_ask(e, "i32", f"reduce.{_REDUCED[operation]}", value, f"i32 {operands.mask}"), 32, 64), "false"


def _active(e: Emitter, _: int, operands: WarpOperands) -> tuple[str, str]:
    return e.cast(_here(e, operands), 32, 64), "false"


def _nothing(_: Emitter, __: int, ___: WarpOperands) -> tuple[str, str]:
    return "0", "false"


_REDUCED: Final = {
    **{REDUCTION[name]: name for name in ("add", "and", "or", "xor")},
    **{REDUCTION[name]: f"u{name}" for name in ("min", "max")},
    **{SIGNED_REDUCTION[name]: f"s{name}" for name in ("min", "max")},
}
_OPERATIONS: Final[Mapping[int, Callable[[Emitter, int, WarpOperands], tuple[str, str]]]] = MappingProxyType(
    {
        **dict.fromkeys(SHUFFLE.values(), _shuffle),
        **dict.fromkeys(VOTE.values(), _vote),
        **dict.fromkeys(MATCH.values(), _match),
        **dict.fromkeys(_REDUCED, _reduce),
        **{WARP_BARRIER: _nothing, ACTIVE_MASK: _active},
    }
)


# -- the function of a block


def _block_function(frames: Frames, states: list[int], checks: bool) -> list[str]:
    """Return what runs all warps from a state on, and then from the next one if all threads are in it."""
    code: list[str] = []
    for state in states:
        met = ["call void @quiesce_kernel_barrier(ptr %context)"] if checks and state else []
        code += [f"S{state}:", *met, *_share(frames, state), *_rows(state)]
    cases = " ".join(f"i32 {state}, label %S{state}" for state in states)
    others = " ".join(f"i32 {state}, label %S{state}" for state in states if state)
    return [
        "define i32 @quiesce_kernel_together"
        f"(ptr noalias nocapture readonly %context, ptr noalias %frames, i32 %from) {ATTRIBUTES} {{",
        "entry:",
        *_sizes(),
        f"switch i32 %from, label %apart [{cases}]",
        *code,
        *_decide(others),
        "}",
    ]


def _sizes() -> list[str]:
    lines = []
    for number, name in enumerate(("width", "height", "depth")):
        lines.append(f"%{name}.place = getelementptr i8, ptr %context, i64 {BLOCK + 4 * number}")
        lines.append(f"%{name} = load i32, ptr %{name}.place, {INVARIANT}, !range !1")
    return [*lines, "%area = mul nuw nsw i32 %width, %height", "%threads = mul nuw nsw i32 %area, %depth"]


def _share(frames: Frames, state: int) -> list[str]:
    """Return what takes the values that are the same for all threads from the first one, which writes others soon."""
    lines = []
    kept = frames.kept(frames.states[state - 1].kept) if state else ()
    for number, register in enumerate(each for each in kept if each in frames.uniform):
        own, type_ = f"%S{state}.u{number}", type_of(register)
        lines += [
            f"{own}.from = getelementptr i8, ptr %frames, i64 {frames.place_of(register)}",
            f"{own} = load {type_}, ptr {own}.from",
            f"{own}.to = getelementptr i8, ptr %frames, i64 {frames.shared_place_of(register)}",
            f"store {type_} {own}, ptr {own}.to",
        ]
    return lines


def _rows(state: int) -> list[str]:
    p = f"S{state}."
    return f"""br label %{p}row
{p}row:
%{p}linear = phi i32 [0, %S{state}], [%{p}next, %{p}more]
%{p}x = urem i32 %{p}linear, %width
%{p}line = udiv i32 %{p}linear, %width
%{p}y = urem i32 %{p}line, %height
%{p}z = udiv i32 %{p}line, %height
%{p}wide = zext nneg i32 %{p}linear to i64
%{p}left = sub nuw nsw i32 %threads, %{p}linear
%{p}end = call i32 @{WARP_ROW}{state}(ptr %context, ptr %frames, i32 %{p}x, i32 %{p}y, i32 %{p}z, i32 %{p}linear, \
i64 %{p}wide, i32 %width, i32 %height, i32 %{p}left)
%{p}failed = icmp slt i32 %{p}end, 0
br i1 %{p}failed, label %{p}fails, label %{p}more, !prof !7
{p}fails:
ret i32 %{p}end
{p}more:
%{p}next = add nuw nsw i32 %{p}linear, {WARP_LANES}
%{p}done = icmp uge i32 %{p}next, %threads
br i1 %{p}done, label %decide, label %{p}row""".split("\n")


def _decide(cases: str) -> list[str]:
    """Return what goes on with the state of all threads, where that is one."""
    return f"""decide:
br label %look
look:
%looked = phi i32 [0, %decide], [%looked.next, %look]
%or = phi i32 [0, %decide], [%or.next, %look]
%and = phi i32 [-1, %decide], [%and.next, %look]
%state.place = getelementptr i32, ptr %frames, i32 %looked
%state = load i32, ptr %state.place
%or.next = or i32 %or, %state
%and.next = and i32 %and, %state
%looked.next = add nuw nsw i32 %looked, 1
%all.looked = icmp eq i32 %looked.next, %threads
br i1 %all.looked, label %decided, label %look
decided:
%is.one = icmp eq i32 %or.next, %and.next
br i1 %is.one, label %one, label %apart
one:
switch i32 %or.next, label %apart [i32 {DONE}, label %ended {cases}]
ended:
ret i32 {ENDED}
apart:
ret i32 {APART}""".split("\n")
