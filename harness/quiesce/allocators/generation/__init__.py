"""Generated sequences: bytes are decoded into operations, run in lockstep, shrunk and saved as a case.

Bottom to top: ``things`` is data; ``state`` knows what a sequence owns; ``legality`` says which operation is the
sequence's own mistake; ``actions_…`` propose operations; ``weights`` chooses among them; ``decoder`` turns bytes into a
sequence, those of a seed or of ``strategies`` (Hypothesis); ``coverage`` counts what was reached; ``shrinking`` and
``saving`` make a case of what was found; ``campaign`` does all of it.
"""

from quiesce.allocators.generation.campaign import (
    CampaignResult,
    Cause,
    Discovery,
    Failing,
    Runs,
    Tally,
    case_name,
    distinct,
    reproduce_command,
    run_campaign,
    shrink_failing,
)
from quiesce.allocators.generation.coverage import STATES
from quiesce.allocators.generation.decoder import generate_one
from quiesce.allocators.generation.running import Died, Jobs, Ran, Search, Task, ended_process, run_sequence
from quiesce.allocators.generation.saving import FOLDER, named_case, needs_of, save
from quiesce.allocators.generation.sequence import GeneratedSequence
from quiesce.allocators.generation.shrinking import TRIALS_MAX, shrink

__all__ = [
    "CampaignResult",
    "Cause",
    "Died",
    "Discovery",
    "FOLDER",
    "Failing",
    "GeneratedSequence",
    "Jobs",
    "Ran",
    "Runs",
    "STATES",
    "Search",
    "TRIALS_MAX",
    "Tally",
    "Task",
    "case_name",
    "distinct",
    "ended_process",
    "generate_one",
    "named_case",
    "needs_of",
    "reproduce_command",
    "run_campaign",
    "run_sequence",
    "save",
    "shrink",
    "shrink_failing",
]
