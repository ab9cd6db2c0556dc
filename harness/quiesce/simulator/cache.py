"""The folder that keeps what was compiled, or found out about an environment: the user's cache, or a private one.

In a container the user's home is often missing or read-only. Then a folder in the temporary directory takes its place.
Libraries are loaded from it, so nobody else may be able to write to it (``private_folders``).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from quiesce.errors import ConfigurationError
from quiesce.private_folders import make_private_folder, private_folder, why_open_to_others

VARIABLE: Final = "QUIESCE_CACHE"
_BELOW: Final = Path("quiesce", "simulator")


def cache_folder() -> Path:
    """Return the folder of the cache: one that exists, and that can be written to.

    Raises :class:`quiesce.errors.ConfigurationError` where ``QUIESCE_CACHE`` names another, or where there is none.
    """
    usual = _usual()
    why = _why_unusable(usual)
    if usual is not None and not why:
        return usual
    if os.environ.get(VARIABLE):
        raise ConfigurationError(f"{VARIABLE} names a folder that can't be used: '{usual}' ({why}), or name another")
    try:
        private = private_folder(Path(tempfile.gettempdir()) / f"quiesce-cache-{os.getuid()}")
        return _private_below(private)
    except ConfigurationError as error:
        raise ConfigurationError(f"{error}; or set {VARIABLE} to a folder for compiled libraries") from None


def cache_folders() -> tuple[Path, ...]:
    """Return where something kept may lie: also in a cache that can't be written to, as a container's image has one.

    Raises what :func:`cache_folder` raises, except where such a cache exists.
    """
    usual = _usual()
    readable = (usual,) if usual is not None and usual.is_dir() and not _why_open(usual) else ()
    if readable and os.environ.get(VARIABLE):
        return readable
    return tuple(dict.fromkeys((*readable, cache_folder())))


@contextlib.contextmanager
def alone(lock: Path, waits: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Let one process or thread at a time make something for the cache; ``waits`` is called before this one waits.

    A process that ends, however it does, lets the next one go on. Where no lock can be had, all go on at once: what
    they make is put into its place as a whole.
    """
    try:
        opened = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, stat.S_IRUSR | stat.S_IWUSR)
    except OSError:
        yield
        return
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waits()
                fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


def describe_replacement() -> str:
    """Return why the usual cache is not used, where the other one is, and how to choose; empty where it is used."""
    usual = _usual()
    why = _why_unusable(usual)
    if not why or os.environ.get(VARIABLE):
        return ""
    where = "there is no home folder for a cache" if usual is None else f"the cache '{usual}' can't be used ({why})"
    return f"{where}, so '{cache_folder()}' is used; set {VARIABLE} to choose another folder"


def _usual() -> Path | None:
    """Return the user's cache, which may not exist; None without a home."""
    base = os.environ.get(VARIABLE) or os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / _BELOW
    except RuntimeError:  # what Path.home raises for a user whom the system does not know
        return None


def _why_unusable(folder: Path | None) -> str:
    if folder is None:
        return "no home"
    try:
        make_private_folder(folder)
        why = _why_open(folder)
    except OSError as error:
        return error.strerror or type(error).__name__
    return why or ("" if os.access(folder, os.W_OK | os.X_OK) else "it can't be written to")


def _why_open(folder: Path) -> str:
    """Return why others could have changed what is in a cache; raises :class:`OSError`."""
    for each in (folder.parent, folder):
        why = why_open_to_others(each)
        if why:
            return why if each == folder else f"'{each}': {why}"
    return ""


def _private_below(folder: Path) -> Path:
    for name in _BELOW.parts:
        folder = private_folder(folder / name)
    return folder
