"""The cards of findings: calls with their stacks, and the calls around them."""

from __future__ import annotations

from dataclasses import replace

from quiesce.model.findings import CallSite, Finding, Frame
from quiesce.model.results import Result
from quiesce.reporting.page.excerpt import Gap
from quiesce.reporting.program_page.findings import WHOLE_MAX, Row, make_findings
from quiesce.reporting.program_page.wording import FRAMES_SHOWN_MAX, make_site, short_place


def test_a_finding_is_told_in_full(program: Result) -> None:
    (card,) = make_findings(program, "p1-")
    assert (card.number, card.anchor, card.title) == (1, "p1-finding-1", "Use after free")
    assert (card.rule, card.call_number, card.call) == ("freed_memory_is_not_used", 7, "cudaMemsetAsync")
    assert card.sentence == "A block is not used after it was freed."
    assert card.seen == "25 times; the first is shown"
    assert [(site.role, site.call, site.number) for site in card.sites] == [
        ("Allocated by", "cudaMalloc", 3),
        ("Freed by", "cudaFree", 5),
        ("Used by", "cudaMemsetAsync", 7),
    ]


def test_evidence_does_not_repeat_the_calls(program: Result) -> None:
    (card,) = make_findings(program, "")
    assert card.evidence == "2 more findings of this rule are not shown"


def test_calls_have_gaps_where_some_are_left_out(program: Result) -> None:
    (card,) = make_findings(program, "")
    assert [row if isinstance(row, Gap) else (row.number, row.role) for row in card.rows] == [
        (3, "allocated by"),
        Gap(1),
        (5, "freed by"),
        (6, ""),
        (7, "used by"),
    ]
    assert card.has_threads
    assert all(isinstance(row, Row | Gap) for row in card.rows)


def test_the_place_to_look_is_the_programs_own_innermost_frame() -> None:
    frames = (
        Frame("empty", "/venv/lib/python3.11/site-packages/cupy/basic.py", 22),
        Frame("step", "/src/train.py", 8),
        Frame("run", "/src/train.py", 20),
    )
    site = CallSite("allocated by", "cudaMalloc", 3, frames)
    assert [(frame.function, frame.is_own, frame.is_place) for frame in make_site(site).frames] == [
        ("1 frame in cupy", False, False),
        ("step", True, True),
        ("run", True, False),
    ]
    assert short_place(site) == "/src/train.py:8 in step"
    assert (
        short_place(replace(site, frames=frames[:1])) == "/venv/lib/python3.11/site-packages/cupy/basic.py:22 in empty"
    )
    assert short_place(replace(site, frames=())) == ""


def test_plumbing_is_one_line_and_long_stacks_are_cut() -> None:
    plumbing = (Frame("a", "x.py", 1, folded="pytest"), Frame("b", "y.py", 2, folded="pluggy"))
    own = tuple(Frame(f"f{number}", "train.py", number) for number in range(1, 90))
    site = make_site(CallSite("allocated by", "cudaMalloc", 3, (*plumbing, *own)))
    assert (site.frames[0].function, site.frames[0].is_folded) == ("2 frames in pytest and pluggy", True)
    assert (len(site.frames), site.more) == (FRAMES_SHOWN_MAX, 90 - FRAMES_SHOWN_MAX)


def test_without_stacks_a_finding_says_how_to_get_them(program: Result) -> None:
    (found,) = program.findings
    bare = replace(found, call_sites=tuple(replace(site, frames=()) for site in found.call_sites))
    assert "--no-stacks" in make_findings(replace(program, findings=(bare,)), "")[0].note


def test_of_very_many_findings_the_first_are_whole(program: Result) -> None:
    cards = make_findings(replace(program, findings=program.findings * (WHOLE_MAX + 1)), "")
    assert [bool(card.sites) for card in cards] == [True] * WHOLE_MAX + [False]
    assert "report.json" in cards[-1].note


def test_a_rule_of_somebody_elses_keeps_its_name(program: Result) -> None:
    (card,) = make_findings(replace(program, findings=(Finding("own_rule", "a", "b"),)), "")
    assert (card.title, card.sentence, card.call_number) == ("own_rule", "", None)
