// Allocations and frees by the C library, by OpenCL's first device (PoCL's, where that is installed) and by the
// simulated runtime, next to each other: one block again and again, and many blocks made and then freed. The C library
// keeps a few blocks of a size at hand for its thread, so that the first is its best case.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

const char *quiesce_open(const char *settings);
int cudaMalloc(void **, size_t), cudaFree(void *);

enum { PAIRS = 1000000, BUFFER_PAIRS = 20000, BATCH = 1000, LIVE_MAX = 1000000, STEPS = 5 };
enum { THREAD_RUNS = 7, STACK_RUNS = 5 };

static size_t size_bytes;

static struct {
    void *context;
    void *(*create)(void *context, unsigned long flags, size_t size, void *host, int *error);
    int (*release)(void *buffer);
} opencl;

static void open_opencl(const char *path) {
    void *library = dlopen(path, RTLD_NOW);
    if (!library) return;
    int (*platforms)(unsigned, void **, unsigned *) = dlsym(library, "clGetPlatformIDs");
    int (*devices)(void *, unsigned long, unsigned, void **, unsigned *) = dlsym(library, "clGetDeviceIDs");
    void *(*context)(const void *, unsigned, void **, void *, void *, int *) = dlsym(library, "clCreateContext");
    void *platform, *device;
    int error = 0;
    if (platforms(1, &platform, NULL) || devices(platform, 0xffffffff, 1, &device, NULL)) return;
    opencl.create = dlsym(library, "clCreateBuffer");
    opencl.release = dlsym(library, "clReleaseMemObject");
    opencl.context = context(NULL, 1, &device, NULL, NULL, &error);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void *pairs(void *unused) {
    void *address;
    for (int i = 0; i < PAIRS; i++) cudaMalloc(&address, size_bytes), cudaFree(address);
    return unused;
}

static void open_machine(const char *settings) {
    const char *wrong = quiesce_open(settings);
    if (wrong) exit((fprintf(stderr, "%s\n", wrong), 1));
}

static double buffer_pair(size_t size) {
    double begin = now();
    for (int i = 0; i < BUFFER_PAIRS; i++) {
        void *buffer = opencl.create(opencl.context, 1, size, NULL, NULL);
        if (!buffer) exit((fprintf(stderr, "OpenCL creates no buffer\n"), 1));
        opencl.release(buffer);
    }
    return (now() - begin) / BUFFER_PAIRS;
}

static void *batches(void *batch) {
    void **blocks = batch;
    for (int i = 0; i < PAIRS / BATCH; i++) {
        for (int j = 0; j < BATCH; j++) cudaMalloc(&blocks[j], size_bytes);
        for (int j = 0; j < BATCH; j++) cudaFree(blocks[j]);
    }
    return NULL;
}

static void *host_pairs(void *unused) {
    for (int i = 0; i < PAIRS; i++) {
        char *volatile block = malloc(size_bytes);
        *block = 1;
        free(block);
    }
    return unused;
}

static void *host_batches(void *batch) {
    char **blocks = batch;
    for (int i = 0; i < PAIRS / BATCH; i++) {
        for (int j = 0; j < BATCH; j++) blocks[j] = malloc(size_bytes), *blocks[j] = 1;
        for (int j = 0; j < BATCH; j++) free(blocks[j]);
    }
    return NULL;
}

// Nanoseconds a pair, once the pages of the ring and of the heap have been touched.
static double pair(void *(*work)(void *), void *argument) {
    work(argument);
    double begin = now();
    work(argument);
    return (now() - begin) / PAIRS;
}

static double pair_of_threads(int count) {
    pthread_t threads[2];
    double begin = now();
    for (int i = 0; i < count; i++) pthread_create(&threads[i], NULL, pairs, NULL);
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    return (now() - begin) / ((double)count * PAIRS);
}

// One thread and two in turn, the shortest of some: all take the lock, which a process with one thread goes without.
static void compare_threads(void) {
    double best[] = {1e9, 1e9};
    for (int i = 0; i < 2 * THREAD_RUNS; i++) {
        double time = pair_of_threads(1 + i % 2);
        if (time < best[i % 2]) best[i % 2] = time;
    }
    printf("  a thread %4.0f ns, two together %4.0f ns\n", best[0], best[1]);
}

static void compare(size_t size, const char *settings) {
    static void *batch[BATCH];
    open_machine(settings);
    size_bytes = size;
    double host = pair(host_pairs, NULL), simulated = pair(pairs, NULL);
    printf("%8zu B  one block  ", size);
    if (opencl.context) printf("OpenCL %4.0f ns  ", buffer_pair(size));
    printf("glibc %4.0f ns  simulated %4.0f ns (%4.1f times)", host, simulated, simulated / host);
    host = pair(host_batches, batch), simulated = pair(batches, batch);
    printf("  %d blocks  glibc %4.0f ns  simulated %4.0f ns (%4.1f times)", BATCH, host, simulated, simulated / host);
    compare_threads();
}

// The same pairs with call stacks, as quiesce exec keeps them unless --no-stacks is given, and without; in turn.
static void compare_stacks(const char *settings) {
    char with_stacks[1024];
    snprintf(with_stacks, sizeof with_stacks, "%s;stacks=1", settings);
    size_bytes = 256;
    double best[] = {1e9, 1e9};
    for (int i = 0; i < 2 * STACK_RUNS; i++) {
        open_machine(i % 2 ? with_stacks : settings);
        double time = pair(pairs, NULL);
        if (time < best[i % 2]) best[i % 2] = time;
    }
    double ratio = best[1] / best[0];
    printf("     256 B  one block  no stacks %4.0f ns  call stacks %4.0f ns (%4.2f times)\n", best[0], best[1], ratio);
}

int main(int count, char **words) {
    if (count != 3) return 2;
    open_opencl(words[2]);
    char settings[1024], *unmeasured = "poison=0;redzone=0;capacity=1000000000000";
    snprintf(settings, sizeof settings, "folder=%s;%s", words[1], unmeasured);
    compare(256, settings);
    compare(65536, settings);
    compare_stacks(settings);
    open_machine(unmeasured);
    static void *blocks[LIVE_MAX];
    printf("256 B with ever more live blocks, ns for each allocation:");
    for (int step = 0; step < STEPS; step++) {
        double begin = now();
        for (int i = 0; i < LIVE_MAX / STEPS; i++) cudaMalloc(&blocks[step * (LIVE_MAX / STEPS) + i], 256);
        printf(" %.0f", (now() - begin) / (LIVE_MAX / STEPS));
    }
    puts("");
    return 0;
}
