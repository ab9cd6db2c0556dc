"""Liberties that the contract leaves to pools: with a limit, and where a graph has memory of theirs, as dialogues."""

from __future__ import annotations

import pytest

from quiesce.backend import Promise
from quiesce.observations import Observation, UpstreamRefused
from quiesce.outcomes import ILLEGAL_STATE, UPSTREAM_ERROR, OutOfMemory, Rejected

from .test_liberties import BLOCK, DONE, Exchange, findings

ILLEGAL = Rejected(ILLEGAL_STATE)

OF_A_GRAPH: tuple[Exchange, ...] = (
    ("p = create pool", DONE),
    ("s = create stream", DONE),
    ("begin capture on s", DONE),
    ("a = allocate 1 on s pool=p", BLOCK),
    ("free a", DONE),
)
CAPTURED: tuple[Exchange, ...] = (*OF_A_GRAPH, ("g = end capture on s", DONE))


def test_a_pool_may_refuse_to_go_while_a_graph_has_memory_of_it() -> None:
    assert findings(*OF_A_GRAPH, ("destroy pool p", ILLEGAL)) == ()
    assert findings(*CAPTURED, ("destroy pool p", ILLEGAL)) == ()
    assert findings(*CAPTURED, ("destroy pool p", DONE)) == ()


def test_a_pool_may_have_made_a_place_for_what_a_graph_did_not_get() -> None:
    captured = (*OF_A_GRAPH[:3], ("a = allocate 1GiB on s pool=p", OutOfMemory()), ("g = end capture on s", DONE))
    assert findings(*captured, ("destroy pool p", ILLEGAL)) == ()
    assert findings(*captured, ("destroy graph g", DONE), ("destroy pool p", ILLEGAL))


def test_a_pool_of_which_no_graph_has_memory_goes() -> None:
    assert findings(*CAPTURED, ("q = create pool", DONE), ("destroy pool q", ILLEGAL))
    assert findings(*CAPTURED, ("destroy graph g", DONE), ("destroy pool p", ILLEGAL))


@pytest.mark.parametrize(("seen", "is_judged"), [((UpstreamRefused(40 << 20),), True), ((), False)])
def test_who_tells_what_upstream_refused_tells_all_that_it_gave(seen: tuple[Observation, ...], is_judged: bool) -> None:
    exchanges: tuple[Exchange, ...] = (
        ("p = create pool limit=256MiB", DONE),
        ("fail upstream 1 with foreign-error", DONE),
        ("a = allocate 40MiB pool=p", Rejected(UPSTREAM_ERROR), seen),
    )
    again: Exchange = ("b = allocate 40MiB pool=p", OutOfMemory())
    assert bool(findings(*exchanges, again, promises=frozenset({Promise.RECLAIMS_BEFORE_OOM}))) is is_judged
