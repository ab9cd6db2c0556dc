"""The values of special registers: where a thread is, how large the grid is, and clocks.

https://docs.nvidia.com/cuda/parallel-thread-execution/#special-registers
"""

from __future__ import annotations

from collections.abc import Callable

from quiesce.model.errors import RefusedKernel
from quiesce.simulator.kernels.translation.llvm_code import (
    BLOCK,
    BLOCK_INDEX,
    DYNAMIC_BYTES,
    GRID,
    GRID_WORKSPACE,
    SHARED_BYTES,
    Code,
    Shape,
)

_AXES = "xyz"
MULTIPROCESSOR_WARPS = 64  # 2048 threads, as the device has that is simulated
_ZERO = frozenset({"smid", "gridid", "is_explicit_cluster", "cluster_ctarank", "aggr_smem_size", "current_graph_exec"})
_ONE = frozenset({"nsmid", "cluster_nctarank"})
_SIZES = {
    **{"ntid": BLOCK, "ctaid": BLOCK_INDEX, "nctaid": GRID},
    **{"clusterid": BLOCK_INDEX, "nclusterid": GRID},  # each block is a cluster of its own
}


def special_value(code: Code, shape: Shape, name: str, refuse: Callable[[str], RefusedKernel]) -> tuple[str, int]:
    """Return the value of a special register, and how many bits it has."""
    base, _, axis = name.removeprefix("%").partition(".")
    if base.startswith("lanemask_"):
        return _lane_mask(code, shape, base.removeprefix("lanemask_")), 32
    if base.startswith(("clock", "globaltimer")):
        return _clock(code, base)
    if axis == "w" or base in _ZERO or base == "cluster_ctaid":
        return "0", 32
    if base in _ONE or base == "cluster_nctaid":
        return "1", 32
    if base == "tid":
        return shape.index(code, _AXES.index(axis)), 32
    if base in _SIZES:
        return shape.context(code, _SIZES[base] + 4 * _AXES.index(axis), "i32"), 32
    if base in ("laneid", "warpid"):
        linear = shape.linear(code)
        return code.define(f"and i32 {linear}, 31" if base == "laneid" else f"lshr i32 {linear}, 5"), 32
    if base == "nwarpid":
        return str(MULTIPROCESSOR_WARPS), 32
    if base in (
        "envreg1",
        "envreg2",
    ):  # where the driver tells of the memory that a grid waits with, as its headers read
        workspace = shape.context(code, GRID_WORKSPACE, "i64")
        part = code.define(f"lshr i64 {workspace}, 32") if base == "envreg1" else workspace
        return code.cast(part, 64, 32), 32
    if base in ("dynamic_smem_size", "total_smem_size"):
        return shape.context(code, DYNAMIC_BYTES if base == "dynamic_smem_size" else SHARED_BYTES, "i32"), 32
    raise refuse(f"'{name}' is not executed")


def _lane_mask(code: Code, shape: Shape, which: str) -> str:
    own = code.define(f"shl i32 1, {code.define(f'and i32 {shape.linear(code)}, 31')}")
    below = code.define(f"sub i32 {own}, 1")
    if which in ("eq", "lt"):
        return own if which == "eq" else below
    if which == "ge":
        return code.define(f"xor i32 {below}, -1")
    up_to = code.define(f"or i32 {below}, {own}")
    return up_to if which == "le" else code.define(f"xor i32 {up_to}, -1")


def _clock(code: Code, which: str) -> tuple[str, int]:
    now = code.call("i64", "quiesce_kernel_clock")
    if which in ("clock64", "globaltimer"):
        return now, 64
    part = code.define(f"lshr i64 {now}, 32") if which.endswith("_hi") else now
    return code.cast(part, 64, 32), 32
