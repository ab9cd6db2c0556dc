#include "machine/device.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "machine/export.h"
#include "machine/settings.h"


static _Thread_local struct {
    uint16_t device, context;
} current;
// Of the stack of a thread, of the buffer of printf, of the heap of kernels: these three have the same numbers in both.
static const size_t DEFAULT_LIMITS[LIMITS] = {1024, 1 << 20, 8 << 20};
static size_t limits[DEVICES_MAX][LIMITS];

static bool peers[DEVICES_MAX][DEVICES_MAX];  // from, to

// What there is to say, by the field's name in both vendors' structures.
static const struct figure {
    const char *field;
    int value;
    int cuda;  // number of the attribute (cudaDeviceAttr), or -1
    int hip;   // number of the attribute since ROCm 5 (hipDeviceAttribute_t), or -1
} FIGURES[] = {
    {"warpSize", 32, 10, 87},
    {"maxThreadsPerBlock", 1024, 1, 56},
    {"regsPerBlock", 65536, 12, 71},
    {"sharedMemPerBlock", SHARED_BLOCK_BYTES, 8, 74},
    {"totalConstMem", 65536, 9, 83},
    {"clockRate", 1000000, 13, 5},
    {"memoryClockRate", 1000000, 36, 60},
    {"memoryBusWidth", 4096, 37, 59},
    {"l2CacheSize", 4 << 20, 38, 19},
    {"multiProcessorCount", 64, 16, 63},
    {"maxThreadsPerMultiProcessor", 2048, 39, 57},
    {"textureAlignment", 512, 14, 81},
    {"memPitch", 0x7fffffff, 11, 58},
    {"concurrentKernels", 1, 31, 8},
    {"canMapHostMemory", 1, 19, 3},
    {"unifiedAddressing", 1, 41, 85},
    {"managedMemory", 1, 83, 24},
    {"asyncEngineCount", 2, 40, 2},
    {"integrated", 0, 18, 16},
    {"memoryPoolsSupported", 1, 115, 88},
    {"major", 8, 75, 23},
    {"minor", 0, 76, 61},
    {"concurrentManagedAccess", 0, 89, 9},
    {"pciBusID", 0, 33, 67},
    {"ECCEnabled", 0, 32, 0},
    {"streamPrioritiesSupported", 1, 78, -1},
    {"sharedMemPerMultiprocessor", SHARED_MULTIPROCESSOR_BYTES, 81, -1},
    {"sharedMemPerBlockOptin", SHARED_OPTIN_BYTES, 97, -1},
    {"reservedSharedMemPerBlock", SHARED_RESERVED_BYTES, 111, -1},
    {"regsPerMultiprocessor", 65536, 82, -1},
    {"cooperativeLaunch", 1, 95, -1},
    {"maxBlocksPerMultiProcessor", 32, 106, -1},
};

static const struct {
    int value, cuda, hip;
} MORE[] = {
    {BLOCK_X_MAX, 2, 26}, {BLOCK_Y_MAX, 3, 27}, {BLOCK_Z_MAX, 4, 28},
    {GRID_X_MAX, 5, 29}, {GRID_Y_MAX, 6, 30}, {GRID_Z_MAX, 7, 31},
    // What a device has: copies beside kernels, priorities, caches, registering, cooperative launches, waits for
    // values, virtual memory management, pools of page-locked memory.
    {1, 15, -1}, {1, 79, -1}, {1, 80, -1}, {1, 91, -1}, {1, 92, -1}, {1, 93, -1}, {1, 94, -1},
    {1, 99, 90}, {1, 102, 89}, {1, 122, -1}, {1, 123, -1}, {1, 142, -1}, {1, 144, -1},
    {32, 51, -1}, {2, 87, -1}, {1, 129, -1},
    // What it has not: a time limit, exclusive modes, several boards, memory of the host in the same way as its own,
    // handles for other processes, clusters, what is about networks.
    {0, 17, -1}, {0, 20, -1}, {0, 34, -1}, {0, 35, -1}, {0, 50, -1}, {0, 84, -1}, {0, 85, -1}, {0, 86, -1},
    {0, 88, -1}, {0, 90, -1}, {0, 96, -1}, {0, 98, -1}, {0, 100, -1}, {0, 101, -1}, {0, 103, -1}, {0, 108, -1},
    {0, 109, -1}, {0, 112, -1}, {0, 113, -1}, {0, 114, -1}, {0, 116, -1}, {0, 117, -1}, {0, 118, -1},
    {0, 119, -1}, {0, 120, -1}, {0, 121, -1}, {0, 128, -1}, {0, 132, -1},
    {0, 104, -1}, {0, 105, -1}, {0, 107, -1}, {0, 110, -1}, {0, 124, -1}, {1, 125, -1}, {1, 126, -1}, {0, 127, -1},
    {0, 130, -1}, {0, 131, -1}, {0, 133, -1}, {0, 134, -1}, {0, 135, -1}, {0, 136, -1}, {0, 137, -1}, {0, 138, -1},
    {0, 139, -1}, {0, 140, -1}, {0, 141, -1}, {0, 143, -1}, {0, 145, -1},
    // Textures and surfaces, as on devices of compute capability 8.0 (CUDA C++ Programming Guide, "Technical
    // Specifications per Compute Capability"): the widths of one kind and another, their heights, depths and layers.
    {131072, 21, -1}, {131072, 22, -1}, {65536, 23, -1}, {16384, 24, -1}, {16384, 25, -1}, {16384, 26, -1},
    {32768, 27, -1}, {32768, 28, -1}, {2048, 29, -1}, {512, 30, -1}, {32768, 42, -1}, {2048, 43, -1}, {1, 44, -1},
    {32768, 45, -1}, {32768, 46, -1}, {8192, 47, -1}, {8192, 48, -1}, {32768, 49, -1}, {32768, 52, -1},
    {32768, 53, -1}, {2046, 54, -1}, {32768, 55, -1}, {131072, 56, -1}, {65536, 57, -1}, {16384, 58, -1},
    {16384, 59, -1}, {16384, 60, -1}, {32768, 61, -1}, {2048, 62, -1}, {32768, 63, -1}, {32768, 64, -1},
    {2048, 65, -1}, {32768, 66, -1}, {32768, 67, -1}, {2046, 68, -1}, {1 << 28, 69, -1}, {131072, 70, -1},
    {65000, 71, -1}, {2097120, 72, -1}, {32768, 73, -1}, {32768, 74, -1}, {32768, 77, -1},
};

// Offsets, in bytes, of what is filled in: from the vendors' API references, which list the structures in order.
// tests/simulator/test_layouts.py compares them with installed headers.
#define SHARED_BY_MOST                                                                                             \
    {"name", 0}, {"uuid", 256}, {"totalGlobalMem", 288}, {"sharedMemPerBlock", 296}, {"regsPerBlock", 304},        \
        {"warpSize", 308}, {"memPitch", 312}, {"maxThreadsPerBlock", 320}, {"maxThreadsDim", 324},                 \
        {"maxGridSize", 336}, {"totalConstMem", 352}, {"major", 360}, {"minor", 364}, {"textureAlignment", 368}
#define SHARED_BEFORE_CUDA_13                                                                                      \
    {"clockRate", 348}, {"multiProcessorCount", 388}, {"integrated", 396}, {"canMapHostMemory", 400},              \
        {"concurrentKernels", 576}, {"pciBusID", 584}, {"asyncEngineCount", 600}, {"unifiedAddressing", 604},      \
        {"memoryClockRate", 608}, {"memoryBusWidth", 612}, {"l2CacheSize", 616},                                   \
        {"maxThreadsPerMultiProcessor", 624}, {"managedMemory", 652}, {"concurrentManagedAccess", 676}
#define SHARED_BY_CUDA_11_AND_12                                                                                   \
    {"streamPrioritiesSupported", 628}, {"sharedMemPerMultiprocessor", 640}, {"regsPerMultiprocessor", 648},       \
        {"cooperativeLaunch", 688}, {"sharedMemPerBlockOptin", 696}, {"maxBlocksPerMultiProcessor", 712},              \
        {"reservedSharedMemPerBlock", 720}

static const struct layout LAYOUTS[] = {
    {"cuda:11", 728, {SHARED_BY_MOST, SHARED_BEFORE_CUDA_13, SHARED_BY_CUDA_11_AND_12}},
    {"cuda:12",
     1032,
     {SHARED_BY_MOST, SHARED_BEFORE_CUDA_13, SHARED_BY_CUDA_11_AND_12, {"memoryPoolsSupported", 744}}},
    {"cuda:13",
     1008,
     {SHARED_BY_MOST,
      {"multiProcessorCount", 384},
      {"integrated", 388},
      {"canMapHostMemory", 392},
      {"concurrentKernels", 560},
      {"pciBusID", 568},
      {"asyncEngineCount", 584},
      {"unifiedAddressing", 588},
      {"memoryBusWidth", 592},
      {"l2CacheSize", 596},
      {"maxThreadsPerMultiProcessor", 604},
      {"streamPrioritiesSupported", 608},
      {"sharedMemPerMultiprocessor", 624},
      {"regsPerMultiprocessor", 632},
      {"cooperativeLaunch", 668},
      {"sharedMemPerBlockOptin", 672},
      {"maxBlocksPerMultiProcessor", 688},
      {"reservedSharedMemPerBlock", 696},
      {"managedMemory", 636},
      {"concurrentManagedAccess", 656},
      {"memoryPoolsSupported", 720}}},
    {"hip:5", 792, {{"name", 0},          {"totalGlobalMem", 256},   {"sharedMemPerBlock", 264},
                    {"regsPerBlock", 272}, {"warpSize", 276},         {"maxThreadsPerBlock", 280},
                    {"maxThreadsDim", 284}, {"maxGridSize", 296},     {"clockRate", 308},
                    {"memoryClockRate", 312}, {"memoryBusWidth", 316}, {"totalConstMem", 320},
                    {"major", 328},        {"minor", 332},            {"multiProcessorCount", 336},
                    {"l2CacheSize", 340},  {"maxThreadsPerMultiProcessor", 344},
                    {"concurrentKernels", 360}, {"pciBusID", 368},    {"canMapHostMemory", 388},
                    {"gcnArchName", 396},  {"integrated", 652},       {"memPitch", 712},
                    {"textureAlignment", 720}, {"managedMemory", 772}, {"concurrentManagedAccess", 780}}},
    {"hip:6", 1472, {SHARED_BY_MOST, SHARED_BEFORE_CUDA_13, {"memoryPoolsSupported", 744}, {"gcnArchName", 1160}}},
};
enum { LAYOUTS_COUNT = sizeof LAYOUTS / sizeof *LAYOUTS };

EXPORT const struct layout *quiesce_layout(unsigned number) { return number < LAYOUTS_COUNT ? &LAYOUTS[number] : NULL; }

const struct layout *device_layout(enum layouts number) { return &LAYOUTS[number]; }

unsigned device_current(void) { return current.device < settings.devices ? current.device : 0; }

unsigned device_context(void) { return current.context; }

void device_select_context(unsigned number, unsigned device) {
    current.device = (uint16_t)device;
    current.context = (uint16_t)number;
}

bool device_exists(int ordinal) { return ordinal >= 0 && (unsigned)ordinal < settings.devices; }

enum status device_select(int ordinal) {
    if (!device_exists(ordinal)) return INVALID_DEVICE;
    device_select_context((unsigned)ordinal, (unsigned)ordinal);
    return OK;
}

static int value_of(const struct figure *figure, unsigned device) {
    if (!strcmp(figure->field, "warpSize") && settings.flavour == FLAVOUR_HIP) return 64;
    if (!strcmp(figure->field, "major") && settings.flavour == FLAVOUR_HIP) return 9;
    return !strcmp(figure->field, "pciBusID") ? (int)device + 1 : figure->value;
}

static void fill(char *place, const char *field, unsigned device) {
    static const uint32_t block[] = {BLOCK_X_MAX, BLOCK_Y_MAX, BLOCK_Z_MAX};
    static const uint32_t grid[] = {GRID_X_MAX, GRID_Y_MAX, GRID_Z_MAX};
    if (!strcmp(field, "name")) {
        device_name(place, 256, device);
    } else if (!strcmp(field, "uuid")) {
        device_uuid(place, device);
    } else if (!strcmp(field, "gcnArchName")) {
        strcpy(place, "gfx90a");
    } else if (!strcmp(field, "maxThreadsDim")) {
        memcpy(place, block, sizeof block);
    } else if (!strcmp(field, "maxGridSize")) {
        memcpy(place, grid, sizeof grid);
    } else if (!strcmp(field, "totalGlobalMem")) {
        memcpy(place, &settings.capacity_bytes, sizeof settings.capacity_bytes);
    } else {
        for (size_t i = 0; i < sizeof FIGURES / sizeof *FIGURES; i++)
            if (!strcmp(field, FIGURES[i].field)) {
                int value = value_of(&FIGURES[i], device);
                memcpy(place, &value, sizeof value);  // the size_t among them are zero behind the first four bytes
            }
    }
}

void device_properties(void *properties, unsigned device, const struct layout *layout) {
    memset(properties, 0, layout->bytes);
    for (const struct field *field = layout->fields; field->name; field++)
        fill((char *)properties + field->offset, field->name, device);
}

enum status device_attribute(int attribute, unsigned device, int *value) {
    bool hip = settings.flavour == FLAVOUR_HIP;
    if (attribute < 0) return INVALID_VALUE;
    for (size_t i = 0; i < sizeof FIGURES / sizeof *FIGURES; i++)
        if (attribute == (hip ? FIGURES[i].hip : FIGURES[i].cuda)) {
            *value = value_of(&FIGURES[i], device);
            return OK;
        }
    for (size_t i = 0; i < sizeof MORE / sizeof *MORE; i++)
        if (attribute == (hip ? MORE[i].hip : MORE[i].cuda)) {
            *value = MORE[i].value;
            return OK;
        }
    return INVALID_VALUE;
}

int device_capability(void) {
    int found[2] = {0, 0};
    for (size_t i = 0; i < sizeof FIGURES / sizeof *FIGURES; i++)
        for (int part = 0; part < 2; part++)
            if (!strcmp(FIGURES[i].field, part ? "minor" : "major")) found[part] = value_of(&FIGURES[i], 0);
    return 10 * found[0] + found[1];
}

size_t device_limit_of(unsigned device, int limit) { return limits[device][limit]; }

enum status device_limit(int limit, size_t **bytes) {
    if (limit < 0 || limit >= LIMITS) return UNSUPPORTED_LIMIT;
    *bytes = &limits[device_current()][limit];
    return OK;
}

enum status device_enable_peer(unsigned peer) {
    unsigned from = device_current();
    if (peer == from) return INVALID_DEVICE;
    if (peers[from][peer]) return PEER_ACCESS_ALREADY_ENABLED;
    peers[from][peer] = true;
    return OK;
}

enum status device_disable_peer(unsigned peer) {
    unsigned from = device_current();
    if (!peers[from][peer]) return PEER_ACCESS_NOT_ENABLED;
    peers[from][peer] = false;
    return OK;
}

bool device_may_use(unsigned device, unsigned peer) { return device == peer || peers[device][peer]; }

int device_release(void) {
    switch (settings.version) {
        case 11: return 11080;
        case 12: return 12090;
        case 13: return 13050;
        default: return (int)settings.version * 1000;
    }
}

void device_name(char *text, size_t bytes, unsigned device) {
    snprintf(text, bytes, "quiesce simulated device %u", device);
}

uint64_t device_number(unsigned device) { return 0x7175696573636500 | device; }

void device_uuid(void *bytes, unsigned device) {
    if (settings.flavour == FLAVOUR_HIP) {
        char digits[DEVICE_UUID_BYTES + 1];
        snprintf(digits, sizeof digits, "%016" PRIx64, device_number(device));
        memcpy(bytes, digits, DEVICE_UUID_BYTES);
        return;
    }
    memcpy(bytes, "quiesce device ", DEVICE_UUID_BYTES - 1);
    ((char *)bytes)[DEVICE_UUID_BYTES - 1] = (char)('0' + device);
}

void device_bus(char *text, size_t bytes, unsigned device) { snprintf(text, bytes, "0000:%02x:00.0", device + 1); }

enum status device_on_bus(const char *text, int *device) {
    unsigned domain, bus;
    if (sscanf(text, "%x:%x:", &domain, &bus) != 2) return INVALID_VALUE;
    if (domain || !device_exists((int)bus - 1)) return INVALID_DEVICE;
    *device = (int)bus - 1;
    return OK;
}

enum status device_peer_attribute(int attribute, int device, int peer, int *value) {
    enum { PERFORMANCE_RANK = 1, ACCESS, ATOMICS, ARRAYS, SOME_ATOMICS };
    if (attribute < PERFORMANCE_RANK || attribute > SOME_ATOMICS) return INVALID_VALUE;
    if (!device_exists(device) || !device_exists(peer) || device == peer) return INVALID_DEVICE;
    *value = attribute == ACCESS || attribute == ATOMICS || attribute == ARRAYS;
    return OK;
}

void device_forget(unsigned device) {
    memset(peers[device], 0, sizeof peers[device]);
    memcpy(limits[device], DEFAULT_LIMITS, sizeof DEFAULT_LIMITS);
}

void devices_open(void) {
    device_select_context(0, 0);
    for (unsigned i = 0; i < DEVICES_MAX; i++) device_forget(i);
}
