"""A drawn sequence in a test of one's own: run it, and where it fails say how, and save it as a case file.

Hypothesis runs the shortest failing example last, so the file that is left is that one.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from quiesce import shell
from quiesce.backend import Backend
from quiesce.cases.writer import write_case
from quiesce.findings import Finding
from quiesce.generation.saving import named_case, save
from quiesce.generation.sequence import GeneratedSequence
from quiesce.lockstep import Trial, run_lockstep


class SequenceFailed(AssertionError):
    """A generated sequence broke a rule; the text has the finding and the sequence as a case file.

    What is raised is a subclass with the rule's name: Hypothesis shrinks one kind of failure at a time and does
    not slip from one rule to another.
    """


@lru_cache(maxsize=128)
def _failure_of(rule: str) -> type[SequenceFailed]:
    return type(rule, (SequenceFailed,), {"__module__": __name__, "__doc__": SequenceFailed.__doc__})


def check_sequence(
    backend: Backend, sequence: GeneratedSequence, *, save_to: Path | None = None, name: str | None = None
) -> Trial:
    """Run a sequence in lockstep with the oracle and return the trial.

    Raises :class:`SequenceFailed` where a rule is broken; the sequence is then written to a case file in the
    folder ``save_to``, if one is given. ``name`` is what the command line knows the backend as, where that is not the
    name in its description. Raises :class:`quiesce.errors.BackendUnavailable` where the backend does not open.
    """
    trial = run_lockstep(backend, sequence.device, sequence.steps())
    if trial.findings:
        finding = trial.findings[0]
        raise _failure_of(finding.rule)(_text(backend, sequence, finding, save_to, name))
    return trial


def _text(
    backend: Backend, sequence: GeneratedSequence, finding: Finding, save_to: Path | None, name: str | None
) -> str:
    description = backend.describe()
    case = named_case(sequence.case(), finding, description, found_by="a drawn sequence", name=f"{finding.rule}_drawn")
    lines = [f"{finding.rule} is broken", *write_case(case).splitlines()]
    if save_to is not None:
        path = save(case, save_to)
        command = shell.join(
            ["quiesce", "shrink", shell.operand(path.as_posix()), "--backend", name or description.name]
        )
        lines += [f"saved as {path.as_posix()}", f"a shorter one: {command}"]
    return "\n".join(lines)
