"""Tasks of asyncio that a test leaves on a loop that lives: one finding, with the line that makes them."""

from __future__ import annotations

import pytest

from quiesce.leaks.meters.opened import ARE_LISTED

from .conftest import Project

pytestmark = pytest.mark.skipif(not ARE_LISTED, reason="this Python lists no tasks of all loops")

SUITE = """
import asyncio

LOOP = asyncio.new_event_loop()
NEVER = LOOP.create_future()

async def wait():
    buffer = [bytes(50)]
    await NEVER

async def start():
    asyncio.create_task(wait())
    await asyncio.sleep(0)

async def start_and_wait():
    await asyncio.create_task(asyncio.sleep(0))

async def start_and_cancel():
    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()

def test_waits_forever(): LOOP.run_until_complete(start())

def test_never_begins(): LOOP.create_task(asyncio.sleep(3600))

def test_ends(): LOOP.run_until_complete(start_and_wait())

def test_is_cancelled(): LOOP.run_until_complete(start_and_cancel())

def test_loop_of_its_own(): asyncio.run(start())
"""


@pytest.mark.long
def test_a_task_that_nobody_waits_for_is_a_leak(project: Project) -> None:
    project.write("test_it.py", SUITE)
    options = ("--quiesce-leak", "--quiesce-leak-rounds=12", "--quiesce-leak-seconds=120", "--tb=short")
    result = project.run_apart("test_it.py", *options)
    result.assert_outcomes(failed=2, passed=3)
    assert result.stdout.str().count("  rule:") == 2
    result.stdout.fnmatch_lines(
        [
            "  expected:  asyncio tasks do not grow",
            "  observed:  asyncio tasks grow by 1 task per round",
            "  allocated: test_it.py:12: asyncio.create_task(wait())",
            "  kept by:   test_it.NEVER (list, * entries, +1 a round)",
            "  kind:      asyncio task leak",
            "    task 'Task-*' of wait waits at test_it.py:9",
            "    at the same time, Python's memory grows by * bytes per round:",
            "  allocated: test_it.py:25: def test_never_begins(): LOOP.create_task(asyncio.sleep(3600))",
            "test_it.py::test_never_begins leaks 1 task/round at test_it.py:25, kept by test_it.LOOP._ready",
        ]
    )
