"""Runtimes around a backend: what they need memory for, and what they refuse, is their own."""

from __future__ import annotations

from quiesce.model import operations as ops
from quiesce.model.backend import Context, DeviceProfile, Reply
from quiesce.model.operations import Operation, Slot
from quiesce.model.outcomes import NOT_INITIALIZED, Allocated, Done, OutOfMemory, Rejected

from .withholding import Withholding, WithholdingContext

_STACK_BYTES = 1 << 20


class StacksOfStreams(Withholding):
    """Another backend whose streams have stacks. Where no memory is left for one, there is no stream."""

    def open(self, profile: DeviceProfile) -> WithholdingContext:
        return StacksContext(self.backend.open(profile), self)


class StacksContext(WithholdingContext):
    """A context in which a stream's stack is a block of the backend's own."""

    def perform(self, operation: Operation) -> Reply:
        if isinstance(operation, ops.CreateStream):
            stack = super().perform(ops.Allocate(_stack(operation.slot), _STACK_BYTES))
            if not isinstance(stack.outcome, Allocated):
                return stack
            return Reply(super().perform(operation).outcome, stack.observations)
        reply = super().perform(operation)
        if isinstance(operation, ops.DestroyStream) and reply.outcome == Done():
            freed = super().perform(ops.Free(_stack(operation.slot)))
            return Reply(reply.outcome, (*reply.observations, *freed.observations))
        return reply


def _stack(stream: Slot) -> Slot:
    return f"stack_of_{stream.strip(']').replace('[', '_')}"


class InitializedFirst(Withholding):
    """Another backend whose runtime makes no instance while it is down, as Kokkos does."""

    def open(self, profile: DeviceProfile) -> WithholdingContext:
        return InitializedFirstContext(self.backend.open(profile), self)


class InitializedFirstContext(WithholdingContext):
    """A context that knows whether the runtime is up."""

    def __init__(self, context: Context, by: Withholding) -> None:
        super().__init__(context, by)
        self.is_up = False

    def perform(self, operation: Operation) -> Reply:
        if isinstance(operation, ops.CreateInstance) and not self.is_up:
            return Reply(Rejected(NOT_INITIALIZED))
        reply = super().perform(operation)
        if reply.outcome == Done() and isinstance(operation, ops.Initialize | ops.Finalize):
            self.is_up = isinstance(operation, ops.Initialize)
        return reply


class ScratchOfLaunches(Withholding):
    """Another backend whose launches need scratch, which is not there for each fifth one. That is seen first."""

    def open(self, profile: DeviceProfile) -> WithholdingContext:
        return ScratchContext(self.backend.open(profile), self)


class ScratchContext(WithholdingContext):
    """A context that counts the launches since memory was asked for."""

    def __init__(self, context: Context, by: Withholding) -> None:
        super().__init__(context, by)
        self.launches: int | None = None

    def perform(self, operation: Operation) -> Reply:
        if isinstance(operation, ops.Allocate) and self.launches is None:
            self.launches = 0
        if isinstance(operation, ops.Launch) and self.launches is not None:
            self.launches += 1
            if self.launches % 5 == 0:
                return Reply(OutOfMemory())
        return super().perform(operation)
