"""Programs that run to their end: how they end is judged, and what they wrote is kept."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from tests.simulator.programs import compile_client

from quiesce.model.errors import BackendUnavailable
from quiesce.model.results import Result, Verdict
from quiesce.simulator.runtime.build import find_compiler, require_platform
from quiesce.simulator.runtime.flavours import parse_flavour
from quiesce.subjects.build import Built
from quiesce.subjects.manifest import Program
from quiesce.subjects.programs import ENDS, SUCCEEDS, run_judged


def run(program: Program) -> Result:
    return run_judged(program, Built({}, dict(os.environ)), seed=0, backend="row")


def python(code: str, seconds: float = 60.0) -> Result:
    return run(Program("x", (sys.executable, "-c", code), watchdog_seconds=seconds))


def test_a_program_that_succeeds_passes() -> None:
    result = python("print('all is well')")
    assert (result.case, result.backend, result.verdict) == ("program/x", "row", Verdict.PASSED)


@pytest.mark.parametrize(
    ("code", "observed"),
    [("raise SystemExit(3)", "exit status 3"), ("import os; os.abort()", "killed by SIGABRT")],
)
def test_one_that_fails_is_a_finding_with_its_output(code: str, observed: str) -> None:
    result = python(f"print('before', flush=True)\n{code}")
    (finding,) = result.findings
    assert result.verdict is Verdict.FAILED
    assert (finding.rule, finding.observed) == (SUCCEEDS, observed)
    assert "before" in finding.evidence


def test_one_that_does_not_end_is_ended() -> None:
    result = python("print('here', flush=True); input = None\nwhile True: pass", seconds=1.0)
    (finding,) = result.findings
    assert finding.rule == ENDS
    assert finding.observed == "none; it was killed"


@pytest.fixture
def compiler() -> None:
    try:
        require_platform()
        find_compiler()
    except BackendUnavailable as unavailable:
        pytest.skip(str(unavailable))


@pytest.mark.usefixtures("compiler")
def test_on_the_simulated_runtime_its_ledger_is_judged_too(tmp_path: Path) -> None:
    client = compile_client(tmp_path, "void *p; cudaMalloc(&p, 100); cudaFree(p); cudaFree(p); return 0;")
    result = run(Program("x", (str(client),), simulated=parse_flavour("cuda:12"), capacity_bytes=1 << 20))
    assert [finding.rule for finding in result.findings] == ["memory_is_freed_once"]
    assert result.operations == 3


@pytest.mark.usefixtures("compiler")
def test_one_that_never_calls_the_runtime_proves_nothing(tmp_path: Path) -> None:
    client = compile_client(tmp_path, "return 0;")
    result = run(Program("x", (str(client),), simulated=parse_flavour("cuda:12")))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "the program never called the simulated runtime" in result.reason


@pytest.mark.usefixtures("compiler")
def test_one_that_is_refused_a_device_proves_nothing(tmp_path: Path) -> None:
    client = compile_client(tmp_path, "cudaMallocMipmappedArray(); return 0;")
    result = run(Program("x", (str(client),), simulated=parse_flavour("cuda:12")))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "cudaMallocMipmappedArray (called by client) is not simulated" in result.reason
