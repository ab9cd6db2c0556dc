// NVRTC, as clients load it where kernels run: the vendor's own compiles, to PTX, and that is answered in place of
// machine code and of LTO-IR too. Where it is not installed, each compilation fails with a log that says so.
//
// Signatures and statuses are those of nvrtc.h of CUDA 12.9 and 13.5.
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compilers/source_texts.h"
#include "compilers/toolkit.h"
#include "machine/export.h"
#include "machine/settings.h"

enum { SUCCESS, OUT_OF_MEMORY, INVALID_INPUT = 3, INVALID_PROGRAM = 4, COMPILATION = 6, INTERNAL_ERROR = 11 };
enum { CAPABILITY = 80 };  // that is said to be supported where nothing is installed

// A comment in what is compiled. Clients that keep results on disk, as CuPy, have what the compiler says of itself in
// their keys, so that they never take this for machine code of a device, or the other way round.
static const char MARK[] = "// Compiled for a device that quiesce simulates\n";
enum { MARK_BYTES = sizeof MARK - 1 };

static struct program {
    struct program *next;
    void *handle;      // the vendor's; this itself where there is none
    bool is_for_device;  // machine code was asked for
    bool is_lto;
    char *note;  // behind the log
    struct source_texts *sources;
    char *ptx;  // what is answered; NULL: nobody has asked yet
} *programs;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct program *find(void *handle) {
    pthread_mutex_lock(&lock);
    struct program *program = programs;
    while (program && program->handle != handle) program = program->next;
    pthread_mutex_unlock(&lock);
    return program;
}

static void *vendors(const char *name) { return toolkit_function(TOOLKIT_NVRTC, name); }

#define PASS(name, parameters, arguments, otherwise) \
    EXPORT int simulated_##name parameters { \
        int(*function) parameters = vendors(#name); \
        if (function) return function arguments; \
        return otherwise; \
    }

static int set_number(int *place, int number) {
    if (!place) return INVALID_INPUT;
    *place = number;
    return SUCCESS;
}

// -- what it can do --------------------------------------------------------------------------------------------------

static int version(int *major, int *minor) {
    static const int MINORS[] = {[11] = 8, [12] = 9, [13] = 5};
    int simulated = (int)settings.version;
    int status = set_number(major, simulated);
    return status ? status : set_number(minor, simulated >= 11 && simulated <= 13 ? MINORS[simulated] : 0);
}

PASS(nvrtcVersion, (int *major, int *minor), (major, minor), version(major, minor))
PASS(nvrtcGetNumSupportedArchs, (int *count), (count), set_number(count, 1))
PASS(nvrtcGetSupportedArchs, (int *architectures), (architectures), set_number(architectures, CAPABILITY))
PASS(nvrtcAddNameExpression, (void *program, const char *name), (program, name), SUCCESS)
PASS(nvrtcGetLoweredName, (void *program, const char *name, const char **lowered), (program, name, lowered),
     INTERNAL_ERROR)
PASS(nvrtcGetOptiXIRSize, (void *program, size_t *bytes), (program, bytes), INTERNAL_ERROR)
PASS(nvrtcGetOptiXIR, (void *program, char *code), (program, code), INTERNAL_ERROR)
PASS(nvrtcGetTileIRSize, (void *program, size_t *bytes), (program, bytes), INTERNAL_ERROR)
PASS(nvrtcGetTileIR, (void *program, char *code), (program, code), INTERNAL_ERROR)
PASS(nvrtcSetFlowCallback, (void *program, int (*callback)(void *, void *), void *payload),
     (program, callback, payload), SUCCESS)
PASS(nvrtcGetPCHHeapSize, (size_t *bytes), (bytes), INTERNAL_ERROR)
PASS(nvrtcSetPCHHeapSize, (size_t bytes), (bytes), INTERNAL_ERROR)
PASS(nvrtcGetPCHCreateStatus, (void *program), (program), INTERNAL_ERROR)
PASS(nvrtcGetPCHHeapSizeRequired, (void *program, size_t *bytes), (program, bytes), INTERNAL_ERROR)
PASS(nvrtcGetBundledHeadersInfo, (void *first, void *second, void *third), (first, second, third), INTERNAL_ERROR)
PASS(nvrtcInstallBundledHeaders, (void *first, void *second, void *third), (first, second, third), INTERNAL_ERROR)
PASS(nvrtcRemoveBundledHeaders, (void *first, void *second, void *third), (first, second, third), INTERNAL_ERROR)

EXPORT const char *simulated_nvrtcGetErrorString(int status) {
    const char *(*function)(int) = vendors("nvrtcGetErrorString");
    if (function) return function(status);
    return status == SUCCESS ? "NVRTC_SUCCESS" : status == COMPILATION ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR";
}

// -- programs --------------------------------------------------------------------------------------------------------

EXPORT int simulated_nvrtcCreateProgram(void **handle, const char *source, const char *name, int count,
                                        const char *const *headers, const char *const *names) {
    int (*function)(void **, const char *, const char *, int, const char *const *, const char *const *) =
        vendors("nvrtcCreateProgram");
    if (!handle || !source) return INVALID_INPUT;
    struct program *made = calloc(1, sizeof *made);
    if (!made) return OUT_OF_MEMORY;
    int status = function ? function(handle, source, name, count, headers, names) : SUCCESS;
    if (status) {
        free(made);
        return status;
    }
    if (!function) *handle = made;
    made->handle = *handle;
    if (function && settings.checks) made->sources = source_texts_keep(source, name, count, headers, names);
    pthread_mutex_lock(&lock);
    made->next = programs;
    programs = made;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

EXPORT int simulated_nvrtcDestroyProgram(void **handle) {
    if (!handle) return INVALID_PROGRAM;
    pthread_mutex_lock(&lock);
    struct program **place = &programs;
    while (*place && (*place)->handle != *handle) place = &(*place)->next;
    struct program *gone = *place;
    if (gone) *place = gone->next;
    pthread_mutex_unlock(&lock);
    if (!gone) return INVALID_PROGRAM;
    int (*function)(void **) = vendors("nvrtcDestroyProgram");
    free(gone->note);
    free(gone->ptx);
    source_texts_delete(gone->sources);
    free(gone);
    if (function) return function(handle);
    *handle = NULL;
    return SUCCESS;
}

// -- compilation -----------------------------------------------------------------------------------------------------

static const char *behind(const char *option, const char *beginning) {
    size_t length = strlen(beginning);
    return strncmp(option, beginning, length) ? NULL : option + length;
}

// What follows the name of the option for an architecture; the name alone: the next option is it.
static const char *architecture_in(const char *option) {
    const char *value = behind(option, "--gpu-architecture");
    if (!value) value = behind(option, "-arch");
    return value && (!*value || *value == '=') ? value : NULL;
}

// The option with a virtual architecture instead of one of machine code; the caller's. NULL: no memory is left.
static char *made_virtual(const char *option, bool *is_for_device) {
    const char *real = strstr(option, "sm_");
    char *made = malloc(strlen(option) + sizeof "compute_");
    if (!made || !real) return made ? strcpy(made, option) : NULL;
    *is_for_device = true;
    size_t before = (size_t)(real - option);
    memcpy(made, option, before);
    strcpy(stpcpy(made + before, "compute_"), real + 3);
    return made;
}

// LTO-IR is for what is linked later: so is relocatable code.
static char *translated(const char *option, bool is_architecture, struct program *program) {
    if (is_architecture) return made_virtual(option, &program->is_for_device);
    bool is_lto = !strcmp(option, "-dlto") || !strcmp(option, "--dlink-time-opt");
    program->is_lto |= is_lto;
    return strdup(is_lto ? "-rdc=true" : option);
}

// Findings about accesses of a kernel name lines of the source, which PTX has only if that is asked for.
static bool has_lines(int count, const char *const *options) {
    static const char *const NAMES[] = {"-lineinfo", "--generate-line-info", "-G", "--device-debug"};
    for (int i = 0; i < count; i++)
        for (size_t each = 0; each < sizeof NAMES / sizeof *NAMES; each++)
            if (!strcmp(options[i], NAMES[each])) return true;
    return false;
}

static int compile(struct program *program, int count, const char *const *options) {
    const struct toolkit *toolkit = toolkit_get(TOOLKIT_NVRTC);
    int (*function)(void *, int, const char *const *) = vendors("nvrtcCompileProgram");
    if (!function) return COMPILATION;
    char **given = calloc((size_t)(count + toolkit->includes_count + 2), sizeof *given);
    bool complete = given != NULL, is_value = false;
    program->is_for_device = program->is_lto = false;
    for (int i = 0; complete && i < count; i++) {
        const char *value = architecture_in(options[i]);
        given[i] = translated(options[i], is_value || (value && *value), program);
        is_value = value && !*value;
        complete = given[i] != NULL;
    }
    for (int i = 0; complete && i < toolkit->includes_count; i++) given[count + i] = toolkit->includes[i];
    int all = count + toolkit->includes_count;
    if (complete && settings.checks && !has_lines(count, options)) given[all++] = "-lineinfo";
    int status = complete ? function(program->handle, all, (const char *const *)given) : OUT_OF_MEMORY;
    for (int i = 0; given && i < count; i++) free(given[i]);
    free(given);
    return status;
}

static void note(struct program *program, const char *text) {
    free(program->note);
    program->note = NULL;
    if (text && asprintf(&program->note, "quiesce: %s\n", text) < 0) program->note = NULL;
}

// Whether the vendor's log says that a header is missing.
static bool lacks_header(void *handle) {
    int (*size)(void *, size_t *) = vendors("nvrtcGetProgramLogSize");
    int (*get)(void *, char *) = vendors("nvrtcGetProgramLog");
    size_t bytes = 0;
    char *log = size && get && !size(handle, &bytes) ? calloc(1, bytes + 1) : NULL;
    bool lacks = log && !get(handle, log) && strstr(log, "open source file");
    free(log);
    return lacks;
}

EXPORT int simulated_nvrtcCompileProgram(void *handle, int count, const char *const *options) {
    struct program *program = find(handle);
    if (!program) return INVALID_PROGRAM;
    if (count < 0 || (count && !options)) return INVALID_INPUT;
    const struct toolkit *toolkit = toolkit_get(TOOLKIT_NVRTC);
    free(program->ptx);
    program->ptx = NULL;
    int status = compile(program, count, options);
    if (!toolkit->library) note(program, toolkit->reason);
    else if (status == COMPILATION && lacks_header(handle)) note(program, toolkit->headers_reason);
    else note(program, NULL);
    return status;
}

EXPORT int simulated_nvrtcGetProgramLogSize(void *handle, size_t *bytes) {
    struct program *program = find(handle);
    int (*function)(void *, size_t *) = vendors("nvrtcGetProgramLogSize");
    if (!program) return INVALID_PROGRAM;
    if (!bytes) return INVALID_INPUT;
    *bytes = 1;
    int status = function ? function(handle, bytes) : SUCCESS;
    if (!status && program->note) *bytes += strlen(program->note);
    return status;
}

EXPORT int simulated_nvrtcGetProgramLog(void *handle, char *log) {
    struct program *program = find(handle);
    int (*function)(void *, char *) = vendors("nvrtcGetProgramLog");
    if (!program) return INVALID_PROGRAM;
    if (!log) return INVALID_INPUT;
    *log = 0;
    int status = function ? function(handle, log) : SUCCESS;
    if (!status && program->note) strcat(log, program->note);
    return status;
}

// -- results ---------------------------------------------------------------------------------------------------------

// Asks the vendor once for what a program was compiled to. A failed compilation has nothing.
static int make_ptx(void *handle, struct program *program) {
    int (*size)(void *, size_t *) = vendors("nvrtcGetPTXSize");
    int (*get)(void *, char *) = vendors("nvrtcGetPTX");
    size_t bytes = 0;
    if (program->ptx) return SUCCESS;
    if (!size || !get) return INTERNAL_ERROR;
    int status = size(handle, &bytes);
    char *text = status ? NULL : calloc(1, bytes + 1);
    if (!status) status = text ? get(handle, text) : OUT_OF_MEMORY;
    size_t mark = !status && bytes > 1 ? MARK_BYTES : 0;
    size_t noted = mark ? source_texts_note(program->sources, text, NULL) : 0;
    if (!status) program->ptx = calloc(1, mark + noted + bytes + 1);
    if (!status && !program->ptx) status = OUT_OF_MEMORY;
    if (!status) {
        memcpy(program->ptx, MARK, mark);
        if (noted) source_texts_note(program->sources, text, program->ptx + mark);
        memcpy(program->ptx + mark + noted, text, bytes);
    }
    free(text);
    return status;
}

static int ptx_size(void *handle, size_t *bytes) {
    struct program *program = find(handle);
    int status = program ? make_ptx(handle, program) : INVALID_PROGRAM;
    if (!status) *bytes = strlen(program->ptx) + 1;
    return status;
}

static int ptx(void *handle, char *text) {
    struct program *program = find(handle);
    int status = program ? make_ptx(handle, program) : INVALID_PROGRAM;
    if (!status) memcpy(text, program->ptx, strlen(program->ptx) + 1);
    return status;
}

EXPORT int simulated_nvrtcGetPTXSize(void *handle, size_t *bytes) {
    return bytes ? ptx_size(handle, bytes) : INVALID_INPUT;
}

EXPORT int simulated_nvrtcGetPTX(void *handle, char *text) { return text ? ptx(handle, text) : INVALID_INPUT; }

// Of a program for a virtual architecture there is no machine code, and none but one for linking has LTO-IR: its size
// is 0, as the vendor's document says.
static int size_instead(void *handle, size_t *bytes, bool is_there) {
    if (!bytes) return INVALID_INPUT;
    if (is_there) return ptx_size(handle, bytes);
    *bytes = 0;
    return find(handle) ? SUCCESS : INVALID_PROGRAM;
}

static int get_instead(void *handle, char *place, bool is_there) {
    if (is_there) return place ? ptx(handle, place) : INVALID_INPUT;
    return find(handle) ? SUCCESS : INVALID_PROGRAM;
}

static bool has_binary(void *handle) {
    const struct program *program = find(handle);
    return program && program->is_for_device && !program->is_lto;
}

static bool has_lto(void *handle) {
    const struct program *program = find(handle);
    return program && program->is_lto;
}

EXPORT int simulated_nvrtcGetCUBINSize(void *handle, size_t *bytes) {
    return size_instead(handle, bytes, has_binary(handle));
}
EXPORT int simulated_nvrtcGetCUBIN(void *handle, char *code) { return get_instead(handle, code, has_binary(handle)); }
EXPORT int simulated_nvrtcGetLTOIRSize(void *handle, size_t *bytes) {
    return size_instead(handle, bytes, has_lto(handle));
}
EXPORT int simulated_nvrtcGetLTOIR(void *handle, char *code) { return get_instead(handle, code, has_lto(handle)); }
EXPORT int simulated_nvrtcGetNVVMSize(void *handle, size_t *bytes) {
    return size_instead(handle, bytes, has_lto(handle));
}
EXPORT int simulated_nvrtcGetNVVM(void *handle, char *code) { return get_instead(handle, code, has_lto(handle)); }
