"""A parallel runtime: how it begins and ends, and how it launches kernels.

Its lifecycle is initialise, a singleton, partitions, finalise. In its launch protocol kernel arguments go by value,
through constant memory, or globally.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from quiesce.allocators.reference.captures import Captures
from quiesce.allocators.reference.ledger import CallRejected, Ledger
from quiesce.allocators.reference.objects import Event, Stream
from quiesce.allocators.reference.streams import Streams
from quiesce.model.backend import Initialization
from quiesce.model.observations import HandleCreated, HandleDestroyed, HandleKind
from quiesce.model.outcomes import ALREADY_INITIALIZED, NOT_INITIALIZED

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


CONSTANT_MEMORY_FROM_BYTES: Final = 512
CONSTANT_MEMORY_BELOW_BYTES: Final = 32 << 10


@dataclass(slots=True, eq=False)
class Instance:
    """An execution-space instance; ``owned`` says whether its stream is destroyed with it."""

    name: str
    stream: Stream
    owned: bool


class ConstantMemory:
    """The lock on one device's constant memory: an event, the stream behind it, and whether it must be waited for."""

    def __init__(self, streams: Streams, captures: Captures, device: int) -> None:
        self.streams = streams
        self.captures = captures
        self.device = device
        self.event: Event | None = None
        self.last_stream: Stream | None = None

    def acquire(self) -> None:
        """Wait until the previous launch has read the staging buffer, if it may still be reading."""
        if self.event is not None and self.last_stream is not None and self.last_stream.alive:
            with self.captures.relaxed():  # another stream's capture is none of this launch's business
                self.streams.synchronize_event(self.event)
        self.last_stream = None

    def release(self, stream: Stream) -> None:
        """Record that ``stream`` now reads the buffer."""
        if self.event is None:
            self.event = self.streams.create_internal_event(self.device)
        self.streams.record(self.event, stream)
        self.last_stream = stream

    def forget(self, stream: Stream) -> None:
        """Drop the wait on ``stream``: it was fenced and is about to go."""
        if self.last_stream is stream:
            self.last_stream = None

    def destroy(self) -> None:
        """Destroy the event."""
        if self.event is not None:
            self.streams.destroy_event(self.event)
            self.event = None


class Launcher:
    """Launches kernels and keeps instances."""

    constant_memory_type: type[ConstantMemory] = ConstantMemory

    def __init__(self, streams: Streams, captures: Captures, ledger: Ledger, devices: int) -> None:
        self.streams = streams
        self.ledger = ledger
        self.constant_memory = [self.constant_memory_type(streams, captures, device) for device in range(devices)]

    def create_instance(self, name: str, stream: Stream, *, owned: bool) -> Instance:
        """Create an instance on ``stream``."""
        self.ledger.see(HandleCreated(HandleKind.INSTANCE, name))
        return Instance(name, stream, owned)

    def destroy_instance(self, instance: Instance) -> None:
        """Finalise an instance: fence its stream and leave no wait on it behind."""
        if instance.stream.alive:
            self.streams.synchronize_stream(instance.stream)
            self.constant_memory[instance.stream.device].forget(instance.stream)
            if instance.owned:
                self.streams.destroy_stream(instance.stream)
        self.ledger.see(HandleDestroyed(HandleKind.INSTANCE, instance.name))

    def prepare(self, argument_bytes: int, stream: Stream) -> ConstantMemory | None:
        """Get the arguments to where the kernel reads them; return the constant memory that must be released."""
        if not CONSTANT_MEMORY_FROM_BYTES <= argument_bytes < CONSTANT_MEMORY_BELOW_BYTES:
            return None
        if not self.may_use_constant_memory(stream):
            return None
        memory = self.constant_memory[stream.device]
        memory.acquire()
        return memory

    def may_use_constant_memory(self, stream: Stream) -> bool:
        """Whether the protocol applies: an event recorded in a capture could never be waited for."""
        return stream.capture is None

    def release(self) -> None:
        """Destroy what the launcher keeps for itself."""
        for memory in self.constant_memory:
            memory.destroy()
