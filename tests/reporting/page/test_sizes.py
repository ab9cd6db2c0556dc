from __future__ import annotations

import pytest

from quiesce.reporting.page.scale import BYTES_MAX, bounded, format_bytes


@pytest.mark.parametrize(
    ("size_bytes", "words"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (96 * 2**20, "96 MiB"),
        (3 * 2**29, "1.5 GiB"),
        (2**64 - 512, "16 EiB"),
        (-(2**20), "-1 MiB"),
        (10**400, "1024 EiB"),
    ],
)
def test_bytes_have_binary_units(size_bytes: int, words: str) -> None:
    assert format_bytes(size_bytes) == words


def test_what_no_browser_can_draw_is_bounded() -> None:
    assert (bounded(10**400), bounded(-(10**400)), bounded(-7)) == (BYTES_MAX, -BYTES_MAX, -7)
