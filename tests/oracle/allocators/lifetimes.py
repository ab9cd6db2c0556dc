"""Pools that outlive their end, and kinds of memory that share a device: correct benches and faulty ones."""

from __future__ import annotations

from quiesce.model import operations as ops
from quiesce.model.backend import Closing, DeviceProfile
from quiesce.model.operations import MemoryKind, Slot
from quiesce.model.outcomes import Done, Outcome

from .bench import Bench, Trial
from .heap import Heap, NoMemory
from .machine import Stream
from .policy import Policy
from .slabs import CountedSlabs


class StaysForItsBlocks(Bench):
    """A pool that is destroyed with blocks out stays until the last of them is freed."""

    def __init__(self, trial: Trial, profile: DeviceProfile) -> None:
        self.leaving: list[Policy] = []
        super().__init__(trial, profile)

    def destroy_pool(self, slot: Slot) -> Outcome:
        policy = self.pools.get(slot)
        if policy is None or not self.owned(policy):
            return super().destroy_pool(slot)
        self.leaving.append(self.pools.pop(slot))
        return Done()

    def owned(self, policy: Policy) -> list[Slot]:
        return [name for name, block in self.blocks.items() if block.owner is policy]

    def free(self, slot: Slot, on: Slot | None) -> Outcome:
        owner = self.blocks[slot].owner if slot in self.blocks else None
        outcome = super().free(slot, on)
        if isinstance(owner, Policy) and owner in self.leaving and not self.owned(owner):
            self.end(owner)
        return outcome

    def end(self, policy: Policy) -> None:
        """Release a pool whose last block was freed."""
        self.leaving.remove(policy)
        policy.release()

    def close(self) -> Closing:
        for policy in self.leaving:
            policy.release()
        self.leaving.clear()
        return super().close()


class StaysForEver(StaysForItsBlocks):
    """Nobody looks whether the last block of a destroyed pool was freed."""

    def end(self, policy: Policy) -> None:
        """Leave it to the end of the context."""


class OneDevice(Heap):
    """A heap that shares its capacity with ``others``."""

    others: tuple[Heap, ...] = ()

    def _place(self, size: int, align: int) -> int:
        if self.held_bytes + sum(other.held_bytes for other in self.others) + size > self.capacity:
            raise NoMemory
        return super()._place(size, align)


class SharesADevice(Bench):
    """Managed memory and that of the first device share its capacity, and all pools give way to each other."""

    make_heap = OneDevice

    def __init__(self, trial: Trial, profile: DeviceProfile) -> None:
        super().__init__(trial, profile)
        device, managed = self.heaps[MemoryKind.DEVICE, 0], self.heaps[MemoryKind.MANAGED, 0]
        assert isinstance(device, OneDevice)
        assert isinstance(managed, OneDevice)
        device.others, managed.others = (managed,), (device,)

    def take(self, operation: ops.Allocate, size: int, align: int, stream: Stream) -> Outcome:
        try:
            return super().take(operation, size, align, stream)
        except NoMemory:
            self.relieve(operation.kind)
            return super().take(operation, size, align, stream)

    def relieve(self, kind: MemoryKind) -> None:
        """Release what all pools keep."""
        for policy in [*self.pools.values(), *self.policies.values()]:
            assert isinstance(policy, CountedSlabs)
            policy.squeeze()


class ManagedAsksItself(SharesADevice):
    """If managed memory runs out, what is cached of the device's stays."""

    def relieve(self, kind: MemoryKind) -> None:
        if kind is not MemoryKind.MANAGED:
            super().relieve(kind)


class LeavesWhatIsBusy(Bench):
    """What is in flight when its pool is destroyed goes back at the next trim, or when memory runs out."""

    def __init__(self, trial: Trial, profile: DeviceProfile) -> None:
        self.left: list[Policy] = []
        super().__init__(trial, profile)

    def destroy_pool(self, slot: Slot) -> Outcome:
        policy = self.pools.get(slot)
        if policy is None or any(block.owner is policy for block in self.blocks.values()):
            return super().destroy_pool(slot)
        self.left.append(self.pools.pop(slot))
        policy.trim()
        return Done()

    def take(self, operation: ops.Allocate, size: int, align: int, stream: Stream) -> Outcome:
        try:
            return super().take(operation, size, align, stream)
        except NoMemory:
            self.look()
            return super().take(operation, size, align, stream)

    def trim(self, kind: MemoryKind, pool: Slot | None) -> Outcome:
        self.look()
        return super().trim(kind, pool)

    def look(self) -> None:
        """Look whether what destroyed pools left is idle by now."""
        for policy in self.left:
            policy.trim()

    def close(self) -> Closing:
        for policy in self.left:
            policy.release()
        self.left.clear()
        return super().close()


class NeverLooksAgain(LeavesWhatIsBusy):
    """What is in flight when its pool is destroyed stays until the context is closed."""

    def look(self) -> None:
        """Leave it."""
