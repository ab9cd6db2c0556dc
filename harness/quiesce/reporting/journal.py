"""The journal: results as they come in, one JSON line each, so that a run that is killed loses nothing.

The first line is a header with the seed and what is known of the run, the last says how the run ended. Every line
reaches the operating system in one write before the next result is waited for; only the line being written when the
process dies can be torn. An older journal stays until the new one has its header.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from quiesce.files import create_part, naming, open_regular, part_of, put_in_place, write_whole
from quiesce.model.errors import ConfigurationError
from quiesce.model.results import Report, Result
from quiesce.reporting.json_values import RecordError
from quiesce.reporting.record import result_from_record, result_record, run_values
from quiesce.reporting.result_lists import ENDED, last_attempts

FORMAT: Final = "quiesce-journal"
VERSION: Final = 1


class Journal:
    """An open journal; :meth:`add` may be called until :meth:`end`. An older file of that name is replaced.

    With ``whole`` it is replaced by :meth:`end`, when this journal has all that is known: what the older one holds is
    lost by no error before.
    """

    def __init__(self, path: Path, *, seed: int, run: Mapping[str, str], whole: bool = False) -> None:
        self._path = path
        self._is_whole = whole
        with naming(path):
            self._stream = create_part(path)
        try:
            self._write({"format": FORMAT, "run": run_values(run), "seed": seed, "version": VERSION})
            if not whole:
                self._put_in_place()
        except OSError:
            self.close()
            raise

    def _put_in_place(self) -> None:
        with naming(self._path):
            put_in_place(self._stream, self._path)

    def add(self, result: Result) -> None:
        """Append one result. Raises :class:`OSError` where the disk is full or gone."""
        self._write(result_record(result))

    def _write(self, record: Mapping[str, Any]) -> None:
        with naming(self._path):
            write_whole(self._stream, json.dumps(record, sort_keys=True, ensure_ascii=True).encode("ascii") + b"\n")

    def end(self, how: str) -> None:
        """Write the last line, which says how the run ended. Raises :class:`OSError` as :meth:`add` does."""
        self._write({ENDED: how})
        if self._is_whole:
            self._put_in_place()
        else:
            with naming(self._path):
                os.fsync(self._stream.fileno())

    def close(self) -> None:
        """Close the file; idempotent. A journal that never took its place leaves nothing."""
        self._stream.close()
        part_of(self._path).unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_journal(path: Path) -> Report:
    """Return the report that a journal holds; its run was ``killed`` if the journal has no end.

    A torn last line is left out: its result was never complete. Of several attempts the last one is in the report.
    Raises :class:`ConfigurationError` for a file that is not a journal, naming the line, and
    :class:`OSError` where it cannot be read.
    """
    # Every complete line ends in a line feed, so what follows the last one is torn or empty.
    with os.fdopen(open_regular(path), "rb") as stream:
        lines = stream.read().split(b"\n")[:-1]
    if not lines:
        raise _wrong(path, 1, "the header is missing", "name a results.jsonl that 'quiesce run --report' wrote")
    seed, run = _header(path, lines[0])
    results = []
    ended = "killed"
    for number, line in enumerate(lines[1:], 2):
        record = _parse(path, number, line)
        match record:
            case {"ended": str(how)} if number == len(lines):
                ended = how
                continue
        try:
            results.append(result_from_record(record))
        except RecordError as error:
            raise _wrong(path, number, str(error), "delete the line if it was edited by hand") from None
    return Report(seed=seed, results=tuple(last_attempts(results)), run={**run, ENDED: ended})


def _header(path: Path, line: bytes) -> tuple[int, dict[str, str]]:
    match _parse(path, 1, line):
        case {"format": "quiesce-journal", "version": 1, "seed": int(seed), "run": dict(run)}:
            return seed, {str(key): str(value) for key, value in run.items()}
    raise _wrong(path, 1, f"this is not a {FORMAT} of version {VERSION}", "read it with the quiesce that wrote it")


def _parse(path: Path, number: int, line: bytes) -> object:
    try:
        parsed: object = json.loads(line)
    except (ValueError, RecursionError):
        raise _wrong(path, number, "this is not JSON", "delete the line if it was edited by hand") from None
    return parsed


def _wrong(path: Path, line: int, what: str, instead: str) -> ConfigurationError:
    return ConfigurationError(f"{path}:{line}: {what}; {instead}")
