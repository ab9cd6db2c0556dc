"""``quiesce explore`` in several processes, for a time, in shards, and ended from outside: the same is found."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from quiesce.allocators.generation.running import Died, Search, Task
from quiesce.backends.reference import backend as reference
from quiesce.cli.workers import Workers
from quiesce.model.backend import Backend, Description
from quiesce.model.errors import CaseError, ConfigurationError, FailedInWorker, is_own_error

FAULTY = "reference:pool.accepts_double_free"
EXPLORE = ("explore", "--backend", FAULTY, "--hostile", "--operations", "2500")


def quiesce(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "quiesce.cli.main", *words], cwd=cwd, capture_output=True, text=True, check=False
    )


def files_of(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.mark.long
def test_two_jobs_find_and_save_what_one_does(tmp_path: Path) -> None:
    one = quiesce(*EXPLORE, "--save", "cases", "--coverage", cwd=tmp_path)
    alone = files_of(tmp_path / "cases")
    two = quiesce(*EXPLORE, "--save", "cases", "--coverage", "--jobs", "2", cwd=tmp_path)
    assert one.returncode == two.returncode == 1
    assert two.stdout == one.stdout
    assert files_of(tmp_path / "cases") == alone


@pytest.mark.long
def test_a_search_ends_with_its_time(tmp_path: Path) -> None:
    began = time.monotonic()
    done = quiesce("explore", "--backend", "reference", "--seconds", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began >= 2
    assert "break no rule on reference" in done.stdout


@pytest.mark.long
def test_shards_share_the_sequences_and_are_merged(tmp_path: Path) -> None:
    numbers = [Search("x", 0, hostile=False, shard=(k, 3)).numbers() for k in (1, 2, 3)]
    assert sorted(next(each) for each in numbers * 3) == list(range(9))
    for shard in ("1/2", "2/2"):
        words = (*EXPLORE, "--shard", shard, "--report", f"report-{shard[0]}", "--save", f"cases-{shard[0]}")
        assert quiesce(*words, cwd=tmp_path).returncode in (0, 1)
    merged = quiesce("report", "merged", "--merge", "report-1", "report-2", cwd=tmp_path)
    assert merged.returncode == 1, merged.stderr
    document = json.loads((tmp_path / "merged" / "report.json").read_text())
    assert document["run"]["merged runs"] == "2"
    names = {result["case"] for result in document["results"]}
    assert names == {f"generated/hostile_sequences_with_seed_0_{k}_of_2" for k in (1, 2)}
    commands = [shlex.split(result["reproduce"]) for result in document["results"]]
    performed = [result["operations"] for result in document["results"]]
    assert [int(each[each.index("--operations") + 1]) for each in commands] == [2 * each for each in performed]


def test_the_operations_are_those_of_all_shards_together() -> None:
    shares = [Search("x", 0, hostile=False, shard=(k, 3)).share_of(100) for k in (1, 2, 3)]
    assert shares == [34, 34, 34]


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1", "a/b"])
def test_a_shard_is_one_of_so_many(tmp_path: Path, shard: str) -> None:
    refused = quiesce("explore", "--backend", "reference", "--shard", shard, cwd=tmp_path)
    assert refused.returncode == 2
    assert f"'{shard}' is no shard; write K/N" in refused.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_was_found_outlives_an_end_from_outside(tmp_path: Path, number: signal.Signals) -> None:
    words = [sys.executable, "-m", "quiesce.cli.main", "explore", "--backend", FAULTY, "--hostile", "--jobs", "2"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not list((tmp_path / "found").glob("*.case")):
            assert process.poll() is None
            time.sleep(0.05)
        os.kill(process.pid, number)
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "saved as found/invalid_requests_are_refused_seed_0.case" in output
    assert quiesce("run", "found", "--backend", FAULTY, cwd=tmp_path).returncode == 1


def die(backend: Backend, description: Description) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def name_of(backend: Backend, description: Description) -> str:
    return description.name


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_a_worker_that_dies_is_replaced_and_its_task_is_known() -> None:
    name = reference().describe().name
    with Workers(2, "reference", None) as workers:
        results = list(workers.run([name_of, name_of, die, name_of, name_of, name_of]))
    assert results == [name, name, Died("the process was ended by SIGKILL"), name, name, name]


def find_no_file(backend: Backend, description: Description) -> None:
    raise FileNotFoundError(2, "No such file or directory", "cases/gone.case")


def take_a_wrong_option(backend: Backend, description: Description) -> None:
    raise CaseError("cases/odd.case", 3, "'free' names nothing", "write 'free a'")


def meet_an_error_in_quiesce(backend: Backend, description: Description) -> None:
    raise LookupError("a place that is not there")


@pytest.mark.parametrize(
    ("task", "kind", "said", "is_own"),
    [
        (find_no_file, FileNotFoundError, "cases/gone.case", False),
        (take_a_wrong_option, ConfigurationError, "cases/odd.case:3: 'free' names nothing; write 'free a'", False),
        (meet_an_error_in_quiesce, FailedInWorker, "LookupError: a place that is not there", True),
    ],
)
def test_an_error_in_a_worker_is_of_the_kind_that_it_is_in_one_process(
    task: Task, kind: type[Exception], said: str, is_own: bool
) -> None:
    with Workers(1, "reference", None) as workers, pytest.raises(kind, match=re.escape(said)) as caught:
        list(workers.run([task]))
    assert is_own_error(caught.value) is is_own


def die_the_first_time(backend: Backend, description: Description, mark: str, number: int) -> str:
    if not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), number)
    return description.name


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_task_of_a_killed_worker_runs_again_and_is_told(tmp_path: Path, number: signal.Signals) -> None:
    name, told = reference().describe().name, list[str]()
    task = partial(die_the_first_time, mark=str(tmp_path / "mark"), number=number)
    with Workers(2, "reference", None, told.append) as workers:
        assert list(workers.run([name_of, task, name_of])) == [name] * 3
    (line,) = told
    assert line.startswith("a worker is gone: the process ")
    assert line.endswith("; its sequence runs again")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_a_crash_counts_at_once(tmp_path: Path) -> None:
    task = partial(die_the_first_time, mark=str(tmp_path / "mark"), number=signal.SIGSEGV)
    with Workers(1, "reference", None) as workers:
        assert list(workers.run([task])) == [Died("the process was ended by SIGSEGV", is_crash=True)]


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_a_worker_that_is_killed_while_it_has_no_task_is_replaced() -> None:
    name = reference().describe().name
    with Workers(1, "reference", None) as workers:
        (first,) = workers.run([pid_of])
        os.kill(first, signal.SIGKILL)
        assert list(workers.run([name_of, name_of])) == [name, name]


def pid_of(backend: Backend, description: Description) -> int:
    return os.getpid()


WAITS_TO_BE_KILLED = """
import os, signal
from quiesce.backends.reference import backend as reference


class Context:
    def __init__(self, context):
        self.readings, self.close, self.inner = context.readings, context.close, context

    def perform(self, operation):
        try:
            os.close(os.open("claimed", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return self.inner.perform(operation)
        with open("pids", "w") as pids:
            pids.write(str(os.getpid()))
        signal.pause()


class Backend:
    def describe(self):
        return reference().describe()

    def open(self, profile):
        return Context(reference().open(profile))
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_a_worker_that_somebody_kills_is_no_finding(tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text(WAITS_TO_BE_KILLED)
    os.mkfifo(tmp_path / "pids")
    words = ["explore", "--backend", "python:waits.py:Backend", "--operations", "1500", "--jobs", "2"]
    command = [sys.executable, "-m", "quiesce.cli.main", *words]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        os.kill(int((tmp_path / "pids").read_text()), signal.SIGKILL)  # it waits there, in the middle of a sequence
        output, errors = process.communicate()
    assert process.returncode == 0, errors
    assert "a worker is gone: the process was ended by SIGKILL; its sequence runs again" in errors
    alone = quiesce("explore", "--backend", "reference", "--operations", "1500", cwd=tmp_path)
    assert output == alone.stdout.replace("on reference", "on python:waits.py:Backend")
    assert not (tmp_path / "found").exists()


def test_results_that_nobody_asked_for_are_not_those_of_the_next_tasks() -> None:
    name = reference().describe().name
    with Workers(2, "reference", None) as workers:
        assert next(workers.run([name_of] * 9)) == name
        assert list(workers.run([answer_of] * 9)) == [7] * 9


def answer_of(backend: Backend, description: Description) -> int:
    return 7
