"""The backend of the tutorial has the bug that the page shows, and conforms once that is corrected as the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from quiesce.allocators.conformance import Conformance, run_conformance

PAGE: Final = Path(__file__).parents[2] / "docs" / "tutorials" / "allocator.md"


def _conformance(program: str) -> Conformance:
    names: dict[str, Any] = {"__name__": "my_allocator"}
    exec(program, names)
    return run_conformance(names["Backend"](), operations=1_000)


def test_the_first_backend_conforms_after_its_correction() -> None:
    page = PAGE.read_text(encoding="utf-8")
    program = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    correction = re.search(r"sed -i 's/(.+)/(.+)/' my_allocator.py", page)
    assert program is not None
    assert correction is not None
    broken, correct = correction.groups()
    assert "rule:      live_blocks_do_not_overlap" in _conformance(program[1]).text()
    conformance = _conformance(program[1].replace(broken, correct))
    assert conformance.conforms, conformance.text()
