from __future__ import annotations

import pytest

from quiesce.reporting.terminal import Chosen, left_out_lines, opening_lines, short_version


def test_it_says_how_many_cases_each_backend_can_run() -> None:
    backends = [Chosen("host", "glibc 2.36", 7), Chosen("reference", "1", 12)]
    assert opening_lines(12, backends, 5) == [
        "12 cases on 2 backends, seed 5",
        "  host        7 of 12  glibc 2.36",
        "  reference  12 of 12",
    ]


@pytest.mark.parametrize(
    ("version", "short"),
    [
        ("1", ""),
        ("glibc 2.36", "glibc 2.36"),
        ("PyOpenCL 2026.1 on OpenCL 3.0 PoCL 3.1  Linux, RELOC, LLVM", "PyOpenCL 2026.1 on OpenCL 3.0 PoCL 3.1"),
        ("\x1b[1mx", "x"),
        ("v" * 80, "v" * 60 + "…"),
    ],
)
def test_a_version_ends_before_its_details(version: str, short: str) -> None:
    assert short_version(version) == short


def test_backends_that_are_missing_and_those_that_do_not_work_have_a_line_each() -> None:
    missing, broken = ("not installed", "see quiesce doctor"), ("cannot work here", "see quiesce doctor")
    assert left_out_lines({"cupy-rocm": missing, "opencl": broken, "cupy": missing}) == [
        "not installed: cupy, cupy-rocm (see quiesce doctor)",
        "cannot work here: opencl (see quiesce doctor)",
    ]
    assert left_out_lines({}) == []
