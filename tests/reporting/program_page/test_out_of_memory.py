"""Who held the memory: parts that make up the capacity, and the largest holders."""

from __future__ import annotations

from dataclasses import replace

from quiesce.model.findings import CallSite, Frame
from quiesce.model.program_run import Holder, OutOfMemory
from quiesce.reporting.program_page.holders import make_exhaustion

MIB = 2**20
REFUSED = OutOfMemory(
    thing="device memory",
    device=1,
    requested_bytes=16 * MIB,
    is_injected=False,
    is_first=True,
    capacity_bytes=64 * MIB,
    live_bytes=48 * MIB,
    live_count=3,
    cached_bytes=8 * MIB,
    fragmented_bytes=4 * MIB,
    free_bytes=4 * MIB,
    site=CallSite("asked for by", "cudaMalloc", 9, (Frame("step", "/src/train.py", 8),)),
    holders=(Holder("device memory", 2, 32 * MIB, CallSite("allocated by", "cudaMalloc", 3)),),
    holders_count=4,
)


def test_the_parts_make_up_the_capacity() -> None:
    parts = make_exhaustion(REFUSED).parts
    assert [(part.kind, part.percent) for part in parts] == [
        ("live", 75.0),
        ("cached", 12.5),
        ("fragmented", 6.25),
        ("free", 6.25),
    ]
    assert parts[0].name == "live in 3 blocks"
    assert parts[0].size == "50,331,648 bytes (48 MiB)"


def test_the_request_and_the_capacity_are_said() -> None:
    assert make_exhaustion(REFUSED).sentence == (
        "cudaMalloc asked for 16,777,216 bytes (16 MiB) of device memory on device 1, at call 9, and was "
        "refused (the first refusal). The capacity is 67,108,864 bytes (64 MiB)."
    )
    assert "--fail caused this refusal" in make_exhaustion(replace(REFUSED, is_injected=True)).sentence
    assert "first refusal that was kept" in make_exhaustion(replace(REFUSED, is_first=False)).sentence


def test_holders_have_their_share_of_the_capacity() -> None:
    made = make_exhaustion(REFUSED)
    assert [(each.what, each.size, each.share) for each in made.holders] == [
        ("2 blocks of device memory", "33,554,432 bytes (32 MiB)", 50.0)
    ]
    assert made.left_out == 3


def test_a_device_without_memory_divides_nothing_by_zero() -> None:
    assert [part.percent for part in make_exhaustion(replace(REFUSED, capacity_bytes=0)).parts] == [100.0] * 4
