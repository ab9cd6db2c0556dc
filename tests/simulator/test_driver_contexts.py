"""Which of the driver's functions need cuInit, and which a current context: a table of all that are simulated.

The table follows the lists of results in CUDA's reference (cuda.h), as ``order/driver_context.h`` has it. Some lists
are longer than what happens: cuDeviceGetCount names CUDA_ERROR_INVALID_CONTEXT, and every program calls it without
one. So did programs that were watched on devices: cuPointerGetAttributes worked in a thread without a context, where
cuMemGetAddressRange did not (NVIDIA/cuda-samples#96), cuMemHostUnregister works (openucx/ucx#10643), and cuda.core
gives back pinned memory with cuMemFreeHost from any thread. Before cuInit even what concerns nobody's device is refused
(lupinemachines/lupine#435).
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from quiesce.simulator.runtime.build import build_library
from quiesce.simulator.runtime.elf_reading import read_defined_names
from quiesce.simulator.runtime.vendor_libraries import functions_of

INVALID_VALUE, NOT_INITIALIZED, INVALID_CONTEXT = 1, 3, 201

NEITHER: Final = """
cuInit cuDriverGetVersion cuGetErrorName cuGetErrorString cuGetExportTable cuGetProcAddress cuGetProcAddress_v2
"""
CU_INIT: Final = """
cuCtxGetCurrent cuCtxSetCurrent
cuCtxCreate_v2 cuCtxCreate_v3 cuCtxCreate_v4
cuDeviceCanAccessPeer cuDeviceComputeCapability cuDeviceGet cuDeviceGetAttribute cuDeviceGetByPCIBusId cuDeviceGetCount
cuDeviceGetDefaultMemPool cuDeviceGetGraphMemAttribute cuDeviceGetMemPool cuDeviceGetName cuDeviceGetP2PAttribute
cuDeviceGetPCIBusId cuDeviceGetUuid cuDeviceGetUuid_v2 cuDeviceGraphMemTrim cuDevicePrimaryCtxGetState
cuDevicePrimaryCtxReset cuDevicePrimaryCtxReset_v2
cuDevicePrimaryCtxRetain cuDevicePrimaryCtxSetFlags cuDevicePrimaryCtxSetFlags_v2 cuDeviceSetGraphMemAttribute
cuDeviceSetMemPool cuDeviceTotalMem_v2
cuEventDestroy cuEventDestroy_v2 cuEventElapsedTime cuEventElapsedTime_v2 cuEventQuery cuEventSynchronize
cuGraphAddChildGraphNode cuGraphAddDependencies cuGraphAddDependencies_v2 cuGraphAddEmptyNode
cuGraphAddEventRecordNode cuGraphAddEventWaitNode cuGraphAddHostNode cuGraphAddKernelNode cuGraphAddKernelNode_v2
cuGraphAddMemAllocNode cuGraphAddMemFreeNode cuGraphAddMemcpyNode cuGraphAddMemsetNode cuGraphAddNode
cuGraphAddNode_v2 cuGraphChildGraphNodeGetGraph cuGraphClone cuGraphCreate cuGraphDebugDotPrint cuGraphDestroy
cuGraphDestroyNode cuGraphEventRecordNodeGetEvent cuGraphEventRecordNodeSetEvent cuGraphEventWaitNodeGetEvent
cuGraphEventWaitNodeSetEvent cuGraphExecChildGraphNodeSetParams cuGraphExecDestroy cuGraphExecEventRecordNodeSetEvent
cuGraphExecEventWaitNodeSetEvent cuGraphExecGetFlags cuGraphExecGetId cuGraphExecHostNodeSetParams
cuGraphExecKernelNodeSetParams cuGraphExecKernelNodeSetParams_v2 cuGraphExecMemcpyNodeSetParams
cuGraphExecMemsetNodeSetParams cuGraphExecNodeSetParams cuGraphExecUpdate cuGraphExecUpdate_v2 cuGraphGetEdges
cuGraphGetEdges_v2 cuGraphGetId cuGraphGetNodes cuGraphGetRootNodes cuGraphHostNodeGetParams cuGraphHostNodeSetParams
cuGraphInstantiate cuGraphInstantiateWithFlags cuGraphInstantiateWithParams cuGraphInstantiate_v2
cuGraphKernelNodeGetParams cuGraphKernelNodeGetParams_v2 cuGraphKernelNodeSetParams cuGraphKernelNodeSetParams_v2
cuGraphMemAllocNodeGetParams cuGraphMemFreeNodeGetParams cuGraphMemcpyNodeGetParams cuGraphMemcpyNodeSetParams
cuGraphMemsetNodeGetParams cuGraphMemsetNodeSetParams cuGraphNodeFindInClone cuGraphNodeGetContainingGraph
cuGraphNodeGetDependencies cuGraphNodeGetDependencies_v2 cuGraphNodeGetDependentNodes cuGraphNodeGetDependentNodes_v2
cuGraphNodeGetEnabled cuGraphNodeGetLocalId cuGraphNodeGetParams cuGraphNodeGetToolsId cuGraphNodeGetType
cuGraphNodeSetEnabled cuGraphNodeSetParams cuGraphReleaseUserObject cuGraphRemoveDependencies
cuGraphRemoveDependencies_v2 cuGraphRetainUserObject cuUserObjectCreate cuUserObjectRelease cuUserObjectRetain
cuKernelGetAttribute cuKernelSetAttribute cuLibraryGetKernel cuLibraryLoadData cuLibraryLoadFromFile cuLibraryUnload
cuLinkAddData_v2 cuLinkAddFile_v2 cuLinkComplete cuLinkDestroy cuLogsRegisterCallback cuLogsUnregisterCallback
cuModuleGetLoadingMode
cuMemAddressFree cuMemAddressReserve cuMemCreate cuMemExportToShareableHandle cuMemGetAccess
cuMemGetAllocationGranularity cuMemGetAllocationPropertiesFromHandle cuMemImportFromShareableHandle cuMemMap
cuMemRelease cuMemRetainAllocationHandle cuMemSetAccess cuMemUnmap
cuMulticastAddDevice cuMulticastBindMem cuMulticastCreate
cuMemGetDefaultMemPool cuMemGetMemPool cuMemPoolCreate cuMemPoolDestroy cuMemPoolGetAccess cuMemPoolGetAttribute
cuMemPoolSetAccess cuMemPoolSetAttribute cuMemPoolTrimTo cuMemSetMemPool
cuMemAdvise cuMemAdvise_v2 cuMemFree_v2 cuMemFreeHost cuMemHostUnregister cuPointerGetAttribute cuPointerGetAttributes
cuStreamDestroy cuStreamDestroy_v2 cuThreadExchangeStreamCaptureMode
"""
CURRENT: Final = """
cuArray3DCreate_v2 cuArray3DGetDescriptor_v2 cuArrayCreate_v2 cuArrayDestroy cuArrayGetDescriptor_v2
cuSurfObjectCreate cuSurfObjectDestroy cuTexObjectCreate cuTexObjectDestroy
cuMemcpyAtoD_v2 cuMemcpyAtoH_v2 cuMemcpyDtoA_v2 cuMemcpyHtoA_v2
cuCtxAttach cuCtxDisablePeerAccess cuCtxEnablePeerAccess cuCtxGetCacheConfig cuCtxGetDevice cuCtxGetFlags cuCtxGetLimit
cuCtxGetStreamPriorityRange cuCtxPopCurrent cuCtxPopCurrent_v2 cuCtxResetPersistingL2Cache cuCtxSetCacheConfig
cuCtxSetLimit cuCtxSynchronize cuProfilerStart cuProfilerStop
cuEventCreate cuStreamCreate cuStreamCreateWithPriority
cuFuncGetAttribute cuFuncSetAttribute cuFuncSetBlockShape cuFuncSetCacheConfig cuFuncSetSharedSize
cuLaunch cuLaunchGrid cuParamSetSize cuParamSetf cuParamSeti cuParamSetv
cuIpcCloseMemHandle cuIpcGetEventHandle cuIpcGetMemHandle cuIpcOpenEventHandle cuIpcOpenMemHandle cuIpcOpenMemHandle_v2
cuKernelGetFunction cuLibraryGetGlobal cuLibraryGetModule
cuLinkCreate_v2 cuModuleGetFunction cuModuleGetGlobal_v2 cuModuleLoad cuModuleLoadData cuModuleLoadDataEx
cuModuleLoadFatBinary cuModuleUnload cuOccupancyMaxActiveBlocksPerMultiprocessor
cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags cuOccupancyMaxPotentialBlockSize
cuMemAllocHost_v2 cuMemAllocManaged cuMemAllocPitch_v2 cuMemAlloc_v2 cuMemGetAddressRange_v2
cuMemGetInfo_v2 cuMemHostAlloc cuMemHostGetDevicePointer_v2 cuMemHostGetFlags cuMemHostRegister_v2
cuMemcpy cuMemcpy2DUnaligned_v2 cuMemcpy2D_v2 cuMemcpy3DPeer cuMemcpy3D_v2 cuMemcpyDtoD_v2 cuMemcpyDtoH_v2
cuMemcpyHtoD_v2 cuMemcpyPeer
cuMemsetD16_v2 cuMemsetD2D16_v2 cuMemsetD2D32_v2 cuMemsetD2D8_v2 cuMemsetD32_v2 cuMemsetD8_v2
"""
# With the place of the stream among the arguments: one that was created brings its context along.
STREAM: Final = """
cuGraphLaunch:1 cuGraphUpload:1 cuEventRecord:1 cuEventRecordWithFlags:1
cuLaunchCooperativeKernel:8 cuLaunchHostFunc:0 cuLaunchGridAsync:3 cuLaunchHostFunc_v2:0 cuLaunchKernel:8
cuMemAllocAsync:2 cuMemAllocFromPoolAsync:3 cuMemFreeAsync:1 cuMemPrefetchAsync:3 cuMemPrefetchAsync_v2:4
cuMemcpy2DAsync_v2:1 cuMemcpy3DAsync_v2:1 cuMemcpy3DPeerAsync:1 cuMemcpyAsync:3 cuMemcpyDtoDAsync_v2:3
cuMemcpyAtoHAsync_v2:4 cuMemcpyHtoAAsync_v2:4
cuMemcpyBatchAsync:8 cuMemcpyBatchAsync_v2:7 cuMemcpyDtoHAsync_v2:3 cuMemcpyHtoDAsync_v2:3 cuMemcpyPeerAsync:5
cuMemsetD16Async:3 cuMemsetD2D16Async:5 cuMemsetD2D32Async:5 cuMemsetD2D8Async:5 cuMemsetD32Async:3 cuMemsetD8Async:3
cuStreamAddCallback:0 cuStreamBeginCapture_v2:0 cuStreamEndCapture:0 cuStreamGetCaptureInfo:0
cuStreamGetCaptureInfo_v2:0 cuStreamGetCaptureInfo_v3:0 cuStreamGetCtx:0 cuStreamGetCtx_v2:0 cuStreamGetDevice:0
cuStreamGetFlags:0 cuStreamGetId:0 cuStreamGetPriority:0 cuStreamIsCapturing:0 cuStreamQuery:0 cuStreamSynchronize:0
cuStreamBeginCaptureToGraph:0 cuStreamUpdateCaptureDependencies:0 cuStreamUpdateCaptureDependencies_v2:0
cuStreamWaitEvent:0 cuStreamWaitValue32_v2:0 cuStreamWaitValue64_v2:0 cuStreamWriteValue32:0 cuStreamWriteValue32_v2:0
cuStreamWriteValue64:0 cuStreamWriteValue64_v2:0
"""
# With the place of a context, which need not be current.
CONTEXT: Final = """
cuCtxDestroy:0 cuCtxDestroy_v2:0 cuCtxGetApiVersion:0 cuCtxGetDevice_v2:1 cuCtxGetId:0 cuCtxPushCurrent:0
cuCtxPushCurrent_v2:0 cuCtxSynchronize_v2:0
"""
OTHERWISE: Final = {
    "cuLaunchKernelEx": "its stream is in a structure",
    "cuCtxDetach": "its context has to be current",
    "cuDevicePrimaryCtxRelease": "the context has to be retained",
    "cuDevicePrimaryCtxRelease_v2": "the context has to be retained",
}
ARGUMENTS: Final = 12


def places(table: str) -> dict[str, int]:
    return {name: int(place) for name, _, place in (word.partition(":") for word in table.split())}


class Threads:
    """Calls of the driver, each in a new thread, which has no current context."""

    def __init__(self, library: ctypes.CDLL, context: int, stream: int) -> None:
        self.library, self.context, self.stream = library, context, stream

    def call(self, name: str, arguments: dict[int, int] | None = None, current: int = 0) -> int:
        """Return what a function answers to zeros but for these arguments, in a thread with that current context."""
        answers: list[int] = []

        def work() -> None:
            if current:
                assert self.library.cuCtxSetCurrent(ctypes.c_void_p(current)) == 0
            passed = (ctypes.c_uint64((arguments or {}).get(place, 0)) for place in range(ARGUMENTS))
            answers.append(getattr(self.library, name)(*passed))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return answers[0]


def driver_names() -> Iterator[str]:
    """Yield the functions but for those for a per-thread default stream, which are the same functions."""
    names = {name.removeprefix("simulated_") for name in read_defined_names(Path(build_library()))}
    for name in sorted(names & functions_of("libcuda.so.1")):
        if name.startswith("cu") and name[2:3].isupper() and not name.endswith(("_ptsz", "_ptds")):
            yield name


@pytest.fixture
def threads(start: Any, capfd: pytest.CaptureFixture[str]) -> Threads:
    library, made = start().machine.library, (ctypes.c_void_p(), ctypes.c_void_p())
    assert library.cuInit(0) == library.cuCtxCreate_v2(ctypes.byref(made[0]), 0, 0) == 0
    assert library.cuStreamCreate(ctypes.byref(made[1]), 0) == 0
    return Threads(library, made[0].value or 0, made[1].value or 0)


def test_every_function_has_a_row(library: str) -> None:
    rows = [*NEITHER.split(), *CU_INIT.split(), *CURRENT.split(), *places(STREAM), *places(CONTEXT), *OTHERWISE]
    assert len(rows) == len(set(rows))
    assert set(rows) == set(driver_names())


def test_before_initialization_functions_say_so(start: Any, capfd: pytest.CaptureFixture[str]) -> None:
    calls = Threads(start().machine.library, 0, 0)
    answers = {name: calls.call(name) for name in driver_names() if name not in NEITHER.split()}
    assert {name for name, answer in answers.items() if answer != NOT_INITIALIZED} == set()
    assert NOT_INITIALIZED not in [calls.call(name) for name in NEITHER.split()]


def test_functions_that_need_a_current_context_say_so(threads: Threads) -> None:
    wanting = [*CURRENT.split(), *places(STREAM), *OTHERWISE]
    answers = {name: threads.call(name) for name in wanting if name != "cuLaunchKernelEx"}
    assert {name for name, answer in answers.items() if answer != INVALID_CONTEXT} == set()
    peer = {0: threads.context}
    answers = {
        name: threads.call(name, peer if "PeerAccess" in name else None, threads.context)
        for name in (*CURRENT.split(), *places(STREAM))
    }
    assert {name for name, answer in answers.items() if answer == INVALID_CONTEXT} == set()


def test_all_others_do_without(threads: Threads) -> None:
    answers = {name: threads.call(name) for name in (*NEITHER.split(), *CU_INIT.split())}
    assert {name for name, answer in answers.items() if answer in (INVALID_CONTEXT, NOT_INITIALIZED)} == set()


def test_a_stream_that_was_created_brings_its_context_along(threads: Threads) -> None:
    for handle in (1, 2):  # the legacy default stream and the thread's own
        answers = {name: threads.call(name, {place: handle}) for name, place in places(STREAM).items()}
        assert {name for name, answer in answers.items() if answer != INVALID_CONTEXT} == set()
    answers = {name: threads.call(name, {place: threads.stream}) for name, place in places(STREAM).items()}
    assert {name for name, answer in answers.items() if answer == INVALID_CONTEXT} == set()


def test_a_context_can_be_named(threads: Threads) -> None:
    answers = {}
    for name, place in places(CONTEXT).items():
        answers[name] = threads.call(name, {place: made(threads.library)})
    assert {name for name, answer in answers.items() if answer == INVALID_CONTEXT} == set()
    expected = {name: INVALID_VALUE if "Destroy" in name or "Push" in name else INVALID_CONTEXT for name in answers}
    assert {name: threads.call(name) for name in answers} == expected, "as an H200 does"


def made(library: ctypes.CDLL) -> int:
    """Return a context that is current to nobody."""
    context = ctypes.c_void_p()
    assert library.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == library.cuCtxPopCurrent_v2(None) == 0
    return context.value or 0


def test_a_launch_takes_the_context_of_its_stream(threads: Threads) -> None:
    """cuLaunchKernel: "the context … will either be taken from the specified stream hStream or the current context"."""
    for stream, wanting in ((threads.stream, False), (0, True)):
        configuration = (ctypes.c_uint64 * 7)(1, 1, 1, 1, stream)
        answer = threads.call("cuLaunchKernelEx", {0: ctypes.addressof(configuration)})
        assert (answer == INVALID_CONTEXT) is wanting


def current(library: ctypes.CDLL) -> int:
    found = ctypes.c_void_p(1)
    assert library.cuCtxGetCurrent(ctypes.byref(found)) == 0
    return found.value or 0


def test_the_runtime_makes_a_context_current_to_the_thread_that_calls_it(start: Any) -> None:
    client, seen = start(devices=2), []

    def work() -> None:
        before = current(client.machine.library)
        count, version = ctypes.c_int(), ctypes.c_int()
        for function, argument in (("GetDeviceCount", count), ("RuntimeGetVersion", version), ("GetDevice", count)):
            client.ok(function, ctypes.byref(argument))
        asked = current(client.machine.library)
        client.ok("SetDevice", 1)
        seen.append((before, asked, current(client.machine.library)))

    client.make("Malloc", 8)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [(0, 0, 2)]
    assert current(client.machine.library) == 1


def test_a_context_is_detached_as_often_as_it_was_attached(threads: Threads) -> None:
    library, attached = threads.library, ctypes.c_void_p()
    assert threads.call("cuCtxDetach", {0: threads.context}) == INVALID_CONTEXT, "it is not current to that thread"
    assert library.cuCtxAttach(ctypes.byref(attached), 0) == 0
    assert attached.value == threads.context
    assert library.cuCtxDetach(attached) == 0
    assert library.cuStreamQuery(ctypes.c_void_p(threads.stream)) == 0
    assert library.cuCtxDetach(attached) == 0
    assert current(library) == 0
    assert library.cuStreamQuery(ctypes.c_void_p(threads.stream)) == 400, "it went with its context"
    assert library.cuCtxDetach(attached) == INVALID_CONTEXT


DROPPED: Final = """
import ctypes, threading
driver = ctypes.CDLL("libcuda.so.1")
context, stream, block = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
assert driver.cuInit(0) == driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert driver.cuCtxSetCurrent(context) == driver.cuStreamCreate(ctypes.byref(stream), 1) == 0
assert driver.cuMemAllocAsync(ctypes.byref(block), ctypes.c_size_t(1 << 20), {stream}) == 0
def drop():
    {first}
    driver.cuMemFreeAsync(block, {stream})
thread = threading.Thread(target=drop)
thread.start()
thread.join()
assert driver.cuStreamDestroy_v2(stream) == 0
"""


@pytest.mark.parametrize(
    ("stream", "first", "leaks"),
    [("None", "", True), ("None", "driver.cuCtxSetCurrent(context)", False), ("stream", "", False)],
    ids=["default stream", "in a context", "own stream"],
)
@pytest.mark.usefixtures("library")
def test_a_free_that_no_context_is_current_for_is_a_leak(stream: str, first: str, leaks: bool) -> None:
    """As NVIDIA/cuda-python#2497, without the library."""
    text = DROPPED.format(stream=stream, first=first)
    command = [sys.executable, "-m", "quiesce.cli.main", "exec", "--flavour", "cuda:12", "--at-exit", "all", "--"]
    done = subprocess.run([*command, sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == leaks, done.stdout + done.stderr
    assert ("nothing_is_left_at_quiescence" in done.stdout) is leaks
    assert ("cuMemAllocAsync" in done.stdout) is leaks
