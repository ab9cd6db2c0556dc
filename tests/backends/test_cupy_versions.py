"""What is promised and can be done, by version and runtime: no CuPy is needed."""

from __future__ import annotations

import pytest

from quiesce.backends.cupy.versions import (
    Installation,
    backend_name,
    capabilities,
    cupy_distributions,
    parse_version,
    promises,
    version_text,
)
from quiesce.model.backend import Capability, Flavour, Promise
from quiesce.model.versions import find_version


def installed(version: str, flavour: Flavour = Flavour.CUDA, **facts: bool) -> Installation:
    return Installation(parse_version(version), flavour, **facts)


@pytest.mark.parametrize("version", ["12.3.0", "13.0.0", "14.2.0"])
def test_every_release_is_held_to_staging_a_pinned_source_directly(version: str) -> None:
    assert Promise.STAGES_PINNED_DIRECTLY in promises(installed(version), caching=True)


@pytest.mark.parametrize(
    ("version", "flavour", "captures"),
    [("12.3.0", Flavour.CUDA, True), ("13.3.0", Flavour.HIP, False), ("14.0.0", Flavour.HIP, True)],
)
def test_streams_are_captured_on_hip_since_14(version: str, flavour: Flavour, captures: bool) -> None:
    assert (Capability.CAPTURE in capabilities(installed(version, flavour), caching=True)) is captures


def test_what_was_not_found_to_work_is_not_claimed() -> None:
    bare = capabilities(installed("14.2.0"), caching=True)
    assert not {Capability.LAUNCH, Capability.STALL, Capability.DEVICES} & bare
    found = Installation((14, 2), Flavour.CUDA, devices=2, launches=True, stalls=True)
    assert {Capability.LAUNCH, Capability.STALL, Capability.DEVICES} <= capabilities(found, caching=True)


def test_nothing_is_seen_or_limited_below_the_asynchronous_pool() -> None:
    lacking = capabilities(installed("14.2.0"), caching=True) - capabilities(installed("14.2.0"), caching=False)
    assert {Capability.BACKING_LEDGER, Capability.ORDER_LEDGER, Capability.CAPACITY, Capability.POOLS} <= lacking
    assert Promise.TRIMS_TO_ZERO not in promises(installed("14.2.0"), caching=False)


def test_the_name_says_whose_runtime_it_is() -> None:
    assert [backend_name(flavour) for flavour in (Flavour.CUDA, Flavour.HIP)] == ["cupy", "cupy-rocm"]


@pytest.mark.parametrize(
    ("flavour", "runtime", "text"),
    [(Flavour.CUDA, 13000, "CUDA 13.0"), (Flavour.CUDA, 12040, "CUDA 12.4"), (Flavour.HIP, 70051831, "HIP 7.0")],
)
def test_the_version_of_cupy_comes_first(flavour: Flavour, runtime: int, text: str) -> None:
    said = version_text("14.2.0", flavour, runtime, runtime, "a GPU")
    assert find_version(said) == (14, 2)
    assert text in said


def test_two_distributions_are_told_from_one_and_from_what_only_sounds_alike() -> None:
    assert cupy_distributions(["numpy", "CuPy_cuda12x", "cupyx-tools", "cupy"]) == ("cupy", "cupy-cuda12x")
    assert cupy_distributions(["cupy-rocm-7-0", "cupy-cuda13x"]) == ("cupy-cuda13x", "cupy-rocm-7-0")
    assert cupy_distributions(["cupy-xarray", "cupyckup"]) == ()
