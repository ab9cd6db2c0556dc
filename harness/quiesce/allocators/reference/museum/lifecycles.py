"""Faults of lifecycles."""

from __future__ import annotations

from typing import Final

from quiesce.allocators.reference.runtime import Lifecycle
from quiesce.allocators.reference.world import Fault, Parts
from quiesce.model.observations import HandleCreated, HandleKind


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
    _lifecycle("leaked_singleton", "kokkos/kokkos#8041", "The singleton is never deleted.", _LeakedSingleton),
    _lifecycle("policy_leaks", "kokkos/kokkos#3817", "Each policy leaves an instance.", _PolicyLeaks),
    _lifecycle("initializes_twice", "kokkos/kokkos#8041", "A second initialise is accepted.", _InitializesTwice),
    _lifecycle("initializes_once", "kokkos/kokkos#8041", "Finalise ends it for good.", _InitializesOnce),
)
