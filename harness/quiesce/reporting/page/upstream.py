"""Numbers of issues, as links, and where the rules that programs break were broken before."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from quiesce.oracle.rules.closing import GROWTH, HANDLES_GONE, NOTHING_LEFT
from quiesce.program_rules import COPIED_DIRECTLY, ORDERED

_NUMBER: Final = re.compile(r"([A-Za-z0-9][\w-]*/[\w.-]+)#(\d+)", re.ASCII)

KNOWN: Final[Mapping[str, tuple[str, ...]]] = {
    ORDERED: ("microsoft/onnxruntime#12913", "rapidsai/rmm#2489", "numba/numba#3508"),
    NOTHING_LEFT: ("NVIDIA/DALI#3402", "jax-ml/jax#39145"),
    HANDLES_GONE: ("LLNL/camp#71", "huggingface/candle#165"),
    GROWTH: ("kokkos/kokkos#3167", "PaddlePaddle/Paddle#64621", "tracel-ai/burn#2487"),
    COPIED_DIRECTLY: ("cupy/cupy#8090",),
    "waits_name_live_streams": ("kokkos/kokkos#8006",),
}
"""Issues about such faults. The corpus has a case for each; a test compares the two."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A number as it was written; ``url`` is '' where it does not say which repository it belongs to."""

    text: str
    url: str


def reference(number: str) -> Reference:
    """Return ``owner/name#7`` with its address on GitHub."""
    match = _NUMBER.fullmatch(number)
    return Reference(number, f"https://github.com/{match[1]}/issues/{match[2]}" if match else "")
