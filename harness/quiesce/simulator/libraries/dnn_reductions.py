"""cuDNN: reductions of tensors along those dimensions in which the result has one element."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from quiesce.simulator.libraries.conversation import Array
from quiesce.simulator.libraries.table import NotDescribed

_Reduction = Callable[[Array, tuple[int, ...]], Array]

REDUCTIONS: Final[Mapping[int, _Reduction]] = {
    0: lambda x, along: x.sum(along, keepdims=True),
    1: lambda x, along: x.prod(along, keepdims=True),
    2: lambda x, along: x.min(along, keepdims=True),
    3: lambda x, along: x.max(along, keepdims=True),
    4: lambda x, along: np.abs(x).max(along, keepdims=True),
    5: lambda x, along: x.mean(along, keepdims=True),
    6: lambda x, along: np.abs(x).sum(along, keepdims=True),
    7: lambda x, along: np.sqrt((x * x).sum(along, keepdims=True)),
    8: lambda x, along: np.where(x == 0, 1, x).prod(along, keepdims=True),
}
"""By ``cudnnReduceTensorOp_t``."""


def reduction(operation: int, x: tuple[int, ...], result: tuple[int, ...]) -> Callable[[Array], Array]:
    """Return what makes a tensor of the dimensions ``result`` out of one of the dimensions ``x``."""
    fits = len(x) == len(result) and all(to in (1, length) for length, to in zip(x, result, strict=True))
    if operation not in REDUCTIONS or not fits:
        raise NotDescribed(f"the reduction {operation} of {x} to {result} is not described")
    along = tuple(axis for axis, to in enumerate(result) if to == 1)
    return lambda values: REDUCTIONS[operation](values, along)
