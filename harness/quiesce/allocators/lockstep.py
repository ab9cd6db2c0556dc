"""Lockstep: the one place where a context and the oracle meet.

What a sequence still owns at its end is given back before its context closes: then whatever is left is a leak.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, TypeVar

from quiesce.allocators.answers import describe_backend, open_context
from quiesce.allocators.cases import (
    CheckGauge,
    CheckGrowth,
    Comparison,
    ExpectedKind,
    ExpectedOutcome,
    IterationEnd,
    PerformStep,
    Step,
    slots_made,
    slots_used,
)
from quiesce.allocators.oracle import (
    COST,
    GAUGE,
    GROWTH,
    HANDLES,
    Model,
    Oracle,
    grows_as_expected,
    judge_expectation,
    left_bytes,
    slope,
)
from quiesce.model import operations as ops
from quiesce.model.backend import Backend, BackendFault, Capability, Closing, DeviceProfile
from quiesce.model.findings import Finding, Grade
from quiesce.model.gauges import Gauge, Readings, best_reading
from quiesce.model.operations import MemoryKind, Operation, Slot
from quiesce.model.outcomes import Allocated, Done, Outcome, OutOfMemory, Rejected, Unsupported, describe
from quiesce.model.requests import format_request
from quiesce.model.results import Sample
from quiesce.model.rules import Kind, kind_of_fault


def giving_back(
    oracle: Oracle, capabilities: frozenset[Capability], trimmed: MemoryKind | None
) -> Iterator[list[Operation]]:
    """Yield what gives everything back, in groups: a group is performed whatever comes of the operations in it.

    What a sequence trimmed itself at its very end is not trimmed again. Then the blocks that it still owned are cached,
    and the closing has something to give back.
    """
    model = oracle.model
    captures = [(slot, model.captures.of(state)) for slot, state in model.streams.items()]
    begun = [slot for slot, capture in captures if capture is not None and capture.origin is model.streams[slot]]
    yield [ops.EndCapture(f"_graph_of_{slot.strip(']').replace('[', '_')}", slot) for slot in begun]
    stalled = [slot for slot, state in model.streams.items() if state.stalled_from is not None]
    yield [*map(ops.Release, stalled), *synchronizing(model, capabilities)]
    yield [*map(ops.DestroyGraph, model.graphs)]
    freed = [*model.blocks, *model.empty_blocks]
    yield [*map(ops.Free, freed)]
    yield [*map(ops.DestroyInstance, model.runtime.instances)]
    yield [*map(ops.DestroyEvent, model.events)]
    yield [*map(ops.DestroyStream, model.streams)]
    yield [*map(ops.DestroyPool, model.pools)]
    yield [ops.Drop(slot) for slot, node in model.tape.held.items() for _ in range(node.holds)]
    yield [*_settling(model, capabilities, trimmed, freed=bool(freed))]


def _settling(
    model: Model, capabilities: frozenset[Capability], trimmed: MemoryKind | None, *, freed: bool
) -> Iterator[Operation]:
    """Yield what lets a backend give back what it kept for itself."""
    if Capability.TAPE in capabilities:
        yield ops.Collect()
    if model.runtime.initialized:
        yield ops.Finalize()
    if Capability.POOL in capabilities:
        if freed:  # behind events that the library recorded meanwhile
            yield from synchronizing(model, capabilities)
        if trimmed is not MemoryKind.DEVICE:
            yield ops.Trim()
        if Capability.PINNED in capabilities and trimmed is not MemoryKind.PINNED:
            yield ops.Trim(MemoryKind.PINNED)


def synchronizing(model: Model, capabilities: frozenset[Capability]) -> Iterator[Operation]:
    """Yield what waits for every device."""
    if Capability.STREAMS not in capabilities:
        return
    for device in range(model.profile.devices if Capability.DEVICES in capabilities else 1):
        if Capability.DEVICES in capabilities:
            yield ops.SelectDevice(device)
        yield ops.SynchronizeDevice()


TIMELINE_SAMPLES_MAX: Final = 4096
FORESEEN_MAX: Final = 64
"""How many steps a context is told ahead at most."""
_SERVED: Final = (Allocated, Done)
_MAKES_A_BLOCK: Final = (ops.Allocate, ops.Stage)
_OPENED: Final = ops.Mark("opened")
_Step = TypeVar("_Step", bound=Step)


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of one sequence on one backend.

    ``unsupported`` is the reason why it stopped early, or empty; ``operations`` counts what was performed, and
    ``skipped`` what was left out because its slot was never made.
    """

    findings: tuple[Finding, ...]
    operations: int
    skipped: int
    unsupported: str = ""
    timeline: tuple[Sample, ...] = ()


@dataclass(slots=True)
class _Progress:
    index: int = 0
    performed: list[Operation] = field(default_factory=list)
    skipped: int = 0
    line: int | None = None
    operation: Operation | None = None
    findings: list[Finding] = field(default_factory=list)
    timeline: list[Sample] = field(default_factory=list)
    marks: dict[str, Readings] = field(default_factory=dict)
    iterations: dict[int, list[Readings]] = field(default_factory=dict)
    never_made: set[Slot] = field(default_factory=set)
    unsupported: str = ""

    @property
    def request(self) -> str:
        """The request last performed, as text: most are never shown."""
        return "" if self.operation is None else format_request(self.operation)

    @property
    def goes_on(self) -> bool:
        """Whether nothing has ended the trial yet."""
        return not self.findings and not self.unsupported

    def add(self, findings: Iterable[Finding], *, closing: bool = False) -> None:
        for finding in findings:
            self.findings.append(
                replace(
                    finding,
                    operation_index=None if closing or not self.index else self.index - 1,
                    line=self.line,
                    request="" if closing else self.request,
                )
            )


class _Origin(NamedTuple):
    """Where an operation comes from: written out only where somebody shows it."""

    number: int
    line: int | None
    operation: Operation

    def __str__(self) -> str:
        line = f" (line {self.line})" if self.line else ""
        return f"operation {self.number}{line}: {format_request(self.operation)}"


class Lockstep:
    """Runs one sequence of steps on a fresh context of ``backend``, all at once or step by step.

    Without ``timeline`` no samples are kept: they cost as much as a small backend's answer.
    """

    def __init__(self, backend: Backend, profile: DeviceProfile, *, timeline: bool = True) -> None:
        self._backend, self._profile = backend, profile
        self._description = describe_backend(backend)
        self._oracle = Oracle(self._description, profile)
        self._context = open_context(backend, profile)
        self._progress = _Progress()
        self._samples_left = TIMELINE_SAMPLES_MAX if timeline else 0
        self._readings: Readings | None = None

    def run(self, steps: Iterable[Step]) -> Trial:
        """Perform the steps, quiesce, close, and return what was found."""
        try:
            for step in self._told_ahead(steps):
                if not self.step(step):
                    break
        except BaseException as ending:
            if self._progress.operation is not None:  # somebody who ends a backend that hangs wants to know where
                ending.add_note(f"it was at operation {self._progress.index - 1}: {self._progress.request}")
            self._close()
            raise
        return self.finish()

    def _told_ahead(self, steps: Iterable[_Step]) -> Iterator[_Step]:
        """Yield the steps. A context that has a use for it is told what comes next, before each of them."""
        if not self._context.foresees:
            yield from steps
            return
        left = iter(steps)
        while chunk := list(itertools.islice(left, FORESEEN_MAX)):
            for position, step in enumerate(chunk):
                if isinstance(step, PerformStep) and self._readings is not None:  # those of the beginning come first
                    self._context.foresee(self._performed_next(itertools.islice(chunk, position, None)))
                yield step

    def _performed_next(self, steps: Iterable[_Step]) -> Iterator[Operation]:
        """Yield what these steps perform, up to the first of which nobody knows whether it is performed."""
        never_made, made = set(self._progress.never_made), set[Slot]()
        for step in steps:
            if not isinstance(step, PerformStep):
                continue
            used, makes = slots_used(step.operation), slots_made(step.operation)
            if not made.isdisjoint(used):
                return
            if not never_made.isdisjoint(used):
                never_made.update(makes)
                continue
            made.update(makes)
            yield step.operation

    def step(self, step: Step) -> bool:
        """Perform one step; return whether the trial goes on."""
        try:
            if isinstance(step, PerformStep):
                self._progress.line = step.line
                self._perform(step.operation, step.expected, optional=step.optional)
            else:
                self._take(step)
        except BackendFault as fault:
            self._progress.add([finding_of(fault)])
        return self._progress.goes_on

    def finish(self) -> Trial:
        """Quiesce unless something was found, close, and return what was found."""
        progress = self._progress
        in_flight = self._ends_in_flight()
        try:
            if progress.goes_on and not in_flight:
                self._quiesce()
        except BackendFault as fault:
            progress.add([finding_of(fault)])
        finally:
            closing = self._close()
        if progress.goes_on and closing is not None:
            findings = self._oracle.judge_closing(closing, in_flight=in_flight)
            left = left_bytes(self._oracle.model, closing.readings)
            if not (in_flight and findings and self._is_left_when_idle(left)):
                progress.add(findings, closing=True)
        return Trial(
            tuple(progress.findings), progress.index, progress.skipped, progress.unsupported, tuple(progress.timeline)
        )

    def _close(self) -> Closing | None:
        try:
            return self._context.close()
        except BackendFault as fault:
            if not self._progress.findings:
                self._progress.add([finding_of(fault)], closing=True)
            return None

    def _take(self, step: CheckGauge | IterationEnd | CheckGrowth) -> None:
        progress = self._progress
        match step:
            case CheckGauge(expectation, value):
                progress.line = expectation.line
                mark = progress.marks.get(expectation.mark) if expectation.mark else None
                self._check_gauge(expectation.gauge, expectation.comparison, value, mark)
            case IterationEnd(loop, measured=True):
                progress.iterations.setdefault(loop, []).append(self._last_readings())
            case IterationEnd():
                pass
            case CheckGrowth(expectation, loop):
                progress.line = expectation.line
                samples = progress.iterations.get(loop, [])[expectation.after :]
                self._check_growth(expectation.gauge, expectation.per_iteration, samples)

    def _last_readings(self) -> Readings:
        if self._readings is None:
            # A mark changes nothing: its answer, the first, tells of what the context took when it was opened alone.
            self._oracle.begin(self._context.perform(_OPENED).observations)
            self._readings = self._context.readings()
        return self._readings

    def _perform(self, operation: Operation, expected: ExpectedOutcome | None, *, optional: bool = False) -> None:
        progress = self._progress
        if progress.never_made and not progress.never_made.isdisjoint(slots_used(operation)):
            progress.skipped += 1
            progress.never_made.update(slots_made(operation))
            return
        before = self._last_readings()
        if isinstance(operation, ops.Mark):
            progress.marks[operation.name] = before
        progress.operation = operation
        progress.performed.append(operation)
        progress.index += 1
        reply = self._context.perform(operation)
        outcome = reply.outcome
        self._readings = after = self._context.readings()
        if self._samples_left:
            self._sample(outcome, after)
        if isinstance(outcome, Unsupported):
            progress.never_made.update(slots_made(operation))
            progress.unsupported = "" if optional else f"'{progress.request}': {describe(outcome)}"
            return
        makes_a_block = isinstance(operation, _MAKES_A_BLOCK)
        origin = _Origin(progress.index - 1, progress.line, operation) if makes_a_block else ""
        findings = self._oracle.judge(operation, reply, before, after, origin)
        if not findings and expected is not None:
            findings = tuple(judge_expectation(_words(expected), _matches(expected, outcome), outcome))
        if findings:
            progress.add(findings)
        if not isinstance(outcome, _SERVED):
            progress.never_made.update(slots_made(operation))
        elif progress.never_made and (made := slots_made(operation)):
            progress.never_made.difference_update(made)

    def _sample(self, outcome: Outcome, readings: Readings) -> None:
        progress = self._progress
        self._samples_left -= 1
        progress.timeline.append(
            Sample(
                progress.index - 1,
                progress.request,
                describe(outcome),
                progress.line,
                best_reading(readings, Gauge.LIVE),
                best_reading(readings, Gauge.RESERVED),
                best_reading(readings, Gauge.PINNED),
            )
        )

    # -- expectations ----------------------------------------------------------------------------------------------

    def _check_gauge(self, gauge: Gauge, comparison: Comparison, value: int, mark: Readings | None) -> None:
        observed = best_reading(self._last_readings(), gauge)
        if observed is None:
            self._progress.unsupported = f"the backend has no gauge '{gauge}' here"
            return
        expected = value + (best_reading(mark, gauge) or 0 if mark is not None else 0)
        if not _COMPARE[comparison](observed, expected):
            stated, seen = f"{gauge} {comparison} {expected}", f"{gauge} of {observed}"
            self._progress.add([Finding(GAUGE, stated, seen, kind=Kind.UNMET_EXPECTATION)])

    def _check_growth(self, gauge: Gauge, per_iteration: int, samples: list[Readings]) -> None:
        values = [value for value in (best_reading(sample, gauge) for sample in samples) if value is not None]
        if len(values) < len(samples):
            self._progress.unsupported = f"the backend has no gauge '{gauge}' here"
        elif not grows_as_expected(values, per_iteration, cumulative=gauge.cumulative):
            name = COST if gauge.cumulative else GROWTH
            shown = [b - a for a, b in itertools.pairwise(values)] if gauge.cumulative else values
            self._progress.add(
                [
                    Finding(
                        name,
                        f"{gauge} grows {per_iteration} per iteration",
                        f"it grows {float(slope(shown)):.4g} per iteration, from {shown[0]} to {shown[-1]}",
                        kind=_kind_of_growth(gauge),
                        grade=Grade.GROWTH,
                    )
                ]
            )

    # -- quiescence ------------------------------------------------------------------------------------------------

    def _ends_in_flight(self) -> bool:
        """Whether the last request was a launch that a stall certainly holds back: then the context closes as it is."""
        last, model = self._progress.operation, self._oracle.model
        if not isinstance(last, ops.Launch) or model.captures.any_active:
            return False
        stream = model.launch_stream(last)
        return stream is not None and stream.stalled_from is not None and stream.enqueued > stream.stalled_from

    def _is_left_when_idle(self, size_bytes: int) -> bool:
        """Whether a context leaves as much when nothing is in flight: some leave what is owned to the process.

        One that breaks a rule this time, or fails, shows nothing of the kind.
        """
        try:
            again = Lockstep(self._backend, self._profile, timeline=False)
        except BackendFault:
            return False
        synchronized = synchronizing(again._oracle.model, self._description.capabilities)
        steps = (PerformStep(each, None, 0, optional=True) for each in (*self._progress.performed, *synchronized))
        goes_on = all(again.step(step) for step in steps)
        closing = again._close()
        if closing is None or not goes_on:
            return False
        again._oracle.judge_closing(closing, in_flight=True)
        return left_bytes(again._oracle.model, closing.readings) >= size_bytes

    def _quiesce(self) -> None:
        """Give everything back that the sequence still owns, in an order that is legal on every backend."""
        self._progress.line = None
        last = self._progress.operation
        trimmed = last.kind if isinstance(last, ops.Trim) and last.pool is None else None
        for group in giving_back(self._oracle, self._description.capabilities, trimmed):
            for step in self._told_ahead(PerformStep(operation, None, 0) for operation in group):
                self._perform(step.operation, None)
                if self._progress.findings:
                    return
                self._progress.unsupported = ""  # what cannot be given back one by one goes when the context closes


_COMPARE: Final = {
    Comparison.EQUAL: lambda observed, expected: observed == expected,
    Comparison.NOT_EQUAL: lambda observed, expected: observed != expected,
    Comparison.AT_MOST: lambda observed, expected: observed <= expected,
    Comparison.AT_LEAST: lambda observed, expected: observed >= expected,
    Comparison.BELOW: lambda observed, expected: observed < expected,
    Comparison.ABOVE: lambda observed, expected: observed > expected,
}


def _words(expected: ExpectedOutcome) -> str:
    return f"{expected.kind} {expected.code}" if expected.code else str(expected.kind)


def _matches(expected: ExpectedOutcome, outcome: Outcome) -> bool:
    match expected.kind:
        case ExpectedKind.ALLOCATED:
            return isinstance(outcome, Allocated)
        case ExpectedKind.DONE:
            return isinstance(outcome, Done)
        case ExpectedKind.OUT_OF_MEMORY:
            return isinstance(outcome, OutOfMemory)
        case ExpectedKind.REJECTED:
            return isinstance(outcome, Rejected) and expected.code in (None, outcome.code)


def finding_of(fault: BackendFault) -> Finding:
    """Return what a crashed, hung or nonsensical backend broke."""
    return replace(
        contract_finding(fault.rule, "an answer", fault.observed, fault.evidence), failed_call=fault.failed_call
    )


def contract_finding(rule: str, expected: str, observed: str, evidence: str = "") -> Finding:
    """Return a finding about a rule of the contract or of the wire protocol."""
    return Finding(rule, expected, observed, kind=kind_of_fault(rule), evidence=evidence)


def _kind_of_growth(gauge: Gauge) -> Kind:
    if gauge.cumulative:
        return Kind.GROWING_COST
    return Kind.HANDLE_LEAK if gauge in HANDLES else Kind.MEMORY_LEAK


def run_lockstep(backend: Backend, profile: DeviceProfile, steps: Iterable[Step], *, timeline: bool = True) -> Trial:
    """Run one sequence on a fresh context. Raises :class:`BackendUnavailable` where none opens.

    A backend that cannot describe or open itself in any other way is a finding; what ``steps`` raises passes through.
    """
    try:
        lockstep = Lockstep(backend, profile, timeline=timeline)
    except BackendFault as fault:
        return Trial((finding_of(fault),), 0, 0)
    return lockstep.run(steps)
