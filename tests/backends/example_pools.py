"""The example driver in C, built as it is or with a change of its source."""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

SOURCE = Path(__file__).parents[2] / "fixtures" / "command" / "example_pool" / "example_pool.c"
FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2")
ONE_BY_ONE: Mapping[str, str] = MappingProxyType({'\\"batch\\":true,': ""})
"""What makes it a driver that takes one request at a time."""


def build(folder: Path, name: str, changes: Mapping[str, str] = MappingProxyType({})) -> Path:
    """Return the program, built from a source in which each text was replaced by another."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler (cc) here to build the example driver with")
    text = SOURCE.read_text(encoding="utf-8")
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    folder.mkdir(parents=True, exist_ok=True)
    source, program = folder / f"{name}.c", folder / name
    source.write_text(text, encoding="utf-8")
    subprocess.run([compiler, *FLAGS, "-o", str(program), str(source)], check=True)
    return program
