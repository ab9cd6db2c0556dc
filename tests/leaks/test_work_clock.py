"""The clock of a check counts work and sleep, and leaves out waiting for a processor."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from quiesce.leaks.stages.work_clock import UNEVEN, Reading, System, ThreadTimes, WorkClock
from quiesce.leaks.system_calls import SystemCalls

MAIN = "1"


class Script(System):
    """Tells one reading after the other, the first when the clock is made."""

    def __init__(self, *readings: Reading, waits_per_run: float = 0.0) -> None:
        self._readings = iter(readings)
        self._waits_per_run = waits_per_run

    def read(self) -> Reading:
        return next(self._readings)

    def waits_per_run(self) -> float:
        return self._waits_per_run


def reading(wall: float, processor: float = 0.0, children: float = 0.0, **threads: tuple[float, float]) -> Reading:
    """Return one; each thread's seconds of running and of waiting by ``t`` and its number."""
    times = {name[1:]: ThreadTimes(int(ran * 1e9), int(waited * 1e9)) for name, (ran, waited) in threads.items()}
    return Reading(wall, processor, children, times)


def counted(*readings: Reading, waits_per_run: float = 0.0) -> tuple[float, float]:
    """Return the seconds of work and of waiting after all of them."""
    clock = WorkClock(Script(*readings, waits_per_run=waits_per_run))
    work = [clock() for _ in readings[1:]]
    assert work == sorted(work), "a clock never goes back"
    return round(work[-1], 6), round(clock.waited_seconds, 6)


START = reading(5, 2, 1, t1=(2, 3))


@pytest.mark.parametrize(
    ("later", "work", "waited"),
    [
        (reading(6, 3, 1, t1=(3, 3)), 1, 0),
        (reading(6, 2, 1, t1=(2, 3)), 1, 0),
        (reading(15, 3, 1, t1=(3, 12)), 1, 9),
        (reading(15, 3, 1, t1=(3, 10)), 3, 7),
    ],
    ids=["runs", "sleeps", "runs and waits", "runs, waits and sleeps"],
)
def test_work_and_sleep_count_and_waiting_for_a_processor_does_not(later: Reading, work: float, waited: float) -> None:
    assert counted(START, later) == (work, waited)


def test_two_threads_that_run_at_once_count_both() -> None:
    assert counted(START, reading(6, 4, 1, t1=(3, 3), t2=(1, 0))) == (2, 0)


def test_the_wait_of_other_threads_is_no_sleep_of_the_one_that_joins_them() -> None:
    assert counted(START, reading(9, 3, 1, t1=(2, 3), t2=(1, 3))) == (1, 3)


def test_threads_that_wait_at_once_take_no_more_than_the_idle_time() -> None:
    assert counted(START, reading(7, 3, 1, t1=(2, 4), t2=(1, 4))) == (1, 1)


def test_a_wait_in_one_run_takes_nothing_from_the_sleep_of_the_next() -> None:
    waits = reading(6, 2, 1, t1=(2, 7))
    assert counted(START, waits, reading(8, 2, 1, t1=(2, 7))) == (2, 1)


def test_a_thread_with_the_number_of_one_that_has_ended_counts_from_nothing() -> None:
    before = reading(5, 2, 1, t1=(2, 3), t2=(8, 8))
    assert counted(before, reading(9, 3, 1, t1=(2, 3), t2=(1, 3))) == (1, 3)


def test_what_an_ended_thread_waited_is_what_the_living_ones_wait_now() -> None:
    assert counted(START, reading(9, 3, 1, t1=(2, 3)), waits_per_run=2.0 / UNEVEN) == (2, 2)


def test_what_an_ended_child_waited_is_too() -> None:
    assert counted(START, reading(11, 2, 2, t1=(2, 3)), waits_per_run=4.0 / UNEVEN) == (2, 4)
    assert counted(START, reading(7, 2, 2, t1=(2, 3)), waits_per_run=0.0) == (2, 0)


def test_a_thread_that_waited_more_than_the_load_says_is_believed() -> None:
    """A limit of a group of processes makes it wait on a machine that is otherwise idle."""
    assert counted(START, reading(11, 2.5, 1.5, t1=(2.5, 4)), waits_per_run=0.0) == (4 - 1 / 8, 2 + 1 / 8)


def test_a_figure_that_is_a_tick_old_is_no_thread_that_has_ended() -> None:
    late = reading(5.004, 2.004, 1, t1=(2, 3))
    assert counted(START, late, reading(6.004, 2.004, 1, t1=(2.004, 3)), waits_per_run=9.0) == (1.004, 0)


def test_short_threads_add_up_until_they_are_more_than_a_tick() -> None:
    steps = [reading(5 + n, 2 + n * 0.004, 1, t1=(2, 3)) for n in range(1, 4)]
    assert counted(START, *steps, waits_per_run=10.0 / UNEVEN) == (3 - 0.12, 0.12)


def test_without_the_figures_of_the_scheduler_waiting_counts_as_sleep() -> None:
    assert counted(reading(5), reading(9, 1, 1), waits_per_run=9.0) == (4, 0)


def test_a_process_that_was_forked_goes_on_with_its_parents_clock() -> None:
    assert counted(START, reading(6, 0.1, 0, t9=(0.1, 0.2))) == (0.8, 0.2)


def scheduled(folder: Path, **threads: str) -> System:
    for name, line in threads.items():
        (folder / name[1:]).mkdir(exist_ok=True)
        (folder / name[1:] / "schedstat").write_text(line, encoding="ascii")
    return System(str(folder))


def test_the_figures_are_those_of_each_thread(tmp_path: Path) -> None:
    system = scheduled(tmp_path, t1="70 50 3\n", t2="1 2 9\n")
    assert system.read().threads == {"1": (70, 50), "2": (1, 2)}
    (tmp_path / "2" / "schedstat").unlink()
    assert system.read().threads == {"1": (70, 50)}, "one that has just ended is left out"


@pytest.mark.parametrize("line", ["0 0 0\n", "none\n"])
def test_a_kernel_that_keeps_no_figures_gives_none(tmp_path: Path, line: str) -> None:
    assert scheduled(tmp_path, t1=line).read().threads == {}


def test_a_system_without_them_gives_none(tmp_path: Path) -> None:
    assert System(str(tmp_path / "nothing")).read().threads == {}


@pytest.mark.parametrize(
    ("line", "processors", "waits"),
    [
        (b"9.00 9.00 9.00 8/300 1\n", 2, 3.0),
        (b"9.00 9.00 9.00 1/300 1\n", 2, 0.0),
        (b"9.00 9.00 9.00 2/300 1\n", None, 1.0),
        (b"", 2, 0.0),
    ],
)
def test_threads_share_the_processors(
    monkeypatch: pytest.MonkeyPatch, line: bytes, processors: int | None, waits: float
) -> None:
    system = System()
    monkeypatch.setattr(SystemCalls, "line", lambda _: line)
    monkeypatch.setattr(SystemCalls, "processor_count", lambda: processors)
    assert system.waits_per_run() == waits


def test_a_test_that_replaces_the_time_and_the_files_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def replaced(*_: object) -> None:
        pytest.fail("the clock called what the test replaced")

    for name in ("monotonic", "process_time"):
        monkeypatch.setattr(time, name, replaced)
    for name in ("open", "read", "close", "times", "listdir", "cpu_count"):
        monkeypatch.setattr(os, name, replaced)
    assert WorkClock()() >= 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says how long a thread waited")
def test_a_busy_loop_is_as_much_work_as_its_processor_time() -> None:
    clock, begun = WorkClock(), time.process_time()
    while time.process_time() - begun < 0.05:
        pass
    assert clock() >= 0.05
