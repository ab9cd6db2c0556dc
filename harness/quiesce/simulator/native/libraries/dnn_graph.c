#include "libraries/dnn_graph.h"

#include <stdlib.h>
#include <string.h>

#include "libraries/dnn_statuses.h"

// cudnnBackendDescriptorType_t
enum {
    ENGINE = 2, ENGINE_CONFIG = 3, HEURISTICS = 4, PLAN = 5, GRAPH = 15, VARIANT_PACK = 16, TENSOR = 17, TYPES = 51
};

// cudnnBackendAttributeName_t
enum {
    HEURISTICS_GRAPH = 201, HEURISTICS_RESULTS = 202, CONFIG_ENGINE = 300, CONFIG_WORKSPACE = 303, PLAN_CONFIG = 401,
    PLAN_WORKSPACE = 402, FORWARD_W = 703, BACKWARD_W = 709, BACKWARD_DW = 715, GRAPH_OPERATIONS = 801,
    GRAPH_ENGINES = 802, TENSOR_TYPE = 901, TENSOR_DIMENSIONS = 902, TENSOR_STRIDES = 903, TENSOR_ID = 906,
    VARIANT_IDS = 1000, VARIANT_POINTERS = 1001, ENGINE_GRAPH = 1300, ENGINE_INDEX = 1301
};

// Lists that nothing here has any element of.
static const int EMPTY[] = {301, 302, 403, 404, 1302, 1303, 1304, 1305};

// cudnnBackendAttributeType_t, and the bytes of an element of each.
enum { INT64 = 3, DESCRIPTOR = 15 };
static const unsigned char BYTES_OF[] = {8, 4, 1, 8, 4, 8, 8, 4, 4, 4, 4, 4, 4, 4, 4,  8, 4,
                                         4, 4, 4, 4, 4, 4, 4, 1, 4, 16, 4, 4, 4, 4, 4, 4, 4};
enum { ATTRIBUTE_TYPES = sizeof BYTES_OF };

struct dnn_descriptor {
    uint32_t type, is_final;
    uint64_t bytes, room;
    char *content;
};

// In the content, before its elements. All of it lies at multiples of 8.
struct attribute {
    uint16_t name, type;
    uint32_t bytes;
};

// Before the content of a descriptor that is an element.
struct copy {
    uint32_t type, bytes;
};

struct part {
    const char *content;
    uint64_t bytes;
};

static uint64_t rounded(uint64_t bytes) { return (bytes + 7) / 8 * 8; }

static const struct attribute *find(struct part in, int name) {
    for (uint64_t at = 0; at < in.bytes;) {
        const struct attribute *attribute = (const struct attribute *)(in.content + at);
        if (attribute->name == name) return attribute;
        at += sizeof *attribute + rounded(attribute->bytes);
    }
    return NULL;
}

static struct part all_of(const struct dnn_descriptor *descriptor) {
    return (struct part){descriptor->content, descriptor->bytes};
}

static struct part elements_of(const struct attribute *attribute) {
    return (struct part){(const char *)(attribute + 1), attribute->bytes};
}

// The next descriptor of a list, which is then behind it; false: there is none.
static bool next(struct part *list, struct part *content, uint32_t *type) {
    if (!list->bytes) return false;
    struct copy head;
    memcpy(&head, list->content, sizeof head);
    *content = (struct part){list->content + sizeof head, head.bytes};
    if (type) *type = head.type;
    list->content += sizeof head + head.bytes;
    list->bytes -= sizeof head + head.bytes;
    return true;
}

static int64_t count_of(const struct attribute *attribute) {
    if (!attribute) return 0;
    if (attribute->type != DESCRIPTOR) return attribute->bytes / BYTES_OF[attribute->type];
    int64_t count = 0;
    struct part content;
    for (struct part list = elements_of(attribute); next(&list, &content, NULL);) count++;
    return count;
}

// -- changes ---------------------------------------------------------------------------------------------------------

static void drop(struct dnn_descriptor *descriptor, int name) {
    const struct attribute *old = find(all_of(descriptor), name);
    if (!old) return;
    char *start = (char *)old;
    uint64_t bytes = sizeof *old + rounded(old->bytes);
    descriptor->bytes -= bytes;
    memmove(start, start + bytes, descriptor->bytes - (uint64_t)(start - descriptor->content));
}

// Room for an attribute's elements at the end of the content; NULL: there is no memory.
static char *add(struct dnn_descriptor *descriptor, int name, int type, uint64_t bytes) {
    uint64_t wanted = descriptor->bytes + sizeof(struct attribute) + rounded(bytes);
    if (bytes > INT32_MAX) return NULL;
    if (wanted > descriptor->room) {
        char *content = realloc(descriptor->content, 2 * wanted);
        if (!content) return NULL;
        descriptor->content = content;
        descriptor->room = 2 * wanted;
    }
    struct attribute *attribute = (struct attribute *)(descriptor->content + descriptor->bytes);
    memset(attribute, 0, sizeof *attribute + rounded(bytes));
    *attribute = (struct attribute){(uint16_t)name, (uint16_t)type, (uint32_t)bytes};
    descriptor->bytes = wanted;
    return (char *)(attribute + 1);
}

static int put(struct dnn_descriptor *descriptor, int name, int type, uint64_t bytes, const void *elements) {
    drop(descriptor, name);
    char *to = add(descriptor, name, type, bytes);
    if (!to) return DNN_NO_MEMORY;
    if (bytes) memcpy(to, elements, bytes);
    return DNN_SUCCESS;
}

static int put_copies(struct dnn_descriptor *descriptor, int name, int64_t count,
                      struct dnn_descriptor *const *elements) {
    uint64_t bytes = 0;
    for (int64_t i = 0; i < count; i++) {
        if (!elements[i]) return DNN_NULL;
        if (!elements[i]->is_final) return DNN_NOT_FINAL;
        bytes += sizeof(struct copy) + elements[i]->bytes;
    }
    drop(descriptor, name);
    char *to = add(descriptor, name, DESCRIPTOR, bytes);
    if (!to) return DNN_NO_MEMORY;
    for (int64_t i = 0; i < count; i++) {
        struct copy head = {elements[i]->type, (uint32_t)elements[i]->bytes};
        memcpy(to, &head, sizeof head);
        if (head.bytes) memcpy(to + sizeof head, elements[i]->content, head.bytes);
        to += sizeof head + head.bytes;
    }
    return DNN_SUCCESS;
}

// Makes a descriptor what a part of another one is.
static int become(struct dnn_descriptor *descriptor, struct part content, uint32_t type) {
    if (!descriptor || descriptor->type != type) return DNN_WRONG;
    char *copied = malloc(content.bytes + 1);
    if (!copied) return DNN_NO_MEMORY;
    memcpy(copied, content.content, content.bytes);
    free(descriptor->content);
    *descriptor = (struct dnn_descriptor){type, true, content.bytes, content.bytes, copied};
    return DNN_SUCCESS;
}

// -- what descriptors say by themselves ------------------------------------------------------------------------------

static struct part inner(struct part of, int name) {
    const struct attribute *attribute = find(of, name);
    struct part content = {NULL, 0};
    if (!attribute || attribute->type != DESCRIPTOR) return content;
    struct part list = elements_of(attribute);
    next(&list, &content, NULL);
    return content;
}

// Filters of convolutions are transformed there, in single precision.
static int64_t workspace_of_filter(struct part operation) {
    static const int FILTERS[] = {FORWARD_W, BACKWARD_W, BACKWARD_DW};
    for (unsigned i = 0; i < sizeof FILTERS / sizeof *FILTERS; i++) {
        const struct attribute *dimensions = find(inner(operation, FILTERS[i]), TENSOR_DIMENSIONS);
        if (!dimensions) continue;
        int64_t bytes = sizeof(float), each;
        for (uint32_t at = 0; at < dimensions->bytes; at += sizeof each) {
            memcpy(&each, (const char *)(dimensions + 1) + at, sizeof each);
            bytes *= each;
        }
        return bytes;
    }
    return 0;
}

static int64_t workspace_of(struct part config) {
    struct part graph = inner(inner(config, CONFIG_ENGINE), ENGINE_GRAPH), operation;
    const struct attribute *operations = find(graph, GRAPH_OPERATIONS);
    int64_t bytes = 0;
    if (!operations) return 0;
    for (struct part list = elements_of(operations); next(&list, &operation, NULL);)
        bytes += workspace_of_filter(operation);
    return bytes;
}

static bool has(const struct dnn_descriptor *descriptor, int name) { return find(all_of(descriptor), name); }

static bool have_alike(const struct dnn_descriptor *descriptor, int first, int second) {
    return count_of(find(all_of(descriptor), first)) == count_of(find(all_of(descriptor), second));
}

static int put_number(struct dnn_descriptor *descriptor, int name, int64_t number) {
    return put(descriptor, name, INT64, sizeof number, &number);
}

static int finalize_engine(struct dnn_descriptor *engine) {
    if (!has(engine, ENGINE_GRAPH) || !has(engine, ENGINE_INDEX)) return DNN_WRONG;
    int64_t index;
    memcpy(&index, elements_of(find(all_of(engine), ENGINE_INDEX)).content, sizeof index);
    return index ? DNN_UNSUPPORTED : DNN_SUCCESS;  // there is one
}

// The only result is a configuration of the only engine.
static int choose(struct dnn_descriptor *heuristics) {
    struct dnn_descriptor engine = {.type = ENGINE, .is_final = true};
    struct dnn_descriptor config = {.type = ENGINE_CONFIG, .is_final = true};
    struct dnn_descriptor graph = {.type = GRAPH, .is_final = true};
    struct dnn_descriptor *of_engine = &engine, *of_config = &config, *of_graph = &graph;
    int status = become(&graph, inner(all_of(heuristics), HEURISTICS_GRAPH), GRAPH);
    if (!status) status = put_copies(&engine, ENGINE_GRAPH, 1, &of_graph);
    if (!status) status = put_number(&engine, ENGINE_INDEX, 0);
    if (!status) status = put_copies(&config, CONFIG_ENGINE, 1, &of_engine);
    if (!status) status = put_number(&config, CONFIG_WORKSPACE, workspace_of(all_of(&config)));
    if (!status) status = put_copies(heuristics, HEURISTICS_RESULTS, 1, &of_config);
    free(graph.content);
    free(engine.content);
    free(config.content);
    return status;
}

static int complete(struct dnn_descriptor *descriptor) {
    switch (descriptor->type) {
        case TENSOR:
            if (!has(descriptor, TENSOR_ID) || !has(descriptor, TENSOR_TYPE)) return DNN_WRONG;
            return have_alike(descriptor, TENSOR_DIMENSIONS, TENSOR_STRIDES) ? DNN_SUCCESS : DNN_WRONG;
        case GRAPH: return has(descriptor, GRAPH_OPERATIONS) ? put_number(descriptor, GRAPH_ENGINES, 1) : DNN_WRONG;
        case ENGINE: return finalize_engine(descriptor);
        case HEURISTICS: return has(descriptor, HEURISTICS_GRAPH) ? choose(descriptor) : DNN_WRONG;
        case ENGINE_CONFIG:
            if (!has(descriptor, CONFIG_ENGINE)) return DNN_WRONG;
            return put_number(descriptor, CONFIG_WORKSPACE, workspace_of(all_of(descriptor)));
        case PLAN:
            if (!has(descriptor, PLAN_CONFIG)) return DNN_WRONG;
            return put_number(descriptor, PLAN_WORKSPACE, workspace_of(inner(all_of(descriptor), PLAN_CONFIG)));
        case VARIANT_PACK: return have_alike(descriptor, VARIANT_IDS, VARIANT_POINTERS) ? DNN_SUCCESS : DNN_WRONG;
        default: return DNN_SUCCESS;
    }
}

// -- calls -----------------------------------------------------------------------------------------------------------

int dnn_graph_create(int type, struct dnn_descriptor **made) {
    if (!made) return DNN_NULL;
    if (type < 0 || type >= TYPES) return DNN_UNSUPPORTED;
    *made = calloc(1, sizeof **made);
    if (!*made) return DNN_NO_MEMORY;
    (*made)->type = (uint32_t)type;
    return DNN_SUCCESS;
}

int dnn_graph_destroy(struct dnn_descriptor *descriptor) {
    if (!descriptor) return DNN_SUCCESS;
    free(descriptor->content);
    free(descriptor);
    return DNN_SUCCESS;
}

// "CUDNN_STATUS_NOT_INITIALIZED: the descriptor pointed to is already initialized" (cudnnBackendSetAttribute).
int dnn_graph_set(struct dnn_descriptor *descriptor, int name, int type, int64_t count, const void *elements) {
    if (!descriptor || (count && !elements)) return DNN_NULL;
    if (descriptor->is_final) return DNN_NOT_INITIALIZED;
    if (name < 0 || name > UINT16_MAX || count < 0 || count > INT32_MAX) return DNN_WRONG;
    if (type < 0 || type >= ATTRIBUTE_TYPES) return DNN_WRONG;
    if (type == DESCRIPTOR) return put_copies(descriptor, name, count, elements);
    return put(descriptor, name, type, (uint64_t)count * BYTES_OF[type], elements);
}

static int copy_out(const struct attribute *attribute, int64_t most, struct dnn_descriptor **elements) {
    struct part list = elements_of(attribute), content;
    uint32_t type;
    int status = DNN_SUCCESS;
    for (int64_t i = 0; i < most && !status && next(&list, &content, &type); i++)
        status = become(elements[i], content, type);
    return status;
}

// It "will only write the least" of what there is and was asked for (cudnnBackendGetAttribute).
int dnn_graph_get(const struct dnn_descriptor *descriptor, int name, int type, int64_t most, int64_t *count,
              void *elements) {
    if (!descriptor) return DNN_NULL;
    if (!descriptor->is_final) return DNN_NOT_INITIALIZED;
    const struct attribute *attribute = find(all_of(descriptor), name);
    bool is_known = attribute != NULL;
    for (unsigned i = 0; i < sizeof EMPTY / sizeof *EMPTY; i++) is_known |= EMPTY[i] == name;
    if (!is_known || (attribute && attribute->type != type) || most < 0) return DNN_WRONG;
    int64_t all = count_of(attribute);
    if (count) *count = all;
    if (!attribute || !elements) return DNN_SUCCESS;
    if (type == DESCRIPTOR) return copy_out(attribute, most, elements);
    memcpy(elements, attribute + 1, (size_t)(most < all ? most : all) * BYTES_OF[type]);
    return DNN_SUCCESS;
}

int dnn_graph_finalize(struct dnn_descriptor *descriptor) {
    if (!descriptor) return DNN_NULL;
    if (descriptor->is_final) return DNN_SUCCESS;
    int status = complete(descriptor);
    descriptor->is_final = !status;
    return status;
}
