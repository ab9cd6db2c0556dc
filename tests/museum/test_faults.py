"""Every fault is one part of the reference replaced, and every rule of the oracle is broken by some fault's case."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from quiesce.allocators.cases.case import Case, CaseKind
from quiesce.allocators.cases.catalogue import find_cases, load
from quiesce.allocators.execution import prove_case, run_case
from quiesce.allocators.oracle.rules import NAMES
from quiesce.allocators.reference.museum import FAULTS, Fault
from quiesce.allocators.reference.world import Parts
from quiesce.backends.reference import backend, faulty
from quiesce.model.results import Verdict


@pytest.fixture(scope="module")
def cases() -> tuple[Case, ...]:
    """Every case of the corpus."""
    catalogue = load(find_cases([]))
    assert not catalogue.errors
    return catalogue.cases


def _replaced(fault: Fault) -> Iterator[str]:
    for field in dataclasses.fields(Parts):
        if getattr(fault.parts, field.name) is not getattr(Parts(), field.name):
            yield field.name


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_fault_replaces_exactly_one_part(name: str) -> None:
    fault = FAULTS[name]
    assert len(list(_replaced(fault))) == 1
    assert fault.name == name
    assert "#" in fault.upstream
    assert fault.mechanism.endswith(".")


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_fault_takes_no_promise_and_no_capability_away(name: str) -> None:
    trusted, broken = backend().describe(), faulty(name).describe()
    assert (broken.promises, broken.capabilities) == (trusted.promises, trusted.capabilities)


def test_every_fault_has_a_case_and_every_case_a_fault(cases: tuple[Case, ...]) -> None:
    named = {case.fault for case in cases if case.kind is CaseKind.REGRESSION}
    assert named == set(FAULTS)


def test_every_rule_of_the_oracle_is_what_some_case_finds(cases: tuple[Case, ...]) -> None:
    assert {case.finds for case in cases if case.kind is CaseKind.REGRESSION} == NAMES


def test_every_case_is_red_on_its_fault_for_the_rule_that_it_names(cases: tuple[Case, ...]) -> None:
    wrong = []
    for case in cases:
        if case.kind is CaseKind.REGRESSION:
            found = {finding.rule for finding in run_case(case, faulty(case.fault)).findings}
            if found != {case.finds}:
                wrong.append((case.identifier, found))
    assert not wrong


@pytest.mark.parametrize("identifier", ["pool/double_free_is_refused", "capture/unjoined_work_is_refused"])
def test_a_case_proves_itself_against_the_whole_museum(cases: tuple[Case, ...], identifier: str) -> None:
    (case,) = (case for case in cases if case.identifier == identifier)
    proof = prove_case(case)
    assert proof.ok, proof.reason
    assert proof.green.verdict is Verdict.PASSED
    assert [name for name, _ in proof.row] == sorted(FAULTS)
    assert case.finds in dict(proof.row)[case.fault]
