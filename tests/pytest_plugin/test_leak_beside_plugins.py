"""Leak checks next to plugins that run, measure or report tests in their own way."""

from __future__ import annotations

import sys

import pytest

from .conftest import Project

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere descriptors have other names")

BRIEFLY = (
    "--quiesce-leak",
    "--quiesce-leak-seconds=120",
    "--quiesce-leak-rounds=12",
    "--quiesce-leak-gauges=descriptors",
)
JUDGED = "2 tests checked for leaks: 1 clean, 1 leaks; *"
LEAKS = "FAILED test_it.py::test_keeps - leaks 1 descriptor/round at test_it.py:{line}"

LOOPS = """
import asyncio, socket
import pytest
import pytest_asyncio

KEPT = []

@pytest_asyncio.fixture
async def port():
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]

@pytest.mark.asyncio
async def test_closes(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()

@pytest.mark.asyncio
async def test_keeps():
    await asyncio.sleep(0)
    KEPT.append(socket.socket())
"""

MEASURES = """
import os

CALLS = []

def test_measures(benchmark):
    before = len(CALLS)
    benchmark.pedantic(CALLS.append, (0,), rounds=5, iterations=10)
    with open("calls.txt", "a") as file:
        file.write(f"{len(CALLS) - before} ")

def test_keeps(benchmark):
    benchmark.pedantic(os.getpid, rounds=5, iterations=10)
    os.open(os.devnull, os.O_RDONLY)
"""

LIMITS = """
import os
import pytest

@pytest.mark.limit_memory("24 MB")
def test_stays_below_its_limit(): bytes(16_000_000)

@pytest.mark.limit_memory("24 MB")
def test_keeps(): os.open(os.devnull, os.O_RDONLY)
"""

FAILS_AT_FIRST = """
import os

TRIES = []

def test_fails_at_first():
    TRIES.append(0)
    assert len(TRIES) > 1

def test_keeps(): os.open(os.devnull, os.O_RDONLY)
"""


def assert_words(result: pytest.RunResult, *lines: str) -> None:
    """Both tests have their verdicts, the leak has its line, and no other test is accused."""
    result.stdout.fnmatch_lines([*lines])
    assert sum(line.startswith("test_it.py::test_keeps leaks 1 descriptor/round") for line in result.outlines) == 1
    assert sum(line.startswith("FAILED ") for line in result.outlines) == 1


def test_the_loop_of_an_asynchronous_test_is_closed_in_each_round(project: Project) -> None:
    pytest.importorskip("pytest_asyncio")
    project.write("test_it.py", LOOPS)
    result = project.run_beside("asyncio", "test_it.py", *BRIEFLY, "-oasyncio_default_fixture_loop_scope=function")
    result.assert_outcomes(passed=1, failed=1)
    assert_words(result, JUDGED, LEAKS.format(line="24, ke*"))


def test_a_benchmark_measures_in_the_run_that_is_reported(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pytest_benchmark")
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)  # in a worker of xdist it measures nothing
    project.write("test_it.py", MEASURES)
    result = project.run_beside("benchmark", "test_it.py", *BRIEFLY)
    result.assert_outcomes(passed=1, failed=1)
    assert_words(result, JUDGED, "* benchmark: 2 tests *", "test_measures * 5 * 10", LEAKS.format(line=14))
    first, *others = (project.path / "calls.txt").read_text(encoding="utf-8").split()
    assert (int(first) >= 50, set(others)) == (True, {"1"}), "repeated rounds call what is measured once"


@pytest.mark.long
def test_a_limit_of_memory_is_that_of_one_run(project: Project) -> None:
    pytest.importorskip("pytest_memray")
    project.write("test_it.py", LIMITS)
    result = project.run_beside("memray", "test_it.py", *BRIEFLY, "--memray")
    result.assert_outcomes(passed=1, failed=1)
    assert_words(result, "* test_it.py::test_stays_below_its_limit at the high watermark", JUDGED, LEAKS.format(line=9))
    assert sum("at the high watermark" in line for line in result.outlines) <= 2, "one for each test, not each round"


@pytest.mark.long
def test_a_test_that_is_run_again_is_checked_again_and_counted_once(project: Project) -> None:
    pytest.importorskip("pytest_rerunfailures")
    project.write("test_it.py", FAILS_AT_FIRST)
    result = project.run_beside("rerunfailures", "test_it.py", *BRIEFLY, "--reruns=1")
    result.assert_outcomes(passed=1, failed=1)
    assert_words(result, JUDGED, LEAKS.format(line=10), "*1 failed, 1 passed, 2 rerun in *")


def test_a_worker_tells_what_it_found(project: Project) -> None:
    project.write("test_it.py", LIMITS)
    result = project.run_apart("test_it.py", *BRIEFLY, "-n1", "-W", "ignore::pytest.PytestUnknownMarkWarning")
    result.assert_outcomes(passed=1, failed=1)
    assert_words(result, "quiesce: 2 tests are checked for leaks: *", JUDGED, LEAKS.format(line=9))


SUBTESTS = """
import os

def test_passes(subtests):
    for number in range(3):
        with subtests.test(number=number): assert number < 3

def test_keeps(subtests):
    with subtests.test("one"): os.open(os.devnull, os.O_RDONLY)
"""

EXAMPLES = """
import os
from hypothesis import given, settings, strategies as st

@given(st.integers())
@settings(max_examples=5)
def test_passes(number): assert isinstance(number, int)

@given(st.just(0))
def test_keeps(number): os.open(os.devnull, os.O_RDONLY)
"""


@pytest.mark.long
@pytest.mark.parametrize("arguments", [(), ("-n1",)])
def test_subtests_are_checked_next_to_a_time_limit(project: Project, arguments: tuple[str, ...]) -> None:
    pytest.importorskip("pytest_timeout")
    if pytest.version_tuple < (9,):
        pytest.importorskip("pytest_subtests")
    project.write("test_it.py", SUBTESTS)
    result = project.run_beside("timeout", "test_it.py", *BRIEFLY, "--timeout=5", *arguments)
    assert_words(result, JUDGED, LEAKS.format(line=9))


@pytest.mark.long
def test_examples_of_hypothesis_are_checked_next_to_a_time_limit(project: Project) -> None:
    pytest.importorskip("pytest_timeout")
    pytest.importorskip("hypothesis")
    project.write("test_it.py", EXAMPLES)
    result = project.run_beside("timeout hypothesispytest", "test_it.py", *BRIEFLY, "--timeout=5", "-n1")
    assert_words(result, JUDGED, LEAKS.format(line=10))
