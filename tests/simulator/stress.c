// Random calls from several threads, legal and not, for the sanitizers: stress THREADS CALLS SEED SETTINGS
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

const char *quiesce_open(const char *settings);
void quiesce_close(void);
int quiesce_stall(void *stream);
int cudaMalloc(void **, size_t), cudaFree(void *), cudaHostAlloc(void **, size_t, unsigned), cudaFreeHost(void *);
int cudaMallocManaged(void **, size_t, unsigned), cudaMallocAsync(void **, size_t, void *);
int cudaFreeAsync(void *, void *);
int cudaMemcpyAsync(void *, const void *, size_t, int, void *), cudaMemcpy(void *, const void *, size_t, int);
int cudaMemsetAsync(void *, int, size_t, void *), cudaHostRegister(void *, size_t, unsigned);
int cudaHostUnregister(void *);
int cudaStreamCreateWithFlags(void **, unsigned), cudaStreamDestroy(void *), cudaStreamQuery(void *);
int cudaStreamSynchronize(void *), cudaStreamWaitEvent(void *, void *, unsigned), cudaDeviceSynchronize(void);
int cudaEventCreate(void **), cudaEventDestroy(void *), cudaEventRecord(void *, void *), cudaEventQuery(void *);
int cudaEventSynchronize(void *), cudaLaunchHostFunc(void *, void (*)(void *), void *), cudaSetDevice(int);
int cudaStreamBeginCapture(void *, int), cudaStreamEndCapture(void *, void **), cudaGraphDestroy(void *);
int cudaGraphInstantiateWithFlags(void **, void *, unsigned long long), cudaGraphLaunch(void *, void *);
int cudaGraphExecDestroy(void *), cudaMemsetAsync_ptsz(void *, int, size_t, void *);
int cudaPointerGetAttributes(void *, const void *), cudaMemGetInfo(size_t *, size_t *);
int cudaMallocArray(void **, const void *, size_t, size_t, unsigned), cudaFreeArray(void *);
int cudaMemcpy2DToArrayAsync(void *, size_t, size_t, const void *, size_t, size_t, size_t, int, void *);
int cudaCreateSurfaceObject(void **, const void *), cudaDestroySurfaceObject(void *);
int cuModuleGetGlobal_v2(void **, size_t *, void *, const char *);
int cuLinkCreate_v2(unsigned, int *, void **, void **), cuLinkDestroy(void *);
int cuLinkComplete(void *, void **, size_t *);
int cuLinkAddData_v2(void *, int, void *, size_t, const char *, unsigned, int *, void **);
int cuModuleLoadData(void **, const void *), cuModuleUnload(void *), cuModuleGetFunction(void **, void *, const char *);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **);
int cudaDeviceGraphMemTrim(int), cudaDeviceReset(void);
int cudaUserObjectCreate(void **, void *, void (*)(void *), unsigned, unsigned), cudaUserObjectRetain(void *, unsigned);
int cudaUserObjectRelease(void *, unsigned), cudaGraphRetainUserObject(void *, void *, unsigned, unsigned);
int cudaGraphReleaseUserObject(void *, void *, unsigned);
int cudaStreamGetCaptureInfo_v2(void *, int *, unsigned long long *, void **, const void ***, size_t *);

enum { KEPT = 8, BLOCK_BYTES = 3000 };

struct client {
    uint64_t state;
    unsigned calls, counted;  // host functions may run when the thread is gone: a capture forbids the last wait
    void *blocks[KEPT], *pinned[KEPT], *ordered[KEPT], *streams[KEPT], *events[KEPT], *graphs[KEPT];
    void *arrays[KEPT], *surfaces[KEPT], *modules[KEPT], *functions[KEPT], *objects[KEPT];
    char pageable[BLOCK_BYTES];
    char registered[BLOCK_BYTES];
};

static unsigned draw(struct client *client, unsigned below) {
    client->state = client->state * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(client->state >> 33) % below;
}

static void count(void *data) { __atomic_add_fetch((unsigned *)data, 1, __ATOMIC_RELAXED); }

static void *any(struct client *client, void **things) { return things[draw(client, KEPT)]; }

static void memory(struct client *client) {
    void **place = &client->blocks[draw(client, KEPT)], **pinned = &client->pinned[draw(client, KEPT)];
    void **ordered = &client->ordered[draw(client, KEPT)], *stream = any(client, client->streams);
    size_t size = draw(client, BLOCK_BYTES), available, total;
    char attributes[64];
    switch (draw(client, 9)) {
        case 0: cudaFree(*place), cudaMalloc(place, size); break;
        case 1: cudaFree(*place), cudaMallocManaged(place, size, 1); break;
        case 2: cudaFreeHost(*pinned), cudaHostAlloc(pinned, size, 0); break;
        case 3: cudaFreeAsync(*ordered, stream), *ordered = NULL, cudaMallocAsync(ordered, size, stream); break;
        case 4: cudaFree(any(client, client->pinned)); break;  // of another family: refused
        case 5: cudaHostRegister(client->registered, BLOCK_BYTES, 0); break;
        case 6: cudaHostUnregister(client->registered); break;
        case 7: cudaPointerGetAttributes(attributes, (char *)*place + draw(client, 5000)); break;
        case 8: cudaMemGetInfo(&available, &total); break;
    }
}

static void work(struct client *client) {
    void *stream = any(client, client->streams), *block = any(client, client->blocks);
    size_t size = draw(client, BLOCK_BYTES);
    switch (draw(client, 8)) {
        case 0: cudaMemsetAsync(block, 1, size, stream); break;
        case 1: cudaMemcpyAsync(block, any(client, client->pinned), size, 4, stream); break;
        case 2: cudaMemcpyAsync(block, client->pageable, size, 4, stream); break;
        case 3: cudaMemcpyAsync(client->pageable, block, size, 4, stream); break;
        case 4: cudaMemcpy(any(client, client->pinned), block, size, 4); break;
        case 5: cudaLaunchHostFunc(stream, count, &client->counted); break;
        case 6: cudaMemsetAsync_ptsz(block, 1, size, NULL); break;
        case 7: cudaGraphLaunch(any(client, client->graphs), stream); break;
    }
}

static void kernels(struct client *client) {
    static const int format[5] = {8, 0, 0, 0, 0};
    unsigned i = draw(client, KEPT);
    void **array = &client->arrays[i], **surface = &client->surfaces[i], *stream = any(client, client->streams);
    void **module = &client->modules[i], **function = &client->functions[i];
    void *variable, *linker, *image;
    struct {
        long kind;
        void *array;
        char rest[48];
    } resource = {0, any(client, client->arrays), ""};
    switch (draw(client, 10)) {
        case 0: cudaFreeArray(*array), cudaMallocArray(array, format, 1 + draw(client, 99), 9, 0); break;
        case 1: cudaMemcpy2DToArrayAsync(*array, 0, 0, any(client, client->pinned), 20, 20, 5, 1, stream); break;
        case 2: cudaDestroySurfaceObject(*surface), cudaCreateSurfaceObject(surface, &resource); break;
        case 3: cuModuleUnload(*module), cuModuleLoadData(module, "// one\n.global .u32 two[9] = {1};"); break;
        case 4: cuModuleGetFunction(function, any(client, client->modules), draw(client, 2) ? "one" : "three"); break;
        case 5: cuLaunchKernel(any(client, client->functions), 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL); break;
        case 6: cudaDeviceGraphMemTrim(0); break;
        case 7:
            if (cuModuleGetGlobal_v2(&variable, NULL, any(client, client->modules), "two") == 0)
                cudaMemsetAsync(variable, 1, draw(client, 40), stream);
            break;
        case 8:
            if (cuLinkCreate_v2(0, NULL, NULL, &linker)) break;
            cuLinkAddData_v2(linker, 1, "// two\n.const .b8 one[5];", 24, NULL, 0, NULL, NULL);
            cuLinkComplete(linker, &image, NULL);  // which another thread's reset may free: nobody looks into it
            if (draw(client, 9)) cuLinkDestroy(linker);
            break;
        case 9: draw(client, 20) ? 0 : cudaDeviceReset(); break;
    }
}

static void share(struct client *client) {
    static unsigned destroyed;
    void **object = &client->objects[draw(client, KEPT)], *graph = NULL;
    const void **dependencies;
    size_t count_of_dependencies;
    int state;
    switch (draw(client, 5)) {
        case 0:
            cudaUserObjectRelease(*object, 1 + draw(client, 2));
            cudaUserObjectCreate(object, &destroyed, count, 1 + draw(client, 2), 1);
            break;
        case 1: cudaUserObjectRetain(*object, draw(client, 3)); break;
        case 2: cudaUserObjectRelease(*object, draw(client, 3)); break;
        default:
            cudaStreamGetCaptureInfo_v2(any(client, client->streams), &state, NULL, &graph, &dependencies,
                                        &count_of_dependencies);
            cudaGraphRetainUserObject(graph, *object, 1, draw(client, 2));
            if (!draw(client, 4)) cudaGraphReleaseUserObject(graph, any(client, client->objects), 1);
            break;
    }
}

static void order(struct client *client) {
    void **stream = &client->streams[draw(client, KEPT)], **event = &client->events[draw(client, KEPT)];
    void *other = any(client, client->streams), *graph = NULL, **executable = &client->graphs[draw(client, KEPT)];
    switch (draw(client, 13)) {
        case 0: cudaStreamDestroy(*stream), *stream = NULL, cudaStreamCreateWithFlags(stream, draw(client, 2)); break;
        case 1: cudaEventDestroy(*event), *event = NULL, cudaEventCreate(event); break;
        case 2:
        case 3: cudaEventRecord(*event, *stream); break;
        case 4:
        case 5: cudaStreamWaitEvent(other, *event, 0); break;
        case 6: cudaEventQuery(*event); break;
        case 7: cudaEventSynchronize(*event); break;
        case 8: cudaStreamQuery(*stream); break;
        case 9: cudaStreamSynchronize(*stream); break;
        case 10: cudaDeviceSynchronize(); break;
        case 11: draw(client, 8) ? 0 : cudaStreamBeginCapture(*stream, 2); break;
        case 12:
            if (cudaStreamEndCapture(*stream, &graph) == 0) {
                cudaGraphExecDestroy(*executable);
                *executable = NULL;
                cudaGraphRetainUserObject(graph, any(client, client->objects), 1, draw(client, 2));
                cudaGraphInstantiateWithFlags(executable, graph, 0);
            }
            cudaGraphDestroy(graph);
            break;
    }
    if (!draw(client, 50)) quiesce_stall(*stream);
    if (!draw(client, 50)) cudaSetDevice((int)draw(client, 3));
}

static void *run(void *data) {
    struct client *client = data;
    for (unsigned call = 0; call < client->calls; call++) {
        switch (draw(client, 5)) {
            case 0: memory(client); break;
            case 1: work(client); break;
            case 2: order(client); break;
            case 3: kernels(client); break;
            case 4: share(client); break;
        }
    }
    cudaHostUnregister(client->registered);
    for (unsigned i = 0; i < KEPT; i++) cudaStreamEndCapture(client->streams[i], &client->graphs[0]);
    for (int device = 0; device < 2; device++) {  // pending work names this client's memory
        cudaSetDevice(device);
        cudaDeviceSynchronize();
    }
    return NULL;
}

int main(int count_of_words, char **words) {
    if (count_of_words != 5) return 2;
    unsigned threads = (unsigned)atoi(words[1]);
    const char *wrong = quiesce_open(words[4]);
    if (wrong) return fprintf(stderr, "%s\n", wrong), 2;
    struct client *clients = calloc(threads, sizeof *clients);
    pthread_t *handles = calloc(threads, sizeof *handles);
    for (unsigned i = 0; i < threads; i++) {
        clients[i].state = (uint64_t)atoi(words[3]) * 1000 + i;
        clients[i].calls = (unsigned)atoi(words[2]);
        pthread_create(&handles[i], NULL, run, &clients[i]);
    }
    for (unsigned i = 0; i < threads; i++) pthread_join(handles[i], NULL);
    quiesce_close();
    free(handles);
    free(clients);
    puts("done");
    return 0;
}
