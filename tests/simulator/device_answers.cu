// Questions to CUDA's runtime and driver about limits, errors and wrong uses, with answers that all devices share.
// device_answers.json holds what a device answered; device_answers.py asks.
#include "device_answers.cuh"

#include <atomic>
#include <cassert>
#include <cstdlib>
#include <thread>

enum { KIB = 1024, MIB = 1024 * KIB };

__global__ void empty() {}
__global__ void __launch_bounds__(128) bounded() {}
__global__ void store(int *to) { *to = 1; }
__global__ void store_far(char *to) { *(int *)(to + (1ll << 40)) = 1; }
__global__ void dynamic_shared(int *to) {
    extern __shared__ int words[];
    words[threadIdx.x] = (int)threadIdx.x;
    if (to) *to = words[threadIdx.x];
}
__global__ void static_shared(int *to) {
    __shared__ int words[4 * KIB];
    extern __shared__ int more[];
    words[threadIdx.x] = (int)threadIdx.x;
    if (to) *to = words[threadIdx.x] + (to[1] ? more[0] : 0);
}
__global__ void add_to(int *to) { atomicAdd(to, 1); }
__global__ void trap() { __trap(); }
__global__ void fail_an_assertion(int value) { assert(value == 1); }
__global__ void store_past_shared(int index) {
    __shared__ int words[32];
    volatile int *place = words;
    place[index] = 1;
}

static int run(const void *kernel, dim3 grid, dim3 block, size_t shared_bytes = 0, cudaStream_t stream = nullptr) {
    int *none = nullptr;
    void *arguments[] = {&none};
    return cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream);
}

static int run_together(const void *kernel, unsigned blocks, unsigned threads, size_t shared_bytes = 0) {
    int *none = nullptr;
    void *arguments[] = {&none};
    return cudaLaunchCooperativeKernel(kernel, dim3(blocks), dim3(threads), arguments, shared_bytes, nullptr);
}

static int attribute(cudaDeviceAttr which) {
    int value = 0;
    cudaDeviceGetAttribute(&value, which, 0);
    return value;
}

template <typename T = char> static T *block_of(size_t bytes) {
    void *made = nullptr;
    cudaMalloc(&made, bytes);
    return (T *)made;
}

// -- launches ---------------------------------------------------------------------------------------------------------

QUESTION(launch_grid) {
    ASK(run((void *)empty, dim3(1, 65535), 1));
    ASK(run((void *)empty, dim3(1, 65536), 1));
    ASK(run((void *)empty, dim3(1, 1, 65535), 1));
    ASK(run((void *)empty, dim3(1, 1, 65536), 1));
    ASK(run((void *)empty, dim3(0x80000000u), 1));
    ASK(run((void *)empty, dim3(0xffffffffu), 1));
    ASK(run((void *)empty, dim3(0), 1));
    ASK(run((void *)empty, dim3(1, 0), 1));
    ASK(run((void *)empty, dim3(1, 1, 0), 1));
    ASK((empty<<<dim3(1, 65536), 1>>>(), cudaPeekAtLastError()));
    ASK((empty<<<0, 1>>>(), cudaPeekAtLastError()));
    ASK(cudaDeviceSynchronize());
}

QUESTION(launch_block) {
    ASK(run((void *)empty, 1, dim3(1024)));
    ASK(run((void *)empty, 1, dim3(1025)));
    ASK(run((void *)empty, 1, dim3(2048)));
    ASK(run((void *)empty, 1, dim3(1, 1024)));
    ASK(run((void *)empty, 1, dim3(1, 1025)));
    ASK(run((void *)empty, 1, dim3(1, 1, 64)));
    ASK(run((void *)empty, 1, dim3(1, 1, 65)));
    ASK(run((void *)empty, 1, dim3(32, 33)));
    ASK(run((void *)empty, 1, dim3(0xffffffffu, 0xffffffffu, 2)));
    ASK(run((void *)empty, 1, dim3(65536, 65536)));
    ASK(run((void *)empty, 1, dim3(0)));
    ASK(run((void *)empty, 1, dim3(1, 0)));
    ASK(run((void *)empty, 1, dim3(1, 1, 0)));
    ASK(run((void *)empty, 0, dim3(1025)));
    ASK(cudaDeviceSynchronize());
}

QUESTION(launch_shared_memory) {
    int most = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
    TELL(attribute(cudaDevAttrMaxSharedMemoryPerBlock));
    TELL(most > 64 * KIB);
    ASK(run((void *)dynamic_shared, 1, 32, 48 * KIB));
    ASK(run((void *)dynamic_shared, 1, 32, 48 * KIB + 1));
    ASK(run((void *)dynamic_shared, 1, 32, 64 * KIB));
    ASK(run((void *)dynamic_shared, 1, 32, (size_t)most));
    ASK(run((void *)dynamic_shared, 1, 32, 1 << 30));
    ASK(run((void *)dynamic_shared, 1, 32, 1ull << 32));
    ASK(run((void *)dynamic_shared, 1, 32, 1ull << 40));
    ASK(run((void *)static_shared, 1, 32, 32 * KIB));
    ASK(run((void *)static_shared, 1, 32, 32 * KIB + 4));
    ASK(run((void *)empty, 1, 32, 64 * KIB));
    ASK(cudaDeviceSynchronize());
}

static int allow(const void *kernel, int bytes) {
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}

static int dynamic_bytes(const void *kernel) {
    cudaFuncAttributes found = {};
    cudaFuncGetAttributes(&found, kernel);
    return found.maxDynamicSharedSizeBytes;
}

QUESTION(launch_shared_memory_attribute) {
    int most = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin), statically = 16 * KIB;
    TELL(dynamic_bytes((void *)dynamic_shared));
    TELL(dynamic_bytes((void *)static_shared));
    ASK(allow((void *)dynamic_shared, most + 1));
    ASK(allow((void *)dynamic_shared, -2));
    ASK(allow((void *)dynamic_shared, -1));
    TELL(dynamic_bytes((void *)dynamic_shared));
    ASK(allow((void *)dynamic_shared, most));
    TELL(dynamic_bytes((void *)dynamic_shared) == most);
    ASK(run((void *)dynamic_shared, 1, 32, (size_t)most));
    ASK(run((void *)dynamic_shared, 1, 32, (size_t)most + 1));
    ASK(allow((void *)dynamic_shared, 64 * KIB));
    ASK(run((void *)dynamic_shared, 1, 32, 64 * KIB));
    ASK(run((void *)dynamic_shared, 1, 32, 64 * KIB + 1));
    ASK(allow((void *)dynamic_shared, 1 * KIB));
    ASK(run((void *)dynamic_shared, 1, 32, 1 * KIB));
    ASK(run((void *)dynamic_shared, 1, 32, 2 * KIB));
    ASK(run((void *)dynamic_shared, 1, 32, 48 * KIB));
    ASK(run((void *)dynamic_shared, 1, 32, 48 * KIB + 1));
    ASK(allow((void *)static_shared, most));
    ASK(allow((void *)static_shared, most - statically + 1));
    ASK(allow((void *)static_shared, most - statically));
    ASK(run((void *)static_shared, 1, 32, (size_t)(most - statically)));
    ASK(run((void *)static_shared, 1, 32, (size_t)(most - statically) + 4));
    ASK(allow(nullptr, 1 * KIB));
    ASK(cudaFuncSetAttribute((void *)empty, (cudaFuncAttribute)99, 1));
    ASK(cudaFuncSetAttribute((void *)empty, cudaFuncAttributePreferredSharedMemoryCarveout, 100));
    ASK(cudaFuncSetAttribute((void *)empty, cudaFuncAttributePreferredSharedMemoryCarveout, 101));
    ASK(cudaDeviceSynchronize());
}

QUESTION(launch_bounds) {
    cudaFuncAttributes found = {};
    ASK(cudaFuncGetAttributes(&found, (void *)bounded));
    TELL(found.maxThreadsPerBlock);
    ASK(run((void *)bounded, 1, 128));
    ASK(run((void *)bounded, 1, 129));
    ASK(run((void *)bounded, 1, 1024));
    ASK(run((void *)bounded, 1, 1025));
    ASK(cudaDeviceSynchronize());
}

QUESTION(launch_cooperative) {
    int processors = attribute(cudaDevAttrMultiProcessorCount), blocks = 0;
    ASK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (void *)empty, 1024, 0));
    TELL(blocks);
    unsigned fitting = (unsigned)(blocks * processors);
    ASK(run_together((void *)empty, fitting, 1024));
    ASK(run_together((void *)empty, fitting + 1, 1024));
    ASK(run_together((void *)empty, 0, 32));
    ASK(run_together((void *)empty, 1, 0));
    ASK(run_together((void *)empty, 1, 1025));
    ASK(run_together((void *)dynamic_shared, 1, 32, 48 * KIB + 1));
    ASK(cudaDeviceSynchronize());
}

QUESTION(launch_function) {
    static int other;
    ASK(run(nullptr, 1, 1));
    ASK(run(&other, 1, 1));
    ASK(run(nullptr, 0, 1));
    cudaFuncAttributes found;
    ASK(cudaFuncGetAttributes(&found, &other));
    ASK(cudaFuncGetAttributes(&found, nullptr));
    ASK(cudaFuncSetAttribute(&other, cudaFuncAttributeMaxDynamicSharedMemorySize, 1));
    int blocks;
    ASK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &other, 32, 0));
    ASK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (void *)empty, 0, 0));
    ASK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (void *)empty, 1025, 0));
    TELL(blocks);
    ASK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(nullptr, (void *)empty, 32, 0));
}

static int run_in_clusters(unsigned blocks, unsigned cluster) {
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = cluster, attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    cudaLaunchConfig_t configuration = {};
    configuration.gridDim = blocks, configuration.blockDim = 32;
    configuration.attrs = &attribute, configuration.numAttrs = 1;
    return cudaLaunchKernelExC(&configuration, (void *)empty, nullptr);
}

QUESTION(launch_clusters) {
    ASK(run_in_clusters(4, 2));
    ASK(run_in_clusters(3, 2));
    ASK(run_in_clusters(16, 16));
    ASK(cudaDeviceSynchronize());
}

// -- errors that stay -------------------------------------------------------------------------------------------------

QUESTION(last_error) {
    void *block = nullptr;
    TELL(cudaGetLastError());
    TELL(cudaMalloc(&block, 1ull << 60));
    TELL(cudaMalloc(&block, 64));
    TELL(cudaPeekAtLastError());
    TELL(cudaMemset(block, 0, 65));
    TELL(cudaPeekAtLastError());
    TELL(cudaFree(block));
    TELL(cudaGetLastError());
    TELL(cudaGetLastError());
    TELL(cudaFree((char *)block + 16));
    std::thread([] { TELL(cudaPeekAtLastError()); }).join();
    TELL(cudaDeviceSynchronize());
    TELL(cudaGetLastError());
    TELL(run((void *)empty, dim3(1, 65536), 1));
    TELL(run((void *)empty, 1, 1));
    TELL(cudaGetLastError());
    TELL(cudaSetDevice(99));
    TELL(cudaGetLastError());
    TELL(DRIVER(cuMemFree)(1));
    TELL(cudaGetLastError());
    cudaGetErrorString((cudaError_t)1);
    TELL(cudaGetLastError());
}

static std::atomic<bool> may_go;
static void wait_until_told(void *) {
    while (!may_go) std::this_thread::yield();
}

QUESTION(not_ready) {
    cudaStream_t stream;
    cudaEvent_t before, after;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaEventCreate(&before), cudaEventCreate(&after);
    cudaEventRecord(before, stream);
    cudaLaunchHostFunc(stream, wait_until_told, nullptr);
    cudaEventRecord(after, stream);
    ASK(cudaStreamQuery(stream));
    ASK(cudaEventQuery(after));
    float milliseconds;
    ASK(cudaEventElapsedTime(&milliseconds, before, after));
    ASK(cudaStreamDestroy(stream));
    may_go = true;
    ASK(cudaEventSynchronize(after));
    ASK(cudaEventElapsedTime(&milliseconds, before, after));
    ASK(cudaEventQuery(after));
}

// -- kernels that fail ------------------------------------------------------------------------------------------------

static void use_broken_device(void *good) {
    void *more = nullptr;
    cudaStream_t stream;
    ASK(cudaDeviceSynchronize());
    ASK(cudaDeviceSynchronize());
    ASK(cudaMalloc(&more, 64));
    ASK(cudaFree(good));
    ASK(cudaMallocHost(&more, 64));
    ASK(cudaStreamCreate(&stream));
    ASK(cudaMemset(good, 0, 4));
    ASK(run((void *)empty, 1, 1));
    int device;
    ASK(cudaGetDevice(&device));
    ASK(cudaSetDevice(0));
    TELL(DRIVER(cuCtxSynchronize)());
    ASK(cudaDeviceReset());
    ASK(cudaMalloc(&more, 64));
    ASK(cudaFree(more));
}

QUESTION(fault_null) {
    void *good = block_of(64);
    ASK(run((void *)store, 1, 1));
    use_broken_device(good);
}
QUESTION(fault_far) {
    char *good = block_of(64);
    store_far<<<1, 1>>>(good);
    use_broken_device(good);
}
QUESTION(fault_misaligned) {
    char *good = block_of(64);
    store<<<1, 1>>>((int *)(good + 1));
    use_broken_device(good);
}
QUESTION(fault_host_memory) {
    char *good = block_of(64);
    store<<<1, 1>>>((int *)std::calloc(1, 64));
    TELL(attribute(cudaDevAttrPageableMemoryAccess));
    use_broken_device(good);
}
QUESTION(fault_freed) {
    char *good = block_of(64), *gone = block_of(64 * MIB);
    cudaFree(gone);
    store<<<1, 1>>>((int *)gone);
    use_broken_device(good);
}
QUESTION(fault_trap) {
    char *good = block_of(64);
    trap<<<1, 1>>>();
    use_broken_device(good);
}
QUESTION(fault_assertion) {
    char *good = block_of(64);
    fail_an_assertion<<<1, 1>>>(2);
    use_broken_device(good);
}
QUESTION(fault_shared) {
    char *good = block_of(64);
    store_past_shared<<<1, 1>>>(1 << 20);
    use_broken_device(good);
}

// -- what the device is: other devices answer otherwise ---------------------------------------------------------------

QUESTION(facts) {
    int version = 0, value = 0;
    cudaDeviceProp properties;
    cudaGetDeviceProperties(&properties, 0);
    std::printf("[\"name\", \"%s\"]\n", properties.name);
    cudaRuntimeGetVersion(&version), tell("runtime", version);
    cudaDriverGetVersion(&version), tell("driver", version);
    for (int number = 1; number < 160; number++) {
        char name[32];
        std::snprintf(name, sizeof name, "attribute %d", number);
        if (cudaDeviceGetAttribute(&value, (cudaDeviceAttr)number, 0) == cudaSuccess) tell(name, value);
    }
}

__device__ int deep(volatile int *to, int depth) {
    volatile int frame[256];
    frame[depth & 255] = depth;
    return depth ? deep(to, depth - 1) + frame[depth & 255] : *to;
}
__global__ void recurse(int *to, int depth) { *to = deep(to, depth); }

QUESTION(fault_recursion) {
    char *good = block_of(64);
    recurse<<<1, 1>>>((int *)good, 100000);
    use_broken_device(good);
}

QUESTION(fault_atomic_misaligned) {
    char *good = block_of(64);
    add_to<<<1, 1>>>((int *)(good + 2));
    use_broken_device(good);
}

int main(int count, char **words) { return answer(count, words); }
