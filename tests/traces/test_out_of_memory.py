"""When a request first runs out of memory, the output says who held the memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.simulator.programs import compile_client

from quiesce.model.errors import BackendUnavailable
from quiesce.model.program_run import OutOfMemory
from quiesce.reporting.json_values import record_of, value_from
from quiesce.simulator.judge.conditions import AtExit
from quiesce.simulator.judge.judgement import judge
from quiesce.simulator.judge.memory_use import lines_of
from quiesce.simulator.runtime.build import build_library
from quiesce.simulator.runtime.flavours import parse_flavour
from quiesce.simulator.runtime.launch import MachineSettings, run_program
from quiesce.simulator.runtime.ledger import open_ledger
from quiesce.simulator.runtime.stacks import open_stacks

MIB = 1 << 20
MAKERS = """
void *p, *q;
__attribute__((noinline)) void weights(void) { cudaMalloc(&p, 20 << 20); __asm__ volatile(""); }
__attribute__((noinline)) void batch(void) { cudaMalloc(&p, 3 << 20); __asm__ volatile(""); }
"""
FULL = "weights(); batch(); batch(); cudaHostAlloc(&q, 50 << 20, 0); cudaMalloc(&q, 7 << 20); batch();"


@pytest.fixture(autouse=True)
def _built() -> None:
    try:
        build_library()
    except BackendUnavailable as error:
        pytest.skip(str(error))


def told(folder: Path, body: str, **options: str | int) -> OutOfMemory | None:
    program = compile_client(folder, MAKERS + body + " return 0;")
    settings = MachineSettings(parse_flavour("cuda:12"), options={"capacity": 32 * MIB, "stacks": 1, **options})
    with run_program([str(program)], settings, os.environ) as ended:
        (path,) = ended.ledgers
        with open_ledger(path) as ledger, open_stacks(path) as stacks:
            return judge(ledger, AtExit.NONE, stacks).out_of_memory


def held(told: OutOfMemory) -> list[tuple[int, int, str]]:
    """Return how much each holder has, and the function that made it."""
    return [
        (each.count, each.size_bytes, each.site.frames[0].function.partition(".")[0] if each.site.frames else "")
        for each in told.holders
    ]


def test_live_memory_is_listed_by_the_place_that_made_it(tmp_path: Path) -> None:
    found = told(tmp_path, FULL)
    assert found is not None
    assert (found.thing, found.device, found.requested_bytes) == ("device memory", 0, 7 * MIB)
    assert (found.capacity_bytes, found.live_bytes, found.live_count) == (32 * MIB, 26 * MIB, 3)
    assert (found.cached_bytes, found.fragmented_bytes, found.free_bytes) == (0, 0, 6 * MIB)
    assert held(found) == [(1, 20 * MIB, "weights"), (2, 6 * MIB, "batch")]
    assert (found.site.role, found.site.call, found.site.frames[0].function) == ("refused to", "cudaMalloc", "main")
    assert (found.is_injected, found.is_first) == (False, True)


def test_nothing_is_told_where_nothing_was_refused(tmp_path: Path) -> None:
    assert told(tmp_path, "weights(); batch(); cudaMalloc(&p, 0);") is None


def test_only_the_first_refusal_counts_and_what_comes_after_it_does_not(tmp_path: Path) -> None:
    first = "weights(); cudaMalloc(&q, 30 << 20); cudaFree(p); batch(); cudaMalloc(&q, 30 << 20);"
    found = told(tmp_path, first)
    assert found is not None
    assert held(found) == [(1, 20 * MIB, "weights")]


def test_what_pools_of_the_runtime_cache_and_what_rounding_takes_is_told_apart(tmp_path: Path) -> None:
    body = "cudaMallocAsync(&p, 9 << 20, 0); cudaMallocAsync(&q, 1000, 0); cudaFreeAsync(p, 0); weights();"
    found = told(tmp_path, body, capacity=33 * MIB)
    assert found is not None
    assert (found.live_bytes, found.fragmented_bytes) == (1000, 24)
    assert (found.cached_bytes, found.free_bytes) == (32 * MIB - 1024, MIB)


def test_pinned_memory_is_its_own(tmp_path: Path) -> None:
    found = told(tmp_path, "weights(); cudaHostAlloc(&q, 5 << 20, 0); cudaHostAlloc(&q, 9 << 20, 0);", pinned=8 * MIB)
    assert found is not None
    assert (found.thing, found.capacity_bytes, found.free_bytes) == ("pinned memory", 8 * MIB, 3 * MIB)
    assert held(found) == [(1, 5 * MIB, "main")]


def test_a_refusal_that_was_asked_for_says_so(tmp_path: Path) -> None:
    found = told(tmp_path, "weights(); batch();", fail="device:2")
    assert found is not None
    assert found.is_injected
    assert found.free_bytes == 12 * MIB
    assert any("--fail caused this refusal" in line for line in lines_of(found))


def test_another_error_that_was_asked_for_is_no_want_of_memory(tmp_path: Path) -> None:
    assert told(tmp_path, "weights(); batch();", fail="device:2=999") is None


def test_what_was_made_before_the_oldest_observation_is_found_all_the_same(tmp_path: Path) -> None:
    body = "weights(); batch(); void *early = p; for (int i = 0; i < 40; i++) { cudaMalloc(&q, 64); cudaFree(q); }"
    found = told(tmp_path, f"{body} batch(); cudaMalloc(&q, 7 << 20); cudaFree(early);", ring=16)
    assert found is not None
    assert not found.is_first
    assert found.live_bytes == 26 * MIB
    assert sorted(held(found)) == [(1, 3 * MIB, ""), (1, 3 * MIB, "batch"), (1, 20 * MIB, "weights")]
    assert any("the first refusal that is kept" in line for line in lines_of(found))


def test_ten_holders_are_listed_and_the_others_counted(tmp_path: Path) -> None:
    makers = "".join(
        f'__attribute__((noinline)) void f{n}(void) {{ cudaMalloc(&p, {n + 1} << 10); __asm__ volatile(""); }}\n'
        for n in range(14)
    )
    found = told(tmp_path, makers + "".join(f"f{n}();" for n in range(14)) + "cudaMalloc(&q, 1 << 30);", capacity=MIB)
    assert found is not None
    assert [size for _, size, _ in held(found)] == [n << 10 for n in range(14, 4, -1)]
    assert found.holders_count == 14
    assert list(lines_of(found))[-1] == "  and 4 more places that hold less"


def test_the_terminal_and_the_report_say_it(tmp_path: Path) -> None:
    program = compile_client(tmp_path, MAKERS + FULL + " return 0;")
    command = [sys.executable, "-m", "quiesce.cli.main", "exec", "--capacity", "32MiB", "--at-exit", "none"]
    command += ["--report", str(tmp_path / "out"), "--", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (
        "out of memory on device 0: cudaMalloc of 7,340,032 bytes (7 MiB) of device memory was refused" in done.stderr
    )
    assert "held: 20,971,520 bytes (20 MiB) in 1 block of device memory from cudaMalloc, by weights" in done.stderr
    report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    record = report["results"][0]["program"]["out_of_memory"]
    assert [holder["size_bytes"] for holder in record["holders"]] == [20 * MIB, 6 * MIB]
    assert record_of(value_from(OutOfMemory, record)) == record
