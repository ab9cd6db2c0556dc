"""Sequences on executors that other people made: the same is found, in the same order, also where workers die."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import pytest

from quiesce.allocators.generation.running import IN_FLIGHT_MAX, Died, Jobs, Search, Task, run_sequence
from quiesce.backends import registry
from quiesce.cli import selection
from quiesce.cli.executors import Engine, OnExecutor
from quiesce.cli.selection import choose_described
from quiesce.cli.workers import Here, Workers
from quiesce.model.backend import Backend, Description
from quiesce.model.errors import BackendUnavailable, ConfigurationError, FailedInWorker

from .test_explore_jobs import find_no_file, meet_an_error_in_quiesce, quiesce, take_a_wrong_option

FAULTY: Final = "reference:pool.no_squeeze"
CLUSTER: Final = """
import sys
from distributed import LocalCluster
with LocalCluster(n_workers=1, threads_per_worker=2, processes=True, dashboard_address=None) as cluster:
    print(cluster.scheduler_address, flush=True)
    sys.stdin.read()
"""
SETTINGS: Final = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
"""A worker that dies of a sequence is enough; Dask lets four die."""
needs_mpi = pytest.mark.skipif(
    find_spec("mpi4py") is None or shutil.which("mpiexec") is None, reason="it needs the extra 'mpi', and an MPI"
)
needs_dask = pytest.mark.skipif(find_spec("distributed") is None, reason="it comes with the extra 'dask'")
needs_signals = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")


@pytest.fixture(autouse=True)
def installed_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads of this process find what is installed, as processes do."""
    monkeypatch.setattr(selection, "probe_backend", registry.probe_backend)


@contextmanager
def clusters() -> Iterator[list[subprocess.Popen[str]]]:
    """Start two clusters of Dask with one worker each; the first line that each prints is its scheduler's address."""
    command = [sys.executable, "-c", CLUSTER]
    environment = {**os.environ, **SETTINGS, "PYTHONPATH": str(Path(__file__).parents[2])}
    running = [
        subprocess.Popen(
            command,
            text=True,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(2)
    ]
    try:
        yield running
    finally:
        for process in running:
            process.communicate()


def address_of(cluster: subprocess.Popen[str]) -> str:
    assert cluster.stdout is not None
    return cluster.stdout.readline().strip()


def processes() -> Executor:
    return ProcessPoolExecutor(2, mp_context=get_context("spawn"))


@contextmanager
def on_dask(name: str) -> Iterator[Jobs]:
    from quiesce.cli.dask_clusters import Clusters, losses

    with clusters() as running:
        make = partial(Clusters, [address_of(each) for each in running])
        with OnExecutor(Engine(make, losses()), name, None) as jobs:
            yield jobs


ENGINES: Final[dict[str, Callable[[str], AbstractContextManager[Jobs]]]] = {
    "one worker": lambda name: Workers(1, name, None),
    "three workers": lambda name: Workers(3, name, None),
    "threads": lambda name: OnExecutor(Engine(partial(ThreadPoolExecutor, 2)), name, None),
    "processes": lambda name: OnExecutor(Engine(processes), name, None),
    "dask": on_dask,
}
"""Of each kind one; a slow one is marked below."""
_MARKS: Final = {
    "dask": [needs_dask, pytest.mark.long],
    "processes": [pytest.mark.long],
    "three workers": [pytest.mark.long],
}
each_engine = pytest.mark.parametrize("engine", [pytest.param(name, marks=_MARKS.get(name, ())) for name in ENGINES])


@each_engine
def test_sequences_end_alike_on_every_engine(engine: str) -> None:
    search = Search(FAULTY, 0, hostile=False)
    tasks = [partial(run_sequence, search=search, number=number) for number in range(12)]
    alone = list(Here(choose_described(FAULTY)).run(tasks))
    assert [ran.number for ran in alone if ran.finding is not None] == [3, 6, 7, 9]
    with ENGINES[engine](FAULTY) as jobs:
        assert list(jobs.run(tasks)) == alone


def number_of(backend: Backend, description: Description, number: int) -> int:
    return number


def die(backend: Backend, description: Description, number: int) -> None:
    os.kill(os.getpid(), number)


def die_once(backend: Backend, description: Description, mark: str) -> str:
    if not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return description.name


@needs_signals
@pytest.mark.long
@pytest.mark.parametrize("engine", ["three workers", "processes", pytest.param("dask", marks=needs_dask)])
def test_a_sequence_that_ends_its_worker_is_named_and_no_other_is_lost(engine: str, tmp_path: Path) -> None:
    tasks: list[Task] = [partial(number_of, number=number) for number in range(10)]
    tasks[3] = partial(die, number=signal.SIGSEGV)
    tasks[6] = partial(die, number=signal.SIGKILL)
    tasks[8] = partial(die_once, mark=str(tmp_path / "mark"))
    expected: list[object] = [*range(10)]
    expected[3] = Died("the process was ended by SIGSEGV", is_crash=True)
    expected[6] = Died("the process was ended by SIGKILL")
    expected[8] = "reference"
    with ENGINES[engine]("reference") as jobs:
        assert list(jobs.run(tasks)) == expected


class Inline(Executor):
    """Runs what it is given at once, and breaks as often as it is told to."""

    def __init__(self, breaks: list[int]) -> None:
        self.breaks, self.given = breaks, 0

    def submit(self, function: Callable[..., Any], /, *words: Any, **named: Any) -> Future[Any]:
        if self.breaks[0]:
            self.breaks[0] -= 1
            raise BrokenExecutor("nobody is left")
        self.given += 1
        future: Future[Any] = Future()
        future.set_result(function(*words, **named))
        return future


@pytest.mark.parametrize("engine", ["executor", "workers"])
def test_tasks_are_taken_in_order_when_they_can_begin(engine: str) -> None:
    taken: list[int] = []

    def tasks() -> Iterator[Task]:
        for number in range(3 * IN_FLIGHT_MAX):
            taken.append(number)
            yield partial(number_of, number=number)

    inline = OnExecutor(Engine(lambda: Inline([0])), "reference", None)
    with inline if engine == "executor" else Workers(1, "reference", None) as jobs:
        for place, number in enumerate(jobs.run(tasks())):
            assert number == place
            assert len(taken) - place <= IN_FLIGHT_MAX
    assert taken == [*range(3 * IN_FLIGHT_MAX)]


def test_an_executor_that_breaks_is_made_anew_until_it_has_no_workers_at_all() -> None:
    made: list[Executor] = []
    breaks = [2]

    def make() -> Executor:
        made.append(Inline(breaks))
        return made[-1]

    with OnExecutor(Engine(make), "reference", None) as jobs:
        assert list(jobs.run([partial(number_of, number=7)])) == [7]
        assert len(made) == 3
        breaks[0] = 9
        with pytest.raises(ConfigurationError, match="the executor has no workers: BrokenExecutor: nobody is left"):
            list(jobs.run([partial(number_of, number=7)]))


@pytest.mark.parametrize(
    ("name", "task", "kind", "said"),
    [
        ("reference", find_no_file, FileNotFoundError, "cases/gone.case"),
        ("reference", take_a_wrong_option, ConfigurationError, "cases/odd.case:3: 'free' names nothing"),
        ("reference", meet_an_error_in_quiesce, FailedInWorker, "LookupError: a place that is not there"),
        ("nonsense", find_no_file, ConfigurationError, "nonsense"),
        ("command:./is-not-there", find_no_file, BackendUnavailable, "is-not-there"),
    ],
)
def test_an_error_on_an_executor_is_of_the_kind_that_it_is_here(
    name: str, task: Task, kind: type[Exception], said: str
) -> None:
    with OnExecutor(Engine(lambda: Inline([0])), name, None) as jobs, pytest.raises(kind, match=re.escape(said)):
        list(jobs.run([task]))


EXPLORE: Final = ("explore", "--backend", "reference:pool.accepts_double_free", "--hostile", "--operations", "2500")


@needs_dask
@pytest.mark.long
def test_a_campaign_on_two_clusters_finds_and_saves_what_one_process_does(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    alone = quiesce(*EXPLORE, cwd=here)
    with clusters() as running:
        names = [word for each in running for word in ("--executor", f"dask:{address_of(each)}")]
        done = quiesce(*EXPLORE, *names, cwd=there)
    assert alone.returncode == done.returncode == 1, done.stderr
    assert done.stdout == alone.stdout
    assert files_of(there / "found") == files_of(here / "found") != {}


CRASHES: Final = """
import os
from signal import SIGSEGV
from quiesce.backends.reference import faulty
from quiesce.model.operations import DestroyEvent

FAULTY = faulty("pool.accepts_double_free")


class Context:
    def __init__(self, inner):
        self.inner = inner

        self.readings, self.close = inner.readings, inner.close

    def perform(self, operation):
        if isinstance(operation, DestroyEvent):
            os.kill(os.getpid(), SIGSEGV)
        return self.inner.perform(operation)


class Backend:
    def describe(self):
        return FAULTY.describe()

    def open(self, profile):
        return Context(FAULTY.open(profile))
"""
"""Has a fault, and ends its process at some operations."""


@needs_mpi
@needs_signals
@pytest.mark.long
def test_a_campaign_on_ranks_finds_what_ends_a_process_and_what_does_not(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    (tmp_path / "crashes.py").write_text(CRASHES, encoding="utf-8")
    words = ("explore", "--backend", f"python:{tmp_path / 'crashes.py'}:Backend", "--hostile", "--operations", "1000")
    alone = quiesce(*words, "--jobs", "2", cwd=here)
    ranks = ("mpiexec", "-n", "3", sys.executable, "-m", "mpi4py.futures", "-m", "quiesce", *words, "--executor", "mpi")
    done = subprocess.run(ranks, cwd=there, capture_output=True, text=True, check=False)
    assert alone.returncode == done.returncode == 1, done.stderr
    assert done.stdout.strip() == alone.stdout.strip()
    assert "ended by SIGSEGV" in done.stdout
    assert files_of(there / "found") == files_of(here / "found") != {}


@needs_mpi
def test_a_campaign_without_other_ranks_is_refused(tmp_path: Path) -> None:
    refused = quiesce("explore", "--backend", "reference", "--executor", "mpi", cwd=tmp_path)
    assert refused.returncode == 2
    assert "write mpiexec -n 9 python -m mpi4py.futures -m quiesce explore --executor mpi" in refused.stderr


ENDS: Final = """
import os
from pathlib import Path
from signal import SIGKILL
from quiesce.backends.reference import faulty

FAULTY = faulty("pool.accepts_double_free")
FOLDER = Path({folder!r})


def end(name):
    try:
        number = int((FOLDER / name).read_text())
        (FOLDER / name).unlink()
    except FileNotFoundError:
        return
    os.kill(number or os.getpid(), SIGKILL)


class Backend:
    opened = 0

    def describe(self):
        return FAULTY.describe()

    def open(self, profile):
        Backend.opened += 1
        if Backend.opened == 3:
            end("worker")
        if any(FOLDER.glob("found/*.case")):
            end("campaign")
        return FAULTY.open(profile)
"""
"""Ends a worker in its first sequences, and the campaign once it has saved a finding, if it is told to."""


@needs_dask
@needs_signals
@pytest.mark.long
def test_a_campaign_whose_worker_and_then_itself_were_killed_goes_on_to_the_same_findings(tmp_path: Path) -> None:
    whole, ended = tmp_path / "whole", tmp_path / "ended"
    whole.mkdir()
    ended.mkdir()
    (tmp_path / "ends.py").write_text(ENDS.format(folder=str(ended)), encoding="utf-8")
    backend = f"python:{tmp_path / 'ends.py'}:Backend"
    words = ("explore", "--backend", backend, "--hostile", "--operations", "10000", "--report", "out")
    undisturbed = quiesce(*words, cwd=whole)
    (ended / "worker").write_text("0", encoding="utf-8")
    with clusters() as running:
        names = [word for each in running for word in ("--executor", f"dask:{address_of(each)}")]
        named = [sys.executable, "-m", "quiesce", *words, *names]
        first = subprocess.run(["sh", "-c", 'echo $$ >campaign; exec "$@"', "sh", *named], cwd=ended, check=False)
    assert first.returncode == -signal.SIGKILL
    assert not (ended / "worker").exists()
    with clusters() as running:
        names = [word for each in running for word in ("--executor", f"dask:{address_of(each)}")]
        resumed = quiesce(*words, *names, "--resume", cwd=ended)
    assert "goes on after" in resumed.stderr
    assert (resumed.returncode, resumed.stdout) == (undisturbed.returncode, undisturbed.stdout)
    assert resumed.returncode == 1
    assert files_of(ended / "found") == files_of(whole / "found") != {}


def files_of(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--executor", "dusk:8786"), "'dusk:8786' is no executor here; write dask:ADDRESS"),
        (("--executor", "dask:"), "'dask:' is no executor"),
        (("--executor", "mpi", "--executor", "dask:a"), "'mpi' is no executor here; write dask:ADDRESS"),
        (("--executor", "dask:a", "--jobs", "2"), "--jobs runs processes here and --executor elsewhere"),
    ],
)
def test_an_executor_that_there_is_not_is_refused(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    refused = quiesce("explore", "--backend", "reference", *words, cwd=tmp_path)
    assert refused.returncode == 2
    assert said in refused.stderr
