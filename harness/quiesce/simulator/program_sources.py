"""Sources of kernels that no file holds: what a program gave to NVRTC, kept in the run's folder for findings.

The compiler of kernels finds them in the PTX (:mod:`quiesce.kernels.ptx.module`), also where a client's cache had that.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_FOLDER: Final = "sources"
_BYTES_MAX: Final = 16 << 20
"""How much of them a run keeps."""


def keep_sources(run: Path, sources: Mapping[str, str]) -> None:
    """Keep texts by the names of their files; those that find no room are left out."""
    if not sources:
        return
    import hashlib  # the judge of a run reads only

    folder = run / _FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    used = sum(each.stat().st_size for each in os.scandir(folder))
    for name, text in sources.items():
        content = f"{name}\n{text}".encode("utf-8", "replace")
        path = folder / hashlib.sha256(content).hexdigest()
        if path.exists() or used + len(content) > _BYTES_MAX:
            continue
        part = path.with_suffix(f".{os.getpid()}")
        part.write_bytes(content)
        part.replace(path)
        used += len(content)


class ProgramSources:
    """The texts that a run keeps, which may still become more; without a folder there are none."""

    def __init__(self, run: Path | None) -> None:
        self._folder = run / _FOLDER if run is not None else None
        self._read: set[str] = set()
        self._texts: dict[str, list[str]] = {}

    def text(self, file: str, kernel: str) -> str | None:
        """Return the text of a file that a kernel was compiled from; None where none is kept, or it can't be told."""
        self._look()
        found = self._texts.get(file) or [
            text for name, texts in self._texts.items() if file.endswith(f"/{name}") for text in texts
        ]
        if len(found) > 1:  # programs may all have one name
            word = re.compile(rf"\b{re.escape(_plain(kernel))}\b")
            found = [text for text in found if word.search(text)]
        return found[0] if len(found) == 1 else None

    def _look(self) -> None:
        if self._folder is None or not self._folder.is_dir():
            return
        for entry in os.scandir(self._folder):
            if entry.name in self._read or "." in entry.name:
                continue
            self._read.add(entry.name)
            name, _, text = Path(entry.path).read_text(encoding="utf-8").partition("\n")
            self._texts.setdefault(name, []).append(text)


def _plain(kernel: str) -> str:
    """Return ``scale`` of ``inner::scale<float>``."""
    return kernel.partition("<")[0].rpartition("::")[2]
