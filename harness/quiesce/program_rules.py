"""The rules of memory that a program, rather than an allocator behind it, can break; by name, with a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

FREED_ONCE: Final = "memory_is_freed_once"
OWN_FREED: Final = "only_own_memory_is_freed"
NOT_USED_FREED: Final = "freed_memory_is_not_used"
INSIDE: Final = "uses_stay_inside_their_block"
BEHIND_SURVIVES: Final = "memory_behind_a_block_survives"
LIVE_HANDLES: Final = "destroyed_handles_are_not_used"
COPIED_DIRECTLY: Final = "pinned_sources_are_copied_directly"
ORDERED: Final = "conflicting_uses_are_ordered"

RULES: Final[Mapping[str, str]] = {
    FREED_ONCE: "A block is freed once.",
    OWN_FREED: "What is freed begins a block, and the function that frees it belongs to the one that allocated it.",
    NOT_USED_FREED: "A block is not used once it was freed.",
    INSIDE: "A use of a block begins and ends within it.",
    BEHIND_SURVIVES: "The bytes behind a block are not written to.",
    LIVE_HANDLES: "A stream, an event or a graph is not used once it was destroyed.",
    COPIED_DIRECTLY: "Data is not copied through another pinned block where the program asked whether it is pinned.",
    ORDERED: "Two uses of the same bytes, of which one writes, are ordered by a stream, an event or a wait.",
}
"""Every such rule. What is lost at exit breaks the oracle's rule about quiescence."""
