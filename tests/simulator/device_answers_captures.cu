// What a capture forbids: each call in a capture of its own, by mode, on the capturing thread and on another one.
#include "device_answers.cuh"

#include <thread>

enum { BYTES = 4096 };

__global__ void idle() {}

// Everything that a call during a capture may need, made before it.
struct Things {
    cudaStream_t captured, other, blocking;
    cudaEvent_t recorded, fresh;
    void *block, *ordered, *pinned, *more;
    char host[BYTES];
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    Things() {
        cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking);
        cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
        cudaStreamCreate(&blocking);
        cudaEventCreate(&recorded), cudaEventCreate(&fresh);
        cudaMalloc(&block, BYTES), cudaMallocAsync(&ordered, BYTES, other), cudaMallocHost(&pinned, BYTES);
        cudaGraphCreate(&graph, 0), cudaGraphInstantiate(&executable, graph, 0);
        cudaEventRecord(recorded, other);
        cudaDeviceSynchronize();
    }
};

typedef int (*Call)(Things &);

struct Named {
    const char *name;
    Call call;
};

#define DO(call) {#call, [](Things &it) -> int { (void)it; return (int)(call); }}

static size_t free_bytes, all_bytes;

static const Named CALLS[] = {
    DO(cudaMalloc(&it.more, BYTES)),
    DO(cudaFree(it.block)),
    DO(cudaFree(nullptr)),
    DO(cudaMallocHost(&it.more, BYTES)),
    DO(cudaFreeHost(it.pinned)),
    DO(cudaMallocManaged(&it.more, BYTES)),
    DO(cudaMallocAsync(&it.more, BYTES, it.other)),
    DO(cudaMallocAsync(&it.more, BYTES, it.captured)),
    DO(cudaMallocAsync(&it.more, BYTES, nullptr)),
    DO(cudaFreeAsync(it.ordered, it.other)),
    DO(cudaFreeAsync(it.ordered, it.captured)),
    DO(cudaFreeAsync(it.ordered, nullptr)),
    DO(cudaFreeAsync(it.block, it.captured)),
    DO(cudaMemGetInfo(&free_bytes, &all_bytes)),
    DO(cudaMemset(it.block, 0, 16)),
    DO(cudaMemsetAsync(it.block, 0, 16, it.other)),
    DO(cudaMemsetAsync(it.block, 0, 16, it.captured)),
    DO(cudaMemcpy(it.host, it.block, 16, cudaMemcpyDeviceToHost)),
    DO(cudaMemcpy(it.pinned, it.block, 16, cudaMemcpyDeviceToHost)),
    DO(cudaMemcpyAsync(it.host, it.block, 16, cudaMemcpyDeviceToHost, it.captured)),
    DO(cudaMemcpyAsync(it.block, it.host, 16, cudaMemcpyHostToDevice, it.captured)),
    DO(cudaMemcpyAsync(it.host, it.block, 16, cudaMemcpyDeviceToHost, it.other)),
    DO(cudaStreamCreate(&it.blocking)),
    DO(cudaStreamDestroy(it.other)),
    DO(cudaStreamQuery(it.other)),
    DO(cudaStreamQuery(it.captured)),
    DO(cudaStreamQuery(nullptr)),
    DO(cudaStreamSynchronize(it.other)),
    DO(cudaStreamSynchronize(it.captured)),
    DO(cudaStreamSynchronize(nullptr)),
    DO(cudaDeviceSynchronize()),
    DO(cudaEventCreate(&it.fresh)),
    DO(cudaEventDestroy(it.fresh)),
    DO(cudaEventRecord(it.fresh, it.other)),
    DO(cudaEventRecord(it.fresh, it.captured)),
    DO(cudaEventQuery(it.recorded)),
    DO(cudaEventSynchronize(it.recorded)),
    DO(cudaStreamWaitEvent(it.captured, it.recorded, 0)),
    DO(cudaStreamWaitEvent(it.captured, it.fresh, 0)),
    DO(cudaStreamWaitEvent(it.other, it.recorded, 0)),
    DO((idle<<<1, 1, 0, it.other>>>(), cudaGetLastError())),
    DO((idle<<<1, 1>>>(), cudaGetLastError())),
    DO((idle<<<1, 1, 0, it.captured>>>(), cudaGetLastError())),
    DO(cudaGraphLaunch(it.executable, it.other)),
    DO(cudaGraphLaunch(it.executable, it.captured)),
    DO(cudaGraphDestroy(it.graph)),
    DO(cudaGraphInstantiate(&it.executable, it.graph, 0)),
    DO(cudaHostRegister(it.host, 64, 0)),
    DO(cudaDeviceGraphMemTrim(0)),
    DO(cudaStreamBeginCapture(it.other, cudaStreamCaptureModeRelaxed)),
    DO(cudaSetDevice(0)),
};

// Tells of each call its status, and how the capture ends: 0, or 901 where the call made it invalid.
static void ask_each(cudaStreamCaptureMode mode, bool elsewhere) {
    for (const Named &each : CALLS) {
        Things it;
        cudaGraph_t graph = nullptr;
        int status = -1;
        cudaGetLastError();
        cudaStreamBeginCapture(it.captured, mode);
        auto make_call = [&] { status = each.call(it), cudaGetLastError(); };
        if (elsewhere) std::thread(make_call).join();
        else make_call();
        int end = cudaStreamEndCapture(it.captured, &graph);
        cudaGetLastError();
        std::printf("[\"%s\", %d, %d]\n", each.name, status, end);
        std::fflush(stdout);
    }
}

QUESTION(capture_global) { ask_each(cudaStreamCaptureModeGlobal, false); }
QUESTION(capture_global_elsewhere) { ask_each(cudaStreamCaptureModeGlobal, true); }
QUESTION(capture_of_a_thread) { ask_each(cudaStreamCaptureModeThreadLocal, false); }
QUESTION(capture_of_a_thread_elsewhere) { ask_each(cudaStreamCaptureModeThreadLocal, true); }
QUESTION(capture_relaxed) { ask_each(cudaStreamCaptureModeRelaxed, false); }
QUESTION(capture_relaxed_elsewhere) { ask_each(cudaStreamCaptureModeRelaxed, true); }

// An event of a capture, during it, once it is over and once its graph is gone.
static void ask_event(cudaEvent_t event, cudaStream_t other) {
    ASK(cudaEventQuery(event));
    ASK(cudaEventSynchronize(event));
    ASK(cudaStreamWaitEvent(other, event, 0));
}

QUESTION(captured_event) {
    Things it;
    cudaGraph_t graph = nullptr;
    ASK(cudaStreamBeginCapture(it.captured, cudaStreamCaptureModeRelaxed));
    ASK(cudaEventRecord(it.fresh, it.captured));
    ASK(cudaEventQuery(it.fresh));
    ASK(cudaStreamEndCapture(it.captured, &graph));
    ask_event(it.fresh, it.other);
    ASK(cudaGraphDestroy(it.graph));
    ask_event(it.fresh, it.other);
    ASK(cudaEventRecord(it.fresh, it.other));
    ask_event(it.fresh, it.other);
    ASK(cudaStreamBeginCapture(it.captured, cudaStreamCaptureModeRelaxed));
    ASK(cudaEventRecord(it.fresh, it.captured));
    ASK(cudaStreamEndCapture(it.captured, &graph));
    ask_event(it.fresh, it.other);
    ASK(cudaGraphDestroy(graph));
    ask_event(it.fresh, it.other);
    ASK(cudaEventElapsedTime((float *)it.host, it.fresh, it.recorded));
    ASK(cudaEventDestroy(it.fresh));
}
