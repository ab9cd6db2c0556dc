"""Rounding of results that lie between two numbers: words of PTX, and their numbers for the native functions."""

from __future__ import annotations

from typing import Final

NEAREST: Final = "rn"
DIRECTED: Final = ("rz", "rm", "rp")
MODES: Final = {"rn": 0, "rz": 1, "rm": 2, "rp": 3, "rna": 4}
"""As ``enum kernel_rounding`` in ``simulator/native/kernels/formats.h`` numbers them."""
TO_INTEGER: Final = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
"""Rounding to whole numbers, by LLVM's names."""
