"""Files and folders that other users or processes may reach: replaced whole, locked, no link followed.

Two kinds. What others may read, or have put there, such as reports: each error names the file. And what nobody but its
user can change, because code is loaded from it or locks are taken in it: what is made has mode 0700 or 0600, whatever
the umask is, and what is found is taken only if it is no symbolic link, belongs to this user and no one else can write.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from quiesce.model.errors import ConfigurationError

_SPECIAL: Final = {
    stat.S_IFIFO: "it is a pipe (FIFO)",
    stat.S_IFCHR: "it is a device",
    stat.S_IFBLK: "it is a device",
    stat.S_IFSOCK: "it is a socket",
    stat.S_IFDIR: "it is a folder",
}
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT: Final = getattr(os, "O_NONBLOCK", 0)
_CLOSED: Final = getattr(os, "O_CLOEXEC", 0)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Have every :class:`OSError` within name ``path``: that of a write names no file."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), os.fspath(path)) from error


def part_of(path: Path) -> Path:
    """Return the name that a file has until it takes the place of ``path``."""
    return path.with_name(f".{path.name}.{os.getpid()}.part")


def create_part(path: Path) -> IO[bytes]:
    """Create the file that will take the place of ``path``; what had its name goes, a link as well as a file."""
    part = part_of(path)
    part.unlink(missing_ok=True)
    return os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | _CLOSED, 0o666), "wb", buffering=0)


def put_in_place(stream: IO[bytes], path: Path) -> None:
    """Give what :func:`create_part` created its name once the disk has it; a link of that name is replaced."""
    os.fsync(stream.fileno())
    part_of(path).replace(path)


def write_atomically(path: Path, text: str) -> None:
    """Write ``text`` as UTF-8 to a temporary file beside ``path``, then rename it.

    Raises :class:`OSError`, which names ``path``; nothing of the temporary file is left then.
    """
    with naming(path):
        try:
            with create_part(path) as stream:
                write_whole(stream, text.encode())
                put_in_place(stream, path)
        except BaseException:
            part_of(path).unlink(missing_ok=True)
            raise


def write_whole(stream: IO[bytes], content: bytes) -> None:
    """Write all of a content to a file without a buffer, which may take a part of it at a time."""
    remaining = memoryview(content)
    while remaining:
        remaining = remaining[stream.write(remaining) :]


def open_regular(path: str | os.PathLike[str], *, follows: bool = False) -> int:
    """Open a file for reading, and return its descriptor. Raises :class:`OSError` for anything but a regular file.

    A pipe is not waited for, and nothing without an end is read. ``follows``: a link may lead there.
    """
    try:
        opened = os.open(path, os.O_RDONLY | _NO_WAIT | _CLOSED | (0 if follows else _NO_LINK))
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a symbolic link, and none is followed", os.fspath(path)) from None
        raise
    kind = stat.S_IFMT(os.fstat(opened).st_mode)
    if kind == stat.S_IFREG:
        return opened
    os.close(opened)
    raise OSError(errno.EINVAL, f"{_SPECIAL.get(kind, 'it is special')}, and no regular file", os.fspath(path))


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Keep other processes from a folder that they lock, too. Raises :class:`OSError` where one has it now.

    Where folders can't be locked, as on some network file systems, nobody is kept from anything.
    """
    try:
        import fcntl

        opened = os.open(folder, os.O_RDONLY | _CLOSED)
    except (ImportError, OSError):
        yield
        return
    try:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            why = "another run of quiesce writes its reports here until it ends"
            raise OSError(errno.EBUSY, why, os.fspath(folder)) from None
        except OSError:
            yield
            return
        try:
            yield
        finally:
            fcntl.flock(opened, fcntl.LOCK_UN)  # children of fork() have it open, too
    finally:
        os.close(opened)


_FOLDER_MODE: Final = stat.S_IRWXU
_FILE_MODE: Final = stat.S_IRUSR | stat.S_IWUSR
_WRITTEN_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
_ROOT: Final = 0


def private_folder(path: Path) -> Path:
    """Return ``path``, a folder that is made with its parents where it is not there.

    Raises :class:`ConfigurationError` where others can change it, and :class:`OSError` where it
    can't be
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
