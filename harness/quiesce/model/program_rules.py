"""The rules of memory that a program, rather than its allocator, can break; by name, with a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

FREED_ONCE: Final = "memory_is_freed_once"
OWN_FREED: Final = "only_own_memory_is_freed"
NOT_USED_FREED: Final = "freed_memory_is_not_used"
INSIDE: Final = "uses_stay_inside_their_block"
AFTER_UNCHANGED: Final = "memory_after_a_block_is_unchanged"
LIVE_HANDLES: Final = "destroyed_handles_are_not_used"
COPIES_DIRECTED: Final = "copies_go_in_their_direction"
COPIES_READ_WRITTEN: Final = "copies_read_what_was_written"
COPIED_DIRECTLY: Final = "pinned_sources_are_copied_directly"
ORDERED: Final = "conflicting_uses_are_ordered"
KERNELS_INSIDE: Final = "kernels_stay_inside_blocks"
KERNELS_NOT_FREED: Final = "kernels_use_live_memory"
KERNELS_ALIGNED: Final = "kernels_use_aligned_addresses"
KERNELS_READ_WRITTEN: Final = "kernels_read_what_was_written"
KERNELS_INSIDE_SHARED: Final = "kernels_stay_inside_shared_memory"
KERNELS_INSIDE_LOCAL: Final = "kernels_stay_inside_local_memory"
KERNELS_INSIDE_STACK: Final = "kernels_stay_inside_their_stack"
KERNELS_OWN_DEVICE: Final = "kernels_use_memory_of_their_device"
KERNELS_KEEP_READ_ONLY: Final = "kernels_keep_read_only_memory"
KERNELS_TEXTURES: Final = "kernels_use_live_textures"
KERNELS_INSIDE_SURFACES: Final = "kernels_stay_inside_surfaces"
THREADS_ORDERED: Final = "threads_of_a_block_are_ordered"
BLOCKS_ORDERED: Final = "blocks_of_a_launch_are_ordered"
COPIES_AWAITED: Final = "asynchronous_copies_are_awaited"
BARRIERS_END: Final = "barriers_are_reached"
WAITS_END: Final = "waits_end"
BARRIERS_SAME: Final = "warps_wait_at_one_barrier"
LANES_TAKE_PART: Final = "shuffles_use_lanes_that_take_part"
KERNELS_ANY_ORDER: Final = "results_do_not_depend_on_order"
ERRORS_NOTICED: Final = "errors_of_refused_work_are_noticed"
REFUSALS_SURVIVED: Final = "programs_survive_refusals"

RULES: Final[Mapping[str, str]] = {
    FREED_ONCE: "A block is freed once.",
    OWN_FREED: "A free gets the first address of a block, and uses the function that belongs to its allocation.",
    NOT_USED_FREED: "A block is not used after it was freed.",
    INSIDE: "A use of a block begins and ends within it.",
    AFTER_UNCHANGED: "Nothing is written to the bytes after a block.",
    LIVE_HANDLES: "A stream, an event, a graph or a handle of a library is not used after it was destroyed.",
    COPIES_DIRECTED: "A copy has its source and its target where its direction (`cudaMemcpyKind`) says.",
    COPIES_READ_WRITTEN: "A copy to the host reads device memory only after something wrote it.",
    COPIED_DIRECTLY: "Pinned memory that the program asked about is copied directly, not through another pinned block.",
    ORDERED: "Two uses of the same bytes, one of them a write, are ordered by a stream, an event or a wait.",
    KERNELS_INSIDE: "An access of a kernel begins and ends within one block of memory.",
    KERNELS_NOT_FREED: "A kernel uses no memory whose free came before it in the order of streams.",
    KERNELS_ALIGNED: "An access of a kernel has an address that is a multiple of its size.",
    KERNELS_READ_WRITTEN: "A kernel reads device memory and shared memory only after something wrote it.",
    KERNELS_INSIDE_SHARED: "An access to shared memory stays inside the memory that the block has.",
    KERNELS_INSIDE_LOCAL: "An access to local memory stays inside the arrays that the thread has.",
    KERNELS_INSIDE_STACK: "The calls of a thread fit into the stack that it has (`cudaLimitStackSize`).",
    KERNELS_OWN_DEVICE: "A kernel uses only memory that its device can use.",
    KERNELS_KEEP_READ_ONLY: "A kernel does not write to memory that may only be read.",
    KERNELS_TEXTURES: "A kernel uses no texture or surface object that was destroyed, or that never was one.",
    KERNELS_INSIDE_SURFACES: "An access to a surface that may not leave it (`.trap`) stays inside.",
    THREADS_ORDERED: "Threads of a block share memory, where one of them writes, only with a barrier in between.",
    BLOCKS_ORDERED: "Blocks of a launch share memory that one writes only by atomic operations or a fence and a flag.",
    COPIES_AWAITED: "Shared memory that `cp.async` writes is used only after a wait for the copy.",
    BARRIERS_END: "Threads of a block do not wait for each other for ever.",
    WAITS_END: "Threads of a launch do not wait for memory that none of them changes any more.",
    BARRIERS_SAME: "All threads of a warp wait for their block at the same `__syncthreads()`.",
    LANES_TAKE_PART: "A thread does not use the value of a lane that takes no part in its shuffle.",
    KERNELS_ANY_ORDER: "A kernel leaves the same bytes in whatever order its blocks and threads run.",
    ERRORS_NOTICED: "A program looks at the error of a launch, a copy, a fill, a free, a wait or a record that fails.",
    REFUSALS_SURVIVED: "A program does not crash when a call fails that the run lets fail.",
}
"""Every such rule. What is lost at exit breaks the oracle's rule about quiescence."""
