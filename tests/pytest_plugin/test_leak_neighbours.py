"""Leak checks next to plugins that end, repeat or vary a test."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from quiesce.pytest_plugin.neighbours import renew_table_of_nodes

from .conftest import Project

SLOW = """
import time
KEPT = []
def test_slow():
    KEPT.append(bytes(100))
    time.sleep(0.02)
"""

EXAMPLES = """
from hypothesis import given, settings, strategies as st

SEEN = []

@given(st.integers())
@settings(max_examples=20, deadline=None)
def test_examples(number): SEEN.append(number)

def test_what_was_seen():
    import pathlib
    runs = [SEEN[start:start + 20] for start in range(0, len(SEEN), 20)]
    pathlib.Path("seen.txt").write_text(f"{len(runs)} {len(set(map(tuple, runs[1:])))}")
"""

FORKS = """
import os, sys
import pytest

@pytest.fixture
def forks(): assert child_ends_with(0, lambda: None)

def child_ends_with(status, in_child):
    child = os.fork()
    if child == 0:
        in_child()
        return True
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == status

def test_returns(): assert child_ends_with(0, lambda: None)
def test_raises(): assert child_ends_with(1, lambda: 1 / 0)
def test_exits(): assert child_ends_with(3, lambda: sys.exit(3))
def test_has_a_fixture_that_forks(forks): pass
def test_is_run_by_no_child(): os.write(os.open("ran", os.O_WRONLY | os.O_CREAT | os.O_APPEND), b"%d\\n" % os.getpid())
"""

TRACES = """
import tracemalloc

KEPT = []

def test_takes_traces():
    tracemalloc.start()
    before = tracemalloc.take_snapshot()
    kept = [bytes(100) for _ in range(10)]
    assert tracemalloc.take_snapshot().compare_to(before, "lineno")
    tracemalloc.stop()

def test_leaks_and_ends_traces():
    tracemalloc.stop()
    KEPT.append(bytes(100))

def test_leaks_and_clears_traces():
    if tracemalloc.is_tracing(): tracemalloc.clear_traces()
    KEPT.append(bytes(100))
"""

TAKES_TRACES_AND_LEAKS = """
import ctypes
import tracemalloc
import pytest

KEPT = []
DEEP = {"nodes": {"last": None}}
malloc = ctypes.CDLL(None).malloc
malloc.restype = ctypes.c_void_p

class Node:
    def __init__(self, before): self.before = before

@pytest.fixture(autouse=True)
def traces():
    tracemalloc.start()
    yield
    tracemalloc.stop()

def test_keeps_elsewhere():
    DEEP["nodes"]["last"] = Node(DEEP["nodes"]["last"])

def test_loses_native_memory():
    malloc(1000)

def test_keeps_in_a_list():
    KEPT.append(bytes(100))  # here
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_child_that_comes_back_from_a_test_ends_without_a_report(project: Project) -> None:
    project.write("test_it.py", FORKS)
    arguments = ("--quiesce-leak", "--quiesce-leak-gauges=threads", "--quiesce-leak-seconds=120")
    result = project.run_apart("test_it.py", *arguments)
    result.assert_outcomes(passed=5)
    assert sum("test session starts" in line for line in result.outlines) == 1
    assert len(set((project.path / "ran").read_text(encoding="utf-8").split())) == 1


@pytest.mark.long
def test_tests_that_take_traces_themselves_get_their_own_verdict(project: Project) -> None:
    project.write("test_it.py", TRACES)
    arguments = ("--quiesce-leak", "--quiesce-leak-rounds=24", "--quiesce-leak-seconds=120")
    result = project.run_apart("test_it.py", *arguments)  # traces of pytest's own tests would be among them
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        [
            "FAILED test_it.py::test_leaks_and_ends_traces - leaks *",
            "FAILED test_it.py::test_leaks_and_clears_traces - leaks *",
        ]
    )


@pytest.mark.long
def test_leaks_of_tests_that_take_traces_are_told_as_far_as_the_limitations_say(project: Project) -> None:
    project.write("test_it.py", TAKES_TRACES_AND_LEAKS)
    result = project.run_apart("test_it.py", "--quiesce-leak", "--quiesce-leak-seconds=120")
    # Before 3.13, CPython itself loses native memory then.
    result.assert_outcomes(**({"failed": 3} if sys.version_info >= (3, 13) else {"passed": 1, "failed": 2}))
    result.stdout.fnmatch_lines(
        [
            "  allocated: unknown, because the test stops tracemalloc",
            "  allocated: test_it.py:*: KEPT.append(bytes(100))  # here",
        ]
    )


@pytest.mark.long
def test_a_time_limit_is_that_of_each_round(project: Project) -> None:
    pytest.importorskip("pytest_timeout")
    project.write("test_it.py", SLOW)
    result = project.run_beside("timeout", "test_it.py", "--quiesce-leak", "--timeout=2", "--quiesce-leak-rounds=12")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["FAILED test_it.py::test_slow - leaks * B/round (Python) at test_it.py:5*"])


def test_a_first_round_that_takes_too_long_is_a_failure_of_the_test(project: Project) -> None:
    pytest.importorskip("pytest_timeout")
    project.write("test_it.py", "import time\ndef test_it(): time.sleep(60)\n")
    result = project.run_beside("timeout", "test_it.py", "--quiesce-leak", "--timeout=1")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["FAILED test_it.py::test_it - Failed: Timeout *"])


LOOKS_AT_TIMERS = """
import signal, threading
from quiesce.leaks import Judgement, LeakChecker, Outcome

SEEN = []

def look():
    left, _ = signal.getitimer(signal.ITIMER_REAL)
    is_thread = any("pytest_timeout" in thread.name for thread in threading.enumerate())
    SEEN.append("thread" if is_thread else "none" if not left else "once" if left <= 500 else "ten times")

def check(self, run_round, plan, own=()):
    look()
    for _ in range(3):
        run_round()
        look()
    print(*SEEN, sep=", ")
    return Judgement(Outcome.PASSED, 3)

LeakChecker.check = check
"""


@pytest.mark.skipif(not hasattr(signal, "getitimer"), reason="this system has no such timers")
@pytest.mark.parametrize("func_only", ["true", "false"])
@pytest.mark.parametrize(
    ("method", "seen"),
    [
        ("signal", "none, once, none, ten times, none, ten times, none"),
        ("thread", "none, thread, none, none, none, none, none"),
    ],
)
def test_the_time_of_a_limit_counts_for_rounds_and_stands_still_between_them(
    project: Project, method: str, seen: str, func_only: str
) -> None:
    pytest.importorskip("pytest_timeout")
    project.write("conftest.py", LOOKS_AT_TIMERS)
    project.write("test_it.py", "from conftest import look\ndef test_it(leak_check): look()\n")
    limits = ("--timeout=500", f"--timeout-method={method}", f"-otimeout_func_only={func_only}")
    result = project.run_beside("timeout", "test_it.py", "-s", *limits)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([f"*{seen}"])


@pytest.mark.skipif(not hasattr(signal, "getitimer"), reason="this system has no such timers")
def test_a_test_whose_check_fails_has_its_limit_again(project: Project) -> None:
    pytest.importorskip("pytest_timeout")
    project.write("conftest.py", f"{LOOKS_AT_TIMERS}\ndef fail(*_): raise OSError('no')\nLeakChecker.check = fail\n")
    project.write("test_it.py", "import conftest\ndef test_it():\n    conftest.look()\n    print(conftest.SEEN)\n")
    result = project.run_beside("timeout", "test_it.py", "-s", "--quiesce-leak", "--timeout=500")
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines(["*['once']*"])


@pytest.mark.long
def test_hypothesis_draws_the_same_in_each_repetition(project: Project) -> None:
    pytest.importorskip("hypothesis")
    project.write("test_it.py", EXAMPLES)
    project.run_apart("test_it.py", "--quiesce-leak", "--quiesce-leak-gauges=descriptors").assert_outcomes(passed=2)
    runs, different = map(int, (project.path / "seen.txt").read_text(encoding="utf-8").split())
    assert (runs > 2, different) == (True, 1)


def sizes_of_table(begin_round: Callable[[SimpleNamespace], None]) -> set[int]:
    """Return how large the dictionary of what is set up is after each of many rounds, below six nodes."""
    stack: dict[object, None] = dict.fromkeys(range(6))
    sizes = set()
    for _ in range(50):
        begin_round(SimpleNamespace(_setupstate=SimpleNamespace(stack=stack)))
        stack[object()] = None
        stack.popitem()
        sizes.add(sys.getsizeof(stack))
    assert list(stack) == list(range(6))
    return sizes


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="elsewhere tables grow in other ways")
def test_the_table_of_what_is_set_up_has_one_size_in_all_rounds() -> None:
    assert len(sizes_of_table(lambda session: None)) > 1
    assert len(sizes_of_table(renew_table_of_nodes)) == 1


def test_a_slow_check_is_named(project: Project) -> None:
    project.write("test_it.py", "import time\ndef test_it(): time.sleep(0.1)\n")
    result = project.run("test_it.py", "--quiesce-leak", "--quiesce-leak-seconds=0.2")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["test_it.py::test_it took * s, more than its 0.2 s"])


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere descriptors have other names")
def test_a_leak_whose_check_has_no_time_has_no_verdict(project: Project) -> None:
    project.write("test_it.py", "import os, time\ndef test_it():\n    os.open('/dev/null', 0)\n    time.sleep(0.1)\n")
    result = project.run("test_it.py", "--quiesce-leak", "--quiesce-leak-seconds=0.2", "--quiesce-strict")
    result.assert_outcomes(failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    why = "something still grows after * rounds (*), and its 0.2 s are over; raise --quiesce-leak-seconds"
    result.stdout.fnmatch_lines([f"test_it.py::test_it has no verdict: {why}"])
