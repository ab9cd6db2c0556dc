#include "compilers/toolkit.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/request.h"
#include "ledger/refusals.h"

// A name by which the loader opens the library, and a function that ours has in its place.
static const struct {
    const char *name, *own;
} LIBRARIES[TOOLKIT_LIBRARIES] = {{"libnvrtc", "simulated_nvrtcVersion"}, {"libnvvm", "simulated_nvvmVersion"}};

static struct toolkit toolkits[TOOLKIT_LIBRARIES];
static pthread_once_t is_found[TOOLKIT_LIBRARIES] = {PTHREAD_ONCE_INIT, PTHREAD_ONCE_INIT};

static void open_library(struct toolkit *toolkit, const char *path, const char *own) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library && !dlsym(library, own)) toolkit->library = library;
    if (!library) toolkit->reason = strdup(dlerror());
}

// A line of the answer: a word, and a text after a space.
static void take(struct toolkit *toolkit, char *line, const char *own) {
    char *text = strchr(line, ' ');
    if (!text) return;
    *text++ = 0;
    if (!strcmp(line, "beside")) {
        dlopen(text, RTLD_NOW | RTLD_LOCAL);  // where it can't be opened, the library says so itself
    } else if (!strcmp(line, "library")) {
        open_library(toolkit, text, own);
    } else if (!strcmp(line, "reason")) {
        toolkit->reason = strdup(text);
    } else if (!strcmp(line, "headers-reason")) {
        toolkit->headers_reason = strdup(text);
    } else if (!strcmp(line, "include") && toolkit->includes_count < TOOLKIT_INCLUDES_MAX) {
        char *option = malloc(strlen(text) + 3);
        if (option) toolkit->includes[toolkit->includes_count++] = strcat(strcpy(option, "-I"), text);
    }
}

// The machine need not run: a client may compile without a device.
static void find(enum toolkit_library which) {
    struct toolkit *toolkit = &toolkits[which];
    struct answer answer = request_toolkit(LIBRARIES[which].name);
    if (answer.is_refused && answer.content) toolkit->reason = strdup(answer.content);
    char *rest = NULL;
    for (char *line = answer.is_refused || !answer.content ? NULL : strtok_r(answer.content, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest))
        take(toolkit, line, LIBRARIES[which].own);
    free(answer.content);
    if (toolkit->library) return;
    if (!toolkit->reason) toolkit->reason = strdup("CUDA's compiler was not found");
    fprintf(stderr, "quiesce: %s\n", toolkit->reason ? toolkit->reason : "");
    refusal_note(REFUSAL_NOT_INSTALLED, toolkit->reason, NOT_SUPPORTED, NULL);
}

static void find_nvrtc(void) { find(TOOLKIT_NVRTC); }
static void find_nvvm(void) { find(TOOLKIT_NVVM); }

const struct toolkit *toolkit_get(enum toolkit_library which) {
    static void (*const FIND[TOOLKIT_LIBRARIES])(void) = {find_nvrtc, find_nvvm};
    pthread_once(&is_found[which], FIND[which]);
    return &toolkits[which];
}

void *toolkit_function(enum toolkit_library which, const char *name) {
    void *library = toolkit_get(which)->library;
    return library ? dlsym(library, name) : NULL;
}
