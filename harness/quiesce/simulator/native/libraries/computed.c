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
