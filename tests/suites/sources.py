"""The tests of a release, out of its source archive: wheels bring none, and nothing of them is kept here."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path, PurePosixPath


def unpack_tests(source: str, folder: Path) -> Path:
    """Download the source archive of a release, such as ``cupy==12.3.0``; return the folder that has its tests."""
    folder.mkdir(parents=True, exist_ok=True)
    name, version = source.split("==")
    # pip asks a source distribution for its metadata, which CuPy's refuses where there is no CUDA, except for this.
    environment = {**os.environ, "READTHEDOCS": "True"}
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", name, source]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{source} cannot be downloaded, so its tests cannot run:\n{done.stderr}"
    with tarfile.open(folder / f"{name}-{version}.tar.gz") as opened:
        for member in filter(_is_wanted, opened):
            content = opened.extractfile(member)
            assert content is not None
            target = folder / member.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.read())
    return folder / f"{name}-{version}"


def _is_wanted(member: tarfile.TarInfo) -> bool:
    """Whether it is one of the tests, or says how pytest runs them."""
    _, *parts = PurePosixPath(member.name).parts
    return (
        member.isfile() and ".." not in parts and (parts[0] == "tests" or parts in (["setup.cfg"], ["pyproject.toml"]))
    )
