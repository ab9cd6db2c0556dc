"""Liberties that the contract leaves to pools whose memory a graph has, as dialogues."""

from __future__ import annotations

from quiesce.outcomes import ILLEGAL_STATE, OutOfMemory, Rejected

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
