"""Actions that propose legal operations on a parallel runtime, its instances, and an autodiff tape."""

from __future__ import annotations

from typing import Final

from quiesce.allocators.generation.actions_memory import allocate_block, free_block, some_streams, work_on
from quiesce.allocators.generation.legality import Legality, judge
from quiesce.allocators.generation.writer import Writer, newest, pick
from quiesce.model import operations as ops
from quiesce.model.backend import Capability

INSTANCES_MAX: Final = 4
NODES_MAX: Final = 40
_PARENT_TWICE: Final = 192
"""From this byte on, both parents of a node may be the same one, as in a square."""
_ARGUMENT_BYTES: Final = (1024, 512, 511, 32767, 32768, 64, 4096, 0)


def initialize(writer: Writer, a: int, b: int, c: int) -> None:
    """Initialise the runtime, or finalise it where it is up."""
    state = writer.state
    if state.initialized:
        finalize(writer, a, b, c)
    elif judge(state, ops.Initialize()) is Legality.LEGAL:
        writer.write(ops.Initialize())


def finalize(writer: Writer, a: int, b: int, c: int) -> None:
    """Finalise the runtime, its instances first."""
    state = writer.state
    for slot in list(state.instances):
        writer.write(ops.DestroyInstance(slot))
    if state.initialized:
        writer.write(ops.Finalize())
    else:
        initialize(writer, a, b, c)


def create_policy(writer: Writer, a: int, b: int, c: int) -> None:
    """Create and drop a policy."""
    if not writer.state.initialized:
        initialize(writer, a, b, c)
        return
    instance = pick(list(writer.state.instances.values()), a >> 1) if a & 1 else None
    writer.write(ops.CreatePolicy(None if instance is None else instance.slot))


def partition(writer: Writer, a: int, b: int, c: int) -> None:
    """Partition the default instance or another."""
    state = writer.state
    if not state.initialized:
        initialize(writer, a, b, c)
    elif len(state.instances) < INSTANCES_MAX:
        instance = pick(list(state.instances.values()), b) if b & 1 else None
        slots = tuple(writer.fresh("x") for _ in range(1 + a % 3))
        writer.write(ops.Partition(slots, None if instance is None else instance.slot))
    else:
        destroy_instance(writer, a, b, c)


def create_instance(writer: Writer, a: int, b: int, c: int) -> None:
    """Create an instance, on a stream of its own or on one of the sequence's."""
    state = writer.state
    if writer.can(Capability.LIFECYCLE) and not state.initialized:
        initialize(writer, a, b, c)
    if len(state.instances) >= INSTANCES_MAX or (writer.can(Capability.LIFECYCLE) and not state.initialized):
        launch_instance(writer, a, b, c)
        return
    stream = writer.named_stream(b) if a & 1 else None
    writer.write(ops.CreateInstance(writer.fresh("x"), None if stream is None else stream.slot))


def destroy_instance(writer: Writer, a: int, b: int, c: int) -> None:
    """Destroy an instance."""
    instance = newest(writer.state.instances.values(), a)
    if instance is None:
        create_instance(writer, a, b, c)
    else:
        writer.write(ops.DestroyInstance(instance.slot))


def launch_instance(writer: Writer, a: int, b: int, c: int) -> None:
    """Launch a kernel with arguments on an instance, or on a stream."""
    if not writer.can(Capability.LAUNCH):
        return
    instance = pick([x for x in writer.state.instances.values() if x.stream.capture is None], b)
    size = _ARGUMENT_BYTES[a % len(_ARGUMENT_BYTES)]
    if instance is None or b % 2 == 1 or writer.state.captures:
        writer.write(ops.Launch(argument_bytes=size, stream=writer.working_stream(c).slot))
    else:
        writer.write(ops.Launch(argument_bytes=size, instance=instance.slot))


def work_on_instance(writer: Writer, a: int, b: int, c: int) -> None:
    """Let an instance use a block on a stream, a stalled one where that can be had; free it, ask for as much elsewhere.

    The instance may go before the block does: then it waits for what it was given.
    """
    state = writer.state
    first, second = some_streams(writer, 2, b)
    if first is second or first.slot is None or first.stalled:
        return
    if len(state.instances) >= INSTANCES_MAX or (writer.can(Capability.LIFECYCLE) and not state.initialized):
        create_instance(writer, a, b, c)
        return
    slot = writer.fresh("x")
    writer.write(ops.CreateInstance(slot, first.slot))
    block = allocate_block(writer, writer.size(a), first if c & 1 else second)
    if not writer.order_use(block, first):
        return
    if c & 2 and writer.can(Capability.STALL):
        writer.write(ops.Stall(first.slot))
    size = _ARGUMENT_BYTES[c >> 5]
    writer.write(ops.Launch(writes=(block.slot,), argument_bytes=size, instance=slot))
    if c & 4:
        writer.write(ops.DestroyInstance(slot))
        if c & 16:
            writer.write(ops.QueryStream(first.slot))
    free_block(writer, block)
    owner = first if c & 8 else second
    work_on(writer, allocate_block(writer, block.size_bytes, owner), owner)


def add_node(writer: Writer, a: int, b: int, c: int) -> None:
    """Add a node below none, one or two of those that are held, or below one of them twice."""
    nodes = list(writer.state.nodes.values())
    if len(nodes) > NODES_MAX:
        drop(writer, a, b, c)
        return
    parents = tuple(node.slot for node in (newest(nodes, b), newest(nodes, c)) if node is not None)
    if c < _PARENT_TWICE:
        parents = tuple(dict.fromkeys(parents))
    writer.write(ops.Node(writer.fresh("n"), parents[: a % 3]))


def hold(writer: Writer, a: int, b: int, c: int) -> None:
    """Hold a node once more."""
    node = newest(writer.state.nodes.values(), a)
    if node is None:
        add_node(writer, a, b, c)
    else:
        writer.write(ops.Hold(node.slot))


def drop(writer: Writer, a: int, b: int, c: int) -> None:
    """Give up a hold."""
    node = newest(writer.state.nodes.values(), a)
    if node is None:
        add_node(writer, a, b, c)
    else:
        writer.write(ops.Drop(node.slot))


def backward(writer: Writer, a: int, b: int, c: int) -> None:
    """Run a backward pass."""
    node = newest(writer.state.nodes.values(), a)
    if node is None:
        add_node(writer, a, b, c)
    else:
        writer.write(ops.Backward(node.slot))


def collect(writer: Writer, a: int, b: int, c: int) -> None:
    """Free what nobody can reach."""
    writer.write(ops.Collect())
