"""Openings and endings: legal wherever they stand, and long enough for what they are for."""

from __future__ import annotations

import pytest

from quiesce.allocators.generation.decoder import OPENINGS, Opening, climb, end_in_flight, fill_counters, reach_limits
from quiesce.allocators.generation.sequence import GeneratedSequence
from quiesce.allocators.generation.writer import Writer
from quiesce.allocators.lockstep import run_lockstep
from quiesce.backends.reference import backend as reference
from quiesce.model import operations as ops
from quiesce.model.backend import Capability, Description, DeviceProfile

DEVICE = DeviceProfile(capacity_bytes=64 << 20, pinned_capacity_bytes=64 << 20)


def writer(*, without: frozenset[Capability] = frozenset()) -> Writer:
    said = reference().describe()
    description = Description(
        said.name, said.version, said.capabilities - without, said.promises, said.gauges, chunk_bytes=8 << 20
    )
    return Writer(description, DEVICE, (1024, 65536, 8 << 20, 700))


@pytest.mark.parametrize("arguments", [(0, 0, 0), (1, 2, 3), (132, 77, 201), (255, 255, 255), (6, 1, 64)])
@pytest.mark.parametrize("opening", OPENINGS, ids=lambda opening: opening.__name__)
def test_an_opening_accuses_nobody(opening: Opening, arguments: tuple[int, int, int]) -> None:
    sequence = writer()
    opening(sequence, *arguments)
    end_in_flight(sequence)
    assert len(sequence.written) > 20
    steps = GeneratedSequence(DEVICE, tuple(sequence.written)).steps()
    assert run_lockstep(reference(), DEVICE, steps).findings == ()


def test_a_ladder_has_several_blocks_of_sizes_on_both_sides_of_every_power_of_two() -> None:
    sequence = writer()
    climb(sequence, 2, 128, 1)
    sizes = [operation.size_bytes for operation in sequence.written if isinstance(operation, ops.Allocate)]
    for power in (8192, 16384, 32768):
        assert sum(power - power // 16 < size < power for size in sizes) >= 2
        assert sum(power < size <= power + power // 16 for size in sizes) >= 2


@pytest.mark.parametrize("count", [256, 512, 1024])
def test_as_many_blocks_are_left_as_a_counter_can_not_hold(count: int) -> None:
    choices = {256: 0, 512: 3, 1024: 7}
    sequence = writer()
    fill_counters(sequence, 0, choices[count], 44)
    before = sequence.written[: sequence.written.index(ops.Trim())]
    made = sum(isinstance(operation, ops.Allocate) for operation in before)
    assert made - sum(isinstance(operation, ops.Free) for operation in before) == count
    assert made == count + 44


def test_a_pool_with_a_limit_is_asked_for_exactly_that() -> None:
    sequence = writer()
    reach_limits(sequence, 0, 0, 0)
    limits = {each.slot: each.limit_bytes for each in sequence.written if isinstance(each, ops.CreatePool)}
    asked = [each for each in sequence.written if isinstance(each, ops.Allocate) and each.pool is not None]
    assert any(limits[each.pool] == each.size_bytes for each in asked if each.pool is not None)
    unlimited = {each.size_bytes for each in asked if each.pool is not None and limits[each.pool] is None}
    assert {each.size_bytes for each in asked} == unlimited | {1} or {each.size_bytes for each in asked} == unlimited


def test_without_limits_chunks_are_filled_in_their_place() -> None:
    sequence = writer(without=frozenset({Capability.POOL_LIMIT}))
    reach_limits(sequence, 0, 0, 0)
    assert not any(isinstance(each, ops.CreatePool) and each.limit_bytes for each in sequence.written)


def test_a_sequence_that_cannot_stall_ends_as_it_is() -> None:
    sequence = writer(without=frozenset({Capability.STALL}))
    end_in_flight(sequence)
    assert sequence.written == []
