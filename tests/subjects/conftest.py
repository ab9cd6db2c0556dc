"""A cache of its own for each test, and subjects that need no compiler: the reference behind the wire protocol."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

MANIFEST = """\
title    = "The reference, with and without a fault"
upstream = "NVIDIA/cccl#4222"
cases    = ["pool/squeeze_before_out_of_memory", "controls/zero_size_and_one_byte"]

[run]
command = ["{python}", "-m", "quiesce.backends.serving", "{version}"]

[generated]
operations = 0

[[versions]]
version = "reference:pool.no_squeeze"
label   = "before the fix"
default = true

  [[versions.expect]]
  case     = "pool/squeeze_before_out_of_memory"
  finds    = "request_fits_but_out_of_memory"
  upstream = "NVIDIA/cccl#4222"

[[versions]]
version = "reference"
default = true
"""
RED, GREEN = "reference:pool.no_squeeze", "reference"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep what a test builds out of the user's cache; the simulated runtime, which takes long to build, stays."""
    folder = tmp_path / "cache"
    monkeypatch.setattr("quiesce.subjects.storage.storage_folder", lambda: folder)
    return folder


@pytest.fixture
def write_subject(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a manifest, and other files, as a subject, and returns its folder."""

    def write(manifest: str = MANIFEST, name: str = "host/example", **files: str) -> Path:
        folder = tmp_path / "fixtures" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "subject.toml").write_text(manifest, encoding="utf-8")
        for file, text in files.items():
            path = folder / file.replace("__", ".")
            path.write_text(text, encoding="utf-8")
        return folder

    return write
