"""Races in allocators that tell no order are proven by asking who is done: cases ask, and so do generated sequences."""

from __future__ import annotations

import pytest

from quiesce.allocators.cases.catalogue import find_cases, load
from quiesce.allocators.cases.expansion import PerformStep
from quiesce.allocators.execution import run_case
from quiesce.allocators.generation.campaign import run_campaign
from quiesce.allocators.generation.decoder import generate_one
from quiesce.allocators.lockstep import Lockstep, run_lockstep
from quiesce.backends.reference import backend as reference
from quiesce.backends.reference import faulty
from quiesce.model.backend import Capability, DeviceProfile
from quiesce.model.requests import parse_request
from quiesce.model.results import Verdict

from .strangers.faulty import FAULTY as FAULTY_STRANGERS
from .strangers.withholding import Withholding

SEED = 3
OPERATIONS_MAX = 10_000
ORDER = frozenset({Capability.ORDER_LEDGER})
REUSE = "memory_is_reused_only_after_its_last_use"
IN_FLIGHT = "memory_in_flight_is_not_released"
UNTOLD = Withholding(reference(), "tells no order", ORDER)


@pytest.mark.parametrize(
    ("identifier", "fault"),
    [
        ("reuse/reuse_waits_for_the_last_use", "reuse.ignores_guards"),
        ("reuse/uses_on_every_stream_count", "reuse.guards_free_stream_only"),
        ("reuse/squeeze_waits_for_work_in_flight", "reuse.returns_in_flight"),
    ],
)
def test_a_case_proves_a_race_where_nobody_tells_the_order(identifier: str, fault: str) -> None:
    case = next(case for case in load(find_cases([])).cases if case.identifier == identifier)
    untold = Withholding(faulty(fault), fault, ORDER)
    assert [found.rule for found in run_case(case, untold).findings] == [case.finds]
    assert run_case(case, UNTOLD).verdict is Verdict.PASSED


@pytest.mark.parametrize(
    ("fault", "rules"),
    [
        ("reuse.ignores_guards", (REUSE,)),
        ("reuse.guards_free_stream_only", (REUSE, IN_FLIGHT)),
        ("reuse.returns_in_flight", (IN_FLIGHT,)),
        ("pinned.in_flight_reuse", (REUSE, IN_FLIGHT)),
    ],
)
def test_a_race_is_found_where_nobody_tells_the_order(fault: str, rules: tuple[str, ...]) -> None:
    untold = Withholding(faulty(fault), fault, ORDER)
    performed = number = 0
    while performed < OPERATIONS_MAX:
        sequence = generate_one(untold.describe(), SEED, number)
        trial = run_lockstep(untold, sequence.device, sequence.steps(), timeline=False)
        if trial.findings:
            assert trial.findings[0].rule in rules
            assert run_lockstep(UNTOLD, sequence.device, sequence.steps(), timeline=False).findings == ()
            return
        performed += trial.operations
        number += 1
    pytest.fail(f"nothing found in {performed} operations")


@pytest.mark.long
@pytest.mark.parametrize(("name", "seed"), [("FreedElsewhereIsAtHome", 2), ("HigherNeighboursAreDone", 2)])
def test_a_strangers_race_is_found_where_nobody_tells_the_order(name: str, seed: int) -> None:
    stranger = next(each for each in FAULTY_STRANGERS if each.name == name)
    result = run_campaign(Withholding(stranger.backend, name, ORDER), seed=seed, operations=OPERATIONS_MAX)
    assert result.discovery is not None
    assert result.discovery.finding.rule in stranger.accusations
    correct = Withholding(stranger.correct, "correct", ORDER)
    assert run_campaign(correct, seed=seed, operations=result.operations).discovery is None


def ask_who_is_done(*between: str, before: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return what is found where a block is freed on a stalled stream, and its memory serves its own stream again."""
    name = "FreedElsewhereIsAtHome"
    stranger = next(each for each in FAULTY_STRANGERS if each.name == name)
    lines = [
        "stalled = create stream",
        "home = create stream",
        "event = create event",
        "block = allocate 4096 on home",
        "other = allocate 65536 on home",
        "stall stalled",
        "launch on home writes=block",
        "record event event on home",
        "wait event event on stalled",
        "launch on stalled writes=block",
        *before,
        "free block on stalled",
        *between,
        "later = allocate 4096 on home",
        "launch on home writes=later",
        "query stream home",
        "query stream stalled",
    ]
    lockstep = Lockstep(Withholding(stranger.backend, name, ORDER), DeviceProfile())
    trial = lockstep.run(PerformStep(parse_request(line), None, 0) for line in lines)
    return tuple(finding.rule for finding in trial.findings)


def test_a_wait_for_the_freed_block_excuses_nobody() -> None:
    """The freeing stream may be made to wait for the block's work elsewhere; then that block is still in use."""
    assert ask_who_is_done() == (REUSE,)


def test_a_wait_for_another_block_is_an_excuse() -> None:
    assert ask_who_is_done("free other on stalled") == ()


def test_a_second_stall_is_an_excuse() -> None:
    """Who waits for the block's work ends the first stall, and the second may outlive it."""
    assert ask_who_is_done(before=("stall stalled",)) == ()


def ask_the_default_stream(
    fault: str | None, *behind: str, between: tuple[str, ...] = (), waits: bool = False
) -> tuple[str, ...]:
    """Return what is found where a block is freed whose work on the default stream comes behind a stalled stream.

    ``behind`` is what comes behind that work, and ``between`` what comes before the default stream is asked. It
    ``waits`` for an event of the stalled stream, or comes behind it by the legacy order.
    """
    lines = [
        "stalled = create stream nonblocking" if waits else "stalled = create stream",
        "other = create stream nonblocking",
        "third = create stream nonblocking",
        "event = create event",
        "held = allocate 512 on stalled",
        "aside = allocate 512 on third",
        "block = allocate 4096",
        "stall stalled",
        *["launch on stalled writes=held"] * 3,
        *(("record event event on stalled", "wait event event") if waits else ()),
        "launch writes=block",
        *behind,
        "free block",
        "later = allocate 4096 on other",
        "launch on other writes=later",
        "query stream other",
        *between,
        "query stream",
    ]
    backend = Withholding(faulty(fault), fault, ORDER) if fault else UNTOLD
    trial = Lockstep(backend, DeviceProfile()).run(PerformStep(parse_request(line), None, 0) for line in lines)
    return tuple(finding.rule for finding in trial.findings)


def test_the_default_stream_proves_a_race_of_its_own() -> None:
    for waits in (False, True):
        assert ask_the_default_stream("reuse.ignores_guards", waits=waits) == (REUSE,)
        assert ask_the_default_stream(None, waits=waits) == ()


def test_what_was_put_on_another_stream_for_anything_but_that_free_is_an_excuse() -> None:
    for behind in ("free aside", "record event event on stalled", "launch on stalled writes=held"):
        assert ask_the_default_stream("reuse.ignores_guards", behind, waits=True) == ()


@pytest.mark.parametrize(
    "behind",
    [
        ("launch on stalled writes=held",),
        ("record event event",),
        ("stall third", "launch on third"),
        ("launch on stalled writes=held", "record event event on stalled", "wait event event"),
    ],
)
def test_the_default_stream_that_may_answer_for_others_proves_nothing(behind: tuple[str, ...]) -> None:
    assert ask_the_default_stream("reuse.ignores_guards", *behind) == ()


def test_the_default_stream_proves_nothing_once_its_work_is_known_to_be_complete() -> None:
    between = ("synchronize device", "stall third", "launch on third")
    assert ask_the_default_stream("reuse.ignores_guards", between=between) == ()
