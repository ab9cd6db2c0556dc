"""The rules of the contract that a backend, rather than the allocator behind it, can break; by name, with a sentence.

The oracle believes what a backend says. These rules are about what it may say (:mod:`quiesce.conformance`).
"""

from __future__ import annotations

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
