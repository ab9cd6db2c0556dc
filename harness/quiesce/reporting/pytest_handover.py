"""What pytest hands to the ``quiesce exec`` that runs it: the plugin's results, and which tests failed without one.

By its exit status pytest only says that some test failed. It writes here why, one JSON line for each test, so that a
process that is killed loses nothing but the line that it was writing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from quiesce.model.errors import QuiesceError
from quiesce.model.results import Result, Verdict
from quiesce.reporting.json_values import RecordError
from quiesce.reporting.record import result_from_record
from quiesce.reporting.result_lists import last_attempts

HANDING_VARIABLE: Final = "QUIESCE_HANDED_OVER"
"""Set while a run of pytest hands over what it finds: one that a test of it starts answers to that test."""
_SUFFIX: Final = ".tests"


class Handing:
    """The file of one process. A run goes on where it can't be written: it then hands nothing over."""

    def __init__(self, folder: Path) -> None:
        self._stream = (folder / f"{os.getpid()}{_SUFFIX}").open("ab", buffering=0)
        self._write({"begun": True})

    def result(self, record: Mapping[str, Any]) -> None:
        """Hand over a result, as :mod:`quiesce.reporting.record` writes it."""
        self._write({"result": record})

    def failure(self, name: str, *, is_result: bool) -> None:
        """Note that a test failed. ``is_result`` says that a result tells why."""
        self._write({"failure": name, "is_result": is_result})

    def uncollected(self, name: str) -> None:
        """Note a file whose tests could not be collected."""
        self._write({"uncollected": name})

    def end(self, status: int, failures: int) -> None:
        """Note how the run ended: pytest's exit status, and how many failures pytest counted."""
        self._write({"ended": status, "failures": failures})
        self._stream.close()

    def _write(self, record: Mapping[str, Any]) -> None:
        with suppress(OSError):
            self._stream.write(json.dumps(record).encode("ascii") + b"\n")


@dataclass(slots=True)
class Session:
    """One run of pytest.

    ``own`` are the tests that failed by themselves. ``seen`` is how many failures were handed over, and ``counted`` how
    many pytest counted. ``ended`` is pytest's exit status, None where it was killed.
    """

    results: list[Result] = field(default_factory=list)
    own: list[str] = field(default_factory=list)
    uncollected: list[str] = field(default_factory=list)
    seen: int = 0
    counted: int = 0
    ended: int | None = None

    @property
    def is_explained(self) -> bool:
        """Whether the failures that pytest counted are all known."""
        return self.ended is not None and self.counted <= self.seen


def read_sessions(folder: Path) -> tuple[Session, ...]:
    """Return the runs of pytest that handed something over.

    Raises :class:`QuiesceError` for a file that is damaged.
    """
    found: list[Session] = []
    for path in sorted(folder.glob(f"*{_SUFFIX}")):
        try:
            found += _sessions(path)
        except (LookupError, ValueError, RecursionError):
            raise QuiesceError(f"{path}: what a run of pytest handed over is damaged; run the tests again") from None
    return tuple(found)


def _of_quiesce(result: Result) -> Result:
    """Return a result as exec tells it: a test that fails by itself is no finding, and has no verdict."""
    if result.is_leak_check and result.verdict is Verdict.FAILED and not result.findings:
        return replace(result, verdict=Verdict.INCONCLUSIVE)
    return result


def _sessions(path: Path) -> Iterator[Session]:
    sessions: list[Session] = []
    for line in path.read_bytes().split(b"\n")[:-1]:  # what follows the last line feed is torn or empty
        match json.loads(line):
            case {"begun": True}:
                sessions.append(Session())
            case {"result": record}:
                sessions[-1].results.append(result_from_record(record))
            case {"failure": str(name), "is_result": bool(is_result)}:
                sessions[-1].seen += 1
                sessions[-1].own += [] if is_result or name in sessions[-1].own else [name]
            case {"uncollected": str(name)}:
                sessions[-1].seen += 1
                sessions[-1].uncollected.append(name)
            case {"ended": int(status), "failures": int(count)}:
                sessions[-1].ended, sessions[-1].counted = status, count
            case _:
                raise RecordError(f"{path}: a line is of no known kind")
    for session in sessions:
        session.results = [_of_quiesce(result) for result in last_attempts(session.results)]
        yield session
