from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "fixtures" / "command" / "example_pool" / "example_pool.c"


@pytest.fixture(scope="session")
def example_pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example driver in C, built."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler (cc) here to build the example driver with")
    program = tmp_path_factory.mktemp("example_pool") / "example_pool"
    subprocess.run([compiler, "-std=c99", "-O2", "-o", str(program), str(SOURCE)], check=True)
    return program
