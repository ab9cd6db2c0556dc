"""Generated sequences in other processes: the same is found, noted, counted and said as in one process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.backends.example_pools import build

from quiesce.allocators.cases.catalogue import find_cases, load
from quiesce.allocators.conformance import Conformance, run_conformance
from quiesce.allocators.conformance.monitor import NOTES_MAX, Notebook
from quiesce.allocators.generation.running import Jobs, Task
from quiesce.backends.registry import load_backend
from quiesce.cli.endings import ExitCode
from quiesce.cli.workers import Workers
from quiesce.model.operations import Mark
from quiesce.model.results import Verdict
from quiesce.model.rules import NEVER_FALL, RAISED, SHARE_NOTHING

from . import backends as faults

OPERATIONS = 600
TRIALS_MAX = 20
FALLS = """
from quiesce.model.gauges import Gauge, Source
from tests.conformance import backends

class Falls(backends.Passing):
    frees = 0

    def perform(self, operation):
        self.frees += type(operation).__name__ == "Free"
        return super().perform(operation)

    def readings(self):
        readings = super().readings()
        key = Gauge.BACKING_CALLS, Source.LEDGER
        return {**readings, key: readings[key] - 10 * (self.frees > 20)}

def make():
    return backends.Altered(wrapping=Falls)
"""
IN_A_WORKER = """
import multiprocessing, os
from pathlib import Path
from quiesce.model.errors import BackendUnavailable
from tests.conformance import backends

def ends(profile):
    if multiprocessing.parent_process() is not None:
        os._exit(7)
    return backends.reference().open(profile)

def ending():
    return backends.Altered(opening=ends)

def refuse(description):
    if multiprocessing.parent_process() is not None:
        raise BackendUnavailable("refusing", "one process has it", "end that")
    return description

def refusing():
    return backends.Altered(refuse)

def tell(profile):
    if multiprocessing.parent_process() is not None:
        Path(f"worker-{os.getpid()}").touch()
    return backends.reference().open(profile)

def telling():
    return backends.Altered(opening=tell)
"""
PATH = os.pathsep.join([str(Path(__file__).parents[2]), str(Path(__file__).parents[2] / "harness")])


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", PATH)
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))


def written(folder: Path, text: str, factory: str) -> str:
    """Return the name of a backend whose source is the text."""
    (folder / "mine.py").write_text(text, encoding="utf-8")
    return f"python:{folder / 'mine.py'}:{factory}"


def examined(name: str, jobs: Jobs | None, operations: int = OPERATIONS) -> tuple[Conformance, list[tuple[int, int]]]:
    told: list[tuple[int, int]] = []
    cases = load(find_cases([Path("pool/double_free_is_refused")])).cases

    def progress(done: int, total: int, what: str) -> None:
        if what.startswith("operations"):
            told.append((done, total))

    backend = load_backend(name)
    conformance = run_conformance(
        backend, operations=operations, cases=cases, name=name, progress=progress, trials_max=TRIALS_MAX, jobs=jobs
    )
    return conformance, told


def in_two(name: str, operations: int = OPERATIONS) -> tuple[Conformance, list[tuple[int, int]]]:
    with Workers(2, name, None) as workers:
        return examined(name, workers, operations)


def check_alike(name: str) -> Conformance:
    """Examine in one process and in two, and return what came of it."""
    (one, told), (two, told_too) = examined(name, None), in_two(name)
    assert two.text() == one.text()
    assert two.results == one.results
    assert two.found == one.found
    assert told_too == told
    pairs = [[campaign.coverage.pairs for campaign in each.campaigns] for each in (one, two)]
    assert pairs[0] == pairs[1]
    plain = [
        [replace(campaign, coverage=one.campaigns[0].coverage) for campaign in each.campaigns] for each in (one, two)
    ]
    assert plain[0] == plain[1]
    return two


def test_a_correct_driver_program_conforms_in_any_number_of_processes(example_pool: Path) -> None:
    conformance = check_alike(f"command:{example_pool}")
    assert conformance.conforms, conformance.text()
    assert len(conformance.campaigns) == 2


@pytest.mark.long
def test_a_faulty_allocator_fails_alike_in_any_number_of_processes() -> None:
    conformance = check_alike("reference:reuse.ignores_guards")
    assert any(result.verdict is Verdict.FAILED for result in conformance.generated), conformance.text()


def test_a_faulty_driver_program_fails_alike_in_any_number_of_processes(tmp_path: Path) -> None:
    program = build(tmp_path, "broken_pool", {"if (!made && cached != NULL)": "if (false)"})
    conformance = check_alike(f"command:{program}")
    assert any(result.verdict is Verdict.FAILED for result in conformance.generated), conformance.text()


def test_what_is_noted_about_the_contract_in_other_processes_is_found(tmp_path: Path) -> None:
    conformance = check_alike(written(tmp_path, FALLS, "make"))
    assert NEVER_FALL in {finding.rule for finding in conformance.findings}, conformance.text()


def test_a_sequence_that_ends_its_process_is_a_finding_and_runs_nowhere_else(tmp_path: Path) -> None:
    conformance, _ = in_two(written(tmp_path, IN_A_WORKER, "ending"))
    (result,) = conformance.generated
    assert result.verdict is Verdict.FAILED
    assert [(each.rule, each.observed) for each in result.findings] == [(RAISED, "the process ended with exit code 7")]
    assert result.reason == "sequence 0, it ended its process, so it is not shrunk"
    assert [case.finds for case in conformance.found] == [RAISED]


def test_a_backend_that_opens_in_one_process_only_is_examined_there(tmp_path: Path) -> None:
    conformance = check_alike(written(tmp_path, IN_A_WORKER, "refusing"))
    assert conformance.conforms, conformance.text()


def test_contexts_that_share_something_run_in_one_process() -> None:
    class Never:
        def run(self, tasks: Iterable[Task]) -> Iterator[Any]:
            raise AssertionError("nothing runs in other processes")

    conformance = run_conformance(faults.sharing_one_context(), operations=1, cases=(), jobs=Never())
    assert any(result.case == f"contract/{SHARE_NOTHING}" and result.findings for result in conformance.contract)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_ctrl_c_ends_the_processes_and_says_so(tmp_path: Path) -> None:
    name = written(tmp_path, IN_A_WORKER, "telling")
    words = [sys.executable, "-m", "quiesce.cli.main", "conformance", "--backend", name, "--jobs", "2"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not (workers := list(tmp_path.glob("worker-*"))):
            assert process.poll() is None
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    assert process.returncode == ExitCode.INTERRUPTED
    assert "interrupted: " in errors
    for worker in workers:
        with pytest.raises(ProcessLookupError):
            os.kill(int(worker.name.partition("-")[2]), 0)


def test_notes_that_are_entered_later_are_those_of_one_notebook() -> None:
    keys = ["a", "b", "a", "c", "d", "b", "e", "f", "a"]
    one, parts = Notebook(), [Notebook(), Notebook(), Notebook()]
    for index, key in enumerate(keys):
        for notebook in (one, parts[index // 3]):
            notebook.place = "here"
            notebook.looked[NEVER_FALL] += 1
            notebook.note(NEVER_FALL, key, "rise", key, Mark(f"m{index}"))
    whole = Notebook()
    for part in parts:
        whole.enter(part)
    assert whole.findings(NEVER_FALL) == one.findings(NEVER_FALL)
    assert len(whole.findings(NEVER_FALL)) == NOTES_MAX
    assert whole.looked == one.looked
