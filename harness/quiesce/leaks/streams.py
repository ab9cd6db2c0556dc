"""How much a stream in memory holds: its buffer has room for more, so its size moves in steps only."""

from __future__ import annotations

import io
from typing import Any


def held_by_stream(stream: Any) -> int:
    """Return how many bytes or characters an :class:`io.BytesIO` or an :class:`io.StringIO` holds; 0 if it is closed.

    Where it would write next stays as it is, and no code of a subclass runs.
    """
    kind = io.BytesIO if isinstance(stream, io.BytesIO) else io.StringIO
    try:
        return len(kind.getvalue(stream))
    except ValueError:  # closed, or never opened by a subclass
        return 0
