"""Faults of parallel runtimes: of their lifecycle, the launch protocol and instances."""

from __future__ import annotations

from typing import Final

from quiesce.allocators.reference.objects import Stream
from quiesce.allocators.reference.runtime import ConstantMemory, Instance, Launcher, Lifecycle
from quiesce.allocators.reference.world import Fault, Parts
from quiesce.model.observations import HandleCreated, HandleDestroyed, HandleKind


class _AlwaysWaits(ConstantMemory):
    """The protocol before kokkos#8094."""

    def acquire(self) -> None:
        if self.event is not None:
            with self.captures.relaxed():
                self.streams.synchronize_event(self.event)


class _TrustsInstances(ConstantMemory):
    """The protocol since kokkos#8094: only finalising an instance drops the wait."""

    def acquire(self) -> None:
        if self.event is not None and self.last_stream is not None:
            with self.captures.relaxed():
                self.streams.synchronize_event(self.event)


class _WaitsInForeignCapture(ConstantMemory):
    def acquire(self) -> None:
        if self.event is not None and self.last_stream is not None and self.last_stream.alive:
            self.streams.synchronize_event(self.event)


class _BeforeFix(Launcher):
    constant_memory_type = _AlwaysWaits


class _SinceFix(Launcher):
    constant_memory_type = _TrustsInstances


class _ForeignCapture(Launcher):
    constant_memory_type = _WaitsInForeignCapture


class _RecordsInCapture(Launcher):
    def may_use_constant_memory(self, stream: Stream) -> bool:
        return True


class _LeaksOwnedStream(Launcher):
    def destroy_instance(self, instance: Instance) -> None:
        self.streams.synchronize_stream(instance.stream)
        self.ledger.see(HandleDestroyed(HandleKind.INSTANCE, instance.name))


def _launch(name: str, upstream: str, mechanism: str, launcher: type[Launcher]) -> Fault:
    return Fault(f"launch.{name}", upstream, mechanism, Parts(launcher=launcher))


class _LeakedSingleton(Lifecycle):
    def destroy_singleton(self) -> None:
        pass


class _PolicyLeaks(Lifecycle):
    def create_policy(self) -> None:
        super().create_policy()
        self.ledger.see(HandleCreated(HandleKind.INSTANCE, "internal:policy"))


class _InitializesTwice(Lifecycle):
    def may_initialize(self) -> bool:
        return True


class _InitializesOnce(Lifecycle):
    def may_initialize(self) -> bool:
        return not self.finalized


def _lifecycle(name: str, upstream: str, mechanism: str, lifecycle: type[Lifecycle]) -> Fault:
    return Fault(f"lifecycle.{name}", upstream, mechanism, Parts(lifecycle=lifecycle))


FAULTS: Final = (
    _launch("waits_on_dead_stream", "kokkos/kokkos#8006", "Every launch waits for the last event.", _BeforeFix),
    _launch("trusts_instances", "kokkos/kokkos#8094", "Only finalised instances drop the wait.", _SinceFix),
    _launch("waits_in_foreign_capture", "kokkos/kokkos#7942", "A launch trips over a capture.", _ForeignCapture),
    _launch("records_in_capture", "kokkos/kokkos#8006", "The event is recorded in a capture.", _RecordsInCapture),
    _launch("leaks_owned_stream", "kokkos/kokkos#3167", "An instance's stream is never destroyed.", _LeaksOwnedStream),
    _lifecycle("leaked_singleton", "kokkos/kokkos#8041", "The singleton is never deleted.", _LeakedSingleton),
    _lifecycle("policy_leaks", "kokkos/kokkos#3817", "Each policy leaves an instance.", _PolicyLeaks),
    _lifecycle("initializes_twice", "kokkos/kokkos#8041", "A second initialise is accepted.", _InitializesTwice),
    _lifecycle("initializes_once", "kokkos/kokkos#8041", "Finalise ends it for good.", _InitializesOnce),
)
