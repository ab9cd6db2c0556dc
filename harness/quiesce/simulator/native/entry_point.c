// Driver functions by name, as cudaGetDriverEntryPoint hands them out (CUDA Runtime API, "Driver Entry Point Access").
//
// What is simulated is found in this library, in its later form where there is one. For any other name a function is
// made that says so when it is called, as those of the stub libraries do: clients ask for many at start and call few.
// Only a name of the driver's is served, and the same name gets the same function.

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "calls.h"

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
    quiesce_not_simulated(name);
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

static void *simulated(const char *name) {
    Dl_info own;
    if (!dladdr((void *)(uintptr_t)&quiesce_mark, &own)) return NULL;
    void *library = dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!library) return NULL;
    // What CUDA 13's headers mean by a name may be a third form, which CUDA 12 has under its own name alone.
    static const char *const FORMS[] = {"_v3", "_v2", ""};
    void *found = NULL;
    for (unsigned i = settings.version < 13; i < sizeof FORMS / sizeof *FORMS && !found; i++) {
        char form[96];
        snprintf(form, sizeof form, "%s%s", name, FORMS[i]);
        found = dlsym(library, form);
    }
    dlclose(library);
    return found;
}

static enum status find(const char *name, void **function, int *result) {
    bool named = !strncmp(name, "cu", 2) && name[2] >= 'A' && name[2] <= 'Z' && strlen(name) < LEDGER_NAME_BYTES;
    void *found = named ? simulated(name) : NULL;
    if (!found && named) found = make(name);
    *function = found;
    if (result) *result = found ? QUERY_SUCCESS : QUERY_NOT_FOUND;
    return found || result ? OK : NOT_FOUND;
}

EXPORT int cudaGetDriverEntryPoint(const char *name, void **function, unsigned long long flags, int *result) {
    CALL("cudaGetDriverEntryPoint");
    (void)flags;  // which form of the default stream a function takes: those that are simulated take none
    NEED(name && function, INVALID_VALUE);
    ANSWER(find(name, function, result));
}

// The driver's own functions for the same.
EXPORT int cuGetProcAddress(const char *name, void **function, int version, unsigned long long flags) {
    CALL("cuGetProcAddress");
    (void)version, (void)flags;
    NEED(name && function, INVALID_VALUE);
    ANSWER(find(name, function, NULL));
}

EXPORT int cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long long flags, int *result) {
    CALL("cuGetProcAddress_v2");
    (void)version, (void)flags;
    NEED(name && function, INVALID_VALUE);
    status = find(name, function, result);
    ANSWER(result && *result ? NOT_FOUND : status);
}

EXPORT int cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version,
                                            unsigned long long flags, int *result) {
    CALL("cudaGetDriverEntryPointByVersion");
    (void)flags;
    (void)version;
    NEED(name && function, INVALID_VALUE);
    ANSWER(find(name, function, result));
}
