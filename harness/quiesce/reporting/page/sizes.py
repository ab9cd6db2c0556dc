"""Numbers of bytes in words, and in a range that every browser can draw."""

from __future__ import annotations

from typing import Final

BYTES_MAX: Final = 2**70
"""Beyond the exbibyte nobody measures; a driver that answers more is shown as this much."""
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def bounded(size_bytes: int) -> int:
    """Return ``size_bytes`` between plus and minus :data:`BYTES_MAX`; a broken counter may be below 0."""
    return max(-BYTES_MAX, min(BYTES_MAX, size_bytes))


def format_bytes(size_bytes: int) -> str:
    """Return ``64 MiB``, ``1.5 GiB`` or ``-16 B``: at most two decimals, none where the number is round."""
    size = bounded(size_bytes)
    power = 0
    while power < len(_UNITS) - 1 and abs(size) >= 1024 ** (power + 1):
        power += 1
    number = f"{size / 1024**power:.2f}".rstrip("0").rstrip(".")
    return f"{number} {_UNITS[power]}"
