"""The stock CuPy wheels that run on the simulated runtime, and what is so of each release.

QUIESCE_CUPY names the wheel that has to be there, such as ``cupy-rocm-7-0==14.2.0``; without it the tests are skipped.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
from dataclasses import dataclass
from typing import Final

import pytest

WHEEL: Final = os.environ.get("QUIESCE_CUPY", "")


@dataclass(frozen=True, slots=True)
class Release:
    """A wheel, the flavour that it runs on, and what a pinned and a pageable ``asarray`` come to."""

    flavour: str
    staged_again: bool
    """Whether the extra pinned copy can be seen: the program asks what its source is, and does not heed the answer."""
    refuses_pageable: bool
    """cupy#8335: it does not expect ROCm 5's answer about unregistered memory."""
    pinned_blocks: int
    """Page-locked blocks after a pinned ``asarray``: 2 where it makes another one (cupy#8090)."""
    hands_out_in_flight: bool = False
    """cupy#8789: a pinned source is handed out again while its copy is pending, which the lazy schedule turns into
    other bytes."""
    says_of_memory: str | None = None
    """Whether it takes pinned memory, and then pageable memory, for pinned: 'True False' would be right. 'False True'
    comes of its HIP layer's numbers, which are ROCm 5's, on a runtime that numbers as ROCm 6 does. None: it never asks.
    """
    captures: bool = True
    """Whether it captures streams, which CuPy refused on HIP until 14."""

    @property
    def has_ordered_pools(self) -> bool:
        """Whether it allocates in stream order, which CuPy refuses on HIP."""
        return self.flavour.startswith("cuda")


RELEASES: Final = {
    "cupy-rocm-5-0==12.3.0": Release("hip:5", False, False, 2, captures=False),
    "cupy-rocm-5-0==13.3.0": Release(
        "hip:5", False, True, 1, hands_out_in_flight=True, says_of_memory="True refused", captures=False
    ),
    "cupy-rocm-7-0==14.2.0": Release("hip:7", True, False, 2, says_of_memory="False True"),
    "cupy-cuda12x==12.3.0": Release("cuda:12", False, False, 2),
    "cupy-cuda12x==14.2.0": Release("cuda:12", False, False, 1, says_of_memory="True False"),
    "cupy-cuda13x==14.2.0": Release("cuda:13", False, False, 1, says_of_memory="True False"),
}


def _installed() -> str | None:
    try:
        return importlib.metadata.version(WHEEL.partition("==")[0])
    except importlib.metadata.PackageNotFoundError:
        return None


def _why_not() -> str:
    if not WHEEL:
        return "it needs a CuPy wheel: tox -e cupy-rocm7-14, and its neighbours"
    if _installed() is None:
        return f"there is no wheel of {WHEEL} for {platform.system()} on {platform.machine()}"
    return ""


NEEDS_A_WHEEL: Final = pytest.mark.skipif(bool(_why_not()), reason=_why_not())


@pytest.fixture
def release() -> Release:
    """What is so of the wheel that is installed."""
    assert _installed() == WHEEL.partition("==")[2], f"another release than {WHEEL} is installed"
    return RELEASES[WHEEL]
