"""What functions of CUDA and HIP would do that are not simulated, by their names.

One that only asks, sets an attribute or names something changes nothing that is judged: clients call such functions to
find out what a device can do. One that allocates, frees, or puts work or an order on a stream leaves a hole in what is
judged.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from typing import Final

from quiesce.amounts import counted


class Effect(enum.StrEnum):
    """What a call would do. The text completes "what it would …"."""

    MAKES = "make"
    FREES = "free"
    ORDERS = "put on a stream or into a graph"


_OF_RUNTIMES: Final = re.compile(r"_*(?:cuda|cu|hipDrv|hip)(?=[A-Z])")
"""How the runtimes' and drivers' own functions begin; those of other libraries have a small letter next."""
_ASKS: Final = re.compile(
    r"Get(?!Mapped)|Query|Version|Find|Enumerate|DebugDotPrint|Export|Attribute(?!sAsync)|SetFlags|SetLimit|MapFlags|"
    r"CacheConfig|SharedMemConfig|Logs|Coredump|Profiler|AsyncNotification|Callback|Occupancy|Encode|Split|Generate|"
    r"TexRefSet|SurfRefSet|TensorMap|SetValid|SetGLDevice|SetVDPAUDevice|ForDevice|ForHost"
)
_FREES: Final = re.compile(
    r"Free|Destroy|Release|Unmap|Unregister|Unbind|Close|Disconnect|Discard|ReturnFrame|Checkpoint$"
)
_ORDERS: Final = re.compile(
    r"^Graph(?!ics)|Memcpy|Memset|Cpy|Launch|Record|Wait|Signal|[Cc]apture|Prefetch|Decompress|AttachMem|BatchMemOp|"
    r"Synchronize|Flush|Write|Subgrid|PresentFrame|Dependencies"
)
_MAKES: Final = re.compile(
    r"[Aa]lloc|Create|Import|Map|Open|Register|Bind|Connect|AcquireFrame|GetMapped|AddDevice|Reserve|Restore$"
)
_MAKES_A_GRAPH: Final = re.compile(r"GraphCreate|GraphConditionalHandleCreate")
_SHOWN_MAX: Final = 3


def effect_of(function: str) -> Effect | None:
    """Return what a function would do that is judged, None where that is nothing or the function is of no runtime."""
    begin = _OF_RUNTIMES.match(function)
    if begin is None:
        return None
    name = re.sub(r"(?:_v\d+)?(?:_ptsz|_ptds|_spt)?$", "", function[begin.end() :].partition(" ")[0])
    if _ASKS.search(name):
        return None
    if _ORDERS.search(name) and not _MAKES_A_GRAPH.search(function):
        return Effect.ORDERS
    if _FREES.search(name):
        return Effect.FREES
    return Effect.MAKES if _MAKES.search(name) else None


def effects_missing(calls: Mapping[str, int]) -> str:
    """Return which calls had effects that are not simulated, by function and number; empty where none had."""
    missing = [(function, number, effect) for function, number in calls.items() if (effect := effect_of(function))]
    if not missing:
        return ""
    shown = [
        f"{function} is not simulated (called {counted(number, 'time')}): what it would {effect} was not judged"
        for function, number, effect in missing[:_SHOWN_MAX]
    ]
    more = [f"nor were {len(missing) - _SHOWN_MAX:,} more functions of this kind"] if len(missing) > _SHOWN_MAX else []
    return f"{'; '.join([*shown, *more])}. Leave that part out, or run it on a GPU"
