"""The functions of the simulated libraries by name, for programs that look them up while they run.

A reference to a function can be read from a file, a lookup with ``dlsym`` can't; the vendor's library has them all.
The names of CUDA's driver and of HIP's runtime are in tables next to the C code, which answers lookups by them as well,
each with the first release that has it. The names of CUDA's runtime below are those that the headers of CUDA 12.8 and
13 declare (``cuda_runtime_api.h``), and those that libcudart exports in its releases from 11.8 to 13.5.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from quiesce.simulator.algebra_functions import ALGEBRA
from quiesce.simulator.computing_functions import COMPUTING
from quiesce.simulator.management_functions import MANAGEMENT

_RUNTIME: Final = """
    __cudaGetKernel __cudaGetProcAddress __cudaInitModule __cudaLaunchKernel __cudaLaunchKernel_ptsz
    __cudaPopCallConfiguration __cudaPushCallConfiguration __cudaRegisterFatBinary __cudaRegisterFatBinaryEnd
    __cudaRegisterFunction __cudaRegisterHostVar __cudaRegisterManagedVar __cudaRegisterSurface
    __cudaRegisterTexture __cudaRegisterUnifiedTable __cudaRegisterVar __cudaUnregisterFatBinary cudaArrayGetInfo
    cudaArrayGetMemoryRequirements cudaArrayGetPlane cudaArrayGetSparseProperties cudaBindSurfaceToArray
    cudaBindTexture cudaBindTexture2D cudaBindTextureToArray cudaBindTextureToMipmappedArray cudaChooseDevice
    cudaCreateChannelDesc cudaCreateSurfaceObject cudaCreateTextureObject cudaCreateTextureObject_v2
    cudaCtxResetPersistingL2Cache cudaDestroyExternalMemory cudaDestroyExternalSemaphore cudaDestroySurfaceObject
    cudaDestroyTextureObject cudaDevResourceGenerateDesc cudaDevSmResourceSplit cudaDevSmResourceSplitByCount
    cudaDeviceCanAccessPeer cudaDeviceDisablePeerAccess cudaDeviceEnablePeerAccess
    cudaDeviceFlushGPUDirectRDMAWrites cudaDeviceGetAttribute cudaDeviceGetByPCIBusId cudaDeviceGetCacheConfig
    cudaDeviceGetDefaultMemPool cudaDeviceGetDevResource cudaDeviceGetExecutionCtx cudaDeviceGetGraphMemAttribute
    cudaDeviceGetHostAtomicCapabilities cudaDeviceGetLimit cudaDeviceGetMemPool cudaDeviceGetNvSciSyncAttributes
    cudaDeviceGetP2PAtomicCapabilities cudaDeviceGetP2PAttribute cudaDeviceGetPCIBusId cudaDeviceGetSharedMemConfig
    cudaDeviceGetStreamPriorityRange cudaDeviceGetTexture1DLinearMaxWidth cudaDeviceGraphMemTrim
    cudaDeviceRegisterAsyncNotification cudaDeviceReset cudaDeviceSetCacheConfig cudaDeviceSetGraphMemAttribute
    cudaDeviceSetLimit cudaDeviceSetMemPool cudaDeviceSetSharedMemConfig cudaDeviceSynchronize
    cudaDeviceUnregisterAsyncNotification cudaDriverGetVersion cudaEGLStreamConsumerAcquireFrame
    cudaEGLStreamConsumerConnect cudaEGLStreamConsumerConnectWithFlags cudaEGLStreamConsumerDisconnect
    cudaEGLStreamConsumerReleaseFrame cudaEGLStreamProducerConnect cudaEGLStreamProducerDisconnect
    cudaEGLStreamProducerPresentFrame cudaEGLStreamProducerReturnFrame cudaEventCreate cudaEventCreateFromEGLSync
    cudaEventCreateWithFlags cudaEventDestroy cudaEventElapsedTime cudaEventElapsedTime_v2 cudaEventQuery
    cudaEventRecord cudaEventRecordWithFlags cudaEventRecordWithFlags_ptsz cudaEventRecord_ptsz
    cudaEventSynchronize cudaExecutionCtxDestroy cudaExecutionCtxGetDevResource cudaExecutionCtxGetDevice
    cudaExecutionCtxGetId cudaExecutionCtxRecordEvent cudaExecutionCtxStreamCreate cudaExecutionCtxSynchronize
    cudaExecutionCtxWaitEvent cudaExternalMemoryGetMappedBuffer cudaExternalMemoryGetMappedMipmappedArray cudaFree
    cudaFreeArray cudaFreeAsync cudaFreeAsync_ptsz cudaFreeHost cudaFreeMipmappedArray cudaFuncGetAttributes
    cudaFuncGetName cudaFuncGetParamCount cudaFuncGetParamInfo cudaFuncSetAttribute cudaFuncSetCacheConfig
    cudaFuncSetSharedMemConfig cudaGLGetDevices cudaGLMapBufferObject cudaGLMapBufferObjectAsync
    cudaGLRegisterBufferObject cudaGLSetBufferObjectMapFlags cudaGLSetGLDevice cudaGLUnmapBufferObject
    cudaGLUnmapBufferObjectAsync cudaGLUnregisterBufferObject cudaGetChannelDesc cudaGetDevice cudaGetDeviceCount
    cudaGetDeviceFlags cudaGetDeviceProperties cudaGetDeviceProperties_v2 cudaGetDriverEntryPoint
    cudaGetDriverEntryPointByVersion cudaGetDriverEntryPointByVersion_ptsz cudaGetDriverEntryPoint_ptsz
    cudaGetErrorName cudaGetErrorString cudaGetExportTable cudaGetFuncBySymbol cudaGetKernel cudaGetLastError
    cudaGetMipmappedArrayLevel cudaGetSurfaceObjectResourceDesc cudaGetSurfaceReference cudaGetSymbolAddress
    cudaGetSymbolSize cudaGetTextureAlignmentOffset cudaGetTextureObjectResourceDesc
    cudaGetTextureObjectResourceViewDesc cudaGetTextureObjectTextureDesc cudaGetTextureObjectTextureDesc_v2
    cudaGetTextureReference cudaGraphAddChildGraphNode cudaGraphAddDependencies cudaGraphAddDependencies_v2
    cudaGraphAddEmptyNode cudaGraphAddEventRecordNode cudaGraphAddEventWaitNode
    cudaGraphAddExternalSemaphoresSignalNode cudaGraphAddExternalSemaphoresWaitNode cudaGraphAddHostNode
    cudaGraphAddKernelNode cudaGraphAddMemAllocNode cudaGraphAddMemFreeNode cudaGraphAddMemcpyNode
    cudaGraphAddMemcpyNode1D cudaGraphAddMemcpyNodeFromSymbol cudaGraphAddMemcpyNodeToSymbol cudaGraphAddMemsetNode
    cudaGraphAddNode cudaGraphAddNode_v2 cudaGraphChildGraphNodeGetGraph cudaGraphClone
    cudaGraphConditionalHandleCreate cudaGraphConditionalHandleCreate_v2 cudaGraphCreate cudaGraphDebugDotPrint
    cudaGraphDestroy cudaGraphDestroyNode cudaGraphEventRecordNodeGetEvent cudaGraphEventRecordNodeSetEvent
    cudaGraphEventWaitNodeGetEvent cudaGraphEventWaitNodeSetEvent cudaGraphExecChildGraphNodeSetParams
    cudaGraphExecDestroy cudaGraphExecEventRecordNodeSetEvent cudaGraphExecEventWaitNodeSetEvent
    cudaGraphExecExternalSemaphoresSignalNodeSetParams cudaGraphExecExternalSemaphoresWaitNodeSetParams
    cudaGraphExecGetFlags cudaGraphExecGetId cudaGraphExecHostNodeSetParams cudaGraphExecKernelNodeSetParams
    cudaGraphExecMemcpyNodeSetParams cudaGraphExecMemcpyNodeSetParams1D cudaGraphExecMemcpyNodeSetParamsFromSymbol
    cudaGraphExecMemcpyNodeSetParamsToSymbol cudaGraphExecMemsetNodeSetParams cudaGraphExecNodeSetParams
    cudaGraphExecUpdate cudaGraphExternalSemaphoresSignalNodeGetParams
    cudaGraphExternalSemaphoresSignalNodeSetParams cudaGraphExternalSemaphoresWaitNodeGetParams
    cudaGraphExternalSemaphoresWaitNodeSetParams cudaGraphGetEdges cudaGraphGetEdges_v2 cudaGraphGetId
    cudaGraphGetNodes cudaGraphGetRootNodes cudaGraphHostNodeGetParams cudaGraphHostNodeSetParams
    cudaGraphInstantiate cudaGraphInstantiateWithFlags cudaGraphInstantiateWithParams
    cudaGraphInstantiateWithParams_ptsz cudaGraphKernelNodeCopyAttributes cudaGraphKernelNodeGetAttribute
    cudaGraphKernelNodeGetParams cudaGraphKernelNodeSetAttribute cudaGraphKernelNodeSetParams cudaGraphLaunch
    cudaGraphLaunch_ptsz cudaGraphMemAllocNodeGetParams cudaGraphMemFreeNodeGetParams cudaGraphMemcpyNodeGetParams
    cudaGraphMemcpyNodeSetParams cudaGraphMemcpyNodeSetParams1D cudaGraphMemcpyNodeSetParamsFromSymbol
    cudaGraphMemcpyNodeSetParamsToSymbol cudaGraphMemsetNodeGetParams cudaGraphMemsetNodeSetParams
    cudaGraphNodeFindInClone cudaGraphNodeGetContainingGraph cudaGraphNodeGetDependencies
    cudaGraphNodeGetDependencies_v2 cudaGraphNodeGetDependentNodes cudaGraphNodeGetDependentNodes_v2
    cudaGraphNodeGetEnabled cudaGraphNodeGetLocalId cudaGraphNodeGetParams cudaGraphNodeGetToolsId
    cudaGraphNodeGetType cudaGraphNodeSetEnabled cudaGraphNodeSetParams cudaGraphReleaseUserObject
    cudaGraphRemoveDependencies cudaGraphRemoveDependencies_v2 cudaGraphRetainUserObject cudaGraphUpload
    cudaGraphUpload_ptsz cudaGraphicsEGLRegisterImage cudaGraphicsGLRegisterBuffer cudaGraphicsGLRegisterImage
    cudaGraphicsMapResources cudaGraphicsResourceGetMappedEglFrame cudaGraphicsResourceGetMappedMipmappedArray
    cudaGraphicsResourceGetMappedPointer cudaGraphicsResourceSetMapFlags cudaGraphicsSubResourceGetMappedArray
    cudaGraphicsUnmapResources cudaGraphicsUnregisterResource cudaGraphicsVDPAURegisterOutputSurface
    cudaGraphicsVDPAURegisterVideoSurface cudaGreenCtxCreate cudaHostAlloc cudaHostGetDevicePointer
    cudaHostGetFlags cudaHostRegister cudaHostUnregister cudaImportExternalMemory cudaImportExternalSemaphore
    cudaInitDevice cudaIpcCloseMemHandle cudaIpcGetEventHandle cudaIpcGetMemHandle cudaIpcOpenEventHandle
    cudaIpcOpenMemHandle cudaKernelSetAttributeForDevice cudaLaunchCooperativeKernel
    cudaLaunchCooperativeKernelMultiDevice cudaLaunchCooperativeKernel_ptsz cudaLaunchHostFunc
    cudaLaunchHostFunc_ptsz cudaLaunchHostFunc_v2 cudaLaunchHostFunc_v2_ptsz cudaLaunchKernel cudaLaunchKernelExC
    cudaLaunchKernelExC_ptsz cudaLaunchKernel_ptsz cudaLibraryEnumerateKernels cudaLibraryGetGlobal
    cudaLibraryGetKernel cudaLibraryGetKernelCount cudaLibraryGetManaged cudaLibraryGetUnifiedFunction
    cudaLibraryLoadData cudaLibraryLoadFromFile cudaLibraryUnload cudaLogsCurrent cudaLogsDumpToFile
    cudaLogsDumpToMemory cudaLogsRegisterCallback cudaLogsUnregisterCallback cudaMalloc cudaMalloc3D
    cudaMalloc3DArray cudaMallocArray cudaMallocAsync cudaMallocAsync_ptsz cudaMallocFromPoolAsync
    cudaMallocFromPoolAsync_ptsz cudaMallocHost cudaMallocManaged cudaMallocMipmappedArray cudaMallocPitch
    cudaMemAdvise cudaMemAdvise_v2 cudaMemDiscardAndPrefetchBatchAsync cudaMemDiscardAndPrefetchBatchAsync_ptsz
    cudaMemDiscardBatchAsync cudaMemDiscardBatchAsync_ptsz cudaMemGetDefaultMemPool cudaMemGetInfo
    cudaMemGetLocationInfo cudaMemGetMemPool cudaMemPoolCreate cudaMemPoolDestroy cudaMemPoolExportPointer
    cudaMemPoolExportToShareableHandle cudaMemPoolGetAccess cudaMemPoolGetAttribute
    cudaMemPoolImportFromShareableHandle cudaMemPoolImportPointer cudaMemPoolSetAccess cudaMemPoolSetAttribute
    cudaMemPoolTrimTo cudaMemPrefetchAsync cudaMemPrefetchAsync_ptsz cudaMemPrefetchAsync_v2
    cudaMemPrefetchAsync_v2_ptsz cudaMemPrefetchBatchAsync cudaMemPrefetchBatchAsync_ptsz cudaMemRangeGetAttribute
    cudaMemRangeGetAttributes cudaMemSetMemPool cudaMemcpy cudaMemcpy2D cudaMemcpy2DArrayToArray
    cudaMemcpy2DArrayToArray_ptds cudaMemcpy2DAsync cudaMemcpy2DAsync_ptsz cudaMemcpy2DFromArray
    cudaMemcpy2DFromArrayAsync cudaMemcpy2DFromArrayAsync_ptsz cudaMemcpy2DFromArray_ptds cudaMemcpy2DToArray
    cudaMemcpy2DToArrayAsync cudaMemcpy2DToArrayAsync_ptsz cudaMemcpy2DToArray_ptds cudaMemcpy2D_ptds cudaMemcpy3D
    cudaMemcpy3DAsync cudaMemcpy3DAsync_ptsz cudaMemcpy3DBatchAsync cudaMemcpy3DBatchAsync_ptsz cudaMemcpy3DPeer
    cudaMemcpy3DPeerAsync cudaMemcpy3DPeerAsync_ptsz cudaMemcpy3DPeer_ptds cudaMemcpy3DWithAttributesAsync
    cudaMemcpy3DWithAttributesAsync_ptsz cudaMemcpy3D_ptds cudaMemcpyArrayToArray cudaMemcpyArrayToArray_ptds
    cudaMemcpyAsync cudaMemcpyAsync_ptsz cudaMemcpyBatchAsync cudaMemcpyBatchAsync_ptsz cudaMemcpyFromArray
    cudaMemcpyFromArrayAsync cudaMemcpyFromArrayAsync_ptsz cudaMemcpyFromArray_ptds cudaMemcpyFromSymbol
    cudaMemcpyFromSymbolAsync cudaMemcpyFromSymbolAsync_ptsz cudaMemcpyFromSymbol_ptds cudaMemcpyPeer
    cudaMemcpyPeerAsync cudaMemcpyToArray cudaMemcpyToArrayAsync cudaMemcpyToArrayAsync_ptsz cudaMemcpyToArray_ptds
    cudaMemcpyToSymbol cudaMemcpyToSymbolAsync cudaMemcpyToSymbolAsync_ptsz cudaMemcpyToSymbol_ptds
    cudaMemcpyWithAttributesAsync cudaMemcpyWithAttributesAsync_ptsz cudaMemcpy_ptds cudaMemset cudaMemset2D
    cudaMemset2DAsync cudaMemset2DAsync_ptsz cudaMemset2D_ptds cudaMemset3D cudaMemset3DAsync
    cudaMemset3DAsync_ptsz cudaMemset3D_ptds cudaMemsetAsync cudaMemsetAsync_ptsz cudaMemset_ptds
    cudaMipmappedArrayGetMemoryRequirements cudaMipmappedArrayGetSparseProperties
    cudaOccupancyAvailableDynamicSMemPerBlock cudaOccupancyMaxActiveBlocksPerMultiprocessor
    cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags cudaOccupancyMaxActiveClusters
    cudaOccupancyMaxPotentialClusterSize cudaPeekAtLastError cudaPointerGetAttributes cudaProfilerInitialize
    cudaProfilerStart cudaProfilerStop cudaRuntimeGetVersion cudaSetDevice cudaSetDeviceFlags
    cudaSetDoubleForDevice cudaSetDoubleForHost cudaSetValidDevices cudaSignalExternalSemaphoresAsync
    cudaSignalExternalSemaphoresAsync_ptsz cudaSignalExternalSemaphoresAsync_v2
    cudaSignalExternalSemaphoresAsync_v2_ptsz cudaStreamAddCallback cudaStreamAddCallback_ptsz
    cudaStreamAttachMemAsync cudaStreamAttachMemAsync_ptsz cudaStreamBeginCapture cudaStreamBeginCaptureToGraph
    cudaStreamBeginCaptureToGraph_ptsz cudaStreamBeginCapture_ptsz cudaStreamBeginRecaptureToGraph
    cudaStreamBeginRecaptureToGraph_ptsz cudaStreamCopyAttributes cudaStreamCopyAttributes_ptsz cudaStreamCreate
    cudaStreamCreateWithFlags cudaStreamCreateWithPriority cudaStreamDestroy cudaStreamEndCapture
    cudaStreamEndCapture_ptsz cudaStreamGetAttribute cudaStreamGetAttribute_ptsz cudaStreamGetCaptureInfo
    cudaStreamGetCaptureInfo_ptsz cudaStreamGetCaptureInfo_v2 cudaStreamGetCaptureInfo_v2_ptsz
    cudaStreamGetCaptureInfo_v3 cudaStreamGetCaptureInfo_v3_ptsz cudaStreamGetDevResource
    cudaStreamGetDevResource_ptsz cudaStreamGetDevice cudaStreamGetDevice_ptsz cudaStreamGetFlags
    cudaStreamGetFlags_ptsz cudaStreamGetId cudaStreamGetId_ptsz cudaStreamGetPriority cudaStreamGetPriority_ptsz
    cudaStreamIsCapturing cudaStreamIsCapturing_ptsz cudaStreamQuery cudaStreamQuery_ptsz cudaStreamSetAttribute
    cudaStreamSetAttribute_ptsz cudaStreamSynchronize cudaStreamSynchronize_ptsz
    cudaStreamUpdateCaptureDependencies cudaStreamUpdateCaptureDependencies_ptsz
    cudaStreamUpdateCaptureDependencies_v2 cudaStreamUpdateCaptureDependencies_v2_ptsz cudaStreamWaitEvent
    cudaStreamWaitEvent_ptsz cudaSubgridCreate cudaSubgridWorkerGridCreate cudaSubgridWorksetCreate
    cudaThreadExchangeStreamCaptureMode cudaThreadExit cudaThreadGetCacheConfig cudaThreadGetLimit
    cudaThreadSetCacheConfig cudaThreadSetLimit cudaThreadSynchronize cudaUnbindTexture cudaUserObjectCreate
    cudaUserObjectRelease cudaUserObjectRetain cudaVDPAUGetDevice cudaVDPAUSetVDPAUDevice
    cudaWaitExternalSemaphoresAsync cudaWaitExternalSemaphoresAsync_ptsz cudaWaitExternalSemaphoresAsync_v2
    cudaWaitExternalSemaphoresAsync_v2_ptsz
"""

_FUNCTIONS: Final = {
    "libcudart": frozenset(_RUNTIME.split()),
    **MANAGEMENT,
    **ALGEBRA,
    **COMPUTING,
}
_TABLES: Final = {"libcuda": "driver_functions.inc", "libamdhip64": "hip_functions.inc"}
_ROW: Final = re.compile(r"^[A-Z_]+\((\w+), (\d+)\)$", re.MULTILINE)


@functools.cache
def releases_of_functions(soname: str) -> Mapping[str, int]:
    """Return the functions of a driver or runtime, each with the first release that has it; none for other libraries.

    Releases are those of CUDA, and for HIP those of ROCm: 12.9 is 12090.
    """
    table = _TABLES.get(soname.partition(".so")[0])
    if table is None:
        return {}
    text = (Path(__file__).parent / "native" / "surfaces" / table).read_text(encoding="utf-8")
    return {name: int(since) for name, since in _ROW.findall(text)}


def functions_of(soname: str, release: int | None = None) -> frozenset[str]:
    """Return the functions that a library is known to have in a release; none where nothing is known.

    Without a release they are those of all releases, as for libraries whose functions are not known by release.
    """
    known = releases_of_functions(soname)
    if known:
        return frozenset(name for name, since in known.items() if release is None or since <= release)
    return _FUNCTIONS.get(soname.partition(".so")[0], frozenset())
