"""Pinned memory in generated sequences: sizes beside powers of two, and alignments that nobody is obliged to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest

from quiesce.allocators.generation.decoder import generate_one
from quiesce.allocators.generation.sequence import GeneratedSequence
from quiesce.allocators.lockstep import run_lockstep
from quiesce.backends.reference import backend as reference
from quiesce.model import operations as ops
from quiesce.model.backend import Capability, Context, Description, DeviceProfile, Reply
from quiesce.model.operations import MemoryKind, Operation
from quiesce.model.outcomes import Unsupported

REFERENCE = reference().describe()
SEQUENCES = 120


def pinned_requests(description: Description) -> Iterator[ops.Allocate]:
    for number in range(SEQUENCES):
        for operation in generate_one(description, 0, number).operations:
            if isinstance(operation, ops.Allocate) and operation.kind is MemoryKind.PINNED:
                yield operation


def test_pinned_sizes_lie_one_byte_above_powers_of_two() -> None:
    sizes = {request.size_bytes - 1 for request in pinned_requests(REFERENCE)}
    assert len({size for size in sizes if size >= 1024 and not size & (size - 1)}) >= 6


def test_pinned_memory_is_aligned_also_beyond_a_page() -> None:
    alignments = {request.alignment_bytes for request in pinned_requests(REFERENCE)}
    assert None in alignments
    assert len(alignments & {64, 128, 256, 512}) >= 3
    assert alignments & {65536, 1 << 21}
    without = replace(REFERENCE, capabilities=REFERENCE.capabilities - {Capability.ALIGNMENT})
    assert {request.alignment_bytes for request in pinned_requests(without)} == {None}


@dataclass(frozen=True)
class Unaligned:
    """The reference without a word for pinned memory with an alignment."""

    asked: list[Operation] = field(default_factory=list)

    def describe(self) -> Description:
        return REFERENCE

    def open(self, profile: DeviceProfile) -> Context:
        context = reference().open(profile)
        perform = context.perform

        def answer(operation: Operation) -> Reply:
            self.asked.append(operation)
            if isinstance(operation, ops.Allocate) and operation.kind is MemoryKind.PINNED:
                return Reply(Unsupported("no alignment")) if operation.alignment_bytes else perform(operation)
            return perform(operation)

        context.perform = answer  # type: ignore[method-assign]
        return context


@pytest.mark.parametrize("alignment", [64, None])
def test_a_sequence_goes_on_without_what_nobody_is_obliged_to(alignment: int | None) -> None:
    asked: tuple[Operation, ...] = (
        ops.Allocate("a", 64, MemoryKind.PINNED, alignment),
        ops.Allocate("b", 64),
        ops.Copy("a", "b"),
        ops.Free("a"),
        ops.Free("b"),
    )
    backend = Unaligned()
    trial = run_lockstep(backend, DeviceProfile(), GeneratedSequence(DeviceProfile(), asked).steps())
    assert (trial.findings, trial.unsupported) == ((), "")
    assert trial.skipped == (2 if alignment else 0)
    assert ops.Free("b") in backend.asked


def test_a_sequence_ends_where_a_claim_is_not_kept() -> None:
    class Without(Unaligned):
        def open(self, profile: DeviceProfile) -> Context:
            context = super().open(profile)
            context.perform = lambda operation: Reply(Unsupported("nothing"))  # type: ignore[method-assign]
            return context

    asked: tuple[Operation, ...] = (ops.Allocate("a", 64, MemoryKind.PINNED), ops.Allocate("b", 64))
    trial = run_lockstep(Without(), DeviceProfile(), GeneratedSequence(DeviceProfile(), asked).steps())
    assert trial.unsupported
    assert trial.operations == 1
