"""Open file descriptors of the process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from quiesce.leaks.quantities import DESCRIPTORS, Quantity

OPEN: Final = Quantity(DESCRIPTORS, "open file descriptors", "descriptors")

SHOWN: Final = 5


class DescriptorMeter:
    """Counts the entries of the folder in which Linux and macOS list a process's descriptors."""

    family = DESCRIPTORS

    def __init__(self, folders: tuple[str, ...] = ("/proc/self/fd", "/dev/fd")) -> None:
        self._folder = next((name for name in folders if Path(name).is_dir()), "")
        self._known: frozenset[str] = frozenset()

    def absent(self) -> str:
        """Say so where no such folder is."""
        return "" if self._folder else "this system does not list a process's descriptors"

    def settle(self) -> None:
        """Do nothing."""

    def read(self) -> Mapping[Quantity, int]:
        """Count; the descriptor of the listing itself is always among them."""
        return {OPEN: len(os.listdir(self._folder))}  # noqa: PTH208 - a Path for each would cost more than the count

    def observe(self) -> None:
        """Remember which are open."""
        self._known = frozenset(os.listdir(self._folder))  # noqa: PTH208

    def rest(self) -> None:
        """Forget them."""
        self._known = frozenset()

    def origin(self, quantity: Quantity) -> str:
        """Say what the first new one is open on."""
        return next(iter(self._opened()), "")

    def evidence(self, quantity: Quantity) -> str:
        """Say what the new ones are open on."""
        return "\n".join(self._opened()[:SHOWN])

    def _opened(self) -> list[str]:
        found = []
        for name in sorted(set(os.listdir(self._folder)) - self._known, key=int):  # noqa: PTH208
            try:
                found.append(f"descriptor {name} on {os.readlink(f'{self._folder}/{name}')}")  # noqa: PTH115
            except OSError:
                continue  # the listing's own, closed by now
        return found
