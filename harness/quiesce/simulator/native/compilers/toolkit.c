#include "compilers/toolkit.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/request.h"

static struct toolkit toolkit;
static pthread_once_t is_found = PTHREAD_ONCE_INIT;

// A line of the answer: a word, and a text after a space.
static void take(char *line) {
    char *text = strchr(line, ' ');
    if (!text) return;
    *text++ = 0;
    if (!strcmp(line, "library")) {
        toolkit.library = dlopen(text, RTLD_NOW | RTLD_LOCAL);
        if (!toolkit.library) toolkit.reason = strdup(dlerror());
        if (toolkit.library && dlsym(toolkit.library, "simulated_nvrtcVersion")) toolkit.library = NULL;  // our own
    } else if (!strcmp(line, "reason")) {
        toolkit.reason = strdup(text);
    } else if (!strcmp(line, "headers-reason")) {
        toolkit.headers_reason = strdup(text);
    } else if (!strcmp(line, "include") && toolkit.includes_count < TOOLKIT_INCLUDES_MAX) {
        char *option = malloc(strlen(text) + 3);
        if (option) toolkit.includes[toolkit.includes_count++] = strcat(strcpy(option, "-I"), text);
    }
}

// The machine need not run: a client may compile without a device.
static void find(void) {
    struct answer answer = request_toolkit();
    if (answer.is_refused && answer.content) toolkit.reason = strdup(answer.content);
    char *rest = NULL;
    for (char *line = answer.is_refused || !answer.content ? NULL : strtok_r(answer.content, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest))
        take(line);
    free(answer.content);
    if (!toolkit.library && !toolkit.reason) toolkit.reason = strdup("NVRTC was not found");
    if (!toolkit.library) fprintf(stderr, "quiesce: %s\n", toolkit.reason ? toolkit.reason : "");
}

const struct toolkit *toolkit_get(void) {
    pthread_once(&is_found, find);
    return &toolkit;
}
