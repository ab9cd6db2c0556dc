"""The checker: a recording held against the oracle, and its error numbers against :data:`ERROR_CODES`.

A recorded device is the truth. Where the oracle does not permit what it answered, the oracle (or the reference that it
was written with) is wrong, or the backend that made the recording is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from quiesce import operations as ops
from quiesce.backend import Capability, Description, Reply
from quiesce.findings import Finding
from quiesce.operations import Operation, Slot
from quiesce.oracle.oracle import Oracle
from quiesce.outcomes import ERROR_CODES
from quiesce.recording.recording import (
    COMPLETED,
    Answer,
    RecordedProbe,
    RecordedSequence,
    Recording,
    outcome_of,
)
from quiesce.requests import parse_request

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
