from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from quiesce.allocators.cases.case import Case, ExpectedKind, ExpectedOutcome
from quiesce.allocators.cases.expansion import (
    CheckGauge,
    CheckGrowth,
    IterationEnd,
    PerformStep,
    Step,
    count_steps,
    expand,
)
from quiesce.model.errors import CaseError
from quiesce.model.operations import Allocate, Free, Mark, Trim

ParseBody = Callable[[str], Case]


def test_requests_become_operations_with_their_outcome(parse_body: ParseBody) -> None:
    case = parse_body("a = allocate 2MiB\nfree a -> done\n")
    assert list(expand(case)) == [
        PerformStep(Allocate("a", 2 << 20), None, 4),
        PerformStep(Free("a"), ExpectedOutcome(ExpectedKind.DONE), 5),
    ]


def test_loop_variables_are_put_in(parse_body: ParseBody) -> None:
    case = parse_body("repeat 2:\n    repeat 2 as j:\n        a[2*i+j] = allocate 1KiB*i+8*j\n")
    allocated = [step.operation for step in expand(case) if isinstance(step, PerformStep)]
    assert allocated == [Allocate("a[0]", 0), Allocate("a[1]", 8), Allocate("a[2]", 1024), Allocate("a[3]", 1032)]


def test_every_run_of_a_repeat_has_its_number(parse_body: ParseBody) -> None:
    case = parse_body(
        "repeat 2:\n    repeat 2 as j:\n        trim\n    expect live grows 0 per iteration after 0\n"
        "repeat 1:\n    trim\n"
    )
    marks = [step for step in expand(case) if not isinstance(step, PerformStep)]
    growth = case.body[0].body[1]  # type: ignore[union-attr]
    assert marks == [
        IterationEnd(1, 0, 5, measured=True),
        IterationEnd(1, 1, 5, measured=True),
        CheckGrowth(growth, 1),  # type: ignore[arg-type]
        IterationEnd(0, 0, 4, measured=False),
        IterationEnd(2, 0, 5, measured=True),
        IterationEnd(2, 1, 5, measured=True),
        CheckGrowth(growth, 2),  # type: ignore[arg-type]
        IterationEnd(0, 1, 4, measured=False),
        IterationEnd(3, 0, 8, measured=False),
    ]


def test_several_growth_expectations_judge_one_run(parse_body: ParseBody) -> None:
    case = parse_body(
        "repeat 3:\n    trim\n"
        "expect live grows 0 per iteration after 0\nexpect reserved grows 1KiB per iteration after 1\n"
    )
    assert [step.loop for step in expand(case) if isinstance(step, CheckGrowth)] == [0, 0]


def test_expectations_carry_their_value_and_concrete_mark(parse_body: ParseBody) -> None:
    case = parse_body("repeat 2:\n    mark m[i]\n    expect live >= 4KiB*i\n    expect live == mark m[i] - 1KiB*i\n")
    checks = [step for step in expand(case) if isinstance(step, CheckGauge)]
    assert [(check.expectation.mark, check.value) for check in checks] == [
        (None, 0),
        ("m[0]", 0),
        (None, 4096),
        ("m[1]", -1024),
    ]
    assert [step.operation for step in expand(case) if isinstance(step, PerformStep)] == [Mark("m[0]"), Mark("m[1]")]


def test_expansion_is_lazy_and_repeatable(parse_body: ParseBody) -> None:
    case = parse_body("repeat 500000:\n    trim\n")
    first = list(itertools.islice(expand(case), 5))
    assert first == list(itertools.islice(expand(case), 5))
    assert first[0] == PerformStep(Trim(), None, 5)


def test_a_template_without_variables_is_read_once(parse_body: ParseBody) -> None:
    steps = [step for step in expand(parse_body("repeat 3:\n    trim\n")) if isinstance(step, PerformStep)]
    assert steps[0].operation is steps[1].operation is steps[2].operation


def test_counting_agrees_with_expanding(parse_body: ParseBody) -> None:
    case = parse_body(
        "mark m\nrepeat 3:\n    trim\n    repeat 4 as j:\n        trim\n        expect live == 0\n"
        "expect live grows 0 per iteration after 0\n"
    )
    counted: list[Step] = [step for step in expand(case) if not isinstance(step, IterationEnd)]
    assert len(counted) == count_steps(case.body) == 1 + 3 * (1 + 4 * 2) + 1


def test_a_size_that_turns_out_wrong_is_a_case_error(parse_body: ParseBody) -> None:
    # Negative only between the ends, in a loop too long to be followed by the parser.
    case = parse_body("repeat 200000:\n    a = allocate 99+1*i*i-20*i\n    free a\n")
    with pytest.raises(CaseError, match=r"topic/x\.case:5: size '99\+1\*i\*i-20\*i' is negative \(with i = 10\)"):
        list(expand(case))
