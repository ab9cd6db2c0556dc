#include "libraries/computed.h"

#include <string.h>

#include "libraries/fft_callbacks.h"
#include "machine/hidden.h"
#include "order/stream_handles.h"

enum { CALLS = SETTINGS_MAX, CHANGES };

_Static_assert((int)HOSTED_SETTINGS == (int)CHANGES + 1, "all settings are told");

static enum status execute(const char *name, struct hosted_call *call, struct stream *stream, int *answer) {
    struct begun begun;
    enum status status = hosted_begin(name, call, (unsigned)call->device, &begun);
    *answer = begun.answer;
    return status || !begun.function ? status : hosted_launch(stream, &begun, call);
}

int library_compute(const char *name, const struct library *library, uint64_t handle, const uint64_t *stream,
                    const uint64_t *words, const double *floats) {
    int answer, own = 0;
    struct library_object *object = object_of_call(name, library, handle, &answer);
    if (!object) return answer;
    struct hosted_call call = {
        .object = object->serial, .device = object->device, .area = HIDDEN(object->hidden_area)};
    memcpy(call.settings, object->values, sizeof object->values);
    call.settings[CALLS] = ++object->calls;
    call.settings[CHANGES] = object->changes;
    memcpy(call.words, words, sizeof call.words);
    memcpy(call.floats, floats, sizeof call.floats);
    uint64_t on = stream ? *stream : HIDDEN(object->hidden_stream);
    struct stream *running_on = stream_find(on, object->device, false);
    enum status status = INVALID_VALUE;
    if (object->callbacks && !call.area) call.area = object->workspace;
    if (running_on && object->callbacks)
        status = fft_callbacks_execute(object->callbacks, name, &call, running_on, &own);
    else if (running_on)
        status = execute(name, &call, running_on, &own);
    explicit_bzero(&call, sizeof call);  // its addresses are no sign that a client still knows them
    answer = object_leave(library, status);
    if (status == NOT_SUPPORTED) return library->unsupported;
    return answer ? answer : own;
}

int computed_run(const struct computed *function, const uint64_t *words, const double *floats) {
    const uint64_t *stream = function->stream == OF_HANDLE ? NULL : words + function->stream;
    return library_compute(function->name, function->library, words[function->handle], stream, words, floats);
}

_Static_assert(!offsetof(struct computed, run), "what is called below");
_Static_assert((int)HOSTED_FLOATS == 8 && (int)HOSTED_WORDS == 6 + 26, "what is read below");

// Reads the words and floating-point numbers of a call, those in registers and those on the stack, and calls `run` of
// the function that %r11 points to. Its frame: 8 floats, 6 words of registers, 26 of the stack.
__attribute__((naked, used)) void quiesce_computed(void) {
    __asm__(
        "pushq %rbp\n\t"
        ".cfi_def_cfa_offset 16\n\t"
        ".cfi_offset %rbp, -16\n\t"
        "movq %rsp, %rbp\n\t"
        ".cfi_def_cfa_register %rbp\n\t"
        "subq $320, %rsp\n\t"
        "movsd %xmm0, (%rsp)\n\t"
        "movsd %xmm1, 8(%rsp)\n\t"
        "movsd %xmm2, 16(%rsp)\n\t"
        "movsd %xmm3, 24(%rsp)\n\t"
        "movsd %xmm4, 32(%rsp)\n\t"
        "movsd %xmm5, 40(%rsp)\n\t"
        "movsd %xmm6, 48(%rsp)\n\t"
        "movsd %xmm7, 56(%rsp)\n\t"
        "movq %rdi, 64(%rsp)\n\t"
        "movq %rsi, 72(%rsp)\n\t"
        "movq %rdx, 80(%rsp)\n\t"
        "movq %rcx, 88(%rsp)\n\t"
        "movq %r8, 96(%rsp)\n\t"
        "movq %r9, 104(%rsp)\n\t"
        "leaq 16(%rbp), %rsi\n\t"
        "leaq 112(%rsp), %rdi\n\t"
        "movl $26, %ecx\n\t"
        "rep movsq\n\t"
        "movq %r11, %rdi\n\t"
        "leaq 64(%rsp), %rsi\n\t"
        "movq %rsp, %rdx\n\t"
        "call *(%r11)\n\t"
        "leave\n\t"
        ".cfi_def_cfa %rsp, 8\n\t"
        "ret");
}
