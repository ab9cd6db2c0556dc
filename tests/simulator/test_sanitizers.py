"""The library under the compiler's sanitizers: random calls from several threads, and nothing left at the end."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

import pytest

from quiesce.simulator.runtime.build import COUNTED, SOURCES, find_compiler
from quiesce.simulator.runtime.ledger import open_ledger

pytestmark = pytest.mark.skipif(not os.environ.get("QUIESCE_SANITIZERS"), reason="tox -e simulator-sanitizers runs it")

STRESS: Final = Path(__file__).with_name("stress.c")
SANITIZERS: Final = {
    "address": ("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
    "thread": ("-fsanitize=thread",),
}
ENVIRONMENT: Final = {
    **os.environ,
    "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
}


@pytest.fixture(scope="module", params=list(SANITIZERS))
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp(request.param) / "stress"
    sources = [str(path) for path in sorted(SOURCES.rglob("*.c"))]
    options = ["-std=gnu11", "-D_GNU_SOURCE", "-g", "-O1", "-pthread", *SANITIZERS[request.param]]
    options += [f"-Wl,--wrap={name}" for name in COUNTED]
    command = [*find_compiler(), *options, f"-I{SOURCES}", str(STRESS), *sources, "-o", str(made), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return made


@pytest.mark.parametrize("schedule", ["eager", "lazy", "seeded"])
@pytest.mark.parametrize(("threads", "calls"), [(1, 20_000), (4, 5_000)])
def test_nothing_is_reported(program: Path, schedule: str, threads: int, calls: int, tmp_path: Path) -> None:
    stacks = int(schedule == "seeded")
    machine = "devices=2;capacity=100000;seed=5;ring=1024;fail=device:2%"
    settings = f"folder={tmp_path};schedule={schedule};{machine};stacks={stacks}"
    command = [str(program), str(threads), str(calls), "7", settings]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=300)
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)
    with open_ledger(next(tmp_path.glob("*.ledger"))) as ledger:
        assert ledger.observations > threads * calls / 3, "most calls do something"
        assert len({record.seen for record in ledger.records()}) > 12
