"""What is just ending gets pauses in which it can run, however busy the machine is."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from quiesce.leaks.moments import MOST_PAUSES, moments, ready_to_run
from quiesce.leaks.system_calls import SystemCalls

SECONDS = 0.25
COUNT = 3


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Note how long each pause is, in place of one."""
    noted: list[float] = []
    monkeypatch.setattr(SystemCalls, "sleep", noted.append)
    return noted


def looks(ready: Iterator[set[str]]) -> int:
    return sum(1 for _ in moments(COUNT, SECONDS, lambda: frozenset(next(ready))))


def test_where_nobody_waits_for_a_processor_each_pause_counts(pauses: list[float]) -> None:
    assert looks(iter([set()] * COUNT)) == COUNT
    assert pauses == [SECONDS] * (COUNT - 1), "the first look is at once"


def test_a_pause_in_which_a_thread_that_was_ready_did_not_run_does_not_count(pauses: list[float]) -> None:
    assert looks(iter([{"2 at 5"}, {"2 at 5"}, {"2 at 5", "3 at 1"}, {"3 at 1"}, set(), set()])) == COUNT + 3


def test_a_thread_that_has_run_and_is_ready_again_was_given_its_moment(pauses: list[float]) -> None:
    assert looks(iter([{"2 at 5"}, {"2 at 6"}, {"2 at 7"}])) == COUNT


def test_a_thread_that_never_runs_is_not_waited_for_without_end(pauses: list[float]) -> None:
    assert looks(iter([{"2 at 5"}] * 1000)) == 1 + COUNT * MOST_PAUSES


def test_who_has_seen_enough_waits_no_longer(pauses: list[float]) -> None:
    for _ in moments(COUNT, SECONDS, frozenset):
        break
    assert pauses == []


def written(folder: Path, number: int, name: str, state: str, figures: str = "7 8 9") -> None:
    (folder / str(number)).mkdir()
    (folder / str(number) / "stat").write_text(f"{number} ({name}) {state} 1 2 3\n", encoding="ascii")
    (folder / str(number) / "schedstat").write_text(f"{figures}\n", encoding="ascii")


def test_those_that_run_or_could_are_told_with_what_they_did_so_far(tmp_path: Path) -> None:
    written(tmp_path, 1, "a) S b", "R")
    written(tmp_path, 2, "R", "S")
    written(tmp_path, 3, "ended", "Z")
    (tmp_path / "4").mkdir()  # it has gone since the list was read
    assert ready_to_run(folder=str(tmp_path)) == {(f"{tmp_path}/1", b"7 8 9\n")}


def test_who_asks_is_not_among_them(tmp_path: Path) -> None:
    written(tmp_path, threading.get_native_id(), "own", "R")
    assert ready_to_run(folder=str(tmp_path)) == frozenset()


def test_a_system_without_such_lists_tells_of_nobody(tmp_path: Path) -> None:
    assert ready_to_run([1], folder=str(tmp_path / "nothing")) <= ready_to_run([1], folder=str(tmp_path))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists processes by their state")
def test_a_child_that_computes_is_among_them() -> None:
    program = "print(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        ready = str(ready_to_run([child.pid]))
        child.kill()
    assert f"'/proc/{child.pid}'" in ready
    assert f"'/proc/{child.pid}'" not in str(ready_to_run([child.pid])), "it has ended"
