from __future__ import annotations

from collections.abc import Callable

import pytest

from quiesce.allocators.cases.case import Case
from quiesce.allocators.cases.slots import EXACT_STEPS_MAX
from quiesce.model.errors import CaseError

MANY = EXACT_STEPS_MAX
"""Iterations enough for the check to follow only the first of them."""


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("free a", ":4: no block 'a' is made above this line; write 'a = allocate SIZE' first"),
        ("block = allocate 1\nfree blok", ":5: no block 'blok' is made above this line; write 'block'"),
        ("stall s", ":4: no stream 's' is made above this line; write 's = create stream' first"),
        ("launch graph g", ":4: no graph 'g' is made above this line; write 'g = end capture on STREAM' first"),
        ("drop n", ":4: no node 'n' is made above this line; write 'n = node' first"),
        ("a = allocate 1 on s", ":4: no stream 's'"),
        ("a = allocate 1 pool=p", ":4: no pool 'p'"),
        ("trim pool=p", ":4: no pool 'p'"),
        ("a = allocate 1\ncopy a to b", ":5: no block 'b'"),
        ("b = stage a", ":4: no block 'a'"),
        ("launch reads=a", ":4: no block 'a'"),
        ("launch writes=a", ":4: no block 'a'"),
        ("launch instance=x", ":4: no instance 'x'"),
        ("create policy instance=x", ":4: no instance 'x'"),
        ("destroy instance x", ":4: no instance 'x'"),
        ("destroy pool p", ":4: no pool 'p'"),
        ("record event e", ":4: no event 'e'"),
        ("query stream s", ":4: no stream 's'"),
        ("begin capture on s", ":4: no stream 's'"),
        ("n = node of m", ":4: no node 'm'"),
        ("s = create stream\nwait event s", ":5: 's' is a stream (line 4) and this line needs an event; name"),
        ("a = allocate 1\na = allocate 2", ":5: 'a' still owns the block made in line 4; free a first, or use an"),
        ("e = create event\ne = create event", ":5: 'e' still owns the event made in line 4; destroy event e first"),
        ("n = node\nn = node", ":5: 'n' still owns the node made in line 4; drop n first"),
        ("n = node\nhold n\ndrop n\nn = node", ":7: 'n' still owns the node"),
        ("x, x = partition", ":4: 'x' still owns the instance"),
        ("a = allocate 1\nfree a -> rejected\na = allocate 1", ":6: 'a' still owns the block"),
        ("a = allocate 1\na = allocate 1TiB -> out of memory", ":5: 'a' still owns the block"),
        ("repeat 2:\n    a = allocate 1", ":5: 'a' still owns the block made in line 5; free a first, or use an index"),
        ("repeat 4:\n    a[i*0] = allocate 1", ":5: 'a[0]' still owns the block"),
        ("repeat 3:\n    a[i] = allocate 1\nfree a[3]", ":6: no block 'a[3]' is made above this line; write 'a[2]'"),
        ("repeat 9:\n    a[i] = allocate 1\n    free a[i+1]", ":6: no block 'a[1]' is made above"),
        ("repeat 3:\n    a[i] = allocate 1\nrepeat 3:\n    a[i] = allocate 1", ":7: 'a[0]' still owns the block"),
        (f"repeat {MANY}:\n    a = allocate 1KiB*i+1", ":5: 'a' still owns the block"),
        (f"repeat {MANY}:\n    a[i] = allocate 1\n    free b[i]", ":6: no block 'b[0]' is made above"),
        (f"repeat {MANY}:\n    a[i] = create event\n    free a[i]", ":6: 'a[0]' is an event"),
    ],
)
def test_names_that_cannot_mean_what_they_say(body_error: Callable[[str], CaseError], body: str, text: str) -> None:
    assert str(body_error(body)).startswith(f"topic/x.case{text}")


@pytest.mark.parametrize(
    "body",
    [
        "a = allocate 1\nfree a\nfree a",
        "a = allocate 1\nfree a\nfill a 255",
        "a = allocate 1\nfree a\na = create stream",
        "a = allocate 1TiB -> out of memory\nfree a\na = allocate 1",
        "a = allocate 1 -> rejected invalid-value\na = allocate 1",
        "s = create stream\ndestroy stream s\ns = create stream",
        "s = create stream\ndestroy stream s\nsynchronize stream s",
        "n = node\nhold n\ndrop n\ndrop n\nn = node",
        "n = node\ndrop n\ndrop n\nm = node of n",
        "p = create pool\na = allocate 1 pool=p\ndestroy pool p\na = allocate 1",
        "initialize\nx, y = partition\nfinalize\ninitialize\nx = partition",
        "s = create stream\nbegin capture on s\ng = end capture on s\nlaunch graph g\ndestroy graph g\n"
        "begin capture on s\ng = end capture on s",
        "mark m\nmark m\nexpect live == mark m",
        "repeat 2:\n    mark m[i]\nexpect live == mark m[1]",
        "repeat 9:\n    a[i] = allocate 1\nrepeat 9 as k:\n    free a[8-k]\na[4] = allocate 1",
        "a[0] = allocate 1\nrepeat 9:\n    a[i+1] = allocate 1\n    free a[i]",
        "n = node\nrepeat 5:\n    hold n\nrepeat 6:\n    drop n\nn = node",
        f"repeat {MANY}:\n    a[i] = allocate 1\nrepeat {MANY} as k:\n    free a[{MANY}-1-k]\na[0] = allocate 1",
        f"n = node\nrepeat {MANY}:\n    hold n\nrepeat {MANY + 1}:\n    drop n\nn = node",
        f"p[0] = create pool\nrepeat {MANY}:\n    a[i] = allocate 1 pool=p[0]\ndestroy pool p[0]",
    ],
)
def test_hostile_and_orderly_sequences_are_legal_text(parse_body: Callable[[str], Case], body: str) -> None:
    assert parse_body(body).body


def test_a_long_loop_that_ignores_its_variable_is_followed_to_the_end(body_error: Callable[[str], CaseError]) -> None:
    error = body_error("repeat 400000:\n    a = allocate 1\n    free a\nb[0] = allocate 1\nb[0] = allocate 1\n")
    assert error.line == 8


def test_a_size_that_is_wrong_in_between_is_found(body_error: Callable[[str], CaseError]) -> None:
    error = body_error("repeat 5:\n    a = allocate 3+1*i*i-4*i\n    free a\n")
    assert (error.line, error.what) == (5, "size '3+1*i*i-4*i' is negative (with i = 2)")
