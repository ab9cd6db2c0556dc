"""One mistake is one finding, however often it is seen, and never hides another."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.simulator.programs import compile_client

from quiesce.model.errors import BackendUnavailable
from quiesce.model.findings import CallSite, Finding
from quiesce.simulator.judge.causes import CAUSES_MAX, SHOWN_MAX, Causes, bounded, left_out
from quiesce.simulator.judge.conditions import AtExit
from quiesce.simulator.judge.judgement import judge
from quiesce.simulator.judge.origins import Origins
from quiesce.simulator.judge.watching import Watch
from quiesce.simulator.runtime.build import build_library
from quiesce.simulator.runtime.flavours import parse_flavour
from quiesce.simulator.runtime.launch import MachineSettings, run_program
from quiesce.simulator.runtime.ledger import open_ledger
from quiesce.simulator.runtime.stacks import open_stacks

FUNCTIONS = """
__attribute__((noinline)) void first(void *p) { cudaMemset(p, 0, 4); __asm__ volatile(""); }
__attribute__((noinline)) void second(void *p) { cudaMemset(p, 0, 4); __asm__ volatile(""); }
"""
TWO_BUGS = """
void *p, *q;
cudaMalloc(&p, 4096); cudaFree(p);
for (int i = 0; i < 25; i++) first(p);
cudaMalloc(&q, 8192); cudaFree(q);
second(q);
"""
RACES = """
void *p; handle a, b;
cudaMalloc(&p, 64); cudaStreamCreate(&a); cudaStreamCreate(&b);
for (int i = 0; i < 30; i++) { cudaMemsetAsync(p, 0, 64, a); cudaMemsetAsync(p, 1, 64, b); cudaDeviceSynchronize(); }
cudaMemsetAsync(p, 0, 64, b); cudaMemsetAsync(p, 1, 64, a);
"""


def compiled(folder: Path, body: str) -> Path:
    try:
        build_library()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    return compile_client(folder, FUNCTIONS + body + " return 0;")


def seen(folder: Path, body: str, stacks: int, *, watched: bool = False) -> list[tuple[str, int]]:
    """Return who broke a rule and how often."""
    program = compiled(folder, body)
    settings = MachineSettings(parse_flavour("cuda:12"), options={"stacks": stacks, "recycle": "never"})
    with run_program([str(program)], settings, os.environ) as ended:
        (path,) = ended.ledgers
        with open_ledger(path) as ledger, open_stacks(path) as log:
            findings = (Watch(ledger, log).findings if watched else lambda left: judge(ledger, left, log))(AtExit.NONE)
            return [
                (finding.call_sites[-1].frames[0].function.partition(".")[0] if stacks else "", finding.seen)
                for finding in findings.findings
            ]


@pytest.mark.parametrize("watched", [False, True], ids=["judge", "watch"])
def test_a_mistake_in_a_loop_hides_no_other(tmp_path: Path, watched: bool) -> None:
    assert seen(tmp_path, TWO_BUGS, 1, watched=watched) == [("first", 25), ("second", 1)]


def test_without_stacks_blocks_are_told_apart_by_size(tmp_path: Path) -> None:
    assert seen(tmp_path, TWO_BUGS, 0) == [("", 25), ("", 1)]


def test_one_line_that_uses_blocks_of_two_places_has_two_causes(tmp_path: Path) -> None:
    body = """
    void *p, *q;
    cudaMalloc(&p, 64);
    cudaMalloc(&q, 64);
    cudaFree(p); cudaFree(q);
    for (int i = 0; i < 6; i++) first(i % 2 ? p : q);"""
    assert seen(tmp_path, body, 1) == [("first", 3), ("first", 3)]


def test_blocks_of_one_line_have_one_cause(tmp_path: Path) -> None:
    body = "void *p; for (int i = 0; i < 40; i++) { cudaMalloc(&p, 64 + i); cudaFree(p); first(p); }"
    assert seen(tmp_path, body, 1) == [("first", 40)]


def test_races_are_grouped_by_both_places(tmp_path: Path) -> None:
    assert [count for _, count in seen(tmp_path, RACES, 1)] == [30, 1]


def test_what_is_found_at_the_end_is_never_joined() -> None:
    causes = Causes(Origins(None))
    causes.add([Finding("leak", "nothing", "8 bytes"), Finding("leak", "nothing", "8 bytes")])
    assert [finding.seen for finding in causes.findings()] == [1, 1]


def test_any_number_of_findings_takes_bounded_memory() -> None:
    def flood() -> Iterator[Finding]:
        for number in range(100_000):
            site = CallSite("used by", f"call{number}", number)
            yield Finding("rule", "", "", operation_index=number, request=f"call{number}", call_sites=(site,))

    causes = Causes(Origins(None))
    causes.add(flood())
    findings = causes.findings()
    assert len(findings) == CAUSES_MAX
    assert len(list(bounded(findings, causes.beyond))) == SHOWN_MAX
    assert left_out(findings, causes.beyond) == (("rule", 100_000 - SHOWN_MAX),)
