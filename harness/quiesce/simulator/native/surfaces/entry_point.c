// Driver functions by name, as cudaGetDriverEntryPoint hands them out (CUDA Runtime API, "Driver Entry Point Access").
//
// What is simulated is found in this library, in its later form where there is one. For any other name a function is
// made that says so when it is called, as those of the stub libraries do: clients ask for many at start and call few.
// Only a name of the driver's is served, and the same name gets the same function.

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ledger/refusals.h"
#include "machine/redirected.h"
#include "machine/settings.h"
#include "surfaces/calls.h"

enum { MADE_MAX = 1024, CODE_BYTES = 32, QUERY_SUCCESS = 0, QUERY_NOT_FOUND = 1 };

static struct made {
    char *name;
    unsigned char *code;
} made[MADE_MAX];
static unsigned made_count;
static unsigned char *page;

static int answer_not_simulated(const char *name) {
    fprintf(stderr,
            "quiesce: %s (libcuda.so.1) is not simulated: it returns %d; leave out what calls it, or run it on a GPU\n",
            name, NOT_SUPPORTED);
    quiesce_not_simulated(name, __builtin_return_address(0));
    return NOT_SUPPORTED;
}

// Writes: mov rdi, name; mov rax, answer_not_simulated; jmp rax.
static void write_code(unsigned char *code, const char *name) {
    int (*answer)(const char *) = answer_not_simulated;
    memcpy(code, "\x48\xbf", 2);
    memcpy(code + 2, &name, sizeof name);
    memcpy(code + 10, "\x48\xb8", 2);
    memcpy(code + 12, &answer, sizeof answer);
    memcpy(code + 20, "\xff\xe0", 2);
}

static void *make(const char *name) {
    for (unsigned i = 0; i < made_count; i++)
        if (!strcmp(made[i].name, name)) return made[i].code;
    if (made_count == MADE_MAX) return NULL;
    if (!page) {
        void *mapped = mmap(NULL, MADE_MAX * CODE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapped == MAP_FAILED) return NULL;
        page = mapped;
    }
    char *kept = strdup(name);
    if (!kept) return NULL;
    unsigned char *code = page + made_count * CODE_BYTES;
    mprotect(page, MADE_MAX * CODE_BYTES, PROT_READ | PROT_WRITE);
    write_code(code, kept);
    if (mprotect(page, MADE_MAX * CODE_BYTES, PROT_READ | PROT_EXEC)) {
        free(kept);
        return NULL;
    }
    made[made_count++] = (struct made){kept, code};
    return code;
}

// Functions whose forms take other arguments, each form with the release that brought it (cudaTypedefs.h), the latest
// first. Of all others the later form takes what the older one did.
static const struct form {
    const char *name;
    int version;
    const char *suffix;
} FORMS[] = {
    {"cuCtxCreate", 12050, "_v4"},
    {"cuCtxCreate", 11040, "_v3"},
    {"cuCtxCreate", 2000, "_v2"},
    {"cuCtxGetDevice", 13000, "_v2"},
    {"cuCtxGetDevice", 2000, ""},
    {"cuCtxSynchronize", 13000, "_v2"},
    {"cuCtxSynchronize", 2000, ""},
    {"cuGetProcAddress", 12000, "_v2"},
    {"cuGetProcAddress", 11030, ""},
    {"cuGraphExecUpdate", 12000, "_v2"},
    {"cuGraphExecUpdate", 10020, ""},
    {"cuGraphNodeGetDependencies", 12030, "_v2"},
    {"cuGraphNodeGetDependencies", 10000, ""},
    {"cuGraphNodeGetDependentNodes", 12030, "_v2"},
    {"cuGraphNodeGetDependentNodes", 10000, ""},
    {"cuLaunchHostFunc", 13010, "_v2"},
    {"cuLaunchHostFunc", 10000, ""},
    {"cuMemAdvise", 12020, "_v2"},
    {"cuMemAdvise", 8000, ""},
    {"cuMemPrefetchAsync", 12020, "_v2"},
    {"cuMemPrefetchAsync", 8000, ""},
    {"cuMemcpyBatchAsync", 13000, "_v2"},
    {"cuMemcpyBatchAsync", 12080, ""},
    {"cuStreamGetCaptureInfo", 12030, "_v3"},
    {"cuStreamGetCaptureInfo", 11030, "_v2"},
    {"cuStreamGetCaptureInfo", 10010, ""},
    {"cuStreamGetCtx", 12050, "_v2"},
    {"cuStreamGetCtx", 9020, ""},
};

// What stands behind the name in the form that a client of that release knows; NULL: it has one form for all of them.
static const char *suffix_of(const char *name, int version) {
    for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS; i++)
        if (!strcmp(FORMS[i].name, name) && version >= FORMS[i].version) return FORMS[i].suffix;
    return NULL;
}

// Which default stream a function takes: CUdriverProcAddress_flags, and the flags of cudaGetDriverEntryPoint.
static bool is_per_thread(unsigned long long flags, bool built_per_thread) {
    enum { AS_BUILT, PER_THREAD_STREAM = 2 };
    return flags == PER_THREAD_STREAM || (flags == AS_BUILT && built_per_thread);
}

// A function, or the form of it for a default stream of each thread where it has one.
static void *form_of(void *library, const char *name, bool per_thread) {
    static const char *const SUFFIXES[] = {"_ptsz", "_ptds"};
    char form[112];
    void *found = NULL;
    for (unsigned i = 0; i < 2 && per_thread && !found; i++) {
        snprintf(form, sizeof form, "%s%s", name, SUFFIXES[i]);
        found = dlsym(library, form);
    }
    return found ? found : dlsym(library, name);
}

static void *simulated(const char *name, int version, bool per_thread) {
    Dl_info own;
    if (!dladdr((void *)(uintptr_t)&quiesce_mark, &own)) return NULL;
    void *library = dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!library) return NULL;
    char form[96];
    const char *suffix = suffix_of(name, version);
    snprintf(form, sizeof form, "%s%s", name, suffix ? suffix : "_v2");
    void *found = form_of(library, form, per_thread);
    if (!found && !suffix) found = form_of(library, name, per_thread);
    dlclose(library);
    return found;
}

static enum status find(const char *name, int version, bool per_thread, void **function, int *result) {
    bool named = !strncmp(name, "cu", 2) && name[2] >= 'A' && name[2] <= 'Z' && strlen(name) < LEDGER_NAME_BYTES;
    void *found = named ? simulated(name, version, per_thread) : NULL;
    if (!found && named) found = make(name);
    *function = found;
    if (result) *result = found ? QUERY_SUCCESS : QUERY_NOT_FOUND;
    return found || result ? OK : NOT_FOUND;
}

static int entry_point(const char *name, void **function, int version, bool per_thread, int *result,
                       const char *called) {
    CALL(called);
    driver_initialized = true;  // as by every call of the runtime
    NEED(name && function, INVALID_VALUE);
    ANSWER(find(name, version, per_thread, function, result));
}

static int address_of(const char *name, void **function, int version, bool per_thread, int *result,
                      const char *called) {
    CALL(called);
    NEED(name && function, INVALID_VALUE);
    status = find(name, version, per_thread, function, result);
    ANSWER(result && *result ? NOT_FOUND : status);
}

// The runtime's functions and the driver's own for the same, for both kinds of clients. The first is not told the
// client's release, which gets the forms that every release of the version has.
#define ENTRY_POINTS(suffix, built_per_thread)                                                                         \
    EXPORT int cudaGetDriverEntryPoint##suffix(const char *name, void **function, unsigned long long flags,            \
                                               int *result) {                                                          \
        return entry_point(name, function, (int)settings.version * 1000, is_per_thread(flags, built_per_thread),       \
                           result, "cudaGetDriverEntryPoint" #suffix);                                                 \
    }                                                                                                                  \
    EXPORT int cudaGetDriverEntryPointByVersion##suffix(const char *name, void **function, unsigned version,           \
                                                        unsigned long long flags, int *result) {                       \
        return entry_point(name, function, (int)version, is_per_thread(flags, built_per_thread), result,               \
                           "cudaGetDriverEntryPointByVersion" #suffix);                                                \
    }                                                                                                                  \
    EXPORT int cuGetProcAddress##suffix(const char *name, void **function, int version, unsigned long long flags) {    \
        return address_of(name, function, version, is_per_thread(flags, built_per_thread), NULL,                       \
                          "cuGetProcAddress" #suffix);                                                                 \
    }                                                                                                                  \
    EXPORT int cuGetProcAddress_v2##suffix(const char *name, void **function, int version, unsigned long long flags,   \
                                           int *result) {                                                              \
        return address_of(name, function, version, is_per_thread(flags, built_per_thread), result,                     \
                          "cuGetProcAddress_v2" #suffix);                                                              \
    }
ENTRY_POINTS(, false)
ENTRY_POINTS(_ptsz, true)

// The file that an address is in, without its folders; empty where it is not known.
static const char *file_of(const void *address) {
    Dl_info found;
    if (!dladdr(address, &found) || !found.dli_fname) return "";
    const char *slash = strrchr(found.dli_fname, '/');
    return slash ? slash + 1 : found.dli_fname;
}

// Whether an address is in a shared runtime of the vendor's: one that the run's flavour can't stand for.
static bool is_shared_runtime(const void *address) { return strstr(file_of(address), "libcudart") != NULL; }

// Whether an address is in a compiler of device code. Such a library has a runtime linked in and asks it only for the
// architecture to compile for, which its caller mostly names. So nothing of a program goes untested where it gets none.
// Where it is linked into a client itself, as into Warp, it is next to a runtime that was redirected, which never asks.
static bool is_compiler(const void *address) {
    static const char *const COMPILERS[] = {"libnvJitLink", "libnvrtc", "libnvvm", "libnvptxcompiler"};
    if (is_redirected(address)) return true;
    const char *file = file_of(address);
    for (unsigned i = 0; i < sizeof COMPILERS / sizeof *COMPILERS; i++)
        if (strncmp(file, COMPILERS[i], strlen(COMPILERS[i])) == 0) return true;
    return false;
}

// How a vendor's runtime finds what the vendor's driver alone has.
static int refuse_table(const void **table, const void *caller) {
    CALL("cuGetExportTable");
    NEED(table, INVALID_VALUE);
    *table = NULL;
    ANSWER(unsimulated("cuGetExportTable",
                       is_shared_runtime(caller)
                           ? "a vendor's own libcudart.so asks for it, of another version than the simulated one: name "
                             "its version with --flavour (cuda:13 for libcudart.so.13), or install the simulated one"
                           : "CUDA's runtime is linked statically into this client, and was not redirected: use a "
                             "build that loads libcudart.so, or the functions of the CUDA driver"));
}

EXPORT int cuGetExportTable(const void **table, const void *identifier) {
    (void)identifier;
    const void *caller = __builtin_return_address(0);
    if (is_compiler(caller)) {
        if (table) *table = NULL;
        return NOT_SUPPORTED;
    }
    int answer = refuse_table(table, caller);
    if (answer == NOT_SUPPORTED)
        refusal_note(REFUSAL_NOT_SIMULATED, "cuGetExportTable", NOT_SUPPORTED, caller);
    return answer;
}
