"""The conformance run: contract, corpus, sweep and generated sequences, one after the other on one backend.

Where a call into a backend failed, advice says what to write instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias

from quiesce.allocators.answers import describe_backend
from quiesce.allocators.cases import Case, expand, find_cases, load
from quiesce.allocators.conformance.checks import CHECKS, ContractCheck, NotExercised
from quiesce.allocators.conformance.monitor import NOTED, Attentive, Notebook
from quiesce.allocators.conformance.obligations import case_of, strangers
from quiesce.allocators.conformance.result import (
    Conformance,
    Gap,
    claims_not_exercised,
    results_not_exercised,
    sequences_not_exercised,
)
from quiesce.allocators.conformance.wire import questions_to
from quiesce.allocators.conformance.workers import run_elsewhere
from quiesce.allocators.execution import run_case
from quiesce.allocators.generation import CampaignResult, Jobs, Runs, reproduce_command, run_campaign
from quiesce.allocators.lockstep import finding_of, run_lockstep
from quiesce.allocators.sweep import RESULTS_MAX, sweep
from quiesce.backends.command import CommandBackend
from quiesce.backends.python_source import name_of
from quiesce.model import wording
from quiesce.model.backend import Backend, BackendFault, Capability, Description
from quiesce.model.errors import BackendUnavailable, ConfigurationError, reproduced_by
from quiesce.model.findings import FailedCall, Finding
from quiesce.model.results import Result, Verdict
from quiesce.model.rules import (
    CLAIMS_SERVED,
    DRIVER_RULES,
    GAUGES_READ,
    IN_PROTOCOL,
    IN_TIME,
    LEDGER_FITS,
    LEDGER_TOLD,
    MAKES_SENSE,
    NEVER_FALL,
    OUTCOMES_FIT,
    OWN_NAMES,
    RAISED,
    RULES,
    SHARE_NOTHING,
    STAYS_THE_SAME,
)
from quiesce.model.wording import counted

_ANYTHING: Final = "*"
_INSTEAD: Final[Mapping[FailedCall, str]] = {
    FailedCall(
        "describe()", _ANYTHING
    ): "a Description; raise quiesce.BackendUnavailable where the backend cannot work here",
    FailedCall("describe()"): (
        "a Description: capabilities and promises are frozensets of Capability and Promise, "
        "gauges maps a Gauge to a frozenset of Source"
    ),
    FailedCall(
        "open()", _ANYTHING
    ): "a fresh context; raise quiesce.BackendUnavailable for a profile that cannot be provided",
    FailedCall("open()"): "a fresh context, with the methods perform, readings and close",
    FailedCall("perform()", "MemoryError"): "Reply(OutOfMemory()): running out of memory is an answer",
    FailedCall(
        "perform()", "KeyError"
    ): "Reply(Rejected(INVALID_VALUE)) for a slot that names nothing: that is an answer too",
    FailedCall("perform()", "NotImplementedError"): "Reply(Unsupported(reason)), and do not claim the capability",
    FailedCall("perform()", _ANYTHING): (
        "a Reply: Rejected(code), OutOfMemory() or Unsupported(reason); raise BackendFault where the subject is dead"
    ),
    FailedCall("perform()"): "Reply(outcome, observations), with outcomes and observations that quiesce exports",
    FailedCall("readings()", _ANYTHING): "the gauges as they are, in any state of the context",
    FailedCall("readings()"): "a mapping from (Gauge, Source) to int, with every gauge that describe() names",
    FailedCall(
        "close()", _ANYTHING
    ): "a Closing, in any state of the context, and again when it is closed a second time",
    FailedCall("close()"): "Closing(observations, readings), the gauges read after everything was released",
}
"""What to write instead of the call that gave no answer; an error that is not named is :data:`_ANYTHING`."""


def _advised(result: Result) -> Result:
    """Return a result whose findings about calls say what to write instead."""
    return replace(result, findings=tuple(map(_advise, result.findings)))


def _advise(finding: Finding) -> Finding:
    call = finding.failed_call
    if call is None:
        return finding
    anything = FailedCall(call.function, call.error and _ANYTHING)
    return replace(finding, expected=_INSTEAD.get(call) or _INSTEAD.get(anything) or finding.expected)


OPERATIONS_DEFAULT: Final = 100_000
HUNG_RESULTS_MAX: Final = 3
"""After so many results whose driver program did not answer in time nothing else runs: each takes as long again."""
STRANGERS: Final = "contract/names_that_nothing_has_are_refused"

_TOO_SLOW: Final = f"{HUNG_RESULTS_MAX} requests had no answer in time, and each other one would take as long"
_BACKING: Final = f"'{Capability.BACKING_LEDGER}'"
_NOTHING_TO_LOOK_AT: Final = {
    STAYS_THE_SAME: "it was asked once",
    GAUGES_READ: "lacks gauges",
    NEVER_FALL: "lacks cumulative gauges",
    CLAIMS_SERVED: "no request was about anything that it claims",
    OUTCOMES_FIT: "nothing was served",
    LEDGER_TOLD: "lacks backing-ledger",
    LEDGER_FITS: "lacks backing-ledger",
    OWN_NAMES: "lacks observations with names",
}

Progress: TypeAlias = Callable[[int, int, str], None]
Report: TypeAlias = Callable[[Result], None]


def run_conformance(
    backend: Backend,
    *,
    seed: int = 0,
    operations: int = OPERATIONS_DEFAULT,
    cases: Sequence[Case] | None = None,
    name: str | None = None,
    progress: Progress | None = None,
    report: Report | None = None,
    found: Callable[[Case], None] | None = None,
    trials_max: int | None = None,
    jobs: Jobs | None = None,
) -> Conformance:
    """Run everything on a backend and return what came of it; a misbehaving backend is never an exception.

    At least ``operations`` are performed in valid sequences, and as many in hostile ones; a sequence that has begun is
    finished. ``cases`` None is the corpus that
    comes with quiesce. ``name`` is what the backend is installed as, for the commands that reproduce a finding.
    ``progress`` is told how many of how many are done of what, ``report`` is handed every result as it is there
    (:meth:`quiesce.reporting.folder.ReportFolder.add` keeps them). ``found`` and ``trials_max``
    are as for :func:`quiesce.allocators.generation.campaign.run_campaign`. ``jobs`` runs generated sequences in other
    processes, with the same results, where the contract's checks saw that contexts share nothing.

    Raises :class:`BackendUnavailable` where the backend cannot work here, :class:`ConfigurationError` for an argument
    that means nothing, and :class:`CaseError` for a corpus that cannot be read.
    """
    _check_arguments(backend, operations)
    chosen = _corpus() if cases is None else tuple(cases)
    run = _Run(backend, seed, name, progress or _silent, report or _unheard, found, trials_max, jobs)
    return run.everything(chosen, operations)


def _check_arguments(backend: object, operations: int) -> None:
    if isinstance(backend, str):
        advice = f"write run_conformance(load_backend({backend!r})), with quiesce.load_backend"
        raise ConfigurationError(f"{backend!r} is the name of a backend, not a backend; {advice}")
    if isinstance(backend, type):
        raise ConfigurationError(f"{backend.__name__} is a class; write run_conformance({backend.__name__}())")
    if not isinstance(backend, Backend):
        what = f"{type(backend).__name__} is not a backend"
        raise ConfigurationError(f"{what}; pass an object with describe() and open(profile)")
    if operations < 1:
        raise ConfigurationError(f"{operations} operations perform nothing; write at least 1")


def _corpus() -> tuple[Case, ...]:
    catalogue = load(find_cases([]))
    if catalogue.errors:
        raise catalogue.errors[0]
    return catalogue.cases


def _silent(done: int, total: int, what: str) -> None:
    """Show nobody how far it is."""


def _unheard(result: Result) -> None:
    """Keep the result for the end."""


class _Run:
    def __init__(
        self,
        backend: Backend,
        seed: int,
        name: str | None,
        progress: Progress,
        report: Report,
        found: Callable[[Case], None] | None,
        trials_max: int | None,
        jobs: Jobs | None,
    ) -> None:
        self._backend = backend
        self._seed = seed
        self._progress = progress
        self._report = report
        self._found_whole = found
        self._trials_max = trials_max
        self._jobs = jobs
        self._notebook = Notebook()
        self._watched = Attentive(backend, self._notebook)
        self._name = name or type(backend).__name__
        self._argument = self._name
        self._asked = name
        self._found: list[Case] = []
        self._hung = 0

    def everything(self, cases: Sequence[Case], operations: int) -> Conformance:
        """Run all parts; those that would prove nothing once the contract is broken are left out."""
        try:
            description = describe_backend(self._backend)
        except BackendFault as fault:
            failed = self._keep(self._result(RAISED, Verdict.FAILED, findings=(finding_of(fault),)))
            return Conformance(self._name, self._seed, None, (failed,))
        self._name = self._asked or description.name
        self._argument = self._asked or _argument_of(self._backend) or description.name
        contract = [self._keep(result) for result in self._check_contract(description)]
        if self._is_slow or _is_hopeless(contract):
            why = _TOO_SLOW if self._is_slow else "the contract is broken, so other results would say nothing"
            rest = tuple(Gap(part, why) for part in ("the corpus", "the sweep", "generated sequences"))
            return Conformance(self._name, self._seed, description, tuple(contract), not_exercised=rest)
        corpus = tuple(self._keep(result) for result in self._run_cases(cases))
        swept = tuple(self._keep(result) for result in self._sweep())
        campaigns, generated, refused = self._generate(operations, self._runs(description, contract))
        contract += [self._keep(result) for result in self._notes(description)]
        gaps = [
            *claims_not_exercised(description, cases, corpus, self._notebook.served),
            *results_not_exercised([*contract, *swept]),
            *(gap for campaign in campaigns for gap in sequences_not_exercised(campaign)),
            *refused,
            *([Gap("everything after that", _TOO_SLOW)] if self._is_slow else []),
        ]
        return Conformance(
            self._name,
            self._seed,
            description,
            tuple(contract),
            corpus,
            swept,
            generated,
            campaigns,
            tuple(self._found),
            tuple(gaps),
        )

    def _keep(self, result: Result) -> Result:
        kept = replace(_advised(result), backend=self._name)
        self._hung += any(finding.rule == IN_TIME for finding in kept.findings)
        self._report(kept)
        return kept

    @property
    def _is_slow(self) -> bool:
        return self._hung >= HUNG_RESULTS_MAX

    def _result(self, rule: str, verdict: Verdict, *, reason: str = "", findings: tuple[Finding, ...] = ()) -> Result:
        return Result(
            case=f"contract/{rule}",
            title={**RULES, **DRIVER_RULES}[rule].removesuffix("."),
            path="",
            backend=self._name,
            verdict=verdict,
            reason=reason,
            findings=findings,
            reproduce=self._command(),
        )

    def _command(self) -> str:
        words = ["quiesce", "conformance", "--backend", self._argument]
        return wording.join(words if self._seed == 0 else [*words, "--seed", str(self._seed)])

    # -- the contract ----------------------------------------------------------------------------------------------

    def _check_contract(self, description: Description) -> Iterator[Result]:
        checks = (*CHECKS, *questions_to(self._backend))
        for number, check in enumerate(checks, 1):
            self._progress(number, len(checks), f"contract: {check.rule}")
            yield (result := self._check(check))
            if any(finding.rule == IN_PROTOCOL for finding in result.findings):
                return  # told once: whatever else is asked would meet the same
            if self._is_slow:
                return
        yield self._meet_strangers(description)

    def _check(self, check: ContractCheck) -> Result:
        try:
            findings = tuple(check.check(self._backend))
        except NotExercised as nothing:
            return self._result(check.rule, Verdict.UNSUPPORTED, reason=str(nothing))
        except BackendFault as fault:
            findings = (finding_of(fault),)
        return self._result(check.rule, Verdict.FAILED if findings else Verdict.PASSED, findings=findings)

    def _meet_strangers(self, description: Description) -> Result:
        self._notebook.place = STRANGERS
        case = case_of(strangers(description))
        trial = run_lockstep(self._watched, case.device, expand(case))
        draft = Result(
            case=STRANGERS,
            title="Requests that name what was never made are refused",
            path="",
            backend=self._name,
            verdict=Verdict.PASSED,
            operations=trial.operations,
            reproduce=self._command(),
        )
        if trial.findings:
            return replace(draft, verdict=Verdict.FAILED, findings=trial.findings, timeline=trial.timeline)
        if not trial.operations or trial.unsupported:
            reason = trial.unsupported or "it claims nothing that could be named"
            return replace(draft, verdict=Verdict.UNSUPPORTED, reason=reason)
        return draft

    def _notes(self, description: Description) -> Iterator[Result]:
        notebook = self._notebook
        notebook.place = ""
        claimed = Capability.BACKING_LEDGER in description.capabilities
        if claimed and notebook.served[Capability.MEMORY] and not notebook.looked[LEDGER_TOLD]:
            instead = f"a BackingAllocated in the Reply for every backing call, or do not claim {_BACKING}"
            served = notebook.served[Capability.MEMORY]
            observed = f"{served} requests for memory were served, and not one backing allocation was observed"
            notebook.note(LEDGER_TOLD, "silent", instead, observed)
        for rule in NOTED:
            findings = notebook.findings(rule)
            if findings:
                yield self._result(rule, Verdict.FAILED, findings=findings)
            elif notebook.looked[rule]:
                yield self._result(rule, Verdict.PASSED)
            else:
                yield self._result(rule, Verdict.UNSUPPORTED, reason=_NOTHING_TO_LOOK_AT[rule])

    # -- what runs -------------------------------------------------------------------------------------------------

    def _run_cases(self, cases: Sequence[Case]) -> Iterator[Result]:
        for number, case in enumerate(cases, 1):
            if self._is_slow:
                return
            self._progress(number, len(cases), f"corpus: {case.identifier}")
            self._notebook.place = case.identifier
            again = wording.join(["quiesce", "run", wording.operand(case.path), "--backend", self._argument])
            with reproduced_by(again):
                result = run_case(case, self._watched)
            yield replace(result, reproduce=again)

    def _sweep(self) -> Iterator[Result]:
        self._notebook.place = "the sweep"
        for number, swept in enumerate(sweep(self._watched, name=self._name, reproduce=self._command()), 1):
            if self._is_slow:
                return
            self._progress(number, RESULTS_MAX, f"sweep: {swept.result.case}")
            if swept.case is not None:
                self._found.append(swept.case)
            yield swept.result

    def _runs(self, description: Description, contract: Sequence[Result]) -> Runs | None:
        """Return how sequences run in other processes; None where they have to run here, one after the other."""
        shares_nothing = any(
            each.case == f"contract/{SHARE_NOTHING}" and each.verdict is Verdict.PASSED for each in contract
        )
        if self._jobs is None or not shares_nothing:
            return None
        return partial(run_elsewhere, self._jobs, self._backend, self._notebook, description)

    def _generate(
        self, operations: int, runs: Runs | None
    ) -> tuple[tuple[CampaignResult, ...], tuple[Result, ...], list[Gap]]:
        campaigns: list[CampaignResult] = []
        results: list[Result] = []
        gaps: list[Gap] = []
        for hostile in (False, True):
            if self._is_slow:
                break
            kind = "hostile sequences" if hostile else "valid sequences"
            if campaigns and campaigns[-1].discovery is not None:
                gaps.append(Gap(kind, "the valid sequences found something already"))
                break
            self._notebook.place = kind
            try:
                campaign = run_campaign(
                    self._watched,
                    seed=self._seed,
                    operations=operations,
                    hostile=hostile,
                    name=self._argument,
                    found=self._found_whole,
                    progress=self._progress,
                    trials_max=self._trials_max,
                    runs=runs,
                )
            except BackendUnavailable as unavailable:  # for one of the devices that sequences ask for
                gaps.append(Gap(kind, str(unavailable)))
                break
            campaigns.append(campaign)
            results.append(self._keep(self._generated(campaign, kind)))
            if campaign.discovery is not None:
                self._found.append(campaign.discovery.case)
        return tuple(campaigns), tuple(results), gaps

    def _generated(self, campaign: CampaignResult, kind: str) -> Result:
        discovery = campaign.discovery
        verdict, reason = Verdict.PASSED, ""
        findings: tuple[Finding, ...] = ()
        if discovery is not None:
            verdict, findings = Verdict.FAILED, (discovery.shrunk,)
            lines = counted(len(discovery.case.body), "line")
            whole = "it ended its process, so it is not shrunk" if discovery.interrupted else "it did not fail again"
            again = f"shrunk to {lines}" if discovery.trials else whole
            reason = f"sequence {discovery.number}, {again}"
        elif not campaign.operations:
            verdict, reason = Verdict.UNSUPPORTED, "nothing could be performed"
        return Result(
            case=f"generated/{kind.replace(' ', '_')}",
            title=f"{kind.capitalize()} that were generated find nothing",
            path="",
            backend=self._name,
            verdict=verdict,
            reason=reason,
            findings=findings,
            operations=campaign.operations,
            skipped=campaign.skipped,
            reproduce=reproduce_command(
                self._argument, self._seed, hostile=campaign.hostile, operations=campaign.operations
            ),
        )


def _argument_of(backend: Backend) -> str | None:
    """Return what ``--backend`` takes for a backend that nobody asked for by name; None where that is its own name."""
    if isinstance(backend, CommandBackend):
        return backend.specification
    return None if type(backend).__module__.startswith("quiesce.") else name_of(backend)


def _is_hopeless(contract: Sequence[Result]) -> bool:
    """Whether the backend says nonsense, of itself or in its answers, or cannot be opened, driven and closed."""
    failed = [result for result in contract if result.verdict is Verdict.FAILED]
    senseless = any(result.case == f"contract/{MAKES_SENSE}" for result in failed)
    ends = (RAISED, IN_PROTOCOL)
    return senseless or any(finding.rule in ends for result in failed for finding in result.findings)
