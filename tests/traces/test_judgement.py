"""What is said about programs: each rule sees its bug and leaves the program beside it alone, under every schedule."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.simulator.programs import compile_client

from quiesce.model.errors import BackendUnavailable
from quiesce.model.findings import Finding
from quiesce.simulator.judge.causes import SHOWN_MAX
from quiesce.simulator.judge.conditions import AtExit
from quiesce.simulator.judge.judgement import Judgement, judge
from quiesce.simulator.runtime.build import build_library
from quiesce.simulator.runtime.flavours import parse_flavour
from quiesce.simulator.runtime.launch import MachineSettings, run_program
from quiesce.simulator.runtime.ledger import open_ledger

BEGIN = """
    void *p, *q, *s, *t, *e;
    cudaMalloc(&p, 1000); cudaMalloc(&q, 1000);
    cudaStreamCreate(&s); cudaStreamCreate(&t); cudaEventCreate(&e);
"""
END = """
    cudaDeviceSynchronize();
    cudaFree(p); cudaFree(q); cudaStreamDestroy(s); cudaStreamDestroy(t); cudaEventDestroy(e);
    return 0;
"""

# what a program does between the two, and the rule that it breaks (or none)
PROGRAMS = {
    "nothing": ("", None),
    "two streams write one block": (
        "cudaMemsetAsync(p, 1, 1000, s); cudaMemsetAsync(p, 2, 1000, t);",
        "conflicting_uses_are_ordered",
    ),
    "two streams write two halves": (
        "cudaMemsetAsync(p, 1, 500, s); cudaMemsetAsync((char *)p + 500, 2, 500, t);",
        None,
    ),
    "two streams read one block": (
        "cudaMemcpyAsync(q, p, 500, 3, s); cudaMemcpyAsync((char *)q + 500, p, 500, 3, t);",
        None,
    ),
    "an event orders them": (
        "cudaMemsetAsync(p, 1, 9, s); cudaEventRecord(e, s); cudaStreamWaitEvent(t, e, 0);cudaMemsetAsync(p, 2, 9, t);",
        None,
    ),
    "an event that was recorded too early": (
        "cudaEventRecord(e, s); cudaMemsetAsync(p, 1, 9, s); cudaStreamWaitEvent(t, e, 0);cudaMemsetAsync(p, 2, 9, t);",
        "conflicting_uses_are_ordered",
    ),
    "the host waits between them": (
        "cudaMemsetAsync(p, 1, 1000, s); cudaStreamSynchronize(s); cudaMemsetAsync(p, 2, 1000, t);",
        None,
    ),
    "the host waits for the event": (
        "cudaMemsetAsync(p, 1, 9, s); cudaEventRecord(e, s); cudaEventSynchronize(e); cudaMemsetAsync(p, 2, 9, t);",
        None,
    ),
    "the default stream orders them": (
        "cudaMemsetAsync(p, 1, 1000, s); cudaMemset(q, 1, 8); cudaMemsetAsync(p, 2, 1000, t);",
        None,
    ),
    "a free waits for the device": (
        "cudaMemsetAsync(p, 1, 1000, s); cudaFree(p); cudaMalloc(&p, 1000); cudaMemsetAsync(p, 1, 1000, t);",
        None,
    ),
    "an ordered free that nothing orders": (
        "void *a; cudaMallocAsync(&a, 64, s); cudaMemsetAsync(a, 1, 64, s); cudaFreeAsync(a, t);",
        "conflicting_uses_are_ordered",
    ),
    "an ordered free on its own stream": (
        "void *a; cudaMallocAsync(&a, 64, s); cudaMemsetAsync(a, 1, 64, s); cudaFreeAsync(a, s);",
        None,
    ),
    "a use before the allocation is reached": (
        "void *a; cudaMallocAsync(&a, 64, s); cudaMemsetAsync(a, 1, 64, t); cudaDeviceSynchronize(); cudaFree(a);",
        "conflicting_uses_are_ordered",
    ),
    "a host function tells the host": (
        "volatile int told = 0; cudaMemsetAsync(p, 1, 9, s); cudaLaunchHostFunc(s, tell, (void *)&told);"
        "while (!told) cudaStreamQuery(s); cudaMemsetAsync(p, 2, 9, t);",
        None,
    ),
    "a double free": ("cudaFree(q); cudaFree(q); cudaMalloc(&q, 1000);", "memory_is_freed_once"),
    "a foreign free": ("cudaFree(&p);", "only_own_memory_is_freed"),
    "a use after free": ("cudaFree(q); cudaMemset(q, 0, 1); cudaMalloc(&q, 1000);", "freed_memory_is_not_used"),
    "an overrun copy": ("cudaMemcpyAsync(q, p, 1001, 3, s);", "uses_stay_inside_their_block"),
    "an overrun by the host": (
        "char *h; cudaHostAlloc((void **)&h, 64, 0); h[64] = 1; cudaFreeHost(h);",
        "memory_after_a_block_is_unchanged",
    ),
    "a full block": ("char *h; cudaHostAlloc((void **)&h, 64, 0); h[63] = 1; cudaFreeHost(h);", None),
    "a destroyed stream": (
        "void *u; cudaStreamCreate(&u); cudaStreamDestroy(u); cudaMemsetAsync(p, 0, 1, u);",
        "destroyed_handles_are_not_used",
    ),
    "lost memory": ("for (int i = 0; i < 9; i++) { void *l; cudaMalloc(&l, 64); }", "nothing_is_left_at_quiescence"),
    "lost events": (
        "for (int i = 0; i < 9; i++) { void *l; cudaEventCreate(&l); }",
        "handles_are_destroyed_at_quiescence",
    ),
    "memory that a global holds": ("cudaMalloc(&kept, 64);", None),
}


@pytest.fixture(autouse=True)
def _built() -> None:
    try:
        build_library()
    except BackendUnavailable as error:
        pytest.skip(str(error))


def judged(program: Path, at_exit: AtExit = AtExit.LOST, flavour: str = "cuda:12", **options: str | int) -> Judgement:
    schedule = str(options.pop("schedule", "eager"))
    settings = MachineSettings(parse_flavour(flavour), schedule, 1, options)
    with run_program([str(program)], settings, os.environ) as ended, open_ledger(ended.ledgers[0]) as ledger:
        return judge(ledger, at_exit)


def rules(findings: tuple[Finding, ...]) -> set[str]:
    return {finding.rule for finding in findings}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, tmp_path: Path) -> None:
    body, rule = PROGRAMS[name]
    program = compile_client(tmp_path, BEGIN + body + END)
    for schedule in ("eager", "lazy", "seeded"):
        assert rules(judged(program, schedule=schedule).findings) == ({rule} if rule else set()), schedule


def test_what_lives_at_exit_is_judged_as_asked(tmp_path: Path) -> None:
    program = compile_client(tmp_path, "cudaMalloc(&kept, 64); return 0;")
    assert rules(judged(program, AtExit.LOST).findings) == set()
    assert (
        "held at exit: 64 bytes in 1 block of device memory from cudaMalloc on device 0"
        in judged(program, AtExit.LOST).held
    )
    assert rules(judged(program, AtExit.ALL).findings) == {"nothing_is_left_at_quiescence"}
    lost = compile_client(tmp_path, "for (int i = 0; i < 9; i++) { void *l; cudaMalloc(&l, 64); } return 0;")
    assert rules(judged(lost, AtExit.NONE).findings) == set()


def test_what_a_killed_process_held_is_not_judged(tmp_path: Path) -> None:
    judgement = judged(compile_client(tmp_path, "void *p; cudaMalloc(&p, 64); abort();"))
    assert judgement.findings == ()
    assert "held at its end: 64 bytes in 1 block of device memory from cudaMalloc on device 0" in judgement.held


@pytest.mark.parametrize(
    ("iteration", "marks", "rules_broken"),
    [
        ("cudaMalloc(&p, 64);", 12, {"retained_does_not_grow"}),
        ("cudaEventCreate(&p);", 12, {"retained_does_not_grow"}),
        ("cudaMalloc(&p, 64);", 5, set()),  # too few to tell
        ("cudaMalloc(&p, 64); cudaFree(p);", 12, set()),
        ("if (i < 2) cudaMalloc(&p, 64);", 12, set()),  # a warm-up
        ("if (i % 4 == 0 && i < 8) cudaMalloc(&cache[i], 64); else if (i % 4 == 2) cudaFree(cache[i - 2]);", 12, set()),
    ],
)
def test_growth_from_mark_to_mark(iteration: str, marks: int, rules_broken: set[str], tmp_path: Path) -> None:
    body = (
        "int quiesce_mark(const char *) __attribute__((weak)); void *p, *cache[99] = {0};"
        f'for (int i = 0; i < {marks}; i++) {{ {iteration} quiesce_mark("iteration"); }} return 0;'
    )
    assert rules(judged(compile_client(tmp_path, body), AtExit.NONE).findings) == rules_broken


MARKED = """
    int quiesce_mark(const char *) __attribute__((weak)); void *p, *q, *kept[99] = {{0}};
    for (int i = 0; i < 12; i++) {{ {} if (quiesce_mark) quiesce_mark("step"); }} return 0;"""


@pytest.mark.parametrize(
    ("iteration", "told"),
    [
        (
            "cudaMalloc(&p, 2048); cudaMalloc(&p, 2048);",
            ["4,096 bytes (4 KiB) in 2 blocks of device memory more at each of 12 marks 'step' from cudaMalloc"],
        ),
        ("cudaEventCreate(&p);", ["1 event more at each of 12 marks 'step' from cudaEventCreate"]),
        (
            "cudaMalloc(&p, 64); cudaHostAlloc(&q, 100, 0); cudaMalloc(&p, 16); cudaFree(p);",
            [
                "64 bytes in 1 block of device memory more at each of 12 marks 'step' from cudaMalloc",
                "100 bytes in 1 block of pinned memory more at each of 12 marks 'step' from cudaHostAlloc",
            ],
        ),
        (
            "for (int j = 0; j < i; j++) cudaMalloc(&p, 10);",
            ["630 bytes in 63 blocks of device memory more at the last of 10 marks 'step' than at the first"],
        ),
        (  # what grows comes from nowhere in particular
            "cudaMalloc(&p, i + 1);",
            ["78 bytes in 12 blocks and 0 handles at the last of 12 marks 'step'; at the third, 6 bytes in 3 blocks"],
        ),
        ("cudaMalloc(&kept[i], 64); if (i) cudaFree(kept[i - 1]);", []),
    ],
)
def test_growth_is_told_by_who_made_it_in_whole_numbers(iteration: str, told: list[str], tmp_path: Path) -> None:
    findings = judged(compile_client(tmp_path, MARKED.format(iteration)), AtExit.NONE).findings
    assert len(findings) == len(told)
    for finding, text in zip(findings, told, strict=True):
        assert finding.observed.startswith(text)
        assert ("run it without --no-stacks to see where" in finding.observed) == bool(finding.call_sites)


def test_growth_is_judged_by_totals_where_calls_were_overwritten(tmp_path: Path) -> None:
    body = MARKED.format("for (int j = 0; j < 3; j++) cudaMalloc(&p, 10);")
    (finding,) = judged(compile_client(tmp_path, body), AtExit.NONE, ring=40).findings
    assert "0 handles at the last of 10 marks 'step'; at the third" in finding.observed
    assert finding.call_sites == ()


def test_races_are_not_judged_where_calls_are_missing(tmp_path: Path) -> None:
    body = "for (int i = 0; i < 40; i++) cudaMemset(q, 0, 8); cudaMemsetAsync(p, 1, 8, s); cudaMemsetAsync(p, 2, 8, t);"
    judgement = judged(compile_client(tmp_path, BEGIN + body + END), ring=16)
    assert judgement.findings == ()
    assert any("races were not judged" in note for note in judgement.notes)
    assert any("races were not judged" in reason for reason in judgement.unjudged)


def test_many_findings_of_one_rule_are_counted(tmp_path: Path) -> None:
    body = "for (int i = 0; i < 50; i++) { void *p; cudaMalloc(&p, 64 + i); cudaMemset(p, 0, 65 + i); cudaFree(p); }"
    judgement = judged(compile_client(tmp_path, body + " return 0;"))
    assert len(judgement.findings) == SHOWN_MAX
    assert judgement.findings[-1].evidence == "30 more findings of this rule are not shown"
    assert judgement.left_out == (("uses_stay_inside_their_block", 30),)


def test_what_is_not_simulated_is_noted_and_no_finding(tmp_path: Path) -> None:
    judgement = judged(compile_client(tmp_path, "cudaMallocMipmappedArray(); cudaMallocMipmappedArray(); return 0;"))
    assert judgement.findings == ()
    assert judgement.notes == ("not simulated: cudaMallocMipmappedArray (called 2 times)",)
    assert judgement.not_checked == ()
    (unjudged,) = judgement.unjudged
    assert "(called 2 times): what it would make was not judged" in unjudged
