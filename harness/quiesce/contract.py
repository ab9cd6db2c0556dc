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

RULES: Final[Mapping[str, str]] = {
    RAISED: "A backend raises nothing but what the contract names, and returns the contract's values.",
    STAYS_THE_SAME: "A backend describes itself in the same way whenever it is asked.",
    MAKES_SENSE: "Names, versions and figures of a description mean something.",
    CLAIMS_REST: "What is claimed and promised comes with the capabilities and gauges that it is about.",
    BEGIN_ALIKE: "A context begins as fresh as the one before it did, whatever that one left behind.",
    SHARE_NOTHING: "Two contexts that are open at once have slots, blocks and gauges of their own.",
    CLOSE_AGAIN: "A context can be closed twice, and reads the same both times.",
    HOLD_NOTHING: "A closed context refuses requests, or gives back what it served when it is closed again.",
    GAUGES_READ: "A context reads every gauge of the description, by its sources, and no other.",
    NEVER_FALL: "A cumulative gauge never falls.",
    CLAIMS_SERVED: "A request that a claimed capability is about is not answered unsupported.",
    OUTCOMES_FIT: "Requests that make a block are answered with its address, and no others are.",
    LEDGER_TOLD: "A backend that claims a ledger tells what it saw.",
    LEDGER_FITS: "What a ledger observes fits together, and adds up to what it reads.",
    OWN_NAMES: "Streams and events that a library makes for itself have names that are no slots.",
}
"""Every rule of the contract, in the order in which a report shows them."""
