"""What kernels may do to memory: for each observation the rule that it breaks, its kind, and what would be right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from quiesce.kinds import Kind
from quiesce.program_rules import (
    BARRIERS_END,
    BARRIERS_SAME,
    BLOCKS_ORDERED,
    COPIES_AWAITED,
    FREED_ONCE,
    KERNELS_ALIGNED,
    KERNELS_ANY_ORDER,
    KERNELS_INSIDE,
    KERNELS_INSIDE_LOCAL,
    KERNELS_INSIDE_SHARED,
    KERNELS_INSIDE_STACK,
    KERNELS_INSIDE_SURFACES,
    KERNELS_KEEP_READ_ONLY,
    KERNELS_NOT_FREED,
    KERNELS_OWN_DEVICE,
    KERNELS_READ_WRITTEN,
    KERNELS_TEXTURES,
    LANES_TAKE_PART,
    OWN_FREED,
    THREADS_ORDERED,
    WAITS_END,
)
from quiesce.simulator.ledger import Seen


@dataclass(frozen=True, slots=True)
class KernelRule:
    """What a kernel has to do, and what it is when it does not."""

    name: str
    kind: Kind
    expected: str


BARRIER_OF_BLOCK: Final = "a barrier of the block between the two accesses: __syncthreads()"
BARRIER_OF_WARP: Final = "a barrier of the warp between the two accesses: __syncwarp()"
_ORDER_OF_BLOCKS: Final = (
    "an order of the two blocks: an atomic operation (atomicAdd) for both accesses; or __threadfence() after the first "
    "one and a flag, which the other block looks at before the second; or a second launch"
)
KERNEL_RULES: Final[Mapping[Seen, KernelRule]] = {
    Seen.KERNEL_OUT_OF_BOUNDS: KernelRule(KERNELS_INSIDE, Kind.OUT_OF_BOUNDS, "an access that stays inside a block"),
    Seen.KERNEL_USED_FREED: KernelRule(KERNELS_NOT_FREED, Kind.USE_AFTER_FREE, "live memory"),
    Seen.KERNEL_MISALIGNED: KernelRule(
        KERNELS_ALIGNED, Kind.MISALIGNED, "an address that is a multiple of the size of the access"
    ),
    Seen.KERNEL_READ_UNWRITTEN: KernelRule(KERNELS_READ_WRITTEN, Kind.UNWRITTEN, "memory that was written before"),
    Seen.KERNEL_SHARED_UNWRITTEN: KernelRule(
        KERNELS_READ_WRITTEN, Kind.UNWRITTEN, "shared memory that a thread of the block wrote before"
    ),
    Seen.KERNEL_OUTSIDE_SHARED: KernelRule(
        KERNELS_INSIDE_SHARED, Kind.OUT_OF_BOUNDS, "an access that stays inside the shared memory of the block"
    ),
    Seen.KERNEL_OUTSIDE_ARRAY: KernelRule(
        KERNELS_INSIDE_SHARED, Kind.OUT_OF_BOUNDS, "an access that stays inside its array of shared memory"
    ),
    Seen.KERNEL_OUTSIDE_LOCAL: KernelRule(
        KERNELS_INSIDE_LOCAL, Kind.OUT_OF_BOUNDS, "an access that stays inside the local memory of the thread"
    ),
    Seen.KERNEL_NO_MEMORY: KernelRule(KERNELS_OWN_DEVICE, Kind.WRONG_MEMORY, "memory that the device can use"),
    Seen.KERNEL_OTHER_DEVICE: KernelRule(KERNELS_OWN_DEVICE, Kind.WRONG_MEMORY, "memory that the device can use"),
    Seen.KERNEL_RACE_IN_SHARED: KernelRule(THREADS_ORDERED, Kind.RACE, BARRIER_OF_BLOCK),
    Seen.KERNEL_RACE_IN_WARP: KernelRule(THREADS_ORDERED, Kind.RACE, BARRIER_OF_WARP),
    Seen.KERNEL_RACE_OF_BLOCKS: KernelRule(BLOCKS_ORDERED, Kind.RACE, _ORDER_OF_BLOCKS),
    Seen.KERNEL_MEMORY_RACE_IN_BLOCK: KernelRule(THREADS_ORDERED, Kind.RACE, BARRIER_OF_BLOCK),
    Seen.KERNEL_MEMORY_RACE_IN_WARP: KernelRule(THREADS_ORDERED, Kind.RACE, BARRIER_OF_WARP),
    Seen.KERNEL_OUTSIDE_HEAP: KernelRule(KERNELS_INSIDE, Kind.OUT_OF_BOUNDS, "an access that stays inside a block"),
    Seen.KERNEL_FREED_IN_HEAP: KernelRule(KERNELS_NOT_FREED, Kind.USE_AFTER_FREE, "live memory"),
    Seen.KERNEL_OTHERS_LOCAL: KernelRule(
        KERNELS_INSIDE_LOCAL, Kind.OUT_OF_BOUNDS, "an access that stays inside the local memory of the thread"
    ),
    Seen.KERNEL_USED_UNCOPIED: KernelRule(
        COPIES_AWAITED, Kind.RACE, "a wait for the copy before the access: __pipeline_wait_prior(), cp.async.wait_group"
    ),
    Seen.KERNEL_WAITS_FOR_EVER: KernelRule(
        BARRIERS_END, Kind.DEADLOCK, "a barrier that all threads which have not ended come to"
    ),
    Seen.KERNEL_STACK_OVERFLOW: KernelRule(
        KERNELS_INSIDE_STACK, Kind.STACK_OVERFLOW, "calls that fit into the stack, or a larger cudaLimitStackSize"
    ),
    Seen.KERNEL_LOOKS_FOR_EVER: KernelRule(
        WAITS_END,
        Kind.DEADLOCK,
        "a thread that writes what the others wait for, or a grid.sync() that all blocks come to",
    ),
    Seen.KERNEL_BARRIERS_DIFFER: KernelRule(
        BARRIERS_SAME,
        Kind.DIVERGENT_BARRIER,
        "the same __syncthreads() for all threads of a warp, outside of a branch or a loop that only some of them take",
    ),
    Seen.KERNEL_WARP_LEFT: KernelRule(
        BARRIERS_SAME,
        Kind.DIVERGENT_BARRIER,
        "a __syncthreads() that all threads of a warp come to, outside of a branch or a loop that some leave out",
    ),
    Seen.KERNEL_NO_TEXTURE: KernelRule(KERNELS_TEXTURES, Kind.DEAD_HANDLE, "a texture or surface object that exists"),
    Seen.KERNEL_OUTSIDE_SURFACE: KernelRule(
        KERNELS_INSIDE_SURFACES, Kind.OUT_OF_BOUNDS, "an access that stays inside the surface"
    ),
    Seen.KERNEL_DEPENDS_ON_ORDER: KernelRule(
        KERNELS_ANY_ORDER, Kind.ORDER, "the same bytes in whatever order the blocks and threads run"
    ),
    Seen.KERNEL_SHUFFLES_ABSENT: KernelRule(
        LANES_TAKE_PART, Kind.ABSENT_LANE, "a source lane that is in the mask of the shuffle and comes to it"
    ),
    Seen.KERNEL_FREED_TWICE: KernelRule(FREED_ONCE, Kind.DOUBLE_FREE, "one free of each block"),
    Seen.KERNEL_FREED_FOREIGN: KernelRule(
        OWN_FREED, Kind.INVALID_FREE, "the first address of a block that malloc or new of a kernel returned"
    ),
    Seen.KERNEL_READ_ONLY: KernelRule(KERNELS_KEEP_READ_ONLY, Kind.READ_ONLY, "memory that may be written"),
}
