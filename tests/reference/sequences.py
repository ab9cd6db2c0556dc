"""Random operations on few slots: most are legal, some name what is dead, unknown or of the wrong kind."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from quiesce.model import operations as ops
from quiesce.model.backend import DeviceProfile, Flavour
from quiesce.model.operations import CaptureMode, FailurePoint, InjectedError, MemoryKind, Operation, Slot

SIZES: Final = (0, 1, 511, 512, 513, 4096, 60_000, 1 << 20, (1 << 20) + 1, 3 << 20, 9 << 20, 1 << 64)
PROFILES: Final = (
    DeviceProfile(capacity_bytes=32 << 20, pinned_capacity_bytes=8 << 20),
    DeviceProfile(capacity_bytes=32 << 20, pinned_capacity_bytes=8 << 20, granularity_bytes=4096, alignment_bytes=4096),
    DeviceProfile(capacity_bytes=64 << 20, pinned_capacity_bytes=16 << 20, devices=2, flavour=Flavour.HIP),
)


class Sequence:
    """Draws operations; it remembers which slots it made, and forgets them only sometimes when they die."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._made: dict[str, list[Slot]] = {}
        self._count = 0

    def operations(self, count: int) -> list[Operation]:
        """Return ``count`` operations, behind a few that make something to work with."""
        made: list[Operation] = [ops.CreateStream(self.new("s"), nonblocking) for nonblocking in (False, True, False)]
        made += [ops.CreateEvent(self.new("e")), ops.CreateEvent(self.new("e")), ops.CreatePool(self.new("p"), 6 << 20)]
        return made + [self._random.choice(_DRAWS)(self) for _ in range(count)]

    def new(self, kind: str) -> Slot:
        self._count += 1
        slot = f"{kind}{self._count}"
        self._made.setdefault(kind, []).append(slot)
        return slot

    def old(self, kind: str) -> Slot:
        made = self._made.get(kind)
        return self._random.choice(made[-6:]) if made else f"{kind}_unknown"

    def last(self, kind: str) -> Slot:
        """Return a slot that dies now; it may still be named later."""
        slot = self.old(kind)
        made = self._made.get(kind, [])
        if slot in made and self._random.random() < 0.9:
            made.remove(slot)
        return slot

    def stream(self) -> Slot | None:
        return self.old("s") if self._random.random() < 0.8 else None

    def blocks(self) -> tuple[Slot, ...]:
        return tuple(self.old("b") for _ in range(self._random.randrange(3)))

    def allocate(self) -> Operation:
        draw = self._random
        kind = draw.choice([MemoryKind.DEVICE] * 5 + list(MemoryKind))
        pool = self.old("p") if kind is MemoryKind.DEVICE and draw.random() < 0.2 else None
        alignment = draw.choice([None, None, 1, 512, 8192])
        return ops.Allocate(self.new("b"), draw.choice(SIZES), kind, alignment, self.stream(), pool)

    def free(self) -> Operation:
        return ops.Free(self.last("b"), self.stream() if self._random.random() < 0.5 else None)

    def launch(self) -> Operation:
        instance = self.old("i") if self._random.random() < 0.2 else None
        size = self._random.choice([0, 512, 40_000])
        return ops.Launch(self.blocks(), self.blocks(), size, None if instance else self.stream(), instance)


_DRAWS: Final[tuple[Callable[[Sequence], Operation], ...]] = (
    *[Sequence.allocate] * 10,
    *[Sequence.free] * 8,
    *[Sequence.launch] * 6,
    lambda draw: ops.Trim(draw._random.choice(list(MemoryKind))),
    lambda draw: ops.Trim(pool=draw.old("p")),
    lambda draw: ops.Copy(draw.old("b"), draw.old("b"), None, draw.stream()),
    lambda draw: ops.Copy(draw.old("b"), draw.old("b"), 100, draw.stream()),
    lambda draw: ops.Stage(draw.new("b"), draw.old("b"), draw.stream()),
    lambda draw: ops.Fill(draw.old("b"), 7, draw.stream()),
    lambda draw: ops.CreatePool(draw.new("p"), draw._random.choice([None, 1 << 20, 4 << 20])),
    lambda draw: ops.DestroyPool(draw.last("p")),
    *[lambda draw: ops.CreateStream(draw.new("s"), draw._random.random() < 0.5)] * 3,
    lambda draw: ops.DestroyStream(draw.last("s")),
    lambda draw: ops.SynchronizeStream(draw.stream()),
    lambda draw: ops.QueryStream(draw.stream()),
    *[lambda draw: ops.CreateEvent(draw.new("e"))] * 2,
    lambda draw: ops.DestroyEvent(draw.last("e")),
    *[lambda draw: ops.RecordEvent(draw.old("e"), draw.stream())] * 3,
    *[lambda draw: ops.WaitEvent(draw.old("e"), draw.stream())] * 3,
    lambda draw: ops.QueryEvent(draw.old("e")),
    lambda draw: ops.SynchronizeEvent(draw.old("e")),
    lambda draw: ops.SynchronizeDevice(),
    *[lambda draw: ops.Stall(draw.old("s"))] * 2,
    lambda draw: ops.Release(draw.old("s")),
    lambda draw: ops.BeginCapture(draw.old("s"), draw._random.choice(list(CaptureMode))),
    *[lambda draw: ops.EndCapture(draw.new("g"), draw.old("s"))] * 3,
    lambda draw: ops.LaunchGraph(draw.old("g"), draw.stream()),
    lambda draw: ops.DestroyGraph(draw.last("g")),
    lambda draw: ops.SelectDevice(draw._random.choice([0, 0, 0, 1, 2, -1])),
    lambda draw: ops.Initialize(),
    lambda draw: ops.Finalize(),
    lambda draw: ops.CreateInstance(draw.new("i"), draw.stream()),
    lambda draw: ops.DestroyInstance(draw.last("i")),
    lambda draw: ops.Partition((draw.new("i"), draw.new("i"))),
    lambda draw: ops.CreatePolicy(draw._random.choice([None, draw.old("i")])),
    *[lambda draw: ops.Node(draw.new("n"), (draw.old("n"),) if draw._made.get("n") else ())] * 2,
    lambda draw: ops.Hold(draw.old("n")),
    lambda draw: ops.Drop(draw.old("n")),
    lambda draw: ops.Backward(draw.old("n")),
    lambda draw: ops.Collect(),
    lambda draw: ops.InjectFailure(
        draw._random.choice(list(FailurePoint)), draw._random.choice([1, 2]), draw._random.choice(list(InjectedError))
    ),
    lambda draw: ops.Mark("m"),
)
