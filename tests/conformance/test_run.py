"""The conformance run: each thing that a third party gets wrong is found by its name, and nobody else is accused."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quiesce.allocators.cases.case import Case, Known
from quiesce.allocators.cases.catalogue import find_cases, load
from quiesce.allocators.conformance import Conformance, Standing, run_conformance
from quiesce.backends.command import CommandBackend
from quiesce.backends.reference import backend as reference
from quiesce.backends.reference import faulty
from quiesce.model import operations as ops
from quiesce.model.backend import Backend, DeviceProfile
from quiesce.model.errors import BackendUnavailable, ConfigurationError
from quiesce.model.gauges import Gauge
from quiesce.model.results import Result, Verdict
from quiesce.model.rules import (
    BEGIN_ALIKE,
    CLAIMS_REST,
    CLAIMS_SERVED,
    CLOSE_AGAIN,
    GAUGES_READ,
    HOLD_NOTHING,
    LEDGER_FITS,
    LEDGER_TOLD,
    MAKES_SENSE,
    NEVER_FALL,
    OUTCOMES_FIT,
    OWN_NAMES,
    RAISED,
    READ_ALIKE,
    RULES,
    SHARE_NOTHING,
    STAYS_THE_SAME,
)

from . import backends as faults

OPERATIONS = 300
CASES = ["pool/squeeze_before_out_of_memory", "pool/double_free_is_refused", "reuse/reuse_waits_for_the_last_use"]
CONTRACT = "contract/"


@pytest.fixture(scope="module")
def few() -> tuple[Case, ...]:
    """A handful of cases: they are not what is tested here."""
    return load(find_cases([Path(name) for name in CASES])).cases


def examine(backend: Backend, cases: tuple[Case, ...], operations: int = OPERATIONS) -> Conformance:
    return run_conformance(backend, operations=operations, cases=cases)


def broken(conformance: Conformance) -> set[str]:
    """Return the rules of everything that was found about the contract."""
    return {finding.rule for result in conformance.contract for finding in result.findings}


FAULTY: list[tuple[str, Backend, str, str]] = [
    ("raises", faults.Altered(lambda _: 1 // 0), RAISED, "BackendUnavailable where the backend cannot work here"),
    ("garbage", faults.Altered(lambda _: {"name": "mine"}), RAISED, "a Description: capabilities and promises are"),
    ("changes", faults.changing(), STAYS_THE_SAME, "the same Description every time"),
    ("describes once", faults.describing_once(), STAYS_THE_SAME, "the same Description every time"),
    ("empty name", faults.described(name=""), MAKES_SENSE, "a name of printable characters"),
    ("odd alignment", faults.described(alignment_bytes=24), MAKES_SENSE, "a power of two"),
    ("negative chunk", faults.described(chunk_bytes=-1), MAKES_SENSE, "backing bytes that a tiny request may take"),
    ("no factor", faults.described(footprint_factor=0), MAKES_SENSE, "at least 1"),
    ("no source", faults.described(gauges={Gauge.LIVE: frozenset()}), MAKES_SENSE, "who counts 'live'"),
    ("stall alone", faults.described(capabilities=faults.STREAMLESS), CLAIMS_REST, "claim streams as well"),
    ("no nodes", faults.described(gauges={}, promises=faults.PROMISES), CLAIMS_REST, "the gauge 'cost'"),
    ("open raises", faults.Altered(opening=lambda _: 1 // 0), RAISED, "for a profile that cannot be provided"),
    ("opens None", faults.Altered(opening=lambda _: None), RAISED, "with the methods perform, readings and close"),
    ("one context", faults.sharing_one_context(), SHARE_NOTHING, "nothing in the backend or its module"),
    ("counts on", faults.keeping_gauges(), BEGIN_ALIKE, "keep everything in the context that open() returns"),
    ("closes once", faults.Altered(wrapping=faults.ClosesOnce), RAISED, "again when it is closed a second time"),
    (
        "counts readings",
        faults.Altered(wrapping=faults.CountsReadings),
        READ_ALIKE,
        "nothing of what readings() itself",
    ),
    ("reads once", faults.Altered(wrapping=faults.ReadsOnce), CLOSE_AGAIN, "releases everything the first time"),
    ("serves on", faults.Altered(wrapping=faults.ServesOnce), HOLD_NOTHING, "Rejected(ILLEGAL_STATE)"),
    ("calls on", faults.Altered(wrapping=faults.CallsAfterClose), RAISED, "Rejected(code), OutOfMemory() or"),
    ("KeyError", faults.raising(KeyError("a"), ops.Free), RAISED, "for a slot that names nothing"),
    ("MemoryError", faults.raising(MemoryError()), RAISED, "Reply(OutOfMemory())"),
    ("not implemented", faults.raising(NotImplementedError()), RAISED, "do not claim the capability"),
    ("no reply", faults.answering(lambda _, reply: reply.outcome), RAISED, "Reply(outcome, observations)"),
    ("missing", faults.reading(faults.without(Gauge.BLOCKS)), GAUGES_READ, "in every readings(), or take it out"),
    ("mixed up", faults.reading(faults.mixed_up), GAUGES_READ, "the same source in both"),
    ("texts", faults.reading(lambda readings: dict.fromkeys(readings, "7")), RAISED, "(Gauge, Source) to int"),
    ("falls", faults.reading(faults.falling), NEVER_FALL, "it rises or stays"),
    ("claims", faults.answering(faults.unsupported_launch), CLAIMS_SERVED, "serve it, or do not claim launch"),
    ("marks", faults.answering(faults.unsupported_mark), CLAIMS_SERVED, "Done(): every backend lets itself be marked"),
    ("done", faults.answering(faults.done_for_a_block), OUTCOMES_FIT, "Allocated(address) for what makes a block"),
    ("address", faults.answering(faults.allocated_for_a_free), OUTCOMES_FIT, "Done() for what makes no block"),
    ("twice", faults.observing(faults.freed_twice), LEDGER_FITS, "one BackingFreed for each BackingAllocated"),
    ("never freed", faults.observing(faults.never_freed), LEDGER_FITS, "every call that changes it"),
    ("sizes", faults.observing(faults.of_other_sizes), LEDGER_FITS, "with the size that was allocated there"),
    ("page", faults.reading(faults.off_by_a_page), LEDGER_FITS, "what the backend counts itself is a claim"),
    ("silent", faults.observing(faults.silent), LEDGER_TOLD, "a BackingAllocated in the Reply"),
    ("names", faults.observing(faults.named_like_slots), OWN_NAMES, "'internal:event'"),
]


@pytest.mark.parametrize(("backend", "rule", "instead"), [f[1:] for f in FAULTY], ids=[f[0] for f in FAULTY])
def test_what_breaks_the_contract_is_found(backend: Backend, rule: str, instead: str, few: tuple[Case, ...]) -> None:
    conformance = examine(backend, few)
    assert conformance.standing is Standing.DOES_NOT_CONFORM
    found = [finding for finding in conformance.findings if finding.rule == rule]
    assert any(instead in finding.expected for finding in found), conformance.text()
    assert all("\n" not in finding.expected for finding in found)


def test_every_rule_has_a_fault_that_breaks_it() -> None:
    assert {rule for _, _, rule, _ in FAULTY} == set(RULES)


def test_names_that_nothing_has_are_refused(few: tuple[Case, ...]) -> None:
    conformance = examine(faults.answering(faults.serving_strangers), few)
    (result,) = [each for each in conformance.contract if each.case == "contract/names_that_nothing_has_are_refused"]
    assert [finding.rule for finding in result.findings] == ["invalid_requests_are_refused"]


def test_the_small_reference_is_not_accused(few: tuple[Case, ...]) -> None:
    conformance = examine(faults.Altered(), few)
    assert conformance.conforms, conformance.text()
    assert broken(conformance) == set()


def test_the_reference_conforms_to_all_of_it(few: tuple[Case, ...]) -> None:
    conformance = examine(reference(), few)
    assert conformance.conforms, conformance.text()
    assert broken(conformance) == set()
    assert {result.verdict for result in conformance.contract} == {Verdict.PASSED}
    assert {result.case for result in conformance.corpus} == set(CASES)
    assert any(result.verdict is Verdict.PASSED for result in conformance.sweep)
    assert [campaign.operations >= OPERATIONS for campaign in conformance.campaigns] == [True, True]
    assert conformance.operations > 2 * OPERATIONS
    performed = sum(campaign.operations for campaign in conformance.campaigns)
    held = f"{len(CASES)} cases hold, and {performed:,} generated operations break no rule"
    assert conformance.text().endswith(f"\nreference conforms: {held}\n")


@pytest.mark.long
def test_a_fault_of_the_allocator_is_no_breach_of_the_contract(few: tuple[Case, ...]) -> None:
    conformance = examine(faulty("pool.no_squeeze"), few, 3000)
    assert conformance.standing is Standing.DOES_NOT_CONFORM
    assert broken(conformance) == set()
    assert {finding.rule for finding in conformance.findings} == {"request_fits_but_out_of_memory"}
    assert len(conformance.found) >= 2
    assert {case.finds for case in conformance.found} == {"request_fits_but_out_of_memory"}
    numbers = [int(number) for number in re.findall(r"\d+(?= findings? in | in )", conformance.conclusion)]
    assert sum(numbers) == len(conformance.findings)
    assert conformance.conclusion.endswith(" and 1 in generated sequences")


def test_one_sequence_is_not_several(few: tuple[Case, ...]) -> None:
    text = run_conformance(reference(), operations=1, cases=few).text()
    assert " in 1 valid sequence, " in text
    assert " in 1 hostile sequence, " in text


@pytest.mark.long
def test_a_seed_reproduces_a_run(few: tuple[Case, ...]) -> None:
    first, second = (examine(faulty("reuse.ignores_guards"), few) for _ in range(2))
    assert first.results == second.results
    assert first.text() == second.text()


def test_every_result_is_reported_as_it_is_there(few: tuple[Case, ...]) -> None:
    reported: list[Result] = []
    told: list[tuple[int, int, str]] = []
    conformance = run_conformance(
        faults.Altered(),
        operations=OPERATIONS,
        cases=few,
        name="mine",
        report=reported.append,
        progress=lambda *progress: told.append(progress),
    )
    assert sorted(map(repr, reported)) == sorted(map(repr, conformance.results))
    assert {result.backend for result in reported} == {"mine"}
    assert all("--backend mine" in result.reproduce for result in reported)
    parts = {what.partition(":")[0].partition(",")[0] for _, _, what in told}
    assert parts == {"contract", "corpus", "sweep", "operations"}
    assert all(done > 0 for done, _, _ in told)


def test_a_run_without_cases_proves_nothing() -> None:
    conformance = run_conformance(faults.Altered(), operations=OPERATIONS, cases=())
    assert conformance.standing is Standing.UNPROVEN
    assert not conformance.conforms
    assert conformance.text().endswith(" is unproven: no case was executed and passed. This is not a pass.\n")


def test_a_backend_that_claims_nothing_proves_nothing(few: tuple[Case, ...]) -> None:
    nothing = faults.described(capabilities=frozenset(), promises=frozenset())
    conformance = examine(nothing, few)
    assert conformance.standing is Standing.UNPROVEN
    assert "no generated operation was performed" in conformance.unproven


def test_a_broken_case_proves_nothing(few: tuple[Case, ...]) -> None:
    malformed = replace(few[0], known=(Known("reference", "not a version", "x#1"),))
    conformance = examine(faults.Altered(), (malformed, *few[1:]))
    assert conformance.standing is Standing.UNPROVEN
    assert conformance.unproven == (f"the case {few[0].identifier} is broken",)


def test_a_backend_that_cannot_work_here_is_unavailable() -> None:
    def unavailable(*_: object) -> Any:
        raise BackendUnavailable("mine", "no device", "plug one in")

    for backend in (faults.Altered(unavailable), faults.Altered(opening=unavailable)):
        with pytest.raises(BackendUnavailable, match="plug one in"):
            run_conformance(backend, operations=1, cases=())


def test_one_context_at_a_time_is_no_breach(few: tuple[Case, ...]) -> None:
    open_now: list[object] = []

    class Only(faults.Passing):
        def close(self) -> Any:
            open_now.clear()
            return super().close()

    def opening(profile: DeviceProfile) -> Any:
        if open_now:
            raise BackendUnavailable("mine", "the runtime is one per process", "close the other context")
        open_now.append(profile)
        return Only(reference().open(profile))

    conformance = examine(faults.Altered(opening=opening), few)
    assert conformance.conforms, conformance.text()
    told = {gap.what: gap.why for gap in conformance.not_exercised}
    assert told[f"contract/{SHARE_NOTHING}"] == "one context at a time: the runtime is one per process"


@pytest.mark.parametrize(
    ("backend", "advice"),
    [
        ("reference", r"write run_conformance\(load_backend\('reference'\)\)"),
        (faults.Altered, r"write run_conformance\(Altered\(\)\)"),
        (object(), "pass an object with describe"),
    ],
)
def test_what_is_no_backend_is_told_apart(backend: Any, advice: str) -> None:
    with pytest.raises(ConfigurationError, match=advice):
        run_conformance(backend)


def test_no_operations_are_an_error() -> None:
    with pytest.raises(ConfigurationError, match="at least 1"):
        run_conformance(reference(), operations=0)


@pytest.mark.long
def test_it_needs_no_pytest(tmp_path: Path) -> None:
    program = (
        "import sys; from quiesce.allocators.conformance import run_conformance\n"
        "from quiesce.backends.reference import backend\n"
        "found = run_conformance(backend(), operations=50)\n"
        "assert not {'pytest', 'hypothesis', '_pytest'} & set(sys.modules), sorted(sys.modules)\n"
        "print(found.conforms)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def _installed(name: str) -> Backend:
    module = importlib.import_module(f"quiesce.backends.{name}")
    backend: Backend = module.backend()
    try:
        backend.describe()
    except BackendUnavailable as unavailable:
        pytest.skip(str(unavailable))
    return backend


def test_the_host_conforms() -> None:
    conformance = run_conformance(_installed("host"), operations=OPERATIONS)
    assert conformance.conforms, conformance.text()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_opencl_keeps_the_contract_and_passes_the_corpus() -> None:
    """Generated sequences are not asserted: a trim behind a stream that waits is judged otherwise by PyOpenCL."""
    conformance = run_conformance(_installed("opencl"), operations=1)
    assert [result.case for result in (*conformance.contract, *conformance.corpus) if result.verdict.is_failure] == []


@pytest.mark.long
def test_a_driver_in_another_language_conforms(example_pool: Path) -> None:
    conformance = run_conformance(CommandBackend([str(example_pool)]), operations=OPERATIONS)
    assert conformance.conforms, conformance.text()
    assert any(result.case.startswith("sweep/") and result.verdict is Verdict.PASSED for result in conformance.sweep)
