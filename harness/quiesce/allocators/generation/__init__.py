"""Generated sequences: bytes are decoded into operations, run in lockstep, shrunk and saved as a case.

Bottom to top: ``things`` is data; ``state`` knows what a sequence owns; ``legality`` says which operation is the
sequence's own mistake; ``actions_…`` propose operations; ``weights`` chooses among them; ``decoder`` turns bytes into a
sequence, those of a seed or of ``strategies`` (Hypothesis); ``coverage`` counts what was reached; ``shrinking`` and
``saving`` make a case of what was found; ``campaign`` does all of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quiesce.doors import lazy_names

if TYPE_CHECKING:
    from quiesce.allocators.generation.campaign import CampaignResult as CampaignResult
    from quiesce.allocators.generation.campaign import Cause as Cause
    from quiesce.allocators.generation.campaign import Discovery as Discovery
    from quiesce.allocators.generation.campaign import Failing as Failing
    from quiesce.allocators.generation.campaign import Runs as Runs
    from quiesce.allocators.generation.campaign import Tally as Tally
    from quiesce.allocators.generation.campaign import case_name as case_name
    from quiesce.allocators.generation.campaign import distinct as distinct
    from quiesce.allocators.generation.campaign import reproduce_command as reproduce_command
    from quiesce.allocators.generation.campaign import run_campaign as run_campaign
    from quiesce.allocators.generation.campaign import shrink_failing as shrink_failing
    from quiesce.allocators.generation.coverage import STATES as STATES
    from quiesce.allocators.generation.decoder import generate_one as generate_one
    from quiesce.allocators.generation.running import IN_FLIGHT_MAX as IN_FLIGHT_MAX
    from quiesce.allocators.generation.running import Died as Died
    from quiesce.allocators.generation.running import Jobs as Jobs
    from quiesce.allocators.generation.running import Ran as Ran
    from quiesce.allocators.generation.running import Search as Search
    from quiesce.allocators.generation.running import Task as Task
    from quiesce.allocators.generation.running import ended_process as ended_process
    from quiesce.allocators.generation.running import run_sequence as run_sequence
    from quiesce.allocators.generation.saving import FOLDER as FOLDER
    from quiesce.allocators.generation.saving import in_short_names as in_short_names
    from quiesce.allocators.generation.saving import named_case as named_case
    from quiesce.allocators.generation.saving import needs_of as needs_of
    from quiesce.allocators.generation.saving import save as save
    from quiesce.allocators.generation.sequence import GeneratedSequence as GeneratedSequence
    from quiesce.allocators.generation.shrinking import TRIALS_MAX as TRIALS_MAX
    from quiesce.allocators.generation.shrinking import shrink as shrink
else:  # type checkers refuse a name that is not above
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "campaign": (
                "CampaignResult Cause Discovery Failing Runs Tally case_name distinct "
                "reproduce_command run_campaign shrink_failing"
            ),
            "coverage": "STATES",
            "decoder": "generate_one",
            "running": "IN_FLIGHT_MAX Died Jobs Ran Search Task ended_process run_sequence",
            "saving": "FOLDER in_short_names named_case needs_of save",
            "sequence": "GeneratedSequence",
            "shrinking": "TRIALS_MAX shrink",
        },
    )
