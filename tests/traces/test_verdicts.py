"""What the processes of a program make of its run: who leaves it without a verdict, and who does no harm."""

from __future__ import annotations

import pytest

from quiesce.model.findings import Finding
from quiesce.model.results import Verdict
from quiesce.simulator.judge.process import Process, results_of
from quiesce.simulator.judge.tested import Untested
from quiesce.simulator.runtime.flavours import parse_flavour

CUDA = parse_flavour("cuda:12")
TESTED = Process((), 5, None)
FOUND = Process((Finding("rule", "a", "b"),), 5, None)
IDLE = Process((), 0, Untested("it only asked", refused=False))
REFUSED = Process((), 1, Untested("it was refused", refused=True))
UNCHECKED = Process((), 5, None, unchecked="it held 1 block")
FOUND_UNCHECKED = Process(FOUND.findings, 5, None, unchecked="it held 1 block")
FOUND_REFUSED = Process(FOUND.findings, 5, REFUSED.untested)


@pytest.mark.parametrize(
    ("processes", "verdicts"),
    [
        ((TESTED,), "passed"),
        ((IDLE,), "unresolved"),
        ((REFUSED,), "unresolved"),
        ((FOUND_REFUSED,), "failed"),
        ((UNCHECKED,), "unresolved"),
        ((TESTED, UNCHECKED), "passed unresolved"),
        ((FOUND_UNCHECKED,), "failed"),
        ((TESTED, IDLE), "passed inconclusive"),
        ((FOUND, IDLE), "failed inconclusive"),
        ((IDLE, IDLE), "unresolved unresolved"),
        ((TESTED, REFUSED), "passed unresolved"),
        ((IDLE, REFUSED), "unresolved unresolved"),
    ],
)
def test_helpers_are_let_be_and_refused_workers_are_not(processes: tuple[Process, ...], verdicts: str) -> None:
    results = results_of(processes, CUDA, "client", "")
    assert " ".join("unresolved" if each.is_unresolved else each.verdict for each in results) == verdicts


def test_a_program_that_failed_has_no_verdict_and_says_both_reasons() -> None:
    (passed,) = results_of([TESTED], CUDA, "client", "it ended with status 1")
    assert (passed.verdict, passed.reason, passed.is_unresolved) == (
        Verdict.INCONCLUSIVE,
        "it ended with status 1",
        True,
    )
    (refused,) = results_of([REFUSED], CUDA, "client", "it ended with status 1")
    assert refused.reason == "it ended with status 1; nothing was tested: it was refused"


def test_what_a_program_that_failed_asked_for_in_vain_is_part_of_the_reason() -> None:
    process = Process((), 5, None, causes="nvrtcVersion is not simulated")
    (failed,) = results_of([process], CUDA, "client", "it ended with status 1")
    assert failed.reason == "it ended with status 1; nvrtcVersion is not simulated"
    (passed,) = results_of([process], CUDA, "client", "")
    assert (passed.verdict, passed.reason) == (Verdict.PASSED, "")


def test_what_one_of_several_processes_did_not_test_is_its_own() -> None:
    assert results_of([TESTED, REFUSED], CUDA, "client", "")[1].reason == "this process tested nothing: it was refused"


def test_one_process_has_the_programs_name_and_several_are_numbered() -> None:
    assert [each.case for each in results_of([TESTED], CUDA, "client", "")] == ["client"]
    names = [each.case for each in results_of([TESTED, IDLE], CUDA, "client", "")]
    assert names == ["client (process 1)", "client (process 2)"]
