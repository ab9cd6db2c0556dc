"""Leak checks under ``quiesce exec``: what the ledger counts is found for what it is, once, and what settles is not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from quiesce.model.errors import BackendUnavailable
from quiesce.simulator.runtime.build import build_library

from .test_leak_suites import SUITES, Expectation, complaint, expectations

try:
    build_library()
except BackendUnavailable as error:
    pytestmark = pytest.mark.skip(str(error))


def run(folder: Path, source: str, *arguments: str, **options: object) -> tuple[dict[str, dict[str, Any]], str]:
    """Run a suite on a simulated device, and return the results by the name of the test, and what was said."""
    (folder / "test_device.py").write_text(source, encoding="utf-8")
    command = [sys.executable, "-m", "quiesce.cli.main", "exec", "--flavour", "cuda:12"]
    command += [word for name, value in options.items() for word in (f"--{name}", str(value))]
    program = [sys.executable, "-m", "pytest", "-q", "-W", "ignore", "--quiesce-report=out", *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    done = subprocess.run(
        [*command, "--", *program, "test_device.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    results = {}
    for line in (folder / "out" / "results.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if "case" in record:
            results[record["case"].partition("::")[2]] = record
    return results, done.stdout + done.stderr


def wrong(expected: Mapping[str, Expectation], results: Mapping[str, dict[str, Any]]) -> list[str]:
    return [
        f"{name}: {complained or 'more than one finding'}"
        for name, leak in expected.items()
        if (complained := complaint(leak, results[name])) or len(results[name]["findings"]) > 1
    ]


@pytest.mark.long
def test_each_leak_is_one_finding_and_what_settles_is_none(tmp_path: Path) -> None:
    source = (SUITES / "device.txt").read_text(encoding="utf-8")
    results, said = run(tmp_path, source, "--quiesce-leak-rounds=24", devices=2)
    assert wrong(expectations(source), results) == [], said


@pytest.mark.long
def test_one_device_is_not_numbered_and_few_rounds_show_a_stream(tmp_path: Path) -> None:
    source = (SUITES / "device.txt").read_text(encoding="utf-8")
    chosen = "test_a_stream_is_lost or test_an_object_in_a_cycle or test_a_block_of_a_few_bytes"
    results, said = run(tmp_path, source, "--quiesce-leak-rounds=3", "-k", chosen)
    expected = {name: leak for name, leak in expectations(source).items() if name in results}
    assert len(expected) == 3
    assert wrong(expected, results) == [], said
    (finding,) = results["test_a_stream_is_lost"]["findings"]
    assert finding["observed"] == "streams grow by 1 stream per round"


@pytest.mark.long
def test_chosen_gauges_are_the_ones_that_are_judged(tmp_path: Path) -> None:
    source = (SUITES / "device.txt").read_text(encoding="utf-8")
    names = ("test_a_stream_is_lost", "test_an_event_is_lost_in_another_thread")
    results, said = run(tmp_path, source, "--quiesce-leak-gauges=streams", "-k", " or ".join(names))
    assert [results[name]["verdict"] for name in names] == ["failed", "passed"], said


EXHAUSTING: Final = """
import ctypes, pytest

@pytest.mark.leak
def test_takes_all():
    assert ctypes.CDLL("libcudart.so.12").cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1 << 30)) == 0
"""


@pytest.mark.long
def test_a_leak_that_uses_up_the_device_is_a_leak(tmp_path: Path) -> None:
    results, said = run(tmp_path, EXHAUSTING, capacity="10GiB")
    (finding,) = results["test_takes_all"]["findings"]
    assert finding["observed"] == "device memory grows by 1,073,741,824 bytes (1 GiB) per round", said
    again = results["test_takes_all"]["reproduce"]
    assert again == "quiesce exec --flavour cuda:12 --capacity 10737418240 -- pytest 'test_device.py::test_takes_all'"


PEAKS: Final = """
import ctypes
import pytest

runtime = ctypes.CDLL("libcudart.so.12")

def use(*sizes):
    pointers = [ctypes.c_void_p() for _ in sizes]
    for pointer, size in zip(pointers, sizes):
        assert runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)) == 0
    for pointer in pointers:
        assert runtime.cudaFree(pointer) == 0

@pytest.mark.leak(limit_peak="1 MiB")
def test_at_once(): use(1 << 20, 1)

@pytest.mark.leak(limit_peak="1 MiB")
def test_one_after_the_other():
    use(1 << 20)
    use(1 << 20)
"""


@pytest.mark.long
def test_device_memory_is_counted_at_its_peak(tmp_path: Path) -> None:
    results, said = run(tmp_path, PEAKS, "--quiesce-leak-rounds=3", "--quiesce-leak-seconds=120")
    assert results["test_one_after_the_other"]["verdict"] == "passed", said
    (finding,) = results["test_at_once"]["findings"]
    assert finding["observed"] == "device memory in use rises by 1,048,577 bytes (1.0 MiB) during the test"
