"""Whose the folder of a run is, and what is said of a file in it that makes no sense.

A folder whose ``quiesce exec`` was killed is known as nobody's, and can be judged. The owner holds a lock on a file in
it for as long as it lives, however it ends. The file says what was run.

The program of a run can write to every file there. So readers refuse what is out of their bounds with one sentence, and
never guess.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import stat
import struct
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quiesce.files import why_open_to_others
from quiesce.model.errors import ConfigurationError, QuiesceError


class DamagedFile(QuiesceError):
    """A file of a run is cut off, or has content that quiesce never writes."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(
            f"{path}: this file of the run is damaged, so the program was not judged; the program, or something else "
            "that can write to the folder of the run, has changed it; run it again"
        )


@contextmanager
def refusing_damage(path: str | Path) -> Iterator[None]:
    """Turn what a reader of a file stumbles over into :class:`DamagedFile`; a generator may yield in it."""
    try:
        yield
    except (struct.error, LookupError, ValueError, OverflowError, MemoryError, RecursionError):
        raise DamagedFile(path) from None


def whole_lines(path: Path, fields: int) -> Iterator[list[str]]:
    """Yield the fields of each line of a log, with tabs between them; nothing where there is no log.

    The last line of a process that was killed may be cut, and is left out.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return
    for line in text.split("\n"):
        words = line.split("\t")
        if len(words) == fields:
            yield words


PREFIX: Final = "quiesce-"
OWNER: Final = "owner"
_STATUS: Final = "status"
_NAME: Final = re.compile(rf"{PREFIX}\w{{8}}")
"""As :func:`tempfile.mkdtemp` makes it."""
_BLOCK_BYTES: Final = 512
_OF_RUNS: Final = (stat.S_IFREG, stat.S_IFDIR, stat.S_IFSOCK)
"""What is in the folder of a run. Readers would follow a link out of it, and wait for a pipe for ever."""


class FolderOwner:
    """Owns a folder until :meth:`close`, or until its process ends."""

    def __init__(self, folder: Path, command: Sequence[str], options: Sequence[str]) -> None:
        self._file = os.open(folder / OWNER, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        text = json.dumps({"command": list(command), "options": list(options)})
        os.write(self._file, text.encode("ascii"))

    def close(self) -> None:
        """Give the folder up."""
        os.close(self._file)


@dataclass(frozen=True, slots=True)
class LeftFolder:
    """A folder whose owner was killed. ``command`` is the program with its arguments, empty where it is not known.

    ``options`` are the words of ``quiesce exec`` before it. ``status`` is the program's, None where nobody saw its end.
    """

    folder: Path
    command: tuple[str, ...]
    options: tuple[str, ...]
    status: int | None

    @property
    def size_bytes(self) -> int:
        """How much of the disk it takes."""
        total = 0
        for path in self.folder.rglob("*"):
            with suppress(OSError):
                total += path.lstat().st_blocks * _BLOCK_BYTES
        return total


def note_status(folder: Path, status: int) -> None:
    """Note how the program of a run ended, for who judges it later."""
    with suppress(OSError):
        (folder / _STATUS).write_text(str(status), encoding="ascii")


def is_owned(folder: Path) -> bool:
    """Say whether the run of a folder is still going on."""
    try:
        file = os.open(folder / OWNER, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def refuse_open_to_others(folder: Path) -> None:
    """Raise :class:`ConfigurationError` for a folder that others can change, or have made."""
    why = why_open_to_others(folder)
    if why:
        raise ConfigurationError(f"'{folder}' is not judged, because {why}")


def refuse_other_kinds(folder: Path) -> None:
    """Raise :class:`DamagedFile` for a link, a pipe or a device, which no run puts there."""
    for path in sorted(folder.iterdir()):
        with suppress(FileNotFoundError):  # a process that still runs may have removed it
            if stat.S_IFMT(path.lstat().st_mode) not in _OF_RUNS:
                raise DamagedFile(path)


def is_run_folder(folder: Path) -> bool:
    """Say whether a folder is that of a run of ``quiesce exec``."""
    return (folder / OWNER).is_file()


def read_left(folder: Path) -> LeftFolder:
    """Return what is known of a folder that nobody owns any more."""
    command: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    with suppress(OSError, ValueError, KeyError, TypeError):
        told = json.loads((folder / OWNER).read_text(encoding="ascii"))
        command, options = tuple(map(str, told["command"])), tuple(map(str, told["options"]))
    status = None
    with suppress(OSError, ValueError):
        status = int((folder / _STATUS).read_text(encoding="ascii"))
    return LeftFolder(folder, command, options, status)


def left_folders() -> Iterator[LeftFolder]:
    """Yield the folders in the temporary folder that killed runs of this user left."""
    for path in sorted(Path(tempfile.gettempdir()).glob(f"{PREFIX}*")):
        with suppress(OSError):
            status = path.lstat()
            is_own = path.is_dir() and not path.is_symlink() and status.st_uid == os.getuid()
            if is_own and _NAME.fullmatch(path.name) and is_run_folder(path) and not is_owned(path):
                yield read_left(path)
