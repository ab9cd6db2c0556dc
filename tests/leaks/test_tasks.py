"""Tasks of asyncio: those that are not done count, on any loop that lives."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from collections.abc import Iterator

import pytest

from quiesce.leaks.meters.opened import PENDING, TaskMeter
from quiesce.leaks.owners import Owners

pytestmark = pytest.mark.skipif(bool(TaskMeter(Owners([])).absent()), reason="this Python lists no tasks of all loops")


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    gc.collect()


@pytest.fixture
def meter() -> TaskMeter:
    meter = TaskMeter(Owners([]))
    meter.observe()
    return meter


async def wait_for(future: asyncio.Future[None]) -> None:
    await future


def test_a_task_counts_until_it_ends(loop: asyncio.AbstractEventLoop, meter: TaskMeter) -> None:
    before, future = meter.read()[PENDING], loop.create_future()
    task = loop.create_task(wait_for(future), name="one")
    loop.run_until_complete(asyncio.sleep(0))
    assert meter.read()[PENDING] == before + 1
    assert meter.origin(PENDING) == f"task 'one' of wait_for waits at {__file__}:38"
    future.set_result(None)
    loop.run_until_complete(task)
    assert meter.read()[PENDING] == before
    assert (meter.origin(PENDING), meter.evidence(PENDING)) == ("", "")


def test_a_task_that_is_cancelled_is_gone(loop: asyncio.AbstractEventLoop, meter: TaskMeter) -> None:
    before, future = meter.read()[PENDING], loop.create_future()
    task = loop.create_task(wait_for(future))
    loop.run_until_complete(asyncio.sleep(0))
    task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    assert meter.read()[PENDING] == before


def test_debug_mode_says_which_line_made_a_task(loop: asyncio.AbstractEventLoop, meter: TaskMeter) -> None:
    loop.set_debug(True)
    task = loop.create_task(wait_for(loop.create_future()), name="one")
    assert f", made at {__file__}:64" in meter.evidence(PENDING)
    assert not task.done()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks are new in 3.12")
def test_an_eager_task_that_waits_counts(loop: asyncio.AbstractEventLoop, meter: TaskMeter) -> None:
    loop.set_task_factory(getattr(asyncio, "eager_task_factory", None))
    before, future = meter.read()[PENDING], loop.create_future()
    kept = []

    async def start() -> None:
        kept.append(asyncio.create_task(wait_for(future)))
        await asyncio.create_task(asyncio.sleep(0))

    loop.run_until_complete(start())
    assert meter.read()[PENDING] == before + 1
    assert not kept[0].done()


def test_what_does_not_use_asyncio_does_not_load_it() -> None:
    program = (
        "import sys\nfrom quiesce.leaks.owners import Owners\n"
        "from quiesce.leaks.meters.opened import PENDING, TaskMeter\n"
        "print(TaskMeter(Owners([])).read()[PENDING], 'asyncio' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "False"]
