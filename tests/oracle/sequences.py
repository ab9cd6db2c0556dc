"""Random sequences, valid and hostile, for trying backends: seeded, and without regard to what a backend answers."""

from __future__ import annotations

import random
from collections.abc import Iterator

from quiesce.allocators.cases.expansion import PerformStep
from quiesce.model import operations as ops
from quiesce.model.backend import Capability, Description, DeviceProfile
from quiesce.model.operations import FailurePoint, InjectedError, MemoryKind, Operation, Slot

PROFILES = (
    DeviceProfile(),
    DeviceProfile(capacity_bytes=64 << 20, pinned_capacity_bytes=48 << 20),
    DeviceProfile(capacity_bytes=200 << 20, pinned_capacity_bytes=100 << 20, granularity_bytes=4096),
    DeviceProfile(capacity_bytes=128 << 20, pinned_capacity_bytes=64 << 20, devices=2),
)
_SIZES = (1, 7, 256, 511, 512, 513, 4096, 65_536, (1 << 20) - 1, 1 << 20, 3 << 20, 8_000_000, 17 << 20, 40 << 20)
_HOSTILE_SIZES = (0, 0, (1 << 31) - 1, (1 << 32) + 1, (1 << 63) + 5, (1 << 64) - 101, (1 << 64) - 1)


class Sequence:
    """Chooses operations; it knows only what it asked for."""

    def __init__(self, seed: int, description: Description, profile: DeviceProfile) -> None:
        self._random = random.Random(seed)
        self._can = description.capabilities
        self._devices = profile.devices
        self._names = 0
        self._blocks: dict[Slot, MemoryKind] = {}
        self._dead: list[Slot] = []
        self._streams: list[Slot] = []
        self._dead_streams: list[Slot] = []
        self._events: list[Slot] = []
        self._pools: list[Slot] = []
        self._choices = [
            (weight, choose) for weight, choose, needs in self._table() if needs <= description.capabilities
        ]

    def _table(self) -> list[tuple[int, str, set[Capability]]]:
        c = Capability
        return [
            (30, "allocate", {c.MEMORY}),
            (24, "free", {c.MEMORY}),
            (2, "free_again", {c.MEMORY}),
            (3, "trim", {c.POOL}),
            (16, "launch", {c.LAUNCH, c.STREAMS}),
            (4, "fill", {c.FILL}),
            (6, "copy", {c.COPY}),
            (3, "stage", {c.STAGING}),
            (4, "create_stream", {c.STREAMS}),
            (2, "destroy_stream", {c.STREAMS}),
            (5, "stall", {c.STALL}),
            (4, "release", {c.STALL}),
            (6, "query", {c.STREAMS}),
            (4, "synchronize", {c.STREAMS}),
            (8, "event", {c.EVENTS}),
            (2, "pool", {c.POOLS}),
            (2, "device", {c.DEVICES}),
            (1, "inject", {c.INJECTION}),
        ]

    def steps(self, count: int) -> Iterator[PerformStep]:
        """Yield ``count`` steps."""
        weights = [weight for weight, _ in self._choices]
        for choice in self._random.choices(self._choices, weights, k=count):
            yield PerformStep(getattr(self, f"_{choice[1]}")(), None, 0)

    def _name(self, letter: str) -> Slot:
        self._names += 1
        return f"{letter}{self._names}"

    def _pick(self, names: list[Slot]) -> Slot | None:
        return self._random.choice(names) if names and self._random.random() < 0.8 else None

    def _stream(self) -> Slot | None:
        if Capability.STREAMS not in self._can:
            return None
        if self._dead_streams and self._random.random() < 0.01:
            return self._random.choice(self._dead_streams)
        return self._pick(self._streams)

    def _some_block(self, *kinds: MemoryKind) -> Slot | None:
        names = [name for name, kind in self._blocks.items() if not kinds or kind in kinds]
        return self._random.choice(names) if names else None

    def _allocate(self) -> Operation:
        size = self._random.choice(_HOSTILE_SIZES if self._random.random() < 0.04 else _SIZES)
        kinds = [MemoryKind.DEVICE] * 6
        kinds += [kind for kind in list(MemoryKind)[1:] if Capability(str(kind)) in self._can]
        kind = self._random.choice(kinds)
        align = None
        if Capability.ALIGNMENT in self._can and self._random.random() < 0.1:
            align = 1 << self._random.choice((0, 4, 8, 12, 20, 25))
        pool = self._random.choice(self._pools) if self._pools and self._random.random() < 0.4 else None
        kind = MemoryKind.DEVICE if pool else kind
        slot = self._name("b")
        self._blocks[slot] = kind
        return ops.Allocate(slot, size, kind, align, self._stream(), pool)

    def _free(self) -> Operation:
        slot = self._some_block()
        if slot is None:
            return self._allocate()
        del self._blocks[slot]
        self._dead = [*self._dead[-20:], slot]
        return ops.Free(slot, self._stream() if self._random.random() < 0.3 else None)

    def _free_again(self) -> Operation:
        return ops.Free(self._random.choice(self._dead)) if self._dead else self._allocate()

    def _trim(self) -> Operation:
        kinds = [MemoryKind.DEVICE, MemoryKind.DEVICE]
        kinds += [kind for kind in (MemoryKind.PINNED, MemoryKind.MANAGED) if Capability(str(kind)) in self._can]
        if self._pools and self._random.random() < 0.3:
            return ops.Trim(pool=self._random.choice(self._pools))
        return ops.Trim(self._random.choice(kinds))

    def _launch(self) -> Operation:
        names = [name for name, kind in self._blocks.items() if kind is not MemoryKind.PAGEABLE]
        chosen = self._random.sample(names, min(len(names), self._random.randint(0, 3)))
        return ops.Launch(tuple(chosen[:1]), tuple(chosen[1:]), 0, self._stream())

    def _fill(self) -> Operation:
        slot = self._some_block(MemoryKind.DEVICE, MemoryKind.MANAGED)
        return ops.Fill(slot, 1, self._stream()) if slot else self._allocate()

    def _copy(self) -> Operation:
        source, destination = self._some_block(), self._some_block()
        if source is None or destination is None:
            return self._allocate()
        return ops.Copy(source, destination, self._random.choice((None, None, 1, 1 << 30)), self._stream())

    def _stage(self) -> Operation:
        source = self._some_block(MemoryKind.PINNED, MemoryKind.PAGEABLE)
        if source is None:
            return self._allocate()
        slot = self._name("b")
        self._blocks[slot] = MemoryKind.DEVICE
        return ops.Stage(slot, source, self._stream())

    def _create_stream(self) -> Operation:
        if len(self._streams) >= 6:
            return self._query()
        self._streams.append(self._name("s"))
        return ops.CreateStream(self._streams[-1], self._random.random() < 0.6)

    def _destroy_stream(self) -> Operation:
        if not self._streams:
            return self._create_stream()
        slot = self._streams.pop(self._random.randrange(len(self._streams)))
        self._dead_streams = [*self._dead_streams[-3:], slot]
        return ops.DestroyStream(slot)

    def _stall(self) -> Operation:
        return ops.Stall(self._random.choice(self._streams)) if self._streams else self._create_stream()

    def _release(self) -> Operation:
        return ops.Release(self._random.choice(self._streams)) if self._streams else self._create_stream()

    def _query(self) -> Operation:
        return ops.QueryStream(self._pick(self._streams))

    def _synchronize(self) -> Operation:
        return (
            ops.SynchronizeDevice() if self._random.random() < 0.3 else ops.SynchronizeStream(self._pick(self._streams))
        )

    def _event(self) -> Operation:
        if not self._events or self._random.random() < 0.1:
            self._events.append(self._name("e"))
            return ops.CreateEvent(self._events[-1])
        slot = self._random.choice(self._events)
        match self._random.randrange(8):
            case 0 | 1 | 2:
                return ops.RecordEvent(slot, self._stream())
            case 3 | 4:
                return ops.WaitEvent(slot, self._stream())
            case 5:
                return ops.SynchronizeEvent(slot)
            case 6:
                return ops.QueryEvent(slot)
        self._events.remove(slot)
        return ops.DestroyEvent(slot)

    def _pool(self) -> Operation:
        if len(self._pools) < 2:
            limited = Capability.POOL_LIMIT in self._can and self._random.random() < 0.5
            self._pools.append(self._name("p"))
            return ops.CreatePool(self._pools[-1], 48 << 20 if limited else None)
        return ops.DestroyPool(self._pools.pop(0))

    def _device(self) -> Operation:
        return ops.SelectDevice(self._random.randrange(self._devices + (self._random.random() < 0.05)))

    def _inject(self) -> Operation:
        error = self._random.choice(list(InjectedError))
        return ops.InjectFailure(FailurePoint.BACKING, self._random.randint(1, 2), error)
