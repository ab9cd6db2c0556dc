"""A recording as values, and as the JSON file that keeps it. ``fixtures/cuda/README.md`` describes the file.

Addresses are never kept: what they are a multiple of is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from quiesce.backend import Capability, DeviceProfile, Flavour, Initialization, Promise
from quiesce.errors import QuiesceError
from quiesce.outcomes import Allocated, Done, Outcome, OutOfMemory, Rejected, Unsupported, describe

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
