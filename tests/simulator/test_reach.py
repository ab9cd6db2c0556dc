"""What a program lost and what it still knows when it exits: only where the program itself keeps an address counts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import pytest
from tests.simulator.programs import compile_client

from quiesce.model.findings import Finding
from quiesce.simulator.judge.conditions import AtExit
from quiesce.simulator.judge.judgement import judge
from quiesce.simulator.runtime.flavours import parse_flavour
from quiesce.simulator.runtime.launch import MachineSettings, run_program
from quiesce.simulator.runtime.ledger import open_ledger
from quiesce.simulator.runtime.stacks import open_stacks

pytestmark = [
    pytest.mark.usefixtures("library"),
    pytest.mark.skipif(sys.platform != "linux", reason="programs are ELF files on Linux"),
]

USED: Final = """
    void *block, *ordered, *pinned;
    handle stream, event;
    cudaStreamCreate(&stream), cudaEventCreate(&event);
    cudaMalloc(&block, 4096), cudaHostAlloc(&pinned, 4096, 0);
    cudaMemset(block, 1, 4096), cudaMemcpyAsync(pinned, block, 4096, 2, stream);
    cudaMallocAsync(&ordered, 100, stream), cudaMemsetAsync(ordered, 1, 100, stream);
    cudaEventRecord(event, stream), cudaStreamWaitEvent(0, event, 0);
"""
DEVICE: Final = "1 block of device memory"
KINDS: Final = [DEVICE, DEVICE, "1 block of pinned memory", "1 event", "1 stream"]


def judged(folder: Path, body: str, schedule: str) -> tuple[Finding, ...]:
    """Run a program to its end and return what is found."""
    program = compile_client(folder, body)
    with run_program([str(program)], MachineSettings(parse_flavour("cuda:12"), schedule), {}) as ended:
        assert ended.status == 0
        (path,) = ended.ledgers
        with open_ledger(path) as ledger, open_stacks(path) as stacks:
            return judge(ledger, AtExit.LOST, stacks).findings


def lost(folder: Path, body: str, schedule: str) -> list[str]:
    """Run a program to its end and return the kinds of what it lost, sorted."""
    findings = judged(folder, body, schedule)
    return sorted(finding.observed.partition(" from ")[0].rpartition(" in ")[2] for finding in findings)


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
def test_what_was_used_is_lost_once_nobody_knows_it(schedule: str, tmp_path: Path) -> None:
    """Neither what the runtime noted of the work nor what is left of main() on the stack is somebody who knows it."""
    assert lost(tmp_path, USED + "return 0;", schedule) == KINDS


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
def test_pending_work_owns_nothing(schedule: str, tmp_path: Path) -> None:
    body = """
    cudaMalloc(&kept, 4096);
    for (int i = 0; i < 3000; i++) cudaMemsetAsync(kept, i, 4096, 0);
    kept = 0;
    return 0;"""
    assert lost(tmp_path, body, schedule) == [DEVICE]


def test_a_race_is_found_behind_many_uses_that_nobody_waited_for(tmp_path: Path) -> None:
    """Each use stands for those that it covers, so that work which is never waited for costs no more each time."""
    body = """
    handle stream, other;
    cudaMalloc(&kept, 4096), cudaStreamCreate(&stream), cudaStreamCreate(&other);
    for (int i = 0; i < 20000; i++) cudaMemsetAsync(kept, i, 4096, stream);
    cudaMemsetAsync((char *)kept + 100, 1, 8, other);
    cudaDeviceSynchronize();
    cudaStreamDestroy(stream), cudaStreamDestroy(other), cudaFree(kept);
    return 0;"""
    (finding,) = judged(tmp_path, body, "lazy")
    assert finding.rule == "conflicting_uses_are_ordered"


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
def test_what_a_frame_holds_that_calls_exit_is_not_lost(schedule: str, tmp_path: Path) -> None:
    body = "void *volatile all[] = {block, ordered, pinned, stream, event};\n    if (all[0]) leave(all);\n    return 0;"
    leave = "void leave(void *volatile *all) { exit(all[1] == 0); }"
    program = f"return started();\n}}\n{leave}\nint started(void) {{{USED}{body}"
    assert lost(tmp_path, program, schedule) == []


def test_what_a_variable_holds_is_not_lost(tmp_path: Path) -> None:
    body = """
    static void *volatile all[5];
    all[0] = block, all[1] = ordered, all[2] = pinned, all[3] = stream, all[4] = event;
    """
    assert lost(tmp_path, USED + body + "return 0;", "eager") == []


def test_arrays_know_no_address(tmp_path: Path) -> None:
    body = """
    struct { int bits[4], kind; } format = {{8}};
    handle array;
    cudaMallocArray(&array, &format, (size_t)64, (size_t)64, 0);
    return 0;"""
    assert lost(tmp_path, body, "eager") == [DEVICE]
