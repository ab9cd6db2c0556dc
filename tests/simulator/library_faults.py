"""A fault in a call of a library: what it is reported as, and that its correct twin is clean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from quiesce.model.rules import Kind


@dataclass(frozen=True, slots=True)
class Fault:
    """What a fault is reported as, and words of the finding. ``make`` makes it, or its correct twin."""

    make: Callable[[Any, bool], None]
    kind: Kind
    words: tuple[str, ...]

    def is_found(self, on: Any) -> None:
        """Make it on a machine, and expect findings of its kind, of which one has its words."""
        self.make(on, True)
        on.wait()
        found = [(each.kind, each.observed) for each in on.findings()]
        assert found
        assert {kind for kind, _ in found} == {self.kind}, found
        assert any(all(word in said for word in self.words) for _, said in found), found

    def has_a_clean_twin(self, on: Any) -> None:
        """Make its correct twin, and expect no findings."""
        self.make(on, False)
        on.wait()
        assert on.findings() == ()
