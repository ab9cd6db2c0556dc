"""The example driver in C: it builds without a warning, keeps the promises it makes, and speaks the protocol."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.backends.example_pools import build

from quiesce.allocators.conformance import run_conformance
from quiesce.backends.command import CommandBackend, parse_specification
from quiesce.backends.command.backend import CommandContext
from quiesce.model.backend import Capability, DeviceProfile, Promise
from quiesce.model.gauges import Gauge, Source
from quiesce.model.observations import BackingAllocated, BackingFreed, BackingRefused, Observation
from quiesce.model.operations import Allocate, Free, SelectDevice, Trim
from quiesce.model.outcomes import Allocated, Done, OutOfMemory, Rejected, Unsupported

KIB = 1 << 10
PROFILE = DeviceProfile(capacity_bytes=128 * KIB, alignment_bytes=256, granularity_bytes=512)


@pytest.fixture(scope="session")
def example_pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("example_pool"), "example_pool")


@pytest.fixture
def context(example_pool: Path) -> Iterator[CommandContext]:
    context = CommandBackend([str(example_pool)]).open(PROFILE)
    yield context
    context.close()


def reserved(context: CommandContext) -> int:
    readings = context.readings()
    assert readings[Gauge.RESERVED, Source.CLAIM] == readings[Gauge.RESERVED, Source.LEDGER]
    return readings[Gauge.RESERVED, Source.LEDGER]


def allocate(context: CommandContext, slot: str, size_bytes: int) -> tuple[int, tuple[Observation, ...]]:
    reply = context.perform(Allocate(slot, size_bytes))
    assert isinstance(reply.outcome, Allocated)
    return reply.outcome.address, reply.observations


def test_it_says_what_it_promises(example_pool: Path) -> None:
    described = CommandBackend([str(example_pool)]).describe()
    assert described.name == "command:example_pool"
    assert Capability.BACKING_LEDGER in described.capabilities
    assert {Promise.RECLAIMS_BEFORE_OOM, Promise.TRIMS_TO_ZERO} <= described.promises


def test_sizes_are_rounded_to_the_granularity_and_addresses_aligned(context: CommandContext) -> None:
    address, observations = allocate(context, "a", 1000)
    assert observations == (BackingAllocated(address, 1024),)
    assert address % PROFILE.alignment_bytes == 0
    assert context.readings()[Gauge.LIVE, Source.CLAIM] == 1024


def test_a_freed_block_is_used_again_and_trimmed_away(context: CommandContext) -> None:
    address, _ = allocate(context, "a", 4 * KIB)
    context.perform(Free("a"))
    assert allocate(context, "b", 4 * KIB - 1) == (address, ())
    context.perform(Free("b"))
    assert reserved(context) == 4 * KIB
    assert context.perform(Trim()).observations == (BackingFreed(address, 4 * KIB),)
    assert reserved(context) == 0


def test_cached_memory_goes_back_before_a_request_fails(context: CommandContext) -> None:
    first, _ = allocate(context, "a", 64 * KIB)
    context.perform(Free("a"))
    second, observations = allocate(context, "b", 96 * KIB)
    assert observations == (
        BackingRefused(96 * KIB),
        BackingFreed(first, 64 * KIB),
        BackingAllocated(second, 96 * KIB),
    )


@pytest.mark.parametrize("size_bytes", [128 * KIB + 1, (1 << 64) - 1])
def test_more_than_the_capacity_is_out_of_memory(context: CommandContext, size_bytes: int) -> None:
    assert context.perform(Allocate("a", size_bytes)).outcome == OutOfMemory()
    allocate(context, "a", 128 * KIB)
    assert context.perform(Allocate("b", 1)).outcome == OutOfMemory()


def test_misuse_and_what_it_cannot_do_are_outcomes(context: CommandContext) -> None:
    allocate(context, "a", 0)
    assert context.perform(Allocate("a", 1)).outcome == Rejected("invalid-value")
    assert context.perform(Free("a")).outcome == Done()
    assert context.perform(Free("a")).outcome == Rejected("invalid-value")
    assert isinstance(context.perform(Allocate("a", 1, stream="s")).outcome, Unsupported)
    assert isinstance(context.perform(Allocate("a", 1, alignment_bytes=512)).outcome, Unsupported)
    assert isinstance(context.perform(SelectDevice(0)).outcome, Unsupported)


def test_closing_tells_of_every_block_that_was_left_in_portions(example_pool: Path) -> None:
    context = CommandBackend([str(example_pool)]).open(DeviceProfile())
    taken = {allocate(context, f"block[{i}]", 512)[1] for i in range(1000)}
    closing = context.close()
    assert {seen.address for seen in closing.observations if isinstance(seen, BackingFreed)} == {
        seen.address for (seen,) in taken if isinstance(seen, BackingAllocated)
    }
    assert len(closing.observations) == 1000
    assert closing.readings[Gauge.RESERVED, Source.LEDGER] == 0


def test_a_closed_context_refuses_what_it_is_asked_for(example_pool: Path) -> None:
    context = CommandBackend([str(example_pool)]).open(PROFILE)
    closing = context.close()
    assert context.perform(Allocate("a", 64)).outcome == Rejected("illegal-state")
    assert context.close() == closing


@pytest.mark.parametrize("seed", range(3))
def test_a_random_sequence_agrees_with_a_model(context: CommandContext, seed: int) -> None:
    """The model knows what is live, and from the ledger what is held; it predicts outcomes, gauges and overlaps."""
    choices = random.Random(seed)
    live: dict[str, tuple[int, int]] = {}
    for index in range(400):
        if choices.random() < 0.55:
            size = choices.choice([1, 512, 3 * KIB, 20 * KIB, 50 * KIB])
            rounded = -(-size // 512) * 512
            outcome = context.perform(Allocate(f"b[{index}]", size)).outcome
            fits = sum(held for _, held in live.values()) + rounded <= PROFILE.capacity_bytes
            assert isinstance(outcome, Allocated) == fits, "a cache that can be squeezed never stands in the way"
            if isinstance(outcome, Allocated):
                start = outcome.address
                assert all(start + rounded <= other or other + held <= start for other, held in live.values())
                live[f"b[{index}]"] = (start, rounded)
        elif live:
            slot = choices.choice(sorted(live))
            assert context.perform(Free(slot)).outcome == Done()
            del live[slot]
        else:
            context.perform(Trim())
        assert context.readings()[Gauge.LIVE, Source.CLAIM] == sum(held for _, held in live.values())
        assert reserved(context) <= PROFILE.capacity_bytes


def test_the_command_that_reproduces_a_finding_has_the_program_s_path(tmp_path: Path) -> None:
    broken = build(tmp_path, "a pool", {"if (!made && cached != NULL)": "if (false)"})
    backend = CommandBackend([str(broken), "--option"])
    conformance = run_conformance(backend, operations=200, cases=[], trials_max=1)
    commands = {result.reproduce for result in conformance.results}
    assert all(f"--backend 'command:'\"'\"'{broken}'\"'\"' --option'" in command for command in commands), commands
    assert parse_specification(backend.specification.removeprefix("command:")).command == backend.command
