"""The runner of a suite: a test in which the process dies or hangs has failed by its name. All findings are kept."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import pytest
from tests.suites import running
from tests.suites.choices import WHOLE, Choice, Shard, read_shard
from tests.suites.running import Part, run_part
from tests.suites.suites import Fault, Found, Suite, read_suite, suite_names

from quiesce.model.errors import BackendUnavailable
from quiesce.simulator.runtime.build import build_library

TESTS: Final = """
import ctypes, os, signal
CUDA = ctypes.CDLL("libcudart.so.12")

def test_frees_twice():
    block = ctypes.c_void_p()
    assert CUDA.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(4096)) == 0
    assert CUDA.cudaFree(block) == 0
    CUDA.cudaFree(block)

def test_fails():
    assert 1 + 1 == 3

def test_kills_the_process():
    os.kill(os.getpid(), signal.SIGKILL)

def test_hangs():
    print("kernel 'waits' runs", flush=True)
    while True:
        signal.pause()

def test_comes_last():
    pass
"""
SUITE: Final = Suite("made", (), (3, 11), "", ("test_it.py", "-s"), (), (), (0, 1), 1, (), ())


@pytest.fixture(autouse=True)
def _built() -> None:
    try:
        build_library()
    except BackendUnavailable as unavailable:
        pytest.skip(str(unavailable))


def run_tests(folder: Path, choice: Choice) -> Part:
    """Run the tests above; what is known of them lies in the folder ``out``."""
    (folder / "test_it.py").write_text(TESTS, encoding="utf-8")
    return run_part(SUITE, Path(sys.executable), folder, choice, folder / "out")


@pytest.mark.long
def test_what_became_of_each_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_STALLED_SECONDS", 10)
    part = run_tests(tmp_path, Choice(0, 1, quick=False))
    outcomes = {name.partition("::")[2]: outcome for name, (outcome, _) in part.outcomes.items()}
    texts = {name.partition("::")[2]: text for name, (_, text) in part.outcomes.items()}
    assert (part.collected, sorted(outcomes)) == (5, sorted(texts))
    passed = [name for name, outcome in outcomes.items() if outcome == "passed"]
    assert sorted(passed) == ["test_comes_last", "test_frees_twice"]
    assert "assert (1 + 1) == 3" in texts["test_fails"]
    assert "the process ended in this test" in texts["test_kills_the_process"]
    assert "kernel 'waits' runs" in texts["test_hangs"]
    assert texts["test_hangs"].endswith("it had no outcome after 10 seconds")
    assert [found.rule for found in part.found] == ["memory_is_freed_once"]
    assert "test_it.py:9 in test_frees_twice" in part.found[0].text
    again = run_tests(tmp_path, Choice(0, 1, quick=False))
    assert again == part, "nothing is left to run, and findings of earlier processes are kept"


@pytest.mark.parametrize("name", suite_names())
@pytest.mark.parametrize("count", [1, 2, 3, 6, 8, 40, 50])
def test_shards_share_all_tests(name: str, count: int) -> None:
    suite = read_suite(name)
    shards = [Shard(number, count).choices(suite) for number in range(1, count + 1)]
    tests = range(30_000)
    ran = [test for choices in shards for choice in choices for test in tests[choice.first :: choice.step]]
    assert sorted(ran) == list(tests)
    assert len({len(choices) for choices in shards}) == 1


def test_a_shard_is_written_as_a_number_and_a_count() -> None:
    assert read_shard("3/8") == Shard(3, 8)
    assert read_shard("1/1") == WHOLE
    for text in ("0/8", "9/8", "8", "1/0", "a/b", "1/8 "):
        with pytest.raises(pytest.UsageError, match="write J/K"):
            read_shard(text)


def test_a_fault_explains_findings_of_its_kernel_and_rule() -> None:
    fault = Fault("It reads too far.", "kernels_stay_inside_blocks", "kernel '*Sort*' reads")
    assert fault.explains(Found("kernels_stay_inside_blocks", "kernel 'DeviceSortKernel' reads 4 bytes"))
    in_a_test = Fault("It reads too far.", "kernels_stay_inside_blocks", "reads*in test_sort")
    assert in_a_test.explains(Found("kernels_stay_inside_blocks", "kernel 'k' reads 4 bytes\n launched in test_sort"))
    assert not fault.explains(Found("kernels_stay_inside_blocks", "kernel 'DeviceSortKernel' writes 4 bytes"))
    assert not fault.explains(Found("kernels_use_live_memory", "kernel 'DeviceSortKernel' reads 4 bytes"))
