"""One report that holds every verdict; the golden report is written from it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from quiesce.findings import Finding, Grade
from quiesce.results import Report, Result, Sample, Verdict

SQUEEZE = Result(
    case="pool/squeeze_before_oom",
    title="A pool gives its cached blocks back before it reports out of memory",
    path="cases/pool/squeeze_before_oom.case",
    backend="reference",
    verdict=Verdict.FAILED,
    findings=(
        Finding(
            invariant="request_fits_but_out_of_memory",
            expected="allocated: 134217728 of 134217728 bytes are free or cached",
            observed="out of memory",
            operation_index=3,
            line=14,
            request="b = allocate 100663296",
            allocated_by="operation 1 (line 11): a = allocate 67108864",
        ),
    ),
    operations=4,
    skipped=1,
    upstream=("NVIDIA/cccl#4222",),
    reproduce="quiesce run cases/pool/squeeze_before_oom.case --backend reference",
    timeline=(
        Sample(1, "a = allocate 67108864", "allocated at 0x10000", 11, 67108864, 67108864, None),
        Sample(3, "b = allocate 100663296", "out of memory", 14, 0, 67108864, None),
    ),
)


def other(case: str, backend: str, verdict: Verdict, **fields: Any) -> Result:
    result = Result(case=case, title=f"Title of {case}", path=f"cases/{case}.case", backend=backend, verdict=verdict)
    return replace(result, **fields)


RESULTS = (
    SQUEEZE,
    other(
        "pool/trim",
        "reference",
        Verdict.PASSED,
        operations=3,
        timeline=(Sample(0, "trim", "done", 9, 0, 0, 0),),
    ),
    other("tape/diamond", "reference", Verdict.BROKEN_CASE, reason="the fault 'tape.leaks' did not turn it red"),
    other("tape/diamond", "host", Verdict.UNSUPPORTED, reason="it lacks tape"),
    other("pool/squeeze_before_oom", "host", Verdict.NOT_PROMISED, reason="no promise of reclaims-before-oom"),
    other(
        "streams/recycled_handle",
        "opencl",
        Verdict.KNOWN_UPSTREAM,
        reason="opencl 1.0-1.2: vendor#7",
        findings=(
            Finding(
                "nothing_left_at_quiescence",
                "events == 0",
                "events == 1 (größe 字)",
                evidence="pool: 1 event\n\x1b[31mred\x1b[0m",
                fault_class="handle leak",
                grade=Grade.LIVE_LEAK,
            ),
        ),
    ),
    other("streams/slow", "opencl", Verdict.INCONCLUSIVE, reason="the foreign process grew as well"),
)


@pytest.fixture
def failing() -> Result:
    return SQUEEZE


@pytest.fixture
def report() -> Report:
    return Report(seed=7, results=RESULTS, run={"machine": "Linux x86_64", "started": "2026-01-01T00:00:00+00:00"})
