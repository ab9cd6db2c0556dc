"""Questions to driver programs: each sentence about lines has a driver that breaks it, and only it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from quiesce.allocators.cases.case import Case
from quiesce.allocators.cases.catalogue import find_cases, load
from quiesce.allocators.cases.parser import parse_text
from quiesce.allocators.conformance import Standing, run_conformance
from quiesce.allocators.conformance.checks import NotExercised
from quiesce.allocators.conformance.run import HUNG_RESULTS_MAX
from quiesce.allocators.conformance.wire import QUESTIONS, questions_to
from quiesce.allocators.execution import run_case
from quiesce.backends.command import CommandBackend, serve
from quiesce.backends.reference import backend as reference
from quiesce.cli.endings import ExitCode
from quiesce.cli.main import main
from quiesce.model.backend import DeviceProfile
from quiesce.model.results import Verdict
from quiesce.model.rules import (
    DRIVER_RULES,
    ENDS_WITH_INPUT,
    IN_PROTOCOL,
    IN_TIME,
    LONGEST_LINE,
    MISUSE_REFUSED,
    QUITS,
    SURVIVES,
    UNKNOWN_REFUSED,
)

pytestmark = pytest.mark.long

DRIVERS = Path(__file__).parents[1] / "backends" / "drivers"
FAULTS = [
    ("none", None, ""),
    ("serves again", None, ""),
    ("ignores words", UNKNOWN_REFUSED, "'trim frobnicate' was answered with done"),
    ("ignores options", UNKNOWN_REFUSED, "'trim frobnicate=1' was answered with done"),
    ("knows everything", UNKNOWN_REFUSED, "'frobnicate' was answered with done"),
    ("makes again", MISUSE_REFUSED, "'a = allocate 64' was answered with allocated"),
    ("frees anything", MISUSE_REFUSED, "'free a' was answered with done"),
    ("frees twice", MISUSE_REFUSED, "'free a' was answered with done"),
    ("splits lines", LONGEST_LINE, ""),
    ("outlives", ENDS_WITH_INPUT, "after its input had ended"),
    ("fails after again", QUITS, "exited with code 3 after 'quit'"),
]


def driver(fault: str) -> CommandBackend:
    command = [sys.executable, str(DRIVERS / "altered.py"), fault]
    backend = CommandBackend(command, name="command:altered")
    backend.describe()
    return backend


def broken(backend: CommandBackend) -> dict[str, str]:
    """Return what each question finds, by rule."""
    said: dict[str, str] = {}
    for question in QUESTIONS:
        if question.rule == ENDS_WITH_INPUT:
            backend._watchdog_seconds = 3.0  # the one that waits for somebody who may never go
        try:
            said.update({finding.rule: finding.observed for finding in question.check(backend)})
        except NotExercised:
            assert question.rule == QUITS
    return said


@pytest.mark.parametrize(("fault", "rule", "observed"), FAULTS, ids=[fault for fault, _, _ in FAULTS])
def test_a_question_finds_the_driver_that_breaks_its_sentence(fault: str, rule: str | None, observed: str) -> None:
    said = broken(driver(fault))
    assert set(said) == ({rule} if rule else set())
    assert observed in said.get(rule or "", "")


CAPACITY = """\
title:  More than the device has is refused
kind:   found
finds:  capacity_is_enforced
needs:  memory, capacity
device: capacity=1MiB

a = allocate 2MiB -> out of memory
"""


@pytest.mark.parametrize(
    ("fault", "verdict"), [("serves again", Verdict.PASSED), ("opens again as at first", Verdict.FAILED)]
)
def test_a_case_finds_the_driver_that_opens_again_on_its_first_profile(fault: str, verdict: Verdict) -> None:
    """Of that sentence no question is needed: cases are opened on profiles of many kinds."""
    backend = driver(fault)
    backend.open(DeviceProfile()).close()
    assert run_case(parse_text(CAPACITY, "x.case", "topic/x"), backend).verdict is verdict
    backend._kept.pop().end()


def test_every_question_has_a_driver_that_fails_it() -> None:
    assert {question.rule for question in QUESTIONS} == {rule for _, rule, _ in FAULTS if rule}
    assert {question.rule for question in QUESTIONS} | {IN_PROTOCOL, IN_TIME, SURVIVES} == set(DRIVER_RULES)


@pytest.mark.parametrize("name", ["reference", "host"])
def test_what_is_served_answers_every_question(name: str) -> None:
    assert broken(serve(name)) == {}


def test_a_driver_in_another_language_answers_every_question(example_pool: Path) -> None:
    assert broken(CommandBackend([str(example_pool)])) == {}


def test_nobody_else_is_asked() -> None:
    assert questions_to(reference()) == ()


@pytest.fixture(scope="module")
def one() -> tuple[Case, ...]:
    return load(find_cases([Path("pool/double_free_is_refused")])).cases


def test_the_conformance_run_asks_them(one: tuple[Case, ...]) -> None:
    conformance = run_conformance(driver("ignores options"), operations=50, cases=one)
    failed = [result.case for result in conformance.contract if result.verdict is Verdict.FAILED]
    assert failed == [f"contract/{UNKNOWN_REFUSED}"]
    assert conformance.standing is Standing.DOES_NOT_CONFORM


def test_an_error_in_the_protocol_ends_the_run_and_is_told_once(one: tuple[Case, ...]) -> None:
    command = [sys.executable, "-S", "-E", str(DRIVERS / "canned.py"), "gauges", r'{"gauges":{}}\n']
    conformance = run_conformance(CommandBackend(command), operations=50, cases=one)
    assert [finding.rule for finding in conformance.findings] == [IN_PROTOCOL]
    assert conformance.text().count("lacks the key 'live'") == 1
    assert [gap.what for gap in conformance.not_exercised] == ["the corpus", "the sweep", "generated sequences"]


def test_requests_without_an_answer_end_the_run_before_it_takes_hours() -> None:
    hanging = CommandBackend(
        [sys.executable, "-S", "-E", str(DRIVERS / "hanging.py"), "a = allocate"], watchdog_seconds=2
    )
    told: list[str] = []
    conformance = run_conformance(
        hanging,
        operations=1000,
        report=lambda result: told.extend(finding.observed for finding in result.findings if finding.rule == IN_TIME),
    )
    assert conformance.standing is Standing.DOES_NOT_CONFORM
    assert len(told) == HUNG_RESULTS_MAX
    assert all("did not answer 'a = allocate" in observed for observed in told)
    assert any("had no answer in time" in gap.why for gap in conformance.not_exercised)


def test_a_request_without_an_answer_is_named_at_once_with_the_option_that_waits_shorter(
    capsys: pytest.CaptureFixture[str],
) -> None:
    hanging = f"command:{sys.executable} -S -E {DRIVERS / 'hanging.py'} 'a = allocate'"
    assert main(["conformance", "--backend", hanging, "--timeout", "2"]) == ExitCode.FINDINGS
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == HUNG_RESULTS_MAX
    assert all("did not answer 'a = allocate" in line and "--timeout N waits N seconds" in line for line in lines)
