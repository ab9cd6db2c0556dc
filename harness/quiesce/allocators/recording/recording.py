"""A recording: sequences on a backend, and every answer kept, as values and as the JSON file that keeps them.

``fixtures/cuda/README.md`` describes the file. The checker holds a recording against the oracle, and its error numbers
against :data:`ERROR_CODES`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from quiesce.allocators.cases import PerformStep, corpus_directory, expand, load, makes_of, uses_of
from quiesce.allocators.generation import generate_one
from quiesce.allocators.oracle import Oracle
from quiesce.model import operations as ops
from quiesce.model.backend import (
    Backend,
    BackendFault,
    Capability,
    Context,
    Description,
    DeviceProfile,
    Flavour,
    Initialization,
    Promise,
    Reply,
)
from quiesce.model.errors import BackendUnavailable, QuiesceError
from quiesce.model.findings import Finding
from quiesce.model.operations import Mark, Operation, Slot
from quiesce.model.outcomes import ERROR_CODES, Allocated, Done, Outcome, OutOfMemory, Rejected, Unsupported, describe
from quiesce.model.requests import format_request, parse_request

SCHEMA: Final = 1
ALIGNMENT_BYTES_MAX: Final = 512
"""Alignments beyond this that nobody asked for differ from run to run."""
COMPLETED: Final = "completed"

Json: TypeAlias = dict[str, Any]  # Any: what JSON can hold


class RecordingError(QuiesceError):
    """A file is no recording; the text says where and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One request and what was answered. ``alignment_bytes`` is about an address: 0 for null, None without one."""

    request: str
    outcome: str
    alignment_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class RecordedSequence:
    """One sequence on a fresh context. ``end`` is ``completed``, or why it stopped behind the last answer."""

    name: str
    device: DeviceProfile
    answers: tuple[Answer, ...]
    end: str = COMPLETED


@dataclass(frozen=True, slots=True)
class RecordedProbe:
    """One question to the runtime itself. ``answer`` is empty where the process that asked died: ``end`` says how."""

    name: str
    answer: Mapping[str, object]
    end: str = COMPLETED


@dataclass(frozen=True, slots=True)
class Recording:
    """Everything that one device answered."""

    backend: str
    version: str
    capabilities: frozenset[Capability]
    promises: frozenset[Promise]
    alignment_bytes: int
    seed: int
    machine: Mapping[str, object]
    sequences: tuple[RecordedSequence, ...] = ()
    probes: tuple[RecordedProbe, ...] = ()
    known: Mapping[str, str] = field(default_factory=dict)
    """Sequences and probes that the checker complains of, and rightly: by name, the upstream number. Kept by hand."""


def answer_of(request: str, outcome: Outcome, asked_bytes: int = 0) -> Answer:
    """Return what is kept of an outcome; ``asked_bytes`` is the alignment that the request asked for."""
    if not isinstance(outcome, Allocated):
        return Answer(request, describe(outcome))
    lowest_bit = outcome.address & -outcome.address
    return Answer(request, describe(outcome), min(lowest_bit, max(asked_bytes, ALIGNMENT_BYTES_MAX)))


def outcome_of(answer: Answer, address: int) -> Outcome:
    """Return the outcome that an answer says, at ``address``. Raises :class:`RecordingError` for unknown words."""
    word, _, rest = answer.outcome.partition(" ")
    if answer.outcome == "allocated" and answer.alignment_bytes is not None:
        return Allocated(address)
    if answer.outcome == "done":
        return Done()
    if answer.outcome == "out of memory":
        return OutOfMemory()
    if word == "rejected" and rest:
        return Rejected(rest)
    if word == "unsupported":
        return Unsupported(rest)
    raise RecordingError(f"'{answer.request}' has the outcome '{answer.outcome}', which is none")


def write_recording(recording: Recording) -> str:
    """Return the file's text: sorted, indented, the same for the same recording."""
    document: Json = {
        "schema": SCHEMA,
        "backend": {
            "name": recording.backend,
            "version": recording.version,
            "capabilities": sorted(recording.capabilities),
            "promises": sorted(recording.promises),
            "alignment_bytes": recording.alignment_bytes,
        },
        "seed": recording.seed,
        "known": dict(recording.known),
        "machine": dict(recording.machine),
        "sequences": [_write_sequence(sequence) for sequence in recording.sequences],
        "probes": [{"name": probe.name, "answer": dict(probe.answer), "end": probe.end} for probe in recording.probes],
    }
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def _write_sequence(sequence: RecordedSequence) -> Json:
    device = sequence.device
    return {
        "name": sequence.name,
        "device": {
            "capacity_bytes": device.capacity_bytes,
            "pinned_capacity_bytes": device.pinned_capacity_bytes,
            "alignment_bytes": device.alignment_bytes,
            "granularity_bytes": device.granularity_bytes,
            "devices": device.devices,
            "flavour": device.flavour.value,
            "initialization": device.initialization.value,
        },
        "answers": [_write_answer(answer) for answer in sequence.answers],
        "end": sequence.end,
    }


def _write_answer(answer: Answer) -> list[object]:
    fields: list[object] = [answer.request, answer.outcome]
    return fields if answer.alignment_bytes is None else [*fields, answer.alignment_bytes]


def read_recording(text: str, where: str) -> Recording:
    """Return the recording that a file's text holds. Raises :class:`RecordingError`, which names ``where``."""
    try:
        document = json.loads(text)
        if document["schema"] != SCHEMA:
            raise RecordingError(f"{where}: schema {document['schema']!r} is not {SCHEMA}; record it anew")
        backend = document["backend"]
        return Recording(
            backend=str(backend["name"]),
            version=str(backend["version"]),
            capabilities=frozenset(map(Capability, backend["capabilities"])),
            promises=frozenset(map(Promise, backend["promises"])),
            alignment_bytes=int(backend["alignment_bytes"]),
            seed=int(document["seed"]),
            machine=dict(document["machine"]),
            sequences=tuple(_read_sequence(fields) for fields in document["sequences"]),
            probes=tuple(RecordedProbe(p["name"], dict(p["answer"]), p["end"]) for p in document["probes"]),
            known=dict(document["known"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise RecordingError(f"{where}: {type(error).__name__}: {error}; it is no recording of schema 1") from error


def _read_sequence(fields: Json) -> RecordedSequence:
    device = dict(fields["device"])
    device["flavour"] = Flavour(device["flavour"])
    device["initialization"] = Initialization(device["initialization"])
    answers = tuple(Answer(*answer) for answer in fields["answers"])
    return RecordedSequence(fields["name"], DeviceProfile(**device, provenance="a recording"), answers, fields["end"])


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


_LEDGERS: Final = frozenset({Capability.BACKING_LEDGER, Capability.ORDER_LEDGER})
"""What a recording does not keep: without observations nobody may be accused of what was not seen."""
_FIRST_ADDRESS: Final = 1 << 40


@dataclass(frozen=True, slots=True)
class Complaint:
    """Where a recording and the oracle part; ``name`` is the sequence's or the probe's."""

    name: str
    request: str
    expected: str
    observed: str

    def __str__(self) -> str:
        return f"{self.name}: {self.request}: expected {self.expected}, recorded {self.observed}"


def check(recording: Recording) -> tuple[Complaint, ...]:
    """Return what the oracle does not permit, and every number that means something else.

    What the recording itself names as known upstream is left out; a name that nothing is complained of is stale.
    """
    complaints = [complaint for sequence in recording.sequences for complaint in _check(recording, sequence)]
    complaints += [complaint for probe in recording.probes for complaint in _check_probe(probe)]
    about = {complaint.name for complaint in complaints}
    stale = [
        Complaint(name, "known", f"a complaint, as {number} says", "none: remove the entry")
        for name, number in recording.known.items()
        if name not in about
    ]
    return (*(complaint for complaint in complaints if complaint.name not in recording.known), *stale)


def _check(recording: Recording, sequence: RecordedSequence) -> Iterator[Complaint]:
    if sequence.end != COMPLETED and not sequence.end.startswith(("unsupported", "not opened")):
        yield Complaint(sequence.name, "the end", COMPLETED, sequence.end)
    description = Description(
        recording.backend,
        recording.version,
        recording.capabilities - _LEDGERS,
        recording.promises,
        alignment_bytes=recording.alignment_bytes,
    )
    oracle, addresses = Oracle(description, sequence.device), _Addresses()
    for number, answer in enumerate(sequence.answers):
        operation = parse_request(answer.request)
        outcome = outcome_of(answer, addresses.next(operation, answer.alignment_bytes))
        findings = oracle.judge(operation, Reply(outcome), {}, {}, answer.request)
        if findings:  # the first ends it: what is judged next would build on it
            yield _complaint(sequence.name, number, answer, findings[0])
            return


def _complaint(name: str, number: int, answer: Answer, finding: Finding) -> Complaint:
    request = f"operation {number}, '{answer.request}' ({finding.rule})"
    return Complaint(name, request, finding.expected, finding.observed)


class _Addresses:
    """Addresses that nobody kept, made up again: apart from each other, and as aligned as the recorded ones."""

    def __init__(self) -> None:
        self._end = _FIRST_ADDRESS
        self._sizes: dict[Slot, int] = {}

    def next(self, operation: Operation, alignment_bytes: int | None) -> int:
        match operation:
            case ops.Allocate(slot, size_bytes):
                self._sizes[slot] = size_bytes
            case ops.Stage(slot, source):
                self._sizes[slot] = size_bytes = self._sizes.get(source, 0)
            case _:
                return 0
        if not alignment_bytes:
            return 0
        address = -(-self._end // (2 * alignment_bytes)) * 2 * alignment_bytes + alignment_bytes
        self._end = address + size_bytes
        return address


def _check_probe(probe: RecordedProbe) -> Iterator[Complaint]:
    if probe.end != COMPLETED:
        yield Complaint(probe.name, "the end", COMPLETED, probe.end)
        return
    word = probe.answer.get("means")
    if word is None:
        return
    status = probe.answer.get("status")
    if word not in ERROR_CODES or ERROR_CODES[str(word)] != status:
        number = ERROR_CODES.get(str(word), "no such error")
        yield Complaint(probe.name, f"the error number of {word}", f"{number}", f"{status}")
