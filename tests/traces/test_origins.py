"""Findings of a ledger say where the block or handle came from, and with call stacks who did what."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from tests.simulator.programs import compile_client

from quiesce.model.errors import BackendUnavailable
from quiesce.model.findings import Finding
from quiesce.simulator.judge.conditions import AtExit
from quiesce.simulator.judge.judgement import judge
from quiesce.simulator.runtime.build import build_library
from quiesce.simulator.runtime.flavours import parse_flavour
from quiesce.simulator.runtime.launch import MachineSettings, run_program
from quiesce.simulator.runtime.ledger import open_ledger
from quiesce.simulator.runtime.stacks import open_stacks

FUNCTIONS = """
__attribute__((noinline)) void *make(void) { void *p; cudaMalloc(&p, 64); __asm__ volatile(""); return p; }
__attribute__((noinline)) int drop(void *p) { int status = cudaFree(p); __asm__ volatile(""); return status; }
__attribute__((noinline)) void *other(void) { void *p = make(); __asm__ volatile(""); return p; }
"""


@pytest.fixture(autouse=True)
def _built() -> None:
    try:
        build_library()
    except BackendUnavailable as error:
        pytest.skip(str(error))


def findings(folder: Path, body: str, stacks: int, at_exit: AtExit = AtExit.NONE) -> tuple[Finding, ...]:
    program = compile_client(folder, FUNCTIONS + body + " return 0;")
    settings = MachineSettings(parse_flavour("cuda:12"), options={"stacks": stacks, "recycle": "never"})
    with run_program([str(program)], settings, os.environ) as ended:
        (path,) = ended.ledgers
        with open_ledger(path) as ledger, open_stacks(path) as log:
            return judge(ledger, at_exit, log).findings


@pytest.mark.parametrize(
    "body",
    [
        "void *p = make(); drop(p); drop(p);",
        "void *p = make(); drop(p); cudaMemset((char *)p + 3, 0, 8);",
        "void *p = make(); cudaMemset(p, 0, 65);",
        "void *p = make(); ((char *)p)[64] = 1; drop(p);",
        "handle e; cudaEventCreate(&e); cudaEventDestroy(e); cudaEventRecord(e, 0);",
    ],
)
def test_wrong_calls_name_what_made_their_object(body: str, tmp_path: Path) -> None:
    (plain,) = findings(tmp_path, body, 0)
    function = "cudaEventCreate" if "Event" in body else "cudaMalloc"
    assert (plain.allocated_by, plain.evidence) == (f"{function} (call 0)", "")
    (told,) = findings(tmp_path, body, 1)
    made = "main" if "Event" in body else "make"
    assert f"{function} (call 0) by {made}" in told.allocated_by
    assert f" by {told.request} (call " in told.evidence
    assert ("freed by cudaFree (call 1) by drop" in told.evidence) == ("drop(p);" in body and "[64]" not in body)


def test_leaks_are_grouped_by_the_place_they_were_made_at(tmp_path: Path) -> None:
    body = "for (int i = 0; i < 5; i++) make(); for (int i = 0; i < 3; i++) other();"
    (together,) = findings(tmp_path, body, 0, AtExit.ALL)
    assert together.observed.startswith("512 bytes in 8 blocks")
    first, second = findings(tmp_path, body, 1, AtExit.ALL)
    assert first.observed.startswith("320 bytes in 5 blocks")
    assert second.observed.startswith("192 bytes in 3 blocks")
    assert "other" in second.allocated_by
    assert "other" not in first.allocated_by


def test_a_race_names_both_callers(tmp_path: Path) -> None:
    body = """
    handle a, b;
    cudaStreamCreate(&a), cudaStreamCreate(&b);
    void *p = make();
    cudaMemsetAsync(p, 0, 64, a);
    cudaMemsetAsync(p, 1, 64, b);"""
    (race,) = findings(tmp_path, body, 1)
    assert [(site.role, site.number) for site in race.call_sites] == [("earlier use", 3), ("later use", 4)]
    assert [line.partition(" by ")[0] for line in race.evidence.splitlines()] == [
        "earlier use cudaMemsetAsync (call 3)",
        "later use cudaMemsetAsync (call 4)",
    ]


STREAMS = """
__attribute__((noinline)) void *made(void) { void *s; cudaStreamCreate(&s); __asm__ volatile(""); return s; }
__attribute__((noinline)) void *upload(void) { void *s = made(); __asm__ volatile(""); return s; }
"""


def test_a_stream_is_named_with_the_place_that_created_it(tmp_path: Path) -> None:
    body = "void *p = make(), *s = made(), *t = upload(); cudaMemsetAsync(p, 0, 8, s); cudaMemsetAsync(p, 0, 8, t);"
    (plain,) = findings(tmp_path, STREAMS + body, 0)
    assert plain.expected == "cudaMemsetAsync (call 3) on stream 2 before cudaMemsetAsync (call 4) on stream 3"
    (told,) = findings(tmp_path, STREAMS + body, 1)
    made = r"stream (\d) \(created by made\.\d \(client\+0x[0-9a-f]+\), called by (\w+)"
    assert re.findall(made, told.expected) == [("2", "main"), ("3", "upload")]


def test_the_default_stream_has_no_number(tmp_path: Path) -> None:
    body = "void *p = make(), *s; cudaStreamCreateWithFlags(&s, 1); cudaMemsetAsync(p, 0, 8, s); cudaMemset(p, 0, 8);"
    (plain,) = findings(tmp_path, body, 0)
    assert plain.expected.endswith(" before cudaMemset (call 3) on the default stream")
