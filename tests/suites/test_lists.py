"""The lists of tests that cannot pass: each says why, and an error that names a missing library counts by itself."""

from __future__ import annotations

import pytest
from tests.suites.suites import read_suite, suite_names

from quiesce.model.program_rules import RULES


@pytest.mark.parametrize("name", suite_names())
def test_a_list_gives_reasons(name: str) -> None:
    for group in read_suite(name).cannot_pass:
        assert group.because.endswith("."), group
        assert group.tests, group
    for fault in read_suite(name).faults:
        assert fault.because.endswith("."), fault
        assert fault.rule in RULES, fault


@pytest.mark.parametrize(
    ("outcome", "text", "kind"),
    [
        ("passed", "", "passed"),
        ("skipped", "needs two devices", "skipped"),
        ("failed", "E  cupy_backends.cuda.libs.cublas.CUBLASError: CUBLAS_STATUS_NOT_SUPPORTED", "needs cuBLAS"),
        ("failed", "E  cupy.cuda.cufft.CuFFTError: CUFFT_NOT_SUPPORTED", "needs cuFFT"),
        ("failed", "E  AssertionError: Arrays are not equal", "failed"),
    ],
)
def test_an_outcome_counts_by_its_text(outcome: str, text: str, kind: str) -> None:
    assert read_suite("cupy-kernels-14").kind("tests/a_test.py::test_a", outcome, text) == kind


def test_a_star_stands_for_any_text() -> None:
    suite = read_suite("cupy-kernels-12.3")
    name = "tests/core_tests/test_raw.py::TestRaw_param_1_{backend='nvrtc', in_memory=True}::test_%s"
    assert suite.kind(name % "dynamical_parallelism", "failed", "") == "listed"
    assert suite.kind(name % "basic", "failed", "") == "failed"
