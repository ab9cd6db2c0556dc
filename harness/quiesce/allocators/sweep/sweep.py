"""All trials of the sweep: every program with its first call below failing, then its second, and so on to the last.

Programs are short, make an allocator grow in different ways and give everything back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from quiesce.allocators.answers import describe_backend
from quiesce.allocators.cases import Case
from quiesce.allocators.generation import named_case
from quiesce.allocators.lockstep import finding_of
from quiesce.allocators.sweep.trial import Attempt, Failing, starve, undisturbed, with_failure
from quiesce.model import operations as ops
from quiesce.model.backend import Backend, BackendFault, Capability, Description, DeviceProfile
from quiesce.model.errors import BackendUnavailable
from quiesce.model.operations import FailurePoint, InjectedError, Operation
from quiesce.model.requests import parse_request
from quiesce.model.results import Result, Verdict


@dataclass(frozen=True, slots=True)
class Program:
    """Request lines that leave nothing behind, so that they can be run again in the same context."""

    name: str
    title: str
    needs: frozenset[Capability]
    lines: tuple[str, ...]

    @property
    def fills_the_device(self) -> bool:
        """Whether it asks for device memory and nothing else, so that a device can be too small for it."""
        return self.needs == {Capability.MEMORY}

    def operations(self, description: Description) -> tuple[Operation, ...]:
        """Return the operations; what only tidies up is left out where a backend cannot do it."""
        can = description.capabilities
        return tuple(
            parse_request(line)
            for line in self.lines
            if (Capability.POOL in can or not line.startswith("trim"))
            and (Capability.STREAMS in can or line != "synchronize device")
            and (Capability.PINNED in can or line != "trim pinned")
        )


_BURST: Final = 12

PROGRAMS: Final = (
    Program(
        "growth",
        "Requests of every size, one larger than the other",
        frozenset({Capability.MEMORY}),
        (
            "a = allocate 1KiB",
            "b = allocate 64KiB",
            "c = allocate 1MiB",
            "free b",
            "d = allocate 3MiB",
            "e = allocate 200KiB",
            "free a",
            "free c",
            "free d",
            "free e",
            "synchronize device",
            "trim",
        ),
    ),
    Program(
        "burst",
        "Many blocks of one size, and a large one in the holes between them",
        frozenset({Capability.MEMORY}),
        (
            *(f"b[{number}] = allocate 64KiB" for number in range(_BURST)),
            *(f"free b[{number}]" for number in range(0, _BURST, 2)),
            "c = allocate 512KiB",
            *(f"free b[{number}]" for number in range(1, _BURST, 2)),
            "free c",
            "synchronize device",
            "trim",
        ),
    ),
    Program(
        "streams",
        "Blocks that change hands between streams",
        frozenset({Capability.MEMORY, Capability.STREAMS, Capability.LAUNCH}),
        (
            "s = create stream",
            "t = create stream",
            "a = allocate 1MiB on s",
            "launch on s writes=a",
            "free a on s",
            "b = allocate 1MiB on t",
            "launch on t writes=b",
            "c = allocate 2MiB on s",
            "launch on s writes=c",
            "free b on t",
            "free c on s",
            "synchronize device",
            "destroy stream s",
            "destroy stream t",
            "trim",
        ),
    ),
    Program(
        "pools",
        "A pool that is made, filled and destroyed",
        frozenset({Capability.MEMORY, Capability.POOLS}),
        (
            "p = create pool",
            "a = allocate 64KiB pool=p",
            "b = allocate 3MiB pool=p",
            "free a",
            "free b",
            "destroy pool p",
            "synchronize device",
            "trim",
        ),
    ),
    Program(
        "pinned",
        "Pinned host memory",
        frozenset({Capability.PINNED}),
        (
            "a = allocate 64KiB pinned",
            "b = allocate 1MiB pinned",
            "free a",
            "free b",
            "synchronize device",
            "trim pinned",
        ),
    ),
    Program(
        "managed",
        "Managed memory",
        frozenset({Capability.MANAGED}),
        (
            "a = allocate 64KiB managed",
            "b = allocate 1MiB managed",
            "free a",
            "free b",
            "synchronize device",
            "trim managed",
        ),
    ),
    Program(
        "staging",
        "Host data that is brought to the device",
        frozenset({Capability.PAGEABLE, Capability.STAGING}),
        (
            "h = allocate 64KiB pageable",
            "a = stage h",
            "b = stage h",
            "synchronize device",
            "free a",
            "free b",
            "free h",
            "synchronize device",
            "trim",
            "trim pinned",
        ),
    ),
)


CALLS_MAX: Final = 32
"""No more calls than these are made to fail in one program."""
CALLS_UNKNOWN: Final = 8
"""So many are where nobody tells how many there are."""
CAPACITY_STEPS: Final = 8

_FAILURES: Final = (
    (FailurePoint.BACKING, InjectedError.OUT_OF_MEMORY),
    (FailurePoint.BACKING, InjectedError.FOREIGN),
    (FailurePoint.BOOKKEEPER, InjectedError.OUT_OF_MEMORY),
    (FailurePoint.BOOKKEEPER, InjectedError.FOREIGN),
)


@dataclass(frozen=True, slots=True)
class Swept:
    """What came of one program under one kind of failure; ``case`` is what failed, and fails again."""

    result: Result
    case: Case | None = None


RESULTS_MAX: Final = sum(1 + len(_FAILURES) + program.fills_the_device for program in PROGRAMS)
"""How many results a sweep has at most."""
UNDISTURBED: Final = "undisturbed"
"""What a program is called when nothing is made to fail."""
_NO_FAILURE: Final = "no call was seen to fail: this allocator makes none there, or does without"


def sweep(backend: Backend, *, name: str, reproduce: str) -> Iterator[Swept]:
    """Yield what came of every program under every kind of failure, as each is there.

    ``name`` is what the backend was asked for as, ``reproduce`` the command that sweeps it again. Raises
    :class:`quiesce.model.backend.BackendFault` where the backend cannot describe itself.
    """
    sweeper = _Sweeper(backend, describe_backend(backend), name, reproduce)
    for program in PROGRAMS:
        yield from sweeper.inject(program)
        if program.fills_the_device:
            yield sweeper.starve(program)


class _Sweeper:
    def __init__(self, backend: Backend, description: Description, name: str, reproduce: str) -> None:
        self._backend = backend
        self._description = description
        self._name = name
        self._reproduce = reproduce

    def inject(self, program: Program) -> Iterator[Swept]:
        """Fail one call after the other; not where the program does not even work without a failure."""
        operations = program.operations(self._description)
        calls = CALLS_MAX

        def alone() -> Iterator[Attempt]:
            nonlocal calls
            attempt = undisturbed(self._backend, operations)
            calls = min(CALLS_UNKNOWN if attempt.calls is None else attempt.calls, CALLS_MAX)
            yield attempt

        draft = self._draft(program, UNDISTURBED, f"{program.title}: nothing fails")
        first = self._run(draft, program, Capability.INJECTION, alone())
        yield first
        if first.result.verdict is not Verdict.PASSED:
            return
        for point, error in _FAILURES:
            draft = self._draft(program, f"{point}_{error}".replace("-", "_"), f"{program.title}: {point} fails")
            count = calls if point is FailurePoint.BACKING else CALLS_UNKNOWN
            failures = (Failing(point, nth, error) for nth in range(1, count + 1))
            attempts = (with_failure(self._backend, operations, failing) for failing in failures)
            yield self._run(draft, program, Capability.INJECTION, attempts)

    def starve(self, program: Program) -> Swept:
        """Make the device too small, by one part after the other."""
        draft = self._draft(program, "capacity", f"{program.title}: the device is too small")
        return self._run(draft, program, Capability.CAPACITY, self._capacities(program))

    def _capacities(self, program: Program) -> Iterator[Attempt]:
        operations = program.operations(self._description)
        needed_bytes = sum(each.size_bytes for each in operations if isinstance(each, ops.Allocate))
        for step in range(1, CAPACITY_STEPS + 1):
            part_bytes = needed_bytes * step // CAPACITY_STEPS
            yield starve(self._backend, operations, DeviceProfile(capacity_bytes=part_bytes))

    def _run(self, draft: Result, program: Program, by: Capability, attempts: Iterator[Attempt]) -> Swept:
        if missing := sorted((program.needs | {by}) - self._description.capabilities):
            return Swept(replace(draft, verdict=Verdict.UNSUPPORTED, reason=f"lacks {', '.join(missing)}"))
        performed = met = 0
        try:
            for attempt in attempts:
                trial = attempt.trial
                performed += trial.operations
                met += attempt.met
                result = replace(draft, operations=performed, timeline=trial.timeline)
                if trial.findings:
                    failed = replace(result, verdict=Verdict.FAILED, reason=attempt.what, findings=trial.findings)
                    return Swept(failed, self._case(draft, attempt))
                if trial.unsupported:
                    return Swept(replace(result, verdict=Verdict.UNSUPPORTED, reason=trial.unsupported))
                if attempt.refused_undisturbed:
                    reason = "a request was refused without any failure"
                    return Swept(replace(result, verdict=Verdict.INCONCLUSIVE, reason=reason))
        except BackendUnavailable as unavailable:
            return Swept(replace(draft, verdict=Verdict.UNSUPPORTED, reason=str(unavailable), operations=performed))
        except BackendFault as fault:
            return Swept(replace(draft, verdict=Verdict.FAILED, findings=(finding_of(fault),), operations=performed))
        verdict, reason = (
            (Verdict.PASSED, "") if met or draft.case.endswith(UNDISTURBED) else (Verdict.INCONCLUSIVE, _NO_FAILURE)
        )
        return Swept(replace(draft, verdict=verdict, reason=reason, operations=performed))

    def _draft(self, program: Program, what: str, title: str) -> Result:
        return Result(
            case=f"sweep/{program.name}/{what}",
            title=title,
            path="",
            backend=self._name,
            verdict=Verdict.PASSED,
            reproduce=self._reproduce,
        )

    def _case(self, draft: Result, attempt: Attempt) -> Case | None:
        if not attempt.body:
            return None
        name = draft.case.replace("/", "_")
        found_by = f"{self._reproduce} ({draft.case})"
        return named_case(attempt.case(), attempt.trial.findings[0], self._description, found_by=found_by, name=name)
