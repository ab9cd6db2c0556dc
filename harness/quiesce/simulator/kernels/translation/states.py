"""What the threads of a block run from one state on: from a barrier, or the beginning, to where each waits again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from quiesce.simulator.kernels.ptx.operands import Register
from quiesce.simulator.kernels.translation.control_flow import Flow
from quiesce.simulator.kernels.translation.coroutine_frames import Frames, set_register
from quiesce.simulator.kernels.translation.emitter import Emitter, Suspension
from quiesce.simulator.kernels.translation.function_body import translate_block
from quiesce.simulator.kernels.translation.instructions.table import handler_of
from quiesce.simulator.kernels.translation.spin_loops import SUSPENDING

Position = tuple[int, int]
"""The number of a block, and the place of an instruction in it; -1: its beginning."""


class States(Suspension):
    """Writes what follows a state, in a function for threads that wait."""

    def __init__(self, e: Emitter, flow: Flow, frames: Frames, loops: Mapping[Position, int]) -> None:
        self._e, self._flow, self._frames, self._loops = e, flow, frames, loops
        self._beginnings = self._find_beginnings()
        """The states that threads go on from together, each with the place after which it goes on."""
        self._stops: dict[int, int] = {}
        """Blocks at whose beginning threads stop, with the state of each."""

    def _find_beginnings(self) -> dict[int, Position]:
        frames = self._frames
        found = {frames.entered[target]: (target, -1) for target in self._loops.values()}
        for position, state in frames.places.items():
            if frames.states[state - 1].barrier is not None:
                found[state] = position
        return dict(sorted(found.items()))

    def _begin_again(
        self, live: tuple[Register, ...], shared: dict[Register, str], position: Position, linear: str
    ) -> None:
        """Write what a thread does first in a state, up to the end of the block that it is in."""
        e = self._e
        number, place = position
        self._frames.recompute(e, live)
        for register in self._frames.kept(live):
            if register in shared:
                set_register(e, register, shared[register])
            else:
                self._frames.restore(e, register, linear)
        if place < 0:
            e.emit(f"br label %{e.block_label(number)}")
            return
        instruction = e.instruction = self._flow.blocks[number].instructions[place]
        e.position = position
        with e.within(replace(e.around, suspension=Suspension())):
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
            if waits and instruction.guard is None and self._leaves((number, place)):
                return place + 1
        return None

    def _leaves(self, position: Position) -> bool:
        """Say whether a thread that waits at an instruction leaves the function."""
        return True

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
