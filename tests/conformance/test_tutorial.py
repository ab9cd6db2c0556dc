"""The backend that the tutorial begins with is one that conforms."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from quiesce.conformance import run_conformance

PAGE: Final = Path(__file__).parents[2] / "docs" / "tutorials" / "allocator.md"


def test_the_first_backend_of_the_tutorial_conforms() -> None:
    program = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert program is not None
    names: dict[str, Any] = {}
    exec(program[1], names)
    conformance = run_conformance(names["Backend"](), operations=1_000)
    assert conformance.conforms, conformance.text()
