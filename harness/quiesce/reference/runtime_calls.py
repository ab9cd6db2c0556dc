"""The operations on a parallel runtime and on the autodiff tape."""

from __future__ import annotations

from quiesce import operations as ops
from quiesce.outcomes import Done, Outcome
from quiesce.reference.world import World


class RuntimeCalls:
    """Lifecycle and tape operations on a :class:`World`."""

    def __init__(self, world: World) -> None:
        self._world = world

    def initialize(self, operation: ops.Initialize) -> Outcome:
        """Initialise the runtime."""
        self._world.lifecycle.initialize()
        return Done()

    def finalize(self, operation: ops.Finalize) -> Outcome:
        """Finalise the runtime."""
        self._world.lifecycle.finalize()
        return Done()

    def create_instance(self, operation: ops.CreateInstance) -> Outcome:
        """Create an instance on a given stream, or on one of its own."""
        self._make(operation.slot, operation.stream)
        return Done()

    def _make(self, slot: str, stream_slot: str | None) -> None:
        world = self._world
        if stream_slot is None:
            stream = world.streams.create_stream(f"internal:{slot}", world.device)
        else:
            stream = world.stream(stream_slot)
            world.streams.require(stream)
        world.instances[slot] = world.launcher.create_instance(slot, stream, owned=stream_slot is None)

    def destroy_instance(self, operation: ops.DestroyInstance) -> Outcome:
        """Finalise an instance."""
        world = self._world
        world.launcher.destroy_instance(world.instance(operation.slot))
        del world.instances[operation.slot]
        return Done()

    def partition(self, operation: ops.Partition) -> Outcome:
        """Make one instance for each slot."""
        world = self._world
        if operation.instance is None:
            world.lifecycle.require_initialized()
        else:
            world.instance(operation.instance)
        for slot in operation.slots:
            self._make(slot, None)
        return Done()

    def create_policy(self, operation: ops.CreatePolicy) -> Outcome:
        """Create and drop a policy."""
        if operation.instance is not None:
            self._world.instance(operation.instance)
        self._world.lifecycle.create_policy()
        return Done()

    def node(self, operation: ops.Node) -> Outcome:
        """Add a node to the tape."""
        self._world.tape.node(operation.slot, operation.parents)
        return Done()

    def hold(self, operation: ops.Hold) -> Outcome:
        """Hold a node once more."""
        self._world.tape.hold(operation.slot)
        return Done()

    def drop(self, operation: ops.Drop) -> Outcome:
        """Give a hold up."""
        self._world.tape.drop(operation.slot)
        return Done()

    def backward(self, operation: ops.Backward) -> Outcome:
        """Run a backward pass."""
        self._world.tape.backward(operation.slot)
        return Done()

    def collect(self, operation: ops.Collect) -> Outcome:
        """Free what nobody can reach."""
        self._world.tape.collect()
        return Done()

    def mark(self, operation: ops.Mark) -> Outcome:
        """Nothing to do: marks are remembered by whoever drives the backend."""
        return Done()
