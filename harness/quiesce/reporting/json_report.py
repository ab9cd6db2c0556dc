"""The JSON report: one file, deterministic. Equal results give equal bytes, apart from the ``run`` object."""

from __future__ import annotations

import json
from pathlib import Path

from quiesce.files import write_atomically
from quiesce.reporting.record import report_record
from quiesce.results import Report


def render_json(report: Report) -> str:
    """Return the report as JSON text in ASCII, so that no terminal or code page can misread it."""
    return json.dumps(report_record(report), indent=2, sort_keys=True, ensure_ascii=True) + "\n"


def write_json(report: Report, path: Path) -> None:
    """Write the report to ``path`` atomically. Raises :class:`OSError`."""
    write_atomically(path, render_json(report))
