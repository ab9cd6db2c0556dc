"""Journals and sessions that are damaged, as of reports from elsewhere: read and shown, or refused in a sentence."""

from __future__ import annotations

import json
import random
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.fuzzing.damage import damaged
from tests.fuzzing.limits import try_inputs

from quiesce.model.errors import QuiesceError
from quiesce.reporting.folder import JOURNAL_NAME, read_folder, write_reports
from quiesce.reporting.journal import Journal
from quiesce.reporting.pytest_handover import read_sessions

_GOLDEN: Final = Path(__file__).parents[2] / "reports" / "golden"
_WORDS: Final = (b"null", b"[]", b"{}", b"-1", b"1e999", b"true", b'""', b'"\\ud800"', b"9" * 5000, b"[" * 3000, b"NaN")


def _reworded(generator: random.Random, content: bytes) -> bytes:
    """Return the text with a value of another kind in place of one."""
    places = [at for at in range(len(content)) if content[at : at + 1] in b":,["]
    at = generator.choice(places) + 1
    end = min((content.find(mark, at) for mark in (b",", b"}", b"]") if content.find(mark, at) > 0), default=at)
    return content[:at] + generator.choice(_WORDS) + content[end:]


def journal(folder: Path) -> bytes:
    """Return the journal of a run with results of every kind."""
    path = folder / JOURNAL_NAME
    with Journal(path, seed=1, run={"quiesce": "1"}) as begun:
        begun.end("completed")
    first, last = path.read_bytes().splitlines(keepends=True)
    reports = (json.loads((_GOLDEN / name).read_bytes()) for name in ("report.json", "program.json"))
    lines = [json.dumps(result).encode() + b"\n" for report in reports for result in report["results"]]
    return first + b"".join(lines) + last


SESSION: Final = b"".join(
    json.dumps(line).encode() + b"\n"
    for line in ({"begun": True}, {"failure": "t.py::a", "is_result": False}, {"ended": 1, "failures": 1})
)


def judge(content: bytes, number: int) -> None:
    """Read a journal that is damaged as ``number`` says, and write all formats of what it holds."""
    generator = random.Random(number)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        change = generator.choice((damaged, _reworded))
        (folder / JOURNAL_NAME).write_bytes(change(generator, content))
        (folder / "1.tests").write_bytes(change(generator, SESSION))
        with suppress(QuiesceError):
            write_reports(read_folder(folder), folder)
        with suppress(QuiesceError):
            read_sessions(folder)


def main(seed: int, count: int) -> int:
    """Damage and read as many journals."""
    with tempfile.TemporaryDirectory() as name:
        content = journal(Path(name))
    return try_inputs(seed, count, lambda number: judge(content, number))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])) > 0)
