// An execution of a plan with callbacks is up to three launches: a kernel that calls the callback for each element of
// the input and puts the results into the plan's work area, the transform there, and a kernel that calls the other
// callback for each element. cuFFT calls them once for each element, too ("Callback Routine Function Details"). The
// accesses of a callback are judged as those of any kernel, in the order of the plan's stream.
//
// The types of callbacks and what they take are those of cufftXt.h.

#include "libraries/fft_callbacks.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "code/image.h"
#include "code/ptx.h"
#include "code/source.h"
#include "code/variable.h"
#include "kernels/hosted.h"
#include "kernels/kernel.h"
#include "kernels/launch.h"
#include "ledger/unsimulated.h"
#include "machine/device.h"
#include "machine/hidden.h"

enum { NO_WORKSPACE = 13, SIDES = 2, DIMENSIONS = 4, BLOCK_THREADS = 128 };

// Where the elements of a side lie, as quiesce.libraries.fft says when a call begins: lengths and steps, in elements.
struct side_layout {
    uint64_t lengths[DIMENSIONS], steps[DIMENSIONS];
};

static struct callback {
    char *name;  // of the kernel
    struct ptx ptx;
    struct variables *variables;
    uint64_t hidden_information;
} const NONE;

struct fft_callbacks {
    struct callback sides[SIDES];
};

// -- the kernel ------------------------------------------------------------------------------------------------------

static const char PARAMETERS[] =
    ".param .u64 data, .param .u64 information, .param .u64 area, .param .u64 count, .param .align 8 .b8 layout[64]";

// The element of a thread, its place among those of the client, and where it is in the work area.
#define DIMENSION(length, step)                                  \
    "ld.param.u64 length, [layout+" #length "];\n"               \
    "ld.param.u64 step, [layout+" #step "];\n"                   \
    "div.u64 quotient, rest, length;\n"                          \
    "mul.lo.u64 part, quotient, length;\n"                       \
    "sub.u64 part, rest, part;\n"                                \
    "mad.lo.u64 offset, part, step, offset;\n"                   \
    "mov.u64 rest, quotient;\n"
static const char INDEX[] =
    ".reg .pred beyond;\n"
    ".reg .b32 block, threads, thread;\n"
    ".reg .b64 index, count_of, length, step, quotient, part, offset, rest, place, buffer, with, none;\n"
    "mov.u32 block, %ctaid.x;\n"
    "mov.u32 threads, %ntid.x;\n"
    "mov.u32 thread, %tid.x;\n"
    "mul.wide.u32 index, block, threads;\n"
    "cvt.u64.u32 rest, thread;\n"
    "add.u64 index, index, rest;\n"
    "ld.param.u64 count_of, [count];\n"
    "setp.ge.u64 beyond, index, count_of;\n"
    "@beyond ret;\n"
    "mov.u64 rest, index;\n"
    "mov.u64 offset, 0;\n" DIMENSION(24, 56) DIMENSION(16, 48) DIMENSION(8, 40) DIMENSION(0, 32)
    "ld.param.u64 buffer, [data];\n"
    "ld.param.u64 with, [information];\n"
    "ld.param.u64 place, [area];\n"
    "mov.u64 none, 0;\n";

// What a callback takes: shared memory is none, for nobody asked for it (cufftXtSetCallbackSharedSize).
static const char COMMON_ARGUMENTS[] =
    ".param .b64 p0;\n.param .b64 p1;\n.param .b64 p2;\n.param .b64 p3;\n"
    "st.param.b64 [p0], buffer;\nst.param.b64 [p1], offset;\nst.param.b64 [p2], with;\nst.param.b64 [p3], none;\n";

// An element of a side.
struct element {
    const char *type;  // of a number
    unsigned bytes;
    const char *parameter, *numbers, *from_parameter, *to_parameter;
};

#define REAL(type, bits) \
    {type, bits / 8, ".param .b" #bits " e;\n", "first", "ld.param." type " first, [e];\n", \
     "st.param." type " [e], first;\n"}
#define COMPLEX(type, bytes, half) \
    {type, bytes, ".param .align " #bytes " .b8 e[" #bytes "];\n", "{first, second}", \
     "ld.param." type " first, [e];\nld.param." type " second, [e+" #half "];\n", \
     "st.param." type " [e], first;\nst.param." type " [e+" #half "], second;\n"}
static const struct element ELEMENTS[] = {COMPLEX("f32", 8, 4), COMPLEX("f64", 16, 8), REAL("f32", 32),
                                          REAL("f64", 64)};

// The text with a kernel behind it; the caller's. NULL: no memory is left.
static char *with_kernel(const char *text, const char *kernel, const char *callback, unsigned type) {
    const struct element *of = &ELEMENTS[type % CALLBACK_STORES];
    const char *vector = *of->numbers == '{' ? ".v2" : "";
    bool stores = type >= CALLBACK_STORES;
    char *call, *made;
    int length =
        stores ? asprintf(&call, "ld.global%s.%s %s, [place];\n%s%s%scall %s, (p0, p1, e, p2, p3);\n", vector, of->type,
                          of->numbers, COMMON_ARGUMENTS, of->parameter, of->to_parameter, callback)
               : asprintf(&call, "%s%scall (e), %s, (p0, p1, p2, p3);\n%sst.global%s.%s [place], %s;\n",
                          COMMON_ARGUMENTS, of->parameter, callback, of->from_parameter, vector, of->type, of->numbers);
    if (length < 0) return NULL;
    length = asprintf(&made,
                      "%s\n.visible .entry %s(%s)\n{\n%s.reg .%s first, second;\nmad.lo.u64 place, index, %u, place;\n"
                      "{\n%s}\nret;\n}\n",
                      text, kernel, PARAMETERS, INDEX, of->type, of->bytes, call);
    free(call);
    return length < 0 ? NULL : made;
}

// -- callbacks -------------------------------------------------------------------------------------------------------

static size_t name_bytes(const char *name) {
    size_t bytes = 0;
    while (isalnum((unsigned char)name[bytes]) || (name[bytes] && strchr("_$", name[bytes]))) bytes++;
    return bytes;
}

// The name of the function whose header goes on here: after what it returns, and directives such as .noreturn.
static const char *name_after(const char *at) {
    at += strspn(at, " \t\n");
    const char *closing = *at == '(' ? strchr(at, ')') : NULL;
    if (closing) at = closing + 1;
    at += strspn(at, " \t\n");
    while (*at == '.') {
        at += strcspn(at, " \t\n");
        at += strspn(at, " \t\n");
    }
    return at;
}

// The function of that name in a text, the caller's. One of C++ is named by its name in the source, too, which stands
// between its length and its types. NULL: there is none.
static char *symbol_of(const char *text, const char *name) {
    char mangled[512];
    int beginning = snprintf(mangled, sizeof mangled, "_Z%zu%sP", strlen(name), name);
    for (const char *at = text; (at = strstr(at, ".func"));) {
        at = name_after(at + sizeof ".func" - 1);
        size_t bytes = name_bytes(at);
        bool is_it = bytes == strlen(name) && !strncmp(at, name, bytes);
        if (is_it || !strncmp(at, mangled, (size_t)beginning)) return strndup(at, bytes);
    }
    return NULL;
}

static enum status make(struct callback *callback, const char *text, const char *symbol, unsigned type,
                        const char *name) {
    char *longer = NULL;
    bool is_named = asprintf(&callback->name, "cufft_%s_%s", type < CALLBACK_STORES ? "load" : "store", name) >= 0;
    if (!is_named) callback->name = NULL;
    if (is_named) longer = with_kernel(text, callback->name, symbol, type);
    bool made = longer && ptx_find(&callback->ptx, longer, strlen(longer) + 1, device_capability(), false);
    free(longer);
    if (made) callback->variables = variables_read_ptx(&callback->ptx);
    return made && callback->variables ? OK : OUT_OF_MEMORY;
}

static void forget(struct callback *callback) {
    variables_delete(callback->variables);
    ptx_forget(&callback->ptx);
    free(callback->name);
    *callback = NONE;
}

void fft_callbacks_delete(struct fft_callbacks *callbacks) {
    for (unsigned side = 0; callbacks && side < SIDES; side++) forget(&callbacks->sides[side]);
    free(callbacks);
}

enum status fft_callbacks_set(struct fft_callbacks **callbacks, const char *function, unsigned type, const char *name,
                              const char *code, size_t bytes, uint64_t information) {
    if (!image_target(code, bytes))
        return unsimulated(function, "for a callback that is not compiled by NVRTC while the program runs");
    if (!*callbacks) *callbacks = calloc(1, sizeof **callbacks);
    char *text = strndup(code, bytes), *symbol = text ? symbol_of(text, name) : NULL;
    enum status status = text && !symbol ? NOT_FOUND : text && *callbacks ? OK : OUT_OF_MEMORY;
    if (!status) {
        struct callback *callback = &(*callbacks)->sides[type >= CALLBACK_STORES];
        forget(callback);
        callback->hidden_information = HIDDEN(information);
        status = make(callback, text, symbol, type, name);
    }
    free(symbol);
    free(text);
    return status;
}

// -- executions ------------------------------------------------------------------------------------------------------

// Its kernel on the plan's device, or NULL: there is no callback. False: it can't be run, which was said.
static bool find_kernel(const struct callback *callback, unsigned device, const struct kernel **kernel) {
    struct source source = {callback->name, &callback->ptx, callback->variables, NULL};
    *kernel = callback->name ? kernel_find((uint64_t)callback, &source, device) : NULL;
    return *kernel || !callback->name;
}

static enum status launch_callback(const struct callback *callback, const struct kernel *kernel, struct stream *stream,
                                   struct side_layout layout, uint64_t data, uint64_t area) {
    uint64_t information = HIDDEN(callback->hidden_information), count = 1;
    for (unsigned i = 0; i < DIMENSIONS; i++) count *= layout.lengths[i];
    struct dimensions dimensions = {
        {(uint32_t)((count + BLOCK_THREADS - 1) / BLOCK_THREADS), 1, 1}, {BLOCK_THREADS, 1, 1}, 0, false};
    void *pointers[] = {&data, &information, &area, &count, &layout};
    return kernel ? launch_of_library(stream, kernel, &dimensions, pointers) : OK;
}

enum status fft_callbacks_execute(const struct fft_callbacks *callbacks, const char *function,
                                  struct hosted_call *call, struct stream *stream, int *answer) {
    enum { INPUT = 1, OUTPUT };  // words of a call
    const struct callback *load = &callbacks->sides[0], *store = &callbacks->sides[1];
    const struct kernel *loads, *stores;
    struct side_layout layouts[SIDES];
    struct begun begun;
    *answer = call->area ? 0 : NO_WORKSPACE;
    if (*answer) return OK;
    enum status status = hosted_begin(function, call, stream->device, &begun);
    *answer = begun.answer;
    if (status || !begun.function) return status;
    if (call->kept_bytes != sizeof layouts) return INVALID_VALUE;
    memcpy(layouts, call->kept, sizeof layouts);
    bool found = find_kernel(load, stream->device, &loads) && find_kernel(store, stream->device, &stores);
    if (!found) return NOT_SUPPORTED;  // which was said
    status = launch_callback(load, loads, stream, layouts[0], call->words[INPUT], call->area);
    if (!status) status = hosted_launch(stream, &begun, call);
    if (!status) status = launch_callback(store, stores, stream, layouts[1], call->words[OUTPUT], call->area);
    return status;
}
