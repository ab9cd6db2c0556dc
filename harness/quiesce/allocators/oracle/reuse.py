"""How blocks come, are used and go, and whether their memory was waited for."""

from __future__ import annotations

from collections.abc import Collection

from quiesce.allocators.oracle.blocks import BlockState, Freed
from quiesce.allocators.oracle.captures import CaptureState
from quiesce.allocators.oracle.change import Change, Conflict, Suspect
from quiesce.allocators.oracle.clocks import Clock, StreamState, merge
from quiesce.allocators.oracle.facts import Facts
from quiesce.allocators.oracle.memory import ON_THE_DEVICE, SOME_POOL
from quiesce.model import operations as ops
from quiesce.model.backend import Capability, Promise
from quiesce.model.observations import BackingAllocated, EventRecorded
from quiesce.model.operations import MemoryKind, Slot
from quiesce.model.outcomes import Allocated


def allocate(facts: Facts, operation: ops.Allocate, outcome: Allocated, change: Change) -> None:
    """Enter a block that was made."""
    if operation.size_bytes == 0:
        facts.empty_blocks[operation.slot] = _of_no_bytes(outcome.address)
        if facts.intact is not None:
            facts.intact.take(outcome.address, outcome.address + 1)
        if outcome.address:
            owners = facts.memory.live.overlapping(outcome.address, outcome.address + 1)
            change.overlapped = tuple(owner for _, _, owner in owners)
        return
    stream = facts.stream(operation.stream)
    block = BlockState(
        operation.slot,
        outcome.address,
        operation.size_bytes,
        operation.kind,
        stream or facts.default_streams[facts.device],
        operation.pool,
        facts.device if operation.pool is None else facts.pool_devices.get(operation.pool, facts.device),
        change.origin,
        operation.alignment_bytes or 0,
        graphs=facts.captures.memories,
    )
    change.made = block
    if not facts.sees_order and _may_wait_for_freed(facts, block):
        facts.order.mark(block.stream)  # an allocator may make it wait, unseen, whichever memory it then hands out
    change.overlapped = tuple(facts.memory.add(block))
    _enter_graph(facts, block, change)
    if facts.intact is not None:
        facts.intact.take(block.address, block.end)
    facts.blocks[operation.slot] = block
    if operation.kind in (MemoryKind.PINNED, MemoryKind.PAGEABLE):
        # The host may touch it at once, unless the sequence asked for it in the order of a stream.
        meet(facts, block, None, change, excused_by=stream if operation.stream is not None else None)


def put_back(facts: Facts, operation: ops.Allocate | ops.Stage, change: Change) -> None:
    """Note that what a request had before it failed goes back in the order of its stream."""
    stream = facts.stream(operation.stream)
    if stream is None or (isinstance(operation, ops.Allocate) and operation.kind not in ON_THE_DEVICE):
        return
    if isinstance(operation, ops.Stage):  # it had a block, out of whatever was cached
        facts.memory.put_back(stream, [held for _, _, held in facts.memory.backing])
        return
    taken = [ask.observation for ask in change.asks if isinstance(ask.observation, BackingAllocated)]
    met = (facts.memory.backing.overlapping(seen.address, seen.address + 1) for seen in taken)
    facts.memory.put_back(stream, [held for ranges in met for _, _, held in ranges])


def take_scratch(facts: Facts, stream: StreamState | None) -> None:
    """Note that work which was asked for had memory of its own, even if it failed; in a capture it is the graph's."""
    if stream is not None and facts.captures.of(stream) is None:
        facts.memory.scratch.launch(stream)


def _enter_graph(facts: Facts, block: BlockState, change: Change) -> None:
    """Say which graphs' memory a new block has, and which graph's its own will be."""
    capture = facts.captures.of(block.stream)
    promised = capture is not None and facts.promises(Promise.KEEPS_GRAPH_MEMORY)
    if capture is not None and promised and block.kind is MemoryKind.DEVICE and block.pool is None:
        block.made_in = capture.memory
        block.earlier_in_graph = facts.kept.within(block, capture.memory)
    change.taken_from_graphs += tuple(facts.kept.take(block.address, block.end, block.made_in))


def _of_no_bytes(address: int) -> range:
    """Return where a block of no bytes may lie: at its address, or just before it where a header is all it has."""
    return range(max(0, address - 1), address + 1)


def _may_wait_for_freed(facts: Facts, block: BlockState) -> bool:
    """Whether the block's stream may be made to wait for work that uses freed memory."""
    return block.kind in ON_THE_DEVICE and bool(facts.order.unfinished(facts.memory.freed_behind))


def copy(facts: Facts, operation: ops.Copy, change: Change) -> None:
    """Enter a copy. Pageable memory is not in use once the call has returned.

    A copy from it has read it by then, one to it is complete (CUDA Runtime API, "API synchronization behavior").
    """
    stream = facts.stream(operation.stream)
    slots = (operation.source, operation.destination)
    if stream is not None and not facts.empty_blocks.keys().isdisjoint(slots):
        merge(facts.memory.empty_uses, stream.clock)  # nothing to copy
        return
    pageable = {slot for slot in slots if is_pageable(facts, slot)}
    use(facts, [slot for slot in slots if slot not in pageable], stream, change)
    if stream is None or facts.captures.of(stream) is not None:
        return
    if operation.destination in pageable:
        facts.order.complete(facts.order.snapshot(stream))
    elif operation.source in pageable:
        facts.order.doubt_stalls()  # it may have been waited for


def is_pageable(facts: Facts, slot: Slot) -> bool:
    """Whether a block is ordinary memory of the host."""
    return slot in facts.blocks and facts.blocks[slot].kind is MemoryKind.PAGEABLE


def use(facts: Facts, slots: Collection[Slot], stream: StreamState | None, change: Change) -> None:
    """Enter work on ``stream`` that uses blocks."""
    if stream is None:
        return
    blocks = tuple(facts.blocks[slot] for slot in slots if slot in facts.blocks)
    capture = facts.captures.of(stream)
    if capture is not None:
        capture.add(stream, blocks)
        for block in blocks:
            _meet_in_capture(facts, capture, block, stream, change)
        return
    facts.order.enqueue(stream)
    if len(blocks) < len(slots):
        merge(facts.memory.empty_uses, stream.clock)
    for block in blocks:
        meet(facts, block, stream, change, excused_by=block.stream)
        block.uses.update(stream.clock)


def meet(
    facts: Facts,
    block: BlockState,
    stream: StreamState | None,
    change: Change,
    excused_by: StreamState | None = None,
) -> None:
    """Compare a use by ``stream`` (None: the host) with the work that the memory's earlier owners left.

    The allocator answers for the stream that the block was allocated on (``excused_by``). That others come behind
    that one is the sequence's business.
    """
    order = facts.order
    for earlier in block.inherited:
        if order.is_ordered(earlier.guard, stream) or (
            excused_by is not None and order.is_ordered(earlier.guard, excused_by)
        ):
            continue
        conflict = Conflict(block, earlier.block, order.certainly_pending(earlier.guard))
        if facts.sees_order:
            change.conflicts += (conflict,)
        elif excused_by in (None, stream):
            user = (stream.timeline, stream.enqueued) if stream is not None else None
            facts.evidence.suspect(Suspect(conflict, order.work(earlier.guard), user))


def _meet_in_capture(
    facts: Facts, capture: CaptureState, block: BlockState, stream: StreamState, change: Change
) -> None:
    """Compare captured work with what the memory's earlier owners captured; the allocator answers as in :func:`meet`.

    Where its own records and waits are not observed, it may have captured some.
    """
    if not facts.sees_order or block.made_in is not capture.memory:
        return
    for _, _, earlier in block.earlier_in_graph:
        if not capture.is_behind(stream, earlier.behind) and not capture.is_behind(block.stream, earlier.behind):
            change.conflicts += (Conflict(block, earlier.block, None),)


def _keep_for_graph(facts: Facts, block: BlockState, stream: StreamState) -> None:
    """Note where a graph runs: where its capture freed what it allocated and used, and where it did before."""
    capture = facts.captures.of(stream)
    if block.made_in is None or block.made_in.is_gone:
        return
    if capture is None or block.made_in is not capture.memory or not block.captured_uses:
        facts.kept.restore(block)
        return
    behind = block.captured_uses
    if not facts.promises(Promise.TRACKS_USES):
        behind = _known(behind, capture.known.get(stream.timeline, {}))
    facts.kept.keep(block, capture.memory, behind)


def release_graph(facts: Facts, slot: Slot) -> None:
    """Let the memory of a graph that is destroyed be anybody's who comes behind its launches."""
    graph = facts.graphs.get(slot)
    if graph is None:
        return
    runs = facts.order.work(graph.memory.runs)
    for start, end, kept in facts.kept.release(graph.memory):
        facts.memory.guard(start, end, Freed(runs, kept.block))


def free(facts: Facts, operation: ops.Free, change: Change) -> None:
    """Take a block out that was freed."""
    block = facts.blocks.pop(operation.slot, None)
    if block is None:
        addresses = facts.empty_blocks.pop(operation.slot, range(0))
        behind = facts.order.freed_behind(None, facts.memory.empty_uses)
        facts.memory.remove_empty(addresses, behind, (*facts.streams.values(), *facts.default_streams))
        settle_orphan(facts, operation.slot, change)
        return
    change.freed = block
    stream = _free_stream(facts, block, operation.stream)
    guard = _guard(facts, block, stream)
    if guard.keys() - {stream.timeline}:
        facts.order.disturb(stream, block)  # an allocator may make it wait for the block's work elsewhere
    users: list[StreamState] = []
    if not facts.sees_order and facts.can(Capability.STREAMS):
        facts.order.doubt_idleness(stream, block.uses, block)  # an allocator may have recorded events there, unseen
        users = [block.stream, stream, *facts.order.users(block.uses)]  # and may yet do so
    facts.memory.remove(block, guard, facts.order.freed_behind(stream, block.uses, block), stream, users)
    _keep_for_graph(facts, block, stream)
    if facts.captures.any_active:
        facts.freed_beside_captures.append((block, stream))
    if facts.intact is not None:
        facts.intact.free(block, stream, guard)


def defer_free(facts: Facts, change: Change) -> None:
    """Put frees behind the events that the library recorded for them: a device comes to those in its own time.

    What was freed beside a capture may be seen to when that is over, or in the first call behind it. Frees that are
    seen to several at a time have their events later still, on streams that they had to do with.
    """
    freed = [block for block, _ in facts.freed_beside_captures]
    if change.freed is not None:
        freed.append(change.freed)
    behind: Clock = {}
    for seen in change.observations:
        if isinstance(seen, EventRecorded) and seen.event in facts.internal.events:
            event = facts.internal.events[seen.event]
            if event.capture is None:
                merge(behind, event.clock)
                if event.stream is not None:
                    facts.memory.defer_used_on(event.stream.timeline, event.clock)
    for block in freed if behind else ():
        facts.memory.defer(block, behind)


def doubt_freed_beside_captures(facts: Facts) -> None:
    """Note that an allocator may only now have recorded events, unseen, for what was freed beside a capture."""
    for block, freed_on in facts.freed_beside_captures:
        stream = facts.remaining(freed_on, block.device)
        facts.order.doubt_idleness(stream, block.uses, None)
        facts.memory.defer(block, facts.order.freed_behind(stream, block.uses))


def _free_stream(facts: Facts, block: BlockState, slot: Slot | None) -> StreamState:
    """Return the stream that a free is ordered on."""
    stream = block.stream if slot is None else facts.stream(slot)
    return facts.default_streams[block.device] if stream is None else facts.remaining(stream, block.device)


def _guard(facts: Facts, block: BlockState, stream: StreamState) -> Clock:
    """Return the work that the block's memory must wait for before it is used again.

    Pageable memory is the host's own: who frees it has waited for its uses.
    """
    if block.kind is MemoryKind.PAGEABLE:
        return {}
    guard = facts.order.work(block.uses)
    if not facts.order.is_busy:
        return guard  # nothing that an earlier owner left can be unfinished either
    inherited: Clock = {}
    for earlier in block.inherited:
        merge(inherited, facts.order.work(earlier.guard))
    if block.kind in ON_THE_DEVICE and not facts.promises(Promise.TRACKS_USES):
        known = facts.order.snapshot(stream)
        guard = _known(guard, known)
        if stream is not block.stream:  # then the sequence has to have ordered the two
            inherited = _known(inherited, known)
    merge(guard, inherited)
    return guard


def _known(clock: Clock, known: Clock) -> Clock:
    return {timeline: number for timeline, number in clock.items() if number <= known.get(timeline, 0)}


def destroy_pool(facts: Facts, pool: Slot, *, is_certain: bool = True) -> None:
    """Take a pool out. The blocks in it may die with it.

    Or it goes once the last of them is freed (CUDA Runtime API, ``cudaMemPoolDestroy``). Until then its memory is
    that of an *orphan*. Where it is not certain that the pool went, or where its blocks are, that is anybody's.
    """
    facts.pools.pop(pool, None)
    memory = facts.memory
    doubtful = (memory.backing.overlapping(each.start, each.stop) for each in facts.empty_blocks.values())
    is_certain = is_certain and not any(held.pool == pool for ranges in doubtful for _, _, held in ranges)
    orphaned = [slot for slot, block in facts.blocks.items() if block.pool == pool]
    for slot in orphaned:
        block = facts.blocks.pop(slot)
        stream = facts.remaining(block.stream, block.device)
        memory.remove(block, {}, facts.order.freed_behind(stream, block.uses), stream, facts.order.users(block.uses))
        facts.empty_blocks[slot] = range(block.address, block.end)
    if not is_certain:
        memory.disown(pool)
    elif orphaned:
        facts.orphans_made += 1
        orphan = f"{pool}{SOME_POOL}{facts.orphans_made}"
        memory.bequeath(pool, orphan)
        facts.orphans[orphan] = set(orphaned)


def settle_orphan(facts: Facts, slot: Slot, change: Change) -> None:
    """Note that a block whose pool was destroyed is gone, and whether it was the last of that pool."""
    orphan = next((name for name, slots in facts.orphans.items() if slot in slots), None)
    if orphan is None:
        return
    facts.empty_blocks.pop(slot, None)
    facts.orphans[orphan].discard(slot)
    if not facts.orphans[orphan]:
        del facts.orphans[orphan]
        change.orphan = orphan
