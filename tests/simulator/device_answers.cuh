// How a question is asked and its answer printed: one line of JSON for each call. device_answers.cu has the questions.
#pragma once

#include <cstdio>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

struct Question {
    const char *name;
    void (*ask)();
    const Question *next;
    static const Question *&first() {
        static const Question *found;
        return found;
    }
    Question(const char *name, void (*ask)()) : name(name), ask(ask), next(first()) { first() = this; }
};

// Each question has a process of its own, so that a device that fails for good takes no other answer along.
#define QUESTION(name)                                                                     \
    static void name();                                                                    \
    static const Question question_##name(#name, name);                                    \
    static void name()

static inline void quote(const char *text) {
    std::putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') std::putchar('\\');
        std::putchar(*text);
    }
    std::putchar('"');
}

static inline void tell(const char *call, long long status) {
    std::printf("[");
    quote(call);
    std::printf(", %lld]\n", status);
    std::fflush(stdout);
}

// A call of the runtime: its status, the error that it left, and the error that is left once that one was taken.
static inline void tell_with_error(const char *call, int status) {
    int left = cudaGetLastError(), stays = cudaPeekAtLastError();
    std::printf("[");
    quote(call);
    std::printf(", %d, %d, %d]\n", status, left, stays);
    std::fflush(stdout);
}

#define ASK(call) tell_with_error(#call, (int)(call))
#define TELL(call) tell(#call, (long long)(call))  // of the driver, or a number

// The driver's functions, by the names that its header gives them.
#define TEXT_OF(name) #name
#define NAME_OF(name) TEXT_OF(name)
#define DRIVER(function) ((decltype(&function))in_driver(NAME_OF(function)))

static inline void *in_driver(const char *name) {
    static void *library = dlopen("libcuda.so.1", RTLD_NOW);
    void *found = library ? dlsym(library, name) : nullptr;
    if (!found) std::fprintf(stderr, "the driver has no %s\n", name);
    return found;
}

static inline int answer(int count, char **words) {
    for (const Question *each = Question::first(); each; each = each->next) {
        if (count < 2) std::printf("%s\n", each->name);
        else if (!std::strcmp(each->name, words[1])) return each->ask(), 0;
    }
    return count < 2 ? 0 : 2;
}
