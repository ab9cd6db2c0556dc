"""What the tests of the simulator share: a C compiler where there is one, and programs that load what was written."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

Compile: TypeAlias = Callable[..., Path]
Run: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def compile_c(tmp_path: Path) -> Compile:
    """Return a function that compiles a text of C with the flags given, into a file of that name."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")

    def compiled(name: str, source: str, *flags: str) -> Path:
        text, made = tmp_path / f"{name}.c", tmp_path / name
        made.parent.mkdir(exist_ok=True)
        text.write_text(source)
        subprocess.run([compiler, "-o", str(made), str(text), *flags], check=True, cwd=tmp_path)
        return made

    return compiled


@pytest.fixture
def run_python() -> Run:
    """Return a function that runs Python code in a process of its own, which may load anything and die."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        pytest.skip("what is written is for Linux on x86-64")

    def run(code: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code, *map(str, arguments)],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    return run
