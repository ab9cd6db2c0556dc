"""A failing sequence becomes a case file: named, commented, with what it needs, and failing again when it is run.

A sequence drawn in a test of one's own is run by :func:`check_sequence`, which saves it where it fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from quiesce.allocators.cases import CASE_SUFFIX, Case, CaseKind, PerformStep, expand, parse_text, write_case
from quiesce.allocators.generation.editing import leaves, makings, numbered, with_short_names
from quiesce.allocators.generation.legality import Legality, worst_legality
from quiesce.allocators.generation.sequence import GeneratedSequence
from quiesce.allocators.lockstep import Trial, run_lockstep
from quiesce.allocators.oracle import COST, ENFORCED, EVERY_STEP
from quiesce.files import write_atomically
from quiesce.model import operations as ops
from quiesce.model import wording
from quiesce.model.backend import Backend, Capability, Description, DeviceProfile, Promise
from quiesce.model.findings import Finding
from quiesce.model.operations import MemoryKind, Operation, Slot
from quiesce.model.results import FOUND_BY

FOLDER: Final = "found"
_TITLE_CHARACTERS_MAX: Final = 70
_QUOTED: Final = re.compile(r"'([^']+)'")

_NEEDS: Final[Mapping[type[Operation], Capability]] = {
    ops.Trim: Capability.POOL,
    ops.Copy: Capability.COPY,
    ops.Stage: Capability.STAGING,
    ops.Fill: Capability.FILL,
    ops.Launch: Capability.LAUNCH,
    ops.CreatePool: Capability.POOLS,
    ops.CreateStream: Capability.STREAMS,
    ops.CreateEvent: Capability.EVENTS,
    ops.Stall: Capability.STALL,
    ops.BeginCapture: Capability.CAPTURE,
    ops.SelectDevice: Capability.DEVICES,
    ops.Initialize: Capability.LIFECYCLE,
    ops.Partition: Capability.LIFECYCLE,
    ops.CreatePolicy: Capability.LIFECYCLE,
    ops.CreateInstance: Capability.INSTANCES,
    ops.Node: Capability.TAPE,
    ops.InjectFailure: Capability.INJECTION,
}
_KINDS: Final = {
    MemoryKind.DEVICE: Capability.MEMORY,
    MemoryKind.PINNED: Capability.PINNED,
    MemoryKind.PAGEABLE: Capability.PAGEABLE,
    MemoryKind.MANAGED: Capability.MANAGED,
}
_PROMISES: Final[Mapping[str, Promise]] = {
    **{rule.name: rule.promise for rule in EVERY_STEP if rule.promise is not None},
    ENFORCED: Promise.CAPACITY_LIMIT,
    COST: Promise.FLAT_COST,
}
"""The promise behind each rule of policy."""
_MAKE_LEGAL: Final = (Promise.TRACKS_USES, Promise.KEEPS_GRAPH_MEMORY)
"""What a sequence may rely on that would be its own race without."""
_BEFORE_OOM: Final = {Promise.RECLAIMS_BEFORE_OOM, Promise.REUSES_BLOCKS}
_WORK: Final = frozenset({ops.Copy, ops.Fill, ops.Launch, ops.LaunchGraph, ops.Stage})
"""Requests that leave work in flight: whether memory counts as free may then depend on who waits for it."""


def named_case(case: Case, finding: Finding, description: Description, *, found_by: str, name: str) -> Case:
    """Return a shrunk case with everything that a case file says; ``name`` is its identifier's last part.

    The result is what its own text reads as, so that what is saved is what is returned.
    """
    body = with_short_names(case.body)
    operations = [step.operation for step in expand(replace(case, body=body)) if isinstance(step, PerformStep)]
    promises = {_PROMISES[finding.rule]} if finding.rule in _PROMISES else set()
    kinds = {type(operation) for operation in operations}
    if promises & _BEFORE_OOM and kinds & _WORK:
        promises.add(Promise.WAITS_BEFORE_OOM)
    if kinds >= {ops.BeginCapture, ops.Allocate} and isinstance(operations[-1], ops.Allocate):
        promises.add(Promise.ALLOCATES_IN_CAPTURES)
    promises |= {each for each in _MAKE_LEGAL if _relies_on(each, description, case.device, operations)}
    count = sum(1 for _ in leaves(body))
    title = f"{finding.rule} is broken after {count} line{'' if count == 1 else 's'}"
    named = replace(
        case,
        body=numbered(body),
        title=title[:_TITLE_CHARACTERS_MAX],
        kind=CaseKind.FOUND,
        upstream=(f"{FOUND_BY}{found_by}",),
        fault="",
        finds=finding.rule,
        needs=needs_of(operations, case.device) & description.capabilities,
        promises=frozenset(promises) & description.promises,
        comments=(),
    )
    read = parse_text(write_case(named), f"{FOLDER}/{name}{CASE_SUFFIX}", f"{FOLDER}/{name}")
    last = max((statement.line for statement in leaves(read.body)), default=1)
    said = in_short_names(finding, case)
    comments = [f"expected: {said.expected}", f"observed: {said.observed}"]
    if said.request and said.line is None:  # it is none of the case's own
        comments.insert(0, f"then, at the end, when everything is given back: {said.request}")
    return replace(read, comments=tuple((last + place, text) for place, text in enumerate(comments, 1)))


def in_short_names(finding: Finding, case: Case) -> Finding:
    """Return how a case fails in the names that :func:`named_case` gives its slots."""
    body = with_short_names(case.body)
    names = {old.slot: new.slot for old, new in zip(makings(case.body), makings(body), strict=True)}
    request, allocated_by = (
        " ".join(names.get(word, word) for word in text.split()) for text in (finding.request, finding.allocated_by)
    )
    expected, observed = (_renamed(text, names) for text in (finding.expected, finding.observed))
    return replace(finding, expected=expected, observed=observed, request=request, allocated_by=allocated_by)


def _renamed(text: str, names: Mapping[Slot, Slot]) -> str:
    """Put the case's names for the slots that a finding quotes."""
    return _QUOTED.sub(lambda match: f"'{names.get(match[1], match[1])}'", text)


def needs_of(operations: Iterable[Operation], device: DeviceProfile) -> frozenset[Capability]:
    """Return the capabilities that a backend needs to perform the operations."""
    needs: set[Capability] = set()
    for operation in operations:
        if type(operation) in _NEEDS:
            needs.add(_NEEDS[type(operation)])
        if getattr(operation, "stream", None) is not None:
            needs.add(Capability.STREAMS)
        match operation:
            case ops.Allocate(kind=kind, alignment_bytes=alignment):
                needs.add(_KINDS[kind])
                needs |= {Capability.ALIGNMENT} if alignment is not None else set()
            case ops.Launch(argument_bytes=size, instance=instance) if size or instance is not None:
                needs.add(Capability.INSTANCES)
            case ops.CreatePool(limit_bytes=int()):
                needs.add(Capability.POOL_LIMIT)
    if device.capacity_bytes != DeviceProfile().capacity_bytes:
        needs.add(Capability.CAPACITY)
    if device.flavour is not DeviceProfile().flavour:
        needs.add(Capability.FLAVOUR)
    if device.devices > 1:
        needs.add(Capability.DEVICES)
    return frozenset(needs)


def _relies_on(promise: Promise, description: Description, device: DeviceProfile, operations: list[Operation]) -> bool:
    if promise not in description.promises:
        return False
    without = replace(description, promises=description.promises - {promise})
    return worst_legality(without, device, operations) is Legality.RACE


def save(case: Case, directory: Path) -> Path:
    """Write a case below ``directory`` and return where. A file of the same name is replaced, at once and whole.

    Raises :class:`OSError`, which names the file or the folder.
    """
    path = directory / f"{case.identifier.rpartition('/')[2]}{CASE_SUFFIX}"
    directory.mkdir(parents=True, exist_ok=True)
    write_atomically(path, write_case(replace(case, path=path.as_posix())))
    return path


class SequenceFailed(AssertionError):
    """A generated sequence broke a rule; the text has the finding and the sequence as a case file.

    What is raised is a subclass with the rule's name: Hypothesis shrinks one kind of failure at a time and does
    not slip from one rule to another.
    """


@lru_cache(maxsize=128)
def _failure_of(rule: str) -> type[SequenceFailed]:
    return type(rule, (SequenceFailed,), {"__module__": __name__, "__doc__": SequenceFailed.__doc__})


def check_sequence(
    backend: Backend, sequence: GeneratedSequence, *, save_to: Path | None = None, name: str | None = None
) -> Trial:
    """Run a sequence in lockstep with the oracle and return the trial.

    Raises :class:`SequenceFailed` where a rule is broken; the sequence is then written to a case file in the
    folder ``save_to``, if one is given. ``name`` is what the command line knows the backend as, where that is not the
    name in its description. Raises :class:`BackendUnavailable` where the backend does not open.
    """
    trial = run_lockstep(backend, sequence.device, sequence.steps())
    if trial.findings:
        finding = trial.findings[0]
        raise _failure_of(finding.rule)(_text(backend, sequence, finding, save_to, name))
    return trial


def _text(
    backend: Backend, sequence: GeneratedSequence, finding: Finding, save_to: Path | None, name: str | None
) -> str:
    description = backend.describe()
    case = named_case(sequence.case(), finding, description, found_by="a drawn sequence", name=f"{finding.rule}_drawn")
    lines = [f"{finding.rule} is broken", *write_case(case).splitlines()]
    if save_to is not None:
        path = save(case, save_to)
        command = wording.join(
            ["quiesce", "shrink", wording.operand(path.as_posix()), "--backend", name or description.name]
        )
        lines += [f"saved as {path.as_posix()}", f"a shorter one: {command}"]
    return "\n".join(lines)
