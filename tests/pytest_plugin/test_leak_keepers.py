"""What pytest says of who keeps a leak, and of who opened what stays open: one finding for one cause."""

from __future__ import annotations

import re
import sys

import pytest

from .conftest import Project

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the tests read descriptors where Linux lists them")

SUITE = """
import os, pytest, threading

FILES, DONE = [], threading.Event()

@pytest.fixture(scope="module")
def database():
    yield {"rows": []}
    DONE.set()
    for file in FILES:
        file.close()

@pytest.mark.leak(rounds=12, seconds=120)
def test_fixture(database): database["rows"].append(bytes(100))

@pytest.mark.leak(rounds=12, seconds=120)
def test_opens():
    FILES.append(open("/dev/null"))

@pytest.mark.leak(rounds=12, seconds=120)
def test_starts():
    thread = threading.Thread(target=DONE.wait)
    thread.start()
"""


@pytest.mark.long
def test_a_leak_names_what_keeps_it_and_who_opened_it(project: Project) -> None:
    project.write("test_it.py", SUITE)
    result = project.run("test_it.py", "--tb=short")
    result.assert_outcomes(failed=3)
    text = result.stdout.str()
    assert text.count("  rule:") == 3
    result.stdout.fnmatch_lines(
        [
            '  allocated: test_it.py:14: def test_fixture(database): database["rows"].append(bytes(100))',
            "  kept by:   fixture 'database'?'rows'? (list, * entries, +1 a round)",
            "  expected:  open file descriptors do not grow",
            '  allocated: test_it.py:18: FILES.append(open("/dev/null"))',
            "  kept by:   test_it.FILES (list, * entries, +1 a round)",
            "    descriptor * on /dev/null",
            "    at the same time, Python's memory grows by * bytes per round",
            "  expected:  threads do not grow",
            "  allocated: test_it.py:23: thread.start()",
            "    thread 'Thread-* (wait)'*",
            "    at the same time, Python's memory grows by * bytes per round:",
            "    test_it.py:22: thread = threading.Thread(target=DONE.wait)",
        ]
    )


CHILDREN = """
import os, pytest, subprocess

@pytest.mark.leak(rounds=12, seconds=120)
def test_forgets():
    if os.fork() == 0: os._exit(0)

@pytest.mark.leak(rounds=12)
def test_waits(): subprocess.run(["true"], check=True)

@pytest.mark.leak(rounds=12)
def test_leaves_it_to_subprocess(): subprocess.Popen(["true"])

def test_last():
    while True:
        try: os.wait()
        except ChildProcessError: break
"""


@pytest.mark.long
def test_a_child_that_nobody_waits_for_is_a_leak(project: Project) -> None:
    project.write("test_it.py", CHILDREN)
    result = project.run_apart("test_it.py", "-W", "ignore")  # test_last waits for every child of its process
    result.assert_outcomes(failed=1, passed=3)
    result.stdout.fnmatch_lines(
        [
            "  observed:  child processes grow by 1 process per round",
            "  allocated: test_it.py:6: if os.fork() == 0: os._exit(0)",
            "    process * has ended; nobody waited for it",
        ]
    )


VARIABLES = """
import io, pytest

SEEN, TABLE, FULL, TEXT, LOG = set(), {}, {}, "", io.StringIO()
pytestmark = pytest.mark.leak(rounds=12, seconds=120)

def test_numbers(): SEEN.add(len(SEEN))

def test_text():
    global TEXT
    TEXT += "abc"

def test_stream(): LOG.write("ab")

def test_full(): FULL[len(FULL) % 10] = None

def test_emptied():
    TABLE[1] = None
    TABLE.clear()
"""


@pytest.mark.long
def test_what_variables_hold_is_seen_from_the_first_entry_on(project: Project) -> None:
    project.write("test_it.py", VARIABLES)
    result = project.run("test_it.py")
    result.assert_outcomes(failed=3, passed=2)
    result.stdout.fnmatch_lines(
        [
            "  observed:  Python's memory in variables grows by 8 bytes per round",
            "  allocated: test_it.py:7: def test_numbers(): SEEN.add(len(SEEN))",
            "  kept by:   test_it.SEEN (set, * entries, +1 a round)",
            '  allocated: test_it.py:11: TEXT += "abc"',
            "  kept by:   test_it.TEXT (str, * long, +3 a round)",
            '  allocated: test_it.py:13: def test_stream(): LOG.write("ab")',
            "  kept by:   test_it.LOG (StringIO, * bytes, +2 a round)",
        ]
    )


BESIDE = """
import io, itertools, pytest

BYTES, RING, TURN = io.BytesIO(), {number: bytes(100) for number in range(400)}, itertools.count()

@pytest.mark.leak(rounds=12, seconds=120)
def test_it():
    RING[next(TURN) % 400] = bytes(100)
    BYTES.write(b"abcdef")
"""


def test_what_is_replaced_hides_no_stream(project: Project) -> None:
    """Traces, which begin with nothing, take it for a leak at first, and so say nothing of the stream."""
    project.write("test_it.py", BESIDE)
    result = project.run_apart("test_it.py")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ['  allocated: test_it.py:9: BYTES.write(b"abcdef")', "  kept by:   test_it.BYTES (BytesIO, * +6 a round)"]
    )


STAYS = """
import itertools, sys, types
import pytest

NUMBERS = itertools.count()

@pytest.mark.leak
def test_it():
    module = types.ModuleType(f"generated_{next(NUMBERS)}")
    module.payload = bytes(100)
    sys.modules[module.__name__] = module
"""


def test_what_is_read_to_find_a_bound_hides_no_leak(project: Project) -> None:
    """Code of pytest takes modules out of this table; its source is read in the middle of the check, and let go of."""
    project.write("test_it.py", STAYS)
    result = project.run_apart("test_it.py")
    result.assert_outcomes(failed=1)
    assert str(result.stdout).count("  observed: ") == 1
    result.stdout.fnmatch_lines(
        ["  allocated: test_it.py:*: module.payload = bytes(100)", "  kept by:   sys.modules (dict, * +1 a round)"]
    )


EXACT = """
import collections, itertools, pytest

NUMBERS = itertools.count(1000)
INDEX = {"by_word": collections.defaultdict(set)}

@pytest.mark.leak(seconds=120)
def test_index():
    INDEX["by_word"]["the"].add(next(NUMBERS))
"""


def test_what_the_check_keeps_itself_makes_exact_growth_no_less_exact(project: Project) -> None:
    """A table has 96 runs, so the fifth window at 160 decides; irregular growth would need all 560."""
    project.write("test_it.py", EXACT)
    result = project.run_apart("test_it.py")
    result.assert_outcomes(failed=1)
    said = re.search(r"test_index leaks; it was run (\d+) times", result.stdout.str())
    assert said is not None
    assert int(said[1]) < 200
