"""Numbers for people: whole, with units, and with plurals that agree."""

from __future__ import annotations

from typing import Final

_UNITS: Final = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def counted(count: int, thing: str) -> str:
    """Return ``1 block`` or ``2,000 blocks``."""
    return f"{count:,} {thing}" + ("" if count == 1 else "s")


def bytes_in_words(size_bytes: int) -> str:
    """Return ``512 bytes``, ``1,048,576 bytes (1 MiB)`` or ``1,500,000 bytes (1.4 MiB)``."""
    exact = counted(size_bytes, "byte")
    if abs(size_bytes) < 1024:
        return exact
    power = min((abs(size_bytes).bit_length() - 1) // 10, len(_UNITS))
    whole, rest = divmod(size_bytes, 1 << 10 * power)
    amount = f"{whole:,}" if not rest else f"{size_bytes / (1 << 10 * power):,.1f}"
    return f"{exact} ({amount} {_UNITS[power - 1]})"
