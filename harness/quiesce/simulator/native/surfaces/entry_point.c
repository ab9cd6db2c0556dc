// Driver functions by name, as cudaGetDriverEntryPoint hands them out (CUDA Runtime API, "Driver Entry Point Access").
//
// The table of names says which form of a function a client gets. What is simulated is found in this library. For any
// other name of the table a function is made that says so when it is called, as those of the stub libraries do: clients
// ask for many at start and call few. The same name gets the same function.

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ledger/refusals.h"
#include "machine/redirected.h"
#include "machine/settings.h"
#include "surfaces/calls.h"
#include "surfaces/names_by_release.h"

enum { MADE_MAX = 1024, CODE_BYTES = 32, QUERY_SUCCESS = 0, QUERY_NOT_FOUND = 1 };

static struct made {
    char *name;
    unsigned char *code;
} made[MADE_MAX];
static unsigned made_count;
static unsigned char *page;

static int answer_not_simulated(const char *name) {
    fprintf(stderr,
            "quiesce: %s (%s) is not simulated: it returns %d; leave out what calls it, or run it on a GPU\n", name,
            settings.flavour == FLAVOUR_HIP ? "libamdhip64.so" : "libcuda.so.1", NOT_SUPPORTED);
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

// Which default stream a function takes: CUdriverProcAddress_flags, and the flags of cudaGetDriverEntryPoint.
static bool is_per_thread(unsigned long long flags, bool built_per_thread) {
    enum { AS_BUILT, PER_THREAD_STREAM = 2 };
    return flags == PER_THREAD_STREAM || (flags == AS_BUILT && built_per_thread);
}

static void *simulated(const char *name) {
    Dl_info own;
    if (!dladdr((void *)(uintptr_t)&quiesce_mark, &own)) return NULL;
    void *library = dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!library) return NULL;
    char newer[LEDGER_NAME_BYTES + 16];
    snprintf(newer, sizeof newer, "simulated_%s", name);  // newer_functions.h
    void *found = dlsym(library, newer);
    if (!found) found = dlsym(library, name);
    dlclose(library);
    return found;
}

// What a query says: CUdriverProcAddressQueryResult, hipDriverProcAddressQueryResult.
static int result_of(enum lookup found) {
    static const int RESULTS[] = {[NAME_FOUND] = 0, [NAME_UNKNOWN] = 1, [NAME_NEWER] = 2};
    return RESULTS[found];
}

static enum status find(const char *name, int release, bool per_thread, void **function, int *result) {
    const char *form = NULL;
    enum lookup found = name_look_up(name, release, per_thread, &form);
    *function = form ? simulated(form) : NULL;
    if (form && !*function) *function = make(form);
    if (!*function && found == NAME_FOUND) found = NAME_UNKNOWN;
    if (result) *result = result_of(found);
    return *function || result ? OK : NOT_FOUND;
}

// Who asks without a release gets the forms that every release of the version has, and of newer functions the first.
static enum status find_any(const char *name, bool per_thread, void **function, int *result) {
    int query = 0;
    enum status status = find(name, (int)settings.version * 1000, per_thread, function, &query);
    if (!*function) return find(name, name_release(), per_thread, function, result);
    if (result) *result = query;
    return status;
}

// Clients try names and go on with those that there are: to look for one in vain is no call that failed.
static int answer_lookup(const char *name, void **function, int release, bool per_thread, int *result) {
    enum status found = INVALID_VALUE;  // for clients of a later release than the driver's
    if (release <= name_release()) found = find(name, release, per_thread, function, result);
    runtime_leave_to_driver(OK);
    return (int)found;
}

static int entry_point(const char *name, void **function, const int *release, bool per_thread, int *result,
                       const char *called) {
    CALL(called);
    driver_initialized = true;  // as by every call of the runtime
    NEED(name && function, INVALID_VALUE);
    if (!release) ANSWER(find_any(name, per_thread, function, result));
    return answer_lookup(name, function, *release, per_thread, result);
}

static int address_of(const char *name, void **function, int release, bool per_thread, int *result,
                      const char *called) {
    CALL(called);
    NEED(name && function, INVALID_VALUE);
    return answer_lookup(name, function, release, per_thread, result);
}

// Notes a function that somebody looked for in vain: who does may go on without a device.
static int noted(int answer, const char *name, void *const *function, const void *caller) {
    if (name && function && (answer || !*function) && name_is_missed(name)) refusal_missing(name, caller);
    return answer;
}

// The runtime's functions and the driver's own for the same, for both kinds of clients. The first is not told the
// client's release, which gets the forms that every release of the version has.
#define NOTED(call) noted(call, name, function, __builtin_return_address(0))
#define ENTRY_POINTS(suffix, built_per_thread)                                                                         \
    EXPORT int cudaGetDriverEntryPoint##suffix(const char *name, void **function, unsigned long long flags,            \
                                               int *result) {                                                          \
        return NOTED(entry_point(name, function, NULL, is_per_thread(flags, built_per_thread), result,                 \
                                 "cudaGetDriverEntryPoint" #suffix));                                                  \
    }                                                                                                                  \
    EXPORT int cudaGetDriverEntryPointByVersion##suffix(const char *name, void **function, unsigned version,           \
                                                        unsigned long long flags, int *result) {                       \
        int release = (int)version;                                                                                    \
        return NOTED(entry_point(name, function, &release, is_per_thread(flags, built_per_thread), result,             \
                                 "cudaGetDriverEntryPointByVersion" #suffix));                                         \
    }                                                                                                                  \
    EXPORT int cuGetProcAddress##suffix(const char *name, void **function, int version, unsigned long long flags) {    \
        return NOTED(address_of(name, function, version, is_per_thread(flags, built_per_thread), NULL,                 \
                                "cuGetProcAddress" #suffix));                                                          \
    }                                                                                                                  \
    EXPORT int cuGetProcAddress_v2##suffix(const char *name, void **function, int version, unsigned long long flags,   \
                                           int *result) {                                                              \
        return NOTED(address_of(name, function, version, is_per_thread(flags, built_per_thread), result,               \
                                "cuGetProcAddress_v2" #suffix));                                                       \
    }
ENTRY_POINTS(, false)
ENTRY_POINTS(_ptsz, true)

// HIP's releases are counted otherwise: HIP_VERSION is major * 10^7 + minor * 10^5 + patch.
EXPORT int hipGetProcAddress(const char *name, void **function, int version, uint64_t flags, int *result) {
    int release = version / 10000000 * 1000 + version / 100000 % 100 * 10;
    return NOTED(address_of(name, function, release, is_per_thread(flags, false), result, "hipGetProcAddress"));
}

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
