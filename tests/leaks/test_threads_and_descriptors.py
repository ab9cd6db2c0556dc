"""What the process has open: threads and descriptors, how many, which are new, and where they are."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from quiesce.leaks.meters import opened
from quiesce.leaks.meters.opened import ALIVE, ENDING_STEPS, OPEN, DescriptorMeter, ThreadMeter
from quiesce.leaks.meters.opened import SHOWN as DESCRIPTORS_SHOWN
from quiesce.leaks.meters.opened import SHOWN as THREADS_SHOWN
from quiesce.leaks.system_calls import SystemCalls

NOWHERE = "/no/such/folder"
needs_a_list = pytest.mark.skipif(bool(DescriptorMeter().absent()), reason="this system lists no descriptors")


@contextmanager
def waiting(count: int, name: str = "worker") -> Iterator[list[threading.Thread]]:
    """Run threads that wait until the end."""
    event = threading.Event()

    def wait_here() -> None:
        event.wait()

    started = [threading.Thread(target=wait_here, name=f"{name}-{number}") for number in range(count)]
    for thread in started:
        thread.start()
    try:
        yield started
    finally:
        event.set()
        for thread in started:
            thread.join()


@pytest.mark.parametrize("folder", ["/proc/self/task", NOWHERE])
def test_threads_count_while_they_are_alive(folder: str) -> None:
    meter = ThreadMeter(folder)
    assert meter.absent() == ""
    before = meter.read()[ALIVE]
    known = meter.present()
    with waiting(2):
        assert meter.read()[ALIVE] == before + 2
        assert len(meter.present() - known) == 2
    meter.settle()
    assert meter.read()[ALIVE] == before
    assert meter.present() == known


def test_new_threads_are_named_with_the_line_they_are_at() -> None:
    meter = ThreadMeter()
    with waiting(1, "old"):
        meter.observe()
        assert (meter.origin(ALIVE), meter.evidence(ALIVE)) == ("native code", "")
        with waiting(THREADS_SHOWN + 1) as started:
            line = waiting.__wrapped__.__code__.co_firstlineno + 6  # type: ignore[attr-defined]
            assert meter.origin(ALIVE) == f"thread 'worker-0' in {__file__}:{line}"
            assert meter.evidence(ALIVE).count("\n") == THREADS_SHOWN - 1
            assert len(started) == THREADS_SHOWN + 1
        meter.rest()
        assert "'old-0'" in meter.evidence(ALIVE)


def test_a_thread_that_is_just_ending_gets_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = [["1"], ["1", "2"], ["1", "2"], ["1"], ["1"]]
    waits: list[float] = []
    meter = ThreadMeter("/")
    monkeypatch.setattr(SystemCalls, "list_folder", lambda _: listed.pop(0))
    monkeypatch.setattr(SystemCalls, "sleep", waits.append)
    monkeypatch.setattr(opened, "ready_to_run", lambda _: frozenset())
    assert meter.read() == {ALIVE: 1}
    meter.settle()
    assert len(waits) == 2, "until there are as many as before"
    assert meter.read() == {ALIVE: 1}
    monkeypatch.setattr(SystemCalls, "list_folder", lambda _: ["1", "2"])
    meter.settle()
    assert len(waits) == 2 + ENDING_STEPS - 1, "and then it stays"


@needs_a_list
def test_descriptors_count_while_they_are_open(tmp_path: Path) -> None:
    meter = DescriptorMeter()
    before, known = meter.read()[OPEN], meter.present()
    meter.observe()
    with (tmp_path / "kept").open("w") as file:
        assert meter.read()[OPEN] == before + 1
        (new,) = meter.present() - known
        status = os.fstat(file.fileno())
        assert new == (file.fileno(), status.st_dev, status.st_ino)
        assert meter.origin(OPEN) == f"descriptor {file.fileno()} on {tmp_path / 'kept'}"
    assert meter.read()[OPEN] == before
    assert meter.present() == known
    assert (meter.origin(OPEN), meter.evidence(OPEN)) == ("", "")


@needs_a_list
def test_a_number_that_is_used_again_is_another_descriptor(tmp_path: Path) -> None:
    meter = DescriptorMeter()
    one = (tmp_path / "one").open("w")
    first = meter.present()
    number = one.fileno()
    one.close()
    assert meter.present() != first
    with (tmp_path / "other").open("w") as other:
        assert other.fileno() == number
        assert {each[0] for each in meter.present()} == {each[0] for each in first}
        assert meter.present() != first


@needs_a_list
def test_the_first_new_descriptors_are_named_in_the_order_of_their_numbers() -> None:
    meter = DescriptorMeter()
    meter.observe()
    pairs = [socket.socketpair() for _ in range(DESCRIPTORS_SHOWN)]
    try:
        lines = meter.evidence(OPEN).splitlines()
        numbers = sorted(each.fileno() for pair in pairs for each in pair)
        assert [int(line.split()[1]) for line in lines] == numbers[:DESCRIPTORS_SHOWN]
        assert all(" on socket:" in line for line in lines)
        assert meter.origin(OPEN) == lines[0]
    finally:
        for first, second in pairs:
            first.close()
            second.close()
    meter.rest()
    assert meter.evidence(OPEN).startswith("descriptor 0 on "), "after that none is known"


def test_a_system_that_lists_no_descriptors_says_so() -> None:
    assert DescriptorMeter((NOWHERE,)).absent() == "this system does not list a process's descriptors"
    if sys.platform == "linux":
        assert DescriptorMeter((NOWHERE, "/proc/self/fd")).absent() == ""
