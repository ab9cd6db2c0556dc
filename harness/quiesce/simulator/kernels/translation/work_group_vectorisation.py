"""Work-group vectorisation: all threads of a block from one wait to the next, as a loop that LLVM can vectorise.

Each state has such a loop: what the threads of the block do from there on until each waits again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from quiesce.simulator.kernels.ptx.operands import Operand, Register
from quiesce.simulator.kernels.translation.access_recording import SHARED_LINE
from quiesce.simulator.kernels.translation.affine_evaluation import Again
from quiesce.simulator.kernels.translation.control_flow import Flow, Region
from quiesce.simulator.kernels.translation.coroutine_frames import NEXT, Frames, element_of, set_register, type_of
from quiesce.simulator.kernels.translation.emitter import Emitter, WarpOperands
from quiesce.simulator.kernels.translation.function_body import translate_block, write_values_before
from quiesce.simulator.kernels.translation.hoisted_checks import Ranges
from quiesce.simulator.kernels.translation.instructions.synchronisation import YIELD
from quiesce.simulator.kernels.translation.instructions.table import handler_of
from quiesce.simulator.kernels.translation.llvm_code import BLOCK, Code, LoopShape
from quiesce.simulator.kernels.translation.spin_loops import SUSPENDING

ENDED, APART = 0, 1
"""What the function returns: all threads have ended, or not all of them wait at the same barrier."""
DONE: Final = -1
HEAD: Final = f"""br label %$.head.z
$.head.z:
%$.z = phi i32 [0, %$], [%$.z.next, %$.next.z]
%$.z.rows = mul i32 %$.z, %c{BLOCK + 4}.i32
br label %$.head.y
$.head.y:
%$.y = phi i32 [0, %$.head.z], [%$.y.next, %$.next.y]
%$.row = add i32 %$.z.rows, %$.y
%$.row.first = mul i32 %$.row, %c{BLOCK}.i32
br label %$.head.x
$.head.x:
%$.x = phi i32 [0, %$.head.y], [%$.x.next, %$.next.x]
%$.linear = add nuw nsw i32 %$.row.first, %$.x
%$.linear.wide = zext i32 %$.linear to i64
br label %$.thread""".split("\n")
TAIL: Final = f"""%$.state = load i32, ptr %next
%$.state.place = getelementptr i8, ptr %frames, i64 {NEXT}
%$.state.own = getelementptr i32, ptr %$.state.place, i64 %$.linear.wide
store i32 %$.state, ptr %$.state.own, !llvm.access.group !4
%$.or.before = load i32, ptr %together.or
%$.or = or i32 %$.or.before, %$.state
store i32 %$.or, ptr %together.or
%$.and.before = load i32, ptr %together.and
%$.and = and i32 %$.and.before, %$.state
store i32 %$.and, ptr %together.and
%$.x.next = add nuw nsw i32 %$.x, 1
%$.x.done = icmp eq i32 %$.x.next, %c{BLOCK}.i32
br i1 %$.x.done, label %$.next.y, label %$.head.x, !llvm.loop !5
$.next.y:
%$.y.next = add nuw nsw i32 %$.y, 1
%$.y.done = icmp eq i32 %$.y.next, %c{BLOCK + 4}.i32
br i1 %$.y.done, label %$.next.z, label %$.head.y
$.next.z:
%$.z.next = add nuw nsw i32 %$.z, 1
%$.z.done = icmp eq i32 %$.z.next, %c{BLOCK + 8}.i32
br i1 %$.z.done, label %$.done, label %$.head.z
$.done:""".split("\n")
DECIDE: Final = f"""decide:
%all.or = load i32, ptr %together.or
%all.and = load i32, ptr %together.and
%is.one = icmp eq i32 %all.or, %all.and
br i1 %is.one, label %one, label %apart
one:
switch i32 %all.or, label %apart [i32 {DONE}, label %ended $]
ended:
ret i32 {ENDED}""".split("\n")


Kept = tuple[tuple[Register, ...], dict[Register, str]]
"""The registers that are live where threads go on, and the values of those that all threads share."""
_GROWTH_MAX: Final = 3
_INSTRUCTIONS_MIN: Final = 400
_ACCESS: Final = re.compile(r"(?:%\S+ = load|store) ")


class TogetherShape(LoopShape):
    """The loops of all states: the values of the context are loaded before the first one."""

    def __init__(self, parameter_bytes: int, guesses: Mapping[tuple[int, int], int]) -> None:
        super().__init__(parameter_bytes)
        self.loop = ""
        """What the names of the loop that is written begin with."""
        self.left: tuple[str, ...] = ()
        """Where a thread leaves values that are the same for all threads; 0 if it has none."""
        self._guesses = guesses

    def parameter(self, offset: int, bits: int) -> str:
        """Return a parameter that is loaded before the loops, or what it is guessed to be."""
        guessed = self._guesses.get((offset, bits))
        return super().parameter(offset, bits) if guessed is None else str(guessed)

    def index(self, code: Code, axis: int) -> str:
        """Return a variable of a loop."""
        return f"%{self.loop}.{'xyz'[axis]}"

    def linear(self, code: Code) -> str:
        """Return a variable of a loop."""
        return f"%{self.loop}.linear"

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
        for slot in self.left:  # each thread gives all of them anew, or LLVM would see one depend on another
            code.emit(f"store {slot.rpartition('.')[2]} {given.get(slot, '0')}, ptr {slot}")
        code.emit(f"store i32 {state}, ptr %next")
        code.emit(f"br label %{self.loop}.next.x")


class Together:
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
        self._e, self._flow, self._frames, self._loops, self._entered = e, flow, frames, loops, entered
        self._shape = e.shape
        self._resuming = False
        self._is_whole = True
        """Nothing was met that a thread waits for and that only the runtime knows about."""
        e.suspension = self
        self._memory: list[str] = []
        self._beginnings = self._find_beginnings()
        looped = set(loops.values())
        self._stops = {block: state for block, state in frames.entered.items() if block not in looped}
        """Blocks at whose beginning threads stop, and each goes on by itself."""
        kept = [register for state in frames.states for register in frames.kept(state.kept)]
        self._uniform = tuple(dict.fromkeys(register for register in kept if register in frames.uniform))
        self._shape.left = tuple(self._left(register) for register in self._uniform)

    # -- what a thread meets

    def wait(self, e: Emitter, operation: int, operands: WarpOperands, results: tuple[Operand, ...]) -> None:
        """Stop the thread; or go on with it, where the loop of its state begins."""
        if self._resuming:
            self._resuming = False
            return
        state = self._frames.places[e.position]
        self._is_whole &= self._frames.states[state - 1].barrier is not None or operation == YIELD
        self._stop(e, state)
        e.place(e.new_label())  # nothing comes here

    def go_back(self, e: Emitter, target: int) -> None:
        """Stop a thread at the end of a round."""
        if e.position in self._loops:
            self._stop(e, self._frames.entered[target])
            e.place(e.new_label())  # nothing comes here

    def area(self, bytes_: int) -> int:
        """Return no place: only the runtime knows what to do with one."""
        return 0

    def result(self, e: Emitter) -> str:
        """Return a result that no barrier has."""
        return "0"

    def predicate(self, e: Emitter) -> str:
        """Return a predicate that no barrier has."""
        return "false"

    def _stop(self, e: Emitter, state: int) -> None:
        given = {}
        for register in self._frames.kept(self._frames.states[state - 1].kept):
            if register in self._frames.uniform:
                bits = register.type.bits
                given[self._left(register)] = e.cast(e.read(register, register.type), bits, max(bits, 8))
            else:
                self._frames.save(e, register, self._linear())
        self._shape.leave(e, state, given)

    def _linear(self) -> str:
        return f"%{self._shape.loop}.linear.wide"

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

    def _find_beginnings(self) -> dict[int, tuple[int, int]]:
        """Return the states that have a loop, each with the place after which it goes on."""
        frames = self._frames
        found = {frames.entered[target]: (target, -1) for target in self._loops.values()}
        for position, state in frames.places.items():
            if frames.states[state - 1].barrier is not None:
                found[state] = position
        return dict(sorted(found.items()))

    def _write_loop(self, state: int, position: tuple[int, int]) -> int:
        """Write the loop of a state, and if it has ranges another one in which they are not judged again."""
        e, name = self._e, f"S{state}"
        e.place(name)
        if e.program.checks and state and self._frames.states[state - 1].barrier is not None:
            e.call("void", "quiesce_kernel_barrier", "ptr %context", attributes="nounwind")
        e.emit("store i32 0, ptr %together.or")
        e.emit("store i32 -1, ptr %together.and")
        live = self._frames.states[state - 1].kept if state else ()
        shared = {r: self._load_shared(r) for r in self._frames.kept(live) if r in self._frames.uniform}
        for register in self._uniform:
            e.emit(f"store {type_of(register)} 0, ptr {self._left(register)}.all")
        covered = self._judge_ranges(name, state, position, (live, shared)) if e.program.checks else None
        if covered:
            self._write_threads(f"{name}.judged", state, position, (live, shared), covered)
        else:
            e.emit(f"br label %{name}.each")
        return self._write_threads(f"{name}.each", state, position, (live, shared), frozenset())

    def _judge_ranges(self, name: str, state: int, position: tuple[int, int], kept: Kept) -> frozenset[tuple[int, int]]:
        """Ask about the ranges that a loop uses, and go on with one of its forms; return the accesses in ranges."""
        e, begin = self._e, len(self._e.lines)
        stops, backs = frozenset(self._stops), frozenset(self._loops)
        region = Region(self._flow, e.function, position[0], position[1] + 1, stops, backs, self._end)
        again = Again(e, self._frames, self._shape)
        ranges = Ranges(e, region, self._shape, again.known(*kept) if state else {})
        if ranges.covered:
            self._memory += [*ranges.write(f"{name}.judged", f"{name}.each"), *again.memory]
        else:
            del e.lines[begin:]
        return ranges.covered

    def _write_threads(
        self, name: str, state: int, position: tuple[int, int], kept: Kept, covered: frozenset[tuple[int, int]]
    ) -> int:
        """Write the loop itself; return how many instructions it has."""
        e = self._e
        self._shape.loop = e.block_prefix = name
        e.judged_before = covered
        e.place(name)
        for line in HEAD:
            e.emit(line.replace("$", name))
        begin = len(e.lines)
        e.place(f"{name}.thread")
        if state:
            self._begin_again(*kept, position)
        else:
            for register in self._entered:
                e.write(register, "0", register.type)
                if e.has_pointer(register):
                    e.emit(f"store ptr null, ptr {e.pointer_slot(register)}")
            e.emit(f"br label %{e.block_label(0)}")
        count = 0
        for number in self._reached(*position):
            e.place(e.block_label(number))
            if number in self._stops:
                self._stop(e, self._stops[number])
                continue
            self._translate(number, 0)
            count += len(self._flow.blocks[number].instructions)
        self._mark_accesses(begin)
        e.place(f"{name}.next.x")
        self._end_loop(name)
        return count

    def _end_loop(self, name: str) -> None:
        e = self._e
        for register in self._uniform:  # threads that have a value have the same one: it is collected from any of them
            type_, left = type_of(register), self._left(register)
            values = [e.define(f"load {type_}, ptr {slot}") for slot in (left, f"{left}.all")]
            e.emit(f"store {type_} {e.define(f'or {type_} {values[0]}, {values[1]}')}, ptr {left}.all")
        for line in TAIL:
            e.emit(line.replace("$", name))
        for register in self._uniform:
            value = e.define(f"load {type_of(register)}, ptr {self._left(register)}.all")
            e.emit(f"store {type_of(register)} {value}, ptr {self._shared(register)}")
        e.emit("br label %decide")

    def _load_shared(self, register: Register) -> str:
        return self._e.define(f"load {type_of(register)}, ptr {self._shared(register)}")

    def _shared(self, register: Register) -> str:
        return self._e.byte_offset("%frames", self._frames.shared_place_of(register))

    def _begin_again(self, live: tuple[Register, ...], shared: dict[Register, str], position: tuple[int, int]) -> None:
        """Write what a thread does first in the loop of its state, up to the end of the block that it is in."""
        e = self._e
        number, place = position
        self._frames.recompute(e, live)
        for register in self._frames.kept(live):
            if register in shared:
                set_register(e, register, shared[register])
            else:
                self._frames.restore(e, register, self._linear())
        if place < 0:
            e.emit(f"br label %{e.block_label(number)}")
            return
        instruction = e.instruction = self._flow.blocks[number].instructions[place]
        e.position = position
        self._resuming = True
        handler_of(instruction)(e, instruction)
        self._translate(number, place + 1)

    def _translate(self, number: int, first: int) -> None:
        """Write a block from one of its instructions on, up to one at which every thread waits."""
        end = self._end(number, first)
        translate_block(self._e, self._flow, number, first, end)
        if end is not None:
            self._e.emit("unreachable")

    def _end(self, number: int, first: int) -> int | None:
        """Return one more than the place of the first instruction at which every thread waits."""
        for place, instruction in enumerate(self._flow.blocks[number].instructions[first:], start=first):
            waits = (number, place) in self._frames.places and instruction.opcode in SUSPENDING
            if waits and instruction.guard is None:
                return place + 1
        return None

    def _reached(self, first: int, place: int) -> list[int]:
        """Return the blocks that a thread may come to before it waits again, in order."""
        waiting = [first] if place < 0 else list(self._ways_on(first, place + 1))
        found: set[int] = set()
        while waiting:
            number = waiting.pop()
            if number not in found:
                found.add(number)
                waiting += self._ways_on(number, 0)
        return sorted(found)

    def _ways_on(self, number: int, place: int) -> Iterator[int]:
        """Yield the blocks that follow a block from one of its instructions on."""
        stops = not place and number in self._stops
        if not stops and self._end(number, place) is None:
            yield from self._flow.blocks[number].successors

    def _mark_accesses(self, begin: int) -> None:
        lines = self._e.lines
        for place in range(begin, len(lines)):
            if _ACCESS.match(lines[place]) and not lines[place].endswith(SHARED_LINE):
                lines[place] += ", !llvm.access.group !4"

    # -- the function

    def lines(self, memory: list[str]) -> list[str]:
        """Return the whole function, without the lines around it."""
        e = self._e
        cases = " ".join(f"i32 {state}, label %S{state}" for state in self._beginnings)
        loops, e.lines = e.lines, []
        for axis in range(3):
            self._shape.context(e, BLOCK + 4 * axis, "i32")
        stack = [*self._memory, "%next = alloca i32", "%together.or = alloca i32", "%together.and = alloca i32"]
        for register in self._uniform:
            stack += [f"{self._left(register)}{end} = alloca {type_of(register)}" for end in ("", ".all")]
        ends = self._ends(cases)
        before = self._before()
        return [*memory, *stack, *e.stack_lines(), *before, *ends, *loops]

    def _before(self) -> list[str]:
        e = self._e
        e.lines = []
        write_values_before(e, self._shape)
        return e.lines

    def _ends(self, cases: str) -> list[str]:
        e = self._e
        e.emit("%is.first = icmp eq i32 %from, 0")
        e.emit("br i1 %is.first, label %S0, label %enter")
        e.place("enter")
        for register in self._uniform:
            own = e.byte_offset("%frames", self._frames.place_of(register))
            value = e.define(f"load {type_of(register)}, ptr {own}")
            e.emit(f"store {type_of(register)} {value}, ptr {self._shared(register)}")
        e.emit(f"switch i32 %from, label %apart [{cases}]")
        for line in DECIDE:
            e.emit(line.replace("$", cases))
        self._write_apart()
        return e.lines

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
            e.emit(f"store {type_of(register)} {value}, ptr {element}")
        e.emit("%copied.next = add i64 %copied, 1")
        e.emit("%copied.done = icmp eq i64 %copied.next, %threads")
        e.emit("br i1 %copied.done, label %give.back, label %copy")
        e.place("give.back")
        e.emit(f"ret i32 {APART}")
