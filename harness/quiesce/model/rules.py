"""The kinds of mistakes that findings show, and the rules of the contract that a backend can break, with a sentence.

The oracle believes what a backend says. The contract's rules are about what it may say
(:mod:`quiesce.allocators.conformance`), rather than about the allocator behind it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

RAISED: Final = "backend_answers_without_raising"
STAYS_THE_SAME: Final = "description_stays_the_same"
MAKES_SENSE: Final = "description_makes_sense"
CLAIMS_REST: Final = "claims_rest_on_capabilities"
BEGIN_ALIKE: Final = "contexts_begin_alike"
SHARE_NOTHING: Final = "contexts_share_nothing"
CLOSE_AGAIN: Final = "closing_is_idempotent"
HOLD_NOTHING: Final = "closed_contexts_hold_nothing"
GAUGES_READ: Final = "described_gauges_are_read"
NEVER_FALL: Final = "cumulative_gauges_never_fall"
CLAIMS_SERVED: Final = "claimed_capabilities_are_served"
OUTCOMES_FIT: Final = "outcomes_fit_their_requests"
LEDGER_TOLD: Final = "claimed_ledgers_are_told"
LEDGER_FITS: Final = "ledgers_fit_together"
OWN_NAMES: Final = "library_names_are_no_slots"
READ_ALIKE: Final = "reading_changes_nothing"

IN_PROTOCOL: Final = "driver_answers_in_protocol"
IN_TIME: Final = "driver_answers_in_time"
SURVIVES: Final = "driver_survives_every_request"
UNKNOWN_REFUSED: Final = "driver_refuses_unknown_requests"
MISUSE_REFUSED: Final = "driver_refuses_misused_slots"
LONGEST_LINE: Final = "driver_reads_the_longest_line"
ENDS_WITH_INPUT: Final = "driver_ends_with_its_input"
QUITS: Final = "driver_quits_whenever_it_is_told"

WATCHDOG_SECONDS: Final = 60.0
"""How long a driver program may take for one answer, unless somebody says otherwise."""
WATCHDOG_SECONDS_MAX: Final = 86_400.0
"""A day: a longer silence is a hang."""

RULES: Final[Mapping[str, str]] = {
    RAISED: "A backend raises only the exceptions of the contract, and returns only its values.",
    STAYS_THE_SAME: "A backend describes itself in the same way whenever it is asked.",
    MAKES_SENSE: "The names, versions and numbers of a description make sense.",
    CLAIMS_REST: "A claim comes with the capabilities and gauges that it needs.",
    BEGIN_ALIKE: "A new context begins in the same state as the one before it.",
    SHARE_NOTHING: "Two contexts that are open at once have slots, blocks and gauges of their own.",
    CLOSE_AGAIN: "A context can be closed twice, and reads the same both times.",
    HOLD_NOTHING: "A closed context refuses requests, or releases what it served when it is closed again.",
    GAUGES_READ: "A context reads every gauge of the description, by its sources, and no other.",
    READ_ALIKE: "Gauges that are read twice, with nothing asked in between, read the same.",
    NEVER_FALL: "A cumulative gauge never falls.",
    CLAIMS_SERVED: "A request that belongs to a claimed capability is not answered with `unsupported`.",
    OUTCOMES_FIT: "Requests that make a block are answered with its address, and no others are.",
    LEDGER_TOLD: "A backend that claims a ledger reports everything that the ledger saw.",
    LEDGER_FITS: "The observations of a ledger fit together, and add up to its gauges.",
    OWN_NAMES: "Streams and events that a library makes for itself have names that are not slots.",
}
"""Every rule of the contract, in the order in which a report shows them."""

DRIVER_RULES: Final[Mapping[str, str]] = {
    IN_PROTOCOL: "A driver program answers every request in the protocol.",
    IN_TIME: "A driver program answers every request in time.",
    SURVIVES: "A driver program survives every request.",
    UNKNOWN_REFUSED: "A driver program answers `unsupported` to a request or an option that it does not know.",
    MISUSE_REFUSED: "A driver program refuses a slot that was never made, that was given back, or that is taken.",
    LONGEST_LINE: "A driver program reads a request of 64 KiB as one line.",
    ENDS_WITH_INPUT: "A driver program exits at the end of its input.",
    QUITS: "A driver program exits with code 0 when it is told to quit, also after `again`.",
}
"""The rules of the wire protocol that a driver program can break.

The protocol is in ``docs/reference/wire_protocol.md``.
"""


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
    TOO_SMALL = "block that is too small"
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

NO_VERDICT: Final = "no verdict"
"""The kind of the finding about a test that asks for a leak check, and whose check has no verdict: never a leak."""

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
    Kind.TOO_SMALL: "A block has fewer bytes than were asked for.",
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
    """Return the kind of mistake that breaks a rule of :mod:`quiesce.model.rules`, or one that a backend names."""
    return _OF_FAULTS.get(rule, Kind.BROKEN_CONTRACT)
