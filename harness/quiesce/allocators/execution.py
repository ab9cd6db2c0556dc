"""Execution: one case on one backend becomes one result, and every case proves itself against its fault."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from quiesce.allocators.answers import describe_backend
from quiesce.allocators.cases import Case, CaseKind, Known, expand
from quiesce.allocators.lockstep import Trial, finding_of, run_lockstep
from quiesce.allocators.reference import FAULTS
from quiesce.backends.reference import ReferenceBackend, faulty
from quiesce.backends.reference import backend as reference_backend
from quiesce.model import wording
from quiesce.model.backend import Backend, BackendFault, Capability, Description
from quiesce.model.errors import BackendUnavailable, CaseError
from quiesce.model.findings import Finding
from quiesce.model.results import Result, Verdict
from quiesce.model.rules import Kind
from quiesce.model.versions import parse_versions

KNOWN_STILL_THERE: Final = "known_defect_is_still_there"
"""The rule that a ``known:`` line breaks whose subject no longer misbehaves."""


def run_case(case: Case, backend: Backend) -> Result:
    """Run a case on a backend. A misbehaving backend is a finding, and a case that cannot be expanded a broken one."""
    try:
        description = describe_backend(backend)
        known = _known(case, description)
    except BackendUnavailable as unavailable:
        return _result(case, unavailable.backend, Verdict.UNSUPPORTED, reason=str(unavailable))
    except BackendFault as fault:
        return _result(case, type(backend).__name__, Verdict.FAILED, trial=Trial((finding_of(fault),), 0, 0))
    except ValueError as malformed:
        return _result(case, description.name, Verdict.BROKEN_CASE, reason=f"known: {malformed}")
    name = description.name
    if (unsuited := out_of_scope(case, description)) is not None:
        return unsuited
    try:
        trial = run_lockstep(backend, case.device, expand(case))
    except BackendUnavailable as unavailable:
        return _result(case, name, Verdict.UNSUPPORTED, reason=str(unavailable))
    except CaseError as error:
        return _result(case, name, Verdict.BROKEN_CASE, reason=str(error))
    return _judge(case, name, trial, known)


def described(backend: Backend) -> Description | None:
    """Return what a backend says about itself; None where it does not, and running a case says why."""
    try:
        return describe_backend(backend)
    except (BackendUnavailable, BackendFault):
        return None


def out_of_scope(case: Case, description: Description) -> Result | None:
    """Return the result of a case that a backend cannot run by its own description; None if the case is to be run."""
    name = description.name
    try:
        _known(case, description)
    except ValueError:
        return None  # running it says that the case is broken
    missing = sorted(case.needs - description.capabilities)
    if missing:
        return _result(case, name, Verdict.UNSUPPORTED, reason=f"lacks {', '.join(missing)}")
    unpromised = sorted(case.promises - description.promises)
    if unpromised:
        return _result(case, name, Verdict.NOT_PROMISED, reason=f"does not promise {', '.join(unpromised)}")
    if case.device.devices > 1 and Capability.DEVICES not in description.capabilities:
        return _result(case, name, Verdict.UNSUPPORTED, reason="has one device")
    return None


def run_and_prove(case: Case, backend: Backend) -> Result:
    """Run a case; where it passes on the reference, run it once more with its fault, which it has to catch."""
    result = run_case(case, backend)
    is_reference = isinstance(backend, ReferenceBackend) and backend == reference_backend()
    if result.verdict is not Verdict.PASSED or not case.fault or not is_reference:
        return result
    why_broken = _why_uncaught(case)
    if why_broken:
        return replace(result, verdict=Verdict.BROKEN_CASE, reason=why_broken)
    return replace(result, caught=case.fault)


def _known(case: Case, description: Description) -> tuple[Known, ...]:
    """Return the ``known:`` lines that hold for a backend. Raises :class:`ValueError` for malformed versions."""
    return tuple(
        known
        for known in case.known
        if known.subject == description.name and description.version in parse_versions(known.versions)
    )


def _left_out(skipped: int) -> str:
    if skipped == 1:
        return "1 request was left out, because it names something that could not be made"
    return f"{skipped} requests were left out, because they name things that could not be made"


def _judge(case: Case, backend: str, trial: Trial, known: tuple[Known, ...]) -> Result:
    numbers = ", ".join(line.number for line in known)
    if trial.findings:
        verdict = Verdict.KNOWN_UPSTREAM if known else Verdict.FAILED
        return _result(case, backend, verdict, reason=numbers, trial=trial)
    if trial.unsupported:
        return _result(case, backend, Verdict.UNSUPPORTED, reason=trial.unsupported, trial=trial)
    if trial.skipped:
        return _result(case, backend, Verdict.INCONCLUSIVE, reason=_left_out(trial.skipped), trial=trial)
    if known:
        advice = "the known: line no longer holds: remove or narrow it"
        expected, observed = f"the failure of {numbers}", f"the case passed; {advice}"
        gone = Finding(KNOWN_STILL_THERE, expected, observed, kind=Kind.OUTDATED_EXPECTATION)
        return _result(case, backend, Verdict.FAILED, trial=replace(trial, findings=(gone,)))
    return _result(case, backend, Verdict.PASSED, trial=trial)


def _result(case: Case, backend: str, verdict: Verdict, *, reason: str = "", trial: Trial | None = None) -> Result:
    return Result(
        case=case.identifier,
        title=case.title,
        path=case.path,
        backend=backend,
        verdict=verdict,
        reason=reason,
        findings=trial.findings if trial else (),
        operations=trial.operations if trial else 0,
        skipped=trial.skipped if trial else 0,
        upstream=case.upstream,
        reproduce=wording.join(["quiesce", "run", wording.operand(case.path), "--backend", backend]),
        timeline=trial.timeline if trial else (),
    )


@dataclass(frozen=True, slots=True)
class Proof:
    """Whether a case proves itself: green on the reference, red on its fault for exactly the rule it names.

    A case without a fault only has to be green, and a control is so with every fault. ``row`` holds, for each fault of
    the museum that the case was run with, the rules that it found broken.
    """

    case: str
    kind: CaseKind
    fault: str
    finds: str
    green: Result
    red: Result | None
    ok: bool
    reason: str
    row: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class ProofMatrix:
    """All proofs, and the faults that their rows run over."""

    faults: tuple[str, ...]
    proofs: tuple[Proof, ...]


def every_fault(_: Case) -> Sequence[str]:
    """Return all faults of the museum: what a case finds with others is a cell of the matrix."""
    return sorted(FAULTS)


def deciding_faults(case: Case) -> Sequence[str]:
    """Return the faults of the museum that decide whether a case proves itself: its own, and all for a control."""
    return sorted(name for name in FAULTS if name == case.fault or case.kind is CaseKind.CONTROL)


def prove(
    cases: Sequence[Case],
    progress: Callable[[int, int], None] | None = None,
    proved: Callable[[Proof], None] | None = None,
    faults_of: Callable[[Case], Sequence[str]] = deciding_faults,
) -> ProofMatrix:
    """Run every case against the reference and the faults that ``faults_of`` returns.

    ``progress`` is told how many of how many are done, ``proved`` each proof as it is there.
    """
    proofs = []
    for done, case in enumerate(cases):
        if progress is not None:
            progress(done, len(cases))
        proofs.append(prove_case(case, faults_of))
        if proved is not None:
            proved(proofs[-1])
    return ProofMatrix(tuple(sorted(FAULTS)), tuple(proofs))


def prove_case(case: Case, faults_of: Callable[[Case], Sequence[str]] = every_fault) -> Proof:
    """Run one case against the reference and the faults that ``faults_of`` returns."""
    green = run_case(case, reference_backend())
    reds = {name: run_case(case, faulty(name)) for name in faults_of(case)}
    row = tuple((name, tuple(sorted({f.rule for f in result.findings}))) for name, result in reds.items())
    red = reds.get(case.fault)
    reason = _why_broken(case, green, reds)
    return Proof(case.identifier, case.kind, case.fault, case.finds, green, red, not reason, reason, row)


def _why_broken(case: Case, green: Result, reds: dict[str, Result]) -> str:
    if green.verdict is not Verdict.PASSED:
        found = ", ".join(finding.rule for finding in green.findings)
        return f"{green.verdict} on the reference: {found or green.reason}"
    if case.kind is CaseKind.CONTROL:
        accused = [name for name, result in reds.items() if result.verdict is not Verdict.PASSED]
        return f"a control fails with {', '.join(accused)}" if accused else ""
    if not case.fault:
        return ""  # it failed on a backend that is not here
    return _why_uncaught(case, reds.get(case.fault))


def _why_uncaught(case: Case, red: Result | None = None) -> str:
    """Return why a case does not catch its fault; ``red`` is its result with the fault, if it was run already."""
    if case.fault not in FAULTS:
        return f"its fault '{case.fault}' is not in the museum"
    broken = {finding.rule for finding in (red or run_case(case, faulty(case.fault))).findings}
    if broken != {case.finds}:
        return f"its fault breaks {', '.join(sorted(broken)) or 'nothing'}, not exactly {case.finds}"
    return ""
