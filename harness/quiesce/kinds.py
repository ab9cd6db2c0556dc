"""The kinds of mistakes that findings show, in the words that an engineer searches for."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

from quiesce.contract import DRIVER_RULES, IN_TIME, SURVIVES


class Kind(enum.StrEnum):
    """The kind of a mistake. A rule says what must hold; its kind says what usually went wrong."""

    RACE = "race"
    EARLY_RELEASE = "early release"
    EARLY_COMPLETION = "early completion"
    MISSED_COMPLETION = "missed completion"
    DEAD_STREAM = "wait for a destroyed stream"
    DEAD_HANDLE = "use of a destroyed handle"
    USE_AFTER_FREE = "use after free"
    DOUBLE_FREE = "double free"
    INVALID_FREE = "invalid free"
    OUT_OF_BOUNDS = "out-of-bounds use"
    OVERFLOW = "buffer overflow"
    STACK_OVERFLOW = "stack overflow"
    OVERLAP = "overlapping blocks"
    FOREIGN_MEMORY = "block outside its pool"
    SIZE_OVERFLOW = "size overflow"
    MISALIGNED = "misaligned address"
    MEMORY_LEAK = "memory leak"
    HANDLE_LEAK = "handle leak"
    NOT_RELEASED = "memory not released"
    MISSING_RETRY = "missing retry"
    NOT_REUSED = "memory not reused"
    FRAGMENTATION = "fragmentation"
    LIMIT = "limit exceeded"
    SWALLOWED_ERROR = "swallowed error"
    WRONG_COUNTER = "wrong counter"
    NEEDLESS_COPY = "needless copy of pinned memory"
    UNWRITTEN = "read of memory that was not written"
    WRONG_DIRECTION = "copy in the wrong direction"
    WRONG_MEMORY = "access to memory of another device or of the host"
    READ_ONLY = "write to read-only memory"
    DIVERGENT_BARRIER = "divergent barrier"
    ABSENT_LANE = "value of a lane that takes no part"
    DEADLOCK = "deadlock of the threads of a kernel"
    ORDER = "result that depends on the order of threads"
    UNMET_EXPECTATION = "unmet expectation"
    GROWING_COST = "growing cost"
    REFUSED_REQUEST = "refused valid request"
    SERVED_MISUSE = "served invalid request"
    WRONG_ERROR = "wrong error"
    BROKEN_CONTRACT = "broken contract of a backend"
    PROTOCOL = "protocol error"
    CRASH = "crash"
    HANG = "hang"
    FAILED_PROGRAM = "failed program"
    OUTDATED_EXPECTATION = "outdated expectation"


LOST_REFERENCES: Final = "lost references"
"""The kind of a leak check's finding about references that native code gives back and does not own."""

SENTENCES: Final[Mapping[str, str]] = {
    Kind.RACE: "Two uses of the same memory have no order.",
    Kind.EARLY_RELEASE: "Memory is released while it is owned or in use.",
    Kind.EARLY_COMPLETION: "Work is reported complete while it is pending.",
    Kind.MISSED_COMPLETION: "Work is reported pending after it is complete.",
    Kind.DEAD_STREAM: "A wait names an event of a stream that was destroyed.",
    Kind.DEAD_HANDLE: "A stream, an event, a graph or a handle of a library is used after it was destroyed.",
    Kind.USE_AFTER_FREE: "Memory is used after it was freed.",
    Kind.DOUBLE_FREE: "A block is freed a second time.",
    Kind.INVALID_FREE: "A free gets an address that no matching allocation returned.",
    Kind.OUT_OF_BOUNDS: "A use begins or ends outside its block.",
    Kind.OVERFLOW: "Bytes after a block are overwritten.",
    Kind.STACK_OVERFLOW: "Functions of a kernel call each other deeper than a thread has stack for.",
    Kind.OVERLAP: "The same bytes are handed out twice.",
    Kind.FOREIGN_MEMORY: "A block lies in memory that its pool did not take.",
    Kind.SIZE_OVERFLOW: "A size or an address wraps around.",
    Kind.MISALIGNED: "An address is not a multiple of its alignment.",
    Kind.MEMORY_LEAK: "Memory that nobody owns is never freed.",
    Kind.HANDLE_LEAK: "A stream, an event, a graph, an instance or a handle of a library is never destroyed.",
    Kind.NOT_RELEASED: "A pool keeps memory that it was told to release.",
    Kind.MISSING_RETRY: "A request fails although memory could be reclaimed for it.",
    Kind.NOT_REUSED: "A pool takes new memory although memory that was freed would do.",
    Kind.FRAGMENTATION: "Blocks of odd sizes keep memory from being reused.",
    Kind.LIMIT: "More memory is handed out than the limit allows.",
    Kind.SWALLOWED_ERROR: "An error of a call below is not reported.",
    Kind.WRONG_COUNTER: "A counter disagrees with the requests that were made.",
    Kind.NEEDLESS_COPY: "Pinned memory is copied through another pinned block.",
    Kind.UNWRITTEN: "A kernel or a copy to the host reads memory that nobody has written.",
    Kind.WRONG_DIRECTION: "A copy names a direction that its addresses do not have.",
    Kind.WRONG_MEMORY: "A kernel uses an address that its device has no access to.",
    Kind.READ_ONLY: "A kernel writes to memory that may only be read.",
    Kind.ORDER: "A kernel leaves other bytes if its blocks and threads run in another order.",
    Kind.DIVERGENT_BARRIER: "Threads of one warp do not all wait at the same barrier.",
    Kind.ABSENT_LANE: "A shuffle takes a value from a lane of the warp that does not take part in it.",
    Kind.DEADLOCK: "Threads of a kernel wait for each other, and none of them can go on.",
    Kind.UNMET_EXPECTATION: "A gauge reads another amount than the case expects.",
    Kind.GROWING_COST: "The same request costs more each time it is repeated.",
    Kind.REFUSED_REQUEST: "A request that is valid is not served.",
    Kind.SERVED_MISUSE: "A request that is invalid is served.",
    Kind.WRONG_ERROR: "A request fails with another error than the documented one.",
    Kind.BROKEN_CONTRACT: "A backend does not do what the contract of backends asks, or what it claims.",
    Kind.PROTOCOL: "A driver program does not keep to the wire protocol.",
    Kind.CRASH: "A process ends before it has answered or finished.",
    Kind.HANG: "A process gives no answer, or no end, in time.",
    Kind.FAILED_PROGRAM: "A program ends with another exit status than 0.",
    Kind.OUTDATED_EXPECTATION: "A known defect is gone, but a file still says that it is there.",
}
"""Each kind in a sentence."""

_OF_FAULTS: Final[Mapping[str, Kind]] = {
    **dict.fromkeys(DRIVER_RULES, Kind.PROTOCOL),
    SURVIVES: Kind.CRASH,
    IN_TIME: Kind.HANG,
    "device_survives_every_request": Kind.CRASH,
    "live_blocks_do_not_overlap": Kind.OVERLAP,
    "frees_match_allocations": Kind.INVALID_FREE,
    "block_contents_survive": Kind.OVERFLOW,
}
"""The kinds of mistakes that backends notice by themselves, by the rule that each names."""


def kind_of_fault(rule: str) -> Kind:
    """Return the kind of mistake that breaks a rule of :mod:`quiesce.contract`, or one that a backend names."""
    return _OF_FAULTS.get(rule, Kind.BROKEN_CONTRACT)
