"""What was made for a subject, kept in a cache: a folder for each key, made once and whole, or not at all.

A folder is made where it stays, because environments and linked programs hold their own path. Whoever makes it holds
a lock, which the system takes back from a process that is killed; the marker is written last. What has no marker is
cleared and made again.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from quiesce.files import private_folder
from quiesce.simulator.runtime import cache_folder

_MARKER: Final = "complete"
_CONTENT: Final = "content"
_DIGEST_CHARACTERS: Final = 24


def storage_folder() -> Path:
    """Return where everything that is made for subjects is kept."""
    return private_folder(cache_folder().parent / "subjects")


def digest_of(parts: Iterable[str]) -> str:
    """Return one word for all that something is made of."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode("utf-8", "surrogateescape") + b"\0")
    return digest.hexdigest()[:_DIGEST_CHARACTERS]


def kept(name: str, digest: str, make: Callable[[Path], None]) -> Path:
    """Return the folder of ``digest``, made by ``make`` if it is not there; ``name`` is for people who look.

    What ``make`` raises passes through, and nothing is kept then. Another process that makes the same is waited for.
    """
    folder = storage_folder() / f"{name.replace('/', '-')}-{digest}"
    content, marker = folder / _CONTENT, folder / _MARKER
    private_folder(folder)
    if marker.exists():
        return content
    with _locked(folder / "lock"):
        if not marker.exists():  # it may have been made while we waited
            shutil.rmtree(content, ignore_errors=True)
            content.mkdir(mode=0o700)
            make(content)
            marker.touch()
    return content


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("a+b") as file:
        if sys.platform == "win32":
            import msvcrt

            while True:
                file.seek(0)
                try:
                    msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
                    break
                except OSError:  # it gives up after ten seconds, and a build may take minutes
                    continue
            try:
                yield
            finally:
                file.seek(0)
                msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
            yield
