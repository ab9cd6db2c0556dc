"""Who opened what stays: lines, and the functions that new threads and tasks are in."""

from __future__ import annotations

import asyncio
import queue
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from quiesce.leaks.explaining import lines
from quiesce.leaks.explaining.lines import ChangedBy, Opened, who_opened
from quiesce.leaks.meters.opened import ALIVE, OPEN, PENDING, DescriptorMeter, TaskMeter, ThreadMeter
from quiesce.leaks.owners import Owners
from quiesce.leaks.quantities import DESCRIPTORS, TASKS, THREADS, Quantity
from quiesce.leaks.stages.rounds import OtherThreads

OWNERS = Owners([str(Path(lines.__file__).parents[1])])
FILE = "lib.py"


@pytest.fixture
def event() -> Iterator[threading.Event]:
    """What threads of a test wait for."""
    event = threading.Event()
    before = set(threading.enumerate())
    yield event
    event.set()
    for thread in set(threading.enumerate()) - before:
        thread.join()


def wait_until_others_rest() -> None:
    """Return once no other thread has run between two looks: one that was started may not have come to its wait."""
    others = OtherThreads()
    others.remember()
    while others.have_run():
        others.remember()


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()


def line_of(function: object, more: int) -> int:
    return function.__code__.co_firstlineno + more  # type: ignore[attr-defined, no-any-return]


def test_the_line_that_opens_a_file_is_found(tmp_path: Path) -> None:
    kept: list[IO[str]] = []

    def run_round() -> None:
        number = len(kept)
        kept.append((tmp_path / str(number)).open("w"))

    opened = who_opened(OWNERS, [DescriptorMeter(), ThreadMeter()], [OPEN], run_round)
    for file in kept:
        file.close()
    assert opened.origin(OPEN) == (__file__, line_of(run_round, 2))
    assert opened.origin(ALIVE) is None
    assert opened.running == []


def test_what_a_new_thread_opens_has_the_line_of_that_thread(tmp_path: Path) -> None:
    kept: list[IO[str]] = []

    def run_round() -> None:
        def work() -> None:
            name = str(len(kept))
            kept.append((tmp_path / name).open("w"))
            assert kept

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert kept

    opened = who_opened(OWNERS, [DescriptorMeter()], [OPEN], run_round)
    for file in kept:
        file.close()
    assert len(kept) == lines.ROUNDS
    assert {each.frame for each in opened.lines[OPEN]} <= {(__file__, line_of(run_round, 3))}


def test_what_an_older_thread_opens_has_no_line(tmp_path: Path) -> None:
    kept: list[IO[str]] = []
    names: queue.SimpleQueue[str] = queue.SimpleQueue()
    done: queue.SimpleQueue[IO[str]] = queue.SimpleQueue()

    def work() -> None:
        while name := names.get():
            done.put((tmp_path / name).open("w"))

    def run_round() -> None:
        names.put(str(len(kept)))
        kept.append(done.get())
        assert kept

    thread = threading.Thread(target=work)
    thread.start()
    opened = who_opened(OWNERS, [DescriptorMeter()], [OPEN], run_round)
    names.put("")
    thread.join()
    for file in kept:
        file.close()
    assert len(kept) == lines.ROUNDS
    assert opened.origin(OPEN) is None


def test_what_a_line_opens_while_another_thread_waits_has_that_line(tmp_path: Path, event: threading.Event) -> None:
    kept: list[IO[str]] = []

    def run_round() -> None:
        kept.append((tmp_path / str(len(kept))).open("w"))

    thread = threading.Thread(target=event.wait)
    thread.start()
    wait_until_others_rest()
    opened = who_opened(OWNERS, [DescriptorMeter()], [OPEN], run_round)
    for file in kept:
        file.close()
    assert opened.origin(OPEN) == (__file__, line_of(run_round, 1))


def test_tracers_of_threads_come_back_and_none_stays(event: threading.Event) -> None:
    seen: list[object] = []

    def work() -> None:
        event.wait()
        in_function()
        seen.append(sys.gettrace())

    def in_function() -> None:
        seen.append(None)

    def run_round() -> None:
        threading.Thread(target=work).start()

    before = threading.gettrace()
    others = set(threading.enumerate())
    who_opened(OWNERS, [ThreadMeter()], [ALIVE], run_round)
    assert threading.gettrace() is before
    event.set()
    for thread in set(threading.enumerate()) - others:
        thread.join()
    assert seen == [None] * 2 * lines.ROUNDS


def test_new_threads_have_functions_of_their_own(event: threading.Event) -> None:
    def wait_here() -> None:
        event.wait()

    def run_round() -> None:
        thread = threading.Thread(target=wait_here)
        thread.start()

    run_round()
    opened = who_opened(OWNERS, [ThreadMeter()], [ALIVE], run_round)
    assert opened.origin(ALIVE) == (__file__, line_of(run_round, 2))
    extents = {(line_of(wait_here, 0), line_of(wait_here, 1))}
    assert {(first, last) for file, first, last in opened.running if file == __file__} == extents
    assert len(opened.running) == 4, "one in each round, and none of before"


def test_new_tasks_have_too(loop: asyncio.AbstractEventLoop) -> None:
    async def wait_there() -> None:
        await loop.create_future()

    kept = []

    async def start() -> None:
        kept.append(loop.create_task(wait_there()))
        await asyncio.sleep(0)

    meter = TaskMeter(OWNERS)
    meter.observe()
    opened = who_opened(OWNERS, [meter], [PENDING], lambda: loop.run_until_complete(start()))
    assert opened.origin(PENDING) == (__file__, line_of(start, 1))
    assert set(opened.running) == {(__file__, line_of(wait_there, 0), line_of(wait_there, 1))}


def test_both_may_be_new(loop: asyncio.AbstractEventLoop, event: threading.Event) -> None:
    async def wait_there() -> None:
        await loop.create_future()

    def wait_here() -> None:
        event.wait()

    def wait_long() -> None:
        event.wait()

    kept = []

    def run_round() -> None:
        threading.Thread(target=wait_here).start()
        kept.append(loop.create_task(wait_there()))
        loop.run_until_complete(asyncio.sleep(0))

    meter = TaskMeter(OWNERS)
    meter.observe()
    threading.Thread(target=wait_long).start()
    opened = who_opened(OWNERS, [ThreadMeter(), meter], [ALIVE, PENDING], run_round)
    assert set(opened.running) == {
        (__file__, line_of(function, 0), line_of(function, 1)) for function in (wait_here, wait_there)
    }
    assert set(opened.lines) == {ALIVE, PENDING}


def opened_by(family: str, line: int, **fields: object) -> Opened:
    changed = ChangedBy((FILE, line), 4, (line - 2, line + 2), **fields)  # type: ignore[arg-type]
    return Opened({Quantity(family, "what is open", "things"): [changed]}, [("worker.py", 10, 20)])


@pytest.mark.parametrize(
    ("frame", "descriptors", "threads", "tasks"),
    [
        ((FILE, 50), True, True, True),
        ((FILE, 48), False, True, True),
        ((FILE, 52), False, True, True),
        ((FILE, 47), False, False, False),
        ((FILE, 53), False, False, False),
        (("other.py", 50), False, False, False),
        (("main.py", 3), False, False, True),
        (("worker.py", 9), False, False, False),
        (("worker.py", 10), True, True, True),
        (("worker.py", 20), True, True, True),
        (("worker.py", 21), False, False, False),
    ],
)
def test_which_memory_comes_with_what_was_opened(
    frame: tuple[str, int], descriptors: bool, threads: bool, tasks: bool
) -> None:
    for family, expected in ((DESCRIPTORS, descriptors), (THREADS, threads), (TASKS, tasks)):
        opened = opened_by(family, 50, callers=frozenset({("main.py", 3)}))
        assert opened.comes_with(frame, is_library=False) == expected
        assert opened.comes_with(frame, is_library=True) == (expected or family != DESCRIPTORS)


def test_nothing_comes_with_nothing() -> None:
    assert not Opened().comes_with((FILE, 1), is_library=True)
    assert Opened().origin(OPEN) is None
