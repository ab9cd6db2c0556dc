"""How far a campaign has come, in a file: one that was killed goes on from there with ``--resume``.

The file is written at each finding that is shrunk, after each block of sequences, and when a signal ends the command.
What ran since the last time runs again, and comes to the same.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quiesce.allocators.generation import Failing, Search, Tally
from quiesce.cli.console import Console
from quiesce.cli.endings import explain
from quiesce.cli.version import version
from quiesce.files import write_atomically
from quiesce.model.errors import ConfigurationError
from quiesce.model.wording import counted
from quiesce.reporting import RecordError, record_of, value_from

_DIGITS: Final = 8
_PREFIX: Final = "campaign_"


@dataclass(frozen=True, slots=True)
class _Met:
    """How often an operation met a state."""

    operation: str
    state: str
    count: int


@dataclass(frozen=True, slots=True)
class _State:
    """A :class:`Tally` and the version of quiesce that made it: another one may generate other sequences."""

    quiesce: str
    operations: int
    sequences: int
    skipped: int
    deaths: int
    unsupported: tuple[tuple[str, int], ...]
    met: tuple[_Met, ...]
    failing: tuple[Failing, ...]


def forget_campaigns(folder: Path) -> None:
    """Remove every state from a folder that belongs to one run. Raises :class:`OSError`."""
    for path in folder.glob(f"{_PREFIX}*.json"):
        path.unlink(missing_ok=True)


class KeptCampaign:
    """The state of one campaign in a folder: other seeds, modes, backends and shards have files of their own there."""

    def __init__(self, folder: Path, search: Search, console: Console) -> None:
        which = repr((search.name, search.seed, search.hostile, search.shard))
        digest = hashlib.sha256(which.encode("utf-8", "surrogateescape")).hexdigest()[:_DIGITS]
        self.path = folder / f"{_PREFIX}{digest}.json"
        self._console = console
        self._failed = False

    def forget(self) -> None:
        """Remove the state of an earlier run. Raises :class:`OSError`."""
        self.path.unlink(missing_ok=True)

    def keep(self, tally: Tally) -> None:
        """Write how far the campaign has come; a disk that is full is told once, and ends nothing."""
        state = _State(
            version(),
            tally.operations,
            tally.sequences,
            tally.skipped,
            tally.deaths,
            tuple(tally.unsupported.items()),
            tuple(_Met(*pair, count) for pair, count in tally.coverage.pairs.items()),
            tuple(tally.failing),
        )
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self.path, json.dumps(record_of(state)) + "\n")
        except OSError as error:
            if not self._failed:
                self._console.complain(f"the campaign can't go on later: {explain(error)}")
            self._failed = True

    def load(self, operations_max: int | None) -> Tally:
        """Return what is kept, and say where it goes on; from the beginning, where nothing is kept.

        Raises :class:`ConfigurationError` for a file of another version, and :class:`OSError`.
        """
        tally = Tally(operations_max)
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            self._console.complain(f"begins with the first sequence: there is no {self.path}")
            return tally
        try:
            state = value_from(_State, json.loads(text))
        except (RecordError, ValueError) as error:
            raise ConfigurationError(f"{self.path}: {error}; run without --resume") from error
        if state.quiesce != version():
            said = f"{self.path} is of quiesce {state.quiesce}, and this is {version()}"
            raise ConfigurationError(f"{said}; other versions generate other sequences: run without --resume")
        tally.operations, tally.sequences, tally.skipped = state.operations, state.sequences, state.skipped
        tally.deaths, tally.unsupported = state.deaths, Counter(dict(state.unsupported))
        tally.coverage.pairs.update({(each.operation, each.state): each.count for each in state.met})
        tally.failing.extend(state.failing)
        done = f"{counted(tally.operations, 'operation')} in {counted(tally.sequences, 'sequence')}"
        self._console.complain(f"goes on after {done}, {len(tally.failing)} of which failed ({self.path})")
        return tally
