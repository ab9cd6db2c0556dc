from __future__ import annotations

import pytest

from quiesce.reporting.opening import Chosen, left_out_lines, opening_lines, short_version


def test_it_says_how_many_cases_each_backend_can_run() -> None:
    backends = [Chosen("host", "glibc 2.36", 7), Chosen("reference", "1", 12)]
    assert opening_lines(12, 11, backends, 5) == [
        "12 cases (11 of historic bugs and 1 control) on 2 backends, seed 5",
        "  host        7 of 12  glibc 2.36",
        "  reference  12 of 12",
    ]


@pytest.mark.parametrize(
    ("of_bugs", "said"), [(2, "2 cases of historic bugs on 1 backend, seed 0"), (0, "2 cases on 1 backend, seed 0")]
)
def test_kinds_are_said_where_there_are_some(of_bugs: int, said: str) -> None:
    assert opening_lines(2, of_bugs, [Chosen("host", "", 2)], 0)[0] == said


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


def test_backends_with_one_reason_share_a_line() -> None:
    missing = "CuPy cannot be imported (no libamdhip64.so.5); pip install 'quiesce[cupy-cuda12]'"
    assert left_out_lines({"cupy-rocm": missing, "opencl": "there is no device; buy one", "cupy": missing}) == [
        "left out: cupy, cupy-rocm: CuPy cannot be imported; pip install 'quiesce[cupy-cuda12]'",
        "left out: opencl: there is no device; buy one",
    ]
