"""What is generated is as legal as it says, on whatever a backend can do."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from quiesce.allocators.cases.expansion import PerformStep
from quiesce.allocators.conformance.checks import RESTS_ON
from quiesce.allocators.generation.decoder import generate_one
from quiesce.allocators.generation.legality import Legality, worst_legality
from quiesce.allocators.generation.saving import needs_of
from quiesce.backends.host import backend as host
from quiesce.backends.reference import backend as reference
from quiesce.model import operations as ops
from quiesce.model.backend import Capability, Description, DeviceProfile, Promise

REFERENCE = reference().describe()
DESCRIPTIONS = (
    REFERENCE,
    host().describe(),
    replace(REFERENCE, promises=REFERENCE.promises - {Promise.TRACKS_USES}),
    replace(REFERENCE, capabilities=REFERENCE.capabilities - {Capability.STALL, Capability.LAUNCH}),
    replace(REFERENCE, capabilities=REFERENCE.capabilities - {Capability.EVENTS, Capability.PINNED}),
    replace(REFERENCE, capabilities=frozenset({Capability.MEMORY, Capability.STREAMS}), promises=frozenset()),
)
IDS = ("reference", "host", "untracked", "without launches", "without events", "streams alone")
SEQUENCES = 60
SUBSETS = 150


@pytest.mark.parametrize("description", DESCRIPTIONS, ids=IDS)
def test_a_valid_sequence_makes_no_mistake(description: Description) -> None:
    for number in range(SEQUENCES):
        sequence = generate_one(description, 2, number)
        assert worst_legality(description, sequence.device, sequence.operations) is Legality.LEGAL, number


@pytest.mark.parametrize("description", DESCRIPTIONS, ids=IDS)
def test_a_hostile_sequence_contains_no_race(description: Description) -> None:
    worst = Legality.LEGAL
    for number in range(SEQUENCES):
        sequence = generate_one(description, 2, number, hostile=True)
        worst = max(worst, worst_legality(description, sequence.device, sequence.operations))
    assert worst is Legality.MISUSE


@pytest.mark.parametrize("hostile", [False, True], ids=["valid", "hostile"])
def test_nothing_is_asked_that_is_not_claimed(hostile: bool) -> None:
    chance = random.Random(4)
    for number in range(SUBSETS):
        claimed = {capability for capability in Capability if chance.random() < 0.6}
        while idle := {claim for claim in claimed if not RESTS_ON.get(claim, frozenset()) <= claimed}:
            claimed -= idle
        promised = frozenset(promise for promise in Promise if chance.random() < 0.6)
        description = Description("any", "1", frozenset(claimed), promised)
        for each in range(SEQUENCES // 20):
            sequence = generate_one(description, number, each, hostile=hostile)
            assert needs_of(sequence.operations, DeviceProfile(flavour=sequence.device.flavour)) <= claimed


def test_a_device_is_a_few_of_the_largest_chunks() -> None:
    for chunk_bytes, capacities in (
        (33 << 20, {64, 128, 256, 512}),
        (1, {8, 16, 32, 64}),
        (1 << 30, {64, 128, 256, 512}),
    ):
        description = replace(REFERENCE, chunk_bytes=chunk_bytes)
        sequences = [generate_one(description, 1, number) for number in range(60)]
        seen = {each.device.capacity_bytes >> 20 for each in sequences if each.loop is None}
        assert seen == capacities


def test_a_stream_is_made_again_under_the_name_of_one_that_went() -> None:
    again = 0
    for number in range(150):
        gone: set[str] = set()
        for step in generate_one(REFERENCE, 3, number).steps():
            match step.operation if isinstance(step, PerformStep) else None:
                case ops.DestroyStream(slot):
                    gone.add(slot)
                case ops.CreateStream(slot):
                    again += slot in gone
    assert again > 10
