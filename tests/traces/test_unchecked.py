"""What of a process could not be checked, in words."""

from __future__ import annotations

from quiesce.traces.unchecked import kernels_unchecked


def test_kernels_that_did_not_run_are_told() -> None:
    assert kernels_unchecked(0) == ""
    assert kernels_unchecked(1) == (
        "1 kernel was launched; kernels do not compute here, so what it read and wrote was not checked"
    )
    assert kernels_unchecked(4_000) == (
        "4,000 kernels were launched; kernels do not compute here, so what they read and wrote was not checked"
    )
