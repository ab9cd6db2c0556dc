"""Random operations that the reference and the simulated runtime have to answer alike: memory, order, captures, graphs.

Two questions are left out because no document answers them: whether a capture forbids to allocate or free nothing, and
which of two mistakes in one request is reported.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from quiesce.model import operations as ops
from quiesce.model.operations import CaptureMode, MemoryKind, Operation, Slot

CAPACITY_BYTES: Final = 1 << 20
"""Of each memory: little, so that it runs out."""
DEVICES: Final = 2
_SIZES: Final = (1, 511, 512, 513, 4096, 65536, 300_000, 1 << 19, CAPACITY_BYTES, CAPACITY_BYTES + 1, 1 << 45)
_KINDS: Final = (MemoryKind.DEVICE, MemoryKind.DEVICE, MemoryKind.PINNED, MemoryKind.MANAGED)


class RuntimeSequence:
    """Draws operations on few slots: most are legal, some name what is dead or was never made."""

    def __init__(self, random: Random) -> None:
        self._random = random
        # Memory that comes and goes spoils most captures: every other sequence does without.
        self._draws = _ORDER if random.random() < 0.5 else (*_ORDER, *_MEMORY)
        self._made: dict[str, list[Slot]] = {"b": [], "s": [], "e": [], "g": []}
        self._count = 0

    def operations(self, count: int) -> list[Operation]:
        """Return allocations, one of nothing among them, a few streams and events, and ``count`` operations."""
        begin: list[Operation] = [ops.Allocate("nothing", 0), ops.Launch(("nothing",)), ops.Free("nothing")]
        begin += [ops.Allocate(self._new("b"), 4096) for _ in range(3)]
        begin += [ops.CreateStream(self._new("s"), nonblocking) for nonblocking in (False, True, False)]
        begin += [ops.CreateEvent(self._new("e")), ops.CreateEvent(self._new("e"))]
        return begin + [self._random.choice(self._draws)(self) for _ in range(count)]

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
        made = self._made["b"][-5:]
        return tuple(self._random.sample(made, min(len(made), self._random.randrange(3))))

    def _allocate(self) -> Operation:
        return ops.Allocate(self._new("b"), self._random.choice(_SIZES), self._random.choice(_KINDS))

    def _copy_too_much(self) -> Operation:
        return ops.Copy(self._old("b"), self._old("b"), CAPACITY_BYTES + 1)


_ORDER: Final[tuple[Callable[[RuntimeSequence], Operation], ...]] = (
    *[lambda draw: ops.Launch(draw._blocks(), draw._blocks(), 0, draw._stream())] * 6,
    lambda draw: ops.Copy(draw._old("b"), draw._old("b"), None, draw._stream()),
    lambda draw: ops.Fill(draw._old("b"), 7, draw._stream()),
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
    *[lambda draw: ops.SelectDevice(draw._random.randrange(DEVICES + 1))] * 2,  # one of them does not exist
    *[lambda draw: ops.Stall(draw._old("s"))] * 4,
    *[lambda draw: ops.Release(draw._old("s"))] * 2,
    *[lambda draw: ops.BeginCapture(draw._old("s"), draw._random.choice(list(CaptureMode)))] * 2,
    *[lambda draw: ops.EndCapture(draw._new("g"), draw._old("s"))] * 4,
    *[lambda draw: ops.LaunchGraph(draw._old("g"), draw._stream())] * 2,
    lambda draw: ops.DestroyGraph(draw._last("g")),
)
_MEMORY: Final[tuple[Callable[[RuntimeSequence], Operation], ...]] = (
    *[lambda draw: draw._allocate()] * 8,
    *[lambda draw: ops.Free(draw._last("b"))] * 6,
    lambda draw: draw._copy_too_much(),
)
