"""What a leak check says: as a result for reports, as the text of a failure, and as a warning."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pytest

from quiesce.leaks import (
    DEVICE,
    PYTHON,
    REFERENCES,
    Growth,
    Judgement,
    Outcome,
    Peaks,
    Plan,
    Quantity,
    family_of,
    kind_of_leak,
    measured_from,
)
from quiesce.model.findings import Finding, Grade, RoundReadings
from quiesce.model.results import LEAK_CHECK, Result, Verdict
from quiesce.model.rules import NO_VERDICT, Kind
from quiesce.model.wording import bytes_in_words, pytest_command
from quiesce.reporting import (
    COMES_TO_A_VERDICT,
    KEEPS_TO_ITS_PEAK,
    LEAVES,
    MARKER_SAYS,
    clean_line,
    failure_text,
    rate,
)
from quiesce.simulator.judge import with_allocation_quoted

LEAVES_NOTHING: Final = "a_repeated_test_leaves_nothing_behind"
"""The rule that a leaking test breaks."""

CHECK_FAILED: Final = "the leak check itself failed"
"""What the reason begins with where an error in quiesce ended a check."""

LONGER: Final = 4
"""So many times more seconds are proposed where a check has no verdict."""

_PEAKS: Final = {PYTHON: "Python's memory", DEVICE: "device memory"}


def leak_result(
    item: pytest.Item,
    plan: Plan,
    judgement: Judgement,
    verdict: Verdict,
    reason: str = "",
    others: tuple[Finding, ...] = (),
) -> Result:
    """Return the result of a check; ``others`` are findings besides leaks: wrong accesses of kernels, and peaks.

    A check whose test fails because it has no verdict leaves the run without one.
    """
    line = None if item.location[1] is None else item.location[1] + 1
    growths = [*judgement.growths]
    if judgement.files:
        files = _below(str(judgement.files), _folder(item))
        if growths:
            evidence = f"{growths[0].evidence}\nat the same time, it leaves {files}".strip()
            growths[0] = replace(growths[0], evidence=evidence)
        elif verdict is Verdict.PASSED:
            reason = f"{LEAVES}{files}"
    return Result(
        case=item.nodeid,
        title=f"{item.name} {'leaks' if judgement.growths else 'is checked for leaks'}",
        path=item.nodeid.partition("::")[0],
        backend=LEAK_CHECK,
        verdict=verdict,
        reason=clean_line(reason),
        findings=(
            *(_finding(growth, plan, line, _folder(item)) for growth in growths),
            *others,
        ),
        reproduce=pytest_command(item.nodeid),
        must_conclude=verdict is Verdict.INCONCLUSIVE and any(each.rule == COMES_TO_A_VERDICT for each in others),
        rounds=judgement.runs,
    )


def left_out_result(item: pytest.Item, reason: str) -> Result:
    """Return the result of a test whose marker says that it is not to be checked."""
    judgement = Judgement(Outcome.OVER, 1)
    return leak_result(item, Plan(), judgement, Verdict.UNSUPPORTED, f"{MARKER_SAYS}{reason}")


def verdict_of(
    judgement: Judgement, report: pytest.TestReport, failure: str = "", *, is_accused: bool = False
) -> tuple[Verdict, str]:
    """Return the verdict and its reason.

    ``report`` is that of the phase that decided how the test itself went, and ``failure`` says how the first round
    failed that did. ``is_accused`` says whether there is a finding besides leaks.
    """
    expected = getattr(report, "wasxfail", None)
    if report.skipped:
        if expected is None:
            why = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
            return Verdict.UNSUPPORTED, f"the test was skipped: {why}"
        if judgement.growths or is_accused:
            return Verdict.KNOWN_UPSTREAM, f"the test is expected to fail: {expected}"
        return Verdict.UNSUPPORTED, f"the test fails, and is expected to: {expected}"
    if judgement.growths or is_accused:
        return Verdict.FAILED, ""
    if report.failed or judgement.outcome is Outcome.FAILED:
        return Verdict.FAILED, "the test itself fails" + (f"; {judgement.inconclusive}" * bool(judgement.inconclusive))
    if judgement.outcome is Outcome.OVER and not judgement.inconclusive:
        return Verdict.INCONCLUSIVE, "the run ended before the test was repeated"
    reason = open_reason(judgement, failure)
    return (Verdict.INCONCLUSIVE, reason) if reason else (Verdict.PASSED, "")


def open_reason(judgement: Judgement, failure: str) -> str:
    """Return why a check has no verdict, or an empty text; ``failure`` says how the first round failed that did."""
    said = failure.partition("\n")[0] if judgement.inconclusive and judgement.unstable else ""
    return f"{judgement.inconclusive}{f': {said}' if said else ''}"


def no_verdict_finding(item: pytest.Item, plan: Plan, judgement: Judgement, reason: str) -> Finding:
    """Return the finding of a test that fails because its check has no verdict: why, and what to write."""
    line = None if item.location[1] is None else item.location[1] + 1
    return Finding(
        COMES_TO_A_VERDICT,
        "the leak check of the test comes to a verdict",
        f"no verdict: {clean_line(reason)}",
        line=line,
        kind=NO_VERDICT,
        grade=Grade.INCONCLUSIVE,
        evidence="\n".join(_remedies(plan, judgement)),
    )


def _remedies(plan: Plan, judgement: Judgement) -> Iterator[str]:
    """Yield what to write so that a check comes to a verdict, from the best to the last resort."""
    yield "what to do, one of these:"
    if judgement.inconclusive.startswith(CHECK_FAILED):
        yield "- the error is one of quiesce: report it with this text"
    elif judgement.unstable:
        yield "- let the test, or a fixture of function scope, make anew the state that an earlier run leaves"
    else:
        yield "- a cache is meant to fill: fill it in a fixture of a wider scope"
        yield f"- the test is slow: @pytest.mark.leak(seconds={plan.seconds * LONGER:g})"
        yield "- what grows has a bound beyond those rounds: @pytest.mark.leak(rounds=…), twice the bound"
        yield '- some growth in a round is fine: @pytest.mark.leak(limit="2 KiB")'
    yield '- the test cannot be checked: @pytest.mark.leak(skip="the reason")'


def _finding(growth: Growth, plan: Plan, line: int | None, folder: str) -> Finding:
    quantity, readings = growth.quantity, _readings(growth)
    allowed = plan.limit_bytes if quantity.unit == "bytes" else 0
    are_several = quantity.unit in quantity.name.split()  # threads grow, the C heap grows
    grows = "grow" if are_several else "grows"
    allowed_growth = f"{grows} by at most {bytes_in_words(allowed)} per round"
    if not allowed:
        allowed_growth = "do not grow" if are_several else "does not grow"
    expected, observed = f"{quantity.name} {allowed_growth}", f"{quantity.name} {grows} by {_rate(quantity, readings)}"
    if quantity.family == REFERENCES:
        expected = "the test loses no references to None"
        observed = f"the test loses {rate(readings).replace(' per round', ' to None per round')}"
    finding = Finding(
        LEAVES_NOTHING,
        expected,
        observed,
        line=line,
        allocated_by=growth.origin,
        kind=kind_of_leak(quantity.family),
        grade=Grade.GROWTH,
        evidence=_below(growth.evidence, folder),
        readings=readings,
        call_sites=growth.call_sites,
        kept=_below(growth.kept, folder),
    )
    quoted = (replace(each, file=_below(each.file, folder)) for each in with_allocation_quoted(finding).quoted)
    return replace(finding, allocated_by=_below(growth.origin, folder), quoted=tuple(quoted))


def peak_findings(item: pytest.Item, plan: Plan, peaks: Peaks) -> tuple[Finding, ...]:
    """Return a finding for each gauge that had more in use at a time than its limit."""
    line = None if item.location[1] is None else item.location[1] + 1
    return tuple(
        Finding(
            KEEPS_TO_ITS_PEAK,
            f"{_PEAKS[gauge]} in use rises by at most {bytes_in_words(limit)} during the test",
            f"{_PEAKS[gauge]} in use rises by {bytes_in_words(used)} during the test",
            line=line,
            kind=Kind.LIMIT,
            grade=Grade.VIOLATION,
        )
        for gauge, limit in plan.peaks
        if (used := peaks.bytes_by_gauge.get(gauge, 0)) > limit
    )


def _rate(quantity: Quantity, readings: RoundReadings) -> str:
    if quantity.unit == "bytes" and family_of(quantity.family).counts_blocks:
        return f"{bytes_in_words(round(readings.per_round))} per round"
    return rate(readings)


def _readings(growth: Growth) -> RoundReadings:
    return RoundReadings(
        gauge=growth.quantity.name,
        unit=growth.quantity.unit,
        first_round=growth.rounds[0] if growth.rounds else growth.first_round,
        grown=tuple(value - growth.readings[0] for value in growth.readings),
        measured_from=_measured_from(growth),
        per_round=growth.per_round,
        rounds=growth.rounds,
    )


def _measured_from(growth: Growth) -> int:
    """Return the number of the first round whose growth is measured."""
    if growth.rounds:
        return growth.rounds[0]
    return growth.first_round + measured_from(growth.readings)


def _folder(item: pytest.Item) -> str:
    """Return the folder that pytest was started in: the working directory of a test may be another."""
    return str(item.config.invocation_params.dir)


def _below(text: str, folder: str) -> str:
    """Return a text whose places below a folder are relative to it."""
    base = folder.rstrip("/\\")
    return re.sub(rf"(^|(?<=[\s(])){re.escape(base)}[/\\]", "", text, flags=re.MULTILINE) if base else text


def leak_text(item: pytest.Item, result: Result, judgement: Judgement) -> str:
    """Return the text of the failure of a test that leaks, has no verdict, or has another finding."""
    shown = replace(result, reason="") if result.findings else result  # they say it themselves
    text = _below(failure_text(shown), _folder(item))
    if result.verdict is Verdict.INCONCLUSIVE:
        does = "has no leak verdict"
    elif judgement.growths:
        does = "leaks"
    elif any(finding.rule == KEEPS_TO_ITS_PEAK for finding in result.findings):
        does = "uses more memory than its limit"
    else:
        does = "has a kernel that makes a wrong access"
    return f"{clean_line(result.case)} {does}; it was run {judgement.runs} times\n{text}"


class LeakCheckWarning(pytest.PytestWarning):
    """A test could not be checked for leaks."""


def warn_of(item: pytest.Item, reason: str) -> None:
    """Warn that a test has no verdict. A filter that makes errors of warnings doesn't make the test fail."""
    warning = LeakCheckWarning(f"no leak verdict: {reason}")
    try:
        item.warn(warning)
    except LeakCheckWarning:
        with warnings.catch_warnings():
            warnings.simplefilter("always", LeakCheckWarning)
            item.warn(warning)
