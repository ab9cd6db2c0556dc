"""What of a process could not be checked, in words."""

from __future__ import annotations

from quiesce.simulator.judge.unchecked import (
    functions_missing,
    kernels_unchecked,
    kernels_uncomputed,
    kernels_unfinished,
)
from quiesce.simulator.runtime.kernel_logs import Uncomputed


def test_kernels_that_did_not_run_are_told() -> None:
    assert kernels_unchecked(0) == ""
    assert kernels_unchecked(1) == ("1 kernel was launched and did not compute; what it read and wrote was not checked")
    assert kernels_unchecked(4_000) == (
        "4,000 kernels were launched and did not compute; what they read and wrote was not checked"
    )


def test_what_kernels_that_ran_did_to_memory_was_not_checked() -> None:
    assert kernels_unchecked(1, 1) == "1 kernel was launched and ran; what it read and wrote was not checked"
    assert kernels_unchecked(2, 2, 2) == ""
    assert kernels_unchecked(5, 4, 4) == (
        "5 kernels were launched, and 4 of them ran; what 1 of them read and wrote was not checked"
    )
    assert kernels_unchecked(5, 2) == (
        "5 kernels were launched, and 2 of them ran; what they read and wrote was not checked"
    )


def test_kernels_that_could_not_be_executed_are_named() -> None:
    assert kernels_uncomputed(()) == ""
    told = kernels_uncomputed([Uncomputed(f"kernel{number}", "why") for number in range(5)])
    assert told.startswith("5 kernels could not be executed, so that results are missing: 'kernel0' (why), ")
    assert "'kernel2' (why), 2 more. " in told
    assert "--kernels off" in told


def test_where_there_is_machine_code_only_the_ways_out_are_told() -> None:
    refused = Uncomputed("fill", "its image has machine code only, and no PTX")
    told = kernels_uncomputed([Uncomputed("other", "why"), refused])
    assert "code=compute_80" in told
    assert "+PTX" in told
    assert "+PTX" not in kernels_uncomputed([Uncomputed("other", "why")])


def test_kernels_that_broke_their_device_are_named() -> None:
    refused = Uncomputed("refused", "why")
    kernels = [refused, Uncomputed("fill", "ended with a trap, in block (0, 0, 0)", has_begun=True)]
    assert kernels_unfinished([refused]) == ""
    assert kernels_unfinished(kernels) == (
        "1 kernel did not run to its end, so that what follows on the device was not tested: "
        "'fill' (ended with a trap, in block (0, 0, 0))"
    )
    assert "fill" not in kernels_uncomputed(kernels)


def test_functions_that_are_not_simulated_are_told() -> None:
    assert functions_missing([]) == ""
    assert functions_missing(["cufftExecZ2Z"]) == "it called cufftExecZ2Z, which is not simulated"
    assert functions_missing(list("abc")) == "it called 3 functions that are not simulated: a, b, c"
    assert functions_missing(list("abcde")) == "it called 5 functions that are not simulated: a, b, c and 2 more"
