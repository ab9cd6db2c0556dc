"""What the checks ask of the operating system, taken as it was before any test ran.

A wider fixture may replace such functions while a test is checked: ``time.sleep`` by one that raises, ``os`` by a file
system in memory. They are held by a class, for such a file system replaces what modules hold under any name.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Any, ClassVar, Final

LINE_BYTES: Final = 256
"""More than a line of a few numbers takes."""


class SystemCalls:
    """The functions themselves."""

    sleep = staticmethod(time.sleep)
    monotonic_seconds = staticmethod(time.monotonic)
    processor_seconds = staticmethod(time.process_time)
    processor_count = staticmethod(os.cpu_count)
    process_id = staticmethod(os.getpid)
    thread_id = staticmethod(threading.get_native_id)
    list_folder = staticmethod(os.listdir)
    read_link = staticmethod(os.readlink)
    descriptor_status = staticmethod(os.fstat)
    open_file = staticmethod(open)
    _real_path: ClassVar[Any] = staticmethod(os.path.realpath)  # overloaded, which mypy does not follow here

    _open, _read, _close = staticmethod(os.open), staticmethod(os.read), staticmethod(os.close)
    _times = staticmethod(os.times)
    _status = staticmethod(os.stat)
    _wait = staticmethod(getattr(os, "waitid", None) or (lambda *_: None))

    @classmethod
    def has_children(cls) -> bool:
        """Whether this process has a child, running or ended. It asks the system, and waits for none."""
        try:
            cls._wait(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return False
        return True

    @classmethod
    def is_folder(cls, path: str) -> bool:
        """Whether a folder can be listed."""
        try:
            cls.list_folder(path)
        except OSError:
            return False
        return True

    @classmethod
    def changed(cls, folder: str) -> int:
        """Return when entries of a folder were last made or removed, in nanoseconds; 0 if there is no such folder."""
        try:
            return int(cls._status(folder).st_mtime_ns)
        except OSError:
            return 0

    @classmethod
    def real_path(cls, path: str) -> str:
        """Return a path without symbolic links."""
        return str(cls._real_path(path))

    @classmethod
    def ended_children_seconds(cls) -> float:
        """Return the processor time of the children that were waited for, and of theirs; 0 on Windows."""
        times = cls._times()
        return times.children_user + times.children_system

    @classmethod
    def line(cls, path: str) -> bytes:
        """Return the start of a short file of the system, in a third of the time that :func:`open` takes."""
        file = cls._open(path, os.O_RDONLY)
        try:
            return cls._read(file, LINE_BYTES)
        finally:
            cls._close(file)
