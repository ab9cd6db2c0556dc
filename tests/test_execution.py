"""One case on one backend: every verdict, and no backend that could make it raise."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiesce.allocators.answers import EVIDENCE_LINES_MAX
from quiesce.allocators.cases.case import Case, Known, Repeat
from quiesce.allocators.cases.parser import parse_text
from quiesce.allocators.execution import KNOWN_STILL_THERE, every_fault, prove, prove_case, run_and_prove, run_case
from quiesce.allocators.reference.museum import FAULTS, Fault
from quiesce.backends.reference import ReferenceBackend, faulty
from quiesce.backends.reference import backend as reference
from quiesce.model.backend import (
    Backend,
    BackendFault,
    Capability,
    Closing,
    Context,
    Description,
    DeviceProfile,
    Promise,
    Reply,
)
from quiesce.model.errors import BackendUnavailable
from quiesce.model.gauges import Gauge, Readings, Source
from quiesce.model.observations import (
    BackingAllocated,
    BackingFreed,
    DeviceSynchronized,
    EventWaited,
    HandleCreated,
    HandleKind,
    Observation,
)
from quiesce.model.operations import Mark, MemoryKind, Operation
from quiesce.model.outcomes import Allocated, Done, Outcome, OutOfMemory, Rejected, Unsupported
from quiesce.model.results import Result, Verdict
from quiesce.model.rules import RAISED

SQUEEZE: Final = """title:    Cached blocks give way
upstream: NVIDIA/cccl#4222
fault:    pool.no_squeeze
finds:    request_fits_but_out_of_memory
needs:    pool, capacity
promise:  reclaims-before-oom
device:   capacity=64MiB

a = allocate 40MiB
free a
b = allocate 41MiB
free b
"""
FOUND: Final = (
    "title: A double free\nkind: found\nfinds: double_free_is_rejected\n\na = allocate 64\nfree a\nfree a -> rejected\n"
)
CONTROL: Final = "title: Blocks come and go\nkind: control\n\na = allocate 64\nfree a\n"


def case_of(text: str) -> Case:
    return parse_text(text, "topic/x y.case", "topic/x y")


class Trial:
    """A backend and a context in one: the reference, with whatever misbehaviour is put in."""

    def __init__(self, **instead: Callable[..., Any]) -> None:
        self.instead = instead
        self.closed = 0
        self.inner: Context | None = None

    def describe(self) -> Description:
        answer: Description = self.instead.get("describe", reference().describe)()
        return answer

    def open(self, profile: DeviceProfile) -> Context:
        if "open" in self.instead:
            answer: Context = self.instead["open"]()
            return answer
        self.inner = reference().open(profile)
        return self

    def perform(self, operation: Operation) -> Reply:
        if "perform" in self.instead and operation != Mark("opened"):
            answer: Reply = self.instead["perform"]()
            return answer
        assert self.inner is not None
        return self.inner.perform(operation)

    def readings(self) -> Readings:
        if "readings" in self.instead:
            answer: Readings = self.instead["readings"]()
            return answer
        assert self.inner is not None
        return self.inner.readings()

    def close(self) -> Closing:
        self.closed += 1
        if "close" in self.instead:
            answer: Closing = self.instead["close"]()
            return answer
        assert self.inner is not None
        return self.inner.close()


def raising(error: BaseException) -> Callable[[], Any]:
    def raise_it() -> Any:
        raise error

    return raise_it


def recursing() -> Any:
    return recursing()


def found(result: Result) -> list[str]:
    return [finding.rule for finding in result.findings]


# -- verdicts ----------------------------------------------------------------------------------------------------------


def test_a_case_passes_on_the_reference() -> None:
    result = run_case(case_of(SQUEEZE), reference())
    assert result.verdict is Verdict.PASSED
    assert (result.reason, result.findings, result.skipped) == ("", (), 0)
    assert result.operations >= 4
    assert result.upstream == ("NVIDIA/cccl#4222",)
    assert len(result.timeline) == result.operations


def test_a_case_fails_where_a_rule_is_broken() -> None:
    result = run_case(case_of(SQUEEZE), faulty("pool.no_squeeze"))
    assert result.verdict is Verdict.FAILED
    assert found(result) == ["request_fits_but_out_of_memory"]
    assert (result.findings[0].line, result.findings[0].operation_index) == (11, 2)


def test_what_a_case_owns_behind_its_last_trim_is_left_for_the_closing_to_give_back() -> None:
    forgetful = faulty("pool.destructor_forgets_cached")
    cached = "title: Something stays cached\nkind: control\n\na = allocate 64\n"
    assert run_case(case_of(cached), forgetful).verdict is Verdict.PASSED
    trimmed = case_of(cached + "trim\n")
    assert [found.rule for found in run_case(trimmed, forgetful).findings] == ["nothing_is_left_at_quiescence"]
    assert run_case(trimmed, reference()).verdict is Verdict.PASSED


def test_the_command_that_reproduces_a_result_is_quoted_for_a_shell() -> None:
    result = run_case(case_of(CONTROL), ReferenceBackend("it's"))
    assert result.reproduce == "quiesce run 'topic/x y.case' --backend 'it'\"'\"'s'"


@dataclasses.dataclass(frozen=True)
class Lesser:
    """The reference, which says that it can do less and promises less."""

    capabilities: frozenset[Capability]
    promises: frozenset[Promise]

    def describe(self) -> Description:
        return dataclasses.replace(
            reference().describe(), name="lesser", capabilities=self.capabilities, promises=self.promises
        )

    def open(self, profile: DeviceProfile) -> Context:
        return reference().open(profile)


def test_a_backend_that_lacks_what_a_case_needs_is_unsupported() -> None:
    lesser = Lesser(frozenset({Capability.MEMORY, Capability.POOL}), frozenset(Promise))
    result = run_case(case_of(SQUEEZE), lesser)
    assert (result.verdict, result.reason) == (Verdict.UNSUPPORTED, "lacks capacity")
    assert (result.operations, result.backend) == (0, "lesser")


def test_a_backend_with_one_device_does_not_run_cases_for_two() -> None:
    lesser = Lesser(frozenset(Capability) - {Capability.DEVICES}, frozenset(Promise))
    case = dataclasses.replace(case_of(CONTROL), device=DeviceProfile(devices=2), needs=frozenset())
    assert run_case(case, lesser).verdict is Verdict.UNSUPPORTED
    assert run_case(case, reference()).verdict is Verdict.PASSED


def test_a_promise_that_was_not_made_is_not_broken() -> None:
    lesser = Lesser(frozenset(Capability), frozenset(Promise) - {Promise.RECLAIMS_BEFORE_OOM})
    result = run_case(case_of(SQUEEZE), lesser)
    assert (result.verdict, result.reason) == (Verdict.NOT_PROMISED, "does not promise reclaims-before-oom")


def test_a_request_that_is_not_supported_after_all_is_unsupported() -> None:
    result = run_case(case_of(CONTROL), Trial(perform=lambda: Reply(Unsupported("no heap here"))))
    assert result.verdict is Verdict.UNSUPPORTED
    assert result.reason == "'a = allocate 64': unsupported (no heap here)"


def test_a_gauge_that_nobody_counts_is_unsupported() -> None:
    case = case_of(CONTROL + "expect reserved == 0\n")
    result = run_case(case, Trial(readings=dict, close=Closing))
    assert (result.verdict, result.reason) == (Verdict.UNSUPPORTED, "the backend has no gauge 'reserved' here")


def test_a_case_whose_requests_were_left_out_is_inconclusive() -> None:
    result = run_case(
        case_of("title: T\nkind: control\ndevice: capacity=1MiB\n\na = allocate 2MiB\nfree a\n"), reference()
    )
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.skipped == 1
    assert result.reason == "1 request was left out, because it names something that could not be made"


def test_a_case_that_cannot_be_expanded_is_broken() -> None:
    case = case_of("title: T\nkind: control\n\nrepeat 3:\n    a[i] = allocate 2-i\nrepeat 3:\n    free a[i]\n")
    first, second = case.body
    assert isinstance(first, Repeat)
    broken = dataclasses.replace(case, body=(dataclasses.replace(first, count=5), second))
    result = run_case(broken, reference())
    assert result.verdict is Verdict.BROKEN_CASE
    assert result.reason.startswith("topic/x y.case:5: size '2-i' is negative")


@pytest.mark.parametrize("place", ["describe", "open"])
def test_a_backend_that_cannot_work_here_is_unsupported(place: str) -> None:
    result = run_case(
        case_of(CONTROL), Trial(**{place: raising(BackendUnavailable("gpu", "no device", "plug one in"))})
    )
    assert result.verdict is Verdict.UNSUPPORTED
    assert result.reason == "backend 'gpu' cannot work here: no device; plug one in"
    assert result.backend == ("gpu" if place == "describe" else "reference")


# -- known upstream ----------------------------------------------------------------------------------------------------


def known(versions: str, subject: str = "pool") -> Case:
    text = SQUEEZE.replace("needs:", f"known:    {subject} {versions} NVIDIA/cccl#4222\nneeds:")
    return case_of(text)


def named(name: str, version: str, parts_of: str | None) -> Backend:
    parts = FAULTS[parts_of].parts if parts_of else reference().parts

    class Named:
        def describe(self) -> Description:
            return dataclasses.replace(reference().describe(), name=name, version=version)

        def open(self, profile: DeviceProfile) -> Context:
            return ReferenceBackend(name, parts).open(profile)

    return Named()


def test_a_known_failure_is_known_backing() -> None:
    result = run_case(known(">=3.0,<3.1"), named("pool", "CCCL 3.0.2", "pool.no_squeeze"))
    assert (result.verdict, result.reason) == (Verdict.KNOWN_UPSTREAM, "NVIDIA/cccl#4222")
    assert found(result) == ["request_fits_but_out_of_memory"]
    assert not result.verdict.is_failure


def test_a_known_failure_that_is_gone_is_an_error() -> None:
    result = run_case(known(">=3.0"), named("pool", "3.1.0", None))
    assert result.verdict is Verdict.FAILED
    assert found(result) == [KNOWN_STILL_THERE]
    assert "the known: line no longer holds: remove or narrow it" in result.findings[0].observed
    assert "NVIDIA/cccl#4222" in result.findings[0].expected


@pytest.mark.parametrize(
    ("versions", "name", "version"),
    [(">=3.0,<3.1", "pool", "3.1.0"), ("*", "loop", "3.0"), (">=1", "pool", "unnumbered")],
)
def test_another_subject_or_version_is_not_known(versions: str, name: str, version: str) -> None:
    assert run_case(known(versions), named(name, version, "pool.no_squeeze")).verdict is Verdict.FAILED
    assert run_case(known(versions), named(name, version, None)).verdict is Verdict.PASSED


def test_malformed_versions_break_the_case() -> None:
    case = dataclasses.replace(case_of(CONTROL), known=(Known("reference", "newest", "a/b#1"),))
    result = run_case(case, reference())
    assert (result.verdict, result.reason) == (Verdict.BROKEN_CASE, "known: 'newest' names no versions")


# -- backends that misbehave -------------------------------------------------------------------------------------------


class Unprintable(Exception):
    def __str__(self) -> str:
        raise KeyError("no words")


@pytest.mark.parametrize("place", ["describe", "open", "perform", "readings", "close"])
@pytest.mark.parametrize(
    "error",
    [
        KeyError("slot"),
        MemoryError(),
        RecursionError("too deep"),
        SystemExit(3),
        StopIteration(),
        AssertionError("<X object at 0x7f00>"),
        Unprintable(),
        ValueError("long " * 1000),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_a_backend_raises_is_a_finding(place: str, error: BaseException) -> None:
    trial = Trial(**{place: raising(error)})
    result = run_case(case_of(CONTROL), trial)
    assert result.verdict is Verdict.FAILED
    assert found(result) == [RAISED]
    (finding,) = result.findings
    assert finding.observed.startswith(f"{place}() raised ")
    assert type(error).__name__ in finding.observed
    assert "0x7f00" not in finding.observed + finding.evidence
    assert "raise_it" in finding.evidence
    assert len(finding.evidence.splitlines()) <= EVIDENCE_LINES_MAX
    assert len(finding.observed) < 1000
    assert trial.closed == (0 if place in ("describe", "open") else 1)


def test_endless_recursion_is_a_finding() -> None:
    result = run_case(case_of(CONTROL), Trial(perform=recursing))
    assert found(result) == [RAISED]
    assert "RecursionError" in result.findings[0].observed


@pytest.mark.parametrize("place", ["describe", "open", "perform", "readings", "close"])
def test_a_fault_of_the_subject_keeps_its_rule_and_evidence(place: str) -> None:
    fault = BackendFault("subject_survives", "it died of signal 11", "last words")
    result = run_case(case_of(CONTROL), Trial(**{place: raising(fault)}))
    assert result.verdict is Verdict.FAILED
    assert found(result) == ["subject_survives"]
    assert (result.findings[0].observed, result.findings[0].evidence) == ("it died of signal 11", "last words")


@pytest.mark.parametrize("place", ["describe", "open", "perform", "readings", "close"])
def test_an_interrupt_passes_through_and_the_context_is_closed(place: str) -> None:
    trial = Trial(**{place: raising(KeyboardInterrupt())})
    with pytest.raises(KeyboardInterrupt) as interrupted:
        run_case(case_of(CONTROL), trial)
    assert (trial.closed > 0) == (place not in ("describe", "open"))
    notes = getattr(interrupted.value, "__notes__", [])
    assert any(note.startswith("it was at operation 0: ") for note in notes) == (place == "perform")


@pytest.mark.parametrize("place", ["perform", "readings", "close"])
def test_it_is_too_late_to_be_unavailable(place: str) -> None:
    result = run_case(case_of(CONTROL), Trial(**{place: raising(BackendUnavailable("gpu", "gone", "plug it in"))}))
    assert result.verdict is Verdict.FAILED
    assert found(result) == [RAISED]


GOOD: Final = reference().describe()


@pytest.mark.parametrize(
    ("place", "answer"),
    [
        ("describe", None),
        ("describe", "reference"),
        ("describe", dataclasses.replace(GOOD, name=None)),  # type: ignore[arg-type]
        ("describe", dataclasses.replace(GOOD, capabilities=["pool"])),  # type: ignore[arg-type]
        ("describe", dataclasses.replace(GOOD, capabilities=frozenset({"pools?"}))),  # type: ignore[arg-type]
        ("describe", dataclasses.replace(GOOD, promises=None)),  # type: ignore[arg-type]
        ("describe", dataclasses.replace(GOOD, gauges={Gauge.LIVE: Source.CLAIM})),  # type: ignore[dict-item]
        ("describe", dataclasses.replace(GOOD, gauges=[Gauge.LIVE])),  # type: ignore[arg-type]
        ("describe", dataclasses.replace(GOOD, alignment_bytes="256")),  # type: ignore[arg-type]
        ("open", None),
        ("open", object()),
        ("perform", None),
        ("perform", Done()),
        ("perform", Reply(None)),  # type: ignore[arg-type]
        ("perform", Reply("done")),  # type: ignore[arg-type]
        ("perform", Reply(Allocated)),  # type: ignore[arg-type]
        ("perform", Reply(Allocated("0x10"))),  # type: ignore[arg-type]
        ("perform", Reply(Allocated(1.5))),  # type: ignore[arg-type]
        ("perform", Reply(Rejected(900))),  # type: ignore[arg-type]
        ("perform", Reply(Done(), None)),  # type: ignore[arg-type]
        ("perform", Reply(Done(), [BackingAllocated(1, 1)])),  # type: ignore[arg-type]
        ("perform", Reply(Done(), (None,))),  # type: ignore[arg-type]
        ("perform", Reply(Done(), (BackingAllocated(None, 1),))),  # type: ignore[arg-type]
        ("perform", Reply(Done(), (BackingAllocated(1, 1, "device"),))),  # type: ignore[arg-type]
        ("perform", Reply(Done(), (EventWaited(1, None),))),  # type: ignore[arg-type]
        ("perform", Reply(Done(), (HandleCreated("stream", "s"),))),  # type: ignore[arg-type]
        ("readings", None),
        ("readings", 7),
        ("readings", {"live": 0}),
        ("readings", {(Gauge.LIVE, "claim?"): 0}),
        ("readings", {(Gauge.LIVE, Source.CLAIM): None}),
        ("readings", {(Gauge.LIVE, Source.CLAIM): "0"}),
        ("close", None),
        ("close", Reply(Done())),
        ("close", Closing(readings=None)),  # type: ignore[arg-type]
        ("close", Closing(readings={Gauge.LIVE: 0})),  # type: ignore[dict-item]
        ("close", Closing(observations=None)),  # type: ignore[arg-type]
    ],
)
def test_an_answer_that_the_contract_does_not_know_is_a_finding(place: str, answer: object) -> None:
    trial = Trial(**{place: lambda: answer})
    result = run_case(case_of(CONTROL), trial)
    assert result.verdict is Verdict.FAILED
    assert found(result) == [RAISED]
    assert result.findings[0].observed.startswith(f"{place}() ")
    assert trial.closed == (0 if place in ("describe", "open") else 1)


def test_readings_that_change_behind_our_back_are_read_once() -> None:
    readings = {(gauge, source): 0 for gauge, sources in GOOD.gauges.items() for source in sources}

    def counting() -> dict[tuple[Gauge, Source], int]:
        readings[Gauge.LIVE, Source.CLAIM] += 64  # one dictionary, handed out again and again
        return readings

    result = run_case(case_of(CONTROL), Trial(readings=counting))
    assert found(result) == ["block_count_follows_the_sequence"]


def test_a_backend_that_fails_to_close_is_a_finding_only_where_nothing_else_was_found() -> None:
    both = Trial(perform=raising(KeyError("first")), close=raising(ValueError("second")))
    result = run_case(case_of(CONTROL), both)
    assert [finding.observed for finding in result.findings] == ["perform() raised KeyError: 'first'"]


_names = st.sampled_from(["", "a", "s", "internal:1", "nobody"])
_numbers = st.one_of(st.integers(-2, 5), st.integers(-(2**70), 2**70))
_outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(Allocated, _numbers),
    st.just(Done()),
    st.just(OutOfMemory()),
    st.builds(Rejected, st.sampled_from(["", "not-ready", "capture-implicit", "own word"])),
)
_kinds = st.sampled_from(MemoryKind)
_observations: st.SearchStrategy[Observation] = st.one_of(
    st.builds(BackingAllocated, _numbers, _numbers, _kinds, _numbers),
    st.builds(BackingFreed, _numbers, _numbers, _kinds, _numbers),
    st.builds(EventWaited, _names, st.one_of(st.none(), _names), st.booleans()),
    st.builds(DeviceSynchronized, _numbers),
    st.builds(HandleCreated, st.sampled_from(HandleKind), _names),
)
_replies = st.builds(Reply, _outcomes, st.lists(_observations, max_size=3).map(tuple))
PROGRAM: Final = (
    CONTROL
    + """s = create stream
e = create event
b = allocate 4096 on s
stall s
launch on s writes=b
record event e on s
query event e
wait event e
free b on s
trim
query stream s
p = create pool limit=1MiB
c = allocate 2MiB pool=p
begin capture on s
launch on s
g = end capture on s
launch graph g
x = create instance
destroy instance x
n = node
collect
expect live >= 0
"""
)


@settings(max_examples=150, deadline=None)
@given(replies=st.lists(_replies, min_size=1, max_size=30), numbers=st.lists(_numbers, min_size=1, max_size=5))
def test_well_formed_nonsense_never_raises(replies: list[Reply], numbers: list[int]) -> None:
    answers = iter(replies * 40)
    counts = iter(numbers * 400)

    def readings() -> dict[tuple[Gauge, Source], int]:
        return {(gauge, source): next(counts) for gauge, sources in GOOD.gauges.items() for source in sources}

    trial = Trial(perform=lambda: next(answers), readings=readings, close=lambda: Closing(readings=readings()))
    assert run_case(case_of(PROGRAM), trial).verdict in Verdict
    assert trial.closed == 1


# -- proofs ------------------------------------------------------------------------------------------------------------


def test_a_case_that_is_red_on_its_fault_proves_itself() -> None:
    proof = prove_case(case_of(SQUEEZE))
    assert (proof.ok, proof.reason, proof.fault, proof.finds) == (
        True,
        "",
        "pool.no_squeeze",
        "request_fits_but_out_of_memory",
    )
    assert proof.red is not None
    assert proof.red.verdict is Verdict.FAILED
    assert proof.green.verdict is Verdict.PASSED
    assert dict(proof.row)["pool.no_squeeze"] == ("request_fits_but_out_of_memory",)
    assert dict(proof.row)["pool.ignores_alignment"] == ()


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("pool.no_squeeze", "pool.unheard_of", "its fault 'pool.unheard_of' is not in the museum"),
        ("pool.no_squeeze", "pool.ignores_limit", "its fault breaks nothing, not exactly request_fits"),
        (
            "request_fits_but_out_of_memory",
            "addresses_are_aligned",
            "its fault breaks request_fits_but_out_of_memory, not",
        ),
        ("41MiB", "65MiB -> allocated", "failed on the reference: request_fits_but_out_of_memory"),
        ("41MiB", "65MiB", "inconclusive on the reference: 1 request was left out"),
    ],
)
def test_a_case_that_proves_nothing_is_broken(old: str, new: str, reason: str) -> None:
    proof = prove_case(case_of(SQUEEZE.replace(old, new)))
    assert not proof.ok
    assert proof.reason.startswith(reason)


LEFT: Final = """title:    An instance is finalised
upstream: kokkos/kokkos#3167
fault:    launch.leaks_owned_stream
finds:    handles_are_destroyed_at_quiescence
needs:    instances, launch

x = create instance
launch instance=x
destroy instance x
a = allocate 64
"""


@pytest.fixture
def careless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add a fault to the museum that breaks two rules at once: it leaks a stream and the memory of its cache."""
    parts = dataclasses.replace(
        FAULTS["launch.leaks_owned_stream"].parts, pool=FAULTS["pool.destructor_forgets_cached"].parts.pool
    )
    both = {**FAULTS, "test.careless": Fault("test.careless", "a/b#1", "It destroys nothing.", parts)}
    monkeypatch.setattr("quiesce.allocators.execution.FAULTS", both)
    monkeypatch.setattr("quiesce.backends.reference.FAULTS", both)


@pytest.mark.usefixtures("careless")
@pytest.mark.parametrize("finds", ["handles_are_destroyed_at_quiescence", "nothing_is_left_at_quiescence"])
def test_a_case_whose_fault_breaks_another_rule_as_well_is_broken(finds: str) -> None:
    assert prove_case(case_of(LEFT)).ok
    text = LEFT.replace("launch.leaks_owned_stream", "test.careless") + "trim\n"
    case = case_of(text.replace("handles_are_destroyed_at_quiescence", finds))
    both = "handles_are_destroyed_at_quiescence, nothing_is_left_at_quiescence"
    reason = f"its fault breaks {both}, not exactly {finds}"
    proof = prove_case(case)
    assert (proof.ok, proof.reason) == (False, reason)
    result = run_and_prove(case, reference())
    assert (result.verdict, result.reason, result.caught) == (Verdict.BROKEN_CASE, reason, "")


@pytest.mark.parametrize(
    ("text", "backend", "verdict", "caught"),
    [
        (SQUEEZE, reference(), Verdict.PASSED, "pool.no_squeeze"),
        (SQUEEZE.replace("pool.no_squeeze", "pool.ignores_limit"), reference(), Verdict.BROKEN_CASE, ""),
        (SQUEEZE.replace("pool.no_squeeze", "pool.ignores_limit"), ReferenceBackend("other"), Verdict.PASSED, ""),
        (SQUEEZE, faulty("pool.no_squeeze"), Verdict.FAILED, ""),
        (SQUEEZE, faulty("pool.ignores_limit"), Verdict.PASSED, ""),
        (CONTROL, reference(), Verdict.PASSED, ""),
        (FOUND, reference(), Verdict.PASSED, ""),
    ],
)
def test_a_regression_is_proved_where_it_passes_on_the_reference(
    text: str, backend: Backend, verdict: Verdict, caught: str
) -> None:
    result = run_and_prove(case_of(text), backend)
    assert (result.verdict, result.caught) == (verdict, caught)
    assert ("not exactly request_fits" in result.reason) == (verdict is Verdict.BROKEN_CASE)


def test_what_was_found_elsewhere_needs_no_fault() -> None:
    assert prove_case(case_of(FOUND)).ok


def test_a_control_is_green_under_everything() -> None:
    assert prove_case(case_of(CONTROL)).ok


def test_a_control_that_some_fault_turns_red_is_broken() -> None:
    proof = prove_case(case_of(CONTROL + "free a -> rejected\n"))
    assert not proof.ok
    assert proof.reason == "a control fails with pool.accepts_double_free"


def test_what_decides_is_the_own_fault_and_every_fault_for_a_control() -> None:
    matrix = prove([case_of(CONTROL), case_of(SQUEEZE)])
    control, squeeze = (dict(proof.row) for proof in matrix.proofs)
    assert sorted(control) == sorted(FAULTS)
    assert list(squeeze) == ["pool.no_squeeze"]
    whole = prove([case_of(SQUEEZE)], faults_of=every_fault)
    assert sorted(dict(whole.proofs[0].row)) == sorted(FAULTS)


def test_progress_is_told_before_each_case() -> None:
    told: list[tuple[int, int]] = []
    matrix = prove([case_of(CONTROL), case_of(SQUEEZE)], lambda done, of: told.append((done, of)))
    assert told == [(0, 2), (1, 2)]
    assert matrix.faults == tuple(sorted(FAULTS))
    assert [proof.ok for proof in matrix.proofs] == [True, True]


class _FailsTheSecondTime:
    """The reference, but a closing with work in flight leaves a block, and no second context answers."""

    def __init__(self) -> None:
        self.opened = 0

    def describe(self) -> Description:
        return reference().describe()

    def open(self, profile: DeviceProfile) -> Context:
        self.opened += 1
        return _LeavesABlock(reference().open(profile), answers=self.opened == 1)


class _LeavesABlock:
    def __init__(self, context: Context, *, answers: bool) -> None:
        self._context, self._answers = context, answers
        self.readings = context.readings

    def perform(self, operation: Operation) -> Reply:
        if not self._answers and not isinstance(operation, Mark):
            raise RuntimeError("not again")
        return self._context.perform(operation)

    def close(self) -> Closing:
        closing = self._context.close()
        kept = tuple(each for each in closing.observations if not isinstance(each, BackingFreed))
        return Closing(kept, closing.readings)


def test_a_backend_that_fails_while_it_is_asked_again_is_judged_by_its_first_answers() -> None:
    case = "title: t\nkind: control\n\ns = create stream\na = allocate 1 on s\nstall s\nlaunch on s writes=a\n"
    backend = _FailsTheSecondTime()
    result = run_case(parse_text(case, "c.case"), backend)
    assert [finding.rule for finding in result.findings] == ["nothing_is_left_at_quiescence"]
    assert backend.opened == 2
