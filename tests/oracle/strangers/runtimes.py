"""Runtimes around a backend: one whose streams need stacks, and one that makes no instances before it is up."""

from __future__ import annotations

from quiesce import operations as ops
from quiesce.backend import Context, DeviceProfile, Reply
from quiesce.operations import Operation
from quiesce.outcomes import NOT_INITIALIZED, Allocated, Done, OutOfMemory, Rejected

from .withholding import Withholding, WithholdingContext

_STACK_BYTES = 1 << 20


class StacksOfStreams(Withholding):
    """Another backend whose streams have stacks. Where no memory is left for one, there is no stream."""

    def open(self, profile: DeviceProfile) -> WithholdingContext:
        return StacksContext(self.backend.open(profile), self)


class StacksContext(WithholdingContext):
    """A context in which a stream's stack is a block of the backend's own."""

    def __init__(self, context: Context, by: Withholding) -> None:
        super().__init__(context, by)
        self.made = 0

    def perform(self, operation: Operation) -> Reply:
        if isinstance(operation, ops.CreateStream):
            self.made += 1
            stack = super().perform(ops.Allocate(f"stack[{self.made}]", _STACK_BYTES))
            if not isinstance(stack.outcome, Allocated):
                return Reply(OutOfMemory(), stack.observations)
        return super().perform(operation)


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
