"""Text that only the page's script reads, made small: it has no character that could end an element."""

from __future__ import annotations

import base64
import zlib


def pack(text: str) -> str:
    """Return text compressed (RFC 1950) and in base64, for ``atob`` and ``DecompressionStream("deflate")``."""
    return base64.b64encode(zlib.compress(text.encode("utf-8"), level=9)).decode("ascii")
