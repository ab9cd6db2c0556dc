"""A bench with a small device, and benches with any other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest

from quiesce.allocators.reference.world import Parts
from quiesce.model.backend import DeviceProfile

from .bench import Bench

MakeBench: TypeAlias = Callable[..., Bench]


@pytest.fixture
def bench() -> Bench:
    """A bench with 64 MiB of device memory and 16 MiB of pinned memory."""
    return Bench(DeviceProfile(capacity_bytes=64 << 20, pinned_capacity_bytes=16 << 20), Parts())


@pytest.fixture
def make_bench() -> MakeBench:
    """Make a bench; the arguments are those of a device profile."""

    def make(**figures: object) -> Bench:
        return Bench(DeviceProfile(**figures), Parts())  # type: ignore[arg-type]

    return make
