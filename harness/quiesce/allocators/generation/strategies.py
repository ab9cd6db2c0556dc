"""Hypothesis strategies for sequences. The only module of the room that imports Hypothesis.

Bytes are drawn with a length that is drawn before them, and decoded: a list strategy or a state machine draws every
operation by itself and spends its time there. Shrinking zeroes bytes, and a record whose first byte is 0 is gone.
"""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st

from quiesce.allocators.generation.decoder import HEADER_BYTES, RECORD_BYTES, decode
from quiesce.allocators.generation.sequence import GeneratedSequence
from quiesce.model.backend import Description

RECORDS_MAX: Final = 200


@st.composite
def allocation_sequences(
    draw: st.DrawFn, description: Description, *, hostile: bool = False, records_max: int = RECORDS_MAX
) -> GeneratedSequence:
    """Return a strategy for sequences that are legal on every backend of this description.

    ``hostile`` ones also contain misuse (double frees, foreign pointers, dead streams, sizes of 0 and SIZE_MAX) that a
    backend refuses or survives. ``records_max`` bounds the length; a record makes about 1.5 operations.
    """
    length = HEADER_BYTES + draw(st.integers(0, records_max)) * RECORD_BYTES
    return decode(draw(st.binary(min_size=length, max_size=length)), description, hostile=hostile)
