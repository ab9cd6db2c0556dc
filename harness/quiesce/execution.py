"""Execution: one case on one backend becomes one result, and every case proves itself against its fault."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from quiesce.backend import Backend, Capability, Description
from quiesce.backends.reference import backend as reference_backend
from quiesce.backends.reference import faulty
from quiesce.cases.case import Case, CaseKind
from quiesce.cases.expansion import expand
from quiesce.errors import BackendUnavailable
from quiesce.lockstep import Trial, run_lockstep
from quiesce.reference.museum import FAULTS
from quiesce.results import Result, Verdict


def run_case(case: Case, backend: Backend) -> Result:
    """Run a case on a backend. A misbehaving backend is a finding, never an exception."""
    try:
        description = backend.describe()
    except BackendUnavailable as unavailable:
        return _result(case, "unavailable", Verdict.UNSUPPORTED, reason=str(unavailable))
    missing = sorted(case.needs - description.capabilities)
    if missing:
        return _result(case, description.name, Verdict.UNSUPPORTED, reason=f"lacks {', '.join(missing)}")
    unpromised = sorted(case.promises - description.promises)
    if unpromised:
        return _result(case, description.name, Verdict.NOT_PROMISED, reason=f"does not promise {', '.join(unpromised)}")
    unhonoured = _unhonoured(case, description)
    if unhonoured:
        return _result(case, description.name, Verdict.UNSUPPORTED, reason=unhonoured)
    try:
        trial = run_lockstep(backend, case.device, expand(case))
    except BackendUnavailable as unavailable:
        return _result(case, description.name, Verdict.UNSUPPORTED, reason=str(unavailable))
    return _judge(case, description, trial)


def _unhonoured(case: Case, description: Description) -> str:
    if case.device.devices > 1 and Capability.DEVICES not in description.capabilities:
        return "has one device"
    return ""


def _judge(case: Case, description: Description, trial: Trial) -> Result:
    if trial.findings:
        verdict, reason = Verdict.FAILED, ""
    elif trial.unsupported:
        verdict, reason = Verdict.UNSUPPORTED, trial.unsupported
    else:
        verdict, reason = Verdict.PASSED, ""
    return _result(case, description.name, verdict, reason=reason, trial=trial)


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
        reproduce=f"quiesce run '{case.path}' --backend '{backend}'",
        timeline=trial.timeline if trial else (),
    )


@dataclass(frozen=True, slots=True)
class Proof:
    """Whether a case proves itself: green on the reference, red on its fault for exactly the invariant it names.

    ``row`` holds, for each fault of the museum, the invariants that the case found broken under it.
    """

    case: str
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


def prove(cases: Sequence[Case], progress: Callable[[int, int], None] | None = None) -> ProofMatrix:
    """Run every case against the reference and every fault; ``progress`` is told how many cases are done of how many."""
    proofs = []
    for done, case in enumerate(cases):
        if progress is not None:
            progress(done, len(cases))
        proofs.append(prove_case(case))
    return ProofMatrix(tuple(sorted(FAULTS)), tuple(proofs))


def prove_case(case: Case) -> Proof:
    """Run one case against the reference and every fault of the museum."""
    green = run_case(case, reference_backend())
    reds = {name: run_case(case, faulty(name)) for name in sorted(FAULTS)}
    row = tuple((name, tuple(sorted({f.invariant for f in result.findings}))) for name, result in reds.items())
    red = reds.get(case.fault)
    reason = _why_broken(case, green, reds)
    return Proof(case.identifier, case.fault, case.finds, green, red, not reason, reason, row)


def _why_broken(case: Case, green: Result, reds: dict[str, Result]) -> str:
    if green.verdict is not Verdict.PASSED:
        found = ", ".join(finding.invariant for finding in green.findings)
        return f"{green.verdict} on the reference: {found or green.reason}"
    if case.kind is CaseKind.CONTROL:
        accused = [name for name, result in reds.items() if result.verdict is not Verdict.PASSED]
        return f"a control is not green under {', '.join(accused)}" if accused else ""
    if case.fault not in FAULTS:
        return f"its fault '{case.fault}' is not in the museum"
    broken = {finding.invariant for finding in reds[case.fault].findings}
    if broken != {case.finds}:
        return f"its fault breaks {', '.join(sorted(broken)) or 'nothing'}, not exactly {case.finds}"
    return ""

