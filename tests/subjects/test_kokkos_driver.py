"""The driver of the Kokkos subjects over a runtime of ours: what an exit would leave is seen, what it frees is not."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from quiesce.backends.process import ProcessBackend
from quiesce.cases.catalogue import load_catalogue
from quiesce.execution import run_case
from quiesce.results import Verdict

ROOT = Path(__file__).resolve().parents[2]
DRIVER = ROOT / "fixtures" / "host" / "kokkos_serial"
FINAL = "finalized_runtime_owns_nothing"
GROWTH = "retained_does_not_grow"
FLAGS = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-rdynamic", f"-I{DRIVER}", f"-I{ROOT}/fixtures/process/cpp"]

# what the runtime is compiled to leave, and the rule that each case of the corpus sees broken
RUNTIMES = {
    "": {},
    "LEAKS_SINGLETON": dict.fromkeys(("finalize_frees_the_singleton", "one_policy_changes_nothing"), FINAL),
    "LEAKS_BY_MALLOC": dict.fromkeys(("finalize_frees_the_singleton", "partitions_leave_nothing"), FINAL),
    "LEAKS_ARRAY": {"restarts_retain_nothing": FINAL},
    "LEAKS_EACH_TIME": {"restarts_retain_nothing": FINAL},
    "LEAKS_ALIGNED": {"finalize_frees_the_singleton": FINAL},
    "LEAKS_INSTANCES": {"partitions_leave_nothing": FINAL, "instance_outlives_finalize": "handles"},
    "LEAKS_POLICIES": {"one_policy_changes_nothing": FINAL, "many_policies_retain_nothing": FINAL},
}
CASES = (
    "finalize_frees_the_singleton",
    "instance_outlives_finalize",
    "many_policies_retain_nothing",
    "one_policy_changes_nothing",
    "partitions_leave_nothing",
    "restarts_retain_nothing",
    "runtime_can_start_again",
)


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The driver without a runtime, compiled once."""
    compiler = shutil.which("c++")
    if compiler is None or sys.platform != "linux":
        pytest.skip("the ledger of the heap needs Linux and a C++ compiler; apt-get install g++")
    folder = tmp_path_factory.mktemp("kokkos")
    for name in ("driver", "heap"):
        command = [compiler, *FLAGS, "-c", str(DRIVER / f"{name}.cpp"), "-o", str(folder / f"{name}.o")]
        subprocess.run(command, check=True)
    return folder


def build(objects: Path, fault: str) -> ProcessBackend:
    program = objects / f"driver-{fault}"
    source = Path(__file__).parent / "kokkos" / "runtime.cpp"
    defined = [f"-D{fault}"] if fault else []
    words = ["c++", *FLAGS, "-Wno-unused", *defined, str(objects / "driver.o"), str(objects / "heap.o"), str(source)]
    subprocess.run([*words, "-o", str(program), "-ldl"], check=True)
    return ProcessBackend([str(program)])
