"""Driver programs that send anything: what each does is a result of its case, and never an error of quiesce."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.fuzzing.limits import try_inputs

from quiesce.allocators.cases.parser import parse_text
from quiesce.allocators.execution import run_case
from quiesce.backends.command import CommandBackend
from quiesce.model.errors import BackendUnavailable
from quiesce.model.results import Report
from quiesce.reporting.record import render_json

_DRIVER: Final = Path(__file__).with_name("strange_driver.py")
_EVIDENCE_MAX: Final = 1 << 20
CASE: Final = parse_text(
    "title: a few blocks\nneeds: pool\n\na = allocate 4096\nb = allocate 64KiB\n"
    "free a\nc = allocate 4096\nfree b\nfree c\n",
    "strange.case",
)


def judge(number: int) -> None:
    """Run a case on a driver."""
    backend = CommandBackend([sys.executable, "-S", "-E", str(_DRIVER), str(number)])
    with suppress(BackendUnavailable):
        result = run_case(CASE, backend)
        assert len(render_json(Report(seed=0, results=(result,)))) < _EVIDENCE_MAX


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)
    sys.exit(try_inputs(int(sys.argv[1]), int(sys.argv[2]), judge) > 0)
