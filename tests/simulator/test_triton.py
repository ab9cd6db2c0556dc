"""Triton's kernels on the simulated device: their results are those of NumPy. Nothing of PyTorch is needed."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.simulator.triton_programs import BEGIN, END, KERNELS, TUTORIALS


def _is_installed() -> bool:
    try:
        importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


pytestmark = pytest.mark.skipif(not _is_installed(), reason="it needs Triton: tox -e triton")


@pytest.mark.parametrize(
    ("text", "results"),
    [
        (KERNELS, "addition, softmax, product of float16, product of float32, atomics, cumulative sum, sort"),
        (
            TUTORIALS,
            "matmul 96, matmul 128, softmax of a loop, dropout, layer norm, locked sums, attention, histogram",
        ),
    ],
    ids=["small", "tutorials"],
)
def test_results_are_numpys_and_nothing_is_found(tmp_path: Path, text: str, results: str) -> None:
    program = tmp_path / "program.py"  # Triton reads the source of kernels
    program.write_text(BEGIN + text + END, encoding="utf-8")
    command = [sys.executable, "-m", "quiesce.cli.main", "exec", "--kernels", "run", "--", sys.executable, str(program)]
    environment = {**os.environ, "NO_COLOR": "1", "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    said = [line.removeprefix("right: ") for line in done.stdout.splitlines() if line.startswith("right: ")]
    assert ", ".join(said) == results
