// Descriptors of cuBLASLt, and the functions that choose an algorithm.
//
// "The contents are opaque": a descriptor lies on the heap, or in a structure of the caller's own of the sizes that
// cublasLt.h has. Here it holds the values of its attributes, where the tables below say, and quiesce.libraries.lt
// reads them there when a product is called. There is one algorithm.

#include <stdlib.h>
#include <string.h>

#include "ledger/unsimulated.h"
#include "libraries/blas_libraries.h"
#include "libraries/computed.h"

enum { SUCCESS = 0, NO_MEMORY = 3, WRONG = 7 };
enum { DESCRIPTION_BYTES = 256, SMALL_BYTES = 64 };  // in cublasLt.h

// Where a descriptor has an attribute, by the numbers of cublasLt.h.
struct attribute {
    int number;
    unsigned offset, bytes;
};

static const struct attribute LAYOUT[] = {{0, 0, 4},  {1, 4, 4},  {2, 8, 8},  {3, 16, 8}, {4, 24, 8},
                                          {5, 32, 4}, {6, 40, 8}, {7, 48, 8}, {8, 36, 4}, {-1, 0, 0}};
static const struct attribute DESCRIPTION[] = {
    {8, 0, 8},    {10, 8, 8},   {11, 16, 8},  {12, 24, 8},  {13, 32, 8},  {14, 40, 8},  {17, 48, 8},  {18, 56, 8},
    {19, 64, 8},  {20, 72, 8},  {21, 80, 8},  {23, 88, 8},  {24, 96, 8},  {29, 104, 8}, {30, 112, 8}, {36, 120, 8},
    {0, 128, 4},  {1, 132, 4},  {2, 136, 4},  {3, 140, 4},  {4, 144, 4},  {5, 148, 4},  {6, 152, 4},  {7, 156, 4},
    {15, 160, 4}, {22, 164, 4}, {25, 168, 1}, {26, 172, 4}, {27, 176, 4}, {28, 180, 4}, {31, 184, 4}, {32, 188, 4},
    {33, 192, 4}, {34, 196, 4}, {35, 200, 4}, {37, 204, 4}, {-1, 0, 0}};
enum { COMPUTE_TYPE = 128, SCALE_TYPE = 132, FILL_MODE = 152, EPILOGUE = 156, AUX_TYPE = 164, BIAS_TYPE = 172 };
static const struct attribute PREFERENCE[] = {{1, 0, 8},  {0, 8, 4},  {3, 12, 4}, {5, 16, 4}, {6, 20, 4},
                                              {7, 24, 4}, {8, 28, 4}, {9, 32, 4}, {12, 40, 8}, {-1, 0, 0}};
static const struct attribute TRANSFORM[] = {{0, 0, 4}, {1, 4, 4}, {2, 8, 4}, {3, 12, 4}, {-1, 0, 0}};
static const struct attribute ALGORITHM[] = {{0, 0, 4},  {1, 4, 4},  {2, 8, 4},  {3, 12, 4}, {4, 16, 4},
                                             {5, 20, 4}, {6, 24, 4}, {7, 28, 2}, {8, 30, 2}, {-1, 0, 0}};
enum { ALGORITHM_WORKSPACE = 56 };

static const struct attribute *find(const struct attribute *table, int number) {
    while (table->number >= 0 && table->number != number) table++;
    return table->number < 0 ? NULL : table;
}

static int set(const struct attribute *table, char *descriptor, int number, const void *from, size_t bytes) {
    const struct attribute *attribute = find(table, number);
    if (!descriptor || !from || !attribute || bytes != attribute->bytes) return WRONG;
    memcpy(descriptor + attribute->offset, from, bytes);
    return SUCCESS;
}

// "If sizeInBytes is 0, only fills out sizeWritten".
static int get(const struct attribute *table, const char *descriptor, int number, void *to, size_t bytes,
               size_t *written) {
    const struct attribute *attribute = find(table, number);
    if (!descriptor || !attribute || (!bytes && !written) || (bytes && (!to || bytes < attribute->bytes))) return WRONG;
    if (written) *written = attribute->bytes;
    if (bytes) memcpy(to, descriptor + attribute->offset, attribute->bytes);
    return SUCCESS;
}

static int make(char **descriptor, size_t bytes, char **made) {
    *made = descriptor ? calloc(1, bytes) : NULL;
    if (!*made) return descriptor ? NO_MEMORY : WRONG;
    *descriptor = *made;
    return SUCCESS;
}

static int destroy(char *descriptor) {
    free(descriptor);
    return SUCCESS;
}

static void put(char *descriptor, unsigned offset, int value) { memcpy(descriptor + offset, &value, sizeof value); }

#define ATTRIBUTES(name, table)                                                                              \
    EXPORT int COMPUTED(name##SetAttribute)(char *descriptor, int number, const void *from, size_t bytes) {  \
        return set(table, descriptor, number, from, bytes);                                                  \
    }                                                                                                        \
    EXPORT int COMPUTED(name##GetAttribute)(const char *descriptor, int number, void *to, size_t bytes,      \
                                            size_t *written) {                                               \
        return get(table, descriptor, number, to, bytes, written);                                           \
    }
#define DESTROYS(name) \
    EXPORT int COMPUTED(name##Destroy)(char *descriptor) { return destroy(descriptor); }

// Each is made on the heap, or initialised where the caller has it.
#define DESCRIPTOR(name, bytes, values, begin, ...)                                          \
    EXPORT int COMPUTED(name##Create)(char **descriptor __VA_OPT__(, ) __VA_ARGS__) {        \
        char *made;                                                                          \
        int status = make(descriptor, bytes, &made);                                         \
        if (!status) begin;                                                                  \
        return status;                                                                       \
    }                                                                                        \
    EXPORT int COMPUTED(name##Init_internal)(char *made, size_t size __VA_OPT__(, ) __VA_ARGS__) { \
        if (!made || size < (bytes)) return WRONG;                                           \
        memset(made, 0, bytes);                                                              \
        begin;                                                                               \
        return SUCCESS;                                                                      \
    }                                                                                        \
    ATTRIBUTES(name, values)                                                                 \
    DESTROYS(name)

static void begin_layout(char *layout, int type, uint64_t rows, uint64_t columns, int64_t ld) {
    enum { ONE = 1, ROWS = 8, COLUMNS = 16, LD = 24, BATCH = 32 };
    put(layout, 0, type);
    put(layout, BATCH, ONE);
    memcpy(layout + ROWS, &rows, sizeof rows);
    memcpy(layout + COLUMNS, &columns, sizeof columns);
    memcpy(layout + LD, &ld, sizeof ld);
}

static void begin_description(char *description, int compute_type, int scale_type) {
    enum { FULL = 2, NO_EPILOGUE = 1, AS_RESULT = -1 };
    put(description, COMPUTE_TYPE, compute_type);
    put(description, SCALE_TYPE, scale_type);
    put(description, FILL_MODE, FULL);
    put(description, EPILOGUE, NO_EPILOGUE);
    put(description, AUX_TYPE, AS_RESULT);
    put(description, BIAS_TYPE, AS_RESULT);
}

static void begin_preference(char *preference) {
    enum { MASK = 12, SCHEMES = 0x7, ALIGNMENTS = 16, ALIGNMENT = 256 };
    put(preference, MASK, SCHEMES);
    for (unsigned i = 0; i < 4; i++) put(preference, ALIGNMENTS + 4 * i, ALIGNMENT);
}

DESCRIPTOR(cublasLtMatrixLayout, SMALL_BYTES, LAYOUT, begin_layout(made, type, rows, columns, ld), int type,
           uint64_t rows, uint64_t columns, int64_t ld)
DESCRIPTOR(cublasLtMatmulDesc, DESCRIPTION_BYTES, DESCRIPTION, begin_description(made, compute, scale), int compute,
           int scale)
DESCRIPTOR(cublasLtMatmulPreference, SMALL_BYTES, PREFERENCE, begin_preference(made))
DESCRIPTOR(cublasLtMatrixTransformDesc, SMALL_BYTES, TRANSFORM, put(made, 0, scale), int scale)
ATTRIBUTES(cublasLtMatmulAlgoConfig, ALGORITHM)

// -- algorithms ------------------------------------------------------------------------------------------------------

// cublasLtMatmulHeuristicResult_t
struct result {
    char algorithm[SMALL_BYTES];
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
};

// "Split-K" keeps sums in single precision, of as many elements as the result has.
static uint64_t workspace_of(const char *result_layout, uint64_t most) {
    uint64_t rows, columns;
    memcpy(&rows, result_layout + 8, sizeof rows);
    memcpy(&columns, result_layout + 16, sizeof columns);
    uint64_t wanted = 4 * rows * columns;
    return wanted < most ? wanted : most;
}

static void choose(struct result *result, uint64_t workspace_bytes) {
    *result = (struct result){.workspace_bytes = workspace_bytes, .waves = 1};
    memcpy(result->algorithm + ALGORITHM_WORKSPACE, &workspace_bytes, sizeof workspace_bytes);
}

// Types of elements that quiesce.libraries.lt computes, of library_types.h; in columns or rows.
static bool is_described(const char *layout) {
    const uint32_t types = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 10 | 1 << 14;
    uint32_t type, order;
    memcpy(&type, layout, sizeof type);
    memcpy(&order, layout + 4, sizeof order);
    return type < 32 && types >> type & 1 && order <= 1;
}

EXPORT int COMPUTED(cublasLtMatmulAlgoGetHeuristic)(void *handle, const char *description, const char *a, const char *b,
                                                    const char *c, const char *d, const char *preference, int most,
                                                    struct result *results, int *count) {
    static const char NAME[] = "cublasLtMatmulAlgoGetHeuristic";
    int answer;
    if (!object_of_call(NAME, &CUBLAS_LT, (uint64_t)handle, &answer)) return answer;
    bool is_whole = description && a && b && c && d && preference && results && count && most > 0;
    enum status status = is_whole ? OK : INVALID_VALUE;
    if (is_whole && !(is_described(a) && is_described(b) && is_described(c) && is_described(d)))
        status = unsimulated(NAME, "products of these types or orders of elements are not described");
    uint64_t most_bytes = 0;
    if (!status) memcpy(&most_bytes, preference, sizeof most_bytes);
    if (!status) choose(results, workspace_of(d, most_bytes));
    if (is_whole) *count = !status;
    answer = object_leave(&CUBLAS_LT, status);
    return status == NOT_SUPPORTED ? CUBLAS_LT.unsupported : answer;
}

EXPORT int COMPUTED(cublasLtMatmulAlgoGetIds)(void *handle, int compute, int scale, int a, int b, int c, int d,
                                              int most, int *ids, int *count) {
    (void)handle, (void)compute, (void)scale, (void)a, (void)b, (void)c, (void)d;
    if (!ids || most < 1) return WRONG;
    *ids = 0;
    if (count) *count = 1;
    return SUCCESS;
}

EXPORT int COMPUTED(cublasLtMatmulAlgoInit)(void *handle, int compute, int scale, int a, int b, int c, int d, int id,
                                            char *algorithm) {
    (void)handle, (void)compute, (void)scale, (void)a, (void)b, (void)c, (void)d;
    if (!algorithm || id) return WRONG;
    memset(algorithm, 0, SMALL_BYTES);
    return SUCCESS;
}

EXPORT int COMPUTED(cublasLtMatmulAlgoCheck)(void *handle, const char *description, const char *a, const char *b,
                                             const char *c, const char *d, const char *algorithm,
                                             struct result *result) {
    (void)handle, (void)a, (void)b, (void)c, (void)d;
    if (!description || !algorithm || !result) return WRONG;
    uint64_t workspace_bytes;
    memcpy(&workspace_bytes, algorithm + ALGORITHM_WORKSPACE, sizeof workspace_bytes);
    choose(result, workspace_bytes);
    return SUCCESS;
}

// -- what computes ---------------------------------------------------------------------------------------------------

COMPUTES_ON(CUBLAS_LT, 15, cublasLtMatmul)
COMPUTES_ON(CUBLAS_LT, 10, cublasLtMatrixTransform)
