"""Files that others may read, or have put there: replaced whole, locked, no link followed, and named in each error."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

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
