from __future__ import annotations

import pytest

from quiesce.allocators.cases.case import Case
from quiesce.allocators.cases.lint import BODY_LINES_MAX, lint_cases
from quiesce.allocators.cases.parser import parse_text

RULES = {"request_fits_but_out_of_memory", "live_blocks_do_not_overlap"}
FAULTS = {"pool.no_squeeze", "tape.orphans"}


def _case(
    title: str = "A pool gives blocks back",
    upstream: str = "upstream: NVIDIA/cccl#4222\n",
    fault: str = "pool.no_squeeze",
    finds: str = "request_fits_but_out_of_memory",
    identifier: str = "pool/squeeze",
    body: str = "trim\n",
) -> Case:
    text = f"title: {title}\n{upstream}fault: {fault}\nfinds: {finds}\n\n{body}"
    return parse_text(text, f"cases/{identifier}.case", identifier)


def _errors(*cases: Case) -> list[str]:
    return [str(error) for error in lint_cases(cases, rules=RULES, faults=FAULTS)]


def test_a_good_case_passes() -> None:
    control = parse_text("title: Trimming twice is legal\nkind: control\n\ntrim\ntrim\n", "x.case", "pool/trim_2")
    assert _errors(_case(), control) == []


@pytest.mark.parametrize(
    ("case", "text"),
    [
        (_case(title="x" * 71), "cases/pool/squeeze.case:1: the title has 71 characters; say it in at most 70"),
        (_case(title="A pool should squeeze"), "cases/pool/squeeze.case:1: the title says 'should'"),
        (_case(title="Pools Must squeeze"), "cases/pool/squeeze.case:1: the title says 'Must'"),
        (_case(title="Test that pools squeeze"), "cases/pool/squeeze.case:1: the title says 'Test that'"),
        (_case(title="Pools squeeze."), "cases/pool/squeeze.case:1: the title ends in a full stop"),
        (_case(identifier="pool/Squeeze-it"), "cases/pool/Squeeze-it.case:1: 'pool/Squeeze-it' is not <topic>/"),
        (_case(identifier="squeeze"), "cases/squeeze.case:1: 'squeeze' is not <topic>/<behaviour>"),
        (_case(identifier="a/b/c"), "cases/a/b/c.case:1: 'a/b/c' is not <topic>/<behaviour>"),
        (
            _case(finds="live_blocks_do_overlap"),
            "cases/pool/squeeze.case:1: 'finds: live_blocks_do_overlap' is no rule; write 'live_blocks_do_not_overlap'",
        ),
        (_case(fault="pool.nosqueeze"), "cases/pool/squeeze.case:1: 'fault: pool.nosqueeze' is not in the museum; "),
        (_case(upstream=""), "cases/pool/squeeze.case:1: no upstream number says where the bug was"),
        (_case(upstream="upstream: a rumour\n"), "cases/pool/squeeze.case:1: no upstream number"),
        (
            _case(body="repeat 2:\n" + "    trim\n" * BODY_LINES_MAX),
            f"cases/pool/squeeze.case:{6 + BODY_LINES_MAX}: the body has {BODY_LINES_MAX + 1} lines",
        ),
    ],
)
def test_each_rule_names_file_line_and_remedy(case: Case, text: str) -> None:
    (error,) = _errors(case)
    assert error.startswith(text)


def test_titles_are_unique() -> None:
    errors = _errors(_case(), _case(title="a pool gives blocks BACK", identifier="pool/again"))
    assert errors == [
        "cases/pool/again.case:1: the title is that of cases/pool/squeeze.case; say what differs between the two"
    ]


def test_comments_do_not_count_as_body() -> None:
    assert _errors(_case(body="# why\n\n" * 100 + "trim\n")) == []


def test_museum_and_rules_may_be_empty() -> None:
    errors = lint_cases([_case()], rules=set(), faults=set())
    assert [error.instead for error in errors] == ["leave it out: none is known here"] * 2
