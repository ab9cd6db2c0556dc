"""The sweep: failing calls are survived by who is right, found where somebody is wrong, and replay as a case."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from quiesce.allocators.cases.parser import parse_text
from quiesce.allocators.cases.writer import write_case
from quiesce.allocators.execution import run_case
from quiesce.allocators.sweep import RESULTS_MAX, Swept, sweep
from quiesce.allocators.sweep.sweep import PROGRAMS, Program
from quiesce.backends.reference import backend as reference
from quiesce.backends.reference import faulty
from quiesce.model import operations as ops
from quiesce.model.backend import Backend, Capability, Closing, Context, Description, DeviceProfile, Promise, Reply
from quiesce.model.gauges import Readings
from quiesce.model.operations import Operation
from quiesce.model.outcomes import Allocated, OutOfMemory, Rejected
from quiesce.model.results import Verdict


def swept(backend: Backend) -> list[Swept]:
    return list(sweep(backend, name="mine", reproduce="quiesce conformance --backend mine"))


def failures(backend: Backend) -> dict[str, str]:
    """Return what was found, by program and kind of failure."""
    return {
        each.result.case.removeprefix("sweep/"): each.result.findings[0].rule
        for each in swept(backend)
        if each.result.verdict is Verdict.FAILED
    }


def test_the_reference_survives_every_failure() -> None:
    found = swept(reference())
    assert len(found) == RESULTS_MAX
    verdicts = Counter(each.result.verdict for each in found)
    assert set(verdicts) == {Verdict.PASSED, Verdict.INCONCLUSIVE}
    passed = {each.result.case for each in found if each.result.verdict is Verdict.PASSED}
    for program in PROGRAMS:
        assert {f"sweep/{program.name}/backing_{error}" for error in ("out_of_memory", "foreign_error")} <= passed
    assert {"sweep/growth/bookkeeper_foreign_error", "sweep/burst/capacity"} <= passed


@pytest.mark.parametrize(
    ("fault", "program", "rule"),
    [
        ("pool.bookkeeper_orphan", "growth/bookkeeper_out_of_memory", "trim_returns_what_nobody_uses"),
        ("pool.squeezes_on_any_error", "burst/backing_foreign_error", "foreign_errors_are_passed_on"),
        ("pinned.keeps_failed_destination", "staging/backing_foreign_error", "block_count_follows_the_sequence"),
        ("pool.no_squeeze", "growth/capacity", "request_fits_but_out_of_memory"),
        ("pool.no_smaller_chunk", "growth/capacity", "pool_falls_back_to_a_smaller_chunk"),
        ("pool.managed_survives_trim", "managed/undisturbed", "trim_returns_what_nobody_uses"),
    ],
)
def test_a_fault_of_the_museum_is_found(fault: str, program: str, rule: str) -> None:
    assert failures(faulty(fault))[program] == rule


def test_what_fails_replays_as_a_case() -> None:
    backend = faulty("pool.bookkeeper_orphan")
    for each in swept(backend):
        if each.result.verdict is Verdict.FAILED:
            assert each.case is not None
            case = parse_text(write_case(each.case), "found/x.case", "found/x")
            again = run_case(case, backend)
            assert [finding.rule for finding in again.findings] == [each.case.finds]
            assert run_case(case, reference()).verdict is not Verdict.FAILED


class Clumsy:
    """The reference behind an adapter that is wrong about failures."""

    def __init__(self, mistake: str) -> None:
        self._mistake = mistake

    def describe(self) -> Description:
        return replace(reference().describe(), promises=frozenset({Promise.TRIMS_TO_ZERO}))

    def open(self, profile: DeviceProfile) -> Context:
        return ClumsyContext(reference().open(profile), self._mistake)


class ClumsyContext:
    def __init__(self, context: Context, mistake: str) -> None:
        self._context = context
        self._mistake = mistake
        self._failed = False

    def perform(self, operation: Operation) -> Reply:
        if self._mistake == "gives up" and self._failed and isinstance(operation, ops.Allocate):
            return Reply(OutOfMemory())
        reply = self._context.perform(operation)
        if isinstance(operation, ops.Allocate) and isinstance(reply.outcome, OutOfMemory | Rejected):
            self._failed = True
            if self._mistake == "wrong word":
                return replace(reply, outcome=Rejected("something-went-wrong"))
            if self._mistake == "pretends":
                return replace(reply, outcome=Allocated(1 << 40))
        return reply

    def readings(self) -> Readings:
        return self._context.readings()

    def close(self) -> Closing:
        return self._context.close()


@pytest.mark.parametrize(
    ("mistake", "kind", "rule"),
    [
        ("wrong word", "backing_out_of_memory", "errors_are_the_documented_ones"),
        ("gives up", "backing_foreign_error", "request_fits_but_out_of_memory"),
        ("pretends", "backing_foreign_error", "blocks_lie_within_backing_memory"),
    ],
)
def test_a_wrong_answer_to_a_failure_is_found(mistake: str, kind: str, rule: str) -> None:
    backend = Clumsy(mistake)
    found = {each.result.case: each for each in swept(backend) if each.result.verdict is Verdict.FAILED and each.case}
    assert any(kind in case for case in found)
    case, each = next((case, each) for case, each in found.items() if kind in case)
    assert each.result.findings[0].rule == rule, case
    assert each.case is not None
    assert [finding.rule for finding in run_case(each.case, backend).findings] == [rule]


def test_what_cannot_fail_here_is_unsupported() -> None:
    class Plain(Clumsy):
        def describe(self) -> Description:
            return replace(super().describe(), capabilities=frozenset({Capability.MEMORY, Capability.POOL}))

    assert {each.result.verdict for each in swept(Plain("none"))} == {Verdict.UNSUPPORTED}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_records_have_their_time_before_what_is_kept_is_judged(program: Program) -> None:
    given_back = max(index for index, line in enumerate(program.lines) if line.startswith(("free", "destroy pool")))
    synchronized = program.lines.index("synchronize device", given_back)
    assert any(line.startswith("trim") for line in program.lines[synchronized:])
