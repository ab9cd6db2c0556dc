"""Shares of a device's memory, held across processes: what does not fit waits, and what died holds nothing.

A device is a file of which each byte stands for a share of its memory. A process that needs memory locks as many
bytes. The kernel lets go of a process's locks when it ends, however it ends (fcntl(2), "Advisory record locking"). One
process at a time collects shares, and nobody who has collected waits for more, so none can wait for each other.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from pathlib import Path
from typing import Final

from quiesce.files import open_private_file, private_folder

SHARES: Final = 1024
_TURN: Final = SHARES
"""The byte behind the shares: who has it collects."""


def shares_of(size_bytes: int, total_bytes: int) -> int:
    """Return how many shares a size needs, rounded up."""
    return min(SHARES, -(-size_bytes * SHARES // total_bytes))


def budget_folder() -> Path:
    """Return the folder of this user's files, which all runs on this machine share.

    Raises :class:`ConfigurationError` where others can change it, and :class:`OSError`.
    """
    return private_folder(Path(tempfile.gettempdir()) / f"quiesce-devices-{os.getuid()}")


class DeviceBudget:
    """The shares of one device. ``name`` identifies it among all processes of the machine."""

    def __init__(self, folder: Path, name: str) -> None:
        digest = hashlib.sha256(name.encode("utf-8")).hexdigest()[:16]
        self._file = open_private_file(folder / f"{digest}.shares")
        self._held: set[int] = set()

    def take(self, count: int) -> None:
        """Wait until there are so many shares, and hold them. Who waits first is served first."""
        fcntl.lockf(self._file, fcntl.LOCK_EX, 1, _TURN)
        try:
            while len(self._held) < count:
                self._take_free(count)
                if len(self._held) < count:
                    share = next(each for each in range(SHARES) if each not in self._held)
                    fcntl.lockf(self._file, fcntl.LOCK_EX, 1, share)
                    self._held.add(share)
        except BaseException:
            self.give_back()
            raise
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _TURN)

    def _take_free(self, count: int) -> None:
        for share in range(SHARES):
            if len(self._held) == count:
                return
            if share not in self._held:
                try:
                    fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, share)
                except (BlockingIOError, PermissionError):  # which of the two depends on the system
                    continue
                self._held.add(share)

    def give_back(self) -> None:
        """Hold nothing any more; idempotent."""
        fcntl.lockf(self._file, fcntl.LOCK_UN, SHARES, 0)
        self._held.clear()

    def close(self) -> None:
        """End; idempotent only with respect to the shares."""
        os.close(self._file)
