"""What a request may need at worst, and what is certainly free for it: each bound errs on the allocator's side."""

from __future__ import annotations

import pytest

from quiesce.allocators.oracle.footprints import certain_room, is_in_use, shared_chunks, worst_class, worst_footprint
from quiesce.allocators.oracle.oracle import Oracle
from quiesce.model import operations as ops
from quiesce.model.backend import Capability, Description, DeviceProfile, Promise, Reply
from quiesce.model.observations import BackingAllocated, BackingFreed, Observation
from quiesce.model.operations import MemoryKind, Operation
from quiesce.model.outcomes import Allocated, Done, Outcome

MIB = 1 << 20
CAPACITY_BYTES = 64 * MIB
DEVICE, PINNED, MANAGED = MemoryKind.DEVICE, MemoryKind.PINNED, MemoryKind.MANAGED


class Told:
    """An oracle that is told of operations, and what it knows then."""

    def __init__(self, *promises: Promise, factor: int = 2, chunk_bytes: int = 0, alignment_bytes: int = 1) -> None:
        description = Description(
            "told",
            "1",
            frozenset(Capability),
            frozenset(promises),
            alignment_bytes=alignment_bytes,
            chunk_bytes=chunk_bytes,
            footprint_factor=factor,
        )
        self._oracle = Oracle(
            description, DeviceProfile(capacity_bytes=CAPACITY_BYTES, pinned_capacity_bytes=CAPACITY_BYTES // 2)
        )
        self.model = self._oracle.model

    def of(self, operation: Operation, outcome: Outcome | None = None, *observations: Observation) -> Told:
        found = self._oracle.judge(operation, Reply(outcome or Done(), observations), {}, {}, "")
        assert found == (), found
        return self

    def block(self, slot: str, address: int, size_bytes: int, **options: object) -> Told:
        return self.of(ops.Allocate(slot, size_bytes, **options), Allocated(address))  # type: ignore[arg-type]

    def seen_block(self, slot: str, address: int, size_bytes: int, backing_bytes: int, **options: object) -> Told:
        """Tell of a block with backing memory of its own."""
        kind = options.get("kind", DEVICE)
        backing = BackingAllocated(address, backing_bytes, kind)  # type: ignore[arg-type]
        return self.of(ops.Allocate(slot, size_bytes, **options), Allocated(address), backing)  # type: ignore[arg-type]


def room(told: Told, kind: MemoryKind = DEVICE, pool: str | None = None) -> int:
    return certain_room(told.model, kind, pool)


# -- what a request needs ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size_bytes", "doubled", "tripled", "powers"),
    [
        (1, 1024, 1536, 512),
        (512, 1024, 1536, 512),
        (513, 2048, 3072, 1024),
        (1500, 3072, 4608, 2048),
        (MIB, 2 * MIB, 3 * MIB, MIB),
        (MIB + 1, 2 * MIB + 1024, 3 * MIB + 1536, 2 * MIB),
    ],
)
def test_a_request_needs_its_rounded_size_times_the_factor_and_a_chunk(
    size_bytes: int, doubled: int, tripled: int, powers: int
) -> None:
    for factor, expected in ((2, doubled), (3, tripled), (1, powers)):
        told = Told(factor=factor, chunk_bytes=100)
        assert worst_footprint(told.model, DEVICE, size_bytes) == expected + 100
        assert worst_class(told.model, size_bytes) == expected


def test_a_block_in_a_chunk_may_have_a_power_of_two() -> None:
    assert [worst_class(Told().model, size) for size in (0, 1, 512, 513, 1024, 5000)] == [
        *(1, 1024, 1024, 2048, 2048, 10240)
    ]


def test_a_large_request_takes_no_more_than_it_is_promised() -> None:
    exact = Told(Promise.EXACT_FOOTPRINT, chunk_bytes=100).model
    assert worst_footprint(exact, DEVICE, MIB + 1) == worst_footprint(exact, MANAGED, MIB + 1) == MIB + 512
    assert worst_footprint(exact, DEVICE, MIB) == 2 * MIB + 100, "it is not large"
    assert worst_footprint(exact, PINNED, MIB + 1) == 2 * MIB + 1024 + 100, "nobody promises that of pinned memory"


def test_an_alignment_beyond_the_backends_own_costs_as_much_again() -> None:
    model = Told(alignment_bytes=256).model
    assert worst_footprint(model, DEVICE, 512, 256) == 1024
    assert worst_footprint(model, DEVICE, 512, 257) == 2 * (512 + 512)
    assert worst_footprint(model, DEVICE, 512, 513) == 2 * (512 + 1024)


# -- what is certainly free, where nobody sees the backing memory ------------------------------------------------------


def test_blocks_take_what_they_may_at_worst_and_part_the_rest() -> None:
    told = Told(chunk_bytes=1000)
    assert room(told) == CAPACITY_BYTES
    told.block("a", 1 << 30, MIB - 1)
    assert room(told) == (CAPACITY_BYTES - 2 * MIB - 1000) // 2
    told.block("b", 1 << 31, 1)
    assert room(told) == (CAPACITY_BYTES - 2 * MIB - 1024 - 2000) // 3
    assert room(told, MANAGED) == 0, "another kind of the same memory was used"
    assert room(told, PINNED) == CAPACITY_BYTES // 2


@pytest.mark.parametrize("kind", [DEVICE, PINNED])
def test_each_kind_has_its_capacity(kind: MemoryKind) -> None:
    assert room(Told(), kind) == (CAPACITY_BYTES if kind is DEVICE else CAPACITY_BYTES // 2)


def test_there_is_no_room_for_certain_that_work_may_still_use() -> None:
    for promises in ((), (Promise.WAITS_BEFORE_OOM,)):
        told = Told(*promises).of(ops.CreateStream("s")).block("a", 1 << 30, MIB, stream="s")
        told.of(ops.Launch(stream="s", writes=("a",))).of(ops.Free("a"))
        assert room(told) == (CAPACITY_BYTES if promises else 0)
        told.of(ops.SynchronizeDevice())
        assert room(told) == CAPACITY_BYTES


def test_pinned_memory_is_not_certain_once_something_was_staged() -> None:
    told = Told()
    told.model.staged = True
    assert (room(told, PINNED), room(told)) == (0, CAPACITY_BYTES)


def test_a_limit_bounds_the_room_of_its_pool() -> None:
    told = Told(Promise.SHARES_BACKING).of(ops.CreatePool("p", limit_bytes=MIB)).of(ops.CreatePool("q"))
    assert (room(told), room(told, pool="p"), room(told, pool="q")) == (CAPACITY_BYTES, MIB, CAPACITY_BYTES)
    told.block("a", 1 << 30, 512, pool="p")
    assert room(told, pool="p") < MIB - 1000
    unshared = Told().of(ops.CreatePool("p", limit_bytes=MIB))
    assert room(unshared, pool="p") == room(unshared) == 0


# -- where the backing memory is seen ----------------------------------------------------------------------------------


def test_backing_ranges_that_hold_a_block_part_the_rest() -> None:
    told = Told().seen_block("a", 1 << 30, 100, 2 * MIB)
    assert room(told) == (CAPACITY_BYTES - 2 * MIB) // 2
    told.of(ops.Free("a"))
    assert room(told) == CAPACITY_BYTES, "nothing is in it any more"
    told.of(ops.Trim(), None, BackingFreed(1 << 30, 2 * MIB, DEVICE))
    assert room(told) == CAPACITY_BYTES


def test_work_keeps_a_range_in_use_unless_it_is_waited_for() -> None:
    for promises in ((), (Promise.WAITS_BEFORE_OOM,)):
        told = Told(*promises).of(ops.CreateStream("s")).seen_block("a", 1 << 30, 100, 2 * MIB, stream="s")
        told.of(ops.Launch(stream="s", writes=("a",))).of(ops.Free("a"))
        ((start, end, held),) = told.model.memory.backing
        assert is_in_use(told.model, start, end, held)
        assert room(told) == (CAPACITY_BYTES if promises else (CAPACITY_BYTES - 2 * MIB) // 2)
        told.of(ops.SynchronizeDevice())
        assert not is_in_use(told.model, start, end, held)
        assert room(told) == CAPACITY_BYTES


# -- chunks that have room ---------------------------------------------------------------------------------------------


def chunks(told: Told, **options: object) -> int:
    return len(shared_chunks(told.model, ops.Allocate("new", 512, **options)))  # type: ignore[arg-type]


def with_chunks(count: int, size_bytes: int = 4 * MIB, block_bytes: int = 512, **options: object) -> Told:
    told = Told()
    for number in range(count):
        told.seen_block(f"a{number}", (1 << 30) + number * 16 * MIB, block_bytes, size_bytes, **options)
    return told


def test_four_large_chunks_with_a_block_like_it_have_room() -> None:
    assert [chunks(with_chunks(count)) for count in (1, 3, 4, 5)] == [0, 0, 4, 5]
    assert chunks(with_chunks(4, 4 * MIB - 512)) == 0, "a smaller one may be a block's own"
    assert chunks(Told()) == 0


@pytest.mark.parametrize("options", [{"size_bytes": 1024}, {"kind": PINNED}, {"stream": "s"}, {"alignment_bytes": 512}])
def test_a_block_that_differs_says_nothing_of_room(options: dict[str, object]) -> None:
    told = with_chunks(4).of(ops.CreateStream("s"))
    asked = {"size_bytes": 512, **options}
    assert len(shared_chunks(told.model, ops.Allocate("new", **asked))) == 0  # type: ignore[arg-type]
    assert chunks(told) == 4


def test_a_chunk_in_which_something_was_freed_or_that_is_a_quarter_full_says_nothing() -> None:
    told = with_chunks(5)
    told.of(ops.Free("a0"))
    assert chunks(told) == 4
    quarter = 4 * MIB // (4 * 1024)
    for number in range(1, quarter + 1):
        assert chunks(told) == (4 if number <= quarter else 0)
        told.block(f"b{number}", (1 << 30) + 16 * MIB + number * 512, 512)
    assert chunks(told) == 0, "one chunk is too full, and three are too few"


def test_work_since_may_have_taken_memory_out_of_a_chunk() -> None:
    told = with_chunks(4).of(ops.Launch())
    assert chunks(told) == 0
