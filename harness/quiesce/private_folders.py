"""Folders and files that nobody but their user can change: code is loaded from them, and locks are taken in them.

What is made here has mode 0700 or 0600, whatever the umask is. What is found is taken only if it is no symbolic link,
if it belongs to this user or to root, and if nobody else may write to it or put another in its place.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

from quiesce.errors import ConfigurationError

_FOLDER_MODE: Final = stat.S_IRWXU
_FILE_MODE: Final = stat.S_IRUSR | stat.S_IWUSR
_WRITTEN_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
_ROOT: Final = 0


def private_folder(path: Path) -> Path:
    """Return ``path``, a folder that is made with its parents where it is not there.

    Raises :class:`quiesce.errors.ConfigurationError` where others can change it, and :class:`OSError` where it can't be
    made.
    """
    make_private_folder(path)
    why = why_open_to_others(path) or ("" if path.is_dir() else "it is no folder; remove it")
    if why:
        raise ConfigurationError(f"'{path}' is not used, because {why}")
    return path


def make_private_folder(path: Path) -> None:
    """Make a folder and its parents where they are not there; raises :class:`OSError` where that can't be done."""
    if path.is_dir():
        return
    if not path.parent.is_dir() and path.parent != path:
        make_private_folder(path.parent)
    try:
        path.mkdir(mode=_FOLDER_MODE)
    except FileExistsError:  # another process made it, or it is something else
        return
    path.chmod(_FOLDER_MODE)  # a umask may have taken more away


def open_private_file(path: Path) -> int:
    """Open a file to read and write, made where it is not there, and return its descriptor.

    Raises as :func:`private_folder` does.
    """
    try:
        opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, _FILE_MODE)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise ConfigurationError(f"'{path}' is not used, because it is a symbolic link; remove it") from None
    why = _why_changed_by_others(os.fstat(opened)) or _why_replaced_by_others(path.parent)
    if why:
        os.close(opened)
        raise ConfigurationError(f"'{path}' is not used, because {why}")
    return opened


def why_open_to_others(path: Path) -> str:
    """Return why others may have made or changed what is at ``path``, and what to do; empty where nobody may.

    Raises :class:`OSError` where there is nothing.
    """
    return _why_changed_by_others(path.lstat()) or _why_replaced_by_others(path.parent)


def _why_changed_by_others(seen: os.stat_result) -> str:
    if stat.S_ISLNK(seen.st_mode):
        return "it is a symbolic link; remove it"
    if not stat.S_ISDIR(seen.st_mode) and not stat.S_ISREG(seen.st_mode):
        return "it is neither a folder nor a file; remove it"
    if seen.st_uid not in (_ROOT, os.geteuid()):
        return f"it belongs to user {seen.st_uid}; remove it"
    if seen.st_mode & _WRITTEN_BY_OTHERS:
        return f"others may write to it, for its mode is {stat.S_IMODE(seen.st_mode):04o}; remove it"
    return ""


def _why_replaced_by_others(folder: Path) -> str:
    """Return why others may put something else into a folder in place of what is there."""
    seen = folder.stat()
    others = seen.st_mode & _WRITTEN_BY_OTHERS
    if seen.st_uid == seen.st_gid == os.geteuid():
        others &= ~stat.S_IWGRP  # a group of the user's own, whose umask is 002 on many systems
    if not others or seen.st_mode & stat.S_ISVTX:
        return ""
    return f"others may replace it: run chmod go-w '{folder}', or choose another folder"
