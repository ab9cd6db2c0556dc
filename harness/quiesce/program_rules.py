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
COPIED_DIRECTLY: Final = "pinned_sources_are_copied_directly"
ORDERED: Final = "conflicting_uses_are_ordered"

RULES: Final[Mapping[str, str]] = {
    FREED_ONCE: "A block is freed once.",
    OWN_FREED: "A free gets the first address of a block, and uses the function that belongs to its allocation.",
    NOT_USED_FREED: "A block is not used after it was freed.",
    INSIDE: "A use of a block begins and ends within it.",
    AFTER_UNCHANGED: "Nothing is written to the bytes after a block.",
    LIVE_HANDLES: "A stream, an event, a graph or a handle of a library is not used after it was destroyed.",
    COPIED_DIRECTLY: "Pinned memory that the program asked about is copied directly, not through another pinned block.",
    ORDERED: "Two uses of the same bytes, one of them a write, are ordered by a stream, an event or a wait.",
}
"""Every such rule. What is lost at exit breaks the oracle's rule about quiescence."""
