"""Child processes that nobody has waited for: one that has ended stays in the system's table until somebody does."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Final

from quiesce.leaks.quantities import PROCESSES, Quantity
from quiesce.leaks.system_calls import SystemCalls

CHILDREN: Final = Quantity(PROCESSES, "child processes", "processes")

SHOWN: Final = 5
ENDING_STEPS: Final = 10
ENDING_SECONDS: Final = 0.001

ENDED: Final = "Z"
"""The state of a child that has ended and was not waited for (proc(5))."""


class ProcessMeter:
    """Counts the processes whose parent this one is. It looks through those of the system only if there are any."""

    family = PROCESSES

    def __init__(self, folder: str = "/proc") -> None:
        self._folder = folder
        self._lists = sys.platform == "linux" and SystemCalls.is_folder(folder)  # asked once: a list takes long
        self._count = 0
        self._known: frozenset[int] = frozenset()

    def absent(self) -> str:
        """Say so where the system does not list processes."""
        return "" if self._lists else "this system lists no processes"

    def settle(self) -> None:
        """Wait for what :mod:`subprocess` would wait for at its next start, and for others that are just ending."""
        subprocess = sys.modules.get("subprocess")
        if subprocess is not None:
            subprocess._cleanup()
        for _ in range(ENDING_STEPS):
            if len(self._children()) <= self._count:
                return
            SystemCalls.sleep(ENDING_SECONDS)

    def read(self) -> Mapping[Quantity, int]:
        """Count."""
        self._count = len(self._children())
        return {CHILDREN: self._count}

    def present(self) -> frozenset[int]:
        """Return each by its number."""
        return frozenset(self._children())

    def observe(self) -> None:
        """Remember which there are."""
        self._known = frozenset(self._children())

    def rest(self) -> None:
        """Forget them."""
        self._known = frozenset()

    def origin(self, quantity: Quantity) -> str:
        """Say what the first new one is."""
        return next(self._started(), "")

    def evidence(self, quantity: Quantity) -> str:
        """Say what the new ones are."""
        return "\n".join([line for line, _ in zip(self._started(), range(SHOWN), strict=False)])

    def _started(self) -> Iterator[str]:
        for number, (name, state) in sorted(self._children().items()):
            if number not in self._known:
                how = "has ended; nobody waited for it" if state == ENDED else "is still running"
                yield f"process {number} ({name}) {how}"

    def _children(self) -> dict[int, tuple[str, str]]:
        """Return the name and the state of each child, by its number."""
        if not SystemCalls.has_children():
            return {}
        own, found = str(SystemCalls.process_id()), {}
        for name in SystemCalls.list_folder(self._folder):
            if name.isdigit():
                try:
                    with SystemCalls.open_file(
                        f"{self._folder}/{name}/stat", encoding="utf-8", errors="replace"
                    ) as file:
                        text = file.read()
                except OSError:
                    continue  # it has just gone
                command, _, rest = text.partition("(")[2].rpartition(") ")
                state, parent = rest.split(" ", 2)[:2]
                if parent == own:
                    found[int(name)] = (command, state)
        return found
