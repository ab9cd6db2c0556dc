"""What generated sequences ask for at the very limit, where comparisons are off by one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from quiesce.allocators.generation import actions_exhaustion
from quiesce.allocators.generation.decoder import generate_one
from quiesce.allocators.generation.weights import ActionFunction
from quiesce.allocators.generation.writer import Writer
from quiesce.model import operations as ops
from quiesce.model.backend import Capability, Description, DeviceProfile
from quiesce.model.operations import Operation

SEQUENCES = 120
CAN = frozenset({Capability.MEMORY, Capability.CAPACITY, Capability.POOL, Capability.STREAMS})


def requests(
    *, hostile: bool, also: frozenset[Capability] = frozenset()
) -> Iterator[tuple[int, tuple[Operation, ...]]]:
    """Yield the capacity of every sequence and what it asks for."""
    description = Description("any", "1", CAN | also)
    for number in range(SEQUENCES):
        sequence = generate_one(description, 1, number, hostile=hostile)
        yield sequence.device.capacity_bytes, sequence.operations


def sizes_beside_the_capacity(*, hostile: bool) -> set[int]:
    return {
        operation.size_bytes - capacity
        for capacity, operations in requests(hostile=hostile)
        for operation in operations
        if isinstance(operation, ops.Allocate)
    }


def test_all_there_is_is_asked_for() -> None:
    assert 0 in sizes_beside_the_capacity(hostile=False)


def test_one_byte_more_than_there_is_is_asked_for() -> None:
    assert 1 in sizes_beside_the_capacity(hostile=True)


def test_a_backend_that_tells_no_order_is_waited_for_before_a_trim() -> None:
    def waits(also: frozenset[Capability]) -> int:
        return sum(
            isinstance(later, ops.Trim) and isinstance(earlier, ops.SynchronizeDevice)
            for _, operations in requests(hostile=False, also=also)
            for earlier, later in itertools.pairwise(operations)
        )

    assert waits(frozenset()) > 2 * waits(frozenset({Capability.ORDER_LEDGER}))


def test_a_backend_without_streams_is_not_asked_to_wait() -> None:
    can = frozenset(Capability) - {Capability.STREAMS, Capability.DEVICES, Capability.STALL, Capability.CAPTURE}
    asked = {
        type(operation)
        for hostile in (False, True)
        for number in range(SEQUENCES)
        for operation in generate_one(Description("any", "1", can), 1, number, hostile=hostile).operations
    }
    assert {ops.Copy, ops.DestroyPool, ops.Free} <= asked
    assert not asked & {ops.SynchronizeDevice, ops.SynchronizeStream}


def test_a_node_may_lie_below_one_parent_twice_as_below_two() -> None:
    tapes = requests(hostile=False, also=frozenset({Capability.TAPE}))
    pairs = [
        operation.parents
        for _, operations in tapes
        for operation in operations
        if isinstance(operation, ops.Node) and len(operation.parents) == 2
    ]
    assert {len(set(parents)) for parents in pairs} == {1, 2}


@pytest.mark.parametrize(
    "action", [actions_exhaustion.exhaust, actions_exhaustion.churn], ids=lambda action: action.__name__
)
def test_a_tiny_limit_is_exhausted_by_blocks_that_have_bytes(action: ActionFunction) -> None:
    description = Description("any", "1", CAN | {Capability.POOLS, Capability.POOL_LIMIT})
    for a, c in itertools.product((1, 0xE3, 0xFF), range(256)):
        writer = Writer(description, DeviceProfile(), (1,))
        writer.write(ops.CreatePool("p", 2))
        action(writer, a, 0, c)
        asked = [operation.size_bytes for operation in writer.written if isinstance(operation, ops.Allocate)]
        assert asked
        assert min(asked) > 0


INSTANCES = frozenset({Capability.INSTANCES, Capability.LAUNCH, Capability.LIFECYCLE, Capability.INJECTION})


def test_an_instance_uses_blocks_on_a_stream_that_has_a_name() -> None:
    made: dict[str, str | None] = {}
    used = []
    for _, operations in requests(hostile=False, also=INSTANCES):
        for operation in operations:
            match operation:
                case ops.CreateInstance(slot, stream):
                    made[slot] = stream
                case ops.Launch(writes=(_,), instance=str(instance)):
                    used.append(made[instance])
    assert used
    assert None not in used  # what happens on a stream of an instance's own has a name that a library may not know


def behind_failures(also: frozenset[Capability]) -> Iterator[Operation]:
    """Yield what is asked for right behind an injected failure."""
    for _, operations in requests(hostile=False, also=also | {Capability.INJECTION}):
        for earlier, later in itertools.pairwise(operations):
            if isinstance(earlier, ops.InjectFailure):
                yield later


def test_a_call_fails_below_every_pool() -> None:
    pools = frozenset({Capability.POOLS, Capability.POOL_LIMIT})
    asked = {later.pool is None for later in behind_failures(pools) if isinstance(later, ops.Allocate)}
    assert asked == {True, False}


def test_a_call_fails_below_a_runtime() -> None:
    assert {ops.CreateInstance, ops.Partition, ops.Launch} <= {type(later) for later in behind_failures(INSTANCES)}
