"""Whether other threads have run."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from quiesce.leaks.stages.rounds import OtherThreads


def write(folder: Path, thread: str, state: str, switches: int) -> None:
    """Write what the system says of a thread."""
    (folder / thread).mkdir(exist_ok=True)
    text = f"Name:\tpytest\nState:\t{state}\nThreads:\t2\n"
    text += f"voluntary_ctxt_switches:\t{switches}\nnonvoluntary_ctxt_switches:\t3\n"
    (folder / thread / "status").write_text(text, encoding="ascii")


@pytest.fixture
def others(tmp_path: Path) -> OtherThreads:
    write(tmp_path, "7", "S (sleeping)", 5)
    write(tmp_path, str(threading.get_native_id()), "R (running)", 5)
    others = OtherThreads(str(tmp_path))
    others.remember()
    return others


def test_a_thread_that_waits_has_not_run(tmp_path: Path, others: OtherThreads) -> None:
    write(tmp_path, str(threading.get_native_id()), "R (running)", 50)
    assert not others.have_run()


@pytest.mark.parametrize(("state", "switches"), [("S (sleeping)", 6), ("R (running)", 5), ("R (running)", 6)])
def test_one_that_was_switched_to_has_run(tmp_path: Path, others: OtherThreads, state: str, switches: int) -> None:
    write(tmp_path, "7", state, switches)
    assert others.have_run()


def test_one_that_has_begun_or_ended_has_run(tmp_path: Path, others: OtherThreads) -> None:
    write(tmp_path, "8", "S (sleeping)", 1)
    assert others.have_run()
    others.remember()
    (tmp_path / "8" / "status").unlink()
    assert others.have_run()


def test_they_are_counted(tmp_path: Path, others: OtherThreads) -> None:
    write(tmp_path, "8", "S (sleeping)", 1)
    others.remember()
    write(tmp_path, "7", "S (sleeping)", 6)
    write(tmp_path, "9", "R (running)", 1)
    (tmp_path / "8" / "status").unlink()
    assert others.ran() == 3


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system does not tell")
def test_a_real_thread_has_run() -> None:
    others = OtherThreads()
    begin, done = threading.Event(), threading.Event()

    def run() -> None:
        begin.wait()
        done.set()

    thread = threading.Thread(target=run)
    thread.start()
    others.remember()
    begin.set()
    done.wait()
    assert others.have_run()
    thread.join()


@pytest.mark.parametrize("count", [1, 2])
def test_where_the_system_does_not_tell_any_may_have_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    others = OtherThreads(str(tmp_path / "none"))
    others.remember()
    monkeypatch.setattr(threading, "active_count", lambda: count)
    assert others.have_run() == (count > 1)
