"""The notebook: what was noticed about the contract while something ran, and how often there was anything to see."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Final

from quiesce.backend import Capability
from quiesce.findings import Finding
from quiesce.lockstep import contract_finding
from quiesce.operations import Operation
from quiesce.request_format import format_request

NOTES_MAX: Final = 5
"""So many different notes are kept for each rule: the rest would say the same."""


class Notebook:
    """Notes by rule, each kept once. ``place`` is what runs at the moment, and is put into every note."""

    def __init__(self) -> None:
        self.place = ""
        self.looked: Counter[str] = Counter()
        """How often a rule had something to look at."""
        self.served: Counter[Capability] = Counter()
        """How many requests that a capability is about were served."""
        self._notes: dict[str, dict[Hashable, Finding]] = {}

    def note(self, rule: str, key: Hashable, instead: str, observed: str, operation: Operation | None = None) -> None:
        """Keep a note unless there is one with this key. ``instead`` says what to write instead."""
        notes = self._notes.setdefault(rule, {})
        if key in notes or len(notes) >= NOTES_MAX:
            return
        request = f", in reply to '{format_request(operation)}'" if operation is not None else ""
        where = f", in {self.place}" if self.place else ""
        notes[key] = contract_finding(rule, instead, f"{observed}{request}{where}")

    def enter(self, later: Notebook) -> None:
        """Enter what another notebook holds, as if it had been noticed here."""
        self.looked.update(later.looked)
        self.served.update(later.served)
        for rule, noted in later._notes.items():
            notes = self._notes.setdefault(rule, {})
            for key, finding in noted.items():
                if key not in notes and len(notes) < NOTES_MAX:
                    notes[key] = finding

    def findings(self, rule: str) -> tuple[Finding, ...]:
        """Return what was noted about a rule."""
        return tuple(self._notes.get(rule, {}).values())
