"""What a sequence still owns at its end is given back before its context closes: then whatever is left is a leak."""

from __future__ import annotations

from collections.abc import Iterator

from quiesce import operations as ops
from quiesce.backend import Capability
from quiesce.operations import MemoryKind, Operation
from quiesce.oracle.model import Model
from quiesce.oracle.oracle import Oracle


def giving_back(oracle: Oracle, capabilities: frozenset[Capability], trimmed: MemoryKind | None) -> Iterator[Operation]:
    """Yield what gives everything back. What a sequence trimmed itself at its very end is not trimmed again.

    Then the blocks that it still owned are cached, and the closing has something to give back.
    """
    model = oracle.model
    for slot, state in list(model.streams.items()):
        capture = model.captures.of(state)
        if capture is not None and capture.origin is state:
            yield ops.EndCapture(f"_graph_of_{slot.strip(']').replace('[', '_')}", slot)
    for slot, state in list(model.streams.items()):
        if state.stalled_from is not None:
            yield ops.Release(slot)
    yield from synchronizing(model, capabilities)
    for slot in list(model.graphs):
        yield ops.DestroyGraph(slot)
    freed = [*model.blocks, *model.empty_blocks]
    for slot in freed:
        yield ops.Free(slot)
    for slot in list(model.instances):
        yield ops.DestroyInstance(slot)
    for slot in list(model.events):
        yield ops.DestroyEvent(slot)
    for slot in list(model.streams):
        yield ops.DestroyStream(slot)
    for slot in list(model.pools):
        yield ops.DestroyPool(slot)
    for slot, node in list(model.tape.held.items()):
        for _ in range(node.holds):
            yield ops.Drop(slot)
    if Capability.TAPE in capabilities:
        yield ops.Collect()
    if model.initialized:
        yield ops.Finalize()
    if Capability.POOL in capabilities:
        if freed:  # behind events that the library recorded meanwhile
            yield from synchronizing(model, capabilities)
        if trimmed is not MemoryKind.DEVICE:
            yield ops.Trim()
        if Capability.PINNED in capabilities and trimmed is not MemoryKind.PINNED:
            yield ops.Trim(MemoryKind.PINNED)


def synchronizing(model: Model, capabilities: frozenset[Capability]) -> Iterator[Operation]:
    """Yield what waits for every device."""
    if Capability.STREAMS not in capabilities:
        return
    for device in range(model.profile.devices if Capability.DEVICES in capabilities else 1):
        if Capability.DEVICES in capabilities:
            yield ops.SelectDevice(device)
        yield ops.SynchronizeDevice()
