"""Random operations that the reference and the simulated runtime have to answer alike: order, captures, graphs.

Memory is allocated first and freed last: between the two, the reference's caching pool and the runtime's own functions
differ on purpose.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from quiesce import operations as ops
from quiesce.operations import CaptureMode, Operation, Slot

BLOCKS: Final = ("b1", "b2", "b3")


class OrderSequence:
    """Draws operations on few slots: most are legal, some name what is dead or was never made."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._made: dict[str, list[Slot]] = {"s": [], "e": [], "g": []}
        self._count = 0

    def operations(self, count: int) -> list[Operation]:
        """Return allocations, a few streams and events, and ``count`` operations."""
        begin: list[Operation] = [ops.Allocate(slot, 4096) for slot in BLOCKS]
        begin += [ops.CreateStream(self._new("s"), nonblocking) for nonblocking in (False, True, False)]
        begin += [ops.CreateEvent(self._new("e")), ops.CreateEvent(self._new("e"))]
        return begin + [self._random.choice(_DRAWS)(self) for _ in range(count)]

    def _new(self, kind: str) -> Slot:
        self._count += 1
        self._made[kind].append(slot := f"{kind}{self._count}")
        return slot

    def _old(self, kind: str) -> Slot:
        made = self._made[kind]
        return self._random.choice(made[-5:]) if made else f"{kind}_unknown"

    def _last(self, kind: str) -> Slot:
        slot = self._old(kind)
        if slot in self._made[kind] and self._random.random() < 0.9:
            self._made[kind].remove(slot)
        return slot

    def _stream(self) -> Slot | None:
        return self._old("s") if self._random.random() < 0.8 else None

    def _blocks(self) -> tuple[Slot, ...]:
        return tuple(self._random.sample(BLOCKS, self._random.randrange(3)))


_DRAWS: Final[tuple[Callable[[OrderSequence], Operation], ...]] = (
    *[lambda draw: ops.Launch(draw._blocks(), draw._blocks(), 0, draw._stream())] * 6,
    lambda draw: ops.Copy("b1", "b2", None, draw._stream()),
    lambda draw: ops.Fill("b3", 7, draw._stream()),
    *[lambda draw: ops.CreateStream(draw._new("s"), draw._random.random() < 0.5)] * 2,
    lambda draw: ops.DestroyStream(draw._last("s")),
    *[lambda draw: ops.SynchronizeStream(draw._stream())] * 2,
    *[lambda draw: ops.QueryStream(draw._stream())] * 4,
    *[lambda draw: ops.CreateEvent(draw._new("e"))] * 2,
    lambda draw: ops.DestroyEvent(draw._last("e")),
    *[lambda draw: ops.RecordEvent(draw._old("e"), draw._stream())] * 5,
    *[lambda draw: ops.WaitEvent(draw._old("e"), draw._stream())] * 5,
    *[lambda draw: ops.QueryEvent(draw._old("e"))] * 4,
    *[lambda draw: ops.SynchronizeEvent(draw._old("e"))] * 2,
    lambda draw: ops.SynchronizeDevice(),
    *[lambda draw: ops.Stall(draw._old("s"))] * 4,
    *[lambda draw: ops.Release(draw._old("s"))] * 2,
    *[lambda draw: ops.BeginCapture(draw._old("s"), draw._random.choice(list(CaptureMode)))] * 2,
    *[lambda draw: ops.EndCapture(draw._new("g"), draw._old("s"))] * 4,
    *[lambda draw: ops.LaunchGraph(draw._old("g"), draw._stream())] * 2,
    lambda draw: ops.DestroyGraph(draw._last("g")),
)
