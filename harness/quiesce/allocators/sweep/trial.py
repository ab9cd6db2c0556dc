"""One trial of the sweep: a program, several times over in one context, with a call below it failing each time.

A request that fails is made once more, and has to be served: the failure is over, and there is room. What was
performed is kept as the body of a case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from quiesce.allocators.cases import (
    Case,
    CheckGauge,
    Comparison,
    ExpectedKind,
    ExpectedOutcome,
    ExpectGauge,
    PerformStep,
    Request,
    Statement,
    makes_of,
)
from quiesce.allocators.generation import GeneratedSequence
from quiesce.allocators.lockstep import Lockstep, Trial
from quiesce.allocators.oracle import judge_expectation
from quiesce.model import operations as ops
from quiesce.model.backend import Backend, Capability, Closing, Context, Description, DeviceProfile, Promise, Reply
from quiesce.model.findings import Finding
from quiesce.model.gauges import Gauge, Readings, Source
from quiesce.model.observations import BackingAllocated, BackingRefused
from quiesce.model.operations import FailurePoint, InjectedError, Operation
from quiesce.model.outcomes import Allocated, Done, Outcome, OutOfMemory, Rejected
from quiesce.model.requests import format_request
from quiesce.model.wording import bytes_in_words

PASSES: Final = 4
WARM_UP_PASSES: Final = 2
SETTLED: Final = "settled"
"""The mark behind the passes that may still warm something up."""
_MAKES_A_BLOCK: Final = (ops.Allocate, ops.Stage)
_KEPT: Final = (Gauge.RESERVED, Gauge.PINNED)
"""What a program that gives everything back, and trims, does not make grow where that returns all of it."""


@dataclass(frozen=True, slots=True)
class Failing:
    """The ``nth`` call at ``point``, which fails once with ``error``, each time the program runs."""

    point: FailurePoint
    nth: int
    error: InjectedError

    @property
    def is_out_of_memory(self) -> bool:
        """Whether the backing allocator has no memory: then a request for a block has one answer."""
        return self.point is FailurePoint.BACKING and self.error is InjectedError.OUT_OF_MEMORY


@dataclass(frozen=True, slots=True)
class Attempt:
    """What came of one trial. ``what`` was done to the program; ``calls`` were made below (None: nobody tells).

    ``met`` says whether a call below is known to have failed, ``refused_undisturbed`` whether a request was refused
    although none was made to.
    """

    trial: Trial
    device: DeviceProfile
    body: tuple[Statement, ...]
    what: str = ""
    met: bool = False
    calls: int | None = None
    refused_undisturbed: bool = False

    def case(self) -> Case:
        """Return what was performed as the body of a nameless case."""
        return replace(GeneratedSequence(self.device, ()).case(), body=self.body)


def undisturbed(backend: Backend, operations: Sequence[Operation]) -> Attempt:
    """Run a program as often as with a failure, without one."""
    driver = _Driver(backend, DeviceProfile())
    calls = None
    for number in range(PASSES):
        for operation in operations:
            driver.perform(operation)
        calls = driver.backing_calls if number == 0 else calls
        if number + 1 == WARM_UP_PASSES:
            driver.perform(ops.Mark(SETTLED))
    driver.check_nothing_grew()
    attempt = driver.finish("without any failure")
    return replace(attempt, met=False, calls=calls, refused_undisturbed=driver.refused > 0)


def with_failure(backend: Backend, operations: Sequence[Operation], failing: Failing) -> Attempt:
    """Run a program several times, with a call failing in each."""
    driver = _Driver(backend, DeviceProfile())
    for number in range(PASSES):
        driver.perform(ops.InjectFailure(failing.point, failing.nth, failing.error))
        for operation in operations:
            _insist(driver, operation, failing)
        if number + 1 == WARM_UP_PASSES:
            driver.perform(ops.Mark(SETTLED))
    driver.check_nothing_grew()
    return driver.finish(f"call {failing.nth} to the {failing.point} fails: {failing.error}")


def _insist(driver: _Driver, operation: Operation, failing: Failing) -> None:
    """Perform an operation, and where it is refused once more: then it has to be served.

    A thing that could not be given up is given up again, without a claim: the failure came before or behind it.
    """
    outcome = driver.perform(operation)
    if not isinstance(outcome, OutOfMemory | Rejected):
        return
    makes_a_block = isinstance(operation, _MAKES_A_BLOCK)
    if failing.is_out_of_memory and makes_a_block and isinstance(outcome, Rejected):
        driver.accuse(operation, outcome)
    elif makes_of(operation):
        driver.perform(operation, ExpectedKind.ALLOCATED if makes_a_block else ExpectedKind.DONE)
    else:
        driver.perform(operation)


def starve(backend: Backend, operations: Sequence[Operation], device: DeviceProfile) -> Attempt:
    """Run a program on a device that may be too small, and ask once more for what was served first."""
    driver = _Driver(backend, device)
    first: ops.Allocate | None = None
    for operation in operations:
        outcome = driver.perform(operation)
        if isinstance(operation, ops.Allocate) and isinstance(outcome, Allocated):
            first = first or operation
    if first is not None:  # everything was given back since, and a trim may have recorded events
        if any(isinstance(operation, ops.SynchronizeDevice) for operation in operations):
            driver.perform(ops.SynchronizeDevice())
        driver.perform(first, ExpectedKind.ALLOCATED)
        driver.perform(ops.Free(first.slot))
    return driver.finish(f"the device has {bytes_in_words(device.capacity_bytes)}")


class _Driver:
    """One context that is driven step by step, until something is found."""

    def __init__(self, backend: Backend, device: DeviceProfile) -> None:
        self._device = device
        self._recorder = _Recorder(backend)
        description = self._recorder.describe()
        trims = Promise.TRIMS_TO_ZERO in description.promises and Capability.POOL in description.capabilities
        self._gauges = tuple(gauge for gauge in _KEPT if trims and gauge in description.gauges)
        self._lockstep = Lockstep(self._recorder, device)
        self._body: list[Statement] = []
        self._accused: tuple[Finding, ...] = ()
        self._goes_on = True
        self.refused = 0

    @property
    def backing_calls(self) -> int | None:
        """How many calls were made below so far; None where nobody tells."""
        return self._recorder.asks or self._recorder.backing_calls

    def perform(self, operation: Operation, expected: ExpectedKind | None = None) -> Outcome | None:
        """Perform an operation; return its outcome, or None where nothing is performed any more."""
        if not self._goes_on:
            return None
        line = len(self._body) + 1
        stated = None if expected is None else ExpectedOutcome(expected)
        self._recorder.outcome = None
        self._goes_on = self._lockstep.step(PerformStep(operation, stated, line))
        outcome = self._recorder.outcome
        if outcome is not None:
            refusal = _refusal(outcome)
            self.refused += refusal is not None
            self._body.append(Request(format_request(operation), stated or refusal, line))
        return outcome

    def accuse(self, operation: Operation, outcome: Outcome) -> None:
        """Find fault with the last outcome, which should have been out of memory."""
        stated = ExpectedOutcome(ExpectedKind.OUT_OF_MEMORY)
        request = format_request(operation)
        self._body[-1] = Request(request, stated, len(self._body))
        findings = judge_expectation(str(stated.kind), False, outcome)
        self._accused = tuple(replace(found, line=len(self._body), request=request) for found in findings)
        self._goes_on = False

    def check_nothing_grew(self) -> None:
        """Compare what is kept now with what was kept at the mark."""
        for gauge in self._gauges:
            if self._goes_on:
                expectation = ExpectGauge(gauge, Comparison.AT_MOST, "0", SETTLED, len(self._body) + 1)
                self._body.append(expectation)
                self._goes_on = self._lockstep.step(CheckGauge(expectation, 0))

    def finish(self, what: str) -> Attempt:
        """Give everything back, close, and say what came of it."""
        trial = self._lockstep.finish()
        trial = replace(trial, findings=self._accused or trial.findings)
        met = bool(self.refused or self._recorder.refusals)
        return Attempt(trial, self._device, tuple(self._body), what, met)


def _refusal(outcome: Outcome) -> ExpectedOutcome | None:
    if isinstance(outcome, Allocated | Done):
        return None
    return ExpectedOutcome(ExpectedKind.OUT_OF_MEMORY if isinstance(outcome, OutOfMemory) else ExpectedKind.REJECTED)


class _Recorder:
    """A backend whose last outcome is remembered, and what was asked of the backing allocator."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.outcome: Outcome | None = None
        self.asks = self.refusals = 0
        self.backing_calls: int | None = None

    def describe(self) -> Description:
        return self._backend.describe()

    def open(self, profile: DeviceProfile) -> Context:
        return _RecordedContext(self._backend.open(profile), self)


class _RecordedContext:
    def __init__(self, context: Context, recorder: _Recorder) -> None:
        self._context = context
        self._recorder = recorder

    def perform(self, operation: Operation) -> Reply:
        reply = self._context.perform(operation)
        recorder = self._recorder
        recorder.outcome = reply.outcome
        for seen in reply.observations:
            recorder.asks += isinstance(seen, BackingAllocated | BackingRefused)
            recorder.refusals += isinstance(seen, BackingRefused)
        return reply

    def readings(self) -> Readings:
        readings = self._context.readings()
        for source in Source:
            calls = readings.get((Gauge.BACKING_CALLS, source))
            self._recorder.backing_calls = calls if calls is not None else self._recorder.backing_calls
        return readings

    def close(self) -> Closing:
        return self._context.close()
