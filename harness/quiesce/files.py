"""Writing a file so that a reader sees the old text or the new one, and an error names it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Have every :class:`OSError` within name ``path``: that of a write names no file."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), os.fspath(path)) from error


def write_atomically(path: Path, text: str) -> None:
    """Write ``text`` as UTF-8 to a temporary file beside ``path``, then rename it.

    Raises :class:`OSError`, which names ``path``; nothing of the temporary file is left then.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    with naming(path):
        try:
            with part.open("w", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
