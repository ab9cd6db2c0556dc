from __future__ import annotations

from collections.abc import Callable

import pytest

from quiesce.allocators.cases.case import (
    Case,
    Comparison,
    ExpectedKind,
    ExpectedOutcome,
    ExpectGauge,
    ExpectGrowth,
    Repeat,
    Request,
)
from quiesce.model.errors import CaseError
from quiesce.model.gauges import Gauge


def test_requests_keep_template_outcome_and_line(parse_body: Callable[[str], Case]) -> None:
    case = parse_body("a  =   allocate 64MiB\nfree a -> done  # now\n\nb = allocate 1TiB -> out of memory\n")
    assert case.body == (
        Request("a = allocate 64MiB", None, 4),
        Request("free a", ExpectedOutcome(ExpectedKind.DONE), 5),
        Request("b = allocate 1TiB", ExpectedOutcome(ExpectedKind.OUT_OF_MEMORY), 7),
    )
    assert case.comments == ((5, "now"),)


def test_a_rejection_may_name_its_code(parse_body: Callable[[str], Case]) -> None:
    case = parse_body("initialize -> rejected\ninitialize -> rejected already-initialized\n")
    assert [request.expected for request in case.body if isinstance(request, Request)] == [
        ExpectedOutcome(ExpectedKind.REJECTED),
        ExpectedOutcome(ExpectedKind.REJECTED, "already-initialized"),
    ]


def test_repeats_nest_and_name_their_variables(parse_body: Callable[[str], Case]) -> None:
    case = parse_body(
        "repeat 3:\n    repeat 2 as k:\n        a = allocate 4KiB*k+1*i\n        free a\n    trim\ntrim\n"
    )
    inner = Repeat(2, "k", (Request("a = allocate 4KiB*k+1*i", None, 6), Request("free a", None, 7)), 5)
    assert case.body == (Repeat(3, "i", (inner, Request("trim", None, 8)), 4), Request("trim", None, 9))


def test_expectations_are_read(parse_body: Callable[[str], Case]) -> None:
    case = parse_body(
        "mark m\n"
        "expect live == 2MiB+1\n"
        "expect blocks <= mark m\n"
        "expect live != mark m + 64MiB\n"
        "expect live > mark m - 64MiB\n"
        "repeat 20:\n"
        "    trim\n"
        "expect reserved grows 2KiB per iteration after 10\n"
        "expect retained grows 0 per iteration after 18\n"
    )
    assert case.body[1:5] == (
        ExpectGauge(Gauge.LIVE, Comparison.EQUAL, "2MiB+1", None, 5),
        ExpectGauge(Gauge.BLOCKS, Comparison.AT_MOST, "0", "m", 6),
        ExpectGauge(Gauge.LIVE, Comparison.NOT_EQUAL, "64MiB", "m", 7),
        ExpectGauge(Gauge.LIVE, Comparison.ABOVE, "-64MiB", "m", 8),
    )
    assert case.body[6:] == (
        ExpectGrowth(Gauge.RESERVED, 2048, 10, 11),
        ExpectGrowth(Gauge.RETAINED, 0, 18, 12),
    )


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("alocate 1MiB", ":4: unknown verb 'alocate'; write 'allocate', or another of"),
        ("trim\nneeds: pool", ":5: 'needs: pool' is no request; header lines stand above the first blank line"),
        ("a = allocate 1MB", ":4: unknown unit 'MB'"),
        ("a = allocate 1MiB shared", ":4: 'shared' is left over"),
        ("a = allocate 1MiB → done", ":4: the line holds '→' (U+2192) outside a comment"),
        ("a = allocate 1MiB -> ok", ":4: unknown outcome 'ok'; write one of allocated, done, out of memory, rejected"),
        ("a = allocate 1MiB -> out of memry", ":4: unknown outcome 'out of memry'; write 'out of memory'"),
        ("trim ->", ":4: unknown outcome ''"),
        ("trim -> rejected not-redy", ":4: unknown error code 'not-redy'; write 'not-ready'"),
        ("a = allocate 1MiB -> done", ":4: a request that makes a block is never just done; write '-> allocated'"),
        ("trim -> allocated", ":4: this request makes no block; write '-> done'"),
        ("  trim", ":4: the line is indented by 2 spaces; write 0 here"),
        ("trim\n    trim", ":5: the line is indented by 4 spaces; write 0 here"),
        ("repeat 2:\n  trim", ":5: the line is indented by 2 spaces; write 4 here"),
        ("repeat 2:\n        trim", ":5: the line is indented by 8 spaces; write 4 here"),
        ("repeat 2:\ntrim", ":4: the repeat has no block; indent the lines it repeats by 4 spaces"),
        ("repeat 2:", ":4: the repeat has no block"),
        ("repeat 2\n    trim", ":4: 'repeat 2' is no repeat line; write 'repeat COUNT:'"),
        ("repeat many:\n    trim", ":4: 'repeat many:' is no repeat line"),
        ("repeat 0:\n    trim", ":4: 'repeat 0' never runs its block"),
        ("repeat 2 as 3:\n    trim", ":4: '3' cannot name a loop variable"),
        ("repeat 2 as SIZE_MAX:\n    trim", ":4: 'SIZE_MAX' cannot name a loop variable"),
        ("repeat 2:\n    repeat 3:\n        trim", ":5: the loop variable 'i' already belongs to an outer repeat"),
        ("repeat 5:\n    a = allocate 1KiB*j", ":5: 'j' in '1KiB*j' is neither a number nor a loop variable"),
        ("repeat 5:\n    a = allocate 2KiB-1KiB*i", ":5: size '2KiB-1KiB*i' is negative (with i = 4); write a size"),
        ("repeat 2:\n    trim\na = allocate i", ":6: 'i' in 'i' is neither a number nor a loop variable"),
        ("expect lvie == 0", ":4: unknown gauge 'lvie'; write 'live'"),
        ("expect live = 0", ":4: unknown comparison '='; write one of =="),
        ("expect live ==", ":4: 'expect live ==' is no expectation; write 'expect GAUGE == SIZE'"),
        ("expect live == 1 MiB", ":4: '1 MiB' is no value"),
        ("expect live == -1", ":4: '-1' starts with a sign"),
        ("expect blocks == 1KiB", ":4: 'blocks' counts things and '1KiB' has a unit; write a plain number"),
        ("expect live == mark 9", ":4: '9' is not a slot name"),
        ("expect live == mark m", ":4: there is no mark 'm' above this line; write the line 'mark m'"),
        ("mark before\nexpect live == mark befor", ":5: there is no mark 'befor' above this line; write 'mark before'"),
        ("trim\nexpect live grows 0 per iteration after 1", ":5: there is no repeat block directly above"),
        ("repeat 9:\n    trim\nexpect live grows 0 after 1", ":6: 'expect live grows 0 after 1' is no growth"),
        ("repeat 9:\n    trim\nexpect live grows x per iteration after 1", ":6: 'x' in 'x' is neither"),
        ("repeat 9:\n    trim\nexpect live grows 0 per iteration after x", ":6: 'x' is no number of iterations"),
        ("repeat 9:\n    trim\nexpect nodes grows 1B per iteration after 1", ":6: 'nodes' counts things"),
        (
            "repeat 9:\n    trim\nexpect live grows 0 per iteration after 8",
            ":6: 9 iterations leave no slope of 'live' after 8; repeat at least 10 times",
        ),
        (
            "repeat 10:\n    trim\nexpect cost grows 0 per iteration after 8",
            ":6: 10 iterations leave no slope of 'cost' after 8; repeat at least 11 times",
        ),
    ],
)
def test_errors_name_line_fault_and_remedy(body_error: Callable[[str], CaseError], body: str, text: str) -> None:
    assert str(body_error(body)).startswith(f"topic/x.case{text}")


def test_growth_below_an_inner_block_belongs_to_it(body_error: Callable[[str], CaseError]) -> None:
    error = body_error("repeat 9:\n    trim\n    expect live grows 0 per iteration after 1\n")
    assert (error.line, error.what) == (6, "there is no repeat block directly above")


def test_nesting_is_bounded(body_error: Callable[[str], CaseError]) -> None:
    lines = [f"{' ' * 4 * level}repeat 1 as v{level}:" for level in range(200)]
    assert "more than 6 repeats are nested" in body_error("\n".join(lines)).what
