"""Vendor libraries are told from others by name, and each answers in its own numbers."""

from __future__ import annotations

import re

import pytest

from quiesce.simulator.runtime.vendor_libraries import (
    FAMILIES,
    NOT_SIMULATED,
    Family,
    answer,
    family_of,
    owns,
    simulated_name,
)

VENDORS = """
libcudart.so.12 libcuda.so.1 libcublasLt.so.12 libcudnn_ops_infer.so.8 libnvrtc-builtins.so.12.4 libnccl.so.2
libamdhip64.so libamdhip64.so.7 libhipblas.so.3 libhipfft.so librocsolver.so.0 libroctx64.so.4 librccl.so.1
libMIOpen.so.1 libnvidia-ml.so.1 libcusparseLt.so.0 libnvJitLink.so.12
"""
OTHERS = """
libc.so.6 libcurl.so.4 libcups.so.2 librocksdb.so.8 libnvme.so.1 libhiredis.so.1 libcudart.soup libcudart
xlibcudart.so.12 libcudart.so.12/../x libcudart.so.12.bak libcuda_test.so libtorch_cuda.so libc10_cuda.so
"""


@pytest.mark.parametrize("soname", VENDORS.split())
def test_a_vendors_library_is_known(soname: str) -> None:
    assert family_of(soname) is not None


@pytest.mark.parametrize("soname", OTHERS.split())
def test_others_are_not(soname: str) -> None:
    assert family_of(soname) is None
    assert answer(soname, "cudaMalloc") is None


@pytest.mark.parametrize(
    ("soname", "function", "answers"),
    [
        ("libcublas.so.12", "cublasCreate_v2", 15),
        ("libhipblas.so.3", "hipblasCreate", 7),
        ("libcudart.so.12", "cudaGraphAddNode", 801),
        ("libcudart.so.12", "cudaGetLastError", 801),  # a status, although it speaks of errors
        ("libcudart.so.12", "cudaGetErrorString", NOT_SIMULATED),
        ("libcuda.so.1", "cuGetErrorString", 801),  # takes a place for the text
        ("libcupti.so.12", "cuptiGetResultString", 27),
        ("libnccl.so.2", "ncclGetVersion", 3),
        ("libnccl.so.2", "ncclGetLastError", NOT_SIMULATED),
        ("librocblas.so.4", "rocblas_status_to_string", NOT_SIMULATED),
        ("libcudnn.so.8", "cudnnCreate", 9),
        ("libcudnn.so.9", "cudnnCreate", 3000),
        ("libcudnn_ops.so.9", "cudnnCreate", 3000),
        ("libcudnn.so.9", "cudnnGetVersion", 0),
        ("libroctx64.so.4", "roctxRangePushA", -1),
        ("libcusparse.so.12", "cusparseGetMatType", None),  # every number is a type
        ("libamdhip64.so.5", "hiprtcVersion", 11),
        ("libamdhip64.so.5", "hiprtcGetErrorString", NOT_SIMULATED),
        ("libamdhip64.so.5", "_Z23hipDestroySurfaceObjecty", None),
        ("libcufile.so.0", "cuFileDriverOpen", None),
        ("librocblas.so.5", "strange_name", None),
    ],
)
def test_what_is_not_simulated_says_so_in_the_librarys_own_way(
    soname: str, function: str, answers: int | str | None
) -> None:
    assert answer(soname, function) == answers


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.libraries)
def test_no_family_answers_with_success(family: Family) -> None:
    assert family.status != 0
    assert bool(family.status_name) == (family.status is not None)


@pytest.mark.parametrize(
    ("soname", "function", "owned"),
    [
        ("libamdhip64.so.7", "hipMalloc", True),
        ("libamdhip64.so.7", "__hipRegisterFatBinary", True),
        ("libamdhip64.so.5", "_Z22hipCreateSurfaceObjectPyPK15hipResourceDesc", True),
        ("libamdhip64.so.7", "hipblasCreate", False),
        ("libhipblas.so.3", "hipblasCreate", True),
        ("libcuda.so.1", "cuMemAlloc_v2", True),
        ("libcuda.so.1", "cudaMalloc", False),
        ("libcuda.so.1", "cublasCreate_v2", False),
        ("libc.so.6", "hipMalloc", False),
        ("libcudart.so.12", "PyCuda", False),
    ],
)
def test_a_function_belongs_to_the_library_whose_name_it_bears(soname: str, function: str, owned: bool) -> None:
    assert owns(soname, function) == owned


@pytest.mark.parametrize(
    ("soname", "target", "name"),
    [
        ("libcublas.so.12", "simulated_cublasCreate_v2", "cublasCreate_v2"),
        ("libcublas-0a1b2c3d.so.12.4.5", "simulated_cublasCreate_v2", "cublasCreate_v2"),
        ("libcufft.so.11", "simulated_cublasCreate_v2", None),
        ("libcublas.so.12", "cublasCreate_v2", None),
        ("libcudnn.so.8", "simulated_8_cudnnCreate", "cudnnCreate"),
        ("libcudnn.so.8", "simulated_9_cudnnCreate", None),
        ("libcudnn_ops.so.9.1.0", "simulated_9_cudnnCreate", "cudnnCreate"),
        ("libcudnn.so", "simulated_9_cudnnCreate", "cudnnCreate"),
        ("libcudnn.so", "simulated_8_cudnnCreate", None),
        ("libcublas.so.12", "quiesce_open", None),
    ],
)
def test_a_simulated_function_stands_for_one_of_its_library(soname: str, target: str, name: str | None) -> None:
    assert simulated_name(soname, target) == name


def test_no_library_belongs_to_two_families() -> None:
    for family in FAMILIES:
        for name in re.sub(r"\(\?:|\)\??|\[[^]]*\]\+?", "|", family.libraries).split("|"):
            matching = [each.libraries for each in FAMILIES if re.fullmatch(each.libraries, name)]
            assert len(matching) <= 1, f"{name}: {matching}"
