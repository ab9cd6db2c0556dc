"""Work-group vectorisation: all threads of a block from one wait to the next, as a loop that LLVM can vectorise.

Each state has such a loop: what the threads of the block do from there on until each waits again.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from quiesce.simulator.kernels.ptx.function import Function
from quiesce.simulator.kernels.ptx.operands import Operand, Register
from quiesce.simulator.kernels.translation.affine_evaluation import Again
from quiesce.simulator.kernels.translation.control_flow import Flow, Region, flow_of
from quiesce.simulator.kernels.translation.coroutine_frames import DONE, NEXT, Frames, element_of, type_of
from quiesce.simulator.kernels.translation.data_flow import liveness_of
from quiesce.simulator.kernels.translation.emitter import Around, Emitter, WarpOperands
from quiesce.simulator.kernels.translation.function_body import (
    ATTRIBUTES,
    clear,
    count_memory,
    prepare,
    reserve_memory,
    write_values_before,
)
from quiesce.simulator.kernels.translation.hoisted_checks import Ranges
from quiesce.simulator.kernels.translation.instructions.synchronisation import YIELD
from quiesce.simulator.kernels.translation.llvm_code import (
    BLOCK,
    PARALLEL_ACCESS,
    Code,
    LoopPart,
    LoopShape,
)
from quiesce.simulator.kernels.translation.program import Program
from quiesce.simulator.kernels.translation.spin_loops import waits_for_some
from quiesce.simulator.kernels.translation.states import States
from quiesce.simulator.kernels.translation.stride_specialisation import Strides
from quiesce.simulator.kernels.translation.work_item_loops import LoopNest

ENDED, APART = 0, 1
"""What the function returns: all threads have ended, or not all of them wait at the same barrier."""
Kept = tuple[tuple[Register, ...], dict[Register, str]]
"""The registers that are live where threads go on, and the values of those that all threads share."""
_GROWTH_MAX: Final = 3
_INSTRUCTIONS_MIN: Final = 400


class TogetherShape(LoopShape):
    """The loops of all states: the values of the context are loaded before the first one."""

    def __init__(self, strides: Strides) -> None:
        super().__init__()
        self._strides = strides

    def parameter(self, offset: int, bits: int) -> str:
        """Return a parameter that is loaded before the loops, or the stride that it is taken to be."""
        stride = self._strides.get((offset, bits))
        return super().parameter(offset, bits) if stride is None else str(stride)


class _StateLoop(LoopPart):
    """The loop of one state. ``left``: where a thread leaves values that are the same for all, with their types."""

    def __init__(self, whole: LoopShape, name: str, left: Mapping[str, str]) -> None:
        super().__init__(whole)
        self._name, self._left = name, left

    def index(self, code: Code, axis: int) -> str:
        """Return a variable of the loop."""
        return f"%{self._name}.{'xyz'[axis]}"

    def linear(self, code: Code) -> str:
        """Return a variable of the loop."""
        return f"%{self._name}.linear"

    def finish(self, code: Code, status: int) -> None:
        """Go on with the next thread, or leave the block."""
        if status < 0:
            code.emit(f"ret i32 {status}")
        else:
            self.leave(code, DONE)

    def propagate(self, code: Code, status: str) -> None:
        """Go on with the next thread after an exit, or leave the block."""
        failed, ended = code.new_label(), code.new_label()
        code.emit(f"br i1 {code.define(f'icmp slt i32 {status}, 0')}, label %{failed}, label %{ended}")
        code.place(failed)
        code.emit(f"ret i32 {status}")
        code.place(ended)
        self.leave(code, DONE)

    def leave(self, code: Code, state: int, given: Mapping[str, str] = MappingProxyType({})) -> None:
        """Go on with the next thread, when one waits in a state or has ended."""
        for slot, type_ in self._left.items():  # each thread gives all anew, or LLVM would see one depend on another
            code.store(type_, given.get(slot, "0"), slot)
        code.store("i32", str(state), "%next")
        code.emit(f"br label %{self._name}.next.x")


def together_function(
    program: Program, function: Function, frames: Frames, loops: Mapping[tuple[int, int], int], strides: Strides
) -> list[str]:
    """Return a function that runs all threads of a block together; nothing where that is not worth it."""
    e = prepare(program, function, TogetherShape(strides))
    memory = reserve_memory(e, function, None)
    count_memory(program, function)
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


class Together(States):
    """The function that runs all threads of a block as long as they are together."""

    def __init__(
        self,
        e: Emitter,
        flow: Flow,
        frames: Frames,
        loops: Mapping[tuple[int, int], int],
        entered: tuple[Register, ...],
    ) -> None:
        assert isinstance(e.shape, TogetherShape)
        super().__init__(e, flow, frames, loops)
        self._entered = entered
        self._shape = e.shape
        self._is_whole = True
        """Nothing was met that a thread waits for and that only the runtime knows about."""
        self._memory: list[str] = []
        looped = set(loops.values())
        self._stops = {block: state for block, state in frames.entered.items() if block not in looped}
        kept = [register for state in frames.states for register in frames.kept(state.kept)]
        self._uniform = tuple(dict.fromkeys(register for register in kept if register in frames.uniform))
        self._left_slots = {self._left(register): type_of(register) for register in self._uniform}

    # -- what a thread meets

    def wait(self, e: Emitter, operation: int, operands: WarpOperands, results: tuple[Operand, ...]) -> None:
        """Stop the thread."""
        state = self._frames.places[e.position]
        self._is_whole &= self._frames.states[state - 1].barrier is not None or operation == YIELD
        self._stop(e, state)
        e.place(e.new_label())  # nothing comes here

    def go_back(self, e: Emitter, target: int) -> None:
        """Stop a thread at the end of a round."""
        if e.position in self._loops:
            self._stop(e, self._frames.entered[target])
            e.place(e.new_label())  # nothing comes here

    def _stop(self, e: Emitter, state: int) -> None:
        given = {}
        for register in self._frames.kept(self._frames.states[state - 1].kept):
            if register in self._frames.uniform:
                bits = register.type.bits
                given[self._left(register)] = e.cast(e.read(register, register.type), bits, max(bits, 8))
            else:
                self._frames.save(e, register, _linear(e))
        assert isinstance(e.shape, _StateLoop)
        e.shape.leave(e, state, given)

    def _left(self, register: Register) -> str:
        return f"%left{self._frames.shared_place_of(register)}.{type_of(register)}"

    # -- the loop of a state

    def write(self) -> bool:
        """Write all loops; say whether they are short enough to be worth it."""
        limit = max(_INSTRUCTIONS_MIN, _GROWTH_MAX * sum(len(block.instructions) for block in self._flow.blocks))
        total = self._write_loop(0, (0, -1))
        for state, position in self._beginnings.items():
            total += self._write_loop(state, position)
            if total > limit:
                return False
        return self._is_whole

    def _write_loop(self, state: int, position: tuple[int, int]) -> int:
        """Write the loop of a state, and if it has ranges another one in which they are not judged again."""
        e, name = self._e, f"S{state}"
        e.place(name)
        if e.program.variant.checks and state and self._frames.states[state - 1].barrier is not None:
            e.call("void", "quiesce_kernel_barrier", "ptr %context", attributes="nounwind")
        e.store("i32", "0", "%together.or")
        e.store("i32", "-1", "%together.and")
        live = self._frames.states[state - 1].kept if state else ()
        shared = {r: self._load_shared(r) for r in self._frames.kept(live) if r in self._frames.uniform}
        for register in self._uniform:
            e.store(type_of(register), "0", f"{self._left(register)}.all")
        covered = self._judge_ranges(name, state, position, (live, shared)) if e.program.variant.checks else None
        if covered:
            self._write_threads(f"{name}.judged", state, position, (live, shared), covered)
        else:
            e.emit(f"br label %{name}.each")
        return self._write_threads(f"{name}.each", state, position, (live, shared), calls_checks=bool(covered))

    def _judge_ranges(self, name: str, state: int, position: tuple[int, int], kept: Kept) -> frozenset[tuple[int, int]]:
        """Ask about the ranges that a loop uses, and go on with one of its forms; return the accesses in ranges."""
        e = self._e
        stops, backs = frozenset(self._stops), frozenset(self._loops)
        region = Region(self._flow, e.function, position[0], position[1] + 1, stops, backs, self._end)
        with e.section() as question:
            again = Again(e, self._frames, self._shape)
            ranges = Ranges(e, region, self._shape, again.known(*kept) if state else {})
            if not ranges.covered:
                return frozenset()
            self._memory += [*ranges.write(f"{name}.judged", f"{name}.each"), *again.memory]
        e.lines += question
        return ranges.covered

    def _write_threads(
        self,
        name: str,
        state: int,
        position: tuple[int, int],
        kept: Kept,
        covered: frozenset[tuple[int, int]] = frozenset(),
        *,
        calls_checks: bool = False,
    ) -> int:
        """Write the loop itself; return how many instructions it has."""
        e = self._e
        nest = LoopNest(name, f"{name}.", state=True)
        e.place(name)
        e.lines += nest.head()
        around = Around(_StateLoop(self._shape, name, self._left_slots), self, name, covered, True, calls_checks)
        with e.within(around):
            count = self._write_thread(name, state, position, kept)
        e.place(f"{name}.next.x")
        self._end_loop(name, nest)
        return count

    def _write_thread(self, name: str, state: int, position: tuple[int, int], kept: Kept) -> int:
        """Write what one thread does; return how many instructions that has."""
        e = self._e
        e.place(f"{name}.thread")
        if state:
            self._begin_again(*kept, position, _linear(e))
        else:
            clear(e, self._entered)
            e.emit(f"br label %{e.block_label(0)}")
        count = 0
        for number in self._reached(*position):
            e.place(e.block_label(number))
            if number in self._stops:
                self._stop(e, self._stops[number])
                continue
            self._translate(number, 0)
            count += len(self._flow.blocks[number].instructions)
        return count

    def _end_loop(self, name: str, nest: LoopNest) -> None:
        e = self._e
        for register in self._uniform:  # threads that have a value have the same one: it is collected from any of them
            type_, left = type_of(register), self._left(register)
            values = [e.load(type_, slot) for slot in (left, f"{left}.all")]
            e.store(type_, e.define(f"or {type_} {values[0]}, {values[1]}"), f"{left}.all")
        e.lines += [*_note_state(name), *nest.tail()]
        for register in self._uniform:
            value = e.load(type_of(register), f"{self._left(register)}.all")
            e.store(type_of(register), value, self._shared(register))
        e.emit("br label %decide")

    def _load_shared(self, register: Register) -> str:
        return self._e.load(type_of(register), self._shared(register))

    def _shared(self, register: Register) -> str:
        return self._e.byte_offset("%frames", self._frames.shared_place_of(register))

    # -- the function

    def lines(self, memory: list[str]) -> list[str]:
        """Return the whole function, without the lines around it."""
        e, loops = self._e, self._e.lines
        for axis in range(3):
            self._shape.context(e, BLOCK + 4 * axis, "i32")
        stack = [*self._memory, "%next = alloca i32", "%together.or = alloca i32", "%together.and = alloca i32"]
        for slot, type_ in self._left_slots.items():
            stack += [f"{slot}{end} = alloca {type_}" for end in ("", ".all")]
        with e.section() as ends:
            self._write_ends()
        with e.section() as before:
            write_values_before(e, self._shape)
        return [*memory, *stack, *e.stack_lines(), *before, *ends, *loops]

    def _write_ends(self) -> None:
        """Write where the function begins, and what follows each loop."""
        e = self._e
        cases = " ".join(f"i32 {state}, label %S{state}" for state in self._beginnings)
        e.emit("%is.first = icmp eq i32 %from, 0")
        e.emit("br i1 %is.first, label %S0, label %enter")
        e.place("enter")
        for register in self._uniform:
            value = e.load(type_of(register), e.byte_offset("%frames", self._frames.place_of(register)))
            e.store(type_of(register), value, self._shared(register))
        e.emit(f"switch i32 %from, label %apart [{cases}]")
        e.lines += _decide(cases)
        self._write_apart()

    def _write_apart(self) -> None:
        """Give each thread its own copy of the values that are the same for all."""
        e = self._e
        e.place("apart")
        values = {register: self._load_shared(register) for register in self._uniform}
        e.emit("br label %copy")
        e.place("copy")
        e.emit("%copied = phi i64 [0, %apart], [%copied.next, %copy]")
        for register, value in values.items():
            element = element_of(e, self._frames.place_of(register), register, "%copied")
            e.store(type_of(register), value, element)
        e.emit("%copied.next = add i64 %copied, 1")
        e.emit("%copied.done = icmp eq i64 %copied.next, %threads")
        e.emit("br i1 %copied.done, label %give.back, label %copy")
        e.place("give.back")
        e.emit(f"ret i32 {APART}")


def _linear(e: Emitter) -> str:
    """Return the number of the thread in its block, with 64 bits."""
    return f"{e.shape.linear(e)}.wide"


def _note_state(name: str) -> list[str]:
    """Return what notes the next state of a thread, by itself and together with those of the others."""
    return f"""%{name}.state = load i32, ptr %next
%{name}.state.place = getelementptr i8, ptr %frames, i64 {NEXT}
%{name}.state.own = getelementptr i32, ptr %{name}.state.place, i64 %{name}.linear.wide
store i32 %{name}.state, ptr %{name}.state.own, {PARALLEL_ACCESS}
%{name}.or.before = load i32, ptr %together.or
%{name}.or = or i32 %{name}.or.before, %{name}.state
store i32 %{name}.or, ptr %together.or
%{name}.and.before = load i32, ptr %together.and
%{name}.and = and i32 %{name}.and.before, %{name}.state
store i32 %{name}.and, ptr %together.and""".split("\n")


def _decide(cases: str) -> list[str]:
    """Return what goes on with the state of all threads, where that is one."""
    return f"""decide:
%all.or = load i32, ptr %together.or
%all.and = load i32, ptr %together.and
%is.one = icmp eq i32 %all.or, %all.and
br i1 %is.one, label %one, label %apart
one:
switch i32 %all.or, label %apart [i32 {DONE}, label %ended {cases}]
ended:
ret i32 {ENDED}""".split("\n")
