"""Numbers for people: whole, with units, and with plurals that agree; and sizes as people write them."""

from __future__ import annotations

import re
from typing import Final

_UNITS: Final = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")

_SIZE: Final = re.compile(r"(\d{1,18}(?:\.\d{1,9})?) ?(?:B|bytes?|([KMGTPE])iB)?", re.ASCII)
_DECIMAL: Final = re.compile(r"(\d{1,18}(?:\.\d{1,9})?) ?([KMGTPE])i?B?", re.ASCII | re.IGNORECASE)


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


def exact_size(size_bytes: int) -> str:
    """Return a size without loss in the largest unit that it is whole in, as :func:`bytes_from` reads it: ``3 MiB``."""
    power = next((power for power in range(len(_UNITS), 0, -1) if size_bytes and not size_bytes % (1 << 10 * power)), 0)
    return f"{size_bytes >> 10 * power} {_UNITS[power - 1] if power else 'B'}"


def bytes_from(text: str) -> int:
    """Return the size that a text such as ``512``, ``2 KiB`` or ``1.5GiB`` states, in bytes.

    Raises :class:`ValueError`, which says what to write. So it does for ``24 MB``, which has two meanings.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        meant = _DECIMAL.fullmatch(text)
        instead = (
            f"{meant[1]} {meant[2].upper()}iB" if meant else "a number with B, KiB, MiB, GiB or TiB, such as 24 MiB"
        )
        raise ValueError(f"write {instead}")
    power = 0 if match[2] is None else 10 * ("KMGTPE".index(match[2]) + 1)
    whole, _, rest = match[1].partition(".")
    return (int(whole + rest) << power) // int("1" + "0" * len(rest))


def singular(unit: str) -> str:
    """Return ``process`` for ``processes``, and ``thread`` for ``threads``."""
    return unit.removesuffix("es" if unit.endswith("sses") else "s")
