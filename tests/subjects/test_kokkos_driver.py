"""The driver of the Kokkos subjects over a runtime of ours: what an exit would leave is seen, what it frees is not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from quiesce.allocators.cases.catalogue import load
from quiesce.allocators.execution import run_case
from quiesce.backends.command import CommandBackend
from quiesce.model.results import Verdict

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
DRIVER = ROOT / "fixtures" / "host" / "kokkos_serial"
FLAGS = [
    "-std=c++17",
    "-O1",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-rdynamic",
    f"-I{DRIVER}",
    f"-I{ROOT}/fixtures/command/cpp",
]
CASES = {case.identifier: case for case in load([ROOT / "cases" / "lifecycle"]).cases}
REFUSED = "lifecycle/second_start_is_refused"  # promised by releases of another kind
RUNS = sorted(CASES.keys() - {REFUSED, "lifecycle/instances_own_their_streams"})  # the other one launches

# what the runtime leaves on the heap, and the cases that must be red then
REDS = {
    "nothing": [],
    "singleton": RUNS,
    "malloc": RUNS,
    "array": RUNS,
    "one each time": RUNS,
    "aligned": RUNS,
    "instances": ["lifecycle/instance_outlives_finalize", "lifecycle/partitions_leave_nothing"],
    "policies": [
        "lifecycle/many_policies_retain_nothing",
        "lifecycle/one_policy_changes_nothing",
        "lifecycle/restarts_retain_nothing",
    ],
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The driver over that runtime."""
    if shutil.which("c++") is None or sys.platform != "linux":
        pytest.skip("the ledger of the heap needs Linux and a C++ compiler; apt-get install g++")
    made = tmp_path_factory.mktemp("kokkos") / "driver"
    sources = [DRIVER / "driver.cpp", DRIVER / "heap.cpp", Path(__file__).parent / "kokkos" / "runtime.cpp"]
    subprocess.run(["c++", *FLAGS, *map(str, sources), "-o", str(made), "-ldl"], check=True)
    return str(made)


@pytest.mark.parametrize("leaving", REDS)
def test_what_an_exit_leaves_is_found_and_what_it_frees_is_not(leaving: str, program: str) -> None:
    backend = CommandBackend([program], environment={**os.environ, "LEAVES": leaving})
    results = {name: run_case(CASES[name], backend) for name in RUNS}
    assert sorted(name for name, result in results.items() if result.verdict is Verdict.FAILED) == REDS[leaving]
    assert all(result.verdict is Verdict.PASSED for name, result in results.items() if name not in REDS[leaving])
    broken = {finding.rule for result in results.values() for finding in result.findings}
    assert broken <= {
        "finalized_runtime_owns_nothing",
        "handles_are_destroyed_at_quiescence",
        "retained_does_not_grow",
    }


def test_a_block_that_an_exit_leaves_is_named_in_the_evidence(program: str) -> None:
    requests = "open capacity=1 pinned-capacity=1 alignment=1 granularity=1 devices=1 flavour=cuda initialization=once"
    lines = ["hello 1", requests, "initialize", "finalize", "gauges", "quit"]
    done = subprocess.run(
        [program],
        input="\n".join(lines),
        env={**os.environ, "LEAVES": "singleton"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert '"instances":{"ledger":1}' in done.stdout
    assert "left by an exit: 176 bytes of owner 0 from " in done.stderr
    assert len(done.stdout.splitlines()) == len(lines) - 1
