"""Files that rounds leave in the temporary folder. They are told, and no test fails for them.

The folder is everybody's: only what this process is seen to make counts. Its time of change says for the price of one
call that something was made there. Then an audit hook (PEP 578) notes what the interpreter makes, and who asked for it.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final

from quiesce.amounts import counted
from quiesce.leaks.judgement import LeftFiles
from quiesce.leaks.owners import Frame, Owners
from quiesce.leaks.rounds import Stopped
from quiesce.leaks.system_calls import SystemCalls
from quiesce.leaks.tracing import FRAMES

ROUNDS: Final = 4
"""What a line leaves in each of so many rounds, each time as many, it leaves for good."""

SHOWN: Final = 3

MAKING: Final[Mapping[str, int]] = {
    "open": 0,
    "os.mkdir": 0,
    "os.rename": 1,
    "os.link": 1,
    "os.symlink": 1,
    "sqlite3.connect": 0,
}
"""Audit events after which there may be a new file or folder, and which of their arguments is its path."""

DEFAULT: Final = "/tmp"  # noqa: S108 - nothing is written there
"""The folder where no variable names another (``tempfile`` on POSIX)."""

FLAGS_AT: Final = 2
"""Which argument of the event ``open`` has the flags: without ``O_CREAT`` nothing is made."""


def left_files_text(left: Sequence[LeftFiles]) -> str:
    """Return ``1 file a round in the temporary folder: tmp* at test_it.py:8``, or an empty text."""
    if not left:
        return ""
    lines = [f"{each.pattern} at {each.frame[0]}:{each.frame[1]}" for each in left[:SHOWN]]
    more = [f"from {counted(len(left) - SHOWN, 'more line')}"] if len(left) > SHOWN else []
    count = counted(sum(each.per_round for each in left), "file")
    return f"{count} a round in the temporary folder: {', '.join([*lines, *more])}"


class MadeFiles:
    """Notes the paths of new files in one folder, and who asked for them. Its audit hook stays for good."""

    def __init__(self, owners: Owners) -> None:
        self._owners = owners
        self._folder = ""
        self._made: dict[str, Frame] = {}
        self.is_added = False

    def begin(self, folder: str) -> None:
        """Note what is made in this folder from now on."""
        if not self.is_added:
            self.is_added = True
            sys.addaudithook(self._see)
        self._folder = folder

    def end(self) -> dict[str, Frame]:
        """Note nothing more; return which noted files are still there."""
        self._folder = ""
        made, self._made = self._made, {}
        return {path: frame for path, frame in made.items() if SystemCalls.is_there(path)}

    def _see(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note a path. What is raised here would be raised in the tested code."""
        if not self._folder or event not in MAKING:
            return
        path, folder = arguments[MAKING[event]], self._folder
        if event == "open" and not (type(arguments[FLAGS_AT]) is int and arguments[FLAGS_AT] & os.O_CREAT):
            return
        if isinstance(path, PurePath):
            path = str(path)
        if type(path) is not str or path.rpartition(os.sep)[0] != folder:
            return
        self._folder = ""  # to find the owner may make calls of its own
        try:
            owner = self._owner()
        finally:
            self._folder = folder
        if owner is not None:
            self._made.setdefault(path, owner)

    def _owner(self) -> Frame | None:
        frames: list[Frame] = []
        frame = sys._getframe(2)
        while frame is not None and len(frames) < FRAMES:
            frames.append((frame.f_code.co_filename, frame.f_lineno))
            if frame.f_back is None:
                break
            frame = frame.f_back
        return self._owners.owner(frames)


class LeftFilesSearch:
    """Looks for files that the rounds of a check leave. It goes from check to check."""

    def __init__(self, owners: Owners) -> None:
        self._made = MadeFiles(owners)
        self._folder = ""
        self._changed = 0

    def begin(self) -> None:
        """Look at the folder before the first round: its time of change advances in steps of some milliseconds."""
        self._folder = temporary_folder()
        self._changed = SystemCalls.changed(self._folder)

    def follow(self) -> None:
        """Look at the rounds from now on, if the hook is there already."""
        if self._made.is_added:
            self._made.begin(self._folder)

    def may_be_left(self) -> bool:
        """Whether the rounds may have left something. It costs no round, and leaves no memory in use."""
        if self._made.is_added:
            return bool(self._made.end())
        return SystemCalls.changed(self._folder) != self._changed

    def find(self, run_round: Callable[[], None]) -> tuple[LeftFiles, ...]:
        """Run a few rounds; return what each of them leaves, most first."""
        rounds: list[dict[str, Frame]] = []
        for _ in range(ROUNDS):
            self._made.begin(self._folder)
            try:
                run_round()
            except Stopped:  # the verdict stands: nothing is told
                return ()
            finally:
                made = self._made.end()
            rounds.append({path: made[path] for path in made if not any(path in before for before in rounds)})
            if not rounds[-1]:
                return ()
        return tuple(sorted(_same_in_each(rounds), key=lambda each: (-each.per_round, each.frame)))


def _same_in_each(rounds: Sequence[Mapping[str, Frame]]) -> list[LeftFiles]:
    found = []
    for frame in sorted(set(rounds[0].values())):
        names = [[path.rpartition(os.sep)[2] for path in made if made[path] == frame] for made in rounds]
        if len(set(map(len, names))) == 1:
            found.append(LeftFiles(frame, len(names[0]), _pattern([name for each in names for name in each])))
    return found


def _pattern(names: Sequence[str]) -> str:
    length = _common_length(names)
    return f"{names[0][:length]}*{names[0][len(names[0]) - _common_length([name[length:][::-1] for name in names]) :]}"


def _common_length(texts: Sequence[str]) -> int:
    """Return how many characters all texts begin with."""
    return sum(1 for _ in itertools.takewhile(lambda each: len(set(each)) == 1, zip(*texts, strict=False)))


def temporary_folder() -> str:
    """Return the folder that :mod:`tempfile` uses, or empty text.

    It is not asked itself: to find out it makes a file, and what it finds holds from then on.
    """
    known = getattr(sys.modules.get("tempfile"), "tempdir", None)
    named = (os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    return known if isinstance(known, str) else next(filter(None, named), DEFAULT)
