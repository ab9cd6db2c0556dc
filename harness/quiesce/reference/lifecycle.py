"""The lifecycle of a parallel runtime: initialise, its singleton, partitions, finalise.

``finalize`` leaves nothing behind that ``initialize`` made (upstream: kokkos#8041). How often a runtime may be
initialised is a matter of its version: any number of times before Kokkos 4.0, once since.
"""

from __future__ import annotations

from quiesce.backend import Initialization
from quiesce.observations import HandleCreated, HandleDestroyed, HandleKind
from quiesce.outcomes import ALREADY_INITIALIZED, NOT_INITIALIZED
from quiesce.reference.calls import CallRejected
from quiesce.reference.ledger import Ledger

SINGLETON = "internal:singleton"


class Lifecycle:
    """One runtime's state."""

    def __init__(self, initialization: Initialization, ledger: Ledger) -> None:
        self._initialization = initialization
        self.ledger = ledger
        self.initialized = False
        self.finalized = False

    def initialize(self) -> None:
        """Create the singleton."""
        if self.initialized or not self.may_initialize():
            raise CallRejected(ALREADY_INITIALIZED)
        self.initialized = True
        self.create_singleton()

    def may_initialize(self) -> bool:
        """Whether another initialisation is allowed."""
        return not self.finalized or self._initialization is Initialization.REPEATABLE

    def finalize(self) -> None:
        """Destroy the singleton."""
        self.require_initialized()
        self.initialized = False
        self.finalized = True
        self.destroy_singleton()

    def create_singleton(self) -> None:
        """Make the default instance."""
        self.ledger.see(HandleCreated(HandleKind.INSTANCE, SINGLETON))

    def destroy_singleton(self) -> None:
        """Free the default instance."""
        self.ledger.see(HandleDestroyed(HandleKind.INSTANCE, SINGLETON))

    def create_policy(self) -> None:
        """Create and drop a policy: it refers to an instance and owns nothing."""
        self.require_initialized()

    def require_initialized(self) -> None:
        """Refuse what needs an initialised runtime."""
        if not self.initialized:
            raise CallRejected(NOT_INITIALIZED)
