// Questions about memory, copies, streams, contexts and graphs; device_answers.cu has those about launches.
#include "device_answers.cuh"

#include <cstdint>
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>

enum { KIB = 1024, MIB = 1024 * KIB };

__global__ void nothing() {}
__global__ void write(int *to) { *to = 1; }
__device__ int variable[4];
__constant__ int constant[4];

template <typename T = char> static T *block_of(size_t bytes) {
    void *made = nullptr;
    cudaMalloc(&made, bytes);
    return (T *)made;
}

static char *pinned_of(size_t bytes) {
    void *made = nullptr;
    cudaMallocHost(&made, bytes);
    return (char *)made;
}

static cudaStream_t stream_of() {
    cudaStream_t made = nullptr;
    cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
    return made;
}

// -- what is given back -----------------------------------------------------------------------------------------------

QUESTION(allocate) {
    void *place = nullptr;
    ASK(cudaMalloc(&place, 0));
    TELL(place == nullptr);
    ASK(cudaMalloc((void **)nullptr, 64));
    ASK(cudaMalloc(&place, 1ull << 50));
    ASK(cudaMalloc(&place, SIZE_MAX));
    ASK(cudaMallocManaged(&place, 0));
    ASK(cudaMallocManaged(&place, 64, 0));
    ASK(cudaMallocManaged(&place, 64, 8));
    ASK(cudaMallocHost(&place, 0));
    ASK(cudaHostAlloc(&place, 64, 0x100));
    ASK(cudaMallocAsync(&place, 0, nullptr));
    ASK(cudaMallocAsync(&place, 1ull << 50, nullptr));
    size_t pitch;
    ASK(cudaMallocPitch(&place, &pitch, 100, 0));
    ASK(cudaMallocPitch(&place, &pitch, 100, 4));
    TELL(pitch);
    TELL(DRIVER(cuMemAlloc)((CUdeviceptr *)&place, 0));
    TELL(DRIVER(cuMemAllocManaged)((CUdeviceptr *)&place, 64, 0));
    TELL(DRIVER(cuMemAllocManaged)((CUdeviceptr *)&place, 0, 1));
    TELL(DRIVER(cuMemAllocHost)(&place, 0));
}

QUESTION(free_device) {
    char *block = block_of(4096), *other = block_of(4096), *pinned = pinned_of(64), *plain = (char *)std::malloc(64);
    void *managed = nullptr;
    cudaMallocManaged(&managed, 64);
    ASK(cudaFree(nullptr));
    ASK(cudaFree(block + 1));
    ASK(cudaFree(block + 256));
    ASK(cudaFree(block));
    ASK(cudaFree(block));
    ASK(cudaFree(pinned));
    ASK(cudaFree(plain));
    ASK(cudaFree((void *)16));
    ASK(cudaFree(managed));
    ASK(cudaFree(managed));
    ASK(cudaFreeHost(other));
    TELL(DRIVER(cuMemFree)((CUdeviceptr)other));
    TELL(DRIVER(cuMemFree)((CUdeviceptr)other));
    TELL(DRIVER(cuMemFree)(0));
    TELL(DRIVER(cuMemFree)((CUdeviceptr)pinned));
    ASK(cudaFreeHost(pinned));
}

QUESTION(free_host) {
    char *pinned = pinned_of(4096), *plain = (char *)std::malloc(64);
    ASK(cudaFreeHost(nullptr));
    ASK(cudaFreeHost(pinned + 16));
    ASK(cudaFreeHost(pinned));
    ASK(cudaFreeHost(pinned));
    ASK(cudaFreeHost(plain));
    TELL(DRIVER(cuMemFreeHost)(plain));
    TELL(DRIVER(cuMemFreeHost)(nullptr));
}

QUESTION(free_asynchronous) {
    char *plain = block_of(64), *pinned = pinned_of(64);
    void *block = nullptr, *other = nullptr;
    cudaStream_t stream = stream_of();
    cudaMallocAsync(&block, 4096, stream);
    cudaMallocAsync(&other, 4096, stream);
    ASK(cudaFreeAsync((char *)block + 16, stream));
    ASK(cudaFreeAsync(block, stream));
    ASK(cudaFreeAsync(block, stream));
    ASK(cudaFree(block));
    ASK(cudaFreeAsync(nullptr, stream));
    ASK(cudaFreeAsync(pinned, stream));
    ASK(cudaFreeAsync(plain, stream));
    ASK(cudaFree(plain));
    ASK(cudaFree(other));
    ASK(cudaFree(other));
    ASK(cudaFreeAsync(other, stream));
    TELL(DRIVER(cuMemFreeAsync)(0, stream));
    ASK(cudaDeviceSynchronize());
}

QUESTION(pools) {
    cudaMemPool_t pool = nullptr, standard = nullptr;
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    ASK(cudaMemPoolCreate(&pool, &properties));
    properties.location.id = 99;
    ASK(cudaMemPoolCreate(&pool, &properties));
    ASK(cudaDeviceGetDefaultMemPool(&standard, 0));
    ASK(cudaDeviceGetDefaultMemPool(&standard, 99));
    ASK(cudaMemPoolDestroy(standard));
    ASK(cudaMemPoolDestroy(nullptr));
    ASK(cudaDeviceSetMemPool(0, nullptr));
    void *block = nullptr;
    ASK(cudaMallocFromPoolAsync(&block, 64, nullptr, nullptr));
    ASK(cudaMallocFromPoolAsync(&block, 64, pool, nullptr));
    uint64_t value = 0;
    ASK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &value));
    TELL(value);
    ASK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &value));
    TELL(value);
    ASK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &(value = 1)));
    ASK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &(value = 0)));
    ASK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &value));
    ASK(cudaMemPoolGetAttribute(pool, (cudaMemPoolAttr)99, &value));
    ASK(cudaMemPoolDestroy(pool));
    ASK(cudaFree(block));
}

QUESTION(register_host) {
    char *memory = (char *)std::aligned_alloc(4096, 16 * KIB), *pinned = pinned_of(4096);
    void *place = nullptr;
    ASK(cudaHostUnregister(memory));
    ASK(cudaHostRegister(memory, 0, 0));
    ASK(cudaHostRegister(nullptr, 4096, 0));
    ASK(cudaHostRegister(memory, 8 * KIB, 0x100));
    ASK(cudaHostRegister(memory, 8 * KIB, 0));
    ASK(cudaHostRegister(memory, 8 * KIB, 0));
    ASK(cudaHostRegister(memory + 4 * KIB, 8 * KIB, 0));
    ASK(cudaHostRegister(pinned, 4096, 0));
    ASK(cudaHostGetDevicePointer(&place, memory, 0));
    ASK(cudaHostGetDevicePointer(&place, memory + 12 * KIB, 0));
    unsigned flags;
    ASK(cudaHostGetFlags(&flags, memory + 12 * KIB));
    ASK(cudaHostUnregister(memory + 16));
    ASK(cudaFreeHost(memory));
    ASK(cudaHostUnregister(memory));
    ASK(cudaHostUnregister(memory));
    ASK(cudaHostUnregister(pinned));
    ASK(cudaHostUnregister(nullptr));
}

// -- copies -----------------------------------------------------------------------------------------------------------

QUESTION(copies) {
    char *block = block_of(4096), *other = block_of(4096), *gone = block_of(64 * MIB);
    char *plain = (char *)std::calloc(1, 8192), *pinned = pinned_of(4096);
    cudaFree(gone);
    ASK(cudaMemcpy(block, plain, 4097, cudaMemcpyHostToDevice));
    ASK(cudaMemcpy(block, plain, 64 * MIB, cudaMemcpyHostToDevice));
    ASK(cudaMemcpy(plain, block, 16, cudaMemcpyHostToDevice));
    ASK(cudaMemcpy(block, plain, 16, cudaMemcpyDeviceToHost));
    ASK(cudaMemcpy(block, plain, 16, cudaMemcpyDeviceToDevice));
    ASK(cudaMemcpy(block, plain, 16, cudaMemcpyHostToHost));
    ASK(cudaMemcpy(block, other, 16, cudaMemcpyHostToDevice));
    ASK(cudaMemcpy(block, other, 16, cudaMemcpyDefault));
    ASK(cudaMemcpy(block, pinned, 16, cudaMemcpyDeviceToDevice));
    ASK(cudaMemcpy(block, plain, 16, (cudaMemcpyKind)7));
    ASK(cudaMemcpy(nullptr, plain, 16, cudaMemcpyHostToDevice));
    ASK(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice));
    ASK(cudaMemcpy(block, nullptr, 16, cudaMemcpyHostToDevice));
    ASK(cudaMemcpy(gone, plain, 16, cudaMemcpyHostToDevice));
    ASK(cudaMemcpy(plain, gone, 16, cudaMemcpyDeviceToHost));
    ASK(cudaMemcpyAsync(gone, plain, 16, cudaMemcpyHostToDevice, nullptr));
    ASK(cudaMemcpy(block, block + 8, 64, cudaMemcpyDeviceToDevice));
    ASK(cudaMemcpy2D(block, 8, plain, 16, 16, 4, cudaMemcpyHostToDevice));
    ASK(cudaMemcpy2D(block, 16, plain, 16, 16, 257, cudaMemcpyHostToDevice));
    ASK(cudaMemcpy2D(block, 16, plain, 16, 0, 4, cudaMemcpyHostToDevice));
    ASK(cudaMemset(block, 0, 4097));
    ASK(cudaMemset(gone, 0, 16));
    ASK(cudaMemset(nullptr, 0, 16));
    ASK(cudaMemset(nullptr, 0, 0));
    ASK(cudaMemset(plain, 0, 16));
    ASK(cudaMemset(pinned, 0, 16));
    TELL(DRIVER(cuMemcpyHtoD)((CUdeviceptr)block, plain, 4097));
    TELL(DRIVER(cuMemcpyHtoD)((CUdeviceptr)gone, plain, 16));
    TELL(DRIVER(cuMemcpyHtoD)((CUdeviceptr)block, plain, 0));
    TELL(DRIVER(cuMemcpyHtoD)(0, plain, 16));
    TELL(DRIVER(cuMemsetD8)((CUdeviceptr)gone, 0, 16));
    TELL(DRIVER(cuMemsetD32)((CUdeviceptr)block + 1, 0, 4));
    CUdeviceptr base;
    size_t bytes = 0;
    TELL(DRIVER(cuMemGetAddressRange)(&base, &bytes, (CUdeviceptr)block + 8));
    TELL(bytes);
    TELL(DRIVER(cuMemGetAddressRange)(&base, &bytes, (CUdeviceptr)gone));
    TELL(DRIVER(cuMemGetAddressRange)(&base, &bytes, (CUdeviceptr)plain));
    int type = 0;
    TELL(DRIVER(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)plain));
    TELL(DRIVER(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)gone));
    TELL(DRIVER(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)block));
    ASK(cudaDeviceSynchronize());
}

QUESTION(symbols) {
    static int other;
    int values[8] = {};
    void *place;
    size_t bytes;
    ASK(cudaMemcpyToSymbol(variable, values, 16));
    ASK(cudaMemcpyToSymbol(variable, values, 17));
    ASK(cudaMemcpyToSymbol(variable, values, 16, 4));
    ASK(cudaMemcpyFromSymbol(values, constant, 8, 8));
    ASK(cudaMemcpyFromSymbol(values, constant, 8, 12));
    ASK(cudaMemcpyToSymbol(variable, values, 16, 0, cudaMemcpyDeviceToHost));
    ASK(cudaMemcpyToSymbol(&other, values, 4));
    ASK(cudaGetSymbolAddress(&place, &other));
    ASK(cudaGetSymbolAddress(&place, nullptr));
    ASK(cudaGetSymbolSize(&bytes, variable));
    TELL(bytes);
    ASK(cudaGetSymbolAddress(&place, variable));
    ASK(cudaFree(place));
    ASK(cudaMemset(place, 0, 17));
}

// -- streams, events and devices --------------------------------------------------------------------------------------

QUESTION(streams) {
    cudaStream_t stream = nullptr;
    ASK(cudaStreamCreateWithFlags(&stream, 8));
    ASK(cudaStreamCreateWithPriority(&stream, 0, 99));
    ASK(cudaStreamCreateWithPriority(&stream, 0, -99));
    ASK(cudaStreamCreate(nullptr));
    ASK(cudaStreamDestroy(nullptr));
    ASK(cudaStreamDestroy(cudaStreamLegacy));
    ASK(cudaStreamDestroy(cudaStreamPerThread));
    ASK(cudaStreamSynchronize(cudaStreamLegacy));
    ASK(cudaStreamWaitEvent(stream, nullptr, 0));
    ASK(cudaStreamQuery(stream));
    ASK(cudaLaunchHostFunc(stream, nullptr, nullptr));
    ASK(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal));
    ASK(cudaStreamBeginCapture(stream, (cudaStreamCaptureMode)9));
    ASK(cudaStreamDestroy(stream));
}

QUESTION(events) {
    cudaEvent_t event = nullptr, other = nullptr, untimed = nullptr;
    float milliseconds;
    ASK(cudaEventCreateWithFlags(&event, 0xff));
    ASK(cudaEventCreateWithFlags(&event, cudaEventInterprocess));
    ASK(cudaEventCreate(&event));
    ASK(cudaEventCreate(&other));
    ASK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
    ASK(cudaEventQuery(event));
    ASK(cudaEventSynchronize(event));
    ASK(cudaStreamWaitEvent(nullptr, event, 0));
    ASK(cudaStreamWaitEvent(nullptr, event, 9));
    ASK(cudaEventElapsedTime(&milliseconds, event, other));
    ASK(cudaEventRecord(event, nullptr));
    ASK(cudaEventRecord(untimed, nullptr));
    ASK(cudaDeviceSynchronize());
    ASK(cudaEventElapsedTime(&milliseconds, event, other));
    ASK(cudaEventElapsedTime(&milliseconds, event, untimed));
    ASK(cudaEventElapsedTime(nullptr, event, event));
    ASK(cudaEventElapsedTime(&milliseconds, event, nullptr));
    ASK(cudaEventRecord(nullptr, nullptr));
    ASK(cudaEventQuery(nullptr));
    ASK(cudaEventSynchronize(nullptr));
    ASK(cudaEventDestroy(nullptr));
    ASK(cudaEventDestroy(event));
}

// Handles that are gone: what a device answers is a matter of luck, and a crash is an answer, too.
QUESTION(stream_destroyed_synchronize) {
    cudaStream_t stream = stream_of();
    cudaStreamDestroy(stream);
    ASK(cudaStreamSynchronize(stream));
}
QUESTION(stream_destroyed_launch) {
    cudaStream_t stream = stream_of();
    cudaStreamDestroy(stream);
    ASK((nothing<<<1, 1, 0, stream>>>(), cudaPeekAtLastError()));
}
QUESTION(stream_destroyed_destroy) {
    cudaStream_t stream = stream_of();
    cudaStreamDestroy(stream);
    ASK(cudaStreamDestroy(stream));
}
QUESTION(event_destroyed_record) {
    cudaEvent_t event;
    cudaEventCreate(&event);
    cudaEventDestroy(event);
    ASK(cudaEventRecord(event, nullptr));
}
QUESTION(event_destroyed_destroy) {
    cudaEvent_t event;
    cudaEventCreate(&event);
    cudaEventDestroy(event);
    ASK(cudaEventDestroy(event));
}

QUESTION(devices) {
    int value;
    cudaDeviceProp properties;
    size_t bytes;
    ASK(cudaSetDevice(99));
    ASK(cudaSetDevice(-1));
    ASK(cudaGetDeviceProperties(&properties, 99));
    ASK(cudaDeviceGetAttribute(&value, (cudaDeviceAttr)9999, 0));
    ASK(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 99));
    ASK(cudaDeviceGetAttribute(nullptr, cudaDevAttrWarpSize, 0));
    ASK(cudaDeviceGetLimit(&bytes, (cudaLimit)99));
    ASK(cudaDeviceSetLimit((cudaLimit)99, 1));
    ASK(cudaDeviceCanAccessPeer(&value, 0, 0));
    TELL(value);
    ASK(cudaDeviceCanAccessPeer(&value, 0, 99));
    ASK(cudaDeviceEnablePeerAccess(0, 0));
    ASK(cudaDeviceDisablePeerAccess(0));
    ASK(cudaDeviceSetCacheConfig((cudaFuncCache)9));
    ASK(cudaSetDeviceFlags(0xff00));
    ASK(cudaSetDeviceFlags(cudaDeviceScheduleSpin));
    ASK(cudaIpcOpenMemHandle(nullptr, cudaIpcMemHandle_t{}, 1));
}

QUESTION(device_reset) {
    char *block = block_of(4096), *pinned = pinned_of(4096);
    ASK(cudaDeviceReset());
    ASK(cudaFree(block));
    ASK(cudaFreeHost(pinned));
    ASK(cudaMemset(block, 0, 4));
    ASK(cudaMalloc((void **)&block, 64));
    ASK(cudaMemcpyToSymbol(variable, "123", 4));
    ASK((nothing<<<1, 1>>>(), cudaDeviceSynchronize()));
    ASK(cudaDeviceReset());
    ASK(cudaDeviceReset());
}

// -- the driver's contexts --------------------------------------------------------------------------------------------

QUESTION(driver_uninitialized) {
    CUdevice device;
    CUcontext context;
    CUdeviceptr block;
    int count;
    TELL(DRIVER(cuDeviceGetCount)(&count));
    TELL(DRIVER(cuDeviceGet)(&device, 0));
    TELL(DRIVER(cuCtxGetCurrent)(&context));
    TELL(DRIVER(cuMemAlloc)(&block, 64));
    TELL(DRIVER(cuDevicePrimaryCtxRetain)(&context, 0));
    TELL(DRIVER(cuDriverGetVersion)(&count));
    TELL(DRIVER(cuInit)(1));
    TELL(DRIVER(cuInit)(0));
    TELL(DRIVER(cuDeviceGet)(&device, 99));
    TELL(DRIVER(cuDeviceGet)(&device, -1));
    TELL(DRIVER(cuDeviceGetAttribute)(&count, (CUdevice_attribute)9999, 0));
    TELL(DRIVER(cuCtxGetCurrent)(&context));
    TELL(context == nullptr);
    TELL(DRIVER(cuMemAlloc)(&block, 64));
    TELL(DRIVER(cuMemFree)(64));
    TELL(DRIVER(cuCtxSynchronize)());
    TELL(DRIVER(cuCtxPopCurrent)(&context));
    TELL(DRIVER(cuCtxGetDevice)(&device));
    TELL(DRIVER(cuStreamSynchronize)(nullptr));
    TELL(DRIVER(cuMemAllocHost)((void **)&block, 64));
}

static int is_active() {
    unsigned flags;
    int active = -1;
    int status = DRIVER(cuDevicePrimaryCtxGetState)(0, &flags, &active);
    return status ? -status : active;
}

QUESTION(primary_context) {
    CUcontext context, current;
    CUdeviceptr block;
    TELL(DRIVER(cuInit)(0));
    TELL(is_active());
    TELL(DRIVER(cuDevicePrimaryCtxRelease)(0));
    TELL(DRIVER(cuDevicePrimaryCtxReset)(0));
    TELL(DRIVER(cuDevicePrimaryCtxRetain)(&context, 0));
    TELL(DRIVER(cuDevicePrimaryCtxRetain)(&context, 0));
    TELL(is_active());
    TELL(DRIVER(cuCtxSetCurrent)(context));
    TELL(DRIVER(cuMemAlloc)(&block, 4096));
    TELL(DRIVER(cuDevicePrimaryCtxRelease)(0));
    TELL(is_active());
    TELL(DRIVER(cuMemsetD8)(block, 0, 16));
    TELL(DRIVER(cuDevicePrimaryCtxRelease)(0));
    TELL(is_active());
    TELL(DRIVER(cuCtxGetCurrent)(&current));
    TELL(current == context);
    TELL(DRIVER(cuMemsetD8)(block, 0, 16));
    TELL(DRIVER(cuMemFree)(block));
    TELL(DRIVER(cuMemAlloc)(&block, 64));
    TELL(DRIVER(cuCtxSynchronize)());
    TELL(DRIVER(cuStreamSynchronize)(nullptr));
    TELL(DRIVER(cuCtxSetCurrent)(context));
    TELL(DRIVER(cuDevicePrimaryCtxRelease)(0));
    TELL(DRIVER(cuDevicePrimaryCtxRetain)(&current, 0));
    TELL(DRIVER(cuCtxSetCurrent)(current));
    TELL(DRIVER(cuMemFree)(block));
    TELL(DRIVER(cuMemAlloc)(&block, 64));
    TELL(DRIVER(cuMemFree)(block));
    TELL(DRIVER(cuDevicePrimaryCtxReset)(0));
    TELL(is_active());
    TELL(DRIVER(cuMemAlloc)(&block, 64));
    TELL(DRIVER(cuDevicePrimaryCtxRelease)(0));
}

QUESTION(primary_context_runtime) {
    char *block = block_of(64);
    TELL(is_active());
    TELL(DRIVER(cuDevicePrimaryCtxRelease)(0));
    TELL(is_active());
    ASK(cudaFree(block));
    ASK(cudaMalloc((void **)&block, 64));
    ASK(cudaDeviceSynchronize());
    TELL(DRIVER(cuDevicePrimaryCtxReset)(0));
    ASK(cudaFree(block));
    ASK(cudaMalloc((void **)&block, 64));
}

typedef CUresult (*create_context)(CUcontext *, unsigned, CUdevice);

QUESTION(context) {
    create_context create = (create_context)in_driver("cuCtxCreate_v2");
    CUcontext context, current;
    CUdeviceptr block;
    CUstream stream;
    TELL(DRIVER(cuInit)(0));
    TELL(create(&context, 0xff00, 0));
    TELL(create(&context, 0, 0));
    TELL(DRIVER(cuMemAlloc)(&block, 4096));
    TELL(DRIVER(cuStreamCreate)(&stream, 0));
    TELL(DRIVER(cuCtxDestroy)(context));
    TELL(DRIVER(cuCtxGetCurrent)(&current));
    TELL(current == nullptr);
    TELL(DRIVER(cuMemFree)(block));
    TELL(DRIVER(cuCtxSynchronize)());
    TELL(create(&context, 0, 0));
    TELL(DRIVER(cuMemFree)(block));
    TELL(DRIVER(cuCtxPopCurrent)(nullptr));
    TELL(DRIVER(cuCtxPopCurrent)(nullptr));
    TELL(DRIVER(cuCtxPushCurrent)(nullptr));
    TELL(DRIVER(cuCtxSetCurrent)(nullptr));
    TELL(DRIVER(cuCtxDestroy)(nullptr));
    TELL(DRIVER(cuCtxDestroy)(context));
}
QUESTION(context_destroyed_set_current) {
    create_context create = (create_context)in_driver("cuCtxCreate_v2");
    CUcontext context;
    DRIVER(cuInit)(0);
    create(&context, 0, 0);
    DRIVER(cuCtxDestroy)(context);
    TELL(DRIVER(cuCtxSetCurrent)(context));
    TELL(DRIVER(cuCtxSynchronize)());
}
QUESTION(context_destroyed_destroy) {
    create_context create = (create_context)in_driver("cuCtxCreate_v2");
    CUcontext context;
    DRIVER(cuInit)(0);
    create(&context, 0, 0);
    DRIVER(cuCtxDestroy)(context);
    TELL(DRIVER(cuCtxDestroy)(context));
}
QUESTION(context_other_frees) {
    create_context create = (create_context)in_driver("cuCtxCreate_v2");
    CUcontext first, second;
    CUdeviceptr block;
    CUstream stream;
    CUevent event;
    DRIVER(cuInit)(0);
    create(&first, 0, 0);
    DRIVER(cuMemAlloc)(&block, 64);
    DRIVER(cuStreamCreate)(&stream, 0);
    create(&second, 0, 0);
    TELL(DRIVER(cuEventCreate)(&event, 0));
    TELL(DRIVER(cuMemsetD8)(block, 0, 16));
    TELL(DRIVER(cuMemsetD8Async)(block, 0, 16, stream));
    TELL(DRIVER(cuEventRecord)(event, stream));
    TELL(DRIVER(cuStreamWaitEvent)(stream, event, 0));
    TELL(DRIVER(cuMemFree)(block));
    TELL(DRIVER(cuStreamDestroy)(stream));
}

// -- the driver's modules and launches --------------------------------------------------------------------------------

static const char PTX[] = R"(
.version 7.0
.target sm_80
.address_size 64
.global .u32 word;
.visible .entry plain() { ret; }
.visible .entry required() .reqntid 64 { ret; }
.visible .entry most() .maxntid 64 { ret; }
.visible .entry with_parameter(.param .u64 place) { ret; }
)";

static CUfunction function_of(CUmodule module, const char *name) {
    CUfunction found = nullptr;
    DRIVER(cuModuleGetFunction)(&found, module, name);
    return found;
}

static int run(CUfunction function, unsigned x, unsigned y, unsigned threads, unsigned shared_bytes = 0) {
    return DRIVER(cuLaunchKernel)(function, x, y, 1, threads, 1, 1, shared_bytes, nullptr, nullptr, nullptr);
}

static int run_together(CUfunction function, unsigned blocks, unsigned threads) {
    return DRIVER(cuLaunchCooperativeKernel)(function, blocks, 1, 1, threads, 1, 1, 0, nullptr, nullptr);
}

QUESTION(modules) {
    cudaFree(nullptr);
    CUmodule module = nullptr;
    CUfunction function;
    CUdeviceptr place;
    size_t bytes;
    TELL(DRIVER(cuModuleLoadData)(&module, "nonsense"));
    TELL(DRIVER(cuModuleLoadData)(&module, ".version 7.0\n.target sm_80\nnonsense"));
    TELL(DRIVER(cuModuleLoad)(&module, "there/is/no/such.file"));
    TELL(DRIVER(cuModuleLoadData)(&module, PTX));
    TELL(DRIVER(cuModuleGetFunction)(&function, module, "missing"));
    TELL(DRIVER(cuModuleGetFunction)(&function, module, "plain"));
    TELL(DRIVER(cuModuleGetGlobal)(&place, &bytes, module, "missing"));
    TELL(DRIVER(cuModuleGetGlobal)(&place, &bytes, module, "word"));
    TELL(bytes);
    TELL(DRIVER(cuMemFree)(place));
    TELL(DRIVER(cuModuleUnload)(nullptr));
    TELL(DRIVER(cuModuleUnload)(module));
    TELL(DRIVER(cuMemsetD8)(place, 0, 4));
}
QUESTION(module_unloaded_unload) {
    cudaFree(nullptr);
    CUmodule module = nullptr;
    DRIVER(cuModuleLoadData)(&module, PTX);
    DRIVER(cuModuleUnload)(module);
    TELL(DRIVER(cuModuleUnload)(module));
}
QUESTION(module_unloaded_launch) {
    cudaFree(nullptr);
    CUmodule module = nullptr;
    DRIVER(cuModuleLoadData)(&module, PTX);
    CUfunction plain = function_of(module, "plain");
    DRIVER(cuModuleUnload)(module);
    TELL(run(plain, 1, 1, 1));
}

QUESTION(driver_launch) {
    cudaFree(nullptr);
    CUmodule module = nullptr;
    TELL(DRIVER(cuModuleLoadData)(&module, PTX));
    CUfunction plain = function_of(module, "plain"), required = function_of(module, "required");
    CUfunction most = function_of(module, "most"), with_parameter = function_of(module, "with_parameter");
    int value;
    TELL(run(plain, 1, 65535, 1));
    TELL(run(plain, 1, 65536, 1));
    TELL(run(plain, 0x80000000u, 1, 1));
    TELL(run(plain, 0, 1, 1));
    TELL(run(plain, 1, 1, 0));
    TELL(run(plain, 1, 1, 1025));
    TELL(run(plain, 1, 1, 32, 48 * KIB + 1));
    TELL(run(plain, 1, 1, 32, 1 << 30));
    TELL(run(nullptr, 1, 1, 1));
    TELL(run(required, 1, 1, 64));
    TELL(run(required, 1, 1, 32));
    TELL(run(required, 1, 1, 65));
    TELL(run(most, 1, 1, 64));
    TELL(run(most, 1, 1, 65));
    TELL(run(with_parameter, 1, 1, 1));
    TELL(run_together(plain, 1, 32));
    TELL(run_together(plain, 1 << 20, 32));
    TELL(run_together(plain, 0, 32));
    TELL(DRIVER(cuFuncGetAttribute)(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, most));
    TELL(value);
    TELL(DRIVER(cuFuncGetAttribute)(&value, (CUfunction_attribute)99, most));
    TELL(DRIVER(cuFuncSetAttribute)(plain, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 20));
    TELL(DRIVER(cuFuncSetAttribute)(plain, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, -1));
    TELL(DRIVER(cuFuncSetAttribute)(plain, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 64 * KIB));
    TELL(run(plain, 1, 1, 32, 64 * KIB));
    TELL(run(plain, 1, 1, 32, 64 * KIB + 1));
    TELL(DRIVER(cuFuncSetAttribute)(plain, CU_FUNC_ATTRIBUTE_NUM_REGS, 1));
    TELL(DRIVER(cuCtxSynchronize)());
}

// -- virtual memory ---------------------------------------------------------------------------------------------------

QUESTION(virtual_memory) {
    cudaFree(nullptr);
    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemAccessDesc access = {};
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    size_t step = 0;
    CUmemGenericAllocationHandle handle;
    CUdeviceptr range;
    TELL(DRIVER(cuMemGetAllocationGranularity)(&step, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    TELL(step);
    TELL(DRIVER(cuMemCreate)(&handle, step + 1, &properties, 0));
    TELL(DRIVER(cuMemCreate)(&handle, 0, &properties, 0));
    TELL(DRIVER(cuMemCreate)(&handle, step, &properties, 0));
    TELL(DRIVER(cuMemAddressReserve)(&range, step + 1, 0, 0, 0));
    TELL(DRIVER(cuMemAddressReserve)(&range, 4 * step, 0, 0, 0));
    TELL(DRIVER(cuMemMap)(range, 2 * step, 0, handle, 0));
    TELL(DRIVER(cuMemMap)(range + 1, step, 0, handle, 0));
    TELL(DRIVER(cuMemSetAccess)(range, step, &access, 1));
    TELL(DRIVER(cuMemMap)(range, step, 0, handle, 0));
    TELL(DRIVER(cuMemMap)(range, step, 0, handle, 0));
    TELL(DRIVER(cuMemsetD8)(range, 0, 16));
    TELL(DRIVER(cuMemSetAccess)(range, step, &access, 1));
    TELL(DRIVER(cuMemsetD8)(range, 0, 16));
    TELL(DRIVER(cuMemsetD8)(range + step, 0, 16));
    TELL(DRIVER(cuMemFree)(range));
    TELL(DRIVER(cuMemUnmap)(range + step, step));
    TELL(DRIVER(cuMemUnmap)(range, step / 2));
    TELL(DRIVER(cuMemRelease)(handle));
    TELL(DRIVER(cuMemRelease)(handle));
    TELL(DRIVER(cuMemsetD8)(range, 0, 16));
    TELL(DRIVER(cuMemAddressFree)(range, 2 * step));
    TELL(DRIVER(cuMemAddressFree)(range, 4 * step));
    TELL(DRIVER(cuMemUnmap)(range, step));
    TELL(DRIVER(cuMemUnmap)(range, step));
    TELL(DRIVER(cuMemAddressFree)(range, 4 * step));
    TELL(DRIVER(cuMemAddressFree)(range, 4 * step));
    TELL(DRIVER(cuCtxSynchronize)());
}

// -- graphs -----------------------------------------------------------------------------------------------------------

static cudaGraph_t captured(cudaStream_t stream, void **block, bool frees) {
    cudaGraph_t graph = nullptr;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    cudaMallocAsync(block, 4096, stream);
    write<<<1, 1, 0, stream>>>((int *)*block);
    if (frees) cudaFreeAsync(*block, stream);
    cudaStreamEndCapture(stream, &graph);
    return graph;
}

QUESTION(graph_memory) {
    cudaStream_t stream = stream_of();
    void *block = nullptr;
    cudaGraph_t graph = captured(stream, &block, true), copy = nullptr;
    cudaGraphExec_t executable = nullptr, second = nullptr;
    ASK(cudaGetLastError());
    ASK(cudaGraphInstantiate(&executable, graph, 0));
    ASK(cudaGraphLaunch(executable, stream));
    ASK(cudaGraphLaunch(executable, stream));
    ASK(cudaStreamSynchronize(stream));
    ASK(cudaFree(block));
    ASK(cudaFreeAsync(block, stream));
    ASK(cudaMemsetAsync(block, 0, 16, stream));
    ASK(cudaGraphInstantiate(&second, graph, 0));
    ASK(cudaGraphClone(&copy, graph));
    ASK(cudaGraphExecDestroy(executable));
    ASK(cudaGraphInstantiate(&second, graph, 0));
    ASK(cudaGraphDestroy(graph));
    ASK(cudaDeviceSynchronize());
}

QUESTION(graph_memory_kept) {
    cudaStream_t stream = stream_of();
    void *block = nullptr;
    cudaGraph_t graph = captured(stream, &block, false);
    cudaGraphExec_t executable = nullptr;
    ASK(cudaGetLastError());
    ASK(cudaFree(block));
    ASK(cudaGraphInstantiate(&executable, graph, 0));
    ASK(cudaGraphLaunch(executable, stream));
    ASK(cudaGraphLaunch(executable, stream));
    ASK(cudaMemsetAsync(block, 0, 16, stream));
    ASK(cudaFreeAsync(block, stream));
    ASK(cudaFreeAsync(block, stream));
    ASK(cudaGraphLaunch(executable, stream));
    ASK(cudaFree(block));
    ASK(cudaFree(block));
    ASK(cudaGraphLaunch(executable, stream));
    ASK(cudaGraphExecDestroy(executable));
    ASK(cudaGraphDestroy(graph));
    ASK(cudaMemsetAsync(block, 0, 16, stream));
    ASK(cudaFree(block));
    ASK(cudaDeviceGraphMemTrim(0));
    ASK(cudaDeviceSynchronize());
}

QUESTION(graph_memory_freed_on_launch) {
    cudaStream_t stream = stream_of();
    void *block = nullptr;
    cudaGraph_t graph = captured(stream, &block, false);
    cudaGraphExec_t executable = nullptr;
    ASK(cudaGraphInstantiate(&executable, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
    ASK(cudaGraphLaunch(executable, stream));
    ASK(cudaGraphLaunch(executable, stream));
    ASK(cudaFreeAsync(block, stream));
    ASK(cudaGraphLaunch(executable, stream));
    ASK(cudaFree(block));
    ASK(cudaDeviceSynchronize());
}

QUESTION(graph_handles) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    ASK(cudaGraphCreate(&graph, 1));
    ASK(cudaGraphCreate(&graph, 0));
    ASK(cudaGraphInstantiate(&executable, graph, 0));
    ASK(cudaGraphLaunch(executable, nullptr));
    ASK(cudaGraphLaunch(nullptr, nullptr));
    ASK(cudaGraphInstantiate(&executable, nullptr, 0));
    ASK(cudaGraphDestroy(nullptr));
    ASK(cudaGraphExecDestroy(nullptr));
    cudaGraphNode_t node, other;
    cudaKernelNodeParams parameters = {};
    parameters.func = (void *)nothing, parameters.gridDim = dim3(1, 65536), parameters.blockDim = 1;
    ASK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &parameters));
    parameters.gridDim = 1, parameters.blockDim = 1025;
    ASK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &parameters));
    parameters.blockDim = 1, parameters.sharedMemBytes = 64 * KIB;
    ASK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &parameters));
    parameters.sharedMemBytes = 0;
    ASK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &parameters));
    ASK(cudaGraphAddEmptyNode(&other, graph, &node, 1));
    ASK(cudaGraphAddEmptyNode(nullptr, graph, nullptr, 0));
    ASK(cudaGraphDestroy(graph));
}

QUESTION(graph_memory_nodes) {
    cudaStream_t stream = stream_of();
    cudaGraph_t graph = nullptr, child = nullptr;
    cudaGraphNode_t allocation, use, release, again;
    cudaGraphExec_t executable = nullptr;
    cudaMemAllocNodeParams wanted = {};
    wanted.poolProps.allocType = cudaMemAllocationTypePinned;
    wanted.poolProps.location.type = cudaMemLocationTypeDevice;
    ASK(cudaGraphCreate(&graph, 0));
    ASK(cudaGraphAddMemAllocNode(&allocation, graph, nullptr, 0, &wanted));
    wanted.bytesize = 4096;
    ASK(cudaGraphAddMemAllocNode(&allocation, graph, nullptr, 0, &wanted));
    TELL(wanted.dptr != nullptr);
    cudaMemsetParams fill = {};
    fill.dst = wanted.dptr, fill.elementSize = 1, fill.width = 4096, fill.height = 1;
    ASK(cudaGraphAddMemsetNode(&use, graph, &allocation, 1, &fill));
    ASK(cudaGraphAddMemFreeNode(&again, graph, nullptr, 0, (char *)wanted.dptr + 16));
    ASK(cudaGraphAddMemFreeNode(&again, graph, nullptr, 0, nullptr));
    ASK(cudaGraphAddMemFreeNode(&release, graph, &use, 1, wanted.dptr));
    ASK(cudaGraphAddMemFreeNode(&again, graph, &use, 1, wanted.dptr));
    void *freed = nullptr;
    ASK(cudaGraphMemFreeNodeGetParams(release, &freed));
    TELL(freed == wanted.dptr);
    ASK(cudaGraphDestroyNode(release));
    ASK(cudaGraphCreate(&child, 0));
    ASK(cudaGraphAddChildGraphNode(&again, child, nullptr, 0, graph));
    ASK(cudaGraphInstantiate(&executable, graph, 0));
    ASK(cudaGraphLaunch(executable, stream));
    ASK(cudaGraphLaunch(executable, stream));
    ASK(cudaStreamSynchronize(stream));
    ASK(cudaGraphExecDestroy(executable));
    ASK(cudaGraphDestroy(graph));
}

QUESTION(capture_frees) {
    cudaStream_t stream = stream_of();
    void *block = nullptr, *plain = block_of(64);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    cudaMallocAsync(&block, 4096, stream);
    cudaStreamSynchronize(stream);
    ASK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    ASK(cudaFreeAsync(plain, stream));
    ASK(cudaFreeAsync(block, stream));
    ASK(cudaStreamEndCapture(stream, &graph));
    TELL(graph != nullptr);
    if (!graph) return;
    ASK(cudaGraphInstantiate(&executable, graph, 0));
    ASK(cudaGraphLaunch(executable, stream));
    ASK(cudaStreamSynchronize(stream));
    ASK(cudaFree(block));
}

// -- a context after a kernel that failed -----------------------------------------------------------------------------

QUESTION(context_broken) {
    create_context create = (create_context)in_driver("cuCtxCreate_v2");
    CUcontext broken, fresh;
    CUmodule module;
    CUdeviceptr block;
    const char *text = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() { trap; }";
    DRIVER(cuInit)(0);
    create(&broken, 0, 0);
    TELL(DRIVER(cuMemAlloc)(&block, 64));
    TELL(DRIVER(cuModuleLoadData)(&module, text));
    TELL(run(function_of(module, "k"), 1, 1, 1));
    TELL(DRIVER(cuCtxSynchronize)());
    TELL(DRIVER(cuMemFree)(block));
    TELL(create(&fresh, 0, 0));
    TELL(DRIVER(cuMemAlloc)(&block, 64));
    TELL(DRIVER(cuMemFree)(block));
    TELL(DRIVER(cuCtxDestroy)(fresh));
    TELL(DRIVER(cuCtxDestroy)(broken));
    TELL(create(&fresh, 0, 0));
    TELL(DRIVER(cuMemAlloc)(&block, 64));
    TELL(DRIVER(cuMemFree)(block));
    TELL(DRIVER(cuCtxSynchronize)());
}

// -- a child process --------------------------------------------------------------------------------------------------

// A child of fork() asks about what its parent made.
QUESTION(fork_child) {
    char *block = block_of(64), *pinned = pinned_of(64);
    cudaStream_t stream = stream_of();
    std::fflush(stdout);
    pid_t child = fork();
    if (!child) {
        void *more = nullptr;
        int count = -1;
        ASK(cudaGetDeviceCount(&count));
        ASK(cudaFree(block));
        ASK(cudaMalloc(&more, 64));
        ASK(cudaFreeHost(pinned));
        ASK(cudaStreamSynchronize(stream));
        ASK(cudaStreamDestroy(stream));
        ASK(cudaMemset(block, 0, 64));
        ASK(cudaDeviceSynchronize());
        ASK(cudaDeviceReset());
        TELL(DRIVER(cuMemFree)((CUdeviceptr)block));
        TELL(DRIVER(cuInit)(0));
        TELL(DRIVER(cuCtxSynchronize)());
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    TELL(status);
    ASK(cudaFree(block));
}
// One whose parent has only asked how many devices there are.
QUESTION(fork_child_of_an_idle_parent) {
    int count = -1;
    ASK(cudaGetDeviceCount(&count));
    std::fflush(stdout);
    pid_t child = fork();
    if (!child) {
        void *more = nullptr;
        ASK(cudaMalloc(&more, 64));
        ASK(cudaFree(more));
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    TELL(status);
}
