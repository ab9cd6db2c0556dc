"""Files of the cache: each is written whole, and ends with a checksum of its content and its name.

A disk may lose what was written last before a crash, or change it later. What does not have its checksum any more, or
what others could have changed, counts as not there, so that it is made again; one line says so. A library may have
bytes after its end, which no loader and no linker reads.
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Final

from quiesce.private_folders import why_open_to_others

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
