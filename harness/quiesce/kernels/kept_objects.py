"""Objects of kernels, kept between runs under names that say all that they depend on (``keys``)."""

from __future__ import annotations

import contextlib
from pathlib import Path

from quiesce.errors import ConfigurationError
from quiesce.private_folders import private_folder
from quiesce.simulator import kept_files
from quiesce.simulator.cache import alone


class KeptObjects:
    """The objects in a folder, which is made when the first is kept. One that can't be kept is compiled again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, key: str) -> bytes | None:
        """Return an object, or None where it is not kept, or not as it was."""
        return kept_files.find(self._path(key))

    def keep(self, key: str, content: bytes) -> None:
        """Keep an object."""
        path = self._path(key)
        with contextlib.suppress(OSError, ConfigurationError):
            private_folder(path.parent)
            kept_files.keep(path, content)

    def alone(self, key: str) -> contextlib.AbstractContextManager[None]:
        """Let one process at a time compile the kernel of a key, so that others find its object."""
        folder = self._path(key).parent
        with contextlib.suppress(OSError, ConfigurationError):
            private_folder(folder)
        return alone(folder / "lock")  # few wait for another kernel, and the files do not become more

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key[2:]}.o"
