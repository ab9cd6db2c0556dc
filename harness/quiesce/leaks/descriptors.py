"""Open file descriptors of the process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from quiesce.leaks.quantities import DESCRIPTORS, Quantity
from quiesce.leaks.system_calls import SystemCalls

OPEN: Final = Quantity(DESCRIPTORS, "open file descriptors", "descriptors")

SHOWN: Final = 5


class DescriptorMeter:
    """Counts the entries of the folder in which Linux and macOS list a process's descriptors."""

    family = DESCRIPTORS

    def __init__(self, folders: tuple[str, ...] = ("/proc/self/fd", "/dev/fd")) -> None:
        self._folder = next((name for name in folders if SystemCalls.is_folder(name)), "")
        self._known: frozenset[str] = frozenset()
        self._listed: list[str] = []
        self._present: frozenset[tuple[int, int, int]] = frozenset()

    def absent(self) -> str:
        """Say so where no such folder is."""
        return "" if self._folder else "this system does not list a process's descriptors"

    def settle(self) -> None:
        """Do nothing."""

    def read(self) -> Mapping[Quantity, int]:
        """Count; the descriptor of the listing itself is always among them."""
        return {OPEN: len(SystemCalls.list_folder(self._folder))}

    def present(self) -> frozenset[tuple[int, int, int]]:
        """Return each with its number and what it is open on, which is asked only if other numbers are in use."""
        listed = SystemCalls.list_folder(self._folder)
        if listed != self._listed:
            self._listed, self._present = listed, frozenset(_identities(listed))
        return self._present

    def observe(self) -> None:
        """Remember which are open; the listing's own number is free again, and the next one to be opened has it."""
        self._known = frozenset(str(number) for number, _, _ in _identities(SystemCalls.list_folder(self._folder)))

    def rest(self) -> None:
        """Forget them."""
        self._known = frozenset()
        self._listed, self._present = [], frozenset()

    def origin(self, quantity: Quantity) -> str:
        """Say what the first new one is open on."""
        return next(iter(self._opened()), "")

    def evidence(self, quantity: Quantity) -> str:
        """Say what the new ones are open on."""
        return "\n".join(self._opened()[:SHOWN])

    def _opened(self) -> list[str]:
        found = []
        for name in sorted(set(SystemCalls.list_folder(self._folder)) - self._known, key=int):
            try:
                found.append(f"descriptor {name} on {SystemCalls.read_link(f'{self._folder}/{name}')}")
            except OSError:
                continue  # the listing's own, closed by now
        return found


def _identities(names: Iterable[str]) -> Iterator[tuple[int, int, int]]:
    for name in names:
        try:
            found = SystemCalls.descriptor_status(int(name))
        except OSError:
            continue  # the listing's own, closed by now
        yield int(name), found.st_dev, found.st_ino
