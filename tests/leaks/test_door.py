"""The door of the leak checks: what pytest's plugin and the other slices may import of them."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

import quiesce.leaks.check

HARNESS: Final = Path(quiesce.leaks.check.__file__).parents[1]
DOORS: Final = ("check", "judgement", "known", "plan", "quantities", "start", "system_calls")
"""The door, the values that go through it, and what is asked of the system before any test runs."""

OF_THE_FIXTURE: Final = {"meters.own", "stages.settling"}
"""What the fixture ``leak_check`` hands out where checks are switched off: the door takes long to load."""

INNER: Final = {"leak_tests.py": OF_THE_FIXTURE, "keys.py": {"meters.contexts"}}


def test_other_slices_go_through_the_door() -> None:
    found = {
        (path.name, node.module.removeprefix("quiesce.leaks."))
        for path in HARNESS.rglob("*.py")
        if "leaks" not in path.relative_to(HARNESS).parts
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("quiesce.leaks.") and node.module
    }
    assert found
    assert not {(name, module) for name, module in found if module not in {*DOORS, *INNER.get(name, set())}}


def test_the_door_names_what_it_gives() -> None:
    assert all(hasattr(quiesce.leaks.check, name) for name in quiesce.leaks.check.__all__)
