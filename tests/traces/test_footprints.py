"""Which bytes two uses share, compared with sets of them."""

from __future__ import annotations

import random

import pytest

from quiesce.simulator.judge.masks import Mask, shared_bytes


def bytes_of(mask: Mask, low: int, high: int) -> set[int]:
    period = 8 * len(mask.bits)
    return {
        at
        for at in range(low, high)
        if mask.bits[(at - mask.start) % period // 8] >> (at - mask.start) % period % 8 & 1
    }


@pytest.mark.parametrize("chunk_bytes", [1 << 23, 7, 64])
@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_what_all_masks_mean(count: int, chunk_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quiesce.simulator.judge.masks._CHUNK_BYTES", chunk_bytes)
    draw = random.Random(count)
    nothing = 0
    for _ in range(200):
        low = draw.randrange(1000, 1100)
        high = low + draw.choice((0, 1, 8, 9, 63, 200))
        masks = [
            Mask(
                draw.randrange(900, 1000), bytes(draw.choice((0, 0x81, 0xFF, 0x71)) for _ in range(draw.randint(1, 9)))
            )
            for _ in range(count)
        ]
        expected = set(range(low, high)).intersection(*(bytes_of(mask, low, high) for mask in masks))
        given = [*masks, *[None] * draw.randint(0, 2)]
        draw.shuffle(given)
        assert shared_bytes(low, high, *given) == ((min(expected), len(expected)) if expected else None)
        nothing += not expected
    assert 10 < nothing < 190


def test_a_mask_begins_again() -> None:
    mask = Mask(100, b"\x05\x80")
    assert [at for at in range(100, 140) if mask.between(at, at + 1)] == [100, 102, 115, 116, 118, 131, 132, 134]
    assert mask.between(100, 117) == 0b1_1000_0000_0000_0101
