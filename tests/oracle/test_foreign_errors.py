"""Errors of a call below that are not lack of memory: what may be done about them."""

from __future__ import annotations

import itertools

import pytest

from quiesce.model.backend import Promise
from quiesce.model.findings import Finding
from quiesce.model.observations import BackingAllocated, BackingFreed, BackingRefused, Observation
from quiesce.model.outcomes import BACKING_ERROR, Allocated, Outcome, Rejected

from .test_liberties import BLOCK, CHUNK, DONE, OUT_OF_MEMORY, Exchange, findings

PASSES = frozenset({Promise.PASSES_FOREIGN_ERRORS})
ARMED: Exchange = ("fail backing 1 with foreign-error", DONE)
CACHED: tuple[Exchange, ...] = (("a = allocate 1", BLOCK, CHUNK), ("free a", DONE))
GONE = BackingFreed(1 << 20, 1 << 20)
REFUSED = BackingRefused(2 << 20)
TAKEN = BackingAllocated(8 << 20, 2 << 20)
ERROR = Rejected(BACKING_ERROR)


def _judged(*exchanges: Exchange) -> tuple[Finding, ...]:
    """Return what the last exchange breaks under the promise."""
    return findings(*exchanges, promises=PASSES)


@pytest.mark.parametrize(("size", "is_known"), [(1 << 20, True), ((1 << 30) + 1, False)])
def test_an_error_below_is_not_to_be_taken_for_lack_of_memory(size: int, is_known: bool) -> None:
    armed: Exchange = ("fail backing 1 with foreign-error", DONE)
    refused = (BackingRefused(size),)
    assert bool(_judged(armed, ("a = allocate 1", OUT_OF_MEMORY, refused))) is is_known
    assert _judged(armed, ("a = allocate 1", OUT_OF_MEMORY)) == ()
    assert bool(_judged(armed, ("a = allocate 1", OUT_OF_MEMORY, refused * 2))) is is_known
    assert _judged(armed, ("a = allocate 1", Rejected(BACKING_ERROR), refused)) == ()
    assert _judged(armed, ("p = create pool", OUT_OF_MEMORY, refused)) == ()
    assert _judged(("fail backing 1", DONE), ("a = allocate 1", OUT_OF_MEMORY, refused)) == ()


def test_a_call_that_was_to_give_memory_back_may_have_met_the_error() -> None:
    armed: Exchange = ("fail backing 1 with foreign-error", DONE)
    freed: tuple[Exchange, ...] = (("a = allocate 1", BLOCK, CHUNK), ("free a", DONE))
    served, refused = BackingAllocated(3 << 20, 1 << 20), BackingRefused(1 << 20)
    for beside in (("trim", DONE), ("p = create pool", DONE), ("s = create stream", DONE)):
        assert _judged(*freed, armed, beside, ("b = allocate 1", Allocated(3 << 20), (refused, served))) == ()
    assert _judged(*freed, armed, ("b = allocate 1", Allocated(3 << 20), (served,))) == ()
    assert _judged(*freed, armed, ("b = allocate 1", Allocated(3 << 20), (refused, served)))
    assert _judged(armed, ("b = allocate 1", Allocated(3 << 20), (served,)))
    assert _judged(armed, ("p = create pool", DONE), ("b = allocate 1", Allocated(3 << 20), (served,)))


@pytest.mark.parametrize(("pool", "is_known"), [("p = create pool", True), ("p = create pool limit=1MiB", False)])
def test_what_a_limit_below_the_pool_refuses_is_no_error_below(pool: str, is_known: bool) -> None:
    taken, refused = (BackingAllocated(1 << 20, 900 << 10),), (BackingRefused(900 << 10),)
    full: tuple[Exchange, ...] = ((pool, DONE), ("a = allocate 900KiB pool=p", BLOCK, taken))
    armed: Exchange = ("fail backing 1 with foreign-error", DONE)
    assert bool(_judged(*full, armed, ("b = allocate 900KiB pool=p", OUT_OF_MEMORY, refused))) is is_known


@pytest.mark.parametrize(
    ("seen", "outcome", "observed"),
    [
        ((REFUSED, GONE), ERROR, "1,048,576 bytes (1 MiB) given back to the backing allocator"),
        ((REFUSED, REFUSED), ERROR, "another request to the backing allocator, for 2,097,152 bytes (2 MiB)"),
        ((REFUSED, REFUSED), OUT_OF_MEMORY, "another request to the backing allocator, for 2,097,152 bytes (2 MiB)"),
        ((REFUSED, GONE, TAKEN), Allocated(8 << 20), "allocated"),
        ((REFUSED,), OUT_OF_MEMORY, "out of memory"),
    ],
)
def test_who_promises_to_pass_errors_on_does_nothing_else(
    seen: tuple[Observation, ...], outcome: Outcome, observed: str
) -> None:
    dialogue = (*CACHED, ARMED, ("b = allocate 2MiB", outcome, seen))
    (finding,) = _judged(*dialogue)
    assert (finding.rule, finding.observed) == ("foreign_errors_are_passed_on", observed)
    assert findings(*dialogue) == ()


@pytest.mark.parametrize(
    ("before", "seen"),
    [
        ((), (REFUSED,)),
        ((), (GONE, REFUSED)),  # it tidied up before it asked
        ((("trim", DONE),), (REFUSED, GONE)),  # the trim gave it back once nobody used it
        ((("c = allocate 1GiB", OUT_OF_MEMORY, (REFUSED,)),), (REFUSED, GONE)),  # it was to make room for that one
        ((), (BackingRefused(2 << 30), GONE)),  # so much there is not, whatever the error
    ],
)
def test_what_may_go_back_beside_an_error_that_is_passed_on(
    before: tuple[Exchange, ...], seen: tuple[Observation, ...]
) -> None:
    assert _judged(*CACHED, *before, ARMED, ("b = allocate 2MiB", ERROR, seen)) == ()


def test_what_was_owned_when_others_were_trimmed_was_not_to_go_back() -> None:
    owned = (*CACHED[:1], ("trim", DONE), *CACHED[1:])
    assert _judged(*owned, ARMED, ("b = allocate 2MiB", ERROR, (REFUSED, GONE)))


def test_a_request_gives_back_what_it_took_before_the_error() -> None:
    second: Exchange = ("fail backing 2 with foreign-error", DONE)
    own = BackingFreed(8 << 20, 2 << 20)
    assert _judged(*CACHED, second, ("b = allocate 2MiB", ERROR, (TAKEN, REFUSED, own))) == ()
    assert _judged(*CACHED, second, ("b = allocate 2MiB", ERROR, (TAKEN, REFUSED, GONE)))
    assert _judged(*CACHED, ("fail backing 2", DONE), ("b = allocate 2MiB", ERROR, (TAKEN, REFUSED, GONE))) == ()


@pytest.mark.parametrize("seen", [(GONE, BackingFreed(8 << 20, 1 << 20)), (GONE, GONE, REFUSED), (GONE, REFUSED, GONE)])
def test_what_gave_memory_back_may_have_met_the_error(seen: tuple[Observation, ...]) -> None:
    limited: tuple[Exchange, ...] = (("p = create pool limit=1MiB", DONE), *CACHED, ARMED)
    for outcome in (OUT_OF_MEMORY, ERROR):
        assert _judged(*limited, ("b = allocate 2MiB pool=p", outcome, seen)) == ()


@pytest.mark.parametrize("error", ["foreign-error", "out-of-memory"])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_an_allocation_may_do_anything_below_next_to_an_armed_error(nth: int, error: str) -> None:
    calls: tuple[Observation, ...] = (REFUSED, TAKEN, GONE, BackingFreed(8 << 20, 2 << 20))
    armed: Exchange = (f"fail backing {nth} with {error}", DONE)
    for count in range(4):
        for seen in itertools.product(calls, repeat=count):
            for outcome in (Allocated(8 << 20), OUT_OF_MEMORY, ERROR):
                _judged(*CACHED, armed, ("b = allocate 2MiB", outcome, seen))  # a verdict, whatever it is
