"""The recorder: sequences on a backend, and every answer kept. Nothing is judged here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from quiesce.backend import Backend, BackendFault, Context, Description, DeviceProfile, Flavour
from quiesce.cases.catalogue import corpus_directory, load
from quiesce.cases.effects import makes_of, uses_of
from quiesce.cases.expansion import PerformStep, expand
from quiesce.errors import BackendUnavailable
from quiesce.generation.bulk import generate_one
from quiesce.operations import Mark, Operation, Slot
from quiesce.outcomes import Allocated, Done, Outcome, Unsupported, describe
from quiesce.recording.recording import COMPLETED, Answer, RecordedSequence, answer_of
from quiesce.request_format import format_request

OPERATIONS_MAX: Final = 2000
"""A longer case repeats itself: the rest says nothing new about the device."""


@dataclass(frozen=True, slots=True)
class Program:
    """What is asked: a name, a device, and operations."""

    name: str
    device: DeviceProfile
    operations: tuple[Operation, ...]


def corpus_programs(description: Description, flavour: Flavour) -> Iterator[Program]:
    """Yield the cases of the corpus whose needs a backend meets, on a device of its flavour."""
    for case in load([corpus_directory()]).cases:
        if case.needs <= description.capabilities:
            steps = (step.operation for step in expand(case) if isinstance(step, PerformStep))
            operations = tuple(operation for _, operation in zip(range(OPERATIONS_MAX), steps, strict=False))
            yield Program(case.identifier, replace(case.device, flavour=flavour), operations)


def generated_programs(description: Description, flavour: Flavour, seed: int, count: int) -> Iterator[Program]:
    """Yield generated sequences: the first half valid, the others with misuse."""
    for number in range(count):
        hostile = number >= count // 2
        sequence = generate_one(description, seed, number, hostile=hostile)
        name = f"generated/{'hostile' if hostile else 'valid'}-{seed}-{number}"
        yield Program(name, replace(sequence.device, flavour=flavour), sequence.operations)


def record(backend: Backend, program: Program) -> RecordedSequence:
    """Perform a program on a fresh context and keep every answer, also those before a crash.

    What names a slot that could not be made is left out, as everywhere.
    """
    answers: list[Answer] = []
    try:
        context = backend.open(program.device)
    except (BackendUnavailable, BackendFault) as error:
        return RecordedSequence(program.name, program.device, (), f"not opened: {error}")
    end = COMPLETED
    try:
        for operation, outcome in _perform(context, program.operations):
            asked_bytes = getattr(operation, "alignment_bytes", None) or 0
            answers.append(answer_of(format_request(operation), outcome, asked_bytes))
            if isinstance(outcome, Unsupported):
                end = describe(outcome)
                break
        context.close()
    except BackendFault as fault:
        end = f"{fault.rule}: {fault.observed}"
    return RecordedSequence(program.name, program.device, tuple(answers), end)


def _perform(context: Context, operations: Iterable[Operation]) -> Iterator[tuple[Operation, Outcome]]:
    never_made: set[Slot] = set()
    for operation in operations:
        made = {making.slot for making in makes_of(operation)}
        if isinstance(operation, Mark):
            continue
        if any(use.slot in never_made for use in uses_of(operation)):
            never_made |= made
            continue
        outcome = context.perform(operation).outcome
        if isinstance(outcome, Allocated | Done):
            never_made -= made
        else:
            never_made |= made
        yield operation, outcome
