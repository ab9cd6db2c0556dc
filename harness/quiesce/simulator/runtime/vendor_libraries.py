"""The libraries of GPU vendors: what they are called, what they say when they can't, and which functions they have.

A library is a vendor's only if the table here lists it: ``libcurl`` and ``librocksdb`` begin like some, and are not.
The names are those in the packages of the CUDA Toolkit, cuDNN, NCCL and ROCm; the numbers are enumerators of their
public headers, named in each row.

A reference to a function can be read from a file, a lookup with ``dlsym`` can't; the vendor's library has them all.
The names of CUDA's driver and of HIP's runtime are in tables next to the C code, which answers lookups by them as well,
each with the first release that has it. The names of CUDA's runtime below are those that the headers of CUDA 12.8 and
13 declare (``cuda_runtime_api.h``), and those that libcudart exports in its releases from 11.8 to 13.5.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from quiesce.simulator.runtime.algebra_functions import ALGEBRA
from quiesce.simulator.runtime.computing_functions import COMPUTING
from quiesce.simulator.runtime.management_functions import MANAGEMENT

NOT_SIMULATED: Final = "not simulated by quiesce"
"""What a function returns that gives an error's text."""


@dataclass(frozen=True, slots=True)
class Family:
    """Libraries of one interface."""

    libraries: str
    """A regular expression for the SONAME up to ``.so``."""
    functions: str
    """A regular expression for the beginning of its functions' names."""
    status: int | None
    """What it returns for "not supported", or for the nearest to it; None where its functions return no status."""
    status_name: str
    versions: tuple[str, ...] = ()
    """Versions that clients may name beside the SONAME itself, which is NVIDIA's convention."""
    texts: bool = True
    """Whether the functions named for an error's text return it. Else they return a status and take a place for it."""


_HIP_VERSIONS: Final = tuple(f"hip_{major}.{minor}" for major in range(4, 9) for minor in range(10))
"""HIP's map file gives each function the release that brought it; a version that was never released does no harm."""

FAMILIES: Final = (
    Family("libcudart", "(?:__)?cuda", 801, "cudaErrorNotSupported"),
    Family("libcuda", "cu(?!File)[A-Z]", 801, "CUDA_ERROR_NOT_SUPPORTED", texts=False),
    Family("libcublas(?:Lt)?|libnvblas", "cublas", 15, "CUBLAS_STATUS_NOT_SUPPORTED"),
    Family("libcufftw?", "cufft|fftwf?_", 16, "CUFFT_NOT_SUPPORTED"),
    Family("libcurand", "curand", 999, "CURAND_STATUS_INTERNAL_ERROR"),
    Family("libcusolver(?:Mg)?", "cusolver", 9, "CUSOLVER_STATUS_NOT_SUPPORTED"),
    Family("libcusparse(?:Lt)?", "cusparse", 10, "CUSPARSE_STATUS_NOT_SUPPORTED"),
    Family("libcudnn(?:_[a-z_]+)?", "cudnn", 9, "CUDNN_STATUS_NOT_SUPPORTED"),
    Family("libcutensor(?:Mg|Mp)?", "cutensor", 15, "CUTENSOR_STATUS_NOT_SUPPORTED"),
    Family("libnccl|librccl", "nccl|pnccl", 3, "ncclInternalError"),
    Family("libnvrtc(?:-builtins)?", "(?:__)?nvrtc", 11, "NVRTC_ERROR_INTERNAL_ERROR",
           ("libnvrtc.so.11.2", "libnvrtc.so.12", "libnvrtc.so.13")),
    Family("libnvJitLink", "(?:__)?nvJitLink", 6, "NVJITLINK_ERROR_INTERNAL",
           ("libnvJitLink.so.12", "libnvJitLink.so.13")),
    Family("libnvvm", "nvvm", 9, "NVVM_ERROR_COMPILATION"),
    Family("libcupti", "cupti", 27, "CUPTI_ERROR_NOT_SUPPORTED", texts=False),
    Family("libnvidia-ml", "nvml", 3, "NVML_ERROR_NOT_SUPPORTED"),
    Family("libnvToolsExt", "nvtx", -2, "NVTX_NO_PUSH_POP_TRACKING"),
    Family("libnvperf_(?:host|target)|libcheckpoint|libpcsamplingutil", "NVPW_", None, ""),
    Family("libcufile(?:_rdma)?", "cuFile", None, ""),
    Family("libnvshmem_host|libcudss|libnvjpeg|libnvfatbin|libnpp[a-z]+|libcutensornet|libcustatevec",
           "nvshmemx?_|cudss|nvjpeg|nvFatbin|npp|cutensornet|custatevec", None, ""),
    Family("libamdhip64", "(?:__)?hip(?!blas|fft|rand|rtc|solver|sparse|tensor)",
           801, "hipErrorNotSupported", _HIP_VERSIONS),
    Family("libhiprtc(?:-builtins)?", "hiprtc", 11, "HIPRTC_ERROR_INTERNAL_ERROR", _HIP_VERSIONS),
    Family("libhipblas(?:lt)?", "hipblas", 7, "HIPBLAS_STATUS_NOT_SUPPORTED"),
    Family("librocblas", "rocblas_", 2, "rocblas_status_not_implemented"),
    Family("libhipfftw?", "hipfft|fftwf?_", 16, "HIPFFT_NOT_SUPPORTED"),
    Family("librocfft", "rocfft_", 1, "rocfft_status_failure"),
    Family("libhiprand", "hiprand", 1000, "HIPRAND_STATUS_NOT_IMPLEMENTED"),
    Family("librocrand", "rocrand_", 108, "ROCRAND_STATUS_INTERNAL_ERROR"),
    Family("libhipsparse(?:lt)?", "hipsparse", 10, "HIPSPARSE_STATUS_NOT_SUPPORTED"),
    Family("librocsparse", "rocsparse_", 2, "rocsparse_status_not_implemented"),
    Family("libhipsolver", "hipsolver", 7, "HIPSOLVER_STATUS_NOT_SUPPORTED"),
    Family("librocsolver", "rocsolver_", 2, "rocblas_status_not_implemented"),
    Family("libhiptensor", "hiptensor", 15, "HIPTENSOR_STATUS_NOT_SUPPORTED"),
    Family("libMIOpen", "miopen", 6, "miopenStatusNotImplemented"),
    Family("libroctx64|librocprofiler-sdk-roctx", "roctx", -1, "a negative number"),
    Family("libroctracer64", "roctracer_", -1, "ROCTRACER_STATUS_ERROR"),
    Family("librocm_smi64", "rsmi_", 2, "RSMI_STATUS_NOT_SUPPORTED"),
    Family("libamd_smi", "amdsmi_", 2, "AMDSMI_STATUS_NOT_SUPPORTED"),
    Family("libhsa-runtime64|libamd_comgr|librocprofiler(?:64|-sdk|-register)",
           "hsa_|amd_comgr_|rocprofiler_", None, ""),
)  # fmt: skip

_ERROR_TEXT: Final = re.compile(
    r"\w*Get(?:Error|Status)(?:String|Name)|\w*(?:error_string|status_to_string|StatusToString)"
    r"|ncclGetLastError|nvmlErrorString"
)
_VERSION: Final = re.compile(r"(?:cudnn|cutensor)Get(?:Cudart|MaxDevice)?Version|roctracer_version_\w+")
"""These return a version as a number; 0 is that of no release, so that a client finds the library unusable."""
_PROPERTY: Final = re.compile(r"(?:cu|hip)sparseGetMat(?:Type|IndexBase|FillMode|DiagType)|rocsparse_get_mat_\w+")
"""These return what a descriptor holds, where every number means something."""
_CUDNN_NINE: Final = 3000  # cuDNN renumbered its statuses with version 9


SIMULATED_PREFIX: Final = "simulated_"
_SIMULATED: Final = re.compile(SIMULATED_PREFIX + r"(?:(?P<major>\d+)_)?(?P<name>.+)")
"""What ``native/libraries/calls.h`` calls the functions of vendors' libraries: where a vendor's own library is
installed, no function of its must be taken for one of these. A number is the one after ``.so`` of the library."""
_NEWEST: Final = "9"
"""That number where a program names none: it is cuDNN whose versions differ."""

_TAKEN_IN: Final = {"libamdhip64": "libhiprtc.so"}
"""Libraries that hold another one's functions as well: HIP's runtime compiler was part of the runtime until ROCm 6."""


_BUNDLED: Final = re.compile(r"(lib\w+)-[0-9a-f]{6,}(\.so(?:\..*)?)")
"""Tools that copy libraries into a package put a part of a hash into the name: ``libcudart-5a077122.so.12.4.127``."""


def plain_name(soname: str) -> str:
    """Return a library's name without the hash that tells a bundled copy from others."""
    bundled = _BUNDLED.fullmatch(soname)
    return bundled[1] + bundled[2] if bundled else soname


@cache
def interface_of(soname: str) -> str:
    """Return a library's name as far as it decides what the library offers: ``libcudart.so.12``."""
    name, dot, number = plain_name(soname).partition(".so.")
    return name + dot + number.partition(".")[0]


@cache
def family_of(soname: str) -> Family | None:
    """Return the family of a vendor's library, or None for any other."""
    name, dot, number = plain_name(soname).partition(".so")
    if not dot or number.strip(".0123456789"):  # what follows ".so" is a number with dots, or nothing
        return None
    return next((family for family in FAMILIES if re.fullmatch(family.libraries, name)), None)


@cache
def _function_name(soname: str) -> re.Pattern[str]:
    family = family_of(soname)
    # C++ names are seen through: the length of a name stands before it
    return re.compile(rf"(?:_Z(?:N[KVr]*)?\d+)?(?:{family.functions if family else '(?!)'})")


def owns(soname: str, function: str) -> bool:
    """Say whether the library's family names its functions like this."""
    return _function_name(soname).match(function) is not None


def simulated_name(soname: str, target: str) -> str | None:
    """Return the function of a library that ``target``, a function of the simulator, stands for; None: it is none."""
    named = _SIMULATED.fullmatch(target)
    if named is None or not owns(soname, named["name"]):
        return None
    major = plain_name(soname).partition(".so.")[2].partition(".")[0]
    return named["name"] if named["major"] in (None, major or _NEWEST) else None


def asks_for_a_compiler(soname: str) -> bool:
    """Say whether a library is NVRTC or libNVVM: the simulated ones ask where the vendor's are, while kernels run."""
    return re.fullmatch(r"libnv(?:rtc|vm)\.so(?:\..*)?", plain_name(soname)) is not None


def answer(soname: str, function: str) -> int | str | None:
    """Return what the function answers when it is not simulated; None: nothing honest is known, so the program ends.

    Reporting an error, as its documentation allows, lets a client go on to its own error handling.
    """
    soname = plain_name(soname)
    guest = _TAKEN_IN.get(soname.partition(".so")[0])
    if guest and owns(guest, function):
        return answer(guest, function)
    family = family_of(soname)
    if family is None or family.status is None or not owns(soname, function):
        return None
    if function.startswith("_Z") or _PROPERTY.fullmatch(function):
        return None
    if _VERSION.fullmatch(function):
        return 0
    if family.texts and _ERROR_TEXT.fullmatch(function):
        return NOT_SIMULATED
    if soname.startswith("libcudnn") and not re.search(r"\.so\.[0-8](?:\.|$)", soname):
        return _CUDNN_NINE
    return family.status


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
    text = (Path(__file__).parents[1] / "native" / "surfaces" / table).read_text(encoding="utf-8")
    return {name: int(since) for name, since in _ROW.findall(text)}


def functions_of(soname: str, release: int | None = None) -> frozenset[str]:
    """Return the functions that a library is known to have in a release; none where nothing is known.

    Without a release they are those of all releases, as for libraries whose functions are not known by release.
    """
    known = releases_of_functions(soname)
    if known:
        return frozenset(name for name, since in known.items() if release is None or since <= release)
    return _FUNCTIONS.get(soname.partition(".so")[0], frozenset())
