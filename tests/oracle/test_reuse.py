"""What becomes of the memory of a pool that is destroyed."""

from __future__ import annotations

import pytest

from quiesce.allocators.oracle.memory import SOME_POOL
from quiesce.model import operations as ops
from quiesce.model.outcomes import Allocated

from .test_footprints import Told

START = 1 << 30


def destroyed(*, empty_at: int | None) -> Told:
    """Tell of a pool with a block, and a block of no bytes at an address, and then that the pool is destroyed."""
    told = Told().of(ops.CreatePool("p")).seen_block("a", START, 512, 4096, pool="p")
    if empty_at is not None:
        told.of(ops.Allocate("e", 0), Allocated(empty_at))
    return told.of(ops.DestroyPool("p"))


def owners(told: Told) -> list[str | None]:
    return [held.pool for _, _, held in told.model.memory.backing]


def test_what_lives_of_it_is_an_orphan() -> None:
    told = destroyed(empty_at=None)
    assert "p" not in told.model.pools
    assert "a" not in told.model.blocks
    assert told.model.empty_blocks == {"a": range(START, START + 512)}
    (owner,) = owners(told)
    assert owner in told.model.orphans


@pytest.mark.parametrize(
    ("at", "is_certain"), [(START + 1024, False), (START + 4096, False), (START - 1, True), (START + 4097, True)]
)
def test_a_block_of_no_bytes_may_be_what_keeps_its_memory(at: int, is_certain: bool) -> None:
    told = destroyed(empty_at=at)
    (owner,) = owners(told)
    assert (owner == SOME_POOL) != is_certain
    assert (owner in told.model.orphans) == is_certain
