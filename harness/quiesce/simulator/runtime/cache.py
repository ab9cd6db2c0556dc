"""The folder that keeps what was compiled, or found out about an environment: the user's cache, or a private one.

In a container the user's home is often missing or read-only. Then a folder in the temporary directory takes its place.
Libraries are loaded from it, so nobody else may be able to write to it (``private_folders``).

Each file is written whole, and ends with a checksum of its content and its name. A disk may lose what was written last
before a crash, or change it later. What does not have its checksum any more, or what others could have changed, counts
as not there, so that it is made again; one line says so. A library may have bytes after its end, which no loader and no
linker reads.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import struct
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from quiesce.files import make_private_folder, private_folder, why_open_to_others
from quiesce.model.errors import ConfigurationError

VARIABLE: Final = "QUIESCE_CACHE"
_BELOW: Final = Path("quiesce", "simulator")


def cache_folder() -> Path:
    """Return the folder of the cache: one that exists, and that can be written to.

    Raises :class:`ConfigurationError` where ``QUIESCE_CACHE`` names another, or where there is none.
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


def sources_of_libraries() -> list[Path]:
    """Return the files that decide what quiesce writes into a library: its code, and the lists of functions."""
    own = Path(__file__).parent
    return sorted((*own.glob("*.py"), *(own.parent / "functions").glob("*.txt")))


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


_SEAL: Final = struct.Struct("<8sQI")
"""A mark, the size of the content in bytes, and the checksum."""
_MARK: Final = b"quiesce1"
_CHUNK_BYTES: Final = 256 << 10
_FOLDER_SEAL: Final = "files"
"""The file of a kept folder that lists the others."""

_told: set[Path] = set()
_whole: dict[Path, tuple[int, ...]] = {}
"""Which files this process has read through, and how they were."""


def keep(path: Path, content: bytes) -> None:
    """Put a file into its place as a whole; raises :class:`OSError`, and leaves nothing then."""
    opened, part = tempfile.mkstemp(dir=path.parent)  # with mode 0600
    try:
        with os.fdopen(opened, "wb") as file:
            file.write(content)
            file.write(_SEAL.pack(_MARK, len(content), zlib.crc32(content, _start_of(path))))
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)  # noqa: PTH105 - at once: another process may be reading
    except BaseException:
        os.unlink(part)  # noqa: PTH108
        raise
    _sync_folder(path.parent)


def find(path: Path) -> bytes | None:
    """Return what is kept, or None where there is nothing that can be used."""
    try:
        if not _is_ours(path):
            return None
        content = path.read_bytes()
    except OSError:
        return None
    kept, seal = content[: -_SEAL.size], content[-_SEAL.size :]
    if seal == _SEAL.pack(_MARK, len(kept), zlib.crc32(kept, _start_of(path))):
        return kept
    _tell(path, "is damaged")
    return None


def is_whole(path: Path) -> bool:
    """Say whether a file that is kept can be used."""
    try:
        seen = path.stat()
        state = (seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
        if _whole.get(path) == state:
            return True
        if not _is_ours(path):
            return False
        size_bytes = seen.st_size - _SEAL.size
        with path.open("rb", buffering=0) as file:
            if size_bytes >= 0 and _SEAL.pack(_MARK, size_bytes, _checksum(file.fileno(), size_bytes, path)) == (
                file.read()
            ):
                _whole[path] = state
                return True
    except OSError:
        return False
    _tell(path, "is damaged")
    return False


def seal_folder(folder: Path) -> None:
    """Close all files below a folder that is about to be kept, and list them with their checksums."""
    for place, _, names in os.walk(folder):
        Path(place).chmod(0o700)
        for path in (Path(place, name) for name in names):
            if not path.is_symlink():
                path.chmod(0o600)
                with path.open("rb") as file:
                    os.fsync(file.fileno())
    keep(folder / _FOLDER_SEAL, _listed(folder))


def is_folder_whole(folder: Path) -> bool:
    """Say whether a folder that is kept can be used."""
    try:
        if not _is_ours(folder):
            return False
        listed = (folder / _FOLDER_SEAL).read_bytes()[: -_SEAL.size]
        if listed == _listed(folder):
            return True
    except FileNotFoundError:
        if not folder.exists():
            return False
    except OSError:
        return False
    _tell(folder, "is damaged")
    return False


def _listed(folder: Path) -> bytes:
    lines = []
    for place, inner, names in os.walk(folder):
        for name in (*inner, *names):
            path = Path(place, name)
            if path.is_symlink():
                lines.append(f"{path.relative_to(folder)} -> {path.readlink()}")
            elif name != _FOLDER_SEAL and path.is_file():
                content = path.read_bytes()
                lines.append(f"{path.relative_to(folder)} {len(content)} {zlib.crc32(content)}")
    return "\n".join(sorted(lines)).encode("utf-8", "surrogateescape")


def _is_ours(path: Path) -> bool:
    why = why_open_to_others(path)
    if why:
        _tell(path, f"is not used, because {why.partition(';')[0]}")
    return not why


def _start_of(path: Path) -> int:
    """Return where the checksum begins: one under another name is not the same."""
    return zlib.crc32(f"{path.parent.name}/{path.name}".encode("utf-8", "surrogateescape"))


def _checksum(opened: int, size_bytes: int, path: Path) -> int:
    checksum, left_bytes = _start_of(path), size_bytes
    while left_bytes:
        chunk = os.read(opened, min(_CHUNK_BYTES, left_bytes))
        if not chunk:
            break
        checksum, left_bytes = zlib.crc32(chunk, checksum), left_bytes - len(chunk)
    return checksum


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # not every file system can
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _tell(path: Path, what: str) -> None:
    if path in _told:
        return
    _told.add(path)
    with contextlib.suppress(OSError):
        shown = str(path).encode("unicode_escape", "surrogateescape").decode("ascii")
        sys.stderr.write(f"quiesce: '{shown}' in the cache {what}; it is made again\n")
        sys.stderr.flush()
