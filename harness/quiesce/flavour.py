"""The vendors' interfaces that a device can follow."""

from __future__ import annotations

import enum


class Flavour(enum.StrEnum):
    """Whose error codes and rules a simulated device follows."""

    CUDA = "cuda"
    HIP = "hip"
