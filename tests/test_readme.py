"""The README's demos are run, and print what it says they print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from quiesce.errors import BackendUnavailable
from quiesce.simulator.build import build_library

README: Final = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")
BLOCK: Final = re.compile(r"(?:^(?: {4}.*)?\n)+", re.MULTILINE)
VARIES: Final = re.compile(r"… \d+ frames|run \d+ times|by \d+ bytes|seed \d+")
"""Differs by the release of Python, and by its installation."""


def block_after(text: str) -> str:
    """Return the first indented block after a text, without its indentation."""
    found = BLOCK.search(README, README.index(text) + len(text))
    while found and not found[0].strip():
        found = BLOCK.search(README, found.end())
    assert found
    return "".join(line[4:] or "\n" for line in found[0].splitlines(keepends=True)).strip("\n") + "\n"


def shown(text: str, folder: Path) -> list[str]:
    """Return the lines of an output without what varies, and with the names of files as in the README."""
    return [VARIES.sub("…", line.replace(f"{folder}/", "").rstrip()) for line in text.splitlines()]


def demo(name: str, introduction: str, folder: Path, words: list[str]) -> None:
    """Write a demo's file, run its command, and compare its output with the README's."""
    (folder / name).write_text(block_after(f"`{name}`:"), encoding="utf-8")
    _, *expected = block_after(introduction).splitlines()
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    printed = shown(done.stdout, folder)
    first = printed.index(shown(expected[0], folder)[0])
    assert printed[first : first + len(expected)] == shown("\n".join(expected), folder)
    assert done.returncode == 1


def test_a_stale_address_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        build_library()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    words = [sys.executable, "-m", "quiesce.cli.main", "exec", "--", "python", "stale.py"]
    demo("stale.py", "The run names the rule and all three lines:", tmp_path, words)


def test_a_leak_is_found_in_a_test(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "pytest", "-m", "leak", "-p", "no:cacheprovider", "test_cache.py"]
    demo("test_cache.py", "The failure names the growth and the line:", tmp_path, words)
