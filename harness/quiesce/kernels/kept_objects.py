"""Objects of kernels, kept between runs under names that say all that they depend on (``keys``)."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from quiesce.simulator.cache import alone


class KeptObjects:
    """The objects in a folder, which is made when the first is kept. One that can't be kept is compiled again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, key: str) -> bytes | None:
        """Return an object, or None where it is not kept."""
        with contextlib.suppress(OSError):
            return self._path(key).read_bytes()
        return None

    def keep(self, key: str, content: bytes) -> None:
        """Keep an object."""
        path = self._path(key)
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
                file.write(content)
            os.replace(file.name, path)  # noqa: PTH105 - at once: another process may be reading

    def alone(self, key: str) -> contextlib.AbstractContextManager[None]:
        """Let one process at a time compile the kernel of a key, so that others find its object."""
        folder = self._path(key).parent
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        return alone(folder / "lock")  # few wait for another kernel, and the files do not become more

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key[2:]}.o"
