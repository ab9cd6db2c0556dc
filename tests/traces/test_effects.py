"""Which functions that are not simulated leave a hole in what is judged, by their names."""

from __future__ import annotations

import pytest

from quiesce.simulator.judge.unchecked import Effect, effect_of, effects_missing
from quiesce.simulator.runtime.build import build_library
from quiesce.simulator.runtime.elf_reading import read_defined_names
from quiesce.simulator.runtime.vendor_libraries import functions_of


@pytest.mark.parametrize(
    ("functions", "effect"),
    [
        (
            "cudaMallocMipmappedArray cuMipmappedArrayCreate cudaImportExternalMemory hipMallocMipmappedArray",
            Effect.MAKES,
        ),
        (
            "cuIpcOpenMemHandle_v2 cudaGraphicsMapResources cudaExternalMemoryGetMappedBuffer cudaGraphCreate",
            Effect.MAKES,
        ),
        ("cuMemPoolImportPointer hipGraphCreate cuMemAllocFromPoolAsync cudaGreenCtxCreate", Effect.MAKES),
        (
            "cudaFreeMipmappedArray cuIpcCloseMemHandle hipDestroyExternalMemory cudaGraphicsUnmapResources",
            Effect.FREES,
        ),
        (
            "cudaGraphAddMemFreeNode hipGraphAddMemAllocNode cuStreamWaitValue32_ptsz cudaMemcpyToArrayAsync",
            Effect.ORDERS,
        ),
        ("cuCtxRecordEvent cudaStreamUpdateCaptureDependencies cudaWaitExternalSemaphoresAsync_v2", Effect.ORDERS),
        ("cuMemcpyWithAttributesAsync hipDrvGraphAddMemcpyNode cuStreamBeginRecaptureToGraph", Effect.ORDERS),
        ("cuEventRecordWithFlags in a capture", Effect.ORDERS),
        ("cudaDeviceGetHostAtomicCapabilities cuDeviceGetLuid cudaGetExportTable cuGraphNodeGetLocalId", None),
        ("cudaStreamGetAttribute cudaStreamSetAttribute cudaFuncSetSharedMemConfig cuPointerSetAttribute", None),
        ("cuTensorMapEncodeTiled cudaGraphDebugDotPrint cuCoredumpSetAttribute cudaProfilerInitialize", None),
        ("cuMemPoolExportPointer hipIpcGetMemHandle cudaOccupancyMaxActiveClusters cuLogsRegisterCallback", None),
        ("cublasSgemm_v2 cudnnCreateTensorDescriptor nvmlDeviceCreateGpuInstance ncclGroupStart", None),
    ],
)
def test_names_say_what_a_function_does(functions: str, effect: Effect | None) -> None:
    names = [functions] if " in a " in functions else functions.split()
    assert [effect_of(name) for name in names] == [effect] * len(names)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("library", ["libcuda.so.1", "libcudart.so"], indirect=False)
def test_what_only_asks_has_no_effect(library: str) -> None:
    missing = functions_of(library) - read_defined_names(build_library())
    asking = [name for name in missing if effect_of(name) is None]
    holes = [name for name in asking if any(verb in name for verb in ("Memcpy", "Memset", "Free", "Launch", "AddNode"))]
    assert holes == ["cuGraphMemFreeNodeGetParams"][: len(holes)] or all("Get" in name for name in holes), holes
    assert len(asking) > len(missing) // 3


def test_the_first_are_named_and_the_rest_counted() -> None:
    assert effects_missing({"cudaDeviceGetLuid": 3}) == ""
    calls = {f"cudaFreeThing{number}": number for number in range(1, 6)}
    told = effects_missing(calls)
    assert "cudaFreeThing2 is not simulated (called 2 times): what it would free was not judged" in told
    assert "nor were 2 more functions of this kind" in told
