// The well-known small programs for CUDA, each with the result that a processor computes.
#include <cassert>
#include <cmath>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_fp16.h>
#include <vector>

namespace cg = cooperative_groups;

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t status = (call);                                                       \
        if (status != cudaSuccess) {                                                       \
            std::printf("%s: %s\n", #call, cudaGetErrorString(status));                    \
            std::exit(3);                                                                  \
        }                                                                                  \
    } while (0)

static void tell(const char *name, bool right) { std::printf("%s: %s\n", right ? "right" : "wrong", name); }

template <typename T> struct Block {
    T *address;
    size_t count;
    explicit Block(size_t count) : count(count) { CHECK(cudaMalloc(&address, count * sizeof(T))); }
    explicit Block(const std::vector<T> &from) : Block(from.size()) {
        CHECK(cudaMemcpy(address, from.data(), count * sizeof(T), cudaMemcpyHostToDevice));
    }
    ~Block() { cudaFree(address); }
    std::vector<T> read() const {
        std::vector<T> to(count);
        CHECK(cudaMemcpy(to.data(), address, count * sizeof(T), cudaMemcpyDeviceToHost));
        return to;
    }
};

template <typename T> static bool near(const std::vector<T> &got, const std::vector<T> &wanted, double tolerance) {
    for (size_t i = 0; i < wanted.size(); i++)
        if (!(std::fabs((double)got[i] - (double)wanted[i]) <= tolerance * (1 + std::fabs((double)wanted[i])))) {
            std::printf("at %zu: %g for %g\n", i, (double)got[i], (double)wanted[i]);
            return false;
        }
    return got.size() == wanted.size();
}

static std::vector<float> numbers(size_t count) {
    std::vector<float> made(count);
    unsigned state = 12345;
    for (float &each : made) each = (float)((state = state * 1103515245u + 12345u) >> 8) / (float)(1 << 24);
    return made;
}

// -- vectorAdd --------------------------------------------------------------------------------------------------------
__global__ void add(const float *a, const float *b, float *out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = a[i] + b[i];
}
static void vector_add() {
    std::vector<float> a = numbers(50000), wanted;
    for (float each : a) wanted.push_back(each + each);
    Block<float> from(a), to(a.size());
    add<<<(50000 + 255) / 256, 256>>>(from.address, from.address, to.address, 50000);
    CHECK(cudaGetLastError());
    tell("vector addition", near(to.read(), wanted, 0));
}

// -- matrixMul --------------------------------------------------------------------------------------------------------
template <int TILE> __global__ void multiply(const float *a, const float *b, float *out, int width) {
    __shared__ float left[TILE][TILE], right[TILE][TILE];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    float total = 0;
    for (int tile = 0; tile < width / TILE; tile++) {
        left[threadIdx.y][threadIdx.x] = a[y * width + tile * TILE + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(tile * TILE + threadIdx.y) * width + x];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; k++) total += left[threadIdx.y][k] * right[k][threadIdx.x];
        __syncthreads();
    }
    out[y * width + x] = total;
}
static void matrix_multiply() {
    int width = 96;
    std::vector<float> a = numbers(width * width), wanted(a.size());
    for (int y = 0; y < width; y++)
        for (int x = 0; x < width; x++) {
            double total = 0;
            for (int k = 0; k < width; k++) total += (double)a[y * width + k] * a[k * width + x];
            wanted[y * width + x] = (float)total;
        }
    Block<float> from(a), to(a.size());
    multiply<16><<<dim3(width / 16, width / 16), dim3(16, 16)>>>(from.address, from.address, to.address, width);
    tell("matrix multiplication", near(to.read(), wanted, 1e-5));
    multiply<32><<<dim3(width / 32, width / 32), dim3(32, 32)>>>(from.address, from.address, to.address, width);
    tell("matrix multiplication of large tiles", near(to.read(), wanted, 1e-5));
}

// -- reduction --------------------------------------------------------------------------------------------------------
__global__ void sum_in_shared(const float *from, float *to, int count) {
    extern __shared__ float part[];
    int thread = threadIdx.x;
    float own = 0;
    for (int i = blockIdx.x * blockDim.x + thread; i < count; i += gridDim.x * blockDim.x) own += from[i];
    part[thread] = own;
    __syncthreads();
    for (int half = blockDim.x / 2; half; half /= 2) {
        if (thread < half) part[thread] += part[thread + half];
        __syncthreads();
    }
    if (!thread) to[blockIdx.x] = part[0];
}
__global__ void sum_in_warps(const float *from, float *to, int count) {
    float own = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) own += from[i];
    for (int step = 16; step; step /= 2) own += __shfl_down_sync(0xffffffffu, own, step);
    if (threadIdx.x % warpSize == 0) atomicAdd(to, own);
}
__global__ void sum_in_groups(const float *from, float *to, int count) {
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
    int i = block.group_index().x * block.size() + block.thread_rank();
    float own = i < count ? from[i] : 0;
    for (int step = tile.size() / 2; step; step /= 2) own += tile.shfl_xor(own, step);
    if (!tile.thread_rank()) atomicAdd(to, own);
}
__global__ void sum_in_tiles_of_warps(const float *from, float *to, int count) {
    __shared__ cg::block_tile_memory<128> memory;
    cg::thread_block block = cg::this_thread_block(memory);
    auto tile = cg::tiled_partition<64>(block);
    int i = block.group_index().x * block.size() + block.thread_rank();
    float own = i < count ? from[i] : 0;
    float sum = tile.shfl(cg::reduce(tile, own, cg::plus<float>()), 40);
    if (!tile.thread_rank()) atomicAdd(to, sum);
}
static void reduction() {
    std::vector<float> a = numbers(10000);
    double wanted = 0;
    for (float each : a) wanted += each;
    Block<float> from(a), parts(8);
    sum_in_shared<<<8, 128, 128 * sizeof(float)>>>(from.address, parts.address, (int)a.size());
    double got = 0;
    for (float each : parts.read()) got += each;
    tell("reduction in dynamic shared memory", std::fabs(got - wanted) < 1e-2);
    for (int kind = 0; kind < 3; kind++) {
        CHECK(cudaMemset(parts.address, 0, sizeof(float)));
        if (kind == 2) sum_in_tiles_of_warps<<<(10000 + 127) / 128, 128>>>(from.address, parts.address, (int)a.size());
        else if (kind) sum_in_groups<<<(10000 + 127) / 128, 128>>>(from.address, parts.address, (int)a.size());
        else sum_in_warps<<<8, 128>>>(from.address, parts.address, (int)a.size());
        const char *names[] = {"reduction in warps", "reduction in cooperative groups", "reduction in tiles of warps"};
        tell(names[kind], std::fabs(parts.read()[0] - wanted) < 1e-2);
    }
}

// -- transpose --------------------------------------------------------------------------------------------------------
__global__ void transpose(const float *from, float *to, int width, int height) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < width && y + j < height) tile[threadIdx.y + j][threadIdx.x] = from[(y + j) * width + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < height && y + j < width) to[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}
static void transposition() {
    int width = 100, height = 70;
    std::vector<float> a = numbers(width * height), wanted(a.size());
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) wanted[x * height + y] = a[y * width + x];
    Block<float> from(a), to(a.size());
    transpose<<<dim3(4, 3), dim3(32, 8)>>>(from.address, to.address, width, height);
    tell("transposition", near(to.read(), wanted, 0));
}

// -- histogram --------------------------------------------------------------------------------------------------------
__global__ void histogram(const unsigned char *from, unsigned *to, int count) {
    __shared__ unsigned own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        atomicAdd(&own[from[i]], 1u);
    __syncthreads();
    atomicAdd(&to[threadIdx.x], own[threadIdx.x]);
}
static void histograms() {
    std::vector<unsigned char> a;
    std::vector<unsigned> wanted(256);
    for (float each : numbers(20000)) a.push_back((unsigned char)(each * each * 255));
    for (unsigned char each : a) wanted[each]++;
    Block<unsigned char> from(a);
    Block<unsigned> to(std::vector<unsigned>(256));
    histogram<<<6, 256>>>(from.address, to.address, (int)a.size());
    tell("histogram", near(to.read(), wanted, 0));
}

// -- scan -------------------------------------------------------------------------------------------------------------
__global__ void scan(const int *from, int *to, int count) {
    extern __shared__ int place[];
    int thread = threadIdx.x, in = 0, out = 1;
    place[thread] = thread < count ? from[thread] : 0;
    __syncthreads();
    for (int step = 1; step < (int)blockDim.x; step *= 2) {
        place[out * blockDim.x + thread] =
            place[in * blockDim.x + thread] + (thread >= step ? place[in * blockDim.x + thread - step] : 0);
        __syncthreads();
        in = out, out = 1 - in;
    }
    if (thread < count) to[thread] = place[in * blockDim.x + thread];
}
static void scans() {
    std::vector<int> a, wanted;
    int total = 0;
    for (float each : numbers(500)) a.push_back((int)(each * 100) - 50), wanted.push_back(total += a.back());
    Block<int> from(a), to(a.size());
    scan<<<1, 512, 2 * 512 * sizeof(int)>>>(from.address, to.address, 500);
    tell("scan", near(to.read(), wanted, 0));
}

// -- constant memory, variables ---------------------------------------------------------------------------------------
__constant__ float coefficients[4];
__device__ unsigned calls;
__device__ float table[3] = {1.5f, 2.5f, 3.5f};
__global__ void polynomial(const float *from, float *to, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float x = from[i];
    to[i] = ((coefficients[3] * x + coefficients[2]) * x + coefficients[1]) * x + coefficients[0] + table[i % 3];
    atomicInc(&calls, 0xffffffffu);
}
static void constants() {
    float given[4] = {1, 2, 3, 4};
    unsigned counted = 0;
    std::vector<float> a = numbers(1000), wanted;
    for (size_t i = 0; i < a.size(); i++)
        wanted.push_back(((4 * a[i] + 3) * a[i] + 2) * a[i] + 1 + 1.5f + (float)(i % 3));
    CHECK(cudaMemcpyToSymbol(coefficients, given, sizeof given));
    Block<float> from(a), to(a.size());
    polynomial<<<8, 128>>>(from.address, to.address, 1000);
    tell("constant memory", near(to.read(), wanted, 1e-6));
    CHECK(cudaMemcpyFromSymbol(&counted, calls, sizeof counted));
    void *address;
    CHECK(cudaGetSymbolAddress(&address, calls));
    tell("device variables", counted == 1000 && address);
}

// -- managed memory ---------------------------------------------------------------------------------------------------
__managed__ int managed = 5;
__global__ void twice(int *more) { managed *= 2, *more += managed; }
static void managed_memory() {
    int *more;
    CHECK(cudaMallocManaged(&more, sizeof *more));
    *more = 7;
    twice<<<1, 1>>>(more);
    CHECK(cudaDeviceSynchronize());
    tell("managed memory", managed == 10 && *more == 17);
    CHECK(cudaFree(more));
}

// -- streams, events, graphs ------------------------------------------------------------------------------------------
__global__ void scale(float *block, float by, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) block[i] = block[i] * by + 1;
}
static void streams() {
    std::vector<float> a = numbers(1000), wanted;
    for (float each : a) wanted.push_back((each * 2 + 1) * 3 + 1);
    Block<float> block(a);
    cudaStream_t first, second;
    cudaEvent_t done;
    CHECK(cudaStreamCreate(&first));
    CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&done));
    scale<<<8, 128, 0, first>>>(block.address, 2, 1000);
    CHECK(cudaEventRecord(done, first));
    CHECK(cudaStreamWaitEvent(second, done, 0));
    scale<<<8, 128, 0, second>>>(block.address, 3, 1000);
    CHECK(cudaStreamSynchronize(second));
    tell("streams and events", near(block.read(), wanted, 1e-6));

    cudaGraph_t graph;
    cudaGraphExec_t ready;
    CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
    scale<<<8, 128, 0, first>>>(block.address, 0.5f, 1000);
    scale<<<8, 128, 0, first>>>(block.address, 0.25f, 1000);
    CHECK(cudaStreamEndCapture(first, &graph));
    CHECK(cudaGraphInstantiate(&ready, graph, 0));
    for (int round = 0; round < 3; round++) {
        CHECK(cudaGraphLaunch(ready, first));
        for (float &each : wanted) each = (each * 0.5f + 1) * 0.25f + 1;
    }
    CHECK(cudaStreamSynchronize(first));
    tell("graphs", near(block.read(), wanted, 1e-6));
    CHECK(cudaGraphExecDestroy(ready));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaEventDestroy(done));
    CHECK(cudaStreamDestroy(first));
    CHECK(cudaStreamDestroy(second));
}

// -- atomics ----------------------------------------------------------------------------------------------------------
__global__ void atomics(int *to, unsigned long long *wide, double *sum) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&to[0], 10), atomicSub(&to[1], 10), atomicExch(&to[2], 7), atomicMax(&to[3], i), atomicMin(&to[4], i);
    atomicInc((unsigned *)&to[5], 17), atomicDec((unsigned *)&to[6], 137);
    atomicAnd(&to[7], 2 * i + 7), atomicOr(&to[8], 1 << (i % 20)), atomicXor(&to[9], i);
    int seen = to[10], old;
    do old = seen;
    while ((seen = atomicCAS(&to[10], old, old + 2)) != old);
    atomicAdd(wide, 1ull << 32);
    atomicAdd(sum, 0.5);
}
static void atomic_operations() {
    std::vector<int> given(11), wanted = {10240, -10240, 7, 1023, 0, 0, 0, 0, (1 << 20) - 1, 0, 2048};
    given[4] = 1 << 30, given[7] = 0xff;
    unsigned decremented = 0, incremented = 0, x = 0, a = 0xff;
    for (int i = 0; i < 1024; i++) {
        incremented = incremented >= 17 ? 0 : incremented + 1;
        decremented = decremented == 0 || decremented > 137 ? 137 : decremented - 1;
        a &= 2 * i + 7, x ^= i;
    }
    wanted[5] = (int)incremented, wanted[6] = (int)decremented, wanted[7] = (int)a, wanted[9] = (int)x;
    Block<int> to(given);
    Block<unsigned long long> wide(std::vector<unsigned long long>(1));
    Block<double> sum(std::vector<double>(1));
    atomics<<<8, 128>>>(to.address, wide.address, sum.address);
    tell("atomics", near(to.read(), wanted, 0) && wide.read()[0] == 1024ull << 32 && sum.read()[0] == 512);
}

// -- functions --------------------------------------------------------------------------------------------------------
__device__ __noinline__ unsigned fibonacci(unsigned n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__global__ void recursion(unsigned *to) { to[threadIdx.x] = fibonacci(threadIdx.x); }
static void functions() {
    std::vector<unsigned> numbers;
    for (unsigned i = 0, a = 0, b = 1; i < 12; i++, b += a, a = b - a) numbers.push_back(a);
    Block<unsigned> recursive(12);
    recursion<<<1, 12>>>(recursive.address);
    tell("recursion", near(recursive.read(), numbers, 0));
}

// -- half precision and mathematics -----------------------------------------------------------------------------------
__global__ void halves(const float *from, float *to, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) to[i] = __half2float(__hadd(__hmul(__float2half(from[i]), __float2half(2)), __float2half(1)));
}
__global__ void mathematics(const double *from, double *to, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    double x = from[i];
    to[i] = sin(x) + exp(x) * log(x + 1) - pow(x, 1.5) + rsqrt(x + 1) + erf(x);
}
static void arithmetic() {
    std::vector<float> a = numbers(500), wanted;
    std::vector<double> wide, wanted_wide;
    for (float x : a) {
        wanted.push_back(2 * x + 1);
        wide.push_back(x);
        wanted_wide.push_back(std::sin((double)x) + std::exp((double)x) * std::log(x + 1.0) - std::pow((double)x, 1.5) +
                              1 / std::sqrt(x + 1.0) + std::erf((double)x));
    }
    Block<float> from(a), to(a.size());
    Block<double> from_wide(wide), to_wide(a.size());
    halves<<<4, 128>>>(from.address, to.address, 500);
    tell("half precision", near(to.read(), wanted, 2e-3));
    mathematics<<<4, 128>>>(from_wide.address, to_wide.address, 500);
    tell("mathematics", near(to_wide.read(), wanted_wide, 1e-13));
}

// -- printf, and a whole grid that waits ------------------------------------------------------------------------------
__global__ void say(int number) {
    std::printf("thread %d of block %d: %s %5.2f\n", threadIdx.x, blockIdx.x, "number", number / 4.0);
}
__global__ void wait_for_all(int *block, int rounds) {
    cg::grid_group grid = cg::this_grid();
    unsigned long long rank = grid.thread_rank(), size = grid.size();
    for (int round = 0; round < rounds; round++) {
        int neighbour = block[(round % 2) * size + (rank + 1) % size];
        block[(1 - round % 2) * size + rank] = neighbour + 1;
        grid.sync();
    }
}
static void whole_grid() {
    std::vector<int> given(512), wanted;
    for (int i = 0; i < 256; i++) given[i] = i, wanted.push_back((i + 4) % 256 + 4);
    Block<int> block(given);
    int rounds = 4;
    void *arguments[] = {&block.address, &rounds};
    CHECK(cudaLaunchCooperativeKernel((const void *)wait_for_all, dim3(4), dim3(64), arguments, 0, 0));
    std::vector<int> got = block.read();
    got.resize(256);
    tell("a grid that waits", near(got, wanted, 0));
}

// -- occupancy, attributes, vectors -----------------------------------------------------------------------------------
__global__ void vectors(const float4 *from, float4 *to) {
    float4 own = from[threadIdx.x];
    to[threadIdx.x] = make_float4(own.w, own.z, own.y, own.x);
}
static void vectors_and_attributes() {
    std::vector<float> a = numbers(256), wanted(256);
    for (int i = 0; i < 256; i++) wanted[i] = a[i / 4 * 4 + 3 - i % 4];
    Block<float> from(a), to(256);
    vectors<<<1, 64>>>((const float4 *)from.address, (float4 *)to.address);
    int blocks = 0, size = 0, grid = 0;
    cudaFuncAttributes about;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, vectors, 64, 0));
    CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &size, vectors, 0, 0));
    CHECK(cudaFuncGetAttributes(&about, vectors));
    tell("vectors", near(to.read(), wanted, 0) && blocks > 0 && size > 0 && about.maxThreadsPerBlock == 1024);
}

int main() {
    vector_add(), matrix_multiply(), reduction(), transposition(), histograms(), scans(), constants();
    managed_memory(), streams(), atomic_operations(), functions(), arithmetic(), vectors_and_attributes();
    whole_grid();
    say<<<2, 2>>>(5);
    CHECK(cudaDeviceSynchronize());
    return 0;
}
