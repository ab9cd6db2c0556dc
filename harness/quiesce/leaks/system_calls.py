"""What the checks ask of the operating system, taken as it was before any test ran.

A wider fixture may replace such functions while a test is checked: ``time.sleep`` by one that raises, ``os`` by a file
system in memory. They are held by a class, for such a file system replaces what modules hold under any name.
"""

from __future__ import annotations

import os
import time
from typing import Any, ClassVar


class SystemCalls:
    """The functions themselves."""

    sleep = staticmethod(time.sleep)
    list_folder = staticmethod(os.listdir)
    read_link = staticmethod(os.readlink)
    open_file = staticmethod(open)
    _real_path: ClassVar[Any] = staticmethod(os.path.realpath)  # overloaded, which mypy does not follow here

    @classmethod
    def is_folder(cls, path: str) -> bool:
        """Whether a folder can be listed."""
        try:
            cls.list_folder(path)
        except OSError:
            return False
        return True

    @classmethod
    def real_path(cls, path: str) -> str:
        """Return a path without symbolic links."""
        return str(cls._real_path(path))
